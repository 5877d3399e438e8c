"""Draws interval length against variability length as Wang, Kifer & Lee (2019) do; matplotlib is optional."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpci.papers.wang.experiments import N_COLUMNS, TITLES, Panel
from dpci.papers.wang.published import LOSSES
from dpci.papers.wang.report import FigureData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_N_COLUMNS = 3
_COLOURS = ("#0072b2", "#d55e00")  # told apart by the colour-blind, and in grey
_MARKERS = ("o", "s")


def draw(data: FigureData) -> "Figure":
    """Return a figure with a panel for each data set, three in a row.

    Intervals (CI) are solid, with bars of one standard deviation over the replicates; variability intervals (VI) are
    dashed and have no bars.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415  # optional

    n_rows = -(-len(data.panels) // _N_COLUMNS)
    figure = Figure(figsize=(4.0 * _N_COLUMNS, 3.1 * n_rows + 0.9), layout="constrained")
    for position, panel in enumerate(data.panels, start=1):
        _draw_panel(figure.add_subplot(n_rows, _N_COLUMNS, position), data, panel)
    # matplotlib lists lines before lines with bars; readers want each CI beside its VI.
    handles = dict(sorted(zip(*figure.axes[0].get_legend_handles_labels()[::-1], strict=True)))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False)
    title = f"Figure {data.plan.number}: length of 95% intervals, {data.plan.title} ({data.calibration} calibration)"
    figure.suptitle(title, fontsize="large")
    return figure


def save(data: FigureData, path: Path) -> None:
    """Draw into a file, whose extension determines the format."""
    draw(data).savefig(path, dpi=150)


def _draw_panel(ax: "Axes", data: FigureData, panel: Panel) -> None:
    values = panel.sweep.values
    for curve, colour, marker in zip(data.plan.curves, _COLOURS, _MARKERS, strict=True):
        lengths = data.lengths[panel.letter, curve.label]
        ax.errorbar(
            values,
            [length.mean for length in lengths],
            yerr=[length.std for length in lengths],
            color=colour,
            marker=marker,
            markersize=4,
            capsize=3,
            label=f"{curve.label} CI",
        )
        variability = [length.variability for length in lengths if length.variability is not None]
        if variability:
            ax.plot(
                values,
                variability,
                color=colour,
                marker=marker,
                markersize=4,
                markerfacecolor="white",
                linestyle="--",
                label=f"{curve.label} VI",
            )
    ax.set_ylim(bottom=0.0)
    ax.set_title(_title(data, panel), fontsize="medium")
    ax.set_xlabel(_x_label(data, panel))
    if panel.sweep.varied == "n":
        ax.xaxis.set_major_formatter(lambda n, _: f"{n / 1000:g}")
    ax.set_ylabel(f"length, {'first coordinate' if panel.sweep.varied == 'd' else 'mean over coordinates'}")
    ax.grid(color="0.9")
    ax.set_axisbelow(True)


def _title(data: FigureData, panel: Panel) -> str:
    sweep = panel.sweep
    fixed = f"$d$ = {N_COLUMNS}" if sweep.varied == "n" else f"$n$ = {data.n_samples[sweep.dataset]:,}"
    return f"({panel.letter}) {TITLES[sweep.dataset]}, {LOSSES[panel.loss]}, {fixed}"


def _x_label(data: FigureData, panel: Panel) -> str:
    names = {"n": "sample size $n$ (thousands)", "d": "dimension $d$"}
    if panel.sweep.varied in names:
        return names[panel.sweep.varied]
    step = panel.sweep.varied.removeprefix("epsilon_")
    notions = {curve.notion for curve in data.plan.curves}
    budget = rf"$\epsilon_{step}$"
    return budget if notions == {"DP"} else rf"{budget} ($\rho_{step} = \epsilon_{step}^2/2$ under zCDP)"
