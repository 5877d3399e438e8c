"""Draws errors and inversion accuracies of private regressions against epsilon and against rows; needs matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from _panels import blocks, grid, head, label, legend
from dpci.report.style import BLACK, BLUE, BROWN, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, log_numbers
from papers.wu.setup import standard_error

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Found: TypeAlias = Mapping[tuple[str, float], NDArray[np.float64]]
# Median error and mean accuracy by mechanism and epsilon, each with its standard error.
Centres: TypeAlias = Mapping[tuple[str, float], tuple[tuple[float, float], tuple[float, float]]]

# Of the error the median over the repeats: the means of the functional mechanism are a few huge errors.
_MEASURES = (("mean squared error", 0), ("inversion accuracy", 1))
_ERROR = 0
# What the text of the paper gives.
_STARS = {"oracle": ("*", BLACK), "functional": ("P", VERMILION)}
# Of a median, by the law of the normal distribution.
_MEDIAN_FACTOR = np.sqrt(np.pi / 2.0)
_QUARTILES = 2.0 * float(ndtri(0.75))

_NOTION = "Warfarin doses, ε-DP.\nNOT PRIVATE"
_WHAT = "Median error and mean model inversion, with standard errors"
# One look for each mechanism in all panels.
_LOOKS = {
    "non-private": (GREY, ":", ""),
    "oracle": (BLACK, "-", "o"),
    "oracle, arithmetic grid": (BLACK, ":", "."),
    "oracle, projected": (BLACK, "--", ""),
    "oracle, 12W+8": (GREY, "-", "o"),
    "data-independent": (BLUE, "-", "s"),
    "data-independent, projected": (BLUE, "--", ""),
    "data-independent, 12W+8": (SKY, "-", "s"),
    "data-independent, 12W+8, projected": (SKY, "--", ""),
    "data-independent, no noise": (BLUE, ":", "."),
    "output, R1": (GREEN, "-", "^"),
    "output, R2": (GREEN, "--", "v"),
    "objective, cms11, R1": (PURPLE, "-", "^"),
    "objective, cms11, R2": (PURPLE, "--", "v"),
    "objective, standard, R1": (ORANGE, "-", "^"),
    "objective, standard, R2": (ORANGE, "--", "v"),
    "functional, printed": (VERMILION, "-", "x"),
    "functional, tight": (VERMILION, "--", "+"),
    "histogram": (BROWN, "-.", "d"),
}
# Characters of names that stand beside each other in a legend.
_LONGEST_OF_TWO = 28
_PANELS = {
    "figures 1 and 5: against the functional mechanism": (
        *("non-private", "oracle", "data-independent", "output, R1", "output, R2"),
        *("functional, printed", "functional, tight", "histogram"),
    ),
    "figures 2 and 6: data-independent and oracle": (
        *("non-private", "oracle", "oracle, arithmetic grid", "oracle, projected"),
        *("data-independent", "data-independent, projected"),
        *("oracle, 12W+8", "data-independent, 12W+8", "data-independent, 12W+8, projected"),
    ),
    "figure 4: objective perturbation": (
        *("non-private", "oracle", "data-independent", "objective, cms11, R1", "objective, cms11, R2"),
        *("objective, standard, R1", "objective, standard, R2"),
    ),
}


def draw_mechanisms(found: Found, published: Mapping[str, tuple[float, float, float]]) -> "Figure":
    """Return a figure of a block for each of three comparisons: errors, and beside them inversion accuracies."""
    return _draw_mechanisms(_centres(found), published, _WHAT)


def draw_mechanisms_of_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], published: Mapping[str, tuple[float, float, float]]
) -> "Figure":
    """Return the same figure, drawn from the table of the report, which has no standard errors of medians."""
    median, inversion = header.index("median"), header.index("inversion")
    centres = {
        (row[0], float("inf" if row[1] == "any" else row[1])): (
            (float(row[median]), float("nan")),
            (float(row[inversion]), float(row[inversion + 1])),
        )
        for row in rows
    }
    what = "Median error, and mean model inversion with standard errors"
    return _draw_mechanisms(centres, published, what)


def _draw_mechanisms(found: Centres, published: Mapping[str, tuple[float, float, float]], what: str) -> "Figure":
    figure, parts = blocks([3.0 + 0.2 * _n_lines(names) for names in _PANELS.values()], len(_MEASURES))
    for (block, axes), (title, names) in zip(parts, _PANELS.items(), strict=True):
        for ax, (shown, measure) in zip(axes, _MEASURES, strict=True):
            _draw_lines(ax, found, names, measure)
            _log_epsilons(ax, sorted({x for _, x in found if np.isfinite(x)}))
            if measure == _ERROR:
                log_numbers(ax, "y", subs=(1.0, 2.0, 5.0))
            label(ax, shown, "ε")
            if block is parts[0][0]:
                _draw_published(ax, published, measure)
        head(block, title)
        _legend(block, axes, n_columns=_n_columns(names))
    head(figure, f"{what}, against ε. {_NOTION}")
    return figure


def draw_sizes(found: Found) -> "Figure":
    """Return a figure of error and inversion accuracy by share of the rows, with a row of panels for each epsilon."""
    parts = _parts(found)
    figure, axes = grid(len(parts), 2, height=2.6)
    for row, (title, here) in enumerate(parts.items()):
        for column, (what, measure) in enumerate(_MEASURES):
            ax = axes[row][column]
            _draw_lines(ax, _centres(here), list(dict.fromkeys(name for name, _ in here)), measure)
            label(ax, title.replace("epsilon=", "ε = "), "share of the rows", what)
    _legend(figure, [ax for row in axes for ax in row], n_columns=1)
    head(figure, f"{_WHAT}, by number of rows (figure 7). {_NOTION}")
    return figure


def _parts(found: Found) -> dict[str, Found]:
    """Return the results by the part of a mechanism's name before the colon."""
    parts: dict[str, dict[tuple[str, float], NDArray[np.float64]]] = {}
    for (name, x), scores in found.items():
        title, mechanism = name.split(": ")
        parts.setdefault(title, {})[mechanism, x] = scores
    return dict(parts)


