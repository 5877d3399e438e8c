"""Plot of a utility curve; matplotlib is optional and imported when it is drawn."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.plotting import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpci._utility_curve import UtilityCurve

_F64: TypeAlias = NDArray[np.float64]


def plot_curve(curve: "UtilityCurve", columns: dict[str, _F64], ax: "Axes | None") -> "Axes":
    """Draw the columns of a curve over the budget, on a logarithmic axis."""
    if ax is None:
        ax = new_axes(10)
    eps = columns[curve.path.number]
    low, high = (columns["expected"] + sign * columns["expected_std"] for sign in (-1.0, 1.0))
    ax.fill_between(eps, low, high, color="C0", alpha=0.15, linewidth=0, label="mean over the noise ± 1 sd")
    ax.plot(eps, columns["expected"], color="C0", linestyle=":")
    draws = "this draw" if curve.n_draws == 1 else f"mean of {curve.n_draws} draws"
    ax.plot(eps, columns["newton"], color="C0", label=f"predicted, {draws}")
    ax.plot(eps, columns["first_order"], color="C7", linewidth=1, label="first order")
    ax.plot([curve.path.at], [curve.utility], "o", color="C3", label="measured")
    ax.set_xscale("log")
    # The tangent and the bound leave the range of the curve: they must not set it.
    inside = np.concatenate([columns["newton"], low, high])
    margin = 0.25 * (np.ptp(inside) or 1.0)
    ax.set_ylim(inside.min() - margin, inside.max() + margin)
    if "worst_case" in columns:
        ax.plot(eps, columns["worst_case"], color="C1", linestyle="--", label="worst case (mean)")
    ax.set_xlabel(curve.path.number)
    ax.set_ylabel(curve.metric.replace("_", " "))
    ax.set_title("NOT PRIVATE", color="C3")
    ax.legend(frameon=False)
    return ax
