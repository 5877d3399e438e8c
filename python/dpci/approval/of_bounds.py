"""Approval of bounds and categories that were released: by themselves, or by a fit within its budget."""

from collections.abc import Iterator
from dataclasses import replace

from dpci.approval.statement import Statement, steps_text
from dpci.budgets import ZCDP
from dpci.released.bounds import ReleasedBounds
from dpci.released.sources import PublicValue, interval_value
from dpci.shown.document import Words, joined, names

_PROOFS = {
    "bounds": "docs/proofs/bounds.md (The law)",
    "categories": "docs/proofs/bounds.md (Categories)",
    "counts": "docs/proofs/bounds.md (Counts)",
}
_LAWS = {
    "bounds": "the exponential mechanism",
    "categories": "a choice for each category",
    "counts": "discrete noise on counts",
}
_DRAWN = {
    "bounds": "bounds are drawn by the exponential mechanism among public points, mostly those near the wanted rank",
    "categories": "each category is listed by chance, with a probability of the number of its rows",
    "counts": "each count has noise, a whole number of its own",
}


def _parts(bounds: ReleasedBounds) -> dict[str, tuple[str, ...]]:
    """Return the columns of which bounds, of which categories, and of which counts were released."""
    counted = () if bounds.counting.columns is None else bounds.columns
    if bounds.counting.beyond is not None and not counted:
        counted = tuple(bounds.ranges)
    parts = {"bounds": tuple(bounds.ranges), "categories": bounds.listed, "counts": counted}
    return {what: columns for what, columns in parts.items() if columns}


def what_of(bounds: ReleasedBounds) -> str:
    """Return which of bounds, categories and counts were released."""
    *first, last = _parts(bounds)
    return f"{', '.join(first)} and {last}" if first else last


def laws_of(bounds: ReleasedBounds) -> str:
    """Return the laws of the release, in words."""
    return " and ".join(_LAWS[what] for what in _parts(bounds))


def drawn_by(bounds: ReleasedBounds) -> str:
    """Return how the release is random, in words."""
    return "; ".join(_DRAWN[what] for what in _parts(bounds))


def proofs_of(bounds: ReleasedBounds) -> tuple[str, ...]:
    """Return the pages with the proofs, each with its section."""
    return tuple(_PROOFS[what] for what in _parts(bounds))


def contents_of(bounds: ReleasedBounds, n_samples: int) -> Iterator[tuple[str, Words]]:
    """Yield names and values of what was released."""
    for what, columns in _parts(bounds).items():
        yield f"{what} released", names(columns)
    if bounds.share is not None:
        number = f"about {bounds.share * n_samples:,.0f} of {n_samples:,} on each side of a column, a public number"
        fewer = "a column without far values leaves out fewer"
        yield "beyond released bounds", f"{bounds.left_out}: {number}; {fewer}"
    if (beyond := bounds.beyond(n_samples)) is not None:
        yield "with a number beyond released bounds", f"{beyond}, a 95% interval in brackets"


def found_of(bounds: ReleasedBounds) -> Words:
    """Return which public values a release found by itself, which therefore have no other source."""
    parts = [(f"the {what} of ", names(columns)) for what, columns in _parts(bounds).items() if what != "counts"]
    return joined(parts, " and "), ", which the release found within its budget"


def range_values(bounds: ReleasedBounds) -> Iterator[PublicValue]:
    """Yield the public ranges in which bounds were looked for."""
    for name, extent in bounds.ranges.items():
        if extent is not None:
            yield interval_value(f"range of {name}", *extent)


def with_bounds(found: Statement, bounds: ReleasedBounds, n_samples: int, *, joint: bool) -> Statement:
    """Return the approval of a fit that released bounds of its schema first; ``joint``: accounted for with the fit."""
    what = what_of(bounds)
    steps = steps_text(bounds.steps, "rho" if isinstance(bounds.budget, ZCDP) else "epsilon", ())
    together = ("bounds and Gaussian noise compose in one profile, docs/proofs/bounds.md",) if joint else ()
    first, *others = found.covers
    covers = first.replace("It covers ", f"It covers the released {what}, ") if isinstance(first, str) else first
    others_of_table = "the bounds and categories that were public before"
    return replace(
        found,
        contents=(*found.contents, *contents_of(bounds, n_samples)),
        adds_noise=f"{found.adds_noise}; {drawn_by(bounds)}",
        noise=f"{found.noise}, and {laws_of(bounds)}",
        proofs=(*found.proofs, *proofs_of(bounds)),
        audits=(*found.audits, "schema_audit"),
        composition=(f"{what} of the schema {bounds.budget}: {steps}", *found.composition, *together),
        public=(*range_values(bounds), *found.public),
        found=found_of(bounds),
        exact=tuple(others_of_table if each == "the bounds" else each for each in found.exact),
        covers=(covers, *others),
        from_data=(*found.from_data, f"the {what} of some columns, which the budget covers"),
    )
