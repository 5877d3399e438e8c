"""Arguments of a tuning, checked before any data, and the models that it chooses among: of one predictor or classes."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dpci.base.habits import unexpected
from dpci.base.validation import broken, check_choice, check_real, in_short
from dpci.budgets import Budget
from dpci.data.labels import Label, SeveralClasses
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.losses import Loss, LossLike, check_loss, declaration, describe
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from dpci.model.keywords import KEYWORDS, UNIT_KEYWORDS, check_no_ledger
from dpci.model.recommend import are_rows_given, with_common_rows
from dpci.model.result import PrivateFit
from dpci.model.settings import AUTO, BudgetlessKeywords, Settings
from dpci.multinomial.record import MultinomialRecord, block_names
from dpci.multinomial.release import check_norm, multinomial_settings, public_classes
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.schema.columns import CategoricalTarget
from dpci.schema.table import Schema
from dpci.tuning.selection import METHODS, Method

Candidates: TypeAlias = Iterable[Mapping[str, Any]]
FREE = ("l2_strength", "loss", "mechanism")
"""Keywords of a fit that candidates may differ in."""
_RUNS = ("shape", "expected_runs")
_UNUSED: dict[Method, tuple[str, ...]] = {
    "repeat": (),
    "chunks": _RUNS,
    "public_rule": ("candidates", "selection_share", "validation_loss", "validation_radius", *_RUNS),
}
"""Arguments that a method has no use for."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Candidates of a tuning, and how they are compared, as its caller gives them."""

    method: str
    candidates: Candidates | None = None
    selection_share: float = 0.5
    validation_loss: LossLike | None = None
    validation_radius: float | None = None
    shape: float = 1.0
    expected_runs: float | None = None

    def checked_method(self) -> Method:
        """Return the method; arguments that it would ignore are refused."""
        method = check_choice("method", self.method, METHODS)
        for name in _UNUSED[method]:
            value, default = getattr(self, name), getattr(Search, name)
            if value is not default and not (type(value) is type(default) and value == default):
                raise InvalidInput(
                    f"{name} must keep its default {default!r} with method={method!r}, which does not use it, got "
                    f"{name}={value!r}"
                )
        return method


def plain_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return keywords as JSON holds them: losses and mechanisms by their descriptions."""
    return {name: _plain_value(value) for name, value in params.items()}


def params_text(params: Mapping[str, Any]) -> str:
    """Return plain keywords as a text."""
    return ", ".join(f"{name}={_text(value)}" for name, value in params.items())


def option_names(params: Mapping[str, Any]) -> set[str]:
    """Return the names of plain keywords, with those of the options of a mechanism."""
    mechanism = params.get("mechanism")
    options = mechanism if isinstance(mechanism, dict) else {}
    return {*params, *options} - {"name"}


def _text(value: object) -> str:
    if not isinstance(value, dict):
        return str(value)
    options = ", ".join(f"{name}={option}" for name, option in value.items() if name != "name")
    return f"{value.get('name')}({options})"


def _plain_value(value: object) -> object:
    if isinstance(value, ObjectivePerturbation | OutputPerturbation):
        options = {name: list(option) if name == "split" else option for name, option in value.given.items()}
        return {"name": value.name, **options} if options else value.name
    if isinstance(value, Loss):
        return describe(declaration(value, value.to_core()))
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def check_keywords(function: str, keywords: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` for a keyword that no fit has, or that a tuning sets itself."""
    for name in keywords:
        check_no_ledger(function, name)
        if name not in KEYWORDS or name == "budget":
            raise unexpected(function, name)


def check_share(value: object) -> float:
    """Return the share of the budget that chooses."""
    share = check_real("selection_share", value)
    if not 0.0 < share <= 1.0:
        raise InvalidInput(f"selection_share must be > 0 and <= 1, got selection_share={share}")
    return share


def check_candidates(candidates: Candidates | None) -> list[dict[str, Any]]:
    """Return the candidates as dictionaries of keywords of a fit."""
    scalar = isinstance(candidates, Mapping | str | bytes) or getattr(candidates, "ndim", 1) == 0
    if scalar or not isinstance(candidates, Iterable):
        raise broken("candidates", "a list of dictionaries of keywords of fit", candidates)
    grid = []
    for candidate in candidates:
        if not isinstance(candidate, Mapping):
            raise InvalidInput(f"every candidate must be a dictionary of keywords of fit, got {in_short(candidate)}")
        unknown = [name for name in candidate if name not in FREE]
        if unknown:
            raise InvalidInput(f"candidates must differ only in {', '.join(FREE)}, got {unknown[0]!r}")
        grid.append(dict(candidate))
    if not grid:
        raise InvalidInput("candidates must hold at least one candidate, got none")
    return grid


def candidate_settings(grid: Sequence[dict[str, Any]], options: Mapping[str, Any], budget: Budget) -> list[Settings]:
    """Return the validated keywords of each candidate."""
    found = []
    for candidate in grid:
        values = {**options, **candidate, "budget": budget}
        check_has_strength(values, candidate)
        found.append(Settings.checked(**values))
    return found


