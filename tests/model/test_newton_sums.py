"""Columns that are sums of others, by Newton steps: no budget shows them, and intervals of the others stay short."""

import numpy as np
import pytest
import statsmodels.api as sm

import dpci
from dpci.released.calibration import other_steps
from dpci.released.model import record_of

ORDINARY = [dpci.ZCDP(0.5), dpci.ApproxDP(3.0, 1e-6), dpci.PureDP(3.0)]
ENORMOUS = [
    *(kind for size in (1e6, 1e12) for kind in (dpci.ZCDP(size), dpci.ApproxDP(size, 1e-6), dpci.PureDP(size))),
    dpci.ZCDP(1e15),
]
KINDS = ("levels", "copy", "constant", "sum", "zero")

pytestmark = pytest.mark.filterwarnings("ignore::dpci.DpciWarning")


def table(kind: str, n: int = 20_000):
    """Three columns with others that are sums, classes, and whether each parameter is seen."""
    rng = np.random.default_rng(3)
    seen = rng.uniform(-0.5, 0.5, (n, 3))
    level = rng.integers(0, 3, n)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-(seen @ [2.0, -1.0, 0.5] + 0.5 * (level == 1))))
    a, b, c = seen.T
    extra, shown = {
        "levels": (
            (level[:, None] == np.arange(3)).astype(float) / 3.0,
            [True, True, True, False, False, False, False],
        ),
        "copy": (c, [True, True, False, False, True]),
        "constant": (np.full(n, 0.3), [True, True, True, False, False]),
        "sum": (0.5 * a - 0.25 * c, [False, True, False, False, True]),
        "zero": (np.zeros(n), [True, True, True, False, True]),
    }[kind]
    return np.column_stack([a, b, c, extra]), y, np.array(shown)


def without_privacy(X, y):
    """Half lengths of the coefficients, of which the sums have none."""
    rows = np.column_stack([X, np.ones(len(X))])
    kept = np.flatnonzero(np.linalg.eigvalsh(rows.T @ rows / len(rows)) > 1e-9)
    basis = np.linalg.svd(rows, full_matrices=False)[2][: len(kept)]
    fitted = sm.Logit(y.astype(float), rows @ basis.T).fit(disp=0)
    return 1.96 * np.sqrt(np.diag(basis.T @ fitted.cov_params() @ basis))


def check(fit, X, y, shown, longest):
    interval = fit.conf_int()
    given = np.isfinite(interval.lower)
    assert fit.interval_refusal is None
    assert given.tolist() == shown.tolist()
    assert np.isfinite(interval.estimate).tolist() == shown.tolist()
    ratio = 0.5 * (interval.upper - interval.lower)[shown] / without_privacy(X, y)[shown]
    assert (ratio > 0.85).all()
    assert (ratio < longest).all()
    named = ["sum of others" in (reason or "") for reason in interval.refusals]
    assert named == (~shown).tolist()
    assert "sum of others" in " ".join(fit.summary().split())
    # Rows like those of the table have predictions; one of a hidden column alone has none.
    assert np.isfinite(fit.predict_proba(X[:9])).all()
    alone = np.eye(X.shape[1])[~shown[:-1]][:1]
    assert np.isnan(fit.params[~shown]).all()
    assert np.isnan(fit.predict_conf_int(alone).estimate).all()
    for predict in (fit.predict, fit.predict_proba, fit.decision_function):
        with pytest.raises(dpci.InvalidInput, match=f"1 of 1 rows that need .*{fit.names[np.flatnonzero(~shown)[0]]}"):
            predict(alone)
    record = record_of(fit)
    assert other_steps(record, record.newton) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", ORDINARY, ids=str)
def test_the_noise_of_ordinary_budgets_hides_them(budget, kind):
    X, y, shown = table(kind)
    # Noise of an eigenvalue that is 0 passes the edge, √2 + 1 standard deviations, in eight of a thousand fits.
    check(dpci.fit(X, y, budget=budget, rows=1.2, seed=3), X, y, shown, 2.5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", ENORMOUS, ids=str)
def test_no_budget_shows_them(budget, kind):
    X, y, shown = table(kind)
    check(dpci.fit(X, y, budget=budget, rows=1.2, seed=2), X, y, shown, 1.2)


@pytest.mark.parametrize("budget", [dpci.ZCDP(0.5), dpci.ApproxDP(3.0, 1e-6)], ids=str)
def test_seals_of_large_tables_stay_below_the_noise(budget):
    """Seals grow with the stretch of the rows: those along a hidden direction once hid all others."""
    X, y, shown = table("copy", 400_000)
    check(dpci.fit(X, y, budget=budget, rows=1.2, seed=1), X, y, shown, 1.2)


@pytest.mark.parametrize("budget", ENORMOUS, ids=str)
def test_what_differs_by_a_thousandth_is_seen(budget):
    X, y, _ = table("copy")
    X[:, 3] += 1e-3 * np.random.default_rng(4).uniform(-1.0, 1.0, len(X))
    interval = dpci.fit(X, y, budget=budget, rows=1.2, seed=1).conf_int()
    ratio = 0.5 * (interval.upper - interval.lower) / without_privacy(X, y)
    assert (np.abs(ratio - 1.0) < 0.2).all()


def test_one_column_without_variation_is_named_among_the_advice():
    X, y, _ = table("copy")
    fit = dpci.fit(np.full((len(X), 1), 0.5), y, budget=dpci.ZCDP(0.5), seed=1)
    assert "a column that is the sum of others can never be estimated" in fit.interval_refusal


@pytest.mark.parametrize("budget", [*ORDINARY, *ENORMOUS], ids=str)
def test_differences_of_levels_are_seen(budget):
    X, y, _ = table("levels")
    difference = np.array([[0.0, 0.0, 0.0, 1.0, -1.0, 0.0, 0.0]]) / 3.0
    interval = dpci.fit(X, y, budget=budget, rows=1.2, seed=2).conf_int(contrast=difference)
    assert interval.lower[0] < -0.5 < interval.upper[0]
    assert interval.upper[0] - interval.lower[0] < 0.5
