"""The mechanisms of Wu et al.: each returns the parameters of a model for a split, an epsilon and a seed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from papers.wu.setup import LOSS, Split

Mechanism: TypeAlias = dpci.ObjectivePerturbation | dpci.OutputPerturbation
_F64: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Callable[[Split, float, int], _F64]

RADII: Final[Mapping[str, tuple[float, ...]]] = {"R1": (0.25, 0.5, 1.0), "R2": (0.5, 1.0, 2.0)}
STRENGTHS = tuple(0.002 * 2.0**k for k in range(8))
ORACLE_RADII = (0.25, 0.5, 1.0, 2.0)
ORACLE_STRENGTHS = tuple(0.001 * 500.0 ** (k / 19) for k in range(20))
# The paper's kind of grid, an arithmetic progression; it does not say of how many.
ARITHMETIC_STRENGTHS = tuple(0.001 + 0.499 * k / 19 for k in range(20))

# Of the histogram: few enough cells for 3,000 rows to be seen above the noise of each.
_BINS: Final = {"age": 3, "height": 2, "weight": 2}
_TARGET_BINS = 5
_ORACLE_DRAWS = 100
_HISTOGRAM_STRENGTH = 1e-3
_BASELINE_STRENGTH = 1e-6

# The seal takes a little of the budget.
_MARGIN = 1.05

_KEYWORDS: Final[dict[str, Any]] = {"loss": LOSS, "rows": dpci.rows.Within(intercept=False)}


def public_strength(split: Split, epsilon: float) -> float:
    """Return the paper's data-independent lambda."""
    return math.sqrt(split.d / (split.n * epsilon))


# What the oracles' candidates perturb does not depend on epsilon.
@lru_cache(maxsize=30_000)
@dpci.threads(1)
def _minimiser(split: Split, l2_strength: float, radius: float | None = None) -> _F64:
    return dpci.baselines.non_private(
        split.X, split.y, loss=LOSS, l2_strength=l2_strength, radius=radius, intercept=False
    ).params


def non_private(split: Split, _epsilon: float, _seed: int) -> _F64:
    """Least squares."""
    return _minimiser(split, _BASELINE_STRENGTH)


def without_noise(split: Split, epsilon: float, _seed: int) -> _F64:
    """Return the minimiser that data-independent output perturbation perturbs."""
    return _minimiser(split, public_strength(split, epsilon), 1.0)


def data_independent(
    split: Split, epsilon: float, seed: int, *, paper_noise: bool = False, project: bool = False
) -> _F64:
    """Return output perturbation with W = 1, lambda = sqrt(d / (n epsilon)) and the noise of dpci or the paper."""
    chosen = {"l2_strength": public_strength(split, epsilon), "radius": 1.0}
    return _perturbed(split, epsilon, seed, chosen, paper_noise=paper_noise, project=project)


@dpci.threads(1)
def _perturbed(
    split: Split, epsilon: float, seed: int, chosen: Mapping[str, float], *, paper_noise: bool, project: bool
) -> _F64:
    share = paper_share(**chosen) if paper_noise else 1.0
    return dpci.fit(
        split.X,
        split.y,
        budget=dpci.PureDP(share * epsilon),
        mechanism=dpci.OutputPerturbation(moments="none", radius=chosen["radius"], project=project),
        l2_strength=chosen["l2_strength"],
        seed=seed,
        **_KEYWORDS,
    ).params


@dpci.threads(1)
def functional(split: Split, epsilon: float, seed: int, *, calibration: Any) -> _F64:  # a literal
    """Return the functional mechanism of Zhang et al., linear regression."""
    return dpci.baselines.functional_mechanism(
        split.X,
        split.y,
        budget=dpci.PureDP(epsilon),
        calibration=calibration,
        rows=dpci.rows.Within(intercept=False),
        seed=seed,
    ).params


@dpci.threads(1)
def histogram(split: Split, epsilon: float, seed: int) -> _F64:
    """Regression on a noisy histogram."""
    if split.source.schema is None:
        raise dpci.InvalidInput("a histogram needs rows with a schema, got schema=None")
    return dpci.baselines.projected_histogram(
        split.X,
        split.y,
        budget=dpci.PureDP(epsilon),
        axes=dpci.baselines.axes_of(split.source.schema, bins=_BINS),
        target_bins=_TARGET_BINS,
        l2_strength=_HISTOGRAM_STRENGTH,
        intercept=False,
        seed=seed,
    ).params


def _grid(radii: Sequence[float], strengths: Sequence[float]) -> list[dict[str, float]]:
    return [{"radius": radius, "l2_strength": strength} for radius in radii for strength in strengths]


def candidates(split: Split, epsilon: float, radii: str, mechanism: Mechanism) -> list[dict[str, float]]:
    """Return the paper's 24 candidates; for standard objective perturbation those that a chunk of rows allows.

    Standard objective perturbation needs n lambda (exp(epsilon) - 1) > t R², n the rows of a chunk, t = 2, R = 1.
    """
    wanted = _grid(RADII[radii], STRENGTHS)
    if mechanism.name == "output" or mechanism.variant == "cms11":
        return wanted
    least = 2.0 * _MARGIN / (chunk_size(split) * math.expm1(epsilon))
    return [each for each in wanted if each["l2_strength"] > least]


