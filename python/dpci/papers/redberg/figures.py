"""Draws true privacy losses, their bounds, and utility against regularisation; needs matplotlib."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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

    figure = _figure(4.2 * len(panels), 4.0)
    losses = np.concatenate([panel.losses for panel in panels])
    norm = LogNorm(vmin=losses.min(), vmax=losses.max())
    shown = None
    for position, panel in enumerate(panels, start=1):
        ax = figure.add_subplot(1, len(panels), position)
        for label, marker in ((-1.0, "o"), (1.0, "^")):
            kept = panel.y == label
            x, y = panel.X[kept].T
            shown = ax.scatter(
                x, y, c=panel.losses[kept], norm=norm, marker=marker, s=28, cmap="viridis_r", linewidths=0
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
        ax.set_title(rf"$\omega$ = ${name}$, greatest loss {panel.losses.max():.2g}", fontsize="medium")
    if shown is not None:
        figure.colorbar(shown, ax=figure.axes, label="true loss of the point", shrink=0.85)
    figure.suptitle(
        "Minimiser (arrow: the side of the triangles) rotated by $\\omega$; losses for Kifer et al.'s $\\sigma$. "
        "NOT PRIVATE"
    )
    return figure


def draw_regularisation(cells: Sequence[MeanLosses]) -> "Figure":
    """Return a figure with a panel for each data set and epsilon: mean loss against Lambda, bars of one deviation."""
    places = list(dict.fromkeys((cell.epsilon, cell.title) for cell in cells))
    n_rows = -(-len(places) // 2)
    figure = _figure(9.5, 3.0 * n_rows + 0.9)
    for position, (epsilon, title) in enumerate(sorted(places), start=1):
        ax = figure.add_subplot(n_rows, 2, position)
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
        _label(ax, rf"{title}, $\epsilon_1$ = {epsilon:g}", r"$\Lambda$", "mean loss")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle("Mean loss of released parameters against regularisation. NOT PRIVATE")
    return figure


def draw_bounds(cells: Sequence[MethodLosses]) -> "Figure":
    """Return a figure with a row of panels for each data set: the paper's reports, then tight ones.

    A panel shows the losses of all records in ascending order: the bound on the loss of the coefficients, the true
    loss, and the total of all releases.
    """
    titles = list(dict.fromkeys(cell.title for cell in cells))
    figure = _figure(13.0, 3.6 * len(titles) + 1.0)
    for row, title in enumerate(titles):
        here = [cell for cell in cells if cell.title == title]
        least = min(cell.ridge for cell in here)
        groups = {
            "paper": [c for c in here if c.ridge > least and c.calibration == "paper"],
            "tight": [c for c in here if c.ridge > least and c.calibration == "tight"],
            "least": [c for c in here if c.ridge == least],
        }
        for column, group in enumerate(groups.values(), start=1):
            ax = figure.add_subplot(len(titles), len(groups), len(groups) * row + column)
            for cell, colour in zip(group, _COLOURS[: len(group)], strict=True):
                ax.semilogy(*_sorted(cell.bound), color=colour, linewidth=1.6, label=cell.label)
                ax.semilogy(*_sorted(cell.true), color=colour, linewidth=1.2, linestyle=":")
                if cell.total is not None:
                    ax.semilogy(*_sorted(cell.total), color=colour, linewidth=1.2, linestyle="--")
            ax.axhline(1.0, color="0.6", linewidth=0.8)
            ax.set_ylim(1e-4, 3.0)
            ax.legend(fontsize="small", loc="lower right")
            _label(ax, rf"{title}, $\Lambda$ = {group[0].ridge:.3g}", "share of records", "loss")
    figure.suptitle(
        "Losses of the training records in ascending order: bound on that of the coefficients (solid), true "
        "(dotted),\nwith the other releases (dashed); first repeat. NOT PRIVATE"
    )
    return figure


def _sorted(values: _F64) -> tuple[object, object]:
    """Return shares and quantiles."""
    shares = np.linspace(0.0, 1.0, _N_SHOWN)
    return shares, np.quantile(values, shares)


def _figure(width: float, height: float) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    return Figure(figsize=(width, height), layout="constrained")


def _label(ax: "Axes", title: str, x_label: str, y_label: str) -> None:
    ax.set_title(title, fontsize="medium")
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
