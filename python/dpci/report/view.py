"""``View``: which numbers of a released model a summary or a page shows."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dpci.base.tables import format_percent
from dpci.base.validation import check_choice, check_fraction
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.methods import Inference
from dpci.inference.targets.coefficients import estimates_of, full_range_of, parameter_estimates
from dpci.inference.targets.estimates import Estimates, Simultaneous
from dpci.inference.targets.unregularised import TARGETS, Target

Units: TypeAlias = Literal["table", "scaled"]
UNITS: tuple[Units, ...] = ("table", "scaled")


@dataclass(frozen=True, kw_only=True)
class View:
    """Parts of a model that are shown.

    Parameters
    ----------
    level : float
        Level of the intervals.
    target : {"regularised", "unregularised"}
        Target of the estimates.
    simultaneous : {"bonferroni", "max_z"}, optional
        How the intervals cover together; None: each by itself.
    units : {"table", "scaled"}
        Coefficients in the units of the table, where the fit had a schema, or parameters of the scaled columns.
    """

    level: float = 0.95
    target: Target = "regularised"
    simultaneous: Simultaneous | None = None
    units: Units = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", check_fraction("level", self.level))
        check_choice("target", self.target, TARGETS)
        check_choice("units", self.units, UNITS)
        if self.simultaneous is not None:
            check_choice("simultaneous", self.simultaneous, ("bonferroni", "max_z"))

    def in_units(self, result: Inference) -> bool:
        """Whether a result is shown in the units of its table."""
        return self.units == "table" and result.schema is not None

    def estimates(self, result: Inference, target: Target | None = None) -> tuple[tuple[str, ...], Estimates]:
        """Return the names of what is shown and their estimates, of another target if one is named."""
        target = self.target if target is None else target
        if self.in_units(result):
            return estimates_of(result, target)
        return result.names, parameter_estimates(result, target)

    def title(self, result: Inference) -> str:
        """Return what a table of the intervals is called."""
        together = "" if self.simultaneous is None else f" simultaneous ({self.simultaneous})"
        units = " in the units of the table" if self.in_units(result) else ""
        return f"{format_percent(self.level)}{together} confidence intervals{units}"

    def drawn(self, result: Inference) -> ConfidenceIntervals:
        """Return the intervals of a plot: coefficients over the full range of each column, which share an axis."""
        names, estimates = self.estimates(result)
        if self.in_units(result):
            names, estimates = full_range_of(result, self.target)
        return estimates.conf_int(names, level=self.level, simultaneous=self.simultaneous)
