"""Newton steps with losses whose slopes have no bound, continued as straight lines beyond public predictors."""

import json

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

import dpci
from dpci import simulate
from dpci.errors import InvalidInput
from dpci.schema import NumericColumn, NumericTarget, Schema
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning", "ignore::dpci.FarRowsWarning")

ALPHA = 1e-6
EXACT = dpci.ZCDP(rho=1e9)
BETA = np.array([1.5, -1.0, 0.8])


def rows(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.5, 0.5, (n, 3))
    X[:, 1] = 0.5 * X[:, 0] + 0.5 * X[:, 1]
    return rng, X


def counts(seed, n, mean=2.0):
    rng, X = rows(seed, n)
    return X, np.minimum(rng.poisson(mean * np.exp(X @ BETA)), 20)


def normals(seed, n):
    rng, X = rows(seed, n)
    return X, (X @ BETA - 0.3 + rng.standard_normal(n) > 0).astype(int)


def events(seed, n):
    rng, X = rows(seed, n)
    return X, (rng.random(n) < 1.0 - np.exp(-np.exp(X @ BETA - 0.7))).astype(int)


CASES = {
    "poisson": (counts, dpci.losses.Poisson(count_bound=20), sm.families.Poisson(), {}),
    "probit": (normals, dpci.losses.Probit(), sm.families.Binomial(sm.families.links.Probit()), {"classes": (0, 1)}),
    "cloglog": (events, dpci.losses.CLogLog(), sm.families.Binomial(sm.families.links.CLogLog()), {"classes": (0, 1)}),
}


@pytest.mark.parametrize("case", CASES)
def test_without_noise_it_is_the_maximum_likelihood_estimate(case, tmp_path):
    draw, loss, family, keywords = CASES[case]
    X, y = draw(1, 4000)
    expected = sm.GLM(y, sm.add_constant(X, prepend=False), family).fit(tol=1e-12)
    fit = dpci.fit(X, y, budget=EXACT, loss=loss, seed=1, **keywords)
    assert (fit.mechanism, fit.loss["name"]) == ("newton", case)
    np.testing.assert_array_less(np.abs(fit.params - expected.params), 1e-2 * expected.bse)
    np.testing.assert_allclose(fit.std_errors, expected.bse, rtol=0.1)
    path = tmp_path / "fit.json"
    path.write_text(fit.to_json(), encoding="utf-8")
    again = dpci.PrivateFit.from_json(path.read_text(encoding="utf-8"))
    np.testing.assert_array_equal(np.asarray(again.conf_int()), np.asarray(fit.conf_int()))
    assert "Newton steps" in repr(fit)


@pytest.mark.parametrize("case", CASES)
def test_intervals_cover_and_are_nearly_as_short_as_without_privacy(case):
    """Bootstrap samples of 5,000 records; the false-positive rate of each bound on coverage is 1e-6."""
    draw, loss, family, keywords = CASES[case]
    X, y = draw(2, 5000)
    study = simulate.coverage(
        X, y, loss=loss, budget=dpci.ZCDP(2.0), n_replicates=200, n_variability=0, seed=4, **keywords
    )
    expected = sm.GLM(y, sm.add_constant(X, prepend=False), family).fit(tol=1e-12)
    np.testing.assert_allclose(study.target, expected.params, rtol=1e-7, atol=1e-9)
    error = stats.norm.isf(ALPHA / 2) * study.coverage_se
    assert 0.95 - error < study.coverage < 0.98 + error
    assert study.refused < 0.02
    assert 1.0 < study.nonprivate_ratio < 1.35


def test_rare_events_and_great_counts():
    for mean, bound in ((0.05, 5), (40.0, 300)):
        rng, X = rows(6, 20_000)
        y = np.minimum(rng.poisson(mean * np.exp(X @ BETA)), bound)
        study = simulate.coverage(
            X, y, loss=dpci.losses.Poisson(count_bound=bound), budget=dpci.ZCDP(1.0), n_replicates=60, n_variability=0
        )
        assert study.refused < 0.1
        assert study.coverage > 0.9
        assert study.nonprivate_ratio < 1.35


def test_counts_of_a_schema_are_scaled_and_lose_little():
    X, y = counts(3, 8000)
    schema = Schema(
        columns=tuple(NumericColumn(name=f"x{j}", lower=-0.5, upper=0.5) for j in range(3)),
        target=NumericTarget(column="y", lower=0, upper=20, scale="unit"),
    )
    table = {f"x{j}": X[:, j] for j in range(3)} | {"y": y}
    expected = sm.GLM(y, sm.add_constant(X, prepend=False), sm.families.Poisson()).fit()
    fit = dpci.fit(table, schema=schema, loss="poisson", budget=dpci.ZCDP(1.0), seed=2)
    interval = fit.conf_int(level=0.999999)
    assert ((interval.lower[:3] < expected.params[:3]) & (expected.params[:3] < interval.upper[:3])).all()
    assert (fit.std_errors[:3] < 1.6 * expected.bse[:3]).all()
    ratio = fit.rate_ratios(contrast={"x0": 0.1})
    assert ratio.lower[0] < np.exp(0.1 * expected.params[0]) < ratio.upper[0]


@pytest.mark.parametrize("case", CASES)
def test_pure_dp_is_refused(case):
    draw, loss, _, keywords = CASES[case]
    X, y = draw(1, 200)
    with pytest.raises(InvalidInput, match=f"requires ZCDP or ApproxDP with the {case} loss"):
        dpci.fit(X, y, budget=dpci.PureDP(1.0), loss=loss, mechanism="newton", **keywords)


@pytest.mark.parametrize("place", [0, 1])
def test_an_edited_bound_of_the_first_step_is_found(place):
    X, y = counts(1, 2000)
    fit = dpci.fit(X, y, budget=dpci.ZCDP(1.0), loss=dpci.losses.Poisson(count_bound=20))
    assert "FAILED" not in fit.officer_report()
    saved = json.loads(fit.to_json())
    saved["newton"]["bounds"][0][place] *= 0.5
    assert "FAILED" in dpci.PrivateFit.from_json(rewritten(saved)).officer_report()
