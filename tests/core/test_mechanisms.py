"""Noise that a fit adds to the exact values: laws of the noise, and scales recomputed from the formulas.

Seeds were fixed once, before the first run. A statistical check fails by chance with probability 1e-6.
"""

import itertools

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

import dpci
from dpci import _core, lowlevel
from dpci.losses import HuberHinge, Logistic, SmoothHinge
from dpci.model.settings import Settings
from support.gradients import farthest, reach
from support.keywords import assembled
from support.seal import unsealed

FALSE_POSITIVE_RATE = 1e-6
DIM, N, N_RUNS = 3, 12, 10_000
PURE, ZCDP, APPROX = dpci.PureDP(3.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-5)
RELATIONS = {"replace_one": {}, "add_remove": {"neighbors": dpci.AddRemove(20)}}
OFFERED = [("objective", PURE), ("objective", ZCDP), ("output", PURE), ("output", ZCDP), ("output", APPROX)]
by_relation = pytest.mark.parametrize("relation", RELATIONS.values(), ids=RELATIONS)


def accept(pvalue):
    assert pvalue > FALSE_POSITIVE_RATE


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(30)
    X = rng.standard_normal((N, DIM))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.uniform(size=N) < 0.5, 1.0, -1.0)


def make_spec(n=N, dim=DIM, **keywords):
    return Settings.checked(
        **assembled(**{"budget": PURE, "l2_strength": 0.3, "intercept": False, "projection": "floor", **keywords})
    ).spec(n, dim)


