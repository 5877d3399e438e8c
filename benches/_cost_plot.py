"""Draws the cost of a replicate against rows, columns and threads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter


@dataclass(frozen=True)
class Series:
    """Seconds a replicate, ours and the opponent's, by what varies."""

    label: str
    points: Mapping[int, tuple[float, float]]

    def draw(self, ax: Axes) -> None:
        for i, name in enumerate(("dpci, 1 thread", "NumPy (plain), best of 1 and 2 threads")):
            ax.loglog(list(self.points), [1e3 * pair[i] for pair in self.points.values()], "os"[i] + "-", label=name)
        ax.set(xlabel=self.label, ylabel="ms a replicate")
        ax.set_xticks(list(self.points))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x / 1000:g}k" if x >= 1000 else f"{x:g}"))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda t, _: f"{t:g}"))
        ax.grid(visible=True, which="major", color="0.9")


def draw(target: Path, by_n: Series, by_d: Series, by_threads: Mapping[str, Sequence[float]]) -> None:
    """Write the figure; ``by_threads`` holds the speed-ups over one thread."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for ax, series, title in zip(axes, (by_n, by_d), ("rows", "columns"), strict=False):
        series.draw(ax)
        ax.set_title(f"Cost against {title}")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=2)
    threads = list(range(1, len(next(iter(by_threads.values()))) + 1))
    axes[2].plot(threads, threads, "--", color="0.6", label="ideal")
    for i, (name, speed_ups) in enumerate(by_threads.items()):
        axes[2].plot(threads, speed_ups, "osD"[i % 3] + "-", label=name)
    axes[2].set(xlabel="threads", ylabel="speed-up over one thread", title="Cost against threads", xticks=threads)
    axes[2].grid(visible=True, color="0.9")
    axes[2].legend()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target)
    plt.close(figure)
