"""Records: released and public values that a release leaves behind, one of a linear model, and one of a fit."""

import math
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Seal, Step, has_needless_seal, seal_cost, seal_facts
from dpci.accounting.guarantee import Guarantee, guarantee_of, seal_totals, spending_contradictions
from dpci.base.codec import NotNegative, Positive, Saved, Version, formed, has_fields
from dpci.base.validation import check_count, check_different, check_real, check_symmetric
from dpci.budgets import (
    GDP,
    ApproxDP,
    Budget,
    GaussianBudget,
    Neighbors,
    SavedBudget,
    SavedGaussianBudget,
    budget_from_parameters,
    core_budget,
)
from dpci.data.arrays import OnViolation
from dpci.data.labels import CLASSES_READ_OFF, Classes, check_classes
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL, LossFacts, SavedLoss, facts_of
from dpci.released.bounds import ReleasedBounds, are_joint, check_far_rows, chosen_beside, chosen_with
from dpci.released.newton import Newton
from dpci.released.whole import Whole
from dpci.rows import Ball, Blocks, SavedRows, core_blocks, same_blocks
from dpci.schema.columns import CategoricalTarget, ClassTarget, NumericTarget, class_labels
from dpci.schema.table import SavedTable
from dpci.unit import Persons, Weights

_check_ledger = formed("[0-9a-f]{32}", "32 hexadecimal digits")
_check_time = formed(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", "a UTC time as ledgers write it")


def _check_paid(name: str, value: object) -> dict[str, Any]:
    fields = has_fields(name, value, "ledger", "entry", "time")
    return {
        "ledger": _check_ledger(f"{name}.ledger", fields["ledger"]),
        "entry": check_count(f"{name}.entry", fields["entry"]),
        "time": _check_time(f"{name}.time", fields["time"]),
    }


def _check_labels(name: str, value: object) -> Classes:
    """Return (negative, positive)."""
    classes = check_classes(value)
    for label in classes:
        # An integer may be too great to be compared with targets.
        if not isinstance(label, str) and math.isinf(number := check_real(name, label + 0)):
            raise InvalidInput(f"{name} must be within the range of floats, got {number}")
    return classes


OBEYS_BOUNDS = "every possible record obeys the public bounds"
ENCODED_WITHIN = "the schema encodes every record that it accepts within the public bounds"
CHOSEN = "chosen"
"""Metadata of a field whose choice summaries, pages and approvals list: the words under which they do."""
NOISE_AWARE = "noise_aware"
"""The projection of fits whose matrices are kept as they were released, with the noise in them counted."""
# Of a budget, to which steps add up, and of the greatest entry of a matrix that was projected and saved exactly.
_ROUNDING = 1e-9
_COST_UNITS = {"pure": "epsilon", "zcdp": "rho", "approx": "mu_squared", "gdp": "mu_squared"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Record(Saved):
    """Released and public values of one release; a kind of release adds its own. Arrays are read-only."""

    STEPS: ClassVar[frozenset[str]]
    """Steps that a release of the kind can have."""
    NOISES: ClassVar[frozenset[str]]
    """Noise that they can have."""

    n_samples: int
    """The public n: ``n_public`` under add/remove."""
    named_columns: bool
    """Whether the names came with the caller's table."""
    rows: SavedRows | None
    """The public domain of the rows, without the intercept; None with bounds of another kind, or none."""
    on_violation: OnViolation | None
    neighbors: Neighbors | None
    budget: SavedGaussianBudget | None
    steps: tuple[Step, ...]
    seals: tuple[Seal, ...]
    private: bool
    version: Version
    persons: Persons | None = None
    """How much the rows of a person count, where the records are persons; None where they are rows."""
    weights: Weights | None = None
    """Public bound and total of the weights of records; None where each counts once."""
    table: SavedTable | None = None
    """The public schema by which the table was encoded; None if the caller passed encoded rows."""
    paid: Annotated[dict[str, Any], _check_paid] | None = None
    """The ledger's id, the number and the time of the entry that paid; None without a ledger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for step in self.steps:
            if step.step not in self.STEPS or step.noise not in self.NOISES:
                raise InvalidInput(f"{self.WHAT} must have steps of its kind, got {step}")
            if step.scale == 0.0 and step.noise != "none":
                raise InvalidInput(f"the scale of noise must be > 0, got {step}")

    @property
    def notion(self) -> str | None:
        """The notion of the budget; None without a budget."""
        return None if self.budget is None else self.budget.notion

    @property
    def row_norm(self) -> float | None:
        """Radius of the ball in which rows lie, without the intercept; None for another domain."""
        return self.rows.norm if isinstance(self.rows, Ball) else None

    @property
    def blocks(self) -> Blocks | None:
        """The blocks that bound the rows; None without."""
        return self.rows if isinstance(self.rows, Blocks) else None

    @property
    def unit(self) -> str:
        """Whose privacy the release protects: "row" or "person"."""
        return "row" if self.persons is None else "person"

    @property
    def divisor(self) -> float:
        """Divisor of sums over records that weigh at most 1: their number, or the total weight over the largest."""
        return self.n_samples if self.weights is None else self.weights.divisor(self.n_samples)

    @property
    def cost_unit(self) -> str | None:
        """Unit in which the costs of the steps are counted: "epsilon", "rho" or "mu_squared"; None without a budget."""
        return None if self.notion is None else _COST_UNITS[self.notion]

    @property
    def spent(self) -> GaussianBudget | None:
        """Budget that the steps spent together: the whole one."""
        return self.budget

    @property
    def bounds(self) -> str:
        """The bounds that records have to obey, in words."""
        return str(self.rows)

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices of the kind, as :attr:`privacy` has them."""
        raise NotImplementedError

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about; a kind adds its own."""
        return {
            "n_public": self.n_samples,
            "persons": None if self.persons is None else self.persons.to_dict(),
            "weights": None if self.weights is None else self.weights.to_dict(),
            "row_norm": self.row_norm,
            "blocks": None if self.blocks is None else self.blocks.to_dict(),
            "on_violation": self.on_violation,
        }

    @property
    def made_choices(self) -> list[tuple[str, str]]:
        """Words and values of the fields that are :data:`CHOSEN`; without choices that were not made."""
        found = [(part.metadata[CHOSEN], getattr(self, part.name)) for part in fields(self) if part.metadata]
        return [(words, f"{value:g}" if isinstance(value, float) else value) for words, value in found if value]

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data, as pages and reports list them; a source is asked for each."""
        return ("budget", "bounds", "categories", "columns")

    @property
    def conditions(self) -> list[str]:
        """The assumptions of the guarantee besides the theorem."""
        rests_on = [] if self.private else ["none: the noise is seeded, so whoever knows the seed can subtract it"]
        rests_on += self._special_conditions()
        if self.on_violation == "error":
            obeys = OBEYS_BOUNDS if self.table is None else ENCODED_WITHIN
            rests_on.append(f"{obeys} ({self.bounds}); only the holder of the data sees errors")
        if self.private:
            rests_on.append(f"{', '.join(self.chosen[:-1])} and {self.chosen[-1]} were chosen without the data")
            rests_on.append("the noise is indistinguishable from random: ChaCha20 seeded by the operating system")
        rests_on.append(
            'logarithms and other elementary functions err by at most two units in the last place (the page "Noise")'
        )
        return rests_on

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee."""
        return {
            "private": self.private,
            "relation": self.neighbors,
            "unit": self.unit,
            "notion": self.notion,
            "budget": None if self.budget is None else self.budget.parameters(),
            "spent": None if self.spent is None else self.spent.parameters(),
            "cost_unit": self.cost_unit,
            "steps": [step.to_dict() for step in self.steps],
            "seal": seal_facts(self.seals),
            **self.choices,
            "constants": self.constants,
            "conditions": self.conditions,
            "version": self.version,
        }

    def guarantee(self) -> Guarantee:
        """Return the (epsilon, delta) profile and the Renyi curve of all steps and seals together."""
        budget = self.budget
        if budget is None:
            raise InvalidInput(f"a guarantee requires a private model, got {self.WHAT} without a budget")
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, budget.mu if isinstance(budget, GDP) else 0.0)
        mu = float(np.hypot.reduce([step.sensitivity / step.scale for step in self.steps]))
        return Guarantee(budget, None, 0.0, mu, seal_totals(self.seals, ()))

    def _special_conditions(self) -> Iterable[str]:
        """Return conditions of the kind."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelRecord(Record):
    """Record of a linear model; (k,) is the number of parameters."""

    params: NDArray[np.float64]
    """Parameters, the intercept last."""
    names: tuple[str, ...]
    """Names of the parameters."""
    classes: Annotated[Classes, _check_labels] | None
    """(negative, positive); None for real targets."""
    classes_inferred: bool
    """Whether the classes were inferred from the labels, so that they are not public."""
    loss: SavedLoss
    l2_strength: NotNegative
    """λ as it was used: with what the variant "cms11" added."""
    radius: Positive | None = field(metadata={CHOSEN: "radius"})
    """Bound on the norm of the parameters; None where there is none."""
    intercept_scale: Positive | None
    """The constant appended to every row; None: none."""

    def check(self) -> None:
        """Refuse names that are equal, of which an interval would not say which parameter it is for."""
        super().check()
        check_different(f"names of parameters in {self.WHAT} must differ", self.names)

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data."""
        return (*super().chosen, "classes", "formula", "loss")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters without the intercept."""
        return self.names if self.intercept_scale is None else self.names[:-1]

    @cached_property
    def loss_facts(self) -> LossFacts:
        """Facts of the loss."""
        return facts_of(self.loss, None if self.table is None else self.table.target_unit)

    @property
    def params_norm(self) -> float:
        """Euclidean norm of the parameters; infinite where their squares are beyond the range of floats."""
        with np.errstate(all="ignore"):  # saved records may hold any numbers
            return float(np.linalg.norm(self.params))

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        names = ("l2_strength", "radius", "intercept_scale")
        return {**super().constants, **{name: getattr(self, name) for name in names}, "loss": deepcopy(self.loss)}


@dataclass(frozen=True, kw_only=True, eq=False)
class FitRecord(ModelRecord):
    """Everything that a :class:`~dpci.PrivateFit` knows. Arrays are read-only; (k,) is the number of parameters."""

    KIND: ClassVar[str] = "dpci.PrivateFit"
    WHAT: ClassVar[str] = "a saved fit"
    STEPS: ClassVar[frozenset[str]] = frozenset(
        (
            *("coefficients", "hessian", "gradient_cov", "moments", "report_gradient", "report_hessian"),
            *("radius", "shape", "null_slope"),
            *("gradient_norms", "hessian_norms", "newton_gradient", "newton_hessian"),
        )
    )
    NOISES: ClassVar[frozenset[str]] = frozenset(
        ("spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian", "matrix_laplace", "laplace", "none")
    )

    SELECTED: ClassVar[bool] = False
    """Whether the model won a selection."""

    hessian: NDArray[np.float64] | None
    gradient_cov: NDArray[np.float64] | None
    rows: SavedRows
    on_violation: OnViolation
    neighbors: Neighbors
    budget: SavedBudget
    slope_bound: Positive
    """Slope bound of the loss on the domain."""
    curvature_bound: NotNegative | None
    """Curvature bound of the loss on the domain; None for a loss with a kink."""
    mechanism: Literal["objective", "output", "newton"]
    variant: Literal["standard", "cms11"]
    project: bool
    moments: Literal["joint", "levels", "separate", "none"]
    projection: Literal["floor", "cautious", "noise_aware", "none"]
    """The projection that was used."""
    calibration: Literal["tight", "paper"]
    noise_law: Literal["spherical_laplace", "shaped_laplace", "gaussian", "shaped_gaussian"]
    noise_scale: Positive
    noise_spectral_radius: NotNegative
    l2_recommended: bool = False
    """Whether public values chose λ."""
    whole: Whole | None = None
    """The release that the fit is a part of, such as all strata of a table; None for a fit by itself."""
    released_bounds: ReleasedBounds | None = None
    """The bounds of the schema that were released for a part of the budget; None where all were public before."""
    newton: Newton | None = None
    """Released values of Newton steps, whose matrices are those of moved rows; None for other mechanisms."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_shapes()
        check_far_rows(self.on_violation, self.weights, self.table, weighed=self.newton is None)
        if not self.steps:
            raise InvalidInput(f"{self.WHAT} must have at least one step, got none")

    @property
    def row_norm(self) -> float:
        """Bound on the Euclidean norm of a row, without the intercept."""
        return self.rows.norm

    @property
    def n_is_released(self) -> bool:
        """Whether the number of records in place of the private one was released with noise, which cost budget."""
        return self.whole is not None and self.whole.counts

    @property
    def has_changes(self) -> bool:
        """Whether the loss has a flat part, or curvature within a width alone."""
        return self.loss_facts.is_flat or self.loss_facts.width is not None

    @property
    def matrices(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both released matrices; a record without them is refused."""
        if self.hessian is None or self.gradient_cov is None:
            raise InvalidInput("a law of the errors needs released moments, got a record without them")
        return self.hessian, self.gradient_cov

    @property
    def noise_blocks(self) -> _core.RowDomain | None:
        """Blocks in whose shape the noise of the coefficients is, with their constant; None for other laws."""
        return core_blocks(self.rows, self.intercept_scale) if self.noise_law.startswith("shaped") else None

    @property
    def strong_convexity(self) -> float:
        """The least eigenvalue that the true Hessian can have: λ, and what a loss of one parameter declares."""
        # A saved record may hold any norm: its square overflows to infinity, not to an error.
        declared = float(self.loss["strong_convexity"])
        return self.l2_strength + (declared * self.row_norm * self.row_norm if declared else 0.0)

    @property
    def shown_classes(self) -> tuple[object, object] | None:
        """The two classes as texts name them: by the first spelling that the schema gives each."""
        classes, table = self.classes, self.table
        if classes is None or table is None or not isinstance(target := table.target, ClassTarget):
            return classes
        # A schema whose labels do not decide the classes, as with booleans, leaves them as they are.
        return classes if class_labels(target) is None else (target.negative[0], target.positive[0])

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Beginning of the names of the parameters of each linear predictor: of several classes "class:"."""
        if self.loss["name"] != SEVERAL:
            return ("",)
        return tuple(dict.fromkeys("".join(name.partition(":")[:2]) for name in self.names))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the rows: those of the parameters of one linear predictor without the intercept."""
        prefix, *others = self.prefixes
        names = [name.removeprefix(prefix) for name in self.names[: len(self.names) // (1 + len(others))]]
        return tuple(names if self.intercept_scale is None else names[:-1])

    def by_predictor(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names of parameters of one linear predictor as those of each."""
        kept = tuple(names)
        return tuple(prefix + name for prefix in self.prefixes for name in kept)

    @property
    def own_budget(self) -> Budget:
        """The budget without that of the bounds of the schema: that of parameters and matrices."""
        found = self.released_bounds
        return self.budget if found is None else found.rest_of(self.budget, joint=self._are_joint)

    @property
    def _are_joint(self) -> bool:
        return are_joint(self.budget, self.mechanism)

    @property
    def cost_unit(self) -> str:
        """Unit in which the costs of the steps are counted: "epsilon", "rho" or "mu_squared"."""
        if self.newton is not None:
            return str(super().cost_unit)
        return _core.cost_unit(core_budget(self.budget), self.calibration, self.mechanism)

    @property
    def spent(self) -> Budget:
        """Budget that the steps spent together, in the notion of the budget; never more than the budget."""
        notion, total = self.budget.notion, self.budget
        if notion == "approx":
            return total
        name, whole = next(iter(total.parameters().items()))
        before = () if self.released_bounds is None else self.released_bounds.steps
        cost = sum(step.cost for step in (*before, *self.steps)) + seal_cost(self.seals, self.steps).get(name, 0.0)
        return total if cost >= whole * (1 - _ROUNDING) else budget_from_parameters(notion, {name: cost})

    @property
    def choices(self) -> dict[str, Any]:
        """Public choices, as :attr:`privacy` has them."""
        names = ("classes_inferred", "mechanism", "variant", "project", "calibration", "moments", "projection")
        before = self.released_bounds
        bounds = {} if before is None else {"released_bounds": before.facts()}
        return {**{name: getattr(self, name) for name in names}, **bounds}

    @property
    def chosen(self) -> tuple[str, ...]:
        """Choices that must not depend on the data."""
        known = chosen_beside(self.released_bounds, super().chosen)
        ridge = ("λ", "radius", "split") if self.newton is None else ()
        return tuple(chosen_with(self.table, (*known, "mechanism", *ridge)))

    @property
    def constants(self) -> dict[str, Any]:
        """The public numbers that the theorem is about."""
        return {**super().constants, "slope_bound": self.slope_bound, "curvature_bound": self.curvature_bound}

    def guarantee(self) -> Guarantee:
        """Return the guarantee of all steps and seals together."""
        own = self.own_guarantee()
        found = self.released_bounds
        return own if found is None else found.before(own, self.budget, joint=self._are_joint)

    def own_guarantee(self) -> Guarantee:
        """Return the guarantee without the bounds of the schema."""
        n_params = len(self.names)
        return guarantee_of(
            self.own_budget, self.steps, self.seals, vars(self), divisor=self.divisor, n_params=n_params
        )

    def _special_conditions(self) -> Iterator[str]:
        if self.loss["name"] == "custom":
            yield "the declared bounds of the custom loss hold for every predictor and target"
        if self.classes_inferred:
            yield CLASSES_READ_OFF

    def check(self) -> None:
        """Refuse a record that no fit leaves behind, and on which intervals would fail or mean nothing."""
        super().check()
        rules = _contradictions(self), _table_contradictions(self), _part_contradictions(self)
        for broken, rule, value in chain.from_iterable(rules):
            if broken:
                raise InvalidInput(f"{rule}, got {value}")
        for name in ("hessian", "gradient_cov"):
            matrix = getattr(self, name)
            if matrix is not None:
                # Matrices that keep their noise can have any eigenvalues.
                _check_matrix(name, matrix, projected=self.projection != "noise_aware")

    def _check_shapes(self) -> None:
        k = len(self.names)
        if (self.hessian is None) != (self.gradient_cov is None) or (self.hessian is None) != (self.moments == "none"):
            raise InvalidInput(f"both matrices must be given unless moments='none', got moments={self.moments!r}")
        for name, shape in (("params", (k,)), ("hessian", (k, k)), ("gradient_cov", (k, k))):
            array = getattr(self, name)
            if array is not None and array.shape != shape:
                raise InvalidInput(f"{name} must have shape {shape}, got {array.shape}")


@dataclass(frozen=True, kw_only=True, eq=False)
class SelectedRecord(FitRecord):
    """Record of a model that won a selection, whose runs may be of another notion than the budget."""

    SELECTED: ClassVar[bool] = True


def _contradictions(record: FitRecord) -> Iterator[tuple[bool, str, str]]:
    """Yield, for each rule, whether it is broken, the rule and the value."""
    loss, mechanism = record.loss["name"], record.mechanism
    hinge = loss == "hinge"
    gaussian = record.notion == "approx" or (record.notion == "zcdp" and mechanism in ("output", "newton"))
    law = "gaussian" if gaussian else "spherical_laplace"
    in_shape = "shaped_gaussian" if gaussian and not record.SELECTED else "shaped_laplace"
    shaped = record.noise_law == in_shape and record.blocks is not None and mechanism == "objective"
    if shaped and record.calibration == "tight":
        law = in_shape
    what = f"{mechanism} perturbation with notion={record.notion!r}"
    two_classes = record.loss["target_bounds"] is None
    other_law = record.noise_law != law and not (record.SELECTED and record.noise_law == "spherical_laplace")
    yield other_law, f"noise_law of {what} must be {law!r}", f"noise_law={record.noise_law!r}"
    yield hinge and mechanism != "output", "mechanism must be 'output' for the hinge loss", f"mechanism={mechanism!r}"
    yield hinge and record.moments != "none", "moments must be 'none' for the hinge loss", f"moments={record.moments!r}"
    yield (
        hinge != (record.curvature_bound is None),
        "curvature_bound must be None for the hinge loss, and for no other",
        f"curvature_bound={record.curvature_bound} with loss={loss!r}",
    )
    yield (
        record.project and (mechanism != "output" or record.radius is None),
        "project must be False without output perturbation and a radius",
        f"project=True with mechanism={mechanism!r} and radius={record.radius}",
    )
    yield (
        record.variant == "cms11" and (mechanism != "objective" or record.noise_law in {"gaussian", "shaped_gaussian"}),
        "variant='cms11' must go with objective perturbation and spherical Laplace noise",
        f"{what}",
    )
    yield (
        record.loss["slope_bound"] is None and record.radius is None and record.newton is None,
        f"radius must be given for the {loss} loss, because its slope is bounded only on a ball",
        "radius=None",
    )
    yield (
        (record.classes is None) == two_classes,
        f"classes must be {'given for a loss of two classes' if two_classes else 'None for a loss with real targets'}",
        f"classes={record.classes!r} with loss={loss!r}",
    )
    yield (
        record.classes_inferred and record.classes is None and loss != SEVERAL,
        "classes_inferred must be False for real targets",
        "classes_inferred=True with classes=None",
    )
    for what, given in (("persons", record.persons), ("weights", record.weights)):
        if given is None:
            continue
        yield record.calibration != "tight", f"calibration must be 'tight' with {what}", f"{record.calibration!r}"
        yield record.variant != "standard", f"variant must be 'standard' with {what}", f"{record.variant!r}"
        yield hinge, f"the loss must have a second derivative with {what}", f"loss={loss!r}"
        strong = record.loss["strong_convexity"] > 0.0
        yield strong, f"strong_convexity must be 0 with {what}", f"{record.loss['strong_convexity']}"
    if record.weights is not None:
        small = not 1.0 <= record.divisor < math.inf
        yield small, "the total of the weights must be at least their bound", f"{record.weights}"
    if record.blocks is not None:
        n_columns = len(record.columns)
        yield record.blocks.n_columns != n_columns, f"blocks must bound {n_columns} columns", f"{record.blocks}"
    yield from _newton_contradictions(record)
    yield from _seal_contradictions(record)


def _newton_contradictions(record: FitRecord) -> Iterator[tuple[bool, str, str]]:
    """Yield the rules of Newton steps, as :func:`_contradictions` does."""
    by_steps, newton = record.mechanism == "newton", record.newton
    yield by_steps != (newton is not None), "newton must be given for Newton steps alone", f"{record.mechanism!r}"
    yield (
        by_steps
        and (
            record.l2_strength != 0.0 or record.l2_recommended or record.radius is not None or record.moments != "joint"
        ),
        "a fit by Newton steps must have no ridge and no radius, and joint moments",
        f"l2_strength={record.l2_strength}, radius={record.radius}, moments={record.moments!r}",
    )
    yield (
        newton is not None and (newton.ridge > 0.0) != (record.notion == "pure"),
        "the ridge of the start must be above 0 under pure DP alone",
        f"{None if newton is None else newton.ridge}",
    )
    yield (
        newton is not None and len(newton.params) != len(record.names),
        f"newton must have {len(record.names)} parameters",
        f"{0 if newton is None else len(newton.params)}",
    )


def _table_contradictions(record: FitRecord) -> Iterator[tuple[bool, str, str]]:
    """Yield the rules of the schema, as :func:`_contradictions` does."""
    table, found = record.table, record.released_bounds
    if found is not None:
        yield table is None, "a fit with released bounds must have a schema", "none"
        yield record.whole is not None, "a fit with released bounds must be no part of a release", str(record.whole)
    if table is None:
        return
    if found is not None:
        found.check_table(table)
    yield (
        table.names != record.columns,
        "the columns must be those of the schema",
        f"{record.columns} with a schema of {table.names}",
    )
    has_constant = record.intercept_scale is not None
    yield has_constant != table.has_constant, "the constant must be that of the schema", str(record.intercept_scale)
    yield (
        bool(table.persons) and record.persons is None,
        f"persons must be given where the schema names a column of them, {table.persons!r}",
        "persons=None",
    )
    expected = (class_labels(table.target) or (-1, 1)) if isinstance(table.target, ClassTarget) else None
    yield (
        expected is not None and record.classes is not None and tuple(record.classes) != expected,
        f"classes must be those of the schema, {expected!r}",
        f"classes={record.classes!r}",
    )
    domain = table.rows if isinstance(record.rows, Blocks) else table.domain
    same = math.isclose(record.rows.norm, domain.norm, rel_tol=_ROUNDING) and same_blocks(record.rows, domain)
    yield not same, f"rows must be those of the schema, {domain}", f"{record.rows}"
    several: tuple[type, str] = (CategoricalTarget, "of several classes")
    kind = several if record.loss["name"] == SEVERAL else (NumericTarget, "a number")
    kind = kind if record.classes is None else (ClassTarget, "of two classes")
    yield (
        not isinstance(table.target, kind[0]),
        f"the target of the schema must be {kind[1]}",
        f"{table.target!r} with classes={record.classes!r}",
    )


def _part_contradictions(record: FitRecord) -> Iterator[tuple[bool, str, str]]:
    """Yield the rules of a part of a release, as :func:`_contradictions` does."""
    whole = record.whole
    if whole is None:
        return
    least, together = whole.cost_of(record.budget).parameters(), whole.budget.parameters()
    # Where a ledger paid, the budget of a fit was rounded down to decimals.
    same = set(least) == set(together) and all(
        math.isclose(together[name], least[name], rel_tol=_ROUNDING) for name in least
    )
    yield not same, f"the budget of {whole} must be what fits like this one cost with it, {least}", str(whole.budget)
    # A record that is replaced may leave one stratum and enter another; each fit is for one that comes or goes.
    relation = "add_remove" if whole.of_strata else whole.neighbors
    yield record.neighbors != relation, f"neighbors of a part of {whole} must be {relation!r}", record.neighbors


def _seal_contradictions(record: FitRecord) -> Iterator[tuple[bool, str, str]]:
    """Yield the rules of the seals, as :func:`_contradictions` does."""
    expected: tuple[str, ...]
    if record.newton is not None:
        rounds, earlier = ("radius", "shape"), ("hessian", "gradient_norms", "hessian_norms", "gradient")
        expected = (*rounds, "radius", "gradient", *earlier * 2, "hessian", "gradient_cov", "gradient")
        if record.notion == "pure":
            null = ("gradient",) if any(step.step == "null_slope" for step in record.steps) else ()
            expected = (*rounds * 2, "radius", *null, "params", "hessian", "gradient_cov")
        what = "Newton steps"
    elif any(step.step == "report_gradient" for step in record.steps):
        expected, what = ("params", "gradient", "hessian"), "a report"
    elif record.moments == "none":
        expected, what = ("params",), "moments='none'"
    else:
        hessian = () if has_needless_seal(record.steps) else ("hessian",)
        expected = ("params", *hessian, "gradient_cov")
        what = f"moments={record.moments!r}"
    found = tuple(seal.release for seal in record.seals)
    yield found != expected, f"the seals with {what} must be those of {expected}", str(found)
    # A selection's runs may be of another notion than its budget.
    if not record.SELECTED:
        steps, seals = record.steps, record.seals
        left = "" if record.released_bounds is None else f", which the released bounds leave of {record.budget}"
        spent = spending_contradictions(record.own_budget, steps, seals, record.own_guarantee)
        yield from ((wrong, f"{rule}{left}", value) for wrong, rule, value in spent)
        if record.released_bounds is not None and isinstance(record.budget, ApproxDP):
            yield record.released_bounds.together(record.guarantee(), record.budget)
    for seal in record.seals:
        law = "discrete_laplace" if tuple(seal.cost) == ("epsilon",) else "discrete_gaussian"
        rule = f"the noise of a seal that costs {' and '.join(seal.cost)} must be {law!r}"
        yield seal.noise != law, rule, f"noise={seal.noise!r}"


def _check_matrix(name: str, matrix: NDArray[np.float64], *, projected: bool) -> None:
    greatest = float(np.abs(matrix).max())
    scaled = matrix / greatest if greatest > 0.0 else matrix
    # The mean gradient is subtracted from the covariance.
    check_symmetric(name, matrix, rounding=0.0 if name == "hessian" and not projected else _ROUNDING)
    if not projected:
        return
    kind, room = ("positive definite", 0.0) if name == "hessian" else ("positive semidefinite", _ROUNDING)
    try:
        np.linalg.cholesky(scaled + room * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        least = greatest * float(np.linalg.eigvalsh(scaled)[0])
        raise InvalidInput(f"{name} must be {kind}, got a least eigenvalue of {least:.4g}") from None
