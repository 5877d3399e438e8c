"""Plot of a utility curve, the bound beside it; matplotlib is optional and imported when it is drawn."""

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from dpci.report.plot import new_axes
from dpci.report.style import BLUE, GREEN, GREY, LETTERS, ORANGE, VERMILION, caption, log_numbers, symbols
from dpci.shown.document import NOT_PRIVATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_F64: TypeAlias = NDArray[np.float64]

# Share of the points that may lie outside: a few far ones, where predictions end, do not set the range.
_OUTLIERS = 0.05

# Ratio of the bound to the curve from which their axis is logarithmic.
_WIDE = 10.0


class Measured(NamedTuple):
    """The point at which a curve was measured, and what its axes are called."""

    number: str
    """The budget's first number, by name."""
    at: float
    utility: float
    metric: str
    n_draws: int
    budget: str
    """At which the curve was measured."""


def plot_curve(measured: Measured, columns: dict[str, _F64], ax: "Axes | None") -> "Axes":
    """Draw the columns of a curve over the budget, on a logarithmic axis; a new figure has a panel for the bound."""
    bounded = "worst_case" in columns
    if ax is not None:
        _draw_curve(measured, columns, ax)
        if bounded:
            _draw_bound(measured, columns, ax)
            # Half of the bound: the rest may be so high that nothing else would be seen.
            bound = columns["worst_case"]
            _limit(ax, [*_measured(measured, columns), bound[bound <= np.median(bound)]])
        below = ax
    else:
        ax = below = new_axes(14 if bounded else 10)
        _draw_curve(measured, columns, ax)
        if bounded:
            below = _panel_below(ax)
            _draw_bound(measured, columns, below)
            below.plot(
                columns[measured.number], columns["expected"], color=BLUE, linestyle=":", label="mean over the noise"
            )
            below.plot([measured.at], [measured.utility], "o", color=VERMILION)
            low, high = columns["expected"].min(), columns["worst_case"].max()
            if 0.0 < _WIDE * low < high:
                below.set_yscale("log")
            below.legend(frameon=False)
    ax.set_title(NOT_PRIVATE, color=VERMILION, fontsize=LETTERS)
    ax.legend(frameon=False)
    below.set_xlabel(symbols(measured.number))
    caption(below, f"measured at {symbols(measured.budget)}")
    return ax


def _draw_curve(measured: Measured, columns: dict[str, _F64], ax: "Axes") -> None:
    eps, newton = columns[measured.number], columns["newton"]
    low, high = (columns["expected"] + sign * columns["expected_std"] for sign in (-1.0, 1.0))
    ax.fill_between(eps, low, high, color=BLUE, alpha=0.15, linewidth=0, label="± 1 sd of the noise")
    ax.plot(eps, columns["expected"], color=BLUE, linestyle=":", label="mean over the noise")
    draws = "this draw" if measured.n_draws == 1 else f"mean of {measured.n_draws} draws"
    ax.plot(eps, newton, color=BLUE, label=f"predicted, {draws}")
    if "newton_se" in columns:
        error = columns["newton_se"]
        label = "± 1 standard error"
        ax.fill_between(eps, newton - error, newton + error, color=GREEN, alpha=0.4, linewidth=0, label=label)
    ax.plot(eps, columns["first_order"], color=GREY, linewidth=1, label="tangent at the measured point")
    ax.plot([measured.at], [measured.utility], "o", color=VERMILION, label="measured")
    log_numbers(ax, "x")
    _limit(ax, _measured(measured, columns))
    ax.set_ylabel("mean loss" if measured.metric == "loss" else measured.metric.replace("_", " "))


def _draw_bound(measured: Measured, columns: dict[str, _F64], ax: "Axes") -> None:
    eps = columns[measured.number]
    ax.plot(eps, columns["worst_case"], color=ORANGE, linestyle="--", label="bound on the mean")


def _panel_below(ax: "Axes") -> "Axes":
    """Return new axes under others, with the same budgets."""
    from matplotlib.gridspec import GridSpec  # noqa: PLC0415  # optional

    figure = cast("Figure", ax.figure)
    grid = GridSpec(2, 1, figure, height_ratios=[2, 1])
    ax.set_subplotspec(grid[0])
    below = figure.add_subplot(grid[1], sharex=ax)
    below.set_ylabel(ax.get_ylabel())
    ax.tick_params(labelbottom=False)
    return below


def _measured(measured: Measured, columns: dict[str, _F64]) -> list[_F64]:
    """Return what sets the range: the tangent leaves it, and must not."""
    band = [columns["expected"] + sign * columns["expected_std"] for sign in (-1.0, 1.0)]
    return [columns["newton"], *band, np.array([measured.utility])]


def _limit(ax: "Axes", shown: list[_F64]) -> None:
    """Show all but the outliers of each series, and every series that is a single point."""
    ends = np.concatenate([np.quantile(values, [_OUTLIERS, 1.0 - _OUTLIERS]) for values in shown])
    margin = 0.1 * (np.ptp(ends) or 1.0)
    ax.set_ylim(ends.min() - margin, ends.max() + margin)
