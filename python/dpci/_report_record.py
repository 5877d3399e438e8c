"""What one per-instance report leaves behind: a fit, two more releases and public choices, and their JSON form."""

import json
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.arrays import check_finite
from dpci.errors import InvalidInput
from dpci.record import FitRecord, Step
from dpci.validation import check_choice, check_flag, check_fraction, check_reals

SCHEMA = "dpci.PerInstanceReport"
SCHEMA_VERSION = 1
Kind: TypeAlias = Literal["data_dependent", "data_independent"]
Bound: TypeAlias = Literal["interpolated", "paper"]
KINDS: tuple[Kind, ...] = ("data_dependent", "data_independent")
BOUNDS: tuple[Bound, ...] = ("interpolated", "paper")
_FIELDS = ("kind", "shares", "simultaneous", "failure_probability", "bound", "gradient", "hessian")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportRecord:
    """Everything that a :class:`~dpci.per_instance.Report` knows, but the code of a custom loss."""

    fit: FitRecord
    kind: str
    shares: tuple[float, ...] | None
    """Of (coefficients, gradient, Hessian); None for a data-independent report."""
    simultaneous: bool
    failure_probability: float
    bound: str
    gradient: NDArray[np.float64] | None
    """Released gradient of the sum objective, shape (k,); None for a data-independent report."""
    hessian: NDArray[np.float64] | None
    """Released Hessian of the sum objective, shape (k, k); None for a data-independent report."""

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("kind", check_choice("kind", self.kind, KINDS))
        put("bound", check_choice("bound", self.bound, BOUNDS))
        put("simultaneous", check_flag("simultaneous", self.simultaneous))
        put("failure_probability", check_fraction("failure_probability", self.failure_probability))
        put("shares", None if self.shares is None else check_reals("shares", self.shares, 3))
        k = len(self.fit.names)
        for name, shape in (("gradient", (k,)), ("hessian", (k, k))):
            put(name, self._checked_array(name, shape))
        for name, expected in (("neighbors", "add_remove"), ("notion", "approx"), ("moments", "none")):
            check_choice(f"{name} of the fit of a report", getattr(self.fit, name), (expected,))
        if self.data_dependent:
            for name in ("report_gradient", "report_hessian"):
                self.step(name)

    @property
    def data_dependent(self) -> bool:
        """Whether gradient and Hessian were released."""
        return self.kind == "data_dependent"

    def step(self, name: str) -> Step:
        """Return the step of a release by its name."""
        for step in self.fit.steps:
            if step.step == name:
                return step
        raise InvalidInput(f"the steps of the fit must hold {name!r}, got none")

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        values: dict[str, Any] = {name: getattr(self, name) for name in _FIELDS}
        for name in ("gradient", "hessian"):
            values[name] = None if values[name] is None else values[name].tolist()
        header = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION, "result": json.loads(self.fit.to_json())}
        return json.dumps({**header, **values}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "ReportRecord":
        """Rebuild a record from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not such a record, or of another schema version.
        """
        try:
            values = json.loads(text)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"a saved report must be JSON, got {error}") from error
        if not isinstance(values, dict) or values.get("schema") != SCHEMA:
            raise InvalidInput(f"a saved report must be a JSON object with schema={SCHEMA!r}, got something else")
        version = values.get("schema_version")
        if version != SCHEMA_VERSION:
            raise InvalidInput(
                f"a saved report must have schema_version={SCHEMA_VERSION}, got schema_version={version!r}"
            )
        try:
            fit = FitRecord.from_json(json.dumps(values["result"]))
            return cls(fit=fit, **{name: values[name] for name in _FIELDS})
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"a saved report must hold every field of its schema, got {error!r}") from error

    def _checked_array(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
        values = getattr(self, name)
        if (values is None) == self.data_dependent:
            raise InvalidInput(f"{name} must be there if and only if kind='data_dependent', got kind={self.kind!r}")
        if values is None:
            return None
        array = check_finite(name, np.array(values, dtype=np.float64))
        if array.shape != shape:
            raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")
        array.flags.writeable = False
        return array
