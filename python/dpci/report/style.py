"""One style for all plots: colours that colour-blind readers tell apart, and a caption with the budget."""

from typing import TYPE_CHECKING, Literal

from dpci.budgets import GaussianBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

# Okabe and Ito's palette, whose blue is next to that of matplotlib; each differs from the others in lightness too.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, BROWN = "#CC79A7", "#56B4E9", "#8C564B"
GREY, BLACK = "0.45", "#000000"

# Inches and points: letters have 9 pixels where a telephone of 390 pixels shows the figure 358 pixels wide.
WIDTH, LETTERS = 5.5, 10.0


def log_numbers(ax: "Axes", which: Literal["x", "y"], *, subs: "Sequence[float]" = (1.0,)) -> None:
    """Make an axis logarithmic, with plain numbers: the exponents of powers would be too small to read."""
    from matplotlib.ticker import LogLocator, NullFormatter  # noqa: PLC0415  # optional

    axis = ax.xaxis if which == "x" else ax.yaxis
    if axis.get_scale() != "log":
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(lambda value, _: f"{value:g}".replace("e-0", "e-"))
    axis.set_minor_formatter(NullFormatter())


def caption(ax: "Axes", *lines: str) -> "Axes":
    """Write lines below the label of the horizontal axis, where they stay with the plot."""
    ax.set_xlabel("\n".join(line for line in (ax.get_xlabel(), *lines) if line))
    return ax


def symbols(text: str) -> str:
    """Return the text of a budget with the letters that plots use for its numbers."""
    for name, letter in (("epsilon", "ε"), ("delta", "δ"), ("rho", "ρ")):
        text = text.replace(name, letter)
    return text


def facts_of_release(budget: GaussianBudget, n_samples: int, *, neighbors: str, private: bool) -> tuple[str, str]:
    """Return the budget of the release behind a plot, and the number of its records."""
    spent = symbols(str(budget) if private else f"noise as for {budget}")
    count = "n_public" if neighbors == "add_remove" else "n"
    return spent, f"{count} = {n_samples:,}"
