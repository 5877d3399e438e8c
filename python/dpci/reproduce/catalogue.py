"""The experiments of Redberg & Wang (2021) and of Li et al. by name."""

from collections.abc import Callable, Mapping
from typing import Final

from dpci.reproduce import per_instance, per_instance_bounds, utility
from dpci.reproduce.finding import Finding, Repeats
from dpci.reproduce.sources import Sources

EXPERIMENTS: Final[Mapping[str, Mapping[str, Callable[[Sources, Repeats], Finding]]]] = {
    "S2": {
        "rotation": per_instance.rotation,
        "regularisation": per_instance.regularisation,
        "bounds": per_instance_bounds.bounds,
    },
    "S4": {"curves": utility.curves, "measuring_points": utility.measuring_points, "sizes": utility.sizes},
}
"""By paper and name."""

NAMES: Final = "; ".join(f"{paper}: {', '.join(experiments)}" for paper, experiments in EXPERIMENTS.items())
