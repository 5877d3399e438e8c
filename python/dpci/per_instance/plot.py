"""Plots of per-instance privacy losses; matplotlib is optional."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpci.report.plot import new_axes
from dpci.report.style import BLUE, LETTERS, ORANGE, VERMILION, caption
from dpci.shown.document import NOT_PRIVATE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_N_BINS = 60
_NOT_PRIVATE = f"{NOT_PRIVATE}: computed from the records"


def draw_histogram(
    eps1: NDArray[np.float64], total: NDArray[np.float64] | None, facts: Sequence[str], *, ax: "Axes | None"
) -> "Axes":
    """Draw how eps1, and the total where more was released, spread over records; ``facts`` are below the plot."""
    ax = new_axes(8) if ax is None else ax
    series = {"eps1, of the parameters": eps1}
    if total is not None:
        series["eps1 + eps2 + eps3, of all releases"] = total
    greatest = max((float(values.max()) for values in series.values() if values.size), default=1.0)
    bins = np.linspace(0.0, greatest if greatest > 0.0 else 1.0, _N_BINS + 1)
    # Apart without colour, too: filled, and hatched.
    looks: tuple[dict[str, Any], ...] = (
        {"facecolor": BLUE, "alpha": 0.5},
        {"facecolor": "none", "edgecolor": ORANGE, "hatch": "///"},
    )
    for (label, values), look in zip(series.items(), looks, strict=False):
        ax.hist(values, bins=bins.tolist(), histtype="stepfilled", label=label, **look)
    ax.set_xlabel("bound on the privacy loss (ε) of a record")
    caption(ax, *facts)
    ax.set_ylabel("number of records")
    ax.set_title(_NOT_PRIVATE, color=VERMILION, fontsize=LETTERS)
    ax.legend()
    return ax


def draw_against_truth(
    truth: NDArray[np.float64], bound: NDArray[np.float64], facts: Sequence[str], *, ax: "Axes | None"
) -> "Axes":
    """Scatter the bound against the exact loss, with the line where they agree; ``facts`` are below the plot."""
    ax = new_axes(12) if ax is None else ax
    ax.scatter(truth, bound, s=4, alpha=0.4, color=BLUE)
    end = float(max(truth.max(initial=0.0), bound.max(initial=0.0)))
    ax.plot([0.0, end], [0.0, end], color="0.6", linewidth=1, label="bound = exact loss")
    ax.legend()
    ax.set_xlabel("exact privacy loss (ε) of a record")
    caption(ax, *facts)
    ax.set_ylabel("published bound on it (eps1)")
    ax.set_title(_NOT_PRIVATE, color=VERMILION, fontsize=LETTERS)
    return ax
