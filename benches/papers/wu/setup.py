"""Private regressions on the warfarin doses: rows, splits, and the measures of a model."""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.schema import Schema
from papers.wu.warfarin import SCHEMA, load_warfarin

_F64: TypeAlias = NDArray[np.float64]

LARGEST_DOSE = 144.0
"""Public bound of the weekly dose in mg: the target is the square root, 0 to 12 scaled to [-1, 1]."""

TARGET_BOUND = 1.0
LOSS: Final = dpci.losses.Squared(target_bound=TARGET_BOUND)

# What the attacker is taken to know, counted and measured on the same 3,450 patients: frequencies of the genotypes, and
# the residual variance of least squares, in mg a week.
PRIOR: Final = {"A/A": 1219 / 3450, "A/G": 1201 / 3450, "G/G": 1030 / 3450}
HIDDEN = "vkorc1"
RESIDUAL_VARIANCE = 1.1

HELD_OUT = 0.1
"""Share of the rows on which a model is measured."""

EPSILONS = (0.1, 0.2, 0.3, 0.5, 1.0, 3.0, 10.0)


class Patients(NamedTuple):
    """Rows of norm at most 1 and targets in [-1, 1], with the scales of a squared error and of an indicator."""

    X: _F64
    y: _F64
    names: tuple[str, ...]
    unit: float
    on: float
    schema: Schema | None

    def split(self, rng: np.random.Generator, *, held_out: float = HELD_OUT, rate: float = 1.0) -> "Split":
        """Return a random share of the rows for training, sampled at a rate, and the rest for measurement."""
        order = rng.permutation(len(self.y))
        test, kept = np.split(order, [max(1, round(held_out * len(order)))])
        kept = kept[: max(1, round(rate * len(kept)))]
        return Split(self, self.X[kept], self.y[kept], self.X[test], self.y[test])


@dataclass(frozen=True, eq=False)
class Split:
    """Rows for training, and rows on which the model is measured."""

    source: Patients
    X: _F64
    y: _F64
    X_test: _F64
    y_test: _F64

    @property
    def n(self) -> int:
        """Rows for training."""
        return len(self.y)

    @property
    def d(self) -> int:
        """Columns."""
        return int(self.X.shape[1])


def patients(largest_dose: float = LARGEST_DOSE, *, constant: bool = False) -> Patients:
    """Return the 3,450 patients with 14 columns, as in the paper; ``constant`` appends a column of ones.

    Raises
    ------
    DatasetUnavailable
        The file is not in ``DPCI_DATA``.
    """
    data = load_warfarin(unknown_race="reference", largest_dose=largest_dose)
    X, names, schema = np.asarray(data.X), data.names, data.schema
    on = 1.0 / SCHEMA.row_scale
    if constant:
        # Rows of norm 1 and a one, scaled to norm 1 again; the schema knows no such column.
        scale = math.sqrt(2.0 * (1.0 + 2.0**-40))
        X, on = np.column_stack([X, np.ones(len(X))]) / scale, on / scale
        names, schema = (*names, "constant"), None
    return Patients(X, data.y, names, largest_dose / 4.0, on, schema)


@dataclass(frozen=True)
class Model:
    """Parameters of a linear model that predicts."""

    params: _F64
    names: tuple[str, ...]

    def predict(self, X: _F64, /) -> _F64:
        """Return a number for each row."""
        return np.asarray(X @ self.params)


class Score(NamedTuple):
    """The measures of one model: mean squared error in mg a week, and accuracy of model inversion."""

    mse: float
    inversion: float


def score(split: Split, params: _F64) -> Score:
    """Measure a model on the held-out rows."""
    source = split.source
    model = Model(params, source.names)
    error = float(np.mean((model.predict(split.X_test) - split.y_test) ** 2))
    attacked = dpci.audit.model_inversion(
        model,
        split.X_test,
        split.y_test,
        column=HIDDEN,
        prior=PRIOR,
        residual_variance=RESIDUAL_VARIANCE / source.unit,
        on=source.on,
    )
    return Score(error * source.unit, attacked.accuracy)


def noise_error(split: Split, scale: float) -> float:
    """Return the mean squared error in mg a week that spherical Laplace noise of this scale causes by itself.

    A coordinate of the noise b has the variance (d + 1) scale**2, so x'b has that variance times ||x||**2.
    """
    return (split.d + 1) * scale**2 * float(np.mean(np.sum(split.X_test**2, axis=1))) * split.source.unit


def standard_error(values: _F64) -> _F64:
    """Return the standard error of the mean over the repeats; 0 for a single repeat."""
    return np.asarray(values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values)))
