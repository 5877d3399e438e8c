"""Draws real losses against predicted ones, and errors by measuring point and by number of rows; needs matplotlib."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from dpci.papers.panels import PANELS_A_LINE, grid, head, label, legend

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
    figure, axes = grid(len(panels), 4, height=2.1)
    places: dict[str, int] = {}
    for case, losses in found:
        row = panels.index(case.panel)
        column = places.get(case.panel, 0)
        places[case.panel] = column + 1
        _draw_curve(axes[row][column], case, losses)
        title = _title(case.panel, case.mechanism)
        label(axes[row][column], title, r"$\epsilon$", "" if column % PANELS_A_LINE else "mean loss")
    # The measuring points of both ranges share their colours.
    points = zip(*dict.fromkeys(case.span.measured for case, _ in found), strict=True)
    named = [" or ".join(f"{at:g}" for at in dict.fromkeys(same)) for same in points]
    handles, _ = axes[0][0].get_legend_handles_labels()
    labels = ["real", *(f"{name}, at {at}" for at in named for _, name in _ORDERS.values())]
    legend(figure, handles, labels)
    head(figure, "Mean loss against epsilon: real (orange), predicted from three measuring points. NOT PRIVATE")
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
    figure, axes = grid(2, 2, height=2.5)
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
        label(ax, f"{_MECHANISM_NAMES[mechanism]}, {span}", x_label, "mean error")
    handles, labels = axes[0][0].get_legend_handles_labels()
    legend(figure, handles, labels)
    head(figure, title)
    return figure


def _title(panel: str, mechanism: str) -> str:
    return f"{panel}, {_MECHANISM_NAMES[mechanism]}"
