"""Checkpoints of studies: resumed to the same bits, also after a kill, and refused when they are another study's."""

import numpy as np
import pytest

import dpci
from dpci import _core, simulate
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.simulate import replicates as _replicates
from support.studies import SMALL, assert_same_bits, coverage, make_rows


@pytest.fixture(scope="module")
def rows():
    return make_rows()


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
        ({"budget": dpci.ZCDP(1.0)}, r"configs\[0\].budget: PureDP\(epsilon=2.0\) there, ZCDP\(rho=1.0\) here"),
        ({"loss": "huber_hinge"}, r"configs\[0\].loss.name: logistic there, huber_hinge here"),
        ({"mechanism": "output"}, r"configs\[0\].mechanism: "),
        (
            {"mechanism": dpci.ObjectivePerturbation(split=(0.5, 0.25, 0.25))},
            r"configs\[0\].mechanism: .* there, .*\(0.5",
        ),
        ({"intercept": False}, r"configs\[0\].intercept: 1.0 there, None here"),
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
    changed = X.copy()
    changed[17, 1] += 1e-9
    flipped = y.copy()
    flipped[3] = 1 - flipped[3]
    for data, message in (
        ((changed, y), "hash of X and y"),
        ((X, flipped), "hash of X and y"),
        ((X[:-1], y[:-1]), r"shape of X\[0\]: 600 there, 599 here"),
    ):
        with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match=message):
            simulate.coverage(*data, checkpoint=path, **SMALL)
    with pytest.warns(PrivacyLeakWarning), pytest.raises(InvalidInput, match="study: coverage there, variability here"):
        simulate.variability(X, y, budget=SMALL["budget"], l2_strength=0.1, n_variability=24, checkpoint=path)


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")
def test_a_damaged_file_is_refused_or_right(rows, written, tmp_path):
    path = tmp_path / "study.npz"
    expected = coverage(*rows)
    rng = np.random.default_rng(5)
    refused = 0
    damaged = [written[: int(cut)] for cut in np.linspace(0, len(written) - 1, 40)]
    for position in rng.integers(len(written), size=160):
        flipped = bytearray(written)
        flipped[position] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    damaged += [b"", b"no archive", np.random.default_rng(6).bytes(1000)]
    for content in damaged:
        path.write_bytes(content)
        try:
            study = simulate.coverage(*rows, checkpoint=path, **SMALL)
        except InvalidInput as error:
            refused += 1
            assert "checkpoint must" in str(error)  # noqa: PT017  # either outcome is right
            assert path.read_bytes() == content
        else:
            assert_same_bits(study, expected)
    assert refused > 150


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
