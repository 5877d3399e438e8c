"""Families where records are persons with weighted rows: the limit of every loss, with its cluster-robust errors."""

import numpy as np
import pytest
from scipy import optimize, special, stats

import dpci
from dpci import losses
from support.keywords import assembled

N, PERSONS, STRENGTH, BOUND = 900, 250, 0.05, 2.0
rng = np.random.default_rng(12)
X = rng.uniform(-0.55, 0.55, (N, 3))
Z = np.column_stack([X, np.ones(N)])
U = Z @ [0.8, -0.6, 0.4, 0.1]
IDS = rng.permutation(np.concatenate([np.arange(PERSONS), rng.integers(0, PERSONS, N - PERSONS)]))
WEIGHTS = rng.uniform(0.0, BOUND, N)
SIGNS = np.where(U + rng.logistic(size=N) > 0, 1.0, -1.0)
COUNTS = np.minimum(rng.poisson(np.exp(U)), 4).astype(float)
SHARES = rng.binomial(5, special.expit(U)) / 5
REAL = np.clip(0.4 * U + 0.2 * rng.standard_t(3, N), -1.0, 1.0)


def margin(slope, curvature):
    """Slope and curvature of a loss of the margin, from derivatives in it."""
    return lambda u, y: (y * slope(y * u), curvature(y * u))


def inverse_mills(z):
    return np.exp(stats.norm.logpdf(z) - stats.norm.logcdf(z))


def cloglog(u, y):
    e = np.exp(u)
    q = e / np.expm1(e)
    happened = y > 0
    return np.where(happened, -q, e), np.where(happened, q * (e * np.exp(e) / np.expm1(e) - 1.0), e)


def logistic_of(scale):
    """Slope and curvature of scale·log(1 + e^(t/scale))."""
    return lambda t: (special.expit(t / scale), special.expit(t / scale) * special.expit(-t / scale) / scale)


S = logistic_of(0.3)
Q = logistic_of(0.2)
H = 0.5
# The loss, its radius, the targets, and slope and curvature in the predictor by hand.
FAMILIES = {
    "logistic": (
        losses.Logistic(),
        None,
        SIGNS,
        margin(lambda z: -special.expit(-z), lambda z: special.expit(z) * special.expit(-z)),
    ),
    "soft_logistic": (
        losses.SoftLogistic(),
        None,
        SHARES,
        lambda u, y: (special.expit(u) - y, special.expit(u) * special.expit(-u)),
    ),
    "huber_hinge": (
        losses.HuberHinge(h=H),
        None,
        SIGNS,
        margin(lambda z: -np.clip((1 + H - z) / (2 * H), 0.0, 1.0), lambda z: (np.abs(1 - z) <= H) / (2 * H)),
    ),
    "smooth_hinge": (losses.SmoothHinge(s=0.3), None, SIGNS, margin(lambda z: -S(1 - z)[0], lambda z: S(1 - z)[1])),
    "squared": (losses.Squared(target_bound=1.0), 3.0, REAL, lambda u, y: (2 * (u - y), 2.0 + 0.0 * u)),
    "poisson": (losses.Poisson(count_bound=4.0), 3.0, COUNTS, lambda u, y: (np.exp(u) - y, np.exp(u))),
    "negative_binomial": (
        losses.NegativeBinomial(count_bound=4.0, dispersion=0.5),
        None,
        COUNTS,
        lambda u, y: ((np.exp(u) - y) / (1 + 0.5 * np.exp(u)), np.exp(u) * (1 + 0.5 * y) / (1 + 0.5 * np.exp(u)) ** 2),
    ),
    "probit": (
        losses.Probit(),
        3.0,
        SIGNS,
        margin(lambda z: -inverse_mills(z), lambda z: inverse_mills(z) * (z + inverse_mills(z))),
    ),
    "cloglog": (losses.CLogLog(), 3.0, SIGNS, cloglog),
    "huber": (
        losses.Huber(target_bound=1.0, k=0.25),
        None,
        REAL,
        lambda u, y: (np.clip(u - y, -0.25, 0.25), (np.abs(u - y) <= 0.25) * 1.0),
    ),
    "quantile": (
        losses.Quantile(quantile=0.8, target_bound=1.0, s=0.2),
        None,
        REAL,
        lambda u, y: (Q(u - y)[0] - 0.8, Q(u - y)[1]),
    ),
}


def test_no_loss_is_left_out():
    assert {loss.name for loss, *_ in FAMILIES.values()} == {*losses.NAMES} - {"hinge", "custom"}


@pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("max_rows", [None, 3])
@pytest.mark.parametrize("name", FAMILIES)
def test_without_noise_a_fit_minimises_the_risk_of_persons_and_has_cluster_robust_errors(name, max_rows, mechanism):
    loss, radius, y, derivatives = FAMILIES[name]
    if mechanism == "objective" and name == "squared":
        mechanism = "output"
    earlier = np.array([np.sum(IDS[:i] == IDS[i]) for i in range(N)])
    shares = 1.0 / np.bincount(IDS)[IDS] if max_rows is None else np.where(earlier < max_rows, 1.0 / max_rows, 0.0)
    omega = shares * WEIGHTS
    total = 400.0
    found = dpci.fit(
        X,
        y,
        **assembled(
            loss=loss, radius=radius, mechanism=mechanism, budget=dpci.PureDP(1e9), l2_strength=STRENGTH, seed=1,
            classes=(-1, 1) if loss.to_core().target_bounds is None else None,
            persons=dpci.Persons(IDS, max_rows=max_rows), weights=dpci.Weights(WEIGHTS, bound=BOUND, total=total),
            rows=1.0,
        ),
    )  # fmt: skip

    def gradient(theta):
        return Z.T @ (omega * derivatives(Z @ theta, y)[0]) / total + STRENGTH * theta

    theta = optimize.root(gradient, found.params, tol=1e-13).x
    np.testing.assert_allclose(found.params, theta, atol=1e-6)
    slope, curvature = derivatives(Z @ theta, y)
    hessian = (Z.T * (omega * curvature)) @ Z / total + STRENGTH * np.eye(4)
    scores = np.zeros((PERSONS, 4))
    np.add.at(scores, IDS, (omega * slope)[:, None] * Z)
    meat = (scores.T @ scores - PERSONS * np.outer(scores.mean(axis=0), scores.mean(axis=0))) / total**2
    bread = np.linalg.inv(hessian)
    # Where few rows are in a corner of the loss, rounding of the parameters moves none of them over it.
    np.testing.assert_allclose(found.hessian, hessian, atol=1e-6)
    np.testing.assert_allclose(found.std_errors, np.sqrt(np.diag(bread @ meat @ bread)), rtol=1e-6)
    assert found.n_samples == PERSONS
