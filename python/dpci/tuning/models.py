"""The models that a tuning chooses among, of one linear predictor or of several classes: keywords, targets, record."""

import dataclasses
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from dpci.base.validation import broken
from dpci.budgets import Budget
from dpci.data.labels import Label, SeveralClasses
from dpci.data.rows import Rows
from dpci.errors import InvalidInput
from dpci.model.keywords import UNIT_KEYWORDS
from dpci.model.recommend import are_rows_given, with_common_rows
from dpci.model.result import PrivateFit
from dpci.model.settings import Settings
from dpci.multinomial.record import MultinomialRecord, block_names
from dpci.multinomial.release import check_norm, multinomial_settings, public_classes
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.schema.columns import CategoricalTarget
from dpci.schema.table import Schema
from dpci.tuning.candidates import Search, candidate_settings, check_has_strength, check_share

_FREE = ("l2_strength", "mechanism")
_COMMON = ("intercept", "rows", "neighbors", "n_threads", "seed")
_KEYWORDS = {"classes", *_FREE, *_COMMON, *UNIT_KEYWORDS}


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
            if other := [name for name in candidate if name not in _FREE]:
                raise InvalidInput(
                    f"candidates of three or more classes must differ only in {', '.join(_FREE)}, got {other[0]!r}"
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
