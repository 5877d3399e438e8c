"""Figures of panels that a telephone shows legibly, for drawings of experiments and evidence."""

import textwrap
from typing import TYPE_CHECKING

from dpci.report.style import LETTERS, WIDTH

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

PANELS_A_LINE = 2
"""Panels that have room beside each other."""

# Characters that have room in the title of a panel, beside a panel, and above the figure.
_TITLE, _BESIDE, _HEADING = 28, 24, 60
# Inches that the title of a figure and the legend below it take.
_AROUND = 1.4


def grid(n_rows: int, n_columns: int, *, height: float) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure and its panels by row and column; columns beyond the second continue on the next line."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    lines = -(-n_columns // PANELS_A_LINE)
    figure = Figure(figsize=(WIDTH, height * n_rows * lines + _AROUND), layout="constrained")

    def panel(row: int, column: int) -> "Axes":
        line, place = divmod(column, PANELS_A_LINE)
        at = (row * lines + line) * PANELS_A_LINE + place + 1
        return quiet(figure.add_subplot(n_rows * lines, PANELS_A_LINE, at))

    return figure, [[panel(row, column) for column in range(n_columns)] for row in range(n_rows)]


def blocks(heights: "Sequence[float]", n_columns: int) -> "tuple[Figure, list[tuple[SubFigure, list[Axes]]]]":
    """Return a figure of blocks below each other, and each block with its panels; a block can have its own legend."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    figure = Figure(figsize=(WIDTH, sum(heights) + 0.6), layout="constrained")
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    return figure, [(part, [quiet(ax) for ax in part.subplots(1, n_columns, squeeze=False)[0]]) for part in parts]


def quiet(ax: "Axes") -> "Axes":
    """Return a panel with letters of the style and a grid that stays behind."""
    ax.tick_params(labelsize=LETTERS)
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
    return ax


def label(ax: "Axes", title: str, x_label: str = "", y_label: str = "") -> None:
    """Write the title and the labels of a panel, on several lines where one has no room."""
    ax.set_title("\n".join(_on_lines(line, _TITLE) for line in title.split("\n")), fontsize=LETTERS)
    if x_label:
        ax.set_xlabel("\n".join(_on_lines(line, _TITLE) for line in x_label.split("\n")), fontsize=LETTERS)
    if y_label:
        ax.set_ylabel(_on_lines(y_label, _BESIDE), fontsize=LETTERS)


def head(figure: "Figure | SubFigure", title: str) -> None:
    """Write the title of a figure or a block, on several lines where one has no room."""
    figure.suptitle("\n".join(_on_lines(line, _HEADING) for line in title.split("\n")), fontsize=LETTERS)


def legend(
    figure: "Figure | SubFigure", handles: "Sequence[Artist]", labels: "Sequence[str]", *, n_columns: int = 2
) -> None:
    """Write a legend below all panels of a figure or a block."""
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
        fontsize=LETTERS,
        columnspacing=1.2,
        handlelength=2.4,
    )


def save(figure: "Figure", path: "Path") -> None:
    """Write a figure to a file, whose extension determines the format: the same numbers give the same SVG.

    SVG keeps text as text, which is smaller and which a screen reader can read.
    """
    from matplotlib import rc_context  # noqa: PLC0415  # optional

    title = " ".join((figure.get_suptitle() or figure.axes[0].get_xlabel()).split())
    metadata = {"Title": title, "Date": None} if path.suffix == ".svg" else None
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dpci"}):
        figure.savefig(path, dpi=150, metadata=metadata)


def _on_lines(text: str, width: int) -> str:
    """Return a text on lines of this width."""
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False))
