"""Fits at extreme public parameters on adversarial data: those that are not refused beforehand must not fail."""

import warnings
from typing import Any

import numpy as np

import dpci
from dpci.errors import DpciError, DpciWarning, InvalidInput, RegularizationTooSmall
from support.keywords import assembled

_EDGE = 1.0 - 1e-12


def _size(rng: np.random.Generator, low: float, high: float) -> float:
    return float(10.0 ** rng.uniform(low, high))


def _one_row(X: Any, _rng: Any, _direction: Any) -> Any:
    return np.where(np.arange(len(X))[:, None] == 0, X, 0.0)


# Of rows at random, a generator and a direction.
_ROWS: dict[str, Any] = {
    "zeros": lambda X, _rng, _direction: np.zeros_like(X),
    "one row": _one_row,
    "equal": lambda X, _rng, _direction: np.repeat(X[:1], len(X), axis=0),
    "collinear": lambda X, rng, direction: np.outer(rng.normal(size=len(X)), direction),
    "nearly equal": lambda X, _rng, direction: direction + 1e-9 * X,
    "signs": lambda X, rng, direction: np.outer(rng.choice([-1.0, 1.0], size=len(X)), direction),
    "sparse": lambda X, rng, _direction: X * (rng.uniform(size=X.shape) < 0.1),
    "at random": lambda X, _rng, _direction: X,
}
_LENGTHS: dict[str, Any] = {
    "at the bound": lambda _n, _rng: 1.0,
    "tiny": lambda _n, rng: _size(rng, -12.0, -1.0),
    "far apart": lambda n, rng: 10.0 ** rng.uniform(-8.0, 0.0, size=(n, 1)),
}
_TARGETS: dict[str, Any] = {
    "random": lambda X, rng, _direction: rng.choice([-1.0, 1.0], size=len(X)),
    "one class": lambda X, _rng, _direction: np.ones(len(X)),
    "separable": lambda X, _rng, direction: np.where(X @ direction >= 0.0, 1.0, -1.0),
    "all but one": lambda X, _rng, _direction: np.where(np.arange(len(X)) == 0, -1.0, 1.0),
}


def random_data(rng: np.random.Generator, n: int, d: int, row_norm: float) -> tuple[str, Any, Any]:
    """Return the kind of the data, rows of norm at most the bound, and targets in {-1, 1}."""
    kind, length, target = (str(rng.choice(list(kinds))) for kinds in (_ROWS, _LENGTHS, _TARGETS))
    direction = rng.normal(size=d)
    X = _ROWS[kind](rng.normal(size=(n, d)), rng, direction)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    X = np.divide(X, norms, out=np.zeros_like(X), where=norms > 0.0) * (row_norm * _EDGE) * _LENGTHS[length](n, rng)
    return f"{kind}, {length}, {target}", X, _TARGETS[target](X, rng, direction)


def _logistic() -> Any:
    return dpci.losses.Custom(
        lambda u, y: np.logaddexp(0.0, -y * u),
        lambda u, y: -y / (1.0 + np.exp(np.clip(y * u, -700, 700))),
        lambda u, _: 0.25 / np.cosh(np.clip(u / 2, -300, 300)) ** 2,
        slope_bound=1.0,
        curvature_bound=0.25,
        one_signed=True,
    )


def random_settings(rng: np.random.Generator, dims: tuple[int, ...]) -> tuple[int, int, dict[str, Any]]:
    """Return rows, columns and keywords of a fit."""
    n, d = int(_size(rng, 0.0, 2.5)), int(rng.choice(dims))
    loss = rng.choice(["logistic", "huber", "smooth", "squared", "soft_logistic", "hinge", "custom"])
    budgets = (
        lambda: dpci.PureDP(_size(rng, -2.0, 2.5)),
        lambda: dpci.ZCDP(_size(rng, -3.0, 4.0)),
        lambda: dpci.ApproxDP(_size(rng, -2.0, 2.0), 1e-6),
    )
    keywords: dict[str, Any] = {
        "budget": budgets[rng.integers(3)](),
        "l2_strength": _size(rng, -14.0, 4.0),
        "rows": _size(rng, -5.0, 6.0),
        "mechanism": "output" if loss == "hinge" else str(rng.choice(["objective", "output"])),
        "loss": {
            "huber": dpci.losses.HuberHinge(_size(rng, -6.0, 2.0)),
            "smooth": dpci.losses.SmoothHinge(_size(rng, -3.0, 1.0)),
            "squared": dpci.losses.Squared(1.0),
            "custom": _logistic(),
        }.get(str(loss), str(loss)),
        "moments": "none" if loss == "hinge" or rng.uniform() < 0.5 else "joint",
        "intercept": bool(rng.uniform() < 0.3),
        "neighbors": str(rng.choice(["replace_one", "add_remove"])),
    }
    if loss == "squared" or rng.uniform() < 0.3:
        keywords["radius"] = _size(rng, -3.0, 4.0)
    if keywords["neighbors"] == "add_remove":
        keywords["neighbors"] = dpci.AddRemove(max(1, int(n * rng.uniform(0.1, 2.0))))
    if loss not in {"squared", "soft_logistic"}:
        keywords["classes"] = (-1, 1)
    return n, d, keywords


def _outcome(facts: str, fit: Any) -> tuple[str, str]:
    """Return "refused", "fitted" or "failed", and what it was."""
    with warnings.catch_warnings(action="ignore", category=DpciWarning):
        try:
            fit()
        except (RegularizationTooSmall, InvalidInput) as error:
            return "refused", f"{facts}: {error}"
        except DpciError as error:
            return "failed", f"{facts}: {type(error).__name__} {error}"
    return "fitted", facts


