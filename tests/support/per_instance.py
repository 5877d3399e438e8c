"""Per-instance privacy from scratch: losses, densities, bounds and small releases, for the tests of the reports."""

import functools
import warnings

import numpy as np
from scipy import optimize, stats

import dpci
from dpci.errors import PrivacyLeakWarning
from support.keywords import bounded

BUDGET = dpci.ApproxDP(1.0, 1e-6)
LOSSES = {
    "logistic": dpci.losses.Logistic(),
    "soft_logistic": dpci.losses.SoftLogistic(),
    "huber": dpci.losses.HuberHinge(0.5),
}


def make_rows(n=40, d=3, *, soft=False, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X *= (rng.uniform(0.2, 0.999, n) / np.linalg.norm(X, axis=1))[:, None]
    return X, rng.uniform(size=n) if soft else np.where(rng.uniform(size=n) < 0.5, 1.0, -1.0)


def derivatives(name, u, y):
    """Slope and curvature of a loss, written from its definition."""
    if name == "huber":
        h, z = 0.5, y * u
        inside = np.abs(1 - z) <= h
        return y * np.where(inside, -(1 + h - z) / (2 * h), np.where(z < 1, -1.0, 0.0)), inside / (2 * h)
    p = 1 / (1 + np.exp(-u))
    return p - (y if name == "soft_logistic" else (y + 1) / 2), p * (1 - p)


def noise_and_hessian(name, X, y, params, ridge):
    """The noise b that leads to the parameters, and the Hessian of the sum objective there."""
    slope, curvature = derivatives(name, X @ params, y)
    hessian = sum((c * np.outer(x, x) for c, x in zip(curvature, X, strict=True)), ridge * np.eye(len(params)))
    return -(X.T @ slope + ridge * params), hessian


def log_density(name, X, y, params, ridge, std_dev):
    """Log-density of the parameters, by change of variables from the noise."""
    noise, hessian = noise_and_hessian(name, X, y, params, ridge)
    return stats.norm.logpdf(noise, scale=std_dev).sum() + np.linalg.slogdet(hessian)[1]


def gaussian_epsilon(mu, delta):
    """Least epsilon of a Gaussian release, by SciPy's root finder on the profile of Balle & Wang (2018)."""

    def excess(epsilon):
        near, far = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.logcdf(-mu / 2 - epsilon / mu)
        return near - np.exp(epsilon + far) - delta

    if mu == 0 or excess(0.0) <= 0:
        return 0.0
    return optimize.brentq(excess, 0.0, 10 + mu * mu + 40 * mu, xtol=1e-14)


def least_leverage(noisy, radius, ridge, x):
    """Minimum over s of x' (s (noisy - r I) + (1 - s) ridge I)^-1 x where it is positive definite, on a dense grid."""
    values, vectors = np.linalg.eigh(noisy - radius * np.eye(len(x)))
    end = min(1.0, ridge / (ridge - values[0])) if values[0] < 0 else 1.0
    shares = end * np.concatenate(
        [np.linspace(0, 1, 5001)[:-1], np.geomspace(1e-7, 1e-2, 1000), 1 - np.geomspace(1e-9, 1e-2, 1000)]
    )
    if values[0] > 0:
        shares = np.append(shares, 1.0)
    terms = (vectors.T @ x) ** 2 / (shares[:, None] * values + (1 - shares[:, None]) * ridge)
    return terms.sum(axis=1).min()


def report(X, y, **keywords):
    settings = {"budget": BUDGET, "l2_strength": 0.1, "n_public": len(X), "seed": 1, "intercept": False}
    return dpci.per_instance.report(X, y, **bounded(**{**settings, **keywords}))


@functools.wraps(dpci.per_instance.ex_post_losses_not_private)
def exact_losses(*arguments, **keywords):
    """The exact losses without their warning."""
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        return dpci.per_instance.ex_post_losses_not_private(*arguments, **keywords)
