"""Fits of response families: their limit beside statsmodels, predictions, saved results, and what is refused."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import optimize, special

import dpci
from dpci import losses
from dpci.errors import InvalidInput
from dpci.schema import NumericColumn, NumericTarget, Schema
from support.keywords import assembled

N = 1500
PARAMS = np.array([0.5, -0.4, 0.3, 0.2])
# Budgets near nothing, at which the noise in the matrices is no small part.
pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
rng = np.random.default_rng(3)
X = rng.uniform(-1.0, 1.0, (N, 3)) / np.sqrt(3.0)
Z = np.column_stack([X, np.ones(N)])
U = Z @ PARAMS
NOISE = 0.1 * rng.standard_t(2, N)
STRENGTH = 1e-3
LIMIT = {"budget": dpci.PureDP(1e9), "l2_strength": STRENGTH, "seed": 1}
glm = sm.families

# Loss, radius, targets, and the twin with its robust covariance.
COUNTS = np.minimum(rng.poisson(np.exp(U)), 8).astype(float)
DISPERSED = np.minimum(rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(U))), 12).astype(float)
TRIALS = 5
SHARES = rng.binomial(TRIALS, special.expit(U)).astype(float)
PROBIT = (rng.random(N) < special.ndtr(U)).astype(float)
CLOGLOG = (rng.random(N) < -np.expm1(-np.exp(U))).astype(float)
REAL = np.clip(0.5 * U + NOISE, -1.0, 1.0)
TWINS = {
    "poisson": (losses.Poisson(count_bound=8.0), 3.0, COUNTS, COUNTS, glm.Poisson()),
    "negative_binomial": (
        losses.NegativeBinomial(count_bound=12.0, dispersion=0.5),
        None,
        DISPERSED,
        DISPERSED,
        glm.NegativeBinomial(alpha=0.5),
    ),
    "binomial_counts": (losses.SoftLogistic(), None, SHARES / TRIALS, SHARES / TRIALS, glm.Binomial()),
    "probit": (losses.Probit(), 3.0, 2.0 * PROBIT - 1.0, PROBIT, glm.Binomial(glm.links.Probit())),
    "cloglog": (losses.CLogLog(), 3.0, 2.0 * CLOGLOG - 1.0, CLOGLOG, glm.Binomial(glm.links.CLogLog())),
}


def sandwich(loss, params, y):
    """Robust covariance of the minimiser of the regularised risk, by the formula."""
    _, slope, curvature = loss.to_core().evaluate(Z @ params, y)
    bread = np.linalg.inv((Z.T * curvature) @ Z / N + STRENGTH * np.eye(4))
    meat = (Z.T * slope**2) @ Z / N - STRENGTH**2 * np.outer(params, params)
    return bread @ meat @ bread / N


def assert_twins(fit, params, cov):
    np.testing.assert_allclose(fit.params, params, rtol=1e-6)
    np.testing.assert_allclose(fit.std_errors, np.sqrt(np.diag(cov)), rtol=1e-6)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("name", TWINS)
def test_the_limit_is_statsmodels(name, mechanism):
    loss, radius, y, endog, family = TWINS[name]
    classes = (-1, 1) if loss.to_core().target_bounds is None else None
    found = dpci.fit(X, y, **assembled(loss=loss, radius=radius, mechanism=mechanism, classes=classes, **LIMIT))
    model = sm.GLM(endog, Z, family=family)
    # The zero of statsmodels' score with the ridge; its own search with a penalty ends at four digits.
    twin = optimize.root(lambda params: model.score(params, scale=1.0) / N - STRENGTH * params, PARAMS, tol=1e-13).x
    assert_twins(found, twin, sandwich(loss, twin, y))
    np.testing.assert_allclose(found.predict_conf_int(X).estimate, model.predict(twin), rtol=1e-6)


def test_the_standard_errors_are_those_of_statsmodels():
    """Standard errors of a canonical link, whose expected Hessian is the observed one, and next to no ridge."""
    loss, _, y, endog, family = TWINS["binomial_counts"]
    found = dpci.fit(X, y, loss=loss, **LIMIT | {"l2_strength": 1e-8})
    twin = sm.GLM(endog, Z, family=family).fit(cov_type="HC0", tol=1e-14)
    np.testing.assert_allclose(found.std_errors, twin.bse, rtol=1e-6)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_limit_of_huber_regression(mechanism):
    # The ridge as four more rows, with residuals in the parabola; statsmodels keeps the scale of its first residuals.
    rows, targets = np.vstack([Z, np.sqrt(N * STRENGTH) * np.eye(4)]), np.concatenate([REAL, np.zeros(4)])
    first = targets - rows @ np.linalg.lstsq(rows, targets, rcond=None)[0]
    corner = 3.0
    k = corner * sm.robust.scale.mad(first, center=0)
    twin = sm.RLM(targets, rows, M=sm.robust.norms.HuberT(corner)).fit(update_scale=False, tol=1e-14, maxiter=500)
    assert np.abs(rows[N:] @ twin.params).max() < k < np.abs(REAL - Z @ twin.params).max()
    loss = losses.Huber(target_bound=1.0, k=k)
    found = dpci.fit(X, REAL, loss=loss, mechanism=mechanism, **LIMIT)
    assert_twins(found, twin.params, sandwich(loss, twin.params, REAL))
    np.testing.assert_allclose(found.predict(X), Z @ found.params)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("tau", [0.3, 0.8])
def test_the_limit_of_quantile_regression(tau, mechanism):
    def risk(params):
        t = (Z @ params - REAL) / 0.05
        return np.mean(0.05 * np.logaddexp(0.0, t) - tau * 0.05 * t) + 0.5 * STRENGTH * params @ params

    def gradient(params):
        return Z.T @ (special.expit((Z @ params - REAL) / 0.05) - tau) / N + STRENGTH * params

    loss = losses.Quantile(quantile=tau, target_bound=1.0, s=0.05)
    exact = optimize.root(gradient, optimize.minimize(risk, np.zeros(4), jac=gradient).x, tol=1e-13).x
    found = dpci.fit(X, REAL, loss=loss, mechanism=mechanism, **LIMIT)
    assert_twins(found, exact, sandwich(loss, exact, REAL))
    # A narrow rounding is near the kink of statsmodels.
    narrow = dpci.fit(
        X, REAL, loss=losses.Quantile(quantile=tau, target_bound=1.0, s=0.01), **LIMIT | {"l2_strength": 1e-6}
    )
    kinked = sm.QuantReg(REAL, Z).fit(q=tau, max_iter=5000).params
    np.testing.assert_allclose(narrow.params, kinked, atol=0.3 * found.std_errors.max())


def small(loss, radius, y, **keywords):
    classes = (-1, 1) if loss.to_core().target_bounds is None else None
    settings = {"budget": dpci.ZCDP(50.0), "l2_strength": 0.05, "radius": radius, "classes": classes, "seed": 1}
    return dpci.fit(X, y, **assembled(loss=loss, **settings | keywords))


@pytest.mark.parametrize("name", TWINS)
def test_predictions_and_saved_results(name):
    loss, radius, y, _, _ = TWINS[name]
    found = small(loss, radius, y)
    again = dpci.PrivateFit.from_json(found.to_json())
    np.testing.assert_array_equal(again.params, found.params)
    np.testing.assert_array_equal(again.conf_int().lower, found.conf_int().lower)
    mean = found.predict_conf_int(X).estimate
    if name in ("poisson", "negative_binomial"):
        np.testing.assert_allclose(found.predict(X), np.exp(found.decision_function(X)))
        np.testing.assert_allclose(mean, found.predict(X))
        with pytest.raises(InvalidInput, match="predict_proba requires"):
            found.predict_proba(X)
    else:
        proba = found.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(proba[:, 1], mean)
    if name in ("probit", "cloglog"):
        np.testing.assert_array_equal(found.predict(X), np.where(mean > 0.5, 1, -1))
        with pytest.raises(InvalidInput, match="unregularised target"):
            found.conf_int(target="unregularised")


@pytest.mark.parametrize("budget", [dpci.PureDP(2.0), dpci.ZCDP(1.0), dpci.ApproxDP(2.0, 1e-6)], ids=repr)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_every_notion_relation_and_mechanism(budget, neighbors, mechanism):
    relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
    for loss, radius, y, _, _ in TWINS.values():
        found = small(loss, radius, y, budget=budget, neighbors=relation, mechanism=mechanism)
        assert np.isfinite(found.params).all()
        assert found.interval_refusal is None or radius is not None


@pytest.mark.parametrize("name", ["poisson", "probit", "cloglog"])
def test_a_radius_is_asked_for(name):
    loss, radius, y, _, _ = TWINS[name]
    with pytest.raises(InvalidInput, match=f"the {name} loss requires radius, a public bound"):
        small(loss, None, y)
    with pytest.raises(InvalidInput, match=f"the {name} loss requires a radius on which its slope is within the range"):
        small(loss, 1e9, y)
    assert radius is not None


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        (losses.Poisson(count_bound=8.0), np.full(N, 9.0), r"\[0, 8\]"),
        (losses.Poisson(count_bound=8.0), np.full(N, -1.0), r"\[0, 8\]"),
        (losses.Poisson(count_bound=8.0), np.full(N, np.nan), "NaN|finite|got nan"),
        (losses.NegativeBinomial(count_bound=8.0), np.full(N, np.inf), "got inf"),
        (losses.Huber(), np.full(N, 1.5), r"\[-1, 1\]"),
        (losses.Quantile(), np.full(N, -1.5), r"\[-1, 1\]"),
        (losses.Probit(), np.full(N, 0.5), "must hold only classes"),
    ],
)
def test_targets_out_of_range_are_refused(loss, y, message):
    with pytest.raises(InvalidInput, match=message):
        small(loss, 2.0, y)


def test_counts_of_a_schema_are_in_units_of_their_bound():
    column = NumericColumn(name="x", lower=-1.0, upper=1.0)
    table = {"x": X[:, 0], "visits": COUNTS}
    unit = Schema(columns=(column,), target=NumericTarget(column="visits", lower=0.0, upper=8.0, scale="unit"))
    common = {"loss": "poisson", "radius": 3.0, "budget": dpci.ZCDP(50.0), "l2_strength": 0.05, "seed": 1}
    found = dpci.fit(table, **assembled(schema=unit, **common))
    encoded = unit.transform(table)[0]
    np.testing.assert_allclose(found.predict(table), 8.0 * found.predict(encoded) / 8.0)
    assert 1.0 < found.predict(table).max() < 8.0  # in the unit of the target
    assert found.loss["count_bound"] == 1.0
    assert "poisson (count_bound=8)" in found.to_html()
    with pytest.raises(InvalidInput, match="count_bound must be None with a schema, whose target has the bound 8, got"):
        dpci.fit(table, **assembled(schema=unit, **{**common, "loss": losses.Poisson(count_bound=1.0)}))
    signed = Schema(columns=(column,), target=NumericTarget(column="visits", lower=0.0, upper=8.0))
    with pytest.raises(InvalidInput, match="scale='unit' and lower=0"):
        dpci.fit(table, **assembled(schema=signed, **common))
