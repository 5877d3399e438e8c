"""Bootstrap studies: right against a plain loop, the same bits however they are run or resumed, what they refuse."""

import json
import pickle
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dpci
from dpci import _core, simulate
from dpci.errors import DpciError, InvalidInput, PrivacyLeakWarning
from dpci.simulate import replicates as _replicates
from support.keywords import assembled
from support.studies import SMALL, SOFT_LABELS, N, assert_same_bits, coverage, make_rows, replicates, variability

Z = 4.9  # two-sided normal quantile at 1e-6


@pytest.fixture(scope="module")
def rows():
    return make_rows()


# Right answers.


@pytest.mark.slow
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {
            "budget": dpci.ZCDP(0.5),
            "mechanism": "output",
            "loss": "huber_hinge",
            "rows": dpci.rows.Within(intercept=False),
        },
        {"calibration": "paper"},
        {"budget": dpci.ApproxDP(1.0, 1e-5), "neighbors": dpci.AddRemove(N)},
    ],
    ids=["default", "output", "paper", "Gaussian objective"],
)
def test_a_study_is_a_loop_of_fits(rows, keywords):
    X, y = rows
    n = 400
    options = {"budget": SMALL["budget"], "l2_strength": SMALL["l2_strength"], "projection": "floor", **keywords}
    study = coverage(X, y, n_replicates=n, n_variability=n, seed=1, **options)
    scale = {} if "rows" in options else {"intercept": 1.0}
    target = dpci.lowlevel.minimize_erm(
        X, 2.0 * y - 1.0, l2_strength=0.1, loss=options.get("loss", "logistic"), **scale
    ).params
    np.testing.assert_allclose(study.target, target, rtol=0, atol=1e-8)
    rng = np.random.default_rng(2)
    params, lower, upper = [], [], []
    for seed in range(n):
        sample = rng.integers(N, size=N)
        result = dpci.fit(X[sample], y[sample], **assembled(seed=seed, **options))
        intervals = result.conf_int(level=0.95)
        params.append(result.params)
        lower.append(intervals.lower)
        upper.append(intervals.upper)
    params, lower, upper = map(np.array, (params, lower, upper))
    covered = ((lower <= target) & (target <= upper)).mean(axis=1)
    error = np.hypot(study.coverage_se, covered.std(ddof=1) / np.sqrt(n))
    assert abs(study.coverage - covered.mean()) < Z * error
    lengths = (upper - lower).mean(axis=1)
    ours = (study.upper - study.lower).mean(axis=1)
    error = np.hypot(lengths.std(ddof=1), ours.std(ddof=1)) / np.sqrt(n)
    assert abs(study.mean_length - lengths.mean()) < Z * error
    for found in (study.params, study.variability.params):
        # Means by parameter, and root mean squares about the target: relative error of a variance at most sqrt(8/n)
        # for the spherical Laplace law's tails.
        spread = np.hypot(found.std(axis=0), params.std(axis=0)) / np.sqrt(n)
        assert (np.abs(found.mean(axis=0) - params.mean(axis=0)) < Z * spread).all()
        ratio = found.var(axis=0) / params.var(axis=0)
        assert (np.abs(np.log(ratio)) < Z * np.sqrt(2 * 8 / n)).all()


def test_summaries_follow_from_the_replicates(rows):
    study = coverage(*rows, level=0.8)
    covered = (study.lower <= study.target) & (study.target <= study.upper)
    lengths = study.upper - study.lower
    assert study.coverage == pytest.approx(covered.mean())
    assert study.coverage_se == pytest.approx(covered.mean(axis=1).std(ddof=1) / np.sqrt(40))
    np.testing.assert_allclose(study.coverage_by_param, covered.mean(axis=0))
    np.testing.assert_allclose(study.mean_length_by_param, lengths.mean(axis=0))
    np.testing.assert_allclose(study.length_std_by_param, lengths.std(axis=0))
    assert study.mean_length == pytest.approx(lengths.mean())
    spread = np.diff(np.quantile(study.variability.params, [0.1, 0.9], axis=0), axis=0)[0]
    np.testing.assert_allclose(study.variability_length_by_param, spread)
    assert study.variability_length == pytest.approx(spread.mean())
    assert study.length_ratio == pytest.approx(lengths.mean() / spread.mean())
    assert (study.n_replicates, study.n_variability, study.n_samples) == (40, 24, N)
    assert study.n_distinct == len(np.unique(np.column_stack(rows), axis=0))
    assert study.names == ("x0", "x1", "x2", "intercept")
    assert study.private is False
    assert not study.params.flags.writeable


