"""The experiments of Wu et al., of Redberg & Wang (2021) and of Li et al. by name."""

from collections.abc import Callable, Mapping
from typing import Final

from papers.finding import Finding, Repeats
from papers.li import experiments as utility
from papers.redberg import bounds as per_instance_bounds
from papers.redberg import experiments as per_instance
from papers.sources import Sources
from papers.wu import experiments as regression

EXPERIMENTS: Final[Mapping[str, Mapping[str, Callable[[Sources, Repeats], Finding]]]] = {
    "wu": {"mechanisms": regression.mechanisms, "sizes": regression.sizes, "scalings": regression.scalings},
    "redberg": {
        "rotation": per_instance.rotation,
        "regularisation": per_instance.regularisation,
        "bounds": per_instance_bounds.bounds,
    },
    "li": {"curves": utility.curves, "measuring_points": utility.measuring_points, "sizes": utility.sizes},
}
"""The experiments by paper and name."""

REPEATS: Final[Mapping[str, int]] = {"wu": 100, "redberg": 10, "li": 10}
"""Default number of repeats by paper."""
