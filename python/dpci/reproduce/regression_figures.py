"""Draws errors and inversion accuracies of private regressions against epsilon and against rows; needs matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.reproduce.panels import grid

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Found: TypeAlias = Mapping[tuple[str, float], NDArray[np.float64]]

_MEASURES = (("mean squared error", 0), ("inversion accuracy", 1))

# Told apart by the colour-blind; one look for each mechanism in all panels.
_LOOKS = {
    "non-private": ("0.5", ":", ""),
    "oracle": ("#000000", "-", "o"),
    "oracle, projected": ("#000000", "--", ""),
    "oracle, 12W+8": ("0.5", "-", "o"),
    "data-independent": ("#0072b2", "-", "s"),
    "data-independent, projected": ("#0072b2", "--", ""),
    "data-independent, 12W+8": ("#56b4e9", "-", "s"),
    "data-independent, 12W+8, projected": ("#56b4e9", "--", ""),
    "output, R1": ("#009e73", "-", "^"),
    "output, R2": ("#009e73", "--", "v"),
    "objective, cms11, R1": ("#cc79a7", "-", "^"),
    "objective, cms11, R2": ("#cc79a7", "--", "v"),
    "objective, standard, R1": ("#e69f00", "-", "^"),
    "objective, standard, R2": ("#e69f00", "--", "v"),
    "functional, printed": ("#d55e00", "-", "x"),
    "functional, tight": ("#d55e00", "--", "+"),
    "histogram": ("#8c564b", "-.", "d"),
}
_PANELS = {
    "figures 1 and 5: against the functional mechanism": (
        *("non-private", "oracle", "data-independent", "output, R1", "output, R2"),
        *("functional, printed", "functional, tight", "histogram"),
    ),
    "figures 2 and 6: data-independent and oracle": (
        *("non-private", "oracle", "oracle, projected", "data-independent", "data-independent, projected"),
        *("oracle, 12W+8", "data-independent, 12W+8", "data-independent, 12W+8, projected"),
    ),
    "figure 4: objective perturbation": (
        *("non-private", "oracle", "data-independent", "objective, cms11, R1", "objective, cms11, R2"),
        *("objective, standard, R1", "objective, standard, R2"),
    ),
}


def draw_mechanisms(found: Found, published: Mapping[str, tuple[float, float, float]]) -> "Figure":
    """Return a figure of errors over inversion accuracies, three comparisons of mechanisms side by side."""
    figure, axes = grid(2, len(_PANELS), width=4.6, height=3.4)
    for column, (title, names) in enumerate(_PANELS.items()):
        for row, (label, measure) in enumerate(_MEASURES):
            ax = axes[row][column]
            _draw_lines(ax, found, names, measure)
            ax.set_xscale("log")
            ax.set_xlabel(r"$\epsilon$")
            if measure == 0:
                _log_errors(ax)
            if column == 0:
                ax.set_ylabel(label)
                for at in published.values():
                    ax.plot(
                        at[0], at[1 + measure], "*", color="0.3", markersize=11, zorder=5, label="printed in the paper"
                    )
        axes[0][column].set_title(title, fontsize="medium")
    _legend(figure, axes)
    figure.suptitle("Warfarin: error and model inversion against epsilon, means with standard errors. NOT PRIVATE")
    return figure


def draw_sizes(found: Found) -> "Figure":
    """Return a figure of error and inversion accuracy by the share of the rows, a line of panels for each epsilon."""
    parts = _parts(found)
    figure, axes = grid(len(parts), 2, width=4.6, height=3.0)
    for row, (title, here) in enumerate(parts.items()):
        for column, (label, measure) in enumerate(_MEASURES):
            ax = axes[row][column]
            _draw_lines(ax, here, list(dict.fromkeys(name for name, _ in here)), measure)
            ax.set_title(title.replace("epsilon=", r"$\epsilon$ = "), fontsize="medium")
            ax.set_ylabel(label)
            if row == len(parts) - 1:
                ax.set_xlabel("share of the rows")
    _legend(figure, axes)
    figure.suptitle("Error and model inversion by number of rows (figure 7). NOT PRIVATE")
    return figure


def _parts(found: Found) -> dict[str, Found]:
    """Return what was found by what stands before the colon in the names of the mechanisms."""
    parts: dict[str, dict[tuple[str, float], NDArray[np.float64]]] = {}
    for (name, x), scores in found.items():
        title, mechanism = name.split(": ")
        parts.setdefault(title, {})[mechanism, x] = scores
    return dict(parts)


def draw_scalings(found: Found, published: Mapping[str, tuple[float, float, float]]) -> "Figure":
    """Return a figure of errors against epsilon, a panel for each scale of target and rows."""
    parts = _parts(found)
    figure, axes = grid(2, -(-len(parts) // 2), width=4.6, height=3.2)
    for position, (scale, here) in enumerate(parts.items()):
        ax = axes[position % 2][position // 2]
        _draw_lines(ax, here, list(dict.fromkeys(name for name, _ in here)), 0)
        _draw_published(ax, published, 0)
        ax.set_xscale("log")
        _log_errors(ax)
        ax.set_title(f"doses up to {scale}", fontsize="medium")
        ax.set_xlabel(r"$\epsilon$")
        ax.set_ylabel("mean squared error")
    _legend(figure, axes)
    figure.suptitle("Error by scale of target and rows. NOT PRIVATE")
    return figure


def _draw_lines(ax: "Axes", found: Found, names: Sequence[str], measure: int) -> None:
    for name in names:
        points = sorted((x, scores[:, measure]) for (mechanism, x), scores in found.items() if mechanism == name)
        colour, line, marker = _LOOKS.get(name, ("#f0e442", "-", "o"))
        if len(points) == 1:
            ax.axhline(points[0][1].mean(), color=colour, linestyle=line, label=name)
            continue
        ax.errorbar(
            [x for x, _ in points],
            [values.mean() for _, values in points],
            yerr=[values.std() / np.sqrt(len(values)) for _, values in points],
            color=colour,
            linestyle=line,
            marker=marker,
            markersize=4,
            linewidth=1.3,
            capsize=2,
            label=name,
        )
    ax.grid(color="0.9")
    ax.set_axisbelow(True)


def _log_errors(ax: "Axes") -> None:
    """Put errors on a logarithmic scale with plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415  # optional

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())


def _draw_published(ax: "Axes", published: Mapping[str, tuple[float, float, float]], measure: int) -> None:
    for at in published.values():
        ax.plot(at[0], at[1 + measure], "*", color="0.3", markersize=11, zorder=5, label="printed in the paper")


def _legend(figure: "Figure", axes: "list[list[Axes]]") -> None:
    named: dict[str, Artist] = {}
    for ax in (ax for row in axes for ax in row):
        handles, labels = ax.get_legend_handles_labels()
        named |= dict(zip(labels, handles, strict=True))
    columns = min(5, len(named))
    figure.legend(
        list(named.values()), list(named), loc="outside lower center", ncols=columns, frameon=False, fontsize="small"
    )
