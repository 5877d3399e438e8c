"""Released values and their cost: a fact a line."""

from dpci.accounting.seals import describe_seals
from dpci.base.tables import change_text
from dpci.regression.record import MomentRecord


def release_lines(record: MomentRecord) -> list[tuple[str, str]]:
    """Return what was released and what it cost, a fact a line."""
    return [
        ("released", f"second moments of {len(record.features)} columns, a constant and {', '.join(record.targets)}"),
        ("columns", ", ".join(record.features)),
        ("budget spent", str(record.total_budget())),
        *((f"  {step.step}", f"{step.noise} noise of scale {step.scale:.4g}") for step in record.steps),
        ("  rounding seal", describe_seals(record.seals)),
        ("neighbours", change_text(record.neighbors, "record" if record.persons is None else "person")),
        *([] if record.persons is None else [("persons", str(record.persons))]),
        *([] if record.weights is None else [("weights", str(record.weights))]),
        ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
    ]
