"""Forest plot of confidence intervals; matplotlib is optional and imported only here."""

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.optional import optional
from dpci.base.tables import format_percent, printable
from dpci.base.validation import check_choice
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals, given_rows
from dpci.report.style import BLUE, LETTERS, VERMILION, WIDTH, caption, log_numbers
from dpci.shown.document import SEEDED

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Order: TypeAlias = Literal["given", "estimate"]

_COMFORTABLE = 40
_LONGEST_NAME = 60
# Characters of a name, and of the label of an axis beside names, that stand on one line.
_LINE_OF_NAME, _LINE_OF_LABEL = 34, 40
# Numbers on an axis are written out below 10 to this power, and above 10 to its negative.
_PLAIN_POWERS = 5
# Size of letters where rows stand closer, and of two lines there.
_OF_MANY, _OF_TWO_LINES = 0.83, 0.7
# Share of the axes, as they are before the layout, that names may take.
_NAMES = 0.62


def forest_plot(
    intervals: ConfidenceIntervals,
    *,
    private: bool,
    order: Order = "given",
    what: str = "estimate",
    ratios: bool = False,
    ax: "Axes | None" = None,
) -> "Axes":
    """Draw one horizontal interval for each row, the first on top; those that leave out 0 have a filled point.

    Rows without an interval are left out; seeded results are marked in the title. ``what`` says on the axis
    what was estimated. ``ratios`` are on a logarithmic axis, and leave out 1.
    """
    none = 1.0 if ratios else 0.0
    intervals = given_rows(intervals)
    if ax is None:
        ax = new_axes(len(intervals))
    rows = row_order(intervals.estimate, order)
    estimate, lower, upper = (column[rows] for column in (intervals.estimate, intervals.lower, intervals.upper))
    positions = np.arange(len(rows))
    for position in positions[1::2]:
        ax.axhspan(position - 0.5, position + 0.5, color="0.96", linewidth=0, zorder=-2)
    ax.axvline(none, color="0.55", linewidth=1, zorder=-1)
    ax.hlines(positions, lower, upper, color=BLUE, linewidth=1.6)
    apart = (lower > none) | (upper < none)
    ax.scatter(estimate, positions, s=26, color=BLUE, facecolors=np.where(apart, BLUE, "white"), zorder=3)
    name_rows(ax, [intervals.names[i] for i in rows])
    if not len(rows):
        ax.text(0.5, 0.5, "no interval is given", transform=ax.transAxes, ha="center", va="center")
    if len(rows) > _COMFORTABLE:
        ax.tick_params(axis="x", labeltop=True)  # the other end of the axis may be pages away
    kind = "" if intervals.simultaneous is None else f"simultaneous ({intervals.simultaneous}) "
    label_numbers(ax, f"{printable(what)} with {kind}{format_percent(intervals.level)} interval", [lower, upper])
    if ratios:
        log_numbers(ax, "x", subs=(1.0, 2.0, 5.0))
    caption(ax, f"filled points: the interval excludes {none:g}")
    if not private:
        ax.set_title(SEEDED, color=VERMILION, fontsize=LETTERS)
    return ax


def row_order(values: NDArray[np.float64], order: str) -> NDArray[np.intp]:
    """Return the rows of a plot from top to bottom."""
    check_choice("order", order, ("given", "estimate"))
    return np.argsort(-values, kind="stable") if order == "estimate" else np.arange(len(values))


def name_rows(ax: "Axes", names: Sequence[str]) -> None:
    """Label the rows of a plot from top to bottom: long names on two lines, and small enough to leave room."""
    many = len(names) > _COMFORTABLE
    size = LETTERS * (_OF_MANY if many else 1.0)
    lines = [_on_lines(shorten(name)) for name in names]
    ax.set_yticks(range(len(names)), labels=lines, fontsize=size)
    labels = ax.get_yticklabels()
    for label in labels:
        label.set_parse_math(False)  # a name may hold dollars
    widest = max((label.get_window_extent().width for label in labels), default=0.0)
    room = _NAMES * ax.get_window_extent().width
    smaller = min(_OF_TWO_LINES if many and any("\n" in line for line in lines) else 1.0, room / max(widest, room))
    for label in labels:
        label.set_fontsize(smaller * float(label.get_fontsize()))
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def label_numbers(ax: "Axes", label: str, values: Sequence[NDArray[np.float64]]) -> None:
    """Label the horizontal axis, with the power of ten that its numbers are in units of where they are huge or tiny.

    Matplotlib would write that power at the end of the axis, where a label of several lines covers it.
    """
    greatest = max((float(np.abs(column[np.isfinite(column)]).max(initial=0.0)) for column in values), default=0.0)
    power = math.floor(math.log10(greatest)) if greatest > 0.0 else 0
    if abs(power) >= _PLAIN_POWERS:
        # Spaces that do not break.
        label = f"{label}, in\xa0units\xa0of\xa01e{power}"
        ax.xaxis.set_major_formatter(lambda value, _: f"{_in_units(value, power):.6g}".replace("-", "\u2212"))
    n_lines = len(textwrap.wrap(label, _LINE_OF_LABEL))
    # Lines of about the same length.
    width = next(width for width in range(1, _LINE_OF_LABEL + 1) if len(textwrap.wrap(label, width)) <= n_lines)
    text = ax.set_xlabel("\n".join(textwrap.wrap(label, width)))
    text.set_parse_math(False)  # it may hold the name of a column


def _in_units(value: float, power: int) -> float:
    # In two steps: powers of ten below 1e-308 have few digits.
    return value / 10.0 ** (power // 2) / 10.0 ** (power - power // 2)


def _on_lines(name: str) -> str:
    """Return a name on one line, or on two that part where a word ends, if one does."""
    if len(name) <= _LINE_OF_NAME:
        return name
    longest = _LINE_OF_NAME + 4
    possible = range(max(1, len(name) - longest), min(longest, len(name) - 1) + 1)
    places = [i for i in possible if name[i - 1] in " =:,;/_-"]
    place = min(places, key=lambda i: abs(i - len(name) / 2), default=len(name) // 2)
    return f"{name[:place].rstrip()}\n{name[place:].lstrip()}"


def shorten(name: str) -> str:
    """Return a name of at most so many characters that a plot beside it has room."""
    name = printable(" ".join(name.split()))
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 21]}…{name[-20:]}"


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
    return plt.subplots(figsize=(WIDTH, figure_height(n_rows)), layout="constrained")[1]


def figure_height(n_rows: int) -> float:
    """Return the height in inches of a figure with so many rows; beyond some dozens they stand closer."""
    return 1.4 + 0.36 * min(n_rows, _COMFORTABLE) + 0.2 * max(0, n_rows - _COMFORTABLE)
