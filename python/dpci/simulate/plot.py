"""Plot of a coverage study: coverage by parameter with its standard errors, and lengths; matplotlib is optional."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent
from dpci.report.plot import label_numbers, name_rows, new_axes
from dpci.report.style import BLUE, LETTERS, ORANGE, VERMILION, caption, symbols
from dpci.shown.document import NOT_PRIVATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_F64 = NDArray[np.float64]

# Standard errors on either side: about 95 of 100 parameters whose coverage is the mean are within them.
_N_ERRORS = 2.0
# Points that a legend of two lines takes.
_ABOVE_LEGEND = 44.0


class Averages(NamedTuple):
    """Coverage over all parameters, with its standard error, beside what was asked for."""

    level: float
    coverage: float
    coverage_se: float
    n_replicates: int
    budget: str
    n_samples: int


def plot_coverage(names: tuple[str, ...], columns: dict[str, _F64], averages: Averages, ax: "Axes | None") -> "Axes":
    """Draw the columns of a study; a new figure has a second panel for the lengths."""
    lengths = None
    if ax is None:
        ax = new_axes(len(names) + 2)
        lengths = _panel_below(ax)
        _draw_lengths(columns, lengths)
    _draw_coverage(columns, averages, ax)
    for panel in (ax,) if lengths is None else (ax, lengths):
        name_rows(panel, names)
    samples = "sample" if averages.n_replicates == 1 else "samples"
    caption(ax, f"{averages.n_replicates:,} {samples} of n = {averages.n_samples:,}", symbols(averages.budget))
    # Above the legend, which narrow axes have no room beside.
    ax.set_title(NOT_PRIVATE, color=VERMILION, loc="left", pad=_ABOVE_LEGEND, fontsize=LETTERS)
    return ax


def _draw_coverage(columns: dict[str, _F64], averages: Averages, ax: "Axes") -> None:
    coverage = columns["coverage"]
    rows = np.arange(len(coverage))
    # A share of 0 or 1 has no spread of its own: that at the nominal level stands in.
    nominal = np.sqrt(averages.level * (1.0 - averages.level) / averages.n_replicates)
    errors = _N_ERRORS * np.where((coverage == 0.0) | (coverage == 1.0), nominal, columns["coverage_se"])
    # No coverage is below 0 or above 1.
    ends = np.stack([np.minimum(errors, coverage), np.minimum(errors, 1.0 - coverage)])
    if averages.n_replicates > 1:
        half = _N_ERRORS * averages.coverage_se
        label = f"mean {averages.coverage:.3f} ± {half:.3f}"
        ax.axvspan(
            max(averages.coverage - half, 0.0),
            min(averages.coverage + half, 1.0),
            color=BLUE,
            alpha=0.15,
            linewidth=0,
            label=label,
        )
    ax.axvline(
        averages.level, color="0.35", linestyle="--", linewidth=1, label=f"level {format_percent(averages.level)}"
    )
    ax.errorbar(coverage, rows, xerr=ends, fmt="o", color=BLUE, markersize=5, linewidth=1.4)
    ax.set_xlabel("coverage ± 2 standard errors")
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=LETTERS)


def _draw_lengths(columns: dict[str, _F64], ax: "Axes") -> None:
    rows = np.arange(len(columns["mean_length"]))
    ax.errorbar(
        columns["mean_length"], rows, xerr=columns["length_std"], fmt="o", color=BLUE, markersize=5, label="mean ± sd"
    )
    if "variability_length" in columns:
        spread = columns["variability_length"]
        ax.plot(
            spread, rows, "|", color=ORANGE, markersize=12, markeredgewidth=2, label="span of the released parameters"
        )
    ax.set_xlim(left=0.0)
    label_numbers(ax, "length of the intervals", [columns["mean_length"]])
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), fontsize=LETTERS)


def _panel_below(ax: "Axes") -> "Axes":
    """Return new axes under others, with the same rows: side by side, letters would be too small on a telephone."""
    from matplotlib.gridspec import GridSpec  # noqa: PLC0415  # optional

    figure = ax.get_figure(root=True)
    if figure is None:
        raise TypeError("axes must belong to a figure, got none")
    figure.set_figheight(2.0 * figure.get_figheight())
    grid = GridSpec(2, 1, figure)
    ax.set_subplotspec(grid[0])
    return figure.add_subplot(grid[1], sharey=ax)
