"""Measures of the experiments of Li et al.: real losses of private models, and losses predicted from one of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import dpci
from dpci.losses import Loss
from dpci.lowlevel import minimize_erm
from dpci.utility import UtilityCurve
from papers.finding import Repeats
from papers.rows import DataSet, wide_classes
from papers.sources import Sources

_F64: TypeAlias = NDArray[np.float64]
Mechanism: TypeAlias = Literal["paper", "tight"]
Order: TypeAlias = Literal["first_order", "newton"]

DELTA = 1e-6
REGULARISATION = 1e-2
"""The paper's Lambda, the regularisation of the sum of the losses: lambda is Lambda/n."""
LOSSES: Final[Mapping[str, Loss]] = {"LR": dpci.losses.Logistic(), "SVM": dpci.losses.HuberHinge(h=0.1)}
MECHANISMS: Final[tuple[Mechanism, ...]] = ("paper", "tight")
ORDERS: Final[tuple[Order, ...]] = ("first_order", "newton")

# Rows of the public data; the sizes of the third experiment.
N_ROWS = 10_000
SIZES = (1_000, 2_000, 5_000, 10_000, 20_000)

# Rows and columns of the generated wide data, in place of Gisette; only each so many-th epsilon is fitted there.
WIDE: Final = {"n": 2_000, "d": 1_000}
WIDE_STEP = 3

# Certified distance of a real model to its minimiser; as slopes and rows are at most 1, also the error of its loss.
_TOLERANCE = 1e-8

# A call of up to so many budgets is evaluated at each of them, a longer one interpolated.
_DIRECT = 16


class Span(NamedTuple):
    """A range of epsilon: the values at which losses are compared, and those at which the paper measures."""

    title: str
    epsilons: tuple[float, ...]
    measured: tuple[float, ...]

    def every(self, step: int) -> "Span":
        """Return the span with each step-th epsilon, and the measured ones."""
        kept = {*self.epsilons[::step], *self.measured, self.epsilons[-1]}
        return self._replace(epsilons=tuple(sorted(kept)))


SPANS: Final = {
    "low": Span("0 < epsilon <= 1", tuple(k / 20 for k in range(1, 21)), (0.1, 0.25, 0.75)),
    "high": Span("1 <= epsilon <= 10", tuple(k / 2 for k in range(2, 21)), (1.0, 2.5, 7.5)),
}


class Case(NamedTuple):
    """One case: the data set and the loss, the mechanism, and the range of epsilon."""

    data: DataSet
    loss: str
    mechanism: Mechanism
    span: Span

    @property
    def panel(self) -> str:
        """Name of the data set and the loss, as in the paper's figures."""
        return f"{self.data.title}-{self.loss}"

    @property
    def l2_strength(self) -> float:
        """Lambda/n. The tight mechanism adds nothing to it, and so uses the paper's value at the smallest epsilon."""
        added = self.data.least_l2_strength(self.span.epsilons[0]) if self.mechanism == "tight" else 0.0
        return REGULARISATION / len(self.data.X) + added


