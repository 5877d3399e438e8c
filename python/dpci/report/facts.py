"""Public facts of a fit in lines: what it is, what each step cost, and the bounds that it released."""

from dpci import _core
from dpci.accounting.costs import describe_seals, step_names
from dpci.base.tables import change_text, positive_class
from dpci.released.bounds import ReleasedBounds
from dpci.released.record import FitRecord, Record
from dpci.released.sources import table_values
from dpci.schema.table import Schema
from dpci.shown.document import Table

_TREATED = {"clip": ", clipped", "weight": ", with less weight beyond them"}


def fact_lines(record: FitRecord) -> list[tuple[str, str]]:
    """Return names and values of the public facts; details of a fact are indented below it."""
    unit = record.cost_unit.replace("_", " ")
    steps = [
        (f"  {name}", f"{unit} {step.cost:.4g}, {step.noise.replace('_', ' ')} noise")
        for name, step in zip(step_names(record.steps), record.steps, strict=True)
    ]
    unit_of_privacy = "record" if record.persons is None else "person"
    public = "n (released)" if record.n_is_released else "n (public)"
    n_name = public if record.neighbors == "add_remove" else "n"
    return [
        ("mechanism", _mechanism(record)),
        ("loss", record.loss_facts.words + positive_class(record.shown_classes, inferred=record.classes_inferred)),
        ("budget spent", str(record.spent)),
        *([] if record.whole is None else [("  together", f"{record.whole.budget} by {record.whole}")]),
        *bounds_lines(record.released_bounds, record),
        *steps,
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", change_text(record.neighbors, unit_of_privacy)),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", str(record.weights))]),
        ("rows", _domain(record)),
        (n_name, f"{record.n_samples:,}"),
        *([] if record.newton is not None else [("lambda", _ridge(record))]),
        *([] if record.radius is None else [("radius", f"{record.radius:g}")]),
        ("moments", "none released" if record.hessian is None else _moments(record)),
    ]


def released_table(found: ReleasedBounds | None, table: Schema | None) -> list[Table]:
    """Return the bounds and categories of a schema that were released within a budget."""
    if found is None or table is None:
        return []
    names = [(value.name.partition(" ")[2], value.value) for value in table_values(table)]
    rows = [[name, value] for name, value in names if name in found.columns]
    return [Table(["column", "released"], rows, "Released bounds and categories", of_words=True)]


def bounds_lines(found: ReleasedBounds | None, record: Record) -> list[tuple[str, str]]:
    """Return what bounds of a schema cost that were released within a budget, and how much they leave out."""
    if found is None:
        return []
    n_columns = len(found.columns)
    columns = "one column" if n_columns == 1 else f"{n_columns} columns{' together' * (found.share is not None)}"
    if found.share is None:
        return [("  categories", f"{found.budget} for {columns}, a random choice for each category")]
    left_out = f"at most about {found.share:.1%} of the values lie beyond each bound"
    what = "bounds and categories" if found.listed else "bounds"
    beyond, units = found.beyond(record.n_samples), "records" if record.persons is None else "persons"
    counted = [] if beyond is None else [("  beyond bounds", f"{beyond} of the {units} have a number beyond them")]
    return [(f"  {what}", f"{found.budget} for {columns}, by the exponential mechanism; {left_out}"), *counted]


def _domain(record: FitRecord) -> str:
    without = "" if record.intercept_scale is None else ", without the intercept"
    return f"{record.rows}{without}{_TREATED.get(record.on_violation, '')}"


def _moments(record: FitRecord) -> str:
    if record.newton is not None:
        return "Hessian and gradient covariance of the whitened rows, joint"
    how = "joint with level totals" if record.moments == "levels" else record.moments
    return f"Hessian and gradient covariance, {how}; projection {record.projection}"


def _mechanism(record: FitRecord) -> str:
    if record.newton is not None:
        return f"{record.newton.made_by}, on whitened rows"
    variant = "" if record.variant == "standard" else f", variant {record.variant}"
    project = ", params projected onto the ball" if record.project else ""
    calibration = "" if record.calibration == "tight" else f", calibration {record.calibration}"
    return f"{record.mechanism} perturbation{variant}{calibration}{project}"


def _ridge(record: FitRecord) -> str:
    chosen = ", recommended by public values" if record.l2_recommended else ""
    return f"{record.l2_strength:g}{chosen}" + (", raised by cms11" if _was_raised(record) else "")


def _was_raised(record: FitRecord) -> bool:
    """Return whether cms11 raised lambda."""
    if record.variant != "cms11":
        return False
    step = next(step for step in record.steps if step.step == "coefficients")
    epsilon = _core.zcdp_to_pure(step.cost, record.calibration) if record.notion == "zcdp" else step.cost
    return _core.cms11_raised(epsilon, step.sensitivity, step.scale)