def draw_scalings(found: Found, published: Mapping[str, tuple[float, float, float]]) -> "Figure":
    """Return a figure of errors against epsilon, a panel for each scale of target and rows."""
    parts = _parts(found)
    figure, axes = grid(-(-len(parts) // 2), 2, height=3.0)
    places = [ax for row in axes for ax in row]
    for ax in places[len(parts) :]:
        ax.remove()
    for position, (ax, (scale, here)) in enumerate(zip(places, parts.items(), strict=False)):
        _draw_lines(ax, _centres(here), list(dict.fromkeys(name for name, _ in here)), 0)
        _draw_published(ax, published, 0)
        _log_epsilons(ax, sorted({x for _, x in here if np.isfinite(x)}))
        log_numbers(ax, "y", subs=(1.0, 2.0, 5.0))
        label(ax, f"doses up to {scale}", "ε", "" if position % 2 else _MEASURES[_ERROR][0])
    _legend(figure, figure.axes, n_columns=1)
    head(figure, f"Median error by scale of target and rows, with standard errors. {_NOTION}")
    return figure


def _n_columns(names: Sequence[str]) -> int:
    """Return how many columns a legend has: long names have no room beside each other."""
    return 1 if max(map(len, names)) > _LONGEST_OF_TWO else 2


def _n_lines(names: Sequence[str]) -> int:
    return -(-len(names) // _n_columns(names))


def _centres(found: Found) -> Centres:
    """Return the centre and the standard error of both measures."""
    return {cell: (_centre(scores[:, 0], 0), _centre(scores[:, 1], 1)) for cell, scores in found.items()}


def _draw_lines(ax: "Axes", found: Centres, names: Sequence[str], measure: int) -> None:
    for name in names:
        points = sorted((x, both[measure]) for (mechanism, x), both in found.items() if mechanism == name)
        colour, line, marker = _LOOKS[name]
        if len(points) == 1:
            ax.axhline(points[0][1][0], color=colour, linestyle=line, label=name)
            continue
        centres, errors = zip(*(both for _, both in points), strict=True)
        ax.errorbar(
            [x for x, _ in points],
            centres,
            yerr=errors,
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=4,
            linewidth=1.3,
            capsize=2,
            label=name,
        )


def _centre(values: NDArray[np.float64], measure: int) -> tuple[float, float]:
    """Return the median of errors or the mean of accuracies, and its standard error.

    The standard error of a median is that of a normal law with the same quartiles, which huge errors hardly affect.
    """
    if measure == _ERROR:
        lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75])
        return float(middle), float(_MEDIAN_FACTOR * (upper - lower) / _QUARTILES / np.sqrt(len(values)))
    return float(values.mean()), float(standard_error(values))


def _log_epsilons(ax: "Axes", epsilons: Sequence[float]) -> None:
    """Put epsilon on a logarithmic scale with ticks where there are measurements."""
    ax.set_xscale("log")
    ax.set_xticks(epsilons, labels=[f"{epsilon:g}".removeprefix("0") for epsilon in epsilons])
    ax.minorticks_off()


def _draw_published(ax: "Axes", published: Mapping[str, tuple[float, float, float]], measure: int) -> None:
    for name, at in published.items():
        marker, colour = _STARS[name]
        name_in_paper = f"number in the paper: {name}"
        ax.plot(at[0], at[1 + measure], marker, color=colour, mec="w", markersize=11, zorder=5, label=name_in_paper)


def _legend(figure: "Figure | SubFigure", axes: "Sequence[Axes]", *, n_columns: int = 2) -> None:
    named: dict[str, Artist] = {}
    for ax in axes:
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    legend(figure, list(named.values()), list(named), n_columns=n_columns)
