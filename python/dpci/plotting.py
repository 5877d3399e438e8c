"""Forest plot of confidence intervals; matplotlib is optional and imported only here."""

from typing import TYPE_CHECKING

from dpci.errors import DpciError
from dpci.intervals import ConfidenceIntervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def forest_plot(intervals: ConfidenceIntervals, *, private: bool, ax: "Axes | None" = None) -> "Axes":
    """Draw one horizontal interval for each row, the first on top.

    Parameters
    ----------
    intervals : ConfidenceIntervals
        What to draw.
    private : bool
        Seeded results are marked in the title.
    ax : matplotlib.axes.Axes, optional
        Where to draw; None: a new figure that is not shown.

    Raises
    ------
    DpciError
        If matplotlib is not installed.
    """
    if ax is None:
        ax = _new_axes(len(intervals))
    positions = range(len(intervals))
    errors = [intervals.estimate - intervals.lower, intervals.upper - intervals.estimate]
    ax.axvline(0.0, color="0.6", linewidth=1, zorder=0)
    ax.errorbar(intervals.estimate, positions, xerr=errors, fmt="o", color="C0", capsize=3)
    ax.set_yticks(list(positions), labels=list(intervals.names))
    ax.invert_yaxis()
    ax.set_xlabel(f"estimate with {100 * intervals.level:g}% interval")
    if not private:
        ax.set_title("NOT PRIVATE (seeded)", color="C3")
    return ax


def _new_axes(n_rows: int) -> "Axes":
    try:
        # The object-oriented interface needs no display and leaves the caller's pyplot state alone.
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # optional
        from matplotlib.figure import Figure  # noqa: PLC0415  # optional
    except ImportError as error:
        msg = "plots need matplotlib, got an environment without it: pip install 'dpci[plot]'"
        raise DpciError(msg) from error
    figure = Figure(figsize=(7, 1.2 + 0.32 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()
