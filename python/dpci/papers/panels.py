"""Figures of panels that a telephone shows legibly, for the drawings of the experiments; needs matplotlib."""

import re
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Inches: where a telephone shows a figure 390 pixels wide, letters of 8 points can still be read on two panels beside
# each other.
_WIDTH, PANELS_A_LINE = 5.5, 2
_LETTERS = "small"
# Characters of a title that fit above a panel, and above the figure.
_TITLE, _HEADING = 32, 56


def grid(n_rows: int, n_columns: int, *, height: float) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure and its panels by row and column; columns beyond the second continue on the next line."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    lines = -(-n_columns // PANELS_A_LINE)
    figure = Figure(figsize=(_WIDTH, height * n_rows * lines + 1.4), layout="constrained")

    def panel(row: int, column: int) -> "Axes":
        line, place = divmod(column, PANELS_A_LINE)
        at = (row * lines + line) * PANELS_A_LINE + place + 1
        ax = figure.add_subplot(n_rows * lines, PANELS_A_LINE, at)
        ax.tick_params(labelsize=_LETTERS)
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        return ax

    return figure, [[panel(row, column) for column in range(n_columns)] for row in range(n_rows)]


def label(ax: "Axes", title: str, x_label: str = "", y_label: str = "") -> None:
    """Write the title and the labels of a panel in small letters, on several lines where one has no room."""
    ax.set_title("\n".join(_on_lines(line, _TITLE) for line in title.split("\n")), fontsize=_LETTERS)
    if x_label:
        ax.set_xlabel(x_label, fontsize=_LETTERS)
    if y_label:
        ax.set_ylabel(y_label, fontsize=_LETTERS)


def head(figure: "Figure", title: str) -> None:
    """Write the title of a figure, on several lines where one has no room."""
    figure.suptitle(_on_lines(title, _HEADING), fontsize="medium")


def legend(figure: "Figure", handles: "Sequence[Artist]", labels: "Sequence[str]", *, n_columns: int = 2) -> None:
    """Write a legend below all panels."""
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=n_columns,
        frameon=False,
        fontsize=_LETTERS,
        columnspacing=1.2,
    )


def _on_lines(text: str, width: int) -> str:
    """Return a text on lines of this width; the signs that write a formula are not seen."""
    unseen = sum(map(len, re.findall(r"\\[a-z]+|[$_]", text)))
    return "\n".join(textwrap.wrap(text, width + unseen))
