"""Draws real losses against predicted ones, and errors by measuring point and by number of rows; needs matplotlib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from _panels import grid, head, label, legend
from dpci.report.style import BLUE, GREEN, ORANGE, PURPLE, log_numbers
from papers.li.measure import DELTA, MECHANISMS, SPANS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from papers.li.measure import Case, Found, Losses, Order

# One colour for each measuring point, orange for the real losses as in the paper.
_COLOURS = (BLUE, GREEN, PURPLE)
_ORDERS: "dict[Order, tuple[str, str]]" = {"first_order": ("--", "first order"), "newton": ("-", "two steps")}
_MECHANISM_NAMES = {"paper": "Kifer et al.", "tight": "tight"}
# A data set and a loss: its colour and marker.
_PANELS = ((BLUE, "o"), (GREEN, "s"), (PURPLE, "^"), (ORANGE, "D"))
_NOTION = f"δ = {DELTA:g}, Gaussian noise.\nNOT PRIVATE"

# Real losses fill this share of a panel: tangents leave it.
_ROOM = 0.6


def draw_curves(found: "Found") -> "Figure":
    """Return a figure with a row of panels for each data set and loss, and a column for each mechanism.

    Both ranges of epsilon are in one panel; the regularisation of the tight mechanism changes where they meet.
    """
    panels = list(dict.fromkeys(case.panel for case, _ in found))
    figure, axes = grid(len(panels), len(MECHANISMS), height=2.1)
    for row, panel in enumerate(panels):
        for column, mechanism in enumerate(MECHANISMS):
            ax = axes[row][column]
            here = [each for each in found if (each[0].panel, each[0].mechanism) == (panel, mechanism)]
            for case, losses in here:
                _draw_curve(ax, case, losses)
            _log_room(ax, np.concatenate([losses.real.mean(axis=0) for _, losses in here]))
            log_numbers(ax, "x")
            ax.axvline(1.0, color="0.75", linewidth=0.8)
            title = f"{panel}, {_MECHANISM_NAMES[mechanism]}"
            label(ax, title, "ε" if row == len(panels) - 1 else "", "" if column else "mean loss")
    # The measuring points of both ranges share their colours.
    points = zip(*dict.fromkeys(case.span.measured for case, _ in found), strict=True)
    named = [" or ".join(f"{at:g}" for at in dict.fromkeys(same)) for same in points]
    handles, _ = axes[0][0].get_legend_handles_labels()
    labels = ["real", *(f"{name}, at {at}" for at in named for _, name in _ORDERS.values())]
    legend(figure, handles[: len(labels)], labels, n_columns=1)
    n_draws = len(found[0][1].real)
    draws = "one draw" if n_draws == 1 else f"mean of {n_draws} draws"
    head(
        figure,
        f"Mean loss against ε, {draws}: real, and predicted from each of three measuring "
        f"points (dots) in both ranges; {_NOTION}",
    )
    return figure


def _draw_curve(ax: "Axes", case: "Case", losses: "Losses") -> None:
    real = losses.real.mean(axis=0)
    ax.plot(losses.epsilons, real, color=ORANGE, linewidth=4, label="real")
    for at, colour in zip(case.span.measured, _COLOURS, strict=True):
        for order, (line, name) in _ORDERS.items():
            predicted = losses.predicted[at, order].mean(axis=0)
            ax.plot(losses.epsilons, predicted, line, color=colour, linewidth=1.2, label=f"{name} {at:g}")
        ax.plot(at, np.interp(at, losses.epsilons, real), "o", color=colour, markersize=4)


def _log_room(ax: "Axes", real: np.ndarray) -> None:
    """Give real losses their share of a logarithmic axis with few ticks of plain numbers."""
    low, high = np.log(real.min()), np.log(real.max())
    margin = (high - low) * (1.0 - _ROOM) / _ROOM / 2.0
    log_numbers(ax, "y", subs=(1.0, 2.0, 5.0))
    ax.set_ylim(np.exp(low - margin), np.exp(high + margin))


def draw_measuring_points(header: Sequence[str], rows: Sequence[Sequence[str]]) -> "Figure":
    """Return a figure of mean errors against the measuring point, drawn from the table of the report."""
    return _draw_errors(
        header,
        rows,
        "measuring point ε",
        f"Mean error of the losses predicted in the range, by measuring point; {_NOTION}",
    )


def draw_sizes(header: Sequence[str], rows: Sequence[Sequence[str]]) -> "Figure":
    """Return a figure of mean errors against the number of rows, drawn from the table of the report."""
    return _draw_errors(
        header,
        rows,
        "rows n",
        f"Mean error of the losses predicted from the measuring points, by number of rows; {_NOTION}",
    )


def _draw_errors(header: Sequence[str], rows: Sequence[Sequence[str]], x_label: str, title: str) -> "Figure":
    """Draw a panel for each mechanism and range, on logarithmic axes, with a colour for each data set and loss.

    A row is the mechanism, the range, what varies, and for each data set and loss the errors of both orders.
    """
    panels = header[3::2]
    spans = [span.title for span in SPANS.values()]
    figure, axes = grid(len(MECHANISMS), len(spans), height=2.8)
    for at_row, mechanism in enumerate(MECHANISMS):
        for column, span in enumerate(spans):
            ax = axes[at_row][column]
            here = [row for row in rows if tuple(row[:2]) == (mechanism, span)]
            x = [float(row[2].replace(",", "")) for row in here]
            for i, (panel, (colour, marker)) in enumerate(zip(panels, _PANELS, strict=True)):
                for order, (line, name) in enumerate(_ORDERS.values()):
                    y = [float(row[3 + 2 * i + order]) for row in here]
                    ax.plot(
                        x, y, line, color=colour, marker=marker, markersize=3, linewidth=1.2, label=f"{panel}, {name}"
                    )
            log_numbers(ax, "x")
            log_numbers(ax, "y")
            span_of = span.replace("epsilon", "ε").replace("<=", "≤")
            label(ax, f"{_MECHANISM_NAMES[mechanism]}, {span_of}", x_label, "" if column else "mean error of the loss")
    handles, labels = axes[0][0].get_legend_handles_labels()
    legend(figure, handles, labels)
    head(figure, title)
    return figure