@dataclass(frozen=True)
class Losses:
    """Mean losses along a range of epsilon for each draw of the noise, without the regulariser.

    Parameters
    ----------
    epsilons : ndarray of shape (m,)
        Values at which the losses are compared.
    real : ndarray of shape (n_draws, m)
        Losses of the minimisers.
    predicted : dict
        Predicted losses by measuring point and order of the prediction, each of the same shape.
    """

    epsilons: _F64
    real: _F64
    predicted: Mapping[tuple[float, Order], _F64]

    def errors(self, at: float, order: Order) -> _F64:
        """Return |predicted - real| at all epsilons except the measuring point, shape (n_draws, m - 1)."""
        others = self.epsilons != at
        return np.asarray(np.abs(self.predicted[at, order] - self.real)[:, others])

    def mean_error(self, order: Order, at: float | None = None) -> float:
        """Return the mean error, by default over all measuring points."""
        points = self.points if at is None else [at]
        return float(np.mean([self.errors(point, order) for point in points]))

    @property
    def points(self) -> list[float]:
        """The measuring points."""
        return list(dict.fromkeys(point for point, _ in self.predicted))

    def ratios(self, at: float) -> _F64:
        """Return the errors of two steps over those of first order, as :meth:`errors`."""
        return self.errors(at, "newton") / self.errors(at, "first_order")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; losses are averages over the draws."""
        return {
            "epsilon": self.epsilons.tolist(),
            "real": self.real.mean(axis=0).tolist(),
            "predicted": [
                {
                    "measured_at": at,
                    "order": order,
                    "loss": losses.mean(axis=0).tolist(),
                    "mean_error": self.mean_error(order, at),
                    "median_error": float(np.median(self.errors(at, order))),
                }
                for (at, order), losses in self.predicted.items()
            ],
        }


Found: TypeAlias = Sequence[tuple[Case, Losses]]


def measure(case: Case, measured: Iterable[float], run: Repeats) -> Losses:
    """Fit private models at every epsilon, and predict the losses of all from each measuring point.

    The draws of the noise are the same at every epsilon, as the derivative requires.
    """
    data = case.data
    curves = {at: _curve(case, at, run) for at in measured}
    epsilons = np.array(case.span.epsilons)
    predicted = {(at, order): _predict(curve, epsilons, order) for at, curve in curves.items() for order in ORDERS}
    curve = next(iter(curves.values()))
    path = curve.path
    specs = [path.spec(epsilon) for epsilon in epsilons]
    real = np.empty((run.n_repeats, len(epsilons)))
    for draw, noise in enumerate(curve.noise):
        params = np.zeros_like(noise)
        fitted = []
        for epsilon, spec in zip(epsilons, specs, strict=True):
            params = minimize_erm(
                data.X,
                data.y,
                loss=data.loss,
                l2_strength=path.l2_strength(epsilon),
                linear_term=noise * (spec.noise_scale / path.divisor),
                start=params,
                tolerance=_TOLERANCE,
                solver="lbfgs" if data.X.shape[1] > len(data.X) // 4 else "auto",
                n_threads=run.n_threads,
            ).params
            fitted.append(params)
        real[draw] = curve.evaluator.values(np.array(fitted))
    return Losses(epsilons, real, predicted)


def _curve(case: Case, at: float, run: Repeats) -> UtilityCurve:
    return dpci.utility.curve(
        case.data.X,
        case.data.y,
        at=dpci.ApproxDP(epsilon=at, delta=DELTA),
        loss=case.data.loss,
        l2_strength=case.l2_strength,
        mechanism=dpci.ObjectivePerturbation(moments="none", calibration=case.mechanism),
        neighbors="add_remove",
        classes=(-1, 1),
        rows=dpci.rows.Within(intercept=False),
        n_draws=run.n_repeats,
        seed=run.seed,
        n_threads=run.n_threads,
    )


def _predict(curve: UtilityCurve, epsilons: _F64, order: Order) -> _F64:
    parts = np.array_split(epsilons, -(-len(epsilons) // _DIRECT))
    return np.hstack([curve.predict_draws(part, order) for part in parts])


def _data_sets(sources: Sources, run: Repeats, *, n: int, wide: bool) -> list[tuple[str, _F64, _F64]]:
    found = [("Adult", *sources.all_columns("adult", n)), ("KDD", *sources.all_columns("kddcup99", n))]
    if wide:
        found.append(("Wide", *wide_classes(run.generator("wide"), **WIDE)))
    return found


def cases(sources: Sources, run: Repeats, *, n: int | None = None, wide: bool) -> list[Case]:
    """Return the cases with n public rows each (None: 10,000), and on request those with generated wide rows."""
    return [
        Case(DataSet(title, X, y, loss), name, mechanism, span.every(WIDE_STEP) if title == "Wide" else span)
        for title, X, y in _data_sets(sources, run, n=N_ROWS if n is None else n, wide=wide)
        for name, loss in LOSSES.items()
        for mechanism in MECHANISMS
        for span in SPANS.values()
    ]
