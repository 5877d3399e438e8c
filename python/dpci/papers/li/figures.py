"""Draws real losses against predicted ones, and errors by measuring point and by number of rows; needs matplotlib."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from dpci.papers.panels import grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpci.papers.li.measure import Case, Found, Losses, Order

# Told apart by the colour-blind: one colour for each measuring point, orange for the real losses as in the paper.
_REAL = "#e69f00"
_COLOURS = ("#0072b2", "#009e73", "#cc79a7")
_ORDERS: "dict[Order, tuple[str, str]]" = {"first_order": ("--", "first order"), "newton": ("-", "two steps")}
_MECHANISM_NAMES = {"paper": "Kifer et al.", "tight": "tight"}

# Real losses fill this share of a panel: tangents leave it.
_ROOM = 0.6


def draw_curves(found: "Found") -> "Figure":
    """Return a figure with a row of panels for each data set and loss: two mechanisms times two ranges of epsilon."""
    panels = list(dict.fromkeys(case.panel for case, _ in found))
    figure, axes = grid(len(panels), 4, width=3.6, height=2.3)
    places: dict[str, int] = {}
    for case, losses in found:
        row = panels.index(case.panel)
        column = places.get(case.panel, 0)
        places[case.panel] = column + 1
        _draw_curve(axes[row][column], case, losses)
        if column == 0:
            axes[row][column].set_ylabel("mean loss")
        if row == len(panels) - 1:
            axes[row][column].set_xlabel(r"$\epsilon$")
    # The measuring points of both ranges share their colours.
    points = zip(*dict.fromkeys(case.span.measured for case, _ in found), strict=True)
    named = [" or ".join(f"{at:g}" for at in dict.fromkeys(same)) for same in points]
    handles, _ = axes[0][0].get_legend_handles_labels()
    labels = ["real", *(f"{name}, at {at}" for at in named for _, name in _ORDERS.values())]
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
        fontsize="small",
        columnspacing=1.2,
    )
    figure.suptitle("Mean loss against epsilon: real (orange), predicted from three measuring points. NOT PRIVATE")
    return figure


def _draw_curve(ax: "Axes", case: "Case", losses: "Losses") -> None:
    real = losses.real.mean(axis=0)
    ax.plot(losses.epsilons, real, color=_REAL, linewidth=4, label="real")
    for at, colour in zip(case.span.measured, _COLOURS, strict=True):
        for order, (line, name) in _ORDERS.items():
            predicted = losses.predicted[at, order].mean(axis=0)
            ax.plot(losses.epsilons, predicted, line, color=colour, linewidth=1.2, label=f"{name} {at:g}")
        ax.plot(at, np.interp(at, losses.epsilons, real), "o", color=colour, markersize=4)
    low, high = real.min(), real.max()
    margin = (high - low) * (1.0 - _ROOM) / _ROOM / 2.0
    ax.set_ylim(low - margin, high + margin)
    ax.locator_params(nbins=4)
    _label(ax, f"{case.panel}, {_MECHANISM_NAMES[case.mechanism]}")


def draw_measuring_points(found: "Found") -> "Figure":
    """Return a figure of mean errors against the measuring point."""
    return _draw_errors(
        found,
        lambda case, losses, order: [(at, losses.mean_error(order, at)) for at in case.span.epsilons],
        "measuring point $\\epsilon$",
        "Mean error of the predicted losses by measuring point. NOT PRIVATE",
    )


def draw_sizes(found: "Found") -> "Figure":
    """Return a figure of mean errors against the number of rows."""
    return _draw_errors(
        found,
        lambda case, losses, order: [(len(case.data.X), losses.mean_error(order))],
        "rows $n$",
        "Mean error of the predicted losses by number of rows. NOT PRIVATE",
    )


def _draw_errors(
    found: "Found",
    points: "Callable[[Case, Losses, Order], Iterable[tuple[float, float]]]",
    x_label: str,
    title: str,
) -> "Figure":
    """Draw a panel for each mechanism and range, on logarithmic axes, with a colour for each data set and loss."""
    columns = list(dict.fromkeys((case.mechanism, case.span.title) for case, _ in found))
    panels = list(dict.fromkeys(case.panel for case, _ in found))
    colours = dict(zip(panels, (*_COLOURS, _REAL), strict=True))
    figure, axes = grid(2, 2, width=5.0, height=3.4)
    for position, (mechanism, span) in enumerate(columns):
        ax = axes[position // 2][position % 2]
        for panel in panels:
            for order, (line, name) in _ORDERS.items():
                shown = sorted(
                    point
                    for case, losses in found
                    if (case.panel, case.mechanism, case.span.title) == (panel, mechanism, span)
                    for point in points(case, losses, order)
                )
                ax.loglog(
                    *zip(*shown, strict=True),
                    line,
                    color=colours[panel],
                    marker=".",
                    label=f"{panel}, {name}",
                )
        _label(ax, f"{_MECHANISM_NAMES[mechanism]}, {span}")
        ax.set_xlabel(x_label)
        ax.set_ylabel("mean error")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    figure.suptitle(title)
    return figure


def _label(ax: "Axes", title: str) -> None:
    ax.set_title(title, fontsize="medium")
    ax.grid(color="0.9")
    ax.set_axisbelow(True)