def chunk_size(split: Split) -> int:
    """Return the number of rows of one of 25 chunks, 24 to fit and one to validate, for any number of candidates."""
    return split.n // (len(RADII["R1"]) * len(STRENGTHS) + 1)


@dpci.threads(1)
def tuned(split: Split, epsilon: float, seed: int, *, radii: str, mechanism: Mechanism) -> _F64:
    """Return the winner of Algorithm 5: candidates on chunks of the rows, chosen by the exponential mechanism.

    The chunks of omitted candidates remain unused. If the other candidates had larger chunks, mechanisms would be
    compared on different numbers of rows.
    """
    grid = candidates(split, epsilon, radii, mechanism)
    used = chunk_size(split) * (len(grid) + 1)
    return dpci.tuning.tune(
        split.X[:used],
        split.y[:used],
        budget=dpci.PureDP(epsilon),
        candidates=[
            {"l2_strength": each["l2_strength"], "mechanism": replace(mechanism, radius=each["radius"])}
            for each in grid
        ],
        method="chunks",
        selection_share=1.0,
        seed=seed,
        **_KEYWORDS,
    ).result.params


def oracle(
    split: Split,
    epsilon: float,
    seed: int,
    *,
    paper_noise: bool = False,
    project: bool = False,
    arithmetic: bool = False,
) -> _F64:
    """Return output perturbation at the parameters with the smallest expected loss over the training rows.

    The expectation is over simulated noise, which differs from that of the model itself. The grid of lambda is
    logarithmic and includes the data-independent lambda, or is the paper's arithmetic grid.
    """
    gram, moments = split.X.T @ split.X / split.n, split.X.T @ split.y / split.n
    noise = dpci.lowlevel.spherical_laplace(_ORACLE_DRAWS, split.d, 1.0, seed=seed ^ 1)
    strengths = ARITHMETIC_STRENGTHS if arithmetic else (*ORACLE_STRENGTHS, public_strength(split, epsilon))
    grid = _grid(ORACLE_RADII, strengths)
    losses = []
    for chosen in grid:
        share = paper_share(**chosen) if paper_noise else 1.0
        params = _minimiser(split, **chosen) + sensitivity(split, **chosen) / (share * epsilon) * noise
        if project:
            params *= np.minimum(1.0, chosen["radius"] / np.linalg.norm(params, axis=1))[:, None]
        losses.append(np.mean(np.sum((params @ gram - 2.0 * moments) * params, axis=1)))
    return _perturbed(split, epsilon, seed, grid[int(np.argmin(losses))], paper_noise=paper_noise, project=project)


def sensitivity(split: Split, l2_strength: float, radius: float) -> float:
    """Return the sensitivity of the minimiser over the ball, to which the noise of dpci is calibrated."""
    return diameter(radius, l2_strength) / (split.n * l2_strength)


@lru_cache
def diameter(radius: float, l2_strength: float) -> float:
    """Return the largest distance of two gradients of a record at a minimiser in the ball: at most 4 (W + B)."""
    known: dpci.Plan = dpci.plan(
        n_samples=1,
        n_features=1,
        budget=dpci.PureDP(1.0),
        l2_strength=l2_strength,
        mechanism=dpci.OutputPerturbation(moments="none", radius=radius),
        **_KEYWORDS,
    )
    return known.steps[0].sensitivity * l2_strength


def paper_share(radius: float, l2_strength: float) -> float:
    """Return the share of epsilon at which the noise of dpci equals that of the paper.

    The paper calibrates to (12 W + 8)/(n lambda), and noise is proportional to sensitivity over epsilon.
    """
    return diameter(radius, l2_strength) / (12.0 * radius + 8.0)


_TUNED: Final[Mapping[str, Mechanism]] = {
    "output": dpci.OutputPerturbation(),
    "objective, cms11": dpci.ObjectivePerturbation(variant="cms11"),
    "objective, standard": dpci.ObjectivePerturbation(),
}

METHODS: Final[Mapping[str, Method]] = {
    "non-private": non_private,
    "oracle": oracle,
    "oracle, arithmetic grid": partial(oracle, arithmetic=True),
    "oracle, projected": partial(oracle, project=True),
    "oracle, 12W+8": partial(oracle, paper_noise=True),
    "data-independent": data_independent,
    "data-independent, projected": partial(data_independent, project=True),
    "data-independent, 12W+8": partial(data_independent, paper_noise=True),
    "data-independent, 12W+8, projected": partial(data_independent, paper_noise=True, project=True),
    **{
        f"{name}, {radii}": partial(tuned, radii=radii, mechanism=mechanism)
        for name, mechanism in _TUNED.items()
        for radii in RADII
    },
    "functional, printed": partial(functional, calibration="paper"),
    "functional, tight": partial(functional, calibration="tight"),
    "histogram": histogram,
}
"""The mechanisms by their names in tables and figures."""
