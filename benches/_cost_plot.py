"""Draws the cost of a replicate against rows, columns and threads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from _panels import grid, head, label, legend, save
from _tables import read_table
from dpci.report.style import BLUE, GREEN, GREY, LETTERS, VERMILION

TITLE = "Cost against n, d and threads"
SPEED_UPS = "two threads against one, without set-up: "
# Ours, the opponent, and a third set of rows; markers differ as the colours do.
_LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "D"))


@dataclass(frozen=True)
class Series:
    """Seconds a replicate, ours and the opponent's, by what varies."""

    label: str
    points: Mapping[int, tuple[float, float]]

    def draw(self, ax: Axes) -> None:
        names = ("dpci, 1 thread", "NumPy (plain), best of 1 and 2 threads")
        for i, (name, (colour, marker)) in enumerate(zip(names, _LOOKS, strict=False)):
            x, y = list(self.points), [1e3 * pair[i] for pair in self.points.values()]
            ax.loglog(x, y, color=colour, marker=marker, label=name)
        ax.set_xticks(list(self.points))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda t, _: f"{t:g}"))


def draw_again(report: str, target: Path) -> None:
    """Write the figure from the numbers that a report prints."""
    points: dict[str, dict[int, tuple[float, float]]] = {}
    for what, value, ours, theirs, _ in read_table(report, TITLE)[1]:
        points.setdefault(what, {})[int(value)] = 1e-3 * float(ours), 1e-3 * float(theirs)
    speed = next(line for line in report.splitlines() if line.startswith(SPEED_UPS)).removeprefix(SPEED_UPS)
    by_threads = {name: [1.0, float(found)] for name, found in (part.rsplit(" ", 1) for part in speed.split("; "))}
    by_n, by_d = (Series(what, of_what) for what, of_what in points.items())
    draw(target, by_n, by_d, by_threads)


def draw(target: Path, by_n: Series, by_d: Series, by_threads: Mapping[str, Sequence[float]]) -> None:
    """Write the figure; ``by_threads`` holds the speed-ups over one thread."""
    figure, (panels,) = grid(1, 4, height=2.6)
    panels.pop().remove()
    for ax, series, title in zip(panels, (by_n, by_d), ("rows", "columns"), strict=False):
        series.draw(ax)
        label(ax, f"Cost against {title}", series.label, "ms a replicate" if ax is panels[0] else "")
    legend(figure, *panels[0].get_legend_handles_labels(), n_columns=1)
    ax = panels[-1]
    threads = list(range(1, len(next(iter(by_threads.values()))) + 1))
    ax.plot(threads, threads, "--", color=GREY, label="ideal")
    for (name, speed_ups), (colour, marker) in zip(by_threads.items(), _LOOKS, strict=False):
        ax.plot(threads, speed_ups, color=colour, marker=marker, label=name)
    ax.set_xticks(threads)
    label(ax, "Speed-up over one thread", "threads", "times")
    # In the place beside its panel, whose lines are not those above.
    beside = ax.legend(loc="center left", bbox_to_anchor=(1.1, 0.5), frameon=False, fontsize=LETTERS)
    beside.set_in_layout(False)
    head(figure, "Cost of a bootstrap replicate with intervals, without set-up")
    target.parent.mkdir(parents=True, exist_ok=True)
    save(figure, target)