def test_variability_is_that_of_coverage(rows):
    study, spread = coverage(*rows), variability(*rows)
    np.testing.assert_array_equal(spread.params, study.variability.params)
    assert spread.variability_length == study.variability_length
    # Replicates of the two kinds share nothing.
    assert not np.isin(spread.params, study.params).any()


def test_variability_needs_no_moments(rows):
    assert variability(*rows, moments="none").n_variability == 24


def test_coverage_alone(rows):
    study = coverage(*rows, n_variability=0)
    assert study.variability is None
    assert study.variability_length is None
    assert study.variability_length_by_param is None
    assert study.length_ratio is None
    assert "variability length" not in study.summary()
    one = coverage(*rows, n_variability=0, n_replicates=1)
    assert np.isnan(one.coverage_se)
    assert json.loads(json.dumps(one.to_dict(), allow_nan=False))["coverage_se"] is None


def test_results_as_tables(rows):
    X, y = rows
    study = coverage(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    frame = study.to_frame()
    assert list(frame.index) == ["a", "b", "c", "intercept"]
    np.testing.assert_array_equal(frame["coverage"], study.coverage_by_param)
    np.testing.assert_array_equal(frame["variability_length"], study.variability_length_by_param)
    assert "NOT PRIVATE" in study.summary()
    values = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert values["coverage"] == study.coverage
    assert values["private"] is False
    assert_same_bits(pickle.loads(pickle.dumps(study)), study)
    assert "40 replicates" in repr(study)
    spread = variability(X, y)
    np.testing.assert_array_equal(spread.to_frame()["target"], spread.target)
    assert "24 replicates" in repr(spread)


def test_the_warning_points_to_the_call(rows):
    X, y = rows
    with pytest.warns(PrivacyLeakWarning) as caught:
        simulate.coverage(X, np.where(y == 1, "yes", "no"), **SMALL)
    (warning,) = caught
    assert warning.filename == __file__
    assert "a study is NOT PRIVATE" in str(warning.message)


def test_labels_are_those_of_a_fit(rows):
    X, y = rows
    named = coverage(X, np.where(y == 1, "yes", "no"), classes=("no", "yes"))
    assert_same_bits(named, coverage(X, y))
    # One class alone is legal with classes, and samples may lose one.
    assert coverage(X, np.ones(N, dtype=int), classes=(0, 1)).coverage >= 0.0
    rare = np.zeros(N, dtype=int)
    rare[0] = 1
    assert np.isfinite(replicates(coverage(X, rare))).all()


def test_real_targets(rows):
    X, _ = rows
    study = coverage(X, np.linspace(0.0, 1.0, N), loss=SOFT_LABELS)
    assert np.isfinite(replicates(study)).all()
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_bits(coverage(X, np.linspace(0.0, 1.0, N), loss=SOFT_LABELS, parallel="joblib"), study)


def test_public_n_is_the_number_of_rows(rows):
    assert coverage(*rows, neighbors=dpci.AddRemove(N)).n_samples == N
    with pytest.raises(InvalidInput, match=r"n_public must be the number of rows in a study, 600, got n_public=500"):
        simulate.coverage(*rows, neighbors=dpci.AddRemove(500), **SMALL)


def test_sparse_rows(rows):
    X, y = rows
    sparse = coverage(scipy.sparse.csr_array(X), y)
    np.testing.assert_allclose(replicates(sparse), replicates(coverage(X, y)), rtol=0, atol=1e-8)


# The same bits.


@pytest.mark.parametrize("keywords", [{"n_threads": 1}, {"n_threads": 2}, {"n_threads": 3}], ids=str)
def test_threads_change_nothing(rows, keywords):
    assert_same_bits(coverage(*rows, **keywords), coverage(*rows))


@pytest.mark.parametrize("width", [1, 3, 8, 13, 64])
def test_batches_change_nothing(rows, width, monkeypatch):
    expected = coverage(*rows)
    init = _replicates.LocalRunner.__init__

    def with_width(self, *arguments):
        init(self, *arguments)
        self.width = width

    monkeypatch.setattr(_replicates.LocalRunner, "__init__", with_width)
    monkeypatch.setattr(_replicates, "BATCH_SECONDS", 1e-9)  # never grows
    assert_same_bits(coverage(*rows), expected)


def test_a_longer_study_begins_with_the_shorter(rows):
    short, long = coverage(*rows), coverage(*rows, n_replicates=57, n_variability=31)
    np.testing.assert_array_equal(long.lower[:40], short.lower)
    np.testing.assert_array_equal(long.variability.params[:24], short.variability.params)


def test_seeds_differ(rows):
    assert not np.isin(coverage(*rows, seed=1).params, coverage(*rows).params).any()


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_joblib_changes_nothing(rows, backend):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert_same_bits(coverage(*rows, parallel="joblib"), coverage(*rows))


def test_joblib_with_sparse_rows_and_configurations(rows):
    X, y = rows
    keywords = {"configs": [{}, {"loss": "smooth_hinge", "mechanism": "output"}]}
    with joblib.parallel_config(backend="loky", n_jobs=2):
        found = coverage(scipy.sparse.csr_array(X), y, parallel="joblib", **keywords)
    for ours, theirs in zip(found, coverage(scipy.sparse.csr_array(X), y, **keywords), strict=True):
        assert_same_bits(ours, theirs)


# Configurations.


def test_configurations_share_their_samples(rows):
    # With budgets that drown the noise, what is left is the sample's own minimiser, by either mechanism.
    configs = [{"mechanism": "objective"}, {"mechanism": "output"}, {"mechanism": "output", "l2_strength": 0.5}]
    found = coverage(*rows, configs=configs, budget=dpci.PureDP(1e6))
    np.testing.assert_allclose(found[0].params, found[1].params, rtol=0, atol=1e-3)
    assert (found[0].params.std(axis=0) > 0.03).all()
    assert np.corrcoef(found[0].params[:, 0], found[2].params[:, 0])[0, 1] > 0.95
    assert [len(study.lower) for study in found] == [40, 40, 40]


def test_configurations_replace_common_keywords(rows):
    alone = coverage(*rows, l2_strength=0.3, loss="huber_hinge")
    (first,) = coverage(*rows, configs=[{"l2_strength": 0.3, "loss": "huber_hinge"}])
    assert_same_bits(first, alone)
    with pytest.warns(PrivacyLeakWarning):
        (only,) = simulate.coverage(
            *rows, configs=[{"budget": SMALL["budget"], "l2_strength": 0.1}], n_replicates=40, n_variability=24
        )
    assert_same_bits(only, coverage(*rows))
    assert [one.n_variability for one in variability(*rows, configs=[{}, {"loss": "huber_hinge"}])] == [24, 24]


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_intervals_that_a_fit_would_refuse_count_and_the_study_says_so(rows):
    free = coverage(*rows, n_variability=0)
    assert free.radius is None
    assert "would refuse" not in free.summary()
    radius = 1.001 * float(np.linalg.norm(free.target))
    fits = [
        dpci.fit(
            *rows, budget=SMALL["budget"], l2_strength=0.1, mechanism=dpci.ObjectivePerturbation(radius=radius), seed=s
        )
        for s in range(5)
    ]
    assert all(one.interval_refusal is not None for one in fits)
    near, other = coverage(*rows, n_variability=0, configs=[{"radius": radius}, {}])
    assert near.radius == near.to_dict()["radius"] == radius
    assert other.radius is None
    assert near.n_replicates == SMALL["n_replicates"]
    assert np.isfinite(near.lower).all()
    assert f"intervals that a fit with radius={radius:g} would refuse" in near.summary()


REFUSED = {
    "no replicates": ({"n_replicates": 0}, "n_replicates must be at least 1, got n_replicates=0"),
    "float replicates": ({"n_replicates": 10.0}, "n_replicates must be an integer"),
    "negative variability": ({"n_variability": -1}, "n_variability must be at least 0"),
    "one draw": ({"n_variability": 1}, "n_variability must be 0 or at least 2"),
    "level": ({"level": 1.0}, "level must be > 0 and < 1, such as 0.95 for 95%, got level=1.0"),
    "no seed": ({"seed": None}, r"seed must be an integer in \[0, 2\*\*64\), got seed=None"),
    "negative seed": ({"seed": -1}, "seed must be None or an integer"),
    "progress": ({"progress": 1}, "progress must be True or False"),
    "threads": ({"n_threads": 0}, "n_threads must be at least 1"),
    "parallel": ({"parallel": "dask"}, "parallel must be one of 'joblib', got parallel='dask'"),
    "checkpoint": ({"checkpoint": 3}, "checkpoint must be None or a path, got checkpoint=3"),
    "moments": ({"moments": "none"}, "coverage requires released moments, got moments='none'"),
    "budget": ({"budget": 1.0}, "budget must be"),
    "configs text": ({"configs": "objective"}, "configs must be a sequence of dictionaries"),
    "configs mapping": ({"configs": {"mechanism": "output"}}, "configs must be a sequence of dictionaries"),
    "configs number": ({"configs": 3}, "configs must be a sequence of dictionaries"),
    "configs of text": ({"configs": ["output"]}, r"got configs\[0\]='output'"),
    "configs empty": ({"configs": []}, "configs must hold at least one dictionary, got none"),
    "configs unknown": ({"configs": [{}, {"lambda": 1.0}]}, r"got 'lambda' in configs\[1\]"),
    "configs shared": ({"configs": [{"rows": 2.0}]}, r"common to all, got 'rows' in configs\[0\]"),
    "configs moments": ({"configs": [{}, {"moments": "none"}]}, "coverage requires released moments"),
    "configs many": ({"configs": [{}] * 256}, "at most 255 configurations, got 256"),
    "regularisation": ({"l2_strength": 1e-9}, "l2_strength"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_refusals(rows, case):
    keywords, message = REFUSED[case]
    with pytest.raises((InvalidInput, dpci.RegularizationTooSmall), match=message):
        simulate.coverage(*rows, **assembled(**{**SMALL, **keywords}))


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_a_ball_that_binds_the_target_is_refused_by_its_radius(rows):
    length = np.linalg.norm(simulate.coverage(*rows, **{**SMALL, "n_variability": 0}).target)
    for keywords in ({"radius": 0.5 * length}, {"configs": [{}, {"radius": 0.5 * length}]}):
        with pytest.raises(InvalidInput, match=rf"radius that does not bind.* got radius={0.5 * length:.6f}"):
            simulate.coverage(*rows, **assembled(**{**SMALL, **keywords}))


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_rows_are_checked_as_in_a_fit(rows):
    X, y = rows
    for bad, error, message in (
        (np.full_like(X, np.nan), InvalidInput, "X must be finite"),
        (3 * X, dpci.RowNormViolation, "Euclidean norm"),
        (X[:, 0], InvalidInput, "X must be two-dimensional"),
        (X[:0], InvalidInput, "y must have one entry"),
    ):
        with pytest.raises(error, match=message):
            simulate.coverage(bad, y, **SMALL)
    with pytest.raises(InvalidInput, match="at least one row"):
        simulate.coverage(X[:0], y[:0], classes=(0, 1), **SMALL)


def test_losses_with_other_targets_are_refused(rows):
    with pytest.raises(InvalidInput, match=r"same target_bounds, got None in configs\[0\] and \(0.0, 1.0\)"):
        simulate.coverage(*rows, configs=[{}, {"loss": SOFT_LABELS}], **SMALL)


@pytest.mark.parametrize("function", [simulate.coverage, simulate.variability])
def test_keywords_are_those_of_a_fit(rows, function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) got an unexpected keyword argument 'lambda_'"):
        function(*rows, budget=SMALL["budget"], l2_strength=0.1, lambda_=1.0)
    with pytest.raises(TypeError, match=rf"{name}\(\) missing required keyword-only argument: 'budget'"):
        function(*rows, l2_strength=0.1)
    with pytest.raises(InvalidInput, match="n_variability must be at least"):
        function(*rows, budget=SMALL["budget"], l2_strength=0.1, n_variability=-1)


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
@pytest.mark.parametrize(
    ("package", "keywords"), [("joblib", {"parallel": "joblib"}), ("tqdm.auto", {"progress": True})]
)
def test_optional_packages_are_named(rows, monkeypatch, package, keywords):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DpciError, match=f"needs {package.split('.')[0]}"):
        simulate.coverage(*rows, **SMALL, **keywords)


def test_to_frame_names_pandas(rows, monkeypatch):
    study = coverage(*rows)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(DpciError, match="to_frame needs pandas"):
        study.to_frame()


def test_progress(rows, capsys):
    assert_same_bits(coverage(*rows, progress=True), coverage(*rows))
    assert "64/64" in capsys.readouterr().err


def test_a_checkpoint_is_resumed_and_extended(rows, tmp_path):
    path = tmp_path / "study.npz"
    expected = coverage(*rows)
    assert_same_bits(
        coverage(*rows, n_replicates=17, n_variability=0, checkpoint=path),
        coverage(*rows, n_replicates=17, n_variability=0),
    )
    assert_same_bits(coverage(*rows, checkpoint=str(path)), expected)
    # Fewer are cut, and lost from the file neither.
    assert coverage(*rows, n_replicates=5, n_variability=0, checkpoint=path).n_replicates == 5
    assert_same_bits(coverage(*rows, checkpoint=path), expected)
    assert [file.name for file in tmp_path.iterdir()] == ["study.npz"]


def test_a_complete_checkpoint_runs_nothing(rows, tmp_path, monkeypatch):
    path = tmp_path / "study.npz"
    expected = coverage(*rows, checkpoint=path)

    def refuse(*_arguments):
        raise AssertionError

    monkeypatch.setattr(_replicates.LocalRunner, "run", refuse)
    assert_same_bits(coverage(*rows, checkpoint=path), expected)


def test_an_error_loses_nothing_that_was_complete(rows, tmp_path, monkeypatch):
    path = tmp_path / "study.npz"
    expected = coverage(*rows)
    run, calls = _replicates.LocalRunner.run, []

    def interrupted(self, ranges, level):
        calls.append(ranges)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return run(self, ranges, level)

    monkeypatch.setattr(_replicates.LocalRunner, "run", interrupted)
    monkeypatch.setattr(_replicates, "BATCH_SECONDS", 1e-9)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(KeyboardInterrupt):
        simulate.coverage(*rows, checkpoint=path, n_threads=1, **SMALL)
    with np.load(path) as archive:
        assert archive["coverage_0_params"].shape == (2 * _core.LANES, 4)
    assert_same_bits(coverage(*rows, checkpoint=path), expected)
    assert calls[3][0][0] == 2 * _core.LANES


@pytest.fixture(scope="module")
def written(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("checkpoint") / "study.npz"
    coverage(*rows, checkpoint=path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"seed": 1}, "differs in seed: 0 there, 1 here"),
        ({"level": 0.9}, "differs in level: 0.95 there, 0.9 here"),
        ({"l2_strength": 0.2}, r"differs in configs\[0\].l2_strength: 0.1 there, 0.2 here"),
        ({"configs": [{}, {}]}, "number of configs: 1 there, 2 here"),
    ],
    ids=str,
)
def test_another_study_is_refused(rows, written, tmp_path, keywords, message):
    path = tmp_path / "study.npz"
    path.write_bytes(written)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match=message):
        simulate.coverage(*rows, **{**SMALL, **keywords}, checkpoint=path)
    assert path.read_bytes() == written


