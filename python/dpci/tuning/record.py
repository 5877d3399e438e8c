"""``TuneRecord``: the chosen candidate, how it was chosen and its model, and the JSON form of a tuning."""

import copy
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, cast

from dpci.base.codec import Form, Saved
from dpci.base.validation import broken
from dpci.budgets import SavedBudget
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL, describe
from dpci.multinomial.record import MultinomialRecord
from dpci.released.record import FitRecord, SelectedRecord
from dpci.tuning.candidates import FREE
from dpci.tuning.selection import Selection


def _check_object(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise broken(name, "an object", value)
    return value


def _read_fit(_: str, values: object) -> FitRecord | MultinomialRecord:
    is_several = isinstance(values, dict) and values.get("schema") == MultinomialRecord.KIND
    return MultinomialRecord.from_dict(values) if is_several else FitRecord.from_dict(values)


@dataclass(frozen=True, kw_only=True, eq=False)
class TuneRecord(Saved):
    """Everything that a :class:`~dpci.tuning.TuneResult` knows, but losses and mechanisms as they were given."""

    KIND: ClassVar[str] = "dpci.TuneResult"
    WHAT: ClassVar[str] = "a saved tuning"

    params: Annotated[dict[str, Any], Form(copy.deepcopy, _check_object)]
    """The chosen candidate, or what the public rule says; losses and mechanisms by their descriptions."""
    budget: SavedBudget
    """Budget that was asked for, choice and fit together."""
    selection: Annotated[Selection, Form(Selection.to_saved, Selection.from_saved)] | None
    """How the candidate was chosen; None for the public rule, which spends nothing on it."""
    fit: Annotated[FitRecord | MultinomialRecord, Form(lambda record: record.to_dict(), _read_fit)] | None
    """The fit with the rest of the budget; None where there is none."""
    model: SelectedRecord | None
    """The model that won its selection; None where it was fitted again."""

    @property
    def several(self) -> MultinomialRecord | None:
        """The fit, if it is of several classes; otherwise None."""
        return self.fit if isinstance(self.fit, MultinomialRecord) else None

    @property
    def of_model(self) -> FitRecord:
        """The record of the parameters, whichever model they are of."""
        if self.several is not None:
            return self.several.fit
        return cast("FitRecord", self.model or self.fit)

    def check(self) -> None:
        """Refuse a choice and a model that do not go together."""
        if (self.fit is None) == (self.model is None):
            raise InvalidInput(f"either the fit or the model of {self.WHAT} must be given, got both or none")
        _check_spent(self)
        _check_params(self)


def _check_spent(record: TuneRecord) -> None:
    """Refuse a choice and a model that cost another budget than the tuning, and a loss that neither has."""
    chosen, model, budget = record.selection, record.of_model, record.budget
    parts = [model.budget] if chosen is None or record.model is not None else [chosen.budget, model.budget]
    for name, whole in budget.parameters().items():
        total = sum(Fraction(part.parameters().get(name, 0.0)) for part in parts)
        # All of it, but for what the shares round down.
        spends = total <= Fraction(whole) and math.isclose(total, whole, rel_tol=1e-9)
        if any(part.notion != budget.notion for part in parts) or not spends:
            raise InvalidInput(f"choice and fit must spend {budget} and no more, got {' and '.join(map(str, parts))}")
    if record.model is not None and (chosen is None or chosen.budget != budget or model.budget != budget):
        raise InvalidInput(f"a selected model must have the budget of its tuning, {budget}, got {model.budget}")
    part = model.whole
    if chosen is not None and part is not None and part.parts != chosen.n_candidates:
        raise InvalidInput(f"the fit must be a part of {chosen.n_candidates} candidates, got {part.parts}")
    own = model.loss
    if chosen is not None and SEVERAL in {chosen.loss["name"], own["name"]} and chosen.loss != own:
        raise InvalidInput(f"validation_loss must be the loss of the model, got {chosen.loss!r} with {own!r}")


def _has_ball(record: TuneRecord, mechanism: object) -> bool:
    """Return whether the model lies in the ball that a mechanism names; a selected one in that of its score."""
    if not isinstance(mechanism, dict) or "radius" not in mechanism:
        return True
    chosen, radius = record.selection, mechanism["radius"]
    return bool(radius == record.of_model.radius and (chosen is None or radius == chosen.facts["radii"][chosen.index]))


def _check_params(record: TuneRecord) -> None:
    """Refuse a chosen candidate that is not that of the list and of the model."""
    params, model = record.params, record.of_model
    if others := sorted(params.keys() - set(FREE)):
        raise InvalidInput(f"params must name keywords that candidates have, got {others[0]!r}")
    strength, loss, mechanism = (params.get(name) for name in ("l2_strength", "loss", "mechanism"))
    used = mechanism.get("name") if isinstance(mechanism, dict) else mechanism
    raised = model.variant == "cms11"
    for name, value, same in (
        ("l2_strength", strength, raised or strength == model.l2_strength),
        ("loss", loss, loss in (model.loss["name"], describe(model.loss))),
        ("mechanism", mechanism, used == model.mechanism and _has_ball(record, mechanism)),
    ):
        if name in params and not same:
            raise InvalidInput(f"params must be those of the model, got {name}={value!r}")
    listed = params if record.selection is None else record.selection.candidates[record.selection.index]
    if listed != params:
        raise InvalidInput(f"params must be the chosen candidate of the list, {listed}, got {params}")
