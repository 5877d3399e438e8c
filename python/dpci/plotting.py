"""Forest plot of confidence intervals; matplotlib is optional and imported only here."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpci._optional import optional
from dpci.errors import InvalidInput
from dpci.intervals import ConfidenceIntervals
from dpci.tables import format_percent

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
        ax = new_axes(len(intervals))
    positions = range(len(intervals))
    errors = [intervals.estimate - intervals.lower, intervals.upper - intervals.estimate]
    ax.axvline(0.0, color="0.6", linewidth=1, zorder=0)
    ax.errorbar(intervals.estimate, positions, xerr=errors, fmt="o", color="C0", capsize=3)
    ax.set_yticks(list(positions), labels=list(intervals.names))
    ax.invert_yaxis()
    ax.set_xlabel(f"estimate with {format_percent(intervals.level)} interval")
    if not private:
        ax.set_title("NOT PRIVATE (seeded)", color="C3")
    return ax


def check_plot_file(path: Path) -> None:
    """Refuse a file whose ending names no format that matplotlib writes, or a plot without matplotlib."""
    with optional("matplotlib", extra="plot", what="a plot"):
        from matplotlib.backend_bases import FigureCanvasBase  # noqa: PLC0415  # optional
    formats = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in formats:
        raise InvalidInput(f"a plot must end in one of {', '.join(sorted(formats))}, got {str(path)!r}")


def new_axes(n_rows: int) -> "Axes":
    """Return the axes of a new figure that is tall enough for so many rows."""
    with optional("matplotlib", extra="plot", what="a plot"):
        import matplotlib.pyplot as plt  # noqa: PLC0415  # optional
    return plt.subplots(figsize=(7, 1.2 + 0.32 * n_rows), layout="constrained")[1]