def releases(rows, *, n_runs=N_RUNS, seed=31, **keywords):
    """Params (n_runs, d), noisy data parts of Hessian and gradient covariance (n_runs, d, d), and the specification."""
    spec = make_spec(*rows[0].shape, **keywords)
    table = _core.simulate(spec, _core.Records(*rows), n_runs=n_runs, seed=seed, n_threads=None)
    dim = rows[0].shape[1]
    params, *triangles = np.split(table, [dim, dim + dim * (dim + 1) // 2], axis=1)
    return spec, params, *map(full, triangles)


def full(triangles):
    """Symmetric matrices of their lower triangles, row after row."""
    dim = int(np.sqrt(2 * triangles.shape[1]))
    matrices = np.zeros((len(triangles), dim, dim))
    lower = np.tril_indices(dim)
    matrices[:, lower[0], lower[1]] = matrices[:, lower[1], lower[0]] = triangles
    return matrices


def n_of(relation):
    return relation["neighbors"].n_public if relation else N


def isometric(matrices):
    lower = np.tril_indices(matrices.shape[1])
    return matrices[:, lower[0], lower[1]] * np.where(lower[0] == lower[1], 1.0, np.sqrt(2.0))


def derivatives(loss, rows, params):
    """Slopes and curvatures of each row at each of the params, shape (n_runs, n)."""
    X, y = rows
    u = params @ X.T
    parts = loss.to_core().evaluate(u.ravel(), np.tile(y, len(params)))
    return [part.reshape(u.shape) for part in parts[1:]]


def accept_spherical_laplace(vectors, scale):
    radius = np.linalg.norm(vectors, axis=1)
    accept(stats.kstest(radius, stats.gamma(vectors.shape[1], scale=scale).cdf).pvalue)
    accept_directions(vectors, radius)


def accept_gaussian(vectors, std_dev):
    accept(stats.kstest(vectors.ravel() / std_dev, stats.norm.cdf).pvalue)
    accept(stats.kstest((vectors**2).sum(axis=1) / std_dev**2, stats.chi2(vectors.shape[1]).cdf).pvalue)
    accept_directions(vectors, np.linalg.norm(vectors, axis=1))


def accept_directions(vectors, radius):
    half = (vectors.shape[1] - 1) / 2
    for coordinate in vectors.T:
        accept(stats.kstest((1.0 + coordinate / radius) / 2.0, stats.beta(half, half).cdf).pvalue)
    # One direction tells nothing of the next.
    accept(stats.pearsonr(vectors[1:, 0], vectors[:-1, 0]).pvalue)


# The coefficients' noise.


@by_relation
@pytest.mark.parametrize(("budget", "moments"), [(PURE, "none"), (ZCDP, "none"), (APPROX, "joint")], ids=repr)
def test_output_perturbation_adds_its_noise_to_the_minimiser(rows, budget, moments, relation):
    spec, params, *_ = releases(rows, budget=budget, mechanism="output", moments=moments, **relation)
    step = spec.plan()["steps"][0]
    n = n_of(relation)
    exact = lowlevel.minimize_erm(*rows, l2_strength=0.3 * n / N, tolerance=1e-13).params
    check = accept_spherical_laplace if budget is PURE else accept_gaussian
    assert step.noise == ("spherical_laplace" if budget is PURE else "gaussian")
    check(params - exact, step.scale)


@by_relation
@pytest.mark.parametrize("budget", [PURE, dpci.ZCDP(2.0)], ids=repr)
@pytest.mark.parametrize(
    ("loss", "moments"), [(Logistic(), "joint"), (HuberHinge(h=1.0), "none"), (SmoothHinge(s=0.5), "none")], ids=repr
)
def test_objective_perturbation_solves_for_its_noise(rows, budget, loss, moments, relation):
    """The released params are the minimiser of an objective whose linear term is recovered from its gradient."""
    n = n_of(relation)
    spec, params, *_ = releases(rows, budget=budget, loss=loss, moments=moments, **relation)
    slopes, _ = derivatives(loss, rows, params)
    noise = -(slopes @ rows[0] + n * 0.3 * params)
    accept_spherical_laplace(noise, spec.plan()["steps"][0].scale)


def test_a_seeded_fit_is_the_first_release_of_its_seed(rows):
    """So what is checked here for many releases holds for fits."""
    for seed in range(20):
        spec, params, hessian, cov = releases(rows, n_runs=1, seed=seed)
        fit = _core.release(spec, _core.Records(*rows), on_violation="error", n_threads=1, seed=seed)
        np.testing.assert_array_equal(fit["params"], params[0])
        np.testing.assert_allclose(fit["hessian"], floored(hessian[0] + 0.3 * np.eye(DIM), 0.3), rtol=1e-9, atol=1e-12)
        expected = floored(cov[0] - 0.09 * np.outer(params[0], params[0]), 0.0)
        np.testing.assert_allclose(fit["gradient_cov"], expected, rtol=1e-9, atol=1e-12)


def floored(matrix, floor):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.maximum(values, floor) @ vectors.T


# The moments' noise.


@pytest.mark.parametrize("loss", [Logistic(), SmoothHinge(s=0.5)], ids=repr)
@by_relation
@pytest.mark.parametrize("moments", ["joint", "separate", "paper"])
@pytest.mark.parametrize("budget", [dpci.PureDP(60.0), dpci.ZCDP(50.0)], ids=repr)
def test_moments_carry_the_claimed_noise(rows, budget, moments, relation, loss):
    """Noise over its scale for margins up to the norm of each release's own params has one law for all releases.

    The params of the same releases have the noise of their share of the budget.
    The budgets are so great that a wrong centre would show too.
    """
    keywords = {"moments": "separate", "calibration": "paper"} if moments == "paper" else {"moments": moments}
    n_runs, n = 4000, n_of(relation)
    fit, params, hessian, cov = releases(
        rows, n_runs=n_runs, budget=budget, loss=loss, mechanism="output", **relation, **keywords
    )
    exact = lowlevel.minimize_erm(*rows, loss=loss, l2_strength=0.3 * n / N, tolerance=1e-13).params
    check = accept_gaussian if budget.notion == "zcdp" else accept_spherical_laplace
    check(params - exact, fit.plan()["steps"][0].scale)
    slopes, curvatures = derivatives(loss, rows, params)
    squares = rows[0][:, :, None] * rows[0][:, None, :]
    noise = [
        isometric(noisy - np.einsum("rn,nij->rij", weights, squares) / n)
        for noisy, weights in ((hessian, curvatures), (cov, slopes**2))
    ]
    radii = np.linalg.norm(params, axis=1)
    core, spec = loss.to_core(), (budget, moments, relation)
    scales = scales_at(core, spec, radii)
    standard = [part / scale[:, None] for part, scale in zip(noise, scales.T, strict=True)]
    if budget.notion == "zcdp":
        for part in standard:
            accept(stats.kstest(part.ravel(), stats.norm.cdf).pvalue)
    else:
        reference = laplace_reference(moments, n_runs)
        for part, column in itertools.product(standard, range(part_width(DIM))):
            accept(stats.ks_2samp(part[:, column], reference[:, column]).pvalue)
        for part in standard:
            accept(stats.ks_2samp((part**2).sum(axis=1), (reference**2).sum(axis=1)).pvalue)
    # The two matrices are independent.
    for first, second in zip(standard[0].T, standard[1].T, strict=True):
        accept(stats.spearmanr(first, second).pvalue)


def scales_at(core, spec, radii):
    """Moment scales at many radii: exact at some hundred of them, which lie as the others do, and between these."""
    at = np.quantile(radii, np.linspace(0.0, 1.0, 301))
    columns = np.array([moment_scales(core, spec, radius) for radius in at]).T
    scales = np.column_stack([np.interp(radii, at, column) for column in columns])
    exact = [moment_scales(core, spec, radius) for radius in radii[:20]]
    np.testing.assert_allclose(scales[:20], exact, rtol=1e-3)  # a test of 6,000 draws sees 5e-2
    return scales


def part_width(dim):
    return dim * (dim + 1) // 2


def laplace_reference(moments, n):
    """Draws of scale 1 in isometric coordinates."""
    if moments != "paper":
        return isometric(lowlevel.symmetric_matrix_laplace(4 * n, DIM, 1.0, 32))
    entries = lowlevel.spherical_laplace(4 * n, DIM * DIM, 1.0, 33).reshape(-1, DIM, DIM)
    return isometric((entries + entries.transpose(0, 2, 1)) / 2.0)


def joint_alpha(loss, radius):
    """The weight of the Hessian that costs least: the minimum of sup((alpha l'')^2 + l'^4) / alpha."""
    cost = lambda log_alpha: 2.0 * np.log(_core.Testing.sup_joint_norm(loss, np.exp(log_alpha), radius)) - log_alpha  # noqa: E731
    return np.exp(optimize.minimize_scalar(cost, bounds=(-5.0, 5.0), method="bounded", options={"xatol": 1e-9}).x)


def gaussian_mu(epsilon, delta):
    """Balle & Wang 2018, Theorem 8, solved for the ratio of sensitivity and standard deviation."""

    def excess(mu):
        return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu) - delta

    return optimize.brentq(excess, 1e-3, 10.0, xtol=1e-14)


def bought(budget, share, *, paper):
    """Sensitivity over the scale of the noise that a share of the budget buys, Laplace or Gaussian."""
    budget = unsealed(budget)
    if budget.notion == "pure":
        return budget.epsilon * share
    if budget.notion == "zcdp":
        return np.sqrt(2.0 * budget.rho * share)
    if paper:
        # Bun & Steinke 2016: rho + 2 sqrt(rho log(1 / delta)) = epsilon.
        log = np.log(1.0 / budget.delta)
        return (np.sqrt(log + budget.epsilon) - np.sqrt(log)) * np.sqrt(2.0 * share)
    return gaussian_mu(budget.epsilon, budget.delta) * np.sqrt(share)


def default_shares(budget, n, dim, relation, *, paper):
    if paper:
        return 0.5, 0.25, 0.25
    moments = 0.05
    if budget.notion == "pure":
        radius = np.sqrt(2.0 * dim * (dim + 1)) * (1.0 if relation else 2.0) / (unsealed(budget).epsilon * n / 2.0)
        moments = np.clip(radius / 0.06, 0.1, 0.1 + 0.5 / max(dim, 2))
    return 1.0 - moments, moments / 2.0, moments / 2.0


def moment_scales(loss, spec, radius, split=None):
    """Scales of Hessian and gradient covariance of rows of norm 1, from the formulas of docs/proofs/intervals.md."""
    budget, moments, relation = spec
    pure, paper = budget.notion == "pure", moments == "paper"
    n, records, root = (n_of(relation), 1.0, 1.0) if relation else (N, 2.0, np.sqrt(2.0))
    shares = (split or default_shares(budget, n, DIM, relation, paper=paper))[1:]
    if moments != "joint":
        factor = records if pure or paper else root
        sups = loss.sup_curvature(radius), loss.sup_slope(radius) ** 2
        return [factor * sup / n / bought(budget, share, paper=paper) for sup, share in zip(sups, shares, strict=True)]
    ratio = bought(budget, sum(shares), paper=False)
    if pure:
        greatest = loss.slope_bound**2 / loss.curvature_bound
        weight = min(max(2.0, greatest / 2.0), greatest)
        scale = records * _core.Testing.sup_weighted_sum(loss, weight, radius) / n / ratio
    else:
        weight = joint_alpha(loss, radius)
        scale = root * _core.Testing.sup_joint_norm(loss, weight, radius) / n / ratio
    return [scale / weight, scale]


# Calibration.


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@by_relation
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(h=0.7), SmoothHinge(s=0.3)], ids=repr)
@pytest.mark.parametrize(("mechanism", "budget"), OFFERED, ids=repr)
def test_coefficients_are_calibrated_by_the_formulas(mechanism, budget, calibration, relation, loss):
    n, l2_strength, row_norm = n_of(relation), 1.5, 1.5
    keywords = {"budget": budget, "mechanism": mechanism, "calibration": calibration, "loss": loss, **relation}
    plan = make_spec(l2_strength=l2_strength, rows=row_norm, intercept=0.5, **keywords).plan()
    paper = calibration == "paper"
    share = default_shares(budget, n, DIM + 1, relation, paper=paper)[0]
    bound, records = np.hypot(row_norm, 0.5), 1.0 if relation else 2.0
    if mechanism == "objective":
        curvature = {"logistic": 0.25, "huber_hinge": 1.0 / 1.4, "smooth_hinge": 1.0 / 1.2}[loss.name]
        epsilon = pure_cost(budget, share, paper=paper)
        expected = records * bound / (epsilon - np.log1p(curvature * bound**2 / (n * l2_strength)))
        assert plan["least_l2_strength"] == pytest.approx(curvature * bound**2 / (n * np.expm1(epsilon)), rel=1e-9)
    else:
        expected = records * bound / (n * l2_strength) / bought(budget, share, paper=paper)
        assert plan["least_l2_strength"] == 0.0
    scale = plan["steps"][0].scale
    if mechanism == "output" and not paper and not relation and loss.name != "huber_hinge":
        # The regulariser keeps minimisers where two gradients are less than twice the steepest apart.
        slope = {"logistic": lambda z: expit(-z), "smooth_hinge": lambda z: expit((1.0 - z) / 0.3)}[loss.name]
        expected *= 0.5 * farthest(slope, bound * reach(slope, l2_strength))
        assert expected * (1.0 - 1e-6) <= scale <= expected * 1.002
        return
    assert scale == pytest.approx(expected, rel=1e-9)
    assert scale >= expected * (1.0 - 1e-12)


