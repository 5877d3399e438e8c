"""Private regressions on the warfarin doses: rows, splits, what is measured of a model, and the mechanisms compared."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.datasets import load_warfarin
from dpci.reproduce.finding import Repeats

_F64: TypeAlias = NDArray[np.float64]

LARGEST_DOSE = 144.0
"""Public bound of the weekly dose in mg: the target is the square root, 0 to 12 scaled to [-1, 1]."""

TARGET_BOUND = 1.0
LOSS: Final = dpci.losses.Squared(target_bound=TARGET_BOUND)

# The attacker's public knowledge: frequencies of the genotypes among the 3,450 patients, and the residual variance of the
# consortium's kind of model, in mg a week.
PRIOR: Final = {"A/A": 1219 / 3450, "A/G": 1201 / 3450, "G/G": 1030 / 3450}
HIDDEN = "vkorc1"
RESIDUAL_VARIANCE = 1.1

HELD_OUT = 0.1
"""Share of the rows on which a model is measured."""

RADII: Final[Mapping[str, tuple[float, ...]]] = {"R1": (0.25, 0.5, 1.0), "R2": (0.5, 1.0, 2.0)}
STRENGTHS = tuple(0.002 * 2.0**k for k in range(8))
ORACLE_RADII = (0.25, 0.5, 1.0, 2.0)
ORACLE_STRENGTHS = tuple(0.001 + 0.499 * k / 19 for k in range(20))

EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0)

# The paper's noise is that of sensitivity (12 W + 8)/(n lambda) where 4 (W + B)/(n lambda) is enough.
_PAPER_FACTOR = 4.0 * (1.0 + TARGET_BOUND) / (12.0 + 8.0)


class Patients(NamedTuple):
    """Rows of norm at most 1, targets in [-1, 1], and what one unit of a squared error of these is in mg a week."""

    X: _F64
    y: _F64
    names: tuple[str, ...]
    unit: float

    def split(self, rng: np.random.Generator) -> "Split":
        """Return a random part for training, and the rest to measure on."""
        order = rng.permutation(len(self.y))
        held_out = order[: max(1, round(HELD_OUT * len(self.y)))]
        kept = order[len(held_out) :]
        return Split(self.X[kept], self.y[kept], self.X[held_out], self.y[held_out], self.names, self.unit)


class Split(NamedTuple):
    """Rows for training, and rows on which the model is measured."""

    X: _F64
    y: _F64
    X_test: _F64
    y_test: _F64
    names: tuple[str, ...]
    unit: float

    @property
    def n(self) -> int:
        """Rows for training."""
        return len(self.y)

    @property
    def d(self) -> int:
        """Columns."""
        return int(self.X.shape[1])


def patients(largest_dose: float = LARGEST_DOSE, *, constant: bool = False) -> Patients:
    """Return the 3,450 patients with 14 columns, as in the paper; ``constant`` appends one, rows scaled to norm 1 again.

    Raises
    ------
    DatasetUnavailable
        The file is not in ``DPCI_DATA``.
    """
    data = load_warfarin(unknown_race="reference", largest_dose=largest_dose)
    X, names = np.asarray(data.X), data.names
    if constant:
        X = np.column_stack([X, np.ones(len(X))]) / math.sqrt(2.0 * (1.0 + 2.0**-40))
        names = (*names, "constant")
    return Patients(X, data.y, names, largest_dose / 4.0)


@dataclass(frozen=True)
class Model:
    """Parameters, as something that predicts."""

    params: _F64

    def predict(self, X: _F64, /) -> _F64:
        """Return a number for each row."""
        return X @ self.params


class Score(NamedTuple):
    """What is measured of one model: mean squared error in mg a week, and accuracy of model inversion."""

    mse: float
    inversion: float


def score(split: Split, params: _F64) -> Score:
    """Measure a model on the rows that were held out."""
    model = Model(params)
    error = float(np.mean((model.predict(split.X_test) - split.y_test) ** 2)) * split.unit
    columns = [position for position, name in enumerate(split.names) if name.startswith(f"{HIDDEN}=")]
    keys = [split.names[position].split("=", 1)[1] for position in columns]
    prior: dict[Any, float] = {keys.index(level) if level in keys else -1: share for level, share in PRIOR.items()}
    attacked = dpci.audit.model_inversion(
        model,
        split.X_test,
        split.y_test,
        column=columns,
        prior={columns[key] if key >= 0 else "reference": share for key, share in prior.items()},
        residual_variance=RESIDUAL_VARIANCE / split.unit,
    )
    return Score(error, attacked.accuracy)


Method: TypeAlias = Callable[[Split, float, int], _F64]