def attempt(seed: int, *, dims: tuple[int, ...] = (1, 2, 3, 8)) -> tuple[str, str]:
    """Return "refused", "fitted" or "failed", and what it was."""
    rng = np.random.default_rng(seed)
    n, d, keywords = random_settings(rng, dims)
    kind, X, y = random_data(rng, n, d, keywords["rows"])
    if keywords["loss"] == "soft_logistic":
        y = (y + 1.0) / 2.0
    facts = f"seed {seed}: n={n}, d={d}, {kind}, {keywords}"
    rows: tuple[Any, ...] = (X, y)
    if rng.uniform() < 0.1 and keywords["loss"] != "hinge" and n > 1:
        half = n // 2
        rows = (dpci.Chunks([(X[:half], y[:half]), (X[half:], y[half:])]),)
    return _outcome(facts, lambda: dpci.fit(*rows, **assembled(seed=seed, **keywords)))


def _far_out(rng: np.random.Generator) -> tuple[Any, Any, float, Any, float, float]:
    """Return rows, targets, the bound on the rows, a loss, its curvature bound and a budget's rho.

    Strong noise of the objective pulls along columns of very different sizes; along the small ones the rows hardly
    curve the risk.
    """
    n, d = int(rng.choice([50, 100, 300])), int(rng.choice([20, 40, 80]))
    row_norm = _size(rng, 0.0, 3.6)
    h, s = _size(rng, -3.0, 0.0), _size(rng, -3.0, 0.0)
    losses = dpci.losses.Logistic(), dpci.losses.HuberHinge(h), dpci.losses.SmoothHinge(s)
    kind = rng.integers(3)
    X = rng.normal(size=(n, d)) * np.logspace(0.0, -float(rng.choice([0.0, 3.0, 6.0])), d)
    X *= row_norm * _EDGE / np.linalg.norm(X, axis=1)[:, None]
    rho = _size(rng, 0.0, 2.6)
    y = np.where(rng.uniform(size=n) < 0.5, -1.0, 1.0)
    return X, y, row_norm, losses[kind], (0.25, 0.5 / h, 0.25 / s)[kind], rho


def far_out(seed: int, condition: float) -> tuple[Any, Any, dict[str, Any], float]:
    """Return rows, targets and keywords of a hard minimisation, and a tolerance."""
    rng = np.random.default_rng(seed)
    X, y, row_norm, loss, curvature, rho = _far_out(rng)
    linear_term = rng.normal(size=X.shape[1]) * 2.0 * row_norm / np.sqrt(2.0 * rho) / len(X)
    l2_strength = curvature * row_norm**2 / condition
    keywords = {"loss": loss, "l2_strength": l2_strength, "linear_term": linear_term}
    return X, y, keywords, 1e-8 * float(np.linalg.norm(linear_term)) / l2_strength


def attempt_far_out(seed: int) -> tuple[str, str]:
    """Return what :func:`attempt` does, of hard fits: conditions from 10⁸ to 10¹¹, some refused."""
    rng = np.random.default_rng(seed)
    X, y, row_norm, loss, curvature, rho = _far_out(rng)
    keywords: dict[str, Any] = {
        "budget": dpci.ZCDP(rho),
        "l2_strength": curvature * row_norm**2 / _size(rng, 8.0, 11.0),
        "rows": row_norm,
        "loss": loss,
        "moments": "none",
        "intercept": False,
        "classes": (-1, 1),
    }
    facts = f"seed {seed}: n={len(X)}, d={X.shape[1]}, {keywords}"
    return _outcome(facts, lambda: dpci.fit(X, y, **assembled(seed=seed, **keywords)))


def attempt_several(seed: int) -> tuple[str, str]:
    """Return what :func:`attempt` does, of the multinomial loss: conditions up to those that are refused."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(_size(rng, 0.5, 2.5)), int(rng.choice([1, 2, 3, 8])), int(rng.choice([3, 4, 6]))
    mechanism, row_norm = str(rng.choice(["objective", "output"])), _size(rng, -3.0, 4.0)
    budgets = (
        lambda: dpci.PureDP(_size(rng, 0.0, 3.0)),
        lambda: dpci.ZCDP(_size(rng, -1.0, 4.0)),
        lambda: dpci.ApproxDP(_size(rng, 0.0, 2.0), 1e-6),
    )
    keywords: dict[str, Any] = {
        "budget": budgets[rng.integers(3)](),
        "l2_strength": 0.5 * row_norm**2 / _size(rng, 2.0, 8.0 if mechanism == "objective" else 12.0),
        "rows": row_norm,
        "mechanism": mechanism,
        "moments": str(rng.choice(["none", "joint"])),
        "intercept": bool(rng.uniform() < 0.3),
    }
    kind, X, _ = random_data(rng, n, d, row_norm)
    targets = str(rng.choice(["random", "one class", "separable"]))
    y = {
        "random": rng.integers(0, n_classes, n),
        "one class": np.full(n, rng.integers(0, n_classes)),
        "separable": (X @ rng.normal(size=(d, n_classes))).argmax(axis=1),
    }[targets]
    facts = f"seed {seed}: n={n}, d={d}, {n_classes} classes, {kind}, {targets}, {keywords}"
    keywords = assembled(classes=range(n_classes), seed=seed, **keywords)
    return _outcome(facts, lambda: dpci.multinomial.fit(X, y, **keywords))
