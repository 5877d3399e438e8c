"""Record of a multinomial fit: the record of a fit of all its parameters, the classes, and their JSON form."""

import json
from dataclasses import dataclass
from typing import Any

from dpci.data.labels import Label, check_several_classes
from dpci.errors import InvalidInput
from dpci.inference.error_law import NOISE_AWARE
from dpci.multinomial.loss import check_declared
from dpci.released.record import FitRecord
from dpci.released.rules import read_saved, saved_text
from dpci.released.saved import read_record

SCHEMA = "dpci.MultinomialFit"
SCHEMA_VERSION = 1
_WHAT = "a saved multinomial fit"


@dataclass(frozen=True, eq=False)
class MultinomialRecord:
    """The record of a fit, whose parameters are those of the classes but the reference one after another."""

    fit: FitRecord
    classes: tuple[Label, ...]
    """The public classes, the reference first."""

    @property
    def width(self) -> int:
        """Number of parameters of one class."""
        return len(self.fit.names) // (len(self.classes) - 1)

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {"classes": list(self.classes), "fit": json.loads(self.fit.to_json())}
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes) -> "MultinomialRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        values = read_saved(text, what=_WHAT, schema=SCHEMA, version=SCHEMA_VERSION)
        if set(values) != {"classes", "fit"}:
            raise InvalidInput(f"{_WHAT} must have the fields 'classes' and 'fit' and no other, got {sorted(values)}")
        classes = check_several_classes(values["classes"])
        loss = {"loss": lambda _, value: check_declared(value, len(classes))}
        record = cls(read_record(json.dumps(values["fit"]), rules=loss), classes)
        fit = record.fit
        of_table = None if fit.table is None else getattr(fit.table.target, "labels", None)
        reported = [step.step for step in fit.steps if step.step.startswith("report_")]
        for broken, rule, got in (
            (fit.variant != "standard", "variant must be 'standard'", fit.variant),
            (fit.radius is not None, "radius must be None", fit.radius),
            (fit.calibration != "tight", "calibration must be 'tight'", fit.calibration),
            (fit.blocks is not None, "rows must lie in a ball", fit.blocks),
            (fit.projection not in {NOISE_AWARE, "none"}, "projection must be 'noise_aware'", fit.projection),
            # No strata, groups or reports have models of several classes. Of the parts of reports the noise is not
            # calibrated again.
            (
                fit.whole is not None and fit.whole.kind != "tuning",
                "the fit must be no part of another release than a tuning",
                fit.whole,
            ),
            (bool(reported), "the steps must be those of a fit", ", ".join(reported)),
            (of_table not in {None, classes}, f"classes must be those of the schema, {of_table!r}", classes),
            (not _are_names(fit, classes), "names must be those of the classes", fit.names),
        ):
            if broken:
                raise InvalidInput(f"{rule} in {_WHAT}, got {got!r}")
        return record


def _are_names(fit: FitRecord, classes: tuple[Label, ...]) -> bool:
    """Whether the parameters are called by all classes but the reference."""
    one = fit.columns if fit.intercept_scale is None else (*fit.columns, "intercept")
    return block_names(classes, one) == fit.names


def block_names(classes: tuple[Label, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all parameters, "class:name", from those of one class."""
    return tuple(f"{label}:{name}" for label in classes[1:] for name in names)
