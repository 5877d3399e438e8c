"""The unregularised target: against statsmodels and its definition, and where it is refused."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import dpci
from dpci.errors import InvalidInput
from support.ill import SCHEMA, people

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
TABLE = people()


def fit(epsilon=1e8, l2_strength=1e-3, **keywords):
    return dpci.fit(TABLE, schema=SCHEMA, budget=dpci.PureDP(epsilon), l2_strength=l2_strength, seed=1, **keywords)


def design():
    return np.column_stack([TABLE.age, TABLE.sex == "M", TABLE.dose, np.ones(len(TABLE))]).astype(float)


@pytest.fixture(scope="module")
def logit():
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    return sm.Logit((TABLE.ill != "no").astype(float), design()).fit(disp=0, cov_type="HC0")


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_one_step_reaches_statsmodels(logit, mechanism):
    found = fit(mechanism=mechanism, l2_strength=5e-4)
    without = found.summary_frame(target="unregularised")
    off = np.abs(found.params / np.asarray(logit.params) - 1).max()
    assert off > 0.03  # the ridge is seen, and the step takes it away
    np.testing.assert_allclose(without.estimate, logit.params, rtol=0.01)
    # Longer by what the curvature may change on the way, which is little.
    ratio = without.std_error / np.asarray(logit.bse)
    assert ratio.min() > 0.99
    assert ratio.max() < 1.08
    np.testing.assert_allclose(without.estimate - found.params, -found.shrinkage(), atol=1e-12)
    ratios = found.odds_ratios(target="unregularised")
    np.testing.assert_allclose(ratios.estimate, np.exp(logit.params[:-1]), rtol=0.01)


@pytest.mark.parametrize(("l2_strength", "near"), [(2e-4, False), (1e-3, True)])
def test_the_step_is_its_definition(l2_strength, near):
    X, y, _ = SCHEMA.transform(TABLE)
    exact = dpci.fit(
        *(X, y), classes=(-1, 1), rows=SCHEMA.rows, budget=dpci.PureDP(1e8), l2_strength=l2_strength, seed=1
    )
    ridge = exact.l2_strength
    without_ridge = exact.hessian - ridge * np.eye(4)
    step = ridge * np.linalg.solve(without_ridge, exact.params)
    np.testing.assert_allclose(exact.shrinkage(), -step, rtol=1e-5)
    intervals = exact.conf_int(target="unregularised")
    np.testing.assert_allclose(intervals.estimate, exact.params + step, rtol=1e-6)
    assert intervals.refusals == (None,) * 4
    tested = exact.wald_test("x0", target="unregularised")
    assert tested.estimate == pytest.approx(intervals.estimate[0])
    # The sandwich with the inverse of the risk's own Hessian.
    inverse = np.linalg.inv(without_ridge)
    cov = inverse @ exact.gradient_cov @ inverse / exact.n_samples
    contrast = np.array([[1.0, 2.0, -1.0, 0.5]])
    length = exact.conf_int(contrast=contrast, target="unregularised").length[0]
    # A typical predictor changes by this on the way, and the curvature by no more than its exponential.
    change = np.sqrt(step @ without_ridge @ step / without_ridge[-1, -1])
    assert 0.005 < change < 0.1
    # Rows have norm 1 at most and a constant of 1: no predictor changes by more, which bounds what one step leaves out.
    reach = np.sqrt(2.0) * np.linalg.norm(step)
    bound = (-np.log1p(-reach) / reach - 1) ** 2 * (step @ without_ridge @ step) * inverse
    # Errors of the released parameters decide how near this is to its limit .8.
    into = np.sqrt(2.0) * ridge * inverse @ step / np.linalg.norm(step)
    released = np.linalg.solve(exact.hessian, np.linalg.solve(exact.hessian, exact.gradient_cov).T) / exact.n_samples
    std_error = np.sqrt(into @ released @ into)
    error = released @ into / std_error
    # The Hessian changes with them by as much as a typical predictor at most.
    curvature = np.sqrt(error @ without_ridge @ error / without_ridge[-1, -1])
    errors = max(0.0, 2.0 - np.log(0.8 / reach) / (std_error / reach + curvature) / 2.0)
    # Such fits have a Hessian that is too great: it is at least this part of itself at the end of the way.
    end = 1.0 - reach
    chance = errors * max(1.0 / end, np.exp(change)) * inverse @ exact.hessian @ error
    assert (errors > 0.0) == near
    more = (errors / 2.0) ** 2 * max(1.0 / end - np.exp(2 * change), 0.0)
    law = (np.exp(2 * change) + more) * cov + bound + np.outer(chance, chance)
    expected = 2 * 1.959964 * np.sqrt((contrast @ law @ contrast.T).item())
    assert length == pytest.approx(expected, rel=1e-3)


def test_a_squared_loss_is_exact_in_one_step():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(3000, 2))
    y = np.clip(0.3 * X[:, 0] - 0.2 * X[:, 1] + 0.1 + rng.normal(0, 0.1, 3000), -1, 1)
    found = dpci.fit(
        X, y, loss="squared", mechanism=dpci.ObjectivePerturbation(radius=100.0), budget=dpci.PureDP(1e9),
        l2_strength=0.05, seed=1,
    )  # fmt: skip
    expected = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0]
    estimates = found.conf_int(target="unregularised").estimate
    np.testing.assert_allclose(estimates, expected, atol=1e-6)
    assert np.abs(found.params - expected).max() > 0.01


def test_where_it_is_refused():
    # Far too strong a ridge without noise, and a ridge that the noise hides.
    strong = fit(l2_strength=1.0).conf_int(target="unregularised")
    assert all("ridge is too strong" in reason for reason in strong.refusals)
    assert np.isnan(np.asarray(strong)).all()
    assert "ridge is too strong" in repr(strong)
    hidden = fit(epsilon=1.0, l2_strength=0.02)
    intervals = hidden.conf_int(target="unregularised")
    refused = [reason is not None for reason in intervals.refusals]
    assert all("hides" in (reason or "") for reason in intervals.refusals)
    np.testing.assert_array_equal(np.isnan(intervals.length), refused)
    np.testing.assert_array_equal(np.isnan(hidden.shrinkage()), refused)
    summary = hidden.summary(target="unregularised")
    assert "No estimate of" in summary
    assert "without a ridge" in summary
    with pytest.raises(InvalidInput, match="the unregularised target must be given for 'age', got none"):
        fit(l2_strength=1.0).wald_test("age", target="unregularised")


def test_predictions_without_the_ridge(logit):
    found = fit()
    rows = TABLE.head(200)
    intervals = found.predict_conf_int(rows, target="unregularised")
    np.testing.assert_allclose(intervals.estimate, logit.predict(design()[:200]), rtol=0.01)
    assert np.abs(intervals.estimate - found.predict_proba(rows)[:, 1]).max() > 0.005
    one_by_one = found.conf_int(contrast=design()[:200], target="unregularised")
    np.testing.assert_allclose(intervals.lower, 1 / (1 + np.exp(-one_by_one.lower)), rtol=1e-6)
    strong = fit(l2_strength=1.0).predict_conf_int(rows, target="unregularised")
    assert all("ridge is too strong" in reason for reason in strong.refusals)
    assert np.isnan([strong.estimate, strong.lower, strong.upper]).all()


def test_collinear_columns_are_given_where_they_are_estimable():
    """Indicators of all categories and the constant: differences are estimable, their levels are not."""
    rng = np.random.default_rng(0)
    n = 4000
    group = rng.integers(0, 2, n)
    x = rng.uniform(-1, 1, n)
    X = np.column_stack([x, group == 0, group == 1]).astype(float) / np.sqrt(2)
    y = rng.uniform(size=n) < 1 / (1 + np.exp(-x - 0.8 * group))
    found = dpci.fit(X, y, budget=dpci.PureDP(1e6), l2_strength=1e-3, seed=1)
    contrasts = [[1, 0, 0, 0], [0, -1, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    intervals = found.conf_int(contrast=contrasts, target="unregularised")
    assert intervals.refusals[:2] == (None, None)
    assert all("hides" in reason for reason in intervals.refusals[2:])
    sm = pytest.importorskip("statsmodels.api")
    reference = sm.Logit(y.astype(float), np.column_stack([X[:, 0], X[:, 2], np.ones(n)])).fit(disp=0)
    np.testing.assert_allclose(intervals.estimate[:2], reference.params[:2], rtol=0.01)


def test_many_at_once_are_those_that_are_given():
    found = fit(epsilon=30.0, l2_strength=0.004)
    for simultaneous in ("bonferroni", "max_z"):
        together = found.conf_int(target="unregularised", simultaneous=simultaneous)
        alone = found.conf_int(target="unregularised")
        assert together.refusals == alone.refusals
        given = np.isfinite(alone.length)
        assert (together.length[given] > alone.length[given]).all()
    drawn = found.conf_int(target="unregularised", method="monte_carlo", n_draws=20_000, seed=1)
    np.testing.assert_allclose(drawn.length[given], alone.length[given], rtol=0.05)


@pytest.mark.parametrize("loss", ["huber_hinge", "smooth_hinge"])
def test_other_losses_are_refused(loss):
    found = fit(epsilon=10.0, l2_strength=0.05, loss=loss)
    for use in (found.shrinkage, lambda: found.conf_int(target="unregularised")):
        with pytest.raises(InvalidInput, match="the unregularised target needs loss='squared' or one of"):
            use()
    assert "ridge" not in found.summary().split("\n\n")[1]
    with pytest.raises(InvalidInput, match="target must be"):
        found.conf_int(target="unregularized")


def test_it_covers_where_the_regularised_interval_does_not():
    """A quick look at what docs/evidence/unregularised.md measures."""
    covers = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = 2 * rng.beta(0.5, 0.5, 5000) - 1
        y = rng.uniform(size=len(x)) < 1 / (1 + np.exp(-0.5 - 2 * x))
        found = dpci.fit(x[:, None], y, budget=dpci.PureDP(3.0), l2_strength=0.004, seed=seed)
        pairs = [found.conf_int(target=target) for target in ("unregularised", "regularised")]
        covers.append([intervals.lower[0] <= 2.0 <= intervals.upper[0] for intervals in pairs])
    without, regularised = np.mean(covers, axis=0)
    assert without >= 0.86  # below it once in a thousand at .95
    assert regularised < 0.6


DOCS = Path(__file__).parents[2] / "docs"


def evidence():
    """Return the rows of the study's tables, by the names of their columns."""
    lines = (DOCS / "evidence" / "unregularised.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    header, *rows = cells
    return [dict(zip(header, row, strict=True)) for row in rows if row != header]


def test_the_page_says_where_no_budget_is_enough():
    page = " ".join((DOCS / "inference.md").read_text(encoding="utf-8").split())
    hidden = [row for row in evidence() if row["population"].startswith("Credit default") and row["n"] == "30,000"]
    assert {row["given"] for row in hidden} == {"0.000"}
    assert "On Credit default with 30,000 records **no measured budget gives any interval**" in page


def test_the_page_names_the_lowest_coverage_of_what_is_given():
    page = " ".join((DOCS / "inference.md").read_text(encoding="utf-8").split())
    for row in evidence():
        found = re.fullmatch(r"(0\.\d+) of ([\d,]+)", row["worst"])
        if found is None:
            continue
        coverage, count = float(found[1]), int(found[2].replace(",", ""))
        # Two standard errors below the level.
        if coverage < 0.95 - 2.0 * (0.95 * 0.05 / count) ** 0.5 and count >= 100:
            assert f"{row['n']} records" in page or f"{row['n']} at ρ" in page, row
            assert f"{coverage:.2f}".removeprefix("0") in page, row


def test_what_the_step_leaves_out_is_counted_at_levels_from_95_on():
    shares = np.linspace(0.0, 40.0, 40_001)  # of the bias in the standard error

    def least(level):
        half = norm.ppf(0.5 + 0.5 * level) * np.hypot(1.0, shares)
        covers = norm.cdf(half - shares) - norm.cdf(-half - shares)
        return covers.min(), shares[covers.argmin()]

    for level in (0.95, 0.98, 0.99, 0.999):
        assert least(level)[0] >= level - 1e-12
    page = " ".join((DOCS / "proofs" / "intervals.md").read_text(encoding="utf-8").split())
    assert "at levels of .95 and above" in page
    assert "at the level .9 is .89995, at $\\beta/\\sigma=.37$, and at the level .8 it is .788" in page
    assert least(0.9) == (pytest.approx(0.89995, abs=1e-5), pytest.approx(0.37, abs=0.01))
    assert least(0.8)[0] == pytest.approx(0.788, abs=5e-4)
