"""Studies of fits by Newton steps: targets without a ridge, counted refusals, and lengths beside non-private ones.

Statistical tests have a false-positive rate of 1e-6 each; their seeds were fixed once.
"""

import math

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import dpci
from dpci import simulate
from dpci.errors import InvalidInput
from support.studies import assert_same_bits

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

ALPHA = 1e-6
N = 4000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(21)
    X = 0.3 * rng.standard_normal((N, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.4]])
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    return X, (X @ [3.0, -2.0, 4.0] - 0.5 + rng.logistic(size=N) > 0).astype(int)


def study_of(rows, **keywords):
    given = {"budget": dpci.ZCDP(2.0), "n_replicates": 40, "n_variability": 0, "classes": (0, 1), **keywords}
    return simulate.coverage(*rows, **given)


def test_the_target_and_its_lengths_are_those_of_statsmodels(rows):
    X, y = rows
    study = study_of(rows, level=0.9)
    fit = sm.GLM(y, np.column_stack([X, np.ones(N)]), sm.families.Binomial()).fit(tol=1e-14)
    np.testing.assert_allclose(study.target, fit.params, rtol=1e-9)
    errors = sm.Logit(y, np.column_stack([X, np.ones(N)])).fit(disp=0, tol=1e-14, cov_type="HC0").bse
    np.testing.assert_allclose(study.nonprivate_length_by_param, 2 * stats.norm.ppf(0.95) * errors, rtol=1e-7)
    ratios = study.mean_length_by_param / study.nonprivate_length_by_param
    assert math.isclose(study.nonprivate_ratio, stats.gmean(ratios), rel_tol=1e-12)
    assert study.to_frame()["nonprivate_ratio"].tolist() == ratios.tolist()
    assert 1.0 < study.nonprivate_ratio < 1.5
    assert study.to_dict()["nonprivate_ratio"] == study.nonprivate_ratio


def test_intervals_cover_the_ordinary_coefficients(rows):
    study = study_of(rows, n_replicates=400)
    assert study.refused == 0.0
    error = stats.norm.isf(ALPHA / 2) * study.coverage_se
    assert 0.95 - error < study.coverage < 0.985 + error


def test_newton_steps_are_taken_where_a_fit_takes_them(rows):
    by_name, by_default = study_of(rows, mechanism="newton"), study_of(rows)
    assert_same_bits(by_name, by_default)
    ridge = study_of(rows, l2_strength=0.01)
    assert ridge.std_errors is None
    assert "refused" not in ridge.to_dict()
    with pytest.raises(InvalidInput, match="l2_strength must be 'auto' with mechanism='newton'"):
        study_of(rows, l2_strength=0.01, mechanism="newton")
    # The squared loss has no Newton steps, and needs a ridge.
    with pytest.raises(TypeError, match="missing required keyword-only argument: 'l2_strength'"):
        study_of((rows[0], rows[0][:, 0]), loss="squared", classes=None)


def test_neither_threads_nor_other_configurations_nor_an_interruption_change_a_bit(rows, tmp_path):
    configs = [{}, {"budget": dpci.PureDP(4.0)}, {"l2_strength": 0.01}, {"budget": dpci.ApproxDP(3.0, 1e-6)}]
    whole = study_of(rows, configs=configs, n_threads=1, n_variability=20)
    assert_same_bits(whole[0], study_of(rows, n_threads=2, n_variability=20))
    path = tmp_path / "study.npz"
    study_of(rows, configs=configs, n_replicates=7, n_variability=20, checkpoint=path)
    for found, expected in zip(study_of(rows, configs=configs, n_variability=20, checkpoint=path), whole, strict=True):
        assert_same_bits(found, expected)
    with pytest.raises(InvalidInput, match="same study"):
        study_of(rows, configs=[*configs[:3], {"budget": dpci.ApproxDP(3.1, 1e-6)}], n_variability=20, checkpoint=path)


def test_refusals_are_counted_and_take_no_part_in_coverage(rows):
    X, y = rows
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


def test_persons_and_weights(rows):
    X, y = rows
    of = np.random.default_rng(3).permutation(np.arange(N) % 2500)
    persons = study_of(rows, persons=of)
    assert persons.n_samples == 2500
    weighted = study_of(rows, weights=dpci.Weights(np.linspace(0.5, 1.0, N), bound=1.0, total=0.75 * N))
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


def test_separable_classes_have_no_target(rows):
    X, _ = rows
    with pytest.raises(InvalidInput, match="requires data that have ordinary coefficients"):
        study_of((X, (X[:, 0] > 0).astype(int)))


def test_a_study_of_newton_steps_repeats_fewer_releases_unless_asked(rows):
    X, y = rows
    study = simulate.variability(X[:200], y[:200], budget=dpci.ZCDP(1.0), classes=(0, 1))
    assert study.n_variability == 1000
    assert (
        simulate.variability(X[:200], y[:200], budget=dpci.ZCDP(1.0), classes=(0, 1), n_variability=3).n_variability
        == 3
    )
