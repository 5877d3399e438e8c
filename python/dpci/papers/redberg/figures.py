"""Draws true privacy losses, their bounds, and utility against regularisation; needs matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.papers.panels import PANELS_A_LINE, grid, head, label, legend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_F64: TypeAlias = NDArray[np.float64]

# Told apart by the colour-blind.
_COLOURS = ("#0072b2", "#d55e00", "#009e73")
_WHO = {"no noise": ("0.5", ":"), "paper": (_COLOURS[1], "-"), "tight": (_COLOURS[0], "-")}

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

    figure, (axes,) = grid(1, len(panels), height=2.6)
    losses = np.concatenate([panel.losses for panel in panels])
    norm = LogNorm(vmin=losses.min(), vmax=losses.max())
    shown = None
    for ax, panel in zip(axes, panels, strict=True):
        ax.grid(visible=False)
        for which, marker in ((-1.0, "o"), (1.0, "^")):
            kept = panel.y == which
            x, y = panel.X[kept].T
            shown = ax.scatter(
                x, y, c=panel.losses[kept], norm=norm, marker=marker, s=14, cmap="viridis_r", linewidths=0
            )
        direction = panel.params / np.linalg.norm(panel.params)
        across = np.array([-direction[1], direction[0]])
        ax.plot(*np.outer(across, (-1.0, 1.0)), color="0.3", linewidth=1, linestyle="--")
        ax.annotate(
            "",
            xytext=(0.0, 0.0),
            xy=tuple(0.5 * direction),
            arrowprops={"arrowstyle": "->", "color": "#d55e00", "lw": 2},
        )
        ax.set_aspect("equal")
        ax.set_xlim(-1.05, 1.05)
        ax.set_ylim(-1.05, 1.05)
        name = panel.omega.replace("pi", r"\pi")
        label(ax, rf"$\omega$ = ${name}$, greatest loss {panel.losses.max():.2g}")
    if shown is not None:
        bar = figure.colorbar(shown, ax=figure.axes, location="bottom", shrink=0.85, aspect=40)
        bar.set_label("true privacy loss of the point (epsilon)", fontsize="small")
        bar.ax.tick_params(labelsize="small")
    head(
        figure,
        "Minimiser (arrow: the side of the triangles) rotated by $\\omega$; losses for Kifer et al.'s $\\sigma$. "
        "NOT PRIVATE",
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
        for who, (colour, line) in _WHO.items():
            losses = [cell.losses[who] for cell in here]
            ax.errorbar(
                [cell.ridge for cell in here],
                [np.mean(one) for one in losses],
                yerr=None if who == "no noise" else [np.std(one) for one in losses],
                color=colour,
                linestyle=line,
                marker="o",
                markersize=4,
                capsize=3,
                label=who,
            )
        ax.set_xscale("log")
        label(ax, rf"{title}, $\epsilon_1$ = {epsilon:g}", r"$\Lambda$", "mean loss")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    legend(figure, handles, labels, n_columns=3)
    head(figure, "Mean loss of released parameters against regularisation. NOT PRIVATE")
    return figure


def draw_bounds(cells: Sequence[MethodLosses]) -> "Figure":
    """Return a figure with a row of panels for each data set: the paper's reports, then tight ones.

    A panel shows the losses of all records in ascending order: the bound on the loss of the coefficients, the true
    loss, and the total of all releases.
    """
    titles = list(dict.fromkeys(cell.title for cell in cells))
    figure, axes = grid(len(titles), 3, height=2.6)
    for row, title in enumerate(titles):
        here = [cell for cell in cells if cell.title == title]
        least = min(cell.ridge for cell in here)
        groups = {
            "paper": [c for c in here if c.ridge > least and c.calibration == "paper"],
            "tight": [c for c in here if c.ridge > least and c.calibration == "tight"],
            "least": [c for c in here if c.ridge == least],
        }
        for ax, group in zip(axes[row], groups.values(), strict=True):
            for cell, colour in zip(group, _COLOURS[: len(group)], strict=True):
                ax.semilogy(*_sorted(cell.bound), color=colour, linewidth=1.6, label=cell.label)
                ax.semilogy(*_sorted(cell.true), color=colour, linewidth=1.2, linestyle=":")
                if cell.total is not None:
                    ax.semilogy(*_sorted(cell.total), color=colour, linewidth=1.2, linestyle="--")
            ax.axhline(1.0, color="0.6", linewidth=0.8)
            ax.set_ylim(1e-4, 3.0)
            ax.legend(fontsize="x-small", loc="lower right")
            label(ax, rf"{title}, $\Lambda$ = {group[0].ridge:.3g}", "share of records", "privacy loss (epsilon)")
    head(
        figure,
        "Losses of the training records in ascending order: bound on that of the coefficients (solid), true "
        "(dotted), with the other releases (dashed); first repeat. NOT PRIVATE",
    )
    return figure


def _sorted(values: _F64) -> tuple[object, object]:
    """Return shares and quantiles."""
    shares = np.linspace(0.0, 1.0, _N_SHOWN)
    return shares, np.quantile(values, shares)
