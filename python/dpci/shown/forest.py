"""Forest plot of inline SVG that fills any width: places are percentages, letters and lines keep their size."""

import math

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent
from dpci.shown.document import Forest
from dpci.shown.elements import Html, breakable, tag

# The plot keeps clear of the sides, where labels of the axis would be cut.
_LEFT, _WIDTH = 4.0, 92.0
_N_STEPS = 5
# Longer numbers are written at every second line of the grid, so that they stand apart on a telephone.
_LONGEST_TICK = 5
# A sheet of A4 holds more rows, so that every sheet of a long plot has an axis.
_ROWS_OF_AN_AXIS = 25


def forest_figure(forest: Forest) -> Html:
    """Return a figure with one row for each interval; those that leave out 0 have a filled point."""
    ticks = axis_ticks(forest)
    percent = format_percent(forest.level)
    n_rows = len(forest.names)
    label = f"Forest plot of {n_rows} parameters with {percent} confidence intervals; the table has the numbers"
    axis = [_text(label, _place(tick, ticks)) for tick, label in _labelled(ticks)]
    axis_row = [tag("div"), _cell(axis, class_="cell axis")]
    cells = []
    columns = (forest.names, *(column.tolist() for column in (forest.estimate, forest.lower, forest.upper)))
    for i, (name, estimate, lower, upper) in enumerate(zip(*columns, strict=True)):
        if i and i % _ROWS_OF_AN_AXIS == 0:
            cells += axis_row
        cells += [
            tag("div", breakable(name), class_="name", dir="auto"),
            _cell([*_grid(ticks), *_mark(estimate, lower, upper, ticks)]),
        ]
    cells += [*axis_row, tag("div"), tag("div", forest.axis, class_="what")]
    caption = f"{percent} confidence intervals. A filled point means that the interval does not contain 0."
    plot = tag("div", cells, class_="forest", role="img", aria_label=label)
    return tag("figure", [plot, tag("figcaption", caption)])


def axis_ticks(forest: Forest) -> NDArray[np.float64]:
    """Return round numbers from below the smallest bound, or 0, to above the largest."""
    # Saved fits may hold any numbers: bounds beyond the range of floats are drawn at its end.
    greatest = float(np.finfo(np.float64).max)
    low = max(-greatest, min(0.0, float(forest.lower.min())))
    high = min(greatest, max(0.0, float(forest.upper.max())))
    # In halves: the difference of two floats may be beyond their range.
    rough = max((high / 2.0 - low / 2.0) / _N_STEPS * 2.0, 1e-300)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next((factor for factor in (1.0, 2.0, 5.0) if factor * unit >= rough), 10.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    with np.errstate(over="ignore"):
        ticks = np.arange(first, max(last, first + 1) + 1) * step
    return np.asarray(ticks[np.isfinite(ticks)])


def _labelled(ticks: NDArray[np.float64]) -> list[tuple[float, str]]:
    """Return the ticks that have a label, 0 among them, with their labels."""
    labels = [f"{tick:.6g}" if tick else "0" for tick in map(float, ticks)]
    every = 2 if max(map(len, labels)) > _LONGEST_TICK else 1
    zero = labels.index("0")
    return [
        (float(tick), label)
        for i, (tick, label) in enumerate(zip(ticks, labels, strict=True))
        if (i - zero) % every == 0
    ]


def _cell(parts: list[Html], class_: str = "cell") -> Html:
    return tag("div", tag("svg", parts, width="100%", height="100%", aria_hidden="true"), class_=class_)


def _place(value: float, ticks: NDArray[np.float64]) -> str:
    low, high = float(ticks[0]) / 2.0, float(ticks[-1]) / 2.0
    share = min(max((value / 2.0 - low) / (high - low), 0.0), 1.0)
    return f"{_LEFT + _WIDTH * share:.3f}%"


def _grid(ticks: NDArray[np.float64]) -> list[Html]:
    places = [(_place(float(tick), ticks), "grid" if tick else "zero") for tick in ticks]
    return [tag("line", x1=at, x2=at, y1="0", y2="100%", class_=kind) for at, kind in places]


def _mark(estimate: float, lower: float, upper: float, ticks: NDArray[np.float64]) -> list[Html]:
    kind = "apart" if lower > 0.0 or upper < 0.0 else "open"
    ends = {"x1": _place(lower, ticks), "x2": _place(upper, ticks)}
    return [
        tag("line", **ends, y1="50%", y2="50%", class_="bar"),
        tag("circle", cx=_place(estimate, ticks), cy="50%", r=4.5, class_=kind),
    ]


def _text(label: str, at: str) -> Html:
    return tag("text", label, x=at, y=14, text_anchor="middle")
