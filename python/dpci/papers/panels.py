"""Figures of panels in rows and columns, for the drawings of several experiments; needs matplotlib."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def grid(n_rows: int, n_columns: int, *, width: float, height: float) -> "tuple[Figure, list[list[Axes]]]":
    """Return a figure and its panels by row and column, each ``width`` by ``height`` inches."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    figure = Figure(figsize=(width * n_columns, height * n_rows + 1.0), layout="constrained")
    return figure, [
        [figure.add_subplot(n_rows, n_columns, row * n_columns + column + 1) for column in range(n_columns)]
        for row in range(n_rows)
    ]
