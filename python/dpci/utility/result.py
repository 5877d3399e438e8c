"""The result of a utility curve: predictions at other budgets, their mean over the noise, budgets for a utility."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.optional import optional
from dpci.base.progress import progress_bar
from dpci.base.validation import broken, check_choice, check_positive, check_real, check_reals
from dpci.budgets import Budget
from dpci.data.arrays import as_numbers, read_only
from dpci.errors import InvalidInput
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Facts, Paragraph, Table, short_form
from dpci.shown.text import as_text
from dpci.utility.expected import BudgetPath, ExpectedUtility, NoiseAverage, average, worst_case_loss
from dpci.utility.metrics import CallerMetric, RowMetric
from dpci.utility.search import Refits, least_root, tabulate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_F64: TypeAlias = NDArray[np.float64]
Method: TypeAlias = Literal["newton", "first_order"]
_METHODS: tuple[Method, ...] = ("newton", "first_order")

# How far on either side of the measuring budget one for a utility is searched, as a factor, and points of the search.
_REACH, _SEARCH_POINTS = 100.0, 64

# Points and span of the table and the plot where the caller names none.
_SHOWN_POINTS, _SHOWN_SPAN = 41, 10.0

# Noise up to which they are shown, as a multiple of that at the measuring budget: where a mechanism ends it has a pole.
_SHOWN_NOISE = 20.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UtilityCurve(Displayed):
    """Utility as a function of the budget's first number (epsilon; rho under zCDP), from one measuring point.

    Made by :func:`dpci.utility.curve`. NOT PRIVATE: everything here is computed from the data.

    Attributes
    ----------
    names : tuple of str
        Parameters, the intercept last.
    seed : int
        Seed of the noise.
    n_steps : int
        Newton steps of a prediction.
    private : bool
        False, always.
    """

    path: BudgetPath = field(repr=False)
    names: tuple[str, ...]
    seed: int
    n_steps: int
    core: _core.Utility = field(repr=False)
    evaluator: RowMetric | CallerMetric = field(repr=False)
    anchors: tuple[_core.UtilityAnchor, ...] = field(repr=False)
    progress: bool | None = field(default=None, repr=False)
    private: ClassVar[bool] = False

    @property
    def at(self) -> Budget:
        """The measuring budget."""
        return self.path.settings.budget

    @property
    def metric(self) -> str:
        """Name of what is measured."""
        return self.evaluator.name

    @property
    def n_draws(self) -> int:
        """Draws of the noise that are averaged."""
        return len(self.anchors)

    @cached_property
    def params(self) -> _F64:
        """Parameters at the measuring budget for each draw, shape (n_draws, k), read-only."""
        return read_only(np.array([anchor.params for anchor in self.anchors]))

    @cached_property
    def params_derivative(self) -> _F64:
        """Derivative of the parameters in the budget's first number for a fixed draw, shape (n_draws, k), read-only."""
        slopes = self.path.spec(self.path.at).noise_scale_slope, self.path.l2_slope(self.path.at)
        return read_only(np.array([self.core.derivative(anchor, *slopes) for anchor in self.anchors]))

    @cached_property
    def noise(self) -> _F64:
        """Draws of the noise at scale 1, shape (n_draws, k), read-only; a budget has these times its scale."""
        spec, draws = self.path.spec(self.path.at), range(self.n_draws)
        return read_only(np.array([_core.Utility.draw_noise(spec, self.seed, draw) for draw in draws]))

    @property
    def utility(self) -> float:
        """Utility at the measuring budget, averaged over the draws."""
        return float(self._utilities.mean())

    @property
    def derivative(self) -> float:
        """Derivative of the utility in the budget's first number at the measuring budget, averaged over the draws."""
        return float(self._derivatives.mean())

    def predict_utility(self, eps: ArrayLike, method: Method = "newton") -> Any:  # noqa: ANN401  # float or array
        """Predict the utility at other budgets, averaged over the draws.

        Parameters
        ----------
        eps : float or array-like
            First number of the budget: epsilon, or rho under zCDP.
        method : {"newton", "first_order"}
            "newton": parameters from ``n_steps`` Newton steps, and the utility there; above 16 budgets interpolated to
            about 1e-4 of its range over them, or 2e-3 for losses whose curvature jumps. The steps are not damped: if
            the curve was measured where the noise is large, they can overshoot at much greater budgets
            (docs/utility.md). "first_order": the tangent at the measuring point, as in Li et al.

        Returns
        -------
        float or numpy.ndarray
            In the shape of ``eps``.

        Raises
        ------
        InvalidInput
            For budgets that are not finite and above zero.
        RegularizationTooSmall
            Where objective perturbation has no noise to offer at so small a budget.
        """
        return _shaped(self.predict_draws(eps, method).mean(axis=0))

    def predict_draws(self, eps: ArrayLike, method: Method = "newton") -> _F64:
        """Predict as :meth:`predict_utility`, for each draw: shape (n_draws, *shape of eps)."""
        values = _budgets(self.path.number, eps)
        if check_choice("method", method, _METHODS) == "first_order":
            change = values.ravel() - self.path.at
            flat = self._utilities[:, np.newaxis] + self._derivatives[:, np.newaxis] * change
        elif values.size:
            flat = self._tabulated(self._newton, values)
        else:
            flat = np.empty((self.n_draws, 0))
        return flat.reshape((self.n_draws, *values.shape))

    def standard_error(self, eps: ArrayLike, method: Method = "newton") -> Any:  # noqa: ANN401  # float or array
        """Return the standard error of :meth:`predict_utility` as a mean over the draws; NaN for one draw."""
        draws = self.predict_draws(eps, method)
        if self.n_draws == 1:
            return _shaped(np.full(draws.shape[1:], np.nan))
        return _shaped(draws.std(axis=0, ddof=1) / np.sqrt(self.n_draws))

    def predict_params(self, eps: ArrayLike) -> _F64:
        """Predict the parameters by Newton steps: shape (n_draws, *shape of eps, k)."""
        values = _budgets(self.path.number, eps)
        specs = [self.path.spec(value) for value in values.ravel()]
        found = np.array([self.core.predict(anchor, specs, self.n_steps) for anchor in self.anchors])
        return found.reshape((self.n_draws, *values.shape, len(self.names)))

    def expected_utility(self, eps: ArrayLike) -> ExpectedUtility:
        """Return mean and standard deviation of the utility over the noise, to second order in the noise.

        Unlike a prediction, this does not depend on the draw. It is exact in the limit of small noise. A Gaussian
        smoothing of every row replaces third derivatives, so that it also works for losses whose curvature jumps
        (docs/utility.md).

        Parameters
        ----------
        eps : float or array-like
            First number of the budget.

        Returns
        -------
        ExpectedUtility
            ``mean`` and ``std`` in the shape of ``eps``.
        """
        values = _budgets(self.path.number, eps)
        flat = np.empty((2, 0))
        if values.size:
            flat = self._tabulated(self._expected, values)
        mean, std = flat.reshape((2, *values.shape))
        return ExpectedUtility(_shaped(mean), _shaped(np.maximum(std, 0.0)))

    def worst_case(self, eps: ArrayLike) -> Any:  # noqa: ANN401  # float or array
        """Return a bound on the mean loss averaged over the noise, with explicit constants (docs/utility.md).

        This is the bound of Kifer, Smith & Thakurta (Theorem 2 of Li et al.). It holds for every data set with this
        minimiser, and is far above the actual loss.

        Raises
        ------
        InvalidInput
            For a metric other than the loss.
        """
        if self.metric != "loss":
            raise InvalidInput(f"worst_case requires metric='loss', got metric={self.metric!r}")
        values = _budgets(self.path.number, eps)
        bounds = [worst_case_loss(self.path, value, self._plain) for value in values.ravel()]
        return _shaped(np.array(bounds).reshape(values.shape))

    def epsilon_for(
        self, target: float, method: Method = "newton", *, within: tuple[float, float] | None = None
    ) -> float:
        """Return the budget at which the utility is ``target``, for the same draws of the noise.

        Parameters
        ----------
        target : float
            The target utility.
        method : {"newton", "first_order"}
            "newton": predictions give candidates, and fits that start from the predictions confirm and refine them. The
            result is the smallest confirmed budget, which is the most private. If none is confirmed, fits at thirteen
            budgets search for another. "first_order": Algorithm 1 of Li et al., without any fit.
        within : (least, greatest), optional
            Range of the search; None: a factor of 100 on either side of the measuring budget.

        Returns
        -------
        float
            First number of the budget, to about 1e-4 of itself with "newton".

        Raises
        ------
        InvalidInput
            If no budget in the range reaches the target; the message names the utilities that are reached.
        RegularizationTooSmall
            Where objective perturbation has no noise to offer in the whole range.
        """
        target = check_real("target", target)
        if not np.isfinite(target):
            raise InvalidInput(f"target must be finite, got target={target}")
        least, greatest = self._search_range(within)
        if check_choice("method", method, _METHODS) == "first_order":
            return self._first_order_root(target, least, greatest)
        values = np.geomspace(least, greatest, _SEARCH_POINTS)
        refits = Refits(self.core, self.path, self.seed, self.n_steps, self.anchors)
        with progress_bar(None, "fits", wanted=self.progress) as advance:

            def gap(value: float) -> float:
                found = float(self.evaluator.values(refits.params(value)).mean()) - target
                advance(self.n_draws)
                return found

            # Not interpolated: small differences matter here.
            found, gaps = least_root(lambda some: self._newton(some).mean(axis=0) - target, gap, values)
        if found is None:
            raise self._out_of_reach(target, gaps + target, (least, greatest))
        return found

    def to_frame(self, eps: ArrayLike | None = None) -> "pd.DataFrame":
        """One row for each budget, with all predictions; needs pandas.

        Parameters
        ----------
        eps : array-like, optional
            First numbers of the budgets; None: 41 within a factor of 10 of the measuring one, where the noise is at
            most 20 times that at the measuring one.
        """
        with optional("pandas", extra="pandas", what="to_frame"):
            import pandas as pd  # noqa: PLC0415  # optional
        return pd.DataFrame(self.columns(eps))

    def columns(self, eps: ArrayLike | None = None) -> dict[str, _F64]:
        """Return the columns of :meth:`to_frame`."""
        values = self._shown() if eps is None else _budgets(self.path.number, eps).ravel()
        expected = self.expected_utility(values)
        columns = {
            self.path.number: values,
            "newton": self.predict_utility(values),
            "first_order": self.predict_utility(values, "first_order"),
            "expected": expected.mean,
            "expected_std": expected.std,
        }
        if self.n_draws > 1:
            columns["newton_se"] = self.standard_error(values)
        if self.metric == "loss":
            columns["worst_case"] = self.worst_case(values)
        return columns

    def summary(self) -> str:
        """Table of a few budgets around the measuring one, and facts about the measurement."""
        return as_text(self._document())

    def _document(self) -> Document:
        columns = self.columns(self._shown()[::5])
        rows = [[f"{value:.4g}" for value in row] for row in zip(*columns.values(), strict=True)]
        units = {"persons": self.path.settings.unit, "weights": self.path.settings.weights}
        facts = [
            ("measured at", str(self.at)),
            (self.metric.replace("_", " "), f"{self.utility:.6g}"),
            ("its derivative", f"{self.derivative:.4g} per unit of {self.path.number}"),
            ("draws of the noise", f"{self.n_draws:,} from seed {self.seed}"),
            *((name, str(rule)) for name, rule in units.items() if rule is not None),
        ]
        table = Table([name.replace("_", " ") for name in columns], rows)
        note = Paragraph(f"{NOT_PRIVATE}: a utility curve is computed from the data.")
        return Document(parts=[table, Facts(facts), note])

    def plot(self, ax: "Axes | None" = None, eps: ArrayLike | None = None) -> "Axes":
        """Draw the predicted utility, its mean and spread over the noise, and the worst-case bound of a loss.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: a new figure, with a second panel for the bound.
        eps : array-like, optional
            First numbers of the budgets; None: as for :meth:`to_frame`.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the predictions.
        """
        from dpci.utility.plot import Measured, plot_curve  # noqa: PLC0415  # matplotlib is optional

        if eps is not None and np.size(eps) == 0:
            raise InvalidInput("eps must hold at least one budget to plot, got none")
        measured = Measured(self.path.number, self.path.at, self.utility, self.metric, self.n_draws, str(self.at))
        return plot_curve(measured, self.columns(eps), ax)

    def __repr__(self) -> str:
        return short_form(self, f"{self.metric} {self.utility:.6g} at {self.at}", NOT_PRIVATE, private=True)

    @cached_property
    def _utilities(self) -> _F64:
        return self.evaluator.values(self.params)

    @cached_property
    def _derivatives(self) -> _F64:
        pairs = zip(self.params, self.params_derivative, strict=True)
        return np.array([self.evaluator.gradient(params) @ change for params, change in pairs])

    @cached_property
    def _plain(self) -> NoiseAverage:
        """The metric around the minimiser without noise at the caller's own λ."""
        return average(self.core, self.evaluator, self.path, self.path.settings.strength, None)

    def _newton(self, values: _F64) -> _F64:
        points = self.predict_params(values)
        return np.array([self.evaluator.values(of_draw) for of_draw in points])

    def _expected(self, values: _F64) -> _F64:
        found = []
        around = self._plain
        for value in values:
            if self.path.adds_regularisation:
                l2_strength = self.path.l2_strength(value)
                around = average(self.core, self.evaluator, self.path, l2_strength, around.center.params)
            found.append(around.at(self.path.spec(value)))
        return np.array(found).T

    def _tabulated(self, curve: Callable[[_F64], _F64], values: _F64) -> _F64:
        flat = values.ravel()
        least, greatest = flat.min(), flat.max()
        self.path.spec(least)  # refused by its own name rather than by that of a point of the interpolation
        return tabulate(lambda logs: curve(np.clip(np.exp(logs), least, greatest)), np.log(flat))

    def _first_order_root(self, target: float, least: float, greatest: float) -> float:
        change = target - self.utility
        if self.derivative == 0.0 and change == 0.0:
            return least  # every budget has this utility
        found = self.path.at + change / self.derivative if self.derivative else np.nan
        if not least <= found <= greatest:
            reached = self.predict_utility([least, greatest], "first_order")
            raise self._out_of_reach(target, reached, (least, greatest))
        return float(found)

    def _shown(self) -> _F64:
        at = self.path.at
        loudest = _SHOWN_NOISE * self.path.spec(at).noise_scale
        least = self.path.least_offered(at / _SHOWN_SPAN, at, loudest=loudest)
        return np.geomspace(least, at * _SHOWN_SPAN, _SHOWN_POINTS)

    def _search_range(self, within: tuple[float, float] | None) -> tuple[float, float]:
        """Return the ends of a search, the lower one where the mechanism has noise to offer."""
        if within is None:
            least, greatest = self.path.at / _REACH, self.path.at * _REACH
        else:
            least, greatest = (check_positive("within", end) for end in check_reals("within", within, 2))
            if not least < greatest:
                raise broken("within", "(least, greatest)", within)
        return self.path.least_offered(least, greatest), greatest

    def _out_of_reach(self, target: float, reached: _F64, within: tuple[float, float]) -> InvalidInput:
        return InvalidInput(
            f"target must be a utility between {reached.min():.6g} and {reached.max():.6g}, which budgets of "
            f"{self.path.number} from {within[0]:.4g} to {within[1]:.4g} reach, got target={target:.6g}"
        )


def _budgets(name: str, eps: ArrayLike) -> _F64:
    given = as_numbers(f"eps ({name})", eps)
    if given.dtype.kind == "b":
        raise InvalidInput(f"eps ({name}) must hold real numbers, got eps={eps!r}")
    with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite, which is refused
        values = given.astype(np.float64)
    bad = values[~((values > 0.0) & np.isfinite(values))]
    if bad.size:
        raise InvalidInput(f"eps ({name}) must be finite and > 0, got {bad.flat[0]}")
    return values


def _shaped(values: _F64) -> Any:  # noqa: ANN401  # a float for a float, an array for an array
    return values if values.ndim else float(values)