def check_has_strength(values: Mapping[str, Any], candidate: object) -> None:
    """Refuse a candidate without a λ of its own: what public values recommend is not compared."""
    if isinstance(values.get("l2_strength", AUTO), str):
        raise InvalidInput(f"every candidate must have a number as l2_strength, got {in_short(candidate)}")


def validation_loss_of(given: LossLike | None, settings: Sequence[Settings]) -> Loss:
    """Return what candidates are compared by: the loss that was given, or the one that they share."""
    if given is not None:
        return replace(settings[0], loss=check_loss(given)).encoded_loss
    first, *others = (candidate.encoded_loss for candidate in settings)
    for other in others:
        if other != first:
            raise InvalidInput(
                "validation_loss must be given for candidates of several losses, got validation_loss=None with "
                f"{first!r} and {other!r}"
            )
    return first


class TuneKeywords(BudgetlessKeywords, total=False):
    """The keywords of :func:`dpci.fit` but ``budget``, for all candidates."""

    seed: int | None


_NO_LOSS = ("l2_strength", "mechanism")
_COMMON = ("rows", "neighbors", "seed")
_KEYWORDS = {"classes", *_NO_LOSS, *_COMMON, *UNIT_KEYWORDS}


class Single:
    """Models of one linear predictor, as :func:`dpci.fit` has them."""

    def check(self, search: Search, keywords: Mapping[str, Any]) -> None:
        """Refuse arguments that these models do not have: there are none."""

    def candidate_settings(
        self, grid: Sequence[dict[str, Any]], options: Mapping[str, Any], budget: Budget
    ) -> list[Settings]:
        """Return the validated keywords of each candidate, all with the same domain of rows."""
        found = candidate_settings(grid, options, budget)
        return found if are_rows_given(options.get("rows")) else with_common_rows(found)

    def labels(self, y: Any) -> Any:  # noqa: ANN401  # whatever the caller has
        """Return the targets as they are."""
        return y

    def named(self, rows: Rows) -> Rows:
        """Return the rows with the names of the parameters, which they have."""
        return rows

    def record(self, fit: PrivateFit) -> FitRecord | MultinomialRecord:
        """Return the record of the fit as it is."""
        return record_of(fit)


@dataclasses.dataclass(frozen=True)
class Several(Single):
    """The public classes of a tuning, the reference first, and the schema that codes them, if there is one."""

    classes: tuple[Label, ...]
    schema: Schema | None

    def check(self, search: Search, keywords: Mapping[str, Any]) -> None:
        """Refuse arguments that no multinomial fit, or no choice among several of them, has."""
        rule = "with three or more classes"
        if search.method == "public_rule":
            reason = "because the public rule is for one linear predictor"
            raise broken("method", f"'repeat' or 'chunks' {rule}, {reason}", search.method)
        if search.validation_loss is not None:
            raise broken(
                "validation_loss", f"None {rule}, which are compared by their own loss", search.validation_loss
            )
        if check_share(search.selection_share) == 1:
            raise broken("selection_share", f"below 1 {rule}, whose chosen model is fitted again", 1)
        for name, value in keywords.items():
            if name not in _KEYWORDS:
                raise InvalidInput(
                    f"{name} must not be given {rule}, because dpci.multinomial.fit does not take it, got "
                    f"{name}={value!r}"
                )
        check_norm(keywords.get("rows"), self.schema)

    def candidate_settings(
        self, grid: Sequence[dict[str, Any]], options: Mapping[str, Any], budget: Budget
    ) -> list[Settings]:
        """Return the validated keywords of each candidate."""
        found = []
        for candidate in grid:
            if other := [name for name in candidate if name not in _NO_LOSS]:
                raise InvalidInput(
                    f"candidates of three or more classes must differ only in {', '.join(_NO_LOSS)}, got {other[0]!r}"
                )
            values = {**options, **candidate, "budget": budget}
            check_has_strength(values, candidate)
            values.pop("classes", None)
            del values["schema"]
            found.append(multinomial_settings(len(self.classes), schema=self.schema, **values))
        return found

    def labels(self, y: Any) -> SeveralClasses:  # noqa: ANN401  # whatever the caller has
        """Return the targets with their classes; a schema has coded them 0, 1, 2, ..."""
        coded = self.classes if self.schema is None else tuple(range(len(self.classes)))
        return SeveralClasses(y, coded)

    def named(self, rows: Rows) -> Rows:
        """Return the rows with the names of all parameters."""
        return dataclasses.replace(rows, names=block_names(self.classes, rows.names))

    def record(self, fit: PrivateFit) -> MultinomialRecord:
        """Return the record of a fit of all parameters as one of these classes."""
        return MultinomialRecord(record_of(fit), self.classes)


def models_asked(classes: object, schema: Schema | None) -> Single:
    """Return the models of a tuning: of several classes where three or more are given, or the schema has them."""
    of_schema = schema is not None and isinstance(schema.target, CategoricalTarget)
    is_list = isinstance(classes, Sized) and not isinstance(classes, str | bytes) and getattr(classes, "ndim", 1) == 1
    if of_schema or (is_list and len(classes) > 2):  # type: ignore[arg-type]  # by is_list
        return Several(public_classes(classes, schema), schema)
    return Single()
