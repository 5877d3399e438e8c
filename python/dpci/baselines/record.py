"""Record of a baseline: released and public values, or a model that is not private, and their JSON form."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from dpci.base.codec import check_interval
from dpci.base.validation import broken, check_choice
from dpci.data.labels import CLASSES_READ_OFF
from dpci.errors import InvalidInput
from dpci.losses import declaration, from_declaration
from dpci.released.model_record import ModelRecord
from dpci.released.record import SavedBudget

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
