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
        Where to draw; None: a new figure.

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
        import matplotlib.pyplot as plt  # noqa: PLC0415  # optional
    except ImportError as error:
        raise DpciError("plots need matplotlib, got an environment without it: pip install 'dpci[plot]'") from error
    return plt.subplots(figsize=(7, 1.2 + 0.32 * n_rows), layout="constrained")[1]
