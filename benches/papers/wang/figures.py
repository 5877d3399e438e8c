"""Draws interval length against variability length as Wang, Kifer & Lee (2019) do; matplotlib is optional."""

from pathlib import Path
from typing import TYPE_CHECKING

from _panels import PANELS_A_LINE, grid, head, label, legend
from _panels import save as write
from dpci.report.style import BLUE, VERMILION
from papers.wang.experiments import EPSILONS, N_COLUMNS, TITLES, Panel
from papers.wang.published import LOSSES
from papers.wang.report import FigureData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SUBSCRIPTS = " ₁₂₃"
_COLOURS, _MARKERS = (BLUE, VERMILION), ("o", "s")


def draw(data: FigureData) -> "Figure":
    """Return a figure with a panel for each data set, two in a row.

    Intervals (CI) are solid, with bars of one standard deviation over the replicates; variability intervals (VI) are
    dashed and have no bars.
    """
    figure, axes = grid(-(-len(data.panels) // PANELS_A_LINE), PANELS_A_LINE, height=2.5)
    places = [ax for row in axes for ax in row]
    for ax, panel in zip(places, data.panels, strict=False):
        _draw_panel(ax, data, panel)
    for ax in places[len(data.panels) :]:
        ax.remove()
    # matplotlib lists lines before lines with bars; readers want each CI beside its VI.
    handles = dict(sorted(zip(*figure.axes[0].get_legend_handles_labels()[::-1], strict=True)))
    legend(figure, list(handles.values()), list(handles), n_columns=min(len(handles), 4))
    title = f"Figure {data.plan.number}: length of 95% intervals, {data.plan.title} ({data.calibration} calibration)"
    head(figure, title)
    return figure


def save(data: FigureData, path: Path) -> None:
    """Draw into a file, whose extension determines the format."""
    write(draw(data), path)


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
    what = "first coordinate" if panel.sweep.varied == "d" else "mean over coordinates"
    label(ax, _title(data, panel), _x_label(data, panel), f"length, {what}")
    if panel.sweep.varied == "n":
        ax.xaxis.set_major_formatter(lambda n, _: f"{n / 1000:g}")


def _title(data: FigureData, panel: Panel) -> str:
    sweep = panel.sweep
    fixed = f"d = {N_COLUMNS}" if sweep.varied == "n" else f"n = {data.n_samples[sweep.dataset]:,}"
    return f"({panel.letter}) {TITLES[sweep.dataset]}, {LOSSES[panel.loss]}\n{fixed}"


def _x_label(data: FigureData, panel: Panel) -> str:
    varied = panel.sweep.varied
    fixed = [f"ε{_SUBSCRIPTS[k]} = {value:g}" for k, value in enumerate(EPSILONS, start=1) if varied != f"epsilon_{k}"]
    names = {"n": "sample size n (thousands)", "d": "dimension d"}
    name = names.get(varied) or f"ε{_SUBSCRIPTS[int(varied[-1])]}"
    notions = {curve.notion for curve in data.plan.curves}
    squared = [] if notions == {"DP"} else ["zCDP: ρₖ = εₖ²/2"]
    return "\n".join([name, ", ".join(fixed), *squared])
