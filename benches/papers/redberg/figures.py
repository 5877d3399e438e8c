"""Draws true privacy losses, their bounds, and utility against regularisation; needs matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from _panels import PANELS_A_LINE, grid, head, label, legend
from dpci.report.style import BLUE, GREEN, GREY, LETTERS, PURPLE, SKY, VERMILION, log_numbers
from papers.redberg.setup import DELTA

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.typing import LineStyleType

_F64: TypeAlias = NDArray[np.float64]

_WHO = {"no noise": (GREY, ":", ""), "paper": (VERMILION, "-", "s"), "tight": (BLUE, "-", "o")}
# Reports in the order in which they are compared; one colour for each in all panels.
_REPORTS = (VERMILION, PURPLE, BLUE, GREEN, SKY)
_KINDS: "Mapping[str, LineStyleType]" = {
    "bound on the loss of the coefficients": "-",
    "with the other releases": "--",
    "true loss": ":",
}
_NOTION = f"δ = {DELTA:g}, Gaussian noise.\nNOT PRIVATE"

# Points of a sorted curve.
_N_SHOWN = 200


class Rotated(NamedTuple):
    """A panel of figure 1: the points, and their losses if the rotated parameters are released."""

    omega: str
    params: _F64
    X: _F64
    y: _F64
    losses: _F64


class MeanLosses(NamedTuple):
    """A point on each line of a panel: the losses of each repeat at one Lambda, by "no noise" and calibration."""

    title: str
    epsilon: float
    ridge: float
    losses: Mapping[str, Sequence[float]]


class MethodLosses(NamedTuple):
    """Losses of all records under one method, with a line for each kind; only data-dependent reports have a total."""

    title: str
    label: str
    ridge: float
    calibration: str
    bound: _F64
    true: _F64
    total: _F64 | None


def draw_rotation(panels: Sequence[Rotated]) -> "Figure":
    """Return a figure with a panel for each rotation: the points in the colour of their loss, and the classifier."""
    from matplotlib.colors import LogNorm  # noqa: PLC0415  # optional

    figure, (axes,) = grid(1, len(panels) + 1, height=2.6)
    axes[-1].remove()
    losses = np.concatenate([panel.losses for panel in panels])
    norm = LogNorm(vmin=losses.min(), vmax=losses.max())
    shown = None
    for ax, panel in zip(axes, panels, strict=False):
        ax.grid(visible=False)
        for which, marker in ((-1.0, "o"), (1.0, "^")):
            kept = panel.y == which
            x, y = panel.X[kept].T
            shown = ax.scatter(
                x, y, c=panel.losses[kept], norm=norm, marker=marker, s=14, cmap="viridis_r", linewidths=0
            )
        direction = panel.params / np.linalg.norm(panel.params)
        across = np.array([-direction[1], direction[0]])
        ax.plot(*np.outer(across, (-1.0, 1.0)), color=GREY, linewidth=1, linestyle="--")
        ax.annotate(
            "",
            xytext=(0.0, 0.0),
            xy=tuple(0.5 * direction),
            arrowprops={"arrowstyle": "->", "color": VERMILION, "lw": 2},
        )
        ax.set_aspect("equal")
        ax.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), xticks=(-1, 0, 1), yticks=(-1, 0, 1))
        name = panel.omega.replace("pi", "π")
        label(ax, f"ω = {name}, greatest {panel.losses.max():.2g}", "x₁", "x₂")
    if shown is not None:
        bar = figure.colorbar(shown, ax=figure.axes, location="bottom", shrink=0.85, aspect=40)
        bar.set_label("true privacy loss of the point (ε)", fontsize=LETTERS)
        bar.ax.tick_params(labelsize=LETTERS)
        log_numbers(bar.ax, "x")
    head(
        figure,
        "Privacy losses of the points as the released minimiser is rotated by ω (arrow: the side of the "
        f"triangles); Kifer et al.'s noise for ε = 1, {_NOTION}",
    )
    return figure


def draw_regularisation(cells: Sequence[MeanLosses]) -> "Figure":
    """Return a figure with a panel for each data set and epsilon: mean loss against Lambda, bars of one deviation."""
    places = list(dict.fromkeys((cell.epsilon, cell.title) for cell in cells))
    figure, axes = grid(-(-len(places) // PANELS_A_LINE), PANELS_A_LINE, height=2.4)
    panels = [ax for row in axes for ax in row]
    for ax in panels[len(places) :]:
        ax.remove()
    for ax, (epsilon, title) in zip(panels, sorted(places), strict=False):
        here = [cell for cell in cells if (cell.epsilon, cell.title) == (epsilon, title)]
        for who, (colour, line, marker) in _WHO.items():
            losses = [cell.losses[who] for cell in here]
            ax.errorbar(
                [cell.ridge for cell in here],
                [np.mean(one) for one in losses],
                yerr=[np.std(one, ddof=1) for one in losses] if len(losses[0]) > 1 else None,
                color=colour,
                linestyle=line,
                marker=marker,
                markersize=4,
                capsize=3,
                label=who,
            )
        log_numbers(ax, "x")
        label(ax, f"{title}, ε₁ = {epsilon:g}", "regularisation Λ", "mean loss")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend(figure, handles, labels, n_columns=3)
    n_repeats = max(len(losses) for cell in cells for losses in cell.losses.values())
    spread = f", ± 1 standard deviation over {n_repeats} draws" if n_repeats > 1 else ""
    head(figure, f"Mean loss of released parameters{spread}, against regularisation; {_NOTION}")
    return figure


def draw_bounds(cells: Sequence[MethodLosses]) -> "Figure":
    """Return a figure with a column of panels for each data set: the paper's reports, tight ones, the least Lambda.

    A panel shows the losses of all records in ascending order: the bound on the loss of the coefficients, the true
    loss, and the total of all releases.
    """
    from matplotlib.lines import Line2D  # noqa: PLC0415  # optional

    titles = list(dict.fromkeys(cell.title for cell in cells))
    colours = dict(zip(dict.fromkeys(cell.label for cell in cells), _REPORTS, strict=False))
    figure, axes = grid(3, len(titles), height=2.9)
    for column, title in enumerate(titles):
        here = [cell for cell in cells if cell.title == title]
        least = min(cell.ridge for cell in here)
        groups = (
            [c for c in here if c.ridge > least and c.calibration == "paper"],
            [c for c in here if c.ridge > least and c.calibration == "tight"],
            [c for c in here if c.ridge == least],
        )
        for row, group in enumerate(groups):
            ax = axes[row][column]
            for cell in group:
                series = zip(_KINDS.values(), (cell.bound, cell.total, cell.true), strict=True)
                for line, values in series:
                    if values is not None:
                        ax.plot(*_sorted(values), color=colours[cell.label], linewidth=1.5, linestyle=line)
            ax.axhline(1.0, color=GREY, linewidth=0.8)
            log_numbers(ax, "y")
            ax.set_ylim(1e-4, 3.0)
            ax.set_xticks((0.0, 0.5, 1.0))
            y_label = "" if column else "privacy loss (ε)"
            label(ax, f"{title}, Λ = {group[0].ridge:.3g}", "share of records", y_label)
    handles = [Line2D([], [], color=colour) for colour in colours.values()]
    handles += [Line2D([], [], color=GREY, linestyle=line) for line in _KINDS.values()]
    legend(figure, handles, [*colours, *_KINDS], n_columns=1)
    head(figure, f"Privacy losses of all training records in ascending order, first draw; {_NOTION}")
    return figure


def _sorted(values: _F64) -> tuple[_F64, _F64]:
    """Return shares and quantiles."""
    shares = np.linspace(0.0, 1.0, _N_SHOWN)
    return shares, np.asarray(np.quantile(values, shares))
