"""Replicates against all samples there can be: of rows, persons, weighted records, and of Newton steps."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import statsmodels.api as sm
from scipy import stats

import dpci
from dpci import simulate
from dpci.errors import InvalidInput
from support.keywords import assembled
from support.studies import assert_same_bits

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

ALPHA = 1e-6
# Three persons, whose rows are anywhere.
X = np.array([[0.5, 0.0], [-0.25, 0.5], [0.5, 0.1], [0.0, -0.75], [-0.3, 0.2], [0.1, 0.7]])
Y = np.array([1, -1, 1, 1, -1, -1])
IDS = np.array(["b", "a", "b", "c", "b", "a"])
WEIGHTS = np.array([1.0, 3.0, 0.0, 2.0, 4.0, 1.5])
# So large that noise moves no parameter by more than 1e-7.
LARGE = {"budget": dpci.PureDP(5e9), "l2_strength": 0.1, "classes": (-1, 1)}


def minimiser(row_weights, divisor):
    """The minimiser of the weighted logistic risk, by SciPy."""
    rows = np.column_stack([X, np.ones(len(X))])

    def risk(theta):
        return row_weights @ np.logaddexp(0.0, -Y * (rows @ theta)) / divisor + 0.05 * theta @ theta

    def gradient(theta):
        slopes = -Y * scipy.special.expit(-Y * (rows @ theta))
        return rows.T @ (row_weights * slopes) / divisor + 0.1 * theta

    found = scipy.optimize.root(gradient, np.zeros(3), tol=1e-13)
    assert risk(found.x) <= risk(np.zeros(3))
    return found.x


def person_shares(max_rows=None):
    shares = np.zeros(len(IDS))
    for person in np.unique(IDS):
        theirs = np.flatnonzero(person == IDS)[:max_rows]
        shares[theirs] = 1.0 / (max_rows or len(theirs))
    return shares


CASES = {
    "persons": (IDS, {"persons": IDS}, person_shares(), 3),
    "first two rows": (IDS, {"persons": dpci.Persons(IDS, max_rows=2)}, person_shares(2), 3),
    "weights": (np.arange(6), {"weights": dpci.Weights(WEIGHTS, bound=4.0)}, WEIGHTS, 6),
    "both": (
        IDS,
        {"persons": IDS, "weights": dpci.Weights(WEIGHTS, bound=4.0, total=6.0)},
        WEIGHTS * person_shares(),
        6.0,
    ),
}


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("case", CASES)
def test_every_replicate_is_the_minimiser_of_whole_records(case, mechanism):
    ids, keywords, weights, divisor = CASES[case]
    records, of_row = np.unique(ids, return_inverse=True)
    n = len(records)
    study = simulate.coverage(
        X, Y, **LARGE, **keywords, mechanism=mechanism, n_replicates=150, n_variability=6000, seed=3, n_threads=1
    )
    assert (study.n_samples, study.n_distinct) == (n, n)
    np.testing.assert_allclose(study.target, minimiser(weights, divisor), atol=1e-8)
    drawn = np.array([c for c in product(range(n + 1), repeat=n) if sum(c) == n])
    minimisers = np.array([minimiser(weights * c[of_row], divisor) for c in drawn])
    expected = stats.multinomial(n, np.full(n, 1 / n)).pmf(drawn)
    found = np.zeros(len(drawn))
    for params in (study.params, study.variability.params):
        distances = np.abs(params[:, None] - minimisers).max(axis=2)
        assert distances.min(axis=1).max() < 1e-6
        found += np.bincount(distances.argmin(axis=1), minlength=len(drawn))
    if case == "weights":  # six records: too many samples for counts of each
        return
    assert stats.chisquare(found, expected * found.sum()).pvalue > ALPHA


def test_intervals_of_persons_are_those_of_a_fit():
    """Spread of the released parameters beside the standard errors, where rows of a person resemble each other."""
    panel = dpci.datasets.simulate_panel(1500, n_rows=(1, 12), seed=1)
    common = {"budget": dpci.PureDP(1e4), "l2_strength": 0.01, "n_replicates": 600, "n_variability": 2000, "seed": 5}
    study = simulate.coverage(panel.X, panel.y, persons=panel.persons, **common)
    assert study.n_samples == 1500
    error = stats.norm.isf(ALPHA / 2) * study.coverage_se
    assert abs(study.coverage - 0.95) < error + 0.01
    assert 0.9 < study.length_ratio < 1.1
    rows = simulate.coverage(panel.X, panel.y, **common)
    assert study.variability.variability_length > 1.2 * rows.variability.variability_length


def test_what_counts_is_common_to_all_configurations_and_checked():
    few = {**LARGE, "n_replicates": 2, "n_variability": 0}
    for keywords, message in [
        ({"configs": [{"persons": IDS}]}, "other keywords are common to all, got 'persons'"),
        ({"configs": [{}], "persons": dpci.Persons(max_rows=2)}, "persons must have ids"),
        ({"persons": "id"}, "persons must be an array of ids without a schema"),
        ({"persons": IDS[:-1]}, "one id for each of the 6 rows, got 5"),
        ({"weights": WEIGHTS}, "because it must not depend on the data, got ndarray"),
        ({"weights": dpci.Weights(bound=4.0)}, "weights must have values"),
        ({"weights": dpci.Weights(WEIGHTS, bound=2.0)}, "weight"),
        ({"persons": IDS, "calibration": "paper"}, "calibration"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            simulate.coverage(X, Y, **assembled(**few, **keywords))
    with pytest.raises(TypeError, match="strata"):
        simulate.coverage(X, Y, **few, strata=IDS)


def test_a_checkpoint_belongs_to_its_persons_and_weights(tmp_path):
    run = {**LARGE, "n_replicates": 4, "n_variability": 0, "checkpoint": tmp_path / "study.npz"}
    counted = {"persons": IDS, "weights": dpci.Weights(WEIGHTS, bound=4.0, total=6.0)}
    study = simulate.coverage(X, Y, **run, **counted)
    again = simulate.coverage(X, Y, **run, **counted)
    assert study.params.tobytes() == again.params.tobytes()
    for other in (
        {**counted, "persons": IDS[::-1]},
        {**counted, "weights": dpci.Weights(WEIGHTS[::-1], bound=4.0, total=6.0)},
        {},
    ):
        with pytest.raises(InvalidInput, match="must belong to the same study"):
            simulate.coverage(X, Y, **run, **other)


DISTINCT = np.array([[0.5, 0.0], [-0.25, 0.5], [0.0, -0.75]])
LABELS = np.array([1, -1, 1])
# Divided by n: an epsilon so large that noise moves no parameter by more than 1e-7, and so small that minimisers can be
# certified to within the share of it that they may miss by.
EPSILON_TIMES_N = 2e10
L2_STRENGTH = 0.1


def samples(multiplicities):
    """Every sample by the counts of the distinct records, and its probability."""
    n = sum(multiplicities)
    law = stats.multinomial(n, np.array(multiplicities) / n)
    counts = np.array([c for c in product(range(n + 1), repeat=len(multiplicities)) if sum(c) == n])
    return counts, law.pmf(counts)


@pytest.mark.parametrize("multiplicities", [(1, 1), (3, 1, 1), (40, 3), (40, 35)], ids=str)  # merged, up to 40 alike
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "keywords",
    [
        {"loss": "logistic"},
        {"loss": "huber_hinge", "mechanism": "output"},
        {"loss": "smooth_hinge", "rows": dpci.rows.Within(intercept=False)},
    ],
    ids=lambda keywords: keywords["loss"],
)
def test_every_replicate_is_the_minimiser_of_a_sample(multiplicities, storage, keywords):
    records, labels = DISTINCT[: len(multiplicities)], LABELS[: len(multiplicities)]
    X, y = np.repeat(records, multiplicities, axis=0), np.repeat(labels, multiplicities)
    study = simulate.coverage(
        storage(X), y, budget=dpci.PureDP(EPSILON_TIMES_N / len(X)), l2_strength=L2_STRENGTH, classes=(-1, 1),
        n_replicates=150, n_variability=10_000, seed=3, n_threads=1, **keywords,
    )  # fmt: skip
    assert study.n_distinct == len(multiplicities)
    intercept = "rows" not in keywords
    solve = partial(dpci.lowlevel.minimize_erm, l2_strength=L2_STRENGTH, loss=keywords["loss"], intercept=intercept)
    # Samples of one class alone and of one distinct row are among them.
    possible, probabilities = samples(multiplicities)
    minimisers = np.array(
        [solve(np.repeat(records, c, axis=0), np.repeat(labels, c).astype(float)).params for c in possible]
    )
    found = np.zeros(len(possible))
    for params in (study.params, study.variability.params):
        distances = np.abs(params[:, None] - minimisers).max(axis=2)
        assert distances.min(axis=1).max() < 1e-7
        found += np.bincount(distances.argmin(axis=1), minlength=len(possible))
    expected = probabilities * found.sum()
    # The test needs 5 expected in each cell: rare samples join the rarest of the others.
    rare = expected < 5
    cell = np.where(rare, np.argmin(np.where(rare, np.inf, expected)), np.arange(len(expected)))
    cells = [np.bincount(cell, weights=x, minlength=len(cell))[~rare] for x in (found, expected)]
    assert stats.chisquare(*cells).pvalue > ALPHA


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(31)
    X = rng.integers(-2, 3, size=(300, 3)) / 4.0  # many duplicates
    return X, (X @ [3.0, -2.0, 1.0] + rng.logistic(size=300) > 0).astype(int)


def in_another_order(X, y):
    order = np.random.default_rng(32).permutation(len(X))
    return X[order], y[order]


def not_merged(X, y):
    """The same records, so little apart that the answers cannot tell, but no two with the same bits."""
    return X * (1.0 - 1e-12 * np.arange(len(X)))[:, None], y


def sparse(X, y):
    return scipy.sparse.csr_array(X), y


@pytest.mark.parametrize("change", [in_another_order, not_merged, sparse])
def test_the_same_data_give_the_same_distribution(rows, change):
    run = partial(simulate.coverage, budget=dpci.PureDP(4.0), l2_strength=0.05, n_replicates=400, n_variability=1500)
    study, other = run(*rows, seed=4), run(*change(*rows), seed=5)
    np.testing.assert_allclose(other.target, study.target, rtol=0, atol=1e-8)
    pairs = [
        (study.params, other.params),
        (study.upper - study.lower, other.upper - other.lower),
        (study.variability.params, other.variability.params),
    ]
    for ours, theirs in pairs:
        for j in range(ours.shape[1]):
            assert stats.ks_2samp(ours[:, j], theirs[:, j], method="asymp").pvalue > ALPHA / (3 * ours.shape[1])
    covered = [((s.lower <= s.target) & (s.target <= s.upper)).mean(axis=1) for s in (study, other)]
    error = math.hypot(*(share.std(ddof=1) / math.sqrt(len(share)) for share in covered))
    assert abs(study.coverage - other.coverage) <= stats.norm.isf(ALPHA / 2) * error


N = 4000


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(21)
    X = 0.3 * rng.standard_normal((N, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.4]])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, (X @ [3.0, -2.0, 4.0] - 0.5 + rng.logistic(size=N) > 0).astype(int)


def study_of(records, **keywords):
    given = {"budget": dpci.ZCDP(2.0), "n_replicates": 40, "n_variability": 0, "classes": (0, 1), **keywords}
    return simulate.coverage(*records, **given)


def test_the_target_and_its_lengths_are_those_of_statsmodels(records):
    X, y = records
    study = study_of(records, level=0.9)
    fit = sm.GLM(y, np.column_stack([X, np.ones(N)]), sm.families.Binomial()).fit(tol=1e-14)
    np.testing.assert_allclose(study.target, fit.params, rtol=1e-9)
    errors = sm.Logit(y, np.column_stack([X, np.ones(N)])).fit(disp=0, tol=1e-14, cov_type="HC0").bse
    np.testing.assert_allclose(study.nonprivate_length_by_param, 2 * stats.norm.ppf(0.95) * errors, rtol=1e-7)
    ratios = study.mean_length_by_param / study.nonprivate_length_by_param
    assert math.isclose(study.nonprivate_ratio, stats.gmean(ratios), rel_tol=1e-12)
    assert study.to_frame()["nonprivate_ratio"].tolist() == ratios.tolist()
    assert 1.0 < study.nonprivate_ratio < 1.5
    assert study.to_dict()["nonprivate_ratio"] == study.nonprivate_ratio


def test_intervals_cover_the_ordinary_coefficients(records):
    study = study_of(records, n_replicates=400)
    assert study.refused == 0.0
    error = stats.norm.isf(ALPHA / 2) * study.coverage_se
    assert 0.95 - error < study.coverage < 0.985 + error


def test_newton_steps_are_taken_where_a_fit_takes_them(records):
    by_name, by_default = study_of(records, mechanism="newton"), study_of(records)
    assert_same_bits(by_name, by_default)
    ridge = study_of(records, l2_strength=0.01)
    assert ridge.std_errors is None
    assert "refused" not in ridge.to_dict()
    with pytest.raises(InvalidInput, match="l2_strength must be 'auto' with mechanism='newton'"):
        study_of(records, l2_strength=0.01, mechanism="newton")
    # The squared loss has no Newton steps, and needs a ridge.
    with pytest.raises(TypeError, match="missing required keyword-only argument: 'l2_strength'"):
        study_of((records[0], records[0][:, 0]), loss="squared", classes=None)


def test_neither_threads_nor_other_configurations_nor_an_interruption_change_a_bit(records, tmp_path):
    configs = [{}, {"budget": dpci.PureDP(4.0)}, {"l2_strength": 0.01}, {"budget": dpci.ApproxDP(3.0, 1e-6)}]
    whole = study_of(records, configs=configs, n_threads=1, n_variability=20)
    assert_same_bits(whole[0], study_of(records, n_threads=2, n_variability=20))
    path = tmp_path / "study.npz"
    study_of(records, configs=configs, n_replicates=7, n_variability=20, checkpoint=path)
    for found, expected in zip(
        study_of(records, configs=configs, n_variability=20, checkpoint=path), whole, strict=True
    ):
        assert_same_bits(found, expected)
    with pytest.raises(InvalidInput, match="same study"):
        study_of(
            records, configs=[*configs[:3], {"budget": dpci.ApproxDP(3.1, 1e-6)}], n_variability=20, checkpoint=path
        )


def test_refusals_are_counted_and_take_no_part_in_coverage(records):
    X, y = records
    study = study_of((X[:700], y[:700]), budget=dpci.PureDP(1.5), n_replicates=200)
    given = np.isfinite(study.lower)
    assert 0.02 < study.refused < 0.98
    assert study.refused == (~given).mean()
    np.testing.assert_array_equal(study.refused_by_param, (~given).mean(axis=0))
    assert np.isfinite(study.params).all()
    covered = (study.lower <= study.target) & (study.target <= study.upper)
    assert math.isclose(study.coverage, covered[given].mean())
    for j in range(4):
        shown = given[:, j]
        assert math.isclose(study.coverage_by_param[j], covered[shown, j].mean())
        lengths = (study.upper - study.lower)[shown, j]
        assert math.isclose(study.mean_length_by_param[j], lengths.mean())
        assert math.isclose(study.length_std_by_param[j], lengths.std())
    assert "intervals that fits give" in study.summary()
    nothing = study_of((X[:300], y[:300]), budget=dpci.PureDP(0.05), n_replicates=16)
    assert nothing.refused == 1.0
    assert np.isnan([nothing.coverage, nothing.nonprivate_ratio, nothing.coverage_se]).all()


def test_persons_and_weights(records):
    X, y = records
    of = np.random.default_rng(3).permutation(np.arange(N) % 2500)
    persons = study_of(records, persons=of)
    assert persons.n_samples == 2500
    weighted = study_of(records, weights=dpci.Weights(np.linspace(0.5, 1.0, N), bound=1.0, total=0.75 * N))
    for study in (persons, weighted):
        assert study.refused < 0.1
        assert study.coverage > 0.9
    np.testing.assert_allclose(
        weighted.target,
        sm.GLM(y, np.column_stack([X, np.ones(N)]), sm.families.Binomial(), freq_weights=np.linspace(0.5, 1.0, N))
        .fit(tol=1e-14)
        .params,
        rtol=1e-8,
    )


def test_separable_classes_have_no_target(records):
    X, _ = records
    with pytest.raises(InvalidInput, match="requires data that have ordinary coefficients"):
        study_of((X, (X[:, 0] > 0).astype(int)))


def test_a_study_of_newton_steps_repeats_fewer_releases_unless_asked(records):
    X, y = records
    study = simulate.variability(X[:200], y[:200], budget=dpci.ZCDP(1.0), classes=(0, 1))
    assert study.n_variability == 1000
    assert (
        simulate.variability(X[:200], y[:200], budget=dpci.ZCDP(1.0), classes=(0, 1), n_variability=3).n_variability
        == 3
    )
