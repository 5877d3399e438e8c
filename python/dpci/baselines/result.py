"""The result of a baseline: parameters and predictions as those of a fit, without intervals, and what it cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NoReturn, TypeAlias

import numpy as np

from dpci.accounting.costs import describe_seals
from dpci.base.codec import check_interval
from dpci.base.tables import change_text, number_format, positive_class
from dpci.base.validation import broken, check_choice
from dpci.budgets import Budget, SavedBudget
from dpci.data.labels import CLASSES_READ_OFF
from dpci.errors import InvalidInput
from dpci.losses import declaration, describe, from_declaration
from dpci.released.model import Released, ReleaseFacts
from dpci.released.record import ModelRecord
from dpci.released.result import Result
from dpci.report.commands import ShownModel
from dpci.shown.document import BANNER, NO_NOISE, NOT_PRIVATE, Document, Facts, Paragraph, Table
from dpci.shown.text import as_text

__all__ = ["BaselineFit"]

Method: TypeAlias = Literal["functional_mechanism", "projected_histogram", "non_private"]
NON_PRIVATE: Method = "non_private"
_SEALED: dict[Method, tuple[str, ...]] = {
    "functional_mechanism": ("polynomial", "polynomial"),
    "projected_histogram": ("the histogram",),
    NON_PRIVATE: (),
}


def _check_loss(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise broken(name, "an object", value)
    bounds = value["target_bounds"]
    bounds = None if bounds is None else check_interval(f"{name}.target_bounds", bounds)
    built_in = from_declaration(value)
    if built_in is None:
        check_choice(f"{name}.name", value["name"], ("custom",))
    elif value != declaration(built_in, built_in.to_core()):
        raise InvalidInput(f"{name} must have the declaration of {built_in!r}, got {name}={value!r}")
    return {**value, "target_bounds": None if bounds is None else list(bounds)}


@dataclass(frozen=True, kw_only=True, eq=False)
class BaselineRecord(ModelRecord):
    """Everything that a :class:`~dpci.baselines.BaselineFit` knows. Arrays are read-only.

    ``n_samples`` is the number of records where nothing is private. There, the relation and the budget are None.
    """

    KIND: ClassVar[str] = "dpci.BaselineFit"
    WHAT: ClassVar[str] = "a saved baseline"
    STEPS: ClassVar[frozenset[str]] = frozenset(("polynomial", "histogram"))
    NOISES: ClassVar[frozenset[str]] = frozenset(("laplace", "gaussian"))

    method: Method
    loss: Annotated[dict[str, Any], _check_loss]
    n_cells: int | None
    """Cells of a histogram."""
    calibration: Literal["tight", "paper"] | None
    budget: SavedBudget | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.params.shape != (len(self.names),):
            raise InvalidInput(f"params must have shape ({len(self.names)},), got {self.params.shape}")
        released = self.method != NON_PRIVATE
        parts = (self.budget is not None, self.neighbors is not None, bool(self.steps))
        if any(part is not released for part in parts) or (self.private and not released):
            raise InvalidInput(
                f"a budget and its steps must be given unless method={NON_PRIVATE!r}, got method={self.method!r}"
            )
        found = tuple(seal.release for seal in self.seals)
        if found != _SEALED[self.method]:
            raise InvalidInput(f"the seals of a {self.method} must be those of {_SEALED[self.method]}, got {found}")
        if self.classes_inferred and self.classes is None:
            raise InvalidInput("classes_inferred must be False for real targets, got True")

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return "the cells of the grid" if self.rows is None else super().bounds

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        return {
            "classes_inferred": self.classes_inferred,
            "mechanism": self.method,
            "calibration": self.calibration,
        }

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        return {**super().constants, "n_cells": self.n_cells}

    @property
    def conditions(self) -> list[str]:
        """The assumptions of the guarantee besides the theorem."""
        if self.method == NON_PRIVATE:
            return ["none: the parameters are the minimiser on the data, without noise"]
        return super().conditions

    def _special_conditions(self) -> Iterator[str]:
        if self.classes_inferred:
            yield CLASSES_READ_OFF


_TITLES = {
    "functional_mechanism": "functional mechanism",
    "projected_histogram": "regression on a noisy histogram",
    NON_PRIVATE: "minimiser without noise",
}
_NO_INTERVALS = {
    "functional_mechanism": "the law of the error is unknown after directions are dropped and a ridge is added",
    "projected_histogram": "rounding noisy counts at zero causes a bias that no interval accounts for",
    NON_PRIVATE: "this model is for comparison only (dpci.fit releases intervals)",
}


class BaselineFit(
    Released[BaselineRecord, Budget | None], ReleaseFacts[BaselineRecord, Budget | None], Result[BaselineRecord]
):
    """A model by another mechanism, for comparison. Made by the functions of :mod:`dpci.baselines`, never changed.

    Attributes are read-only; arrays are read-only too. k is the number of parameters, the intercept included.
    """

    __slots__ = ()

    _RECORD, _SHOWN = BaselineRecord, ShownModel

    @property
    def method(self) -> str:
        """The function that made it: "functional_mechanism", "projected_histogram" or "non_private"."""
        return self._record.method

    @property
    def interval_refusal(self) -> str:
        """Why there are no intervals, standard errors and p-values."""
        return f"{self.method} has no confidence intervals: {_NO_INTERVALS[self.method]}"

    def conf_int(self, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput``: no baseline has valid intervals; the message says why."""
        raise InvalidInput(self.interval_refusal)

    def summary(self) -> str:
        """Table of the parameters, and the facts that a reader needs to judge them."""
        return as_text(self._document())

    def _document(self) -> Document:
        shown = number_format(np.abs(self.params).max(), self.params)
        rows = [[name, f"{value:{shown}}"] for name, value in zip(self.names, self.params, strict=True)]
        note = Paragraph(f"A baseline without confidence intervals: {_NO_INTERVALS[self.method]}.")
        parts = [Table(["name", "estimate"], rows), Facts(self._public_facts()), note]
        banner = NO_NOISE if self.budget is None else BANNER[self.private]
        return Document(parts=parts, banner=banner)

    def _short(self) -> tuple[str, ...]:
        cost = NOT_PRIVATE if self.budget is None else str(self.spent)
        return f"{len(self.names)} parameters", _TITLES[self.method], cost

    def _public_facts(self) -> list[tuple[str, str]]:
        record = self._record
        calibration = "" if record.calibration in (None, "tight") else f", calibration {record.calibration}"
        unit = "record" if record.persons is None else "person"
        facts = [
            ("method", f"{_TITLES[record.method]}{calibration}"),
            ("loss", describe(record.loss) + positive_class(record.classes, inferred=record.classes_inferred)),
            ("budget spent", "nothing is protected" if self.spent is None else str(self.spent)),
            *((f"  {step.step}", f"{step.noise} noise of scale {step.scale:.4g}") for step in record.steps),
            *([("  rounding seal", describe_seals(record.seals))] if record.seals else []),
            ("neighbours", "none" if record.neighbors is None else change_text(record.neighbors, unit)),
            *([] if record.persons is None else [("persons", str(record.persons))]),
            *([] if record.weights is None else [("weights", str(record.weights))]),
            ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
            ("lambda", f"{record.l2_strength:g}"),
        ]
        if record.n_cells is not None:
            facts.append(("cells", f"{record.n_cells:,}"))
        facts += record.made_choices
        return facts