def test_other_data_are_refused(rows, written, tmp_path):
    path = tmp_path / "study.npz"
    path.write_bytes(written)
    X, y = rows
    flipped = y.copy()
    flipped[3] = 1 - flipped[3]
    for data, message in (
        ((X, flipped), "hash of X and y"),
        ((X[:-1], y[:-1]), r"shape of X\[0\]: 600 there, 599 here"),
    ):
        with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match=message):
            simulate.coverage(*data, checkpoint=path, **SMALL)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="study: coverage there, variability here"):
        simulate.variability(X, y, budget=SMALL["budget"], l2_strength=0.1, n_variability=24, checkpoint=path)


def test_arrays_of_other_shapes_are_refused(rows, tmp_path, written):
    path = tmp_path / "study.npz"
    path.write_bytes(written)
    with np.load(path) as archive:
        arrays = dict(archive)
    for name, values in (
        ("coverage_0_lower", arrays["coverage_0_lower"][:-1]),
        ("coverage_0_params", arrays["coverage_0_params"].astype(np.float32)),
        ("variability_0_params", arrays["variability_0_params"][:, :2]),
        ("header", np.array("[]")),
        ("header", np.array("{")),
        ("header", np.array('{"format": 99}')),
    ):
        np.savez(path, **{**arrays, name: values})
        with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="checkpoint must be"):
            simulate.coverage(*rows, checkpoint=path, **SMALL)


def test_a_path_that_cannot_be_written_is_found_first(rows, tmp_path):
    for path in (tmp_path / "nowhere" / "study.npz", tmp_path):
        with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="checkpoint must be"):
            simulate.coverage(*rows, checkpoint=path, **{**SMALL, "n_replicates": 10**9})
