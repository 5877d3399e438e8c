"""``StrataRecord``: the records of the models of all strata, what they cost together, and their JSON form."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpci.base.codec import Form, Saved, check_text
from dpci.base.validation import check_different
from dpci.budgets import ApproxDP, Neighbors, SavedBudget
from dpci.errors import InvalidInput
from dpci.released.record import FitRecord
from dpci.released.whole import cost_of_strata
from dpci.strata.counts import CountNoise, count_noise, is_rest, whole_of

# What is a model's own: released values, the number of its stratum, and what that number decides.
_OWN = {*("params", "hessian", "gradient_cov", "n_samples", "noise_scale", "noise_spectral_radius", "steps", "seals")}
_OWN |= {"newton"}


def _read_strata(name: str, values: object) -> dict[str, FitRecord]:
    if not isinstance(values, list) or not values or any(not isinstance(e, list) or len(e) != 2 for e in values):
        raise InvalidInput(f"{name} must be a list of at least one name and model, got {type(values).__name__}")
    found = [(check_text("a stratum", stratum), FitRecord.from_dict(model)) for stratum, model in values]
    check_different(f"names of {name} must differ", (stratum for stratum, _ in found))
    return dict(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class StrataRecord(Saved):
    """Everything that a :class:`~dpci.StrataFit` knows."""

    KIND: ClassVar[str] = "dpci.StrataFit"
    WHAT: ClassVar[str] = "saved strata"

    by: str
    """The column of strata."""
    neighbors: Neighbors
    """The relation for which all strata together were charged."""
    budget: SavedBudget
    """Budget of each fit, including the counts if there are any."""
    charged: SavedBudget
    """Cost of all strata together."""
    counted: SavedBudget | None
    """Cost of the counts of records or persons; None if their numbers are public stand-ins."""
    strata: Annotated[
        dict[str, FitRecord], Form(lambda fits: [[name, fit.to_dict()] for name, fit in fits.items()], _read_strata)
    ]
    """The record of the model of each, by the name of the category."""

    @property
    def count_noise(self) -> CountNoise | None:
        """Cost of the counts, and the noise on each; None without."""
        return None if self.counted is None else count_noise(len(self.strata), self.counted)

    def check(self) -> None:
        """Refuse models that are no strata of one table, and a charge that is not theirs."""
        budget, counted = self.budget, self.counted
        notion = "pure" if isinstance(budget, ApproxDP) else budget.notion
        if counted is not None and counted.notion != notion:
            raise InvalidInput(
                f"counts of strata at {budget} must have a budget of the notion {notion!r}, got {counted}"
            )
        common = _common(next(iter(self.strata.values())))
        whole = whole_of(len(self.strata), self.neighbors, self.charged, self.count_noise)
        for name, fit in self.strata.items():
            own = _common(fit)
            if differ := sorted(field for field in own | common if own.get(field) != common.get(field)):
                raise InvalidInput(f"strata must be models of one kind, got another {differ[0]} of {name!r}")
            same = fit.neighbors == "add_remove" and fit.whole in (None, whole)
            right = fit.budget == budget if counted is None else is_rest(fit.budget, budget, counted)
            if not (same and right):
                raise InvalidInput(f"strata must be models of one kind at the budget of all, got another of {name!r}")
        least = cost_of_strata(budget, self.neighbors)
        if self.charged != least:
            raise InvalidInput(f"charged must be what the strata cost together, {least}, got {self.charged}")


def _common(fit: FitRecord) -> dict[str, Any]:
    """Return what the models of all strata have in common; λ may depend on the number of records."""
    differs = fit.variant == "cms11" or fit.l2_recommended
    own = {"checksum", *_OWN, *(["l2_strength"] if differs else [])}
    return {name: value for name, value in fit.to_dict().items() if name not in own}
