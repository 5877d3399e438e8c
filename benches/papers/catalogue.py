"""The experiments of Wu et al., of Redberg & Wang (2021) and of Li et al. by name."""

from collections.abc import Callable, Mapping
from typing import Final

from dpci.papers.finding import Finding, Repeats
from dpci.papers.li import experiments as utility
from dpci.papers.redberg import bounds as per_instance_bounds
from dpci.papers.redberg import experiments as per_instance
from dpci.papers.sources import Sources
from dpci.papers.wu import experiments as regression

EXPERIMENTS: Final[Mapping[str, Mapping[str, Callable[[Sources, Repeats], Finding]]]] = {
    "S1": {"mechanisms": regression.mechanisms, "sizes": regression.sizes, "scalings": regression.scalings},
    "S2": {
        "rotation": per_instance.rotation,
        "regularisation": per_instance.regularisation,
        "bounds": per_instance_bounds.bounds,
    },
    "S4": {"curves": utility.curves, "measuring_points": utility.measuring_points, "sizes": utility.sizes},
}
"""The experiments by paper and name."""

REPEATS: Final[Mapping[str, int]] = {"S1": 100, "S2": 10, "S4": 10}
"""Default number of repeats by paper."""

NAMES: Final = "; ".join(f"{paper}: {', '.join(experiments)}" for paper, experiments in EXPERIMENTS.items())
