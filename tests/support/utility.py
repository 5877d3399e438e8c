"""Utility curves on small data: every mechanism, refits with the same draw of the noise, and Monte Carlo over draws."""

import numpy as np
import pytest

import dpci
from dpci import _core
from dpci.datasets.loaders import load_adult_sample
from dpci.errors import PrivacyLeakWarning
from support.keywords import assembled

N, D, L2_STRENGTH, SEED = 2000, 8, 0.02, 3
APPROX = dpci.ApproxDP(1.0, 1e-6)
KIFER = {"at": APPROX, "calibration": "paper", "neighbors": "add_remove"}

# Every mechanism that has a curve, and every way in which its noise follows from the budget.
MECHANISMS = {
    "gaussian": {"at": APPROX}, "gaussian add/remove": {"at": APPROX, "neighbors": "add_remove"},
    "gaussian, moments": {"at": APPROX, "moments": "joint"},
    "gaussian, any sign": {"at": APPROX, "loss": dpci.losses.SoftLogistic()}, "kifer": KIFER,
    "kifer, moments": {**KIFER, "split": (0.6, 0.2, 0.2)}, "kifer, default moments": {**KIFER, "moments": "separate"},
    "pure": {"at": dpci.PureDP(1.0)}, "pure, moments": {"at": dpci.PureDP(1.0), "moments": "joint"},
    "zcdp": {"at": dpci.ZCDP(0.1)}, "zcdp, paper": {"at": dpci.ZCDP(0.1), "calibration": "paper"},
    "output, pure": {"at": dpci.PureDP(1.0), "mechanism": "output"},
    "output, zcdp": {"at": dpci.ZCDP(0.1), "mechanism": "output", "moments": "joint"},
    "output, gaussian": {"at": APPROX, "mechanism": "output", "split": (0.5, 0.25, 0.25)},
    "output, paper": {"at": APPROX, "mechanism": "output", "calibration": "paper"},
}  # fmt: skip
OBJECTIVE = [name for name in MECHANISMS if not name.startswith("output")]


def make_rows(n=N, d=D):
    rng = np.random.default_rng(21)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1).max() * (1.0 + 1e-12)
    y = (6.0 * X @ rng.standard_normal(d) + rng.logistic(size=n) > 0).astype(float)
    return X, y


ROWS = make_rows()


def make_adult_rows():
    sample = load_adult_sample()
    y = (np.asarray(sample.y) == np.asarray(sample.y).max()).astype(float)
    return sample.X / np.maximum(np.linalg.norm(sample.X, axis=1), 1.0)[:, np.newaxis] * (1 - 1e-12), y


def curve(rows=ROWS, **keywords):
    """A curve, which always warns."""
    keywords = {"moments": "joint" if "split" in keywords else "none", **keywords}
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        return dpci.utility.curve(*rows, **assembled(**{"l2_strength": L2_STRENGTH, "seed": SEED, **keywords}))


def refit(found, value, rows=ROWS, *, draw=0):
    """The parameters at another budget with the same draw, minimised afresh by another function of the core."""
    path = found.path
    spec = path.spec(value)
    noise = spec.noise_scale * _core.Utility.draw_noise(spec, found.seed, draw)
    objective = path.settings.mechanism.name == "objective"
    y = rows[1] if path.settings.core_loss.target_bounds else 2.0 * rows[1] - 1.0
    minimum = _core.minimize_erm(
        _core.Records(rows[0], y), loss=path.settings.core_loss, l2_strength=path.l2_strength(value),
        intercept=path.settings.intercept, linear_term=noise / len(y) if objective else None, start=None,
        solver="newton", tolerance=1e-12, max_iterations=500, n_threads=1,
    )["params"]  # fmt: skip
    return minimum if objective else minimum + noise


def refit_utility(found, value, rows=ROWS):
    return float(found.evaluator.values(refit(found, value, rows)[np.newaxis])[0])


def monte_carlo(found, n_draws):
    """Utilities at the measuring budget for many draws of the noise."""
    return found.evaluator.values(refits(found, n_draws))


def refits(found, n_draws):
    """Parameters at the measuring budget for many draws of the noise, which no metric changes."""
    path = found.path
    spec = path.spec(path.at)
    draws = (_core.Utility.draw_noise(spec, 77, stream) for stream in range(n_draws))
    start = found.params[0]
    return np.array([found.core.anchor(spec, noise, params=None, start=start).params for noise in draws])
