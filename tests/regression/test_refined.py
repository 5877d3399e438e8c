"""Refined regressions: levels and gradient by hand, their sensitivities by brute force, statsmodels, intervals."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import special

import dpci
from dpci import _core, regression
from dpci.regression import equations
from support.saved import rewritten

pytestmark = [pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")]

N, D, BOUND = 3000, 3, 12.0
RNG = np.random.default_rng(0)
X = RNG.uniform([0, -2, 10], [5, 3, 11], (N, D))
Y = X @ [1.0, -2.0, 0.5] - 5.0 + RNG.normal(size=N)
COMMON = {"bounds": ([0, -2, 10], [5, 3, 11]), "target_bound": (-BOUND, BOUND), "rows": "clip"}
EXACT = dpci.ZCDP(1e13)
BUDGETS = [dpci.PureDP(4.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6), dpci.GDP(1.0)]


def released(budget=EXACT, x=X, y=Y, **keywords):
    return regression.release(x, y, **{**COMMON, "budget": budget, "refine": True, "seed": 1, **keywords})


def by_hand(record, one, x=X, y=Y, share=None):
    """The mean of (c x, ωc²/cap) over the records, from the released point; also the rows in the units of the core."""
    k = len(record.columns)
    z = np.column_stack([(x - record.middle) / record.scale, np.full(len(x), record.constant)])
    named = [*record.columns, record.target]
    at = named.index(one.regression.target)
    moved = one.regression.l2_strength > 0.0
    middle, own = (record.target_middle, y) if at == k else (record.middle[at], x[:, at])
    response = own if moved else own - middle
    used = [*(record.columns.index(name) for name in one.regression.features), k]
    held = np.clip(response - z @ one.point, -one.cap, one.cap)
    terms = np.column_stack([held[:, None] * z[:, used], one.square_weight * held**2 / one.cap])
    share = np.full(len(x), 1 / len(x)) if share is None else share
    return share @ terms, terms


@pytest.mark.parametrize("l2_strength", [0.0, 0.3])
@pytest.mark.parametrize(("target", "features"), [(None, None), (None, ["x2", "x0"]), ("x1", ["x0"])])
def test_the_gradient_is_that_of_capped_residuals(target, features, l2_strength):
    # So noisy a matrix that the point is far off.
    plan = regression.Regression(target=target, features=features, l2_strength=l2_strength)
    record = released(dpci.ZCDP(1e5), x=X[:60], y=Y[:60], refine=[plan])._record
    (one,) = record.refined
    found, _ = by_hand(record, one, X[:60], Y[:60])
    noise = record.steps[2].scale
    np.testing.assert_allclose(one.gradient, found, atol=8 * noise + 1e-9)
    assert noise < 0.05 * np.linalg.norm(one.gradient)


def test_residuals_beyond_the_cap_count_as_the_cap():
    # Too few outliers to be seen among small residuals.
    y = X @ [1.0, -2.0, 0.5] - 5.0 + 0.02 * RNG.normal(size=N)
    y[:2] += 12.0
    record = released(dpci.ZCDP(1.0), y=y)._record
    (one,), noise = record.refined, record.steps[2].scale
    held = np.clip(y, -BOUND, BOUND)
    found, terms = by_hand(record, one, y=held)
    assert one.cap < 1.0
    # Five draws: beyond 4.5 standard deviations with a probability of 3e-5, and the seed is fixed.
    np.testing.assert_allclose(one.gradient, found, atol=4.5 * noise)
    whole = by_hand(record, dataclasses.replace(one, cap=100.0), y=held)[0]
    assert np.abs(one.gradient - whole)[:-1].max() > 5 * noise
    assert np.linalg.norm(terms, axis=1).max() <= 0.5 * N * record.steps[2].sensitivity * (1 + 1e-12)


def test_persons_weights_and_chunks_have_the_same_gradient():
    ids, weights = np.repeat(np.arange(N // 3), 3), RNG.uniform(0, 2, N)
    cases = [
        ({"persons": ids, "weights": dpci.Weights(weights, bound=2.0)}, weights / 2.0 / 3.0),
        ({"persons": dpci.Persons(ids, max_rows=2)}, np.where(np.arange(N) % 3 < 2, 0.5, 0.0)),
        ({"x": dpci.Chunks([(X[:900], Y[:900]), (X[900:], Y[900:])]), "y": None}, np.ones(N)),
    ]
    for keywords, share in cases:
        # The matrix is so noisy that the gradient is not 0.
        record = released(dpci.ZCDP(1e4), **keywords)._record
        (one,) = record.refined
        found, _ = by_hand(record, one, share=share / record.divisor)
        np.testing.assert_allclose(one.gradient, found, atol=8 * record.steps[-1].scale)
        assert record.steps[-1].scale < 0.05 * np.linalg.norm(one.gradient)


@pytest.mark.parametrize(
    "budget", [dpci.PureDP(400.0), dpci.ZCDP(50.0), dpci.ApproxDP(50.0, 1e-6), dpci.GDP(20.0)], ids=str
)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_no_pair_of_records_exceeds_the_sensitivity_and_some_nearly_attain_it(budget, neighbors):
    n = 400
    relation = dpci.AddRemove(n) if neighbors == "add_remove" else neighbors
    plan = regression.Regression()
    record = released(budget, x=X[:n], y=Y[:n], neighbors=relation, refine=[plan])._record
    (one,), step = record.refined, record.steps[2]
    lower, upper = (np.array(part, dtype=float) for part in COMMON["bounds"])
    corners = np.array(list(itertools.product([0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [-BOUND, -1.0, 0.0, 2.0, BOUND])))
    inner = RNG.uniform(size=(300, 4)) * [1, 1, 1, 2 * BOUND] - [0, 0, 0, BOUND]
    points = np.vstack([corners, inner])
    terms = by_hand(record, one, lower + points[:, :3] * (upper - lower), points[:, 3])[1]
    alone, claim = np.linalg.norm(terms, axis=1), step.sensitivity * n
    pairs = np.linalg.norm(terms[:, None] - terms[None], axis=2)
    assert alone.max() <= (claim if neighbors == "add_remove" else 0.5 * claim) * (1 + 1e-12)
    assert pairs.max() <= (2.0 * claim if neighbors == "add_remove" else claim) * (1 + 1e-12)
    if neighbors == "add_remove":
        assert alone.max() >= 0.999 * claim
    else:
        # Residuals of opposite signs, whose squares are alike: the last entry does not move.
        assert pairs.max() >= 0.95 * claim


def levels_by_hand(residuals, greatest):
    """How each residual counts at the levels, linear in its size between two of them."""
    levels = greatest * 2.0 ** (-0.5 * np.arange(_core.LEVELS))
    shares = [np.interp(np.abs(residuals), levels[::-1], row[::-1]) for row in np.eye(_core.LEVELS)]
    return np.column_stack(shares)


def residuals_of(record, one, x=X, y=Y):
    """The residuals of records at the released point, and the greatest that the bounds allow."""
    z = np.column_stack([(x - record.middle) / record.scale, np.full(len(x), record.constant)])
    reach = np.sqrt(len(record.columns) + record.constant**2) * np.linalg.norm(one.point)
    return y - record.target_middle - z @ one.point, record.target_half + reach


@pytest.mark.parametrize("budget", [dpci.PureDP(40.0), dpci.ZCDP(5.0)], ids=str)
def test_the_levels_are_those_of_the_residuals_and_determine_the_cap(budget):
    ids, weights = np.repeat(np.arange(N // 3), 3), RNG.uniform(0, 2, N)
    heavy = Y + np.where(np.arange(N) % 30 == 0, 7.0, 0.0) * (X[:, 0] > 2.0)
    for y, keywords, share in [
        (Y, {}, np.ones(N)),
        (heavy, {}, np.ones(N)),
        (heavy, {"persons": ids, "weights": dpci.Weights(weights, bound=2.0)}, weights / 2.0 / 3.0),
        (heavy, {"x": dpci.Chunks([(X[:900], heavy[:900]), (X[900:], heavy[900:])]), "y": None}, np.ones(N)),
    ]:
        record = released(budget, **{"y": y, **keywords})._record
        (one,), step = record.refined, record.steps[-2]
        held = np.clip(y, -BOUND, BOUND)
        residuals, greatest = residuals_of(record, one, y=held)
        shares = share @ levels_by_hand(residuals, greatest) / record.divisor
        # Of 64 or 128 draws none is beyond 9 scales of the normal law with a probability of 1e-16, of the other 8e-3.
        np.testing.assert_allclose(one.levels, shares, atol=(9 if step.noise == "gaussian" else 25) * step.scale)
        assert step.scale < 0.05 * shares.max()
        threshold = {"gaussian": 3.2905267, "laplace": np.log(1000.0)}[step.noise] * step.scale
        first = np.flatnonzero(one.levels > threshold)[0]
        assert one.cap == pytest.approx(min(greatest, greatest * 2.0 ** (-0.5 * (first - 1))), rel=1e-9)
        assert (one.cap > 6.5) == (y is heavy)


@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_no_pair_of_records_exceeds_the_sensitivity_of_the_levels(budget, neighbors):
    relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
    step = released(budget, neighbors=relation)._record.steps[1]
    sizes = np.concatenate([2.0 ** (-0.5 * np.arange(_core.LEVELS)), RNG.uniform(size=200), [0.0]])
    terms = levels_by_hand(sizes, 1.0)
    np.testing.assert_allclose(terms.sum(axis=1), 1.0, rtol=1e-12)
    order = 1 if isinstance(budget, dpci.PureDP) else 2
    moved = terms[:, None] - terms[None] if neighbors == "replace_one" else terms
    assert np.linalg.norm(moved, ord=order, axis=-1).max() == pytest.approx(step.sensitivity * N, rel=1e-12)


def skewed(n_columns=20, n_errors=2000):
    """Records whose log-normal errors spread with a column: all pairs of its values and of quantiles of the errors."""
    at = np.repeat(np.linspace(0.0, 10.0, n_columns), n_errors)
    errors = np.exp(1.2 * special.ndtri((np.arange(n_errors) + 0.5) / n_errors))
    return at[:, None], at + (0.1 + 0.18 * at) * np.tile((errors - errors.mean()) / errors.std(), n_columns)


def test_a_cap_on_skewed_errors_whose_spread_grows_biases_no_slope():
    x, y = skewed()
    ols = sm.OLS(y, sm.add_constant(x, prepend=False)).fit(cov_type="HC0")
    keywords = {"x": x, "y": y, "bounds": (0, 10), "target_bound": 60}
    for budget in (dpci.ZCDP(20.0), dpci.PureDP(80.0)):
        fit = released(budget, **keywords).fit()
        noise = fit.std_errors * np.sqrt(fit.noise_shares)
        # Clipping at 6.6 standard deviations moves both by 2 to 4 sampling standard errors.
        assert np.all(noise < 0.5 * ols.bse)
        assert np.all(np.abs(fit.params - ols.params) < 3.0 * noise)


def part_of_step(fit):
    """The part of the step that was made: that of the noise which is counted."""
    record = fit._release
    return fit._solution.gradient.std_dev / np.hypot(record.steps[-1].scale, record.seals[-1].std_dev)


def test_intervals_count_what_a_cap_may_cut_off():
    fit = released(dpci.ZCDP(0.5)).fit()
    one, step = fit._release.refined[0], fit._release.steps[1]
    seen = 3.290526731491894 * step.scale
    assert fit._solution.gradient.seen == pytest.approx(seen, rel=1e-12)
    # The greatest level above the first that is seen.
    above = one.levels[: np.flatnonzero(one.levels > seen)[0]].max()
    unseen = 0.75 * np.hypot(max(above, 0.0), step.scale)
    assert 0.0 < above < seen
    # The greatest influence of a row of the box, by all its corners, in units of the columns.
    half = 0.5 * np.ptp(np.array(COMMON["bounds"]), axis=0)
    middle = np.mean(COMMON["bounds"], axis=0)
    record = fit._release
    z = np.array([*itertools.product(*[(-1.0, 1.0)] * D)])
    corners = np.column_stack([z, np.full(len(z), record.constant)])
    hessian = record.matrix[:-1, :-1]
    of_scaled = np.linalg.solve(hessian, corners.T) / np.append(half, 1.0 / record.constant)[:, None]
    of_scaled[-1] -= middle @ of_scaled[:-1]
    expected = part_of_step(fit) * unseen * one.cap * np.abs(of_scaled).max(axis=1)
    np.testing.assert_allclose(fit._solution.cut_off(np.eye(D + 1)), expected, rtol=1e-9)
    parts = fit._estimates().parts()
    assert np.diag(fit.cov) == pytest.approx(parts.variance, rel=1e-9)
    together = 2.0 * special.ndtri(0.99) * step.scale
    few, more = (f"{np.ceil(share * N):.0f}" for share in (seen, together))
    outliers = f"{few} outliers of one size, {more} of sizes within a factor of two"
    assert f"residual cap      {one.cap:.4g}; up to about {outliers}" in fit.summary()
    # Where residuals near the greatest are seen nothing is cut off.
    far = released(dpci.ZCDP(5.0), y=np.where(np.arange(N) % 2 == 0, BOUND, -BOUND))
    assert far._release.refined[0].cap == pytest.approx(residuals_of(far._release, far._release.refined[0])[1])
    assert "which clips none" in far.fit().summary()
    assert not far.fit()._solution.cut_off(np.eye(D + 1)).any()


def heavy(rng, n=20_000):
    """Records with log-normal errors, for which the cap is large."""
    x = rng.uniform(COMMON["bounds"][0], COMMON["bounds"][1], (n, D))
    errors = rng.lognormal(0.0, 1.2, n)
    return x, x @ [1.0, -2.0, 0.5] - 5.0 + (errors - np.exp(0.72)) / 3.74


def test_the_step_has_the_length_that_leaves_the_least_noise(monkeypatch):
    x, y = heavy(np.random.default_rng(3))
    matrix = released(dpci.ZCDP(0.5), x=x, y=y, target_bound=16.0)
    fit = matrix.fit()
    part = part_of_step(fit)
    # With light tails it is nearly the whole step.
    assert 0.3 < part < 0.7
    assert part_of_step(released(dpci.ZCDP(0.5)).fit()) > 0.85

    def noise(given):
        monkeypatch.setattr(equations, "_part_of_step", lambda *_: given)
        moved = matrix.fit()
        parts = moved._estimates().parts()
        return moved.params, np.mean((parts.variance - parts.sampling) / np.diagonal(moved._solution.gain))

    (start, longest), (end, whole), (own, least) = (noise(given) for given in (0.0, 1.0, part))
    np.testing.assert_allclose(own, start + part * (end - start), rtol=1e-12)
    np.testing.assert_array_equal(own, fit.params)
    assert least < min(0.8 * whole, 0.8 * longest)
    for other in (part - 0.02, part + 0.02):
        assert least < noise(other)[1]


@pytest.mark.parametrize("budget", [dpci.PureDP(8.0), dpci.ZCDP(0.5)], ids=str)
def test_a_rare_group_with_a_heavy_tail_has_a_long_interval(budget):
    # A column marks 3% of the records, which have nearly all of the residuals' square.
    shares, n = [], 20_000
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = np.column_stack([rng.uniform(0.0, 1.0, n), rng.uniform(size=n) < 0.03])
        tail = np.minimum((1.0 - rng.uniform(size=n)) ** -0.4, 30.0)
        y = x[:, 0] + 0.05 * rng.normal(size=n) + 0.6 * x[:, 1] * (tail - 5.0 / 3.0)
        keywords = {"bounds": (0, 1), "target_bound": 30.0, "robust": True, "seed": seed}
        fit = released(budget, x=x, y=y, **keywords).fit()
        design = sm.add_constant(x, prepend=False)
        truth = sm.OLS(y, design).fit(cov_type="HC0").bse[1]
        equal = sm.OLS(y, design).fit().bse[1]
        assert equal < 0.35 * truth
        parts = fit._estimates().parts()
        shares.append(np.sqrt(parts.sampling[1]) / truth)
        np.testing.assert_allclose(np.diag(fit.cov), parts.variance, rtol=1e-9)
        assert np.linalg.eigvalsh(fit.cov)[0] > 0.0
    assert 0.5 < np.mean(shares) < 2.0


@pytest.mark.parametrize(
    ("share", "n", "budget"),
    [(0.02, 3000, dpci.PureDP(4.0)), (0.01, 6000, dpci.PureDP(2.0)), (0.01, 5000, dpci.ZCDP(0.1))],
    ids=str,
)
def test_outliers_of_spread_sizes_are_seen(share, n, budget):
    # Of 50 or 60 outliers on one side, up to 15 in size and larger where x0 is large, no level has many.
    truth = np.array([1.0 + 15.0 * share, -1.0, 0.0, 0.0])
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x = rng.uniform(size=(n, 3))
        errors = 0.3 * rng.normal(size=n) + 15.0 * x[:, 0] * (rng.uniform(size=n) < share)
        keywords = {"bounds": (0, 1), "target_bound": 30.0, "robust": True, "seed": seed}
        intervals = released(budget, x=x, y=x[:, 0] - x[:, 1] + errors, **keywords).fit().conf_int()
        covered.append((intervals.lower <= truth) & (truth <= intervals.upper))
    # Of 60 intervals of which 90% cover more than 48 do with a probability of .98. If each level is seen by itself, and
    # the levels have a quarter of the refinement's budget, those of x0 cover in .3 to .6.
    assert np.min(np.mean(covered, axis=0)) > 0.8


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("robust", [False, True])
def test_the_parts_cost_the_whole(budget, robust):
    matrix = released(budget, robust=robust)
    record = matrix._record
    names = ["moment_matrix", *["residual_moments"] * robust, "residual_levels", "residual_gradient"]
    assert [step.step for step in record.steps] == names
    shares = np.array([step.cost for step in record.steps]) / sum(step.cost for step in record.steps)
    levels = 0.27 if isinstance(budget, dpci.PureDP) else 0.36
    expected = [0.3, 0.1, levels, 0.6 - levels] if robust else [0.4, levels, 0.6 - levels]
    np.testing.assert_allclose(shares, expected, rtol=1e-9)
    plain = regression.release(X, Y, **COMMON, budget=budget, seed=1)
    assert matrix.guarantee.delta(1.5) == pytest.approx(plain.guarantee.delta(1.5), rel=1e-6)
    laws = ["laplace", "spherical_laplace"] if isinstance(budget, dpci.PureDP) else ["gaussian"] * 2
    assert [step.noise for step in record.steps[-2:]] == laws


@pytest.mark.parametrize("l2_strength", [0.0, 0.3])
def test_without_noise_it_is_statsmodels(l2_strength):
    plan = regression.Regression(l2_strength=l2_strength)
    matrix = released(refine=[plan], robust=[plan])
    design = sm.add_constant(X, prepend=False)
    for covariance, kind in (("classical", "nonrobust"), ("robust", "HC0")):
        fit = matrix.fit(l2_strength=l2_strength, covariance=covariance)
        if l2_strength == 0.0:
            ols = sm.OLS(Y, design).fit(cov_type=kind)
            np.testing.assert_allclose(fit.params, ols.params, rtol=1e-6)
            np.testing.assert_allclose(fit.std_errors, ols.bse, rtol=3e-6)
        else:
            solution = np.linalg.solve(design.T @ design / N + 0.5 * l2_strength * np.eye(D + 1), design.T @ Y / N)
            np.testing.assert_allclose(fit.params, solution, rtol=1e-6)


@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.GDP(1.0)], ids=str)
def test_intervals_are_shorter_and_cover(budget):
    rng = np.random.default_rng(1)
    truth, covered, lengths, errors = np.array([1.0, -2.0, 0.5, -5.0]), [], [], []
    for seed in range(100):
        x = rng.uniform(COMMON["bounds"][0], COMMON["bounds"][1], (N, D))
        y = x @ truth[:3] - 5.0 + rng.normal(size=N)
        keywords = {"x": x, "y": y, "target_bound": 30.0, "seed": seed}
        fits = [released(budget, refine=refine, **keywords).fit() for refine in (False, True)]
        lengths.append([fit.conf_int().length for fit in fits])
        intervals = fits[1].conf_int()
        covered.append((intervals.lower <= truth) & (truth <= intervals.upper))
        errors.append((fits[1].params - truth) / fits[1].std_errors)
    shorter = np.mean(lengths, axis=0)
    assert np.all(shorter[1] < 0.85 * shorter[0])
    # Of 400 intervals of which 95% cover, dependent in fours: within five standard deviations, .055.
    assert 0.89 < np.mean(covered) < 0.995
    assert 0.65 < np.mean(np.square(errors)) < 1.4


def test_other_regressions_and_files_are_as_before():
    matrix = released(dpci.ZCDP(2.0), robust=True)
    again = regression.MomentMatrix.from_json(matrix.to_json())
    assert again.digest == matrix.digest
    for keywords in ({}, {"covariance": "robust"}):
        np.testing.assert_array_equal(again.fit(**keywords).params, matrix.fit(**keywords).params)
    # Those that were not refined solve the equations of the matrix.
    record = matrix._record
    other = matrix.fit(features=["x0"])
    assert other.params.shape == (2,)
    saved = json.loads(matrix.to_json())
    saved["refined"] = []
    saved["steps"], saved["seals"] = saved["steps"][:2], saved["seals"][:2]
    # A file spends its whole budget.
    spent = sum(step["cost"] for step in saved["steps"]) + sum(seal["cost"]["rho"] for seal in saved["seals"])
    saved["budget"] = {"notion": "zcdp", "rho": spent}
    bare = regression.MomentMatrix.from_json(rewritten(saved))
    np.testing.assert_array_equal(bare.fit(features=["x0"]).params, other.params)
    assert not np.array_equal(bare.fit().params, matrix.fit().params)
    assert np.abs(bare.fit().params - matrix.fit().params).max() < 6 * bare.fit().std_errors.max()
    assert record.refined[0].regression.features == ("x0", "x1", "x2")
    # The difference with an earlier release, joint intervals and predictions count the gradient's noise.
    fit = matrix.fit()
    assert fit.conf_int(simultaneous="bonferroni").length.min() > fit.conf_int().length.min()
    assert fit.predict_conf_int(X[:2]).length.shape == (2,)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("cap", -1.0, "cap must be"),
        ("square_weight", 0.0, "square_weight must be"),
        ("gradient", [0.0, 1.0], "a gradient must have shape"),
        ("levels", [0.0, 1.0], "levels of residuals must have shape"),
        ("features", ["x9"], "features of a planned regression must be columns"),
        ("features", ["x1", "x0", "x2"], "must name its columns in their order"),
    ],
)
def test_forged_files_are_refused(field, value, message):
    saved = json.loads(released().to_json())
    refined = saved["refined"][0]
    (refined["regression"] if field == "features" else refined)[field] = value
    with pytest.raises(dpci.InvalidInput, match=message):
        regression.MomentMatrix.from_json(rewritten(saved))


@pytest.mark.parametrize(
    ("refine", "message"),
    [
        (1, "refine must be"),
        ([1], "refine must be a flag or a list of regression.Regression, got 1 in it"),
        (regression.Regression(), "alone"),
        ([regression.Regression(), regression.Regression()], "refine must name every regression once"),
        ([regression.Regression(target="z")], "the target of a planned regression must be of the columns"),
        ([regression.Regression(features=["y"])], "features of a planned regression must be columns of X"),
    ],
    ids=str,
)
def test_bad_plans_cost_nothing(refine, message):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=message):
        regression.release(X, Y, **COMMON, budget=dpci.ZCDP(0.5), refine=refine, ledger=ledger)
    # Hopeless regressions are refused before they are paid, too.
    with pytest.raises(dpci.InvalidInput, match="must be able to vary more than the noise"):
        regression.release(X[:30], Y[:30], **COMMON, budget=dpci.ZCDP(0.001), refine=True, ledger=ledger)
    assert ledger.history == ()