def pure_cost(budget, share, *, paper):
    """Pure budget of objective perturbation; under zCDP rho = epsilon tanh(epsilon / 2) or epsilon^2 / 2."""
    budget = unsealed(budget)
    if budget.notion == "pure":
        return budget.epsilon * share
    cost = (lambda e: e**2 / 2.0) if paper else (lambda e: e * np.tanh(e / 2.0))
    return optimize.brentq(lambda e: cost(e) - budget.rho * share, 1e-6, 50.0, xtol=1e-14)


@pytest.mark.parametrize("split", [None, (0.65, 0.3, 0.05)])
@by_relation
@pytest.mark.parametrize("moments", ["joint", "separate", "paper"])
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(h=0.7), SmoothHinge(s=0.3), SmoothHinge(s=4.0)], ids=repr)
@pytest.mark.parametrize("budget", [PURE, ZCDP, APPROX], ids=repr)
def test_moments_are_calibrated_by_the_formulas(budget, loss, moments, relation, split):
    keywords = {"moments": "separate", "calibration": "paper"} if moments == "paper" else {"moments": moments}
    spec = make_spec(budget=budget, loss=loss, split=split, mechanism="output", **relation, **keywords)
    steps = spec.plan()["steps"][1:]
    scales = [steps[0].hessian_scale, steps[0].scale] if moments == "joint" else [step.scale for step in steps]
    expected = moment_scales(loss.to_core(), (budget, moments, relation), np.inf, split)
    np.testing.assert_allclose(scales, expected, rtol=1e-6)
