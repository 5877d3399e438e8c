"""Record of a multinomial fit: the record of a fit of all its parameters, the classes, and their JSON form."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from dpci import _core
from dpci.base.codec import Form, Saved
from dpci.base.validation import broken
from dpci.data.labels import Label, check_several_classes
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL, declaration
from dpci.released.record import NOISE_AWARE, FitRecord


@dataclass(frozen=True, slots=True)
class Multinomial:
    """Multinomial logistic loss of ``n_classes`` classes; the gradient of a row of length 1 is at most sqrt(2) long.

    It is not one of :mod:`dpci.losses`, which are functions of one linear predictor.
    """

    n_classes: int
    name: ClassVar[str] = SEVERAL

    def to_core(self) -> _core.Loss:
        """Return the loss as the core takes it."""
        return _core.Loss.multinomial(self.n_classes)


def check_declared(name: str, value: object) -> dict[str, Any]:
    """Return the declaration of the loss of several classes in a saved record."""
    if not isinstance(value, dict):
        raise broken(name, "an object", value)
    loss: Any = Multinomial(1 + int(value["target_bounds"][1]))
    expected = declaration(loss, loss.to_core())
    if value != expected:
        raise broken("loss", f"that of {loss.n_classes} classes, {expected}", value)
    return expected


@dataclass(frozen=True, eq=False)
class MultinomialRecord(Saved):
    """The record of a fit, whose parameters are those of the classes but the reference one after another."""

    KIND: ClassVar[str] = "dpci.MultinomialFit"
    WHAT: ClassVar[str] = "a saved multinomial fit"

    fit: Annotated[
        FitRecord,
        Form(FitRecord.to_dict, lambda _, values: FitRecord.from_dict(values, rules={"loss": check_declared})),
    ]
    classes: Annotated[tuple[Label, ...], Form(list, lambda _, labels: check_several_classes(labels))]
    """The public classes, the reference first."""

    def __post_init__(self) -> None:
        one = self.fit.columns if self.fit.intercept_scale is None else (*self.fit.columns, "intercept")
        fit, bounds = self.fit, [0.0, len(self.classes) - 1.0]
        of_table = None if fit.table is None else getattr(fit.table.target, "labels", None)
        reported = [step.step for step in fit.steps if step.step.startswith("report_")]
        for is_broken, rule, got in (
            (fit.loss["target_bounds"] != bounds, f"the loss must be that of {len(self.classes)} classes", fit.loss),
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
            (of_table not in {None, self.classes}, f"classes must be those of the schema, {of_table!r}", self.classes),
            (block_names(self.classes, one) != fit.names, "names must be those of the classes", fit.names),
        ):
            if is_broken:
                raise InvalidInput(f"{rule} in {self.WHAT}, got {got!r}")

    @property
    def width(self) -> int:
        """Number of parameters of one class."""
        return len(self.fit.names) // (len(self.classes) - 1)


def block_names(classes: tuple[Label, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all parameters, "class:name", from those of one class."""
    return tuple(f"{label}:{name}" for label in classes[1:] for name in names)
