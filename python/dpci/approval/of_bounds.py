"""Approval of bounds that were released: by themselves, or by a fit within its budget."""

from collections.abc import Iterator
from dataclasses import replace

from dpci.approval.statement import Statement
from dpci.released.bounds import ReleasedBounds
from dpci.released.sources import PublicValue, interval_value
from dpci.shown.document import Words, names

BOUNDS_PROOF = "docs/proofs/bounds.md (The law)"
BOUNDS_LAW = "the exponential mechanism among public points, those near the wanted rank most often"


def found_of(bounds: ReleasedBounds) -> Words:
    """Return which public values a release found by itself, which therefore have no other source."""
    return "the bounds of ", names(tuple(bounds.ranges)), ", which it found under its budget"


def range_values(bounds: ReleasedBounds) -> Iterator[PublicValue]:
    """Yield the public ranges in which bounds were looked for."""
    for name, extent in bounds.ranges.items():
        if extent is not None:
            yield interval_value(f"range of {name}", *extent)


def steps_of_bounds(bounds: ReleasedBounds) -> str:
    """Return what the choices of the bounds cost."""
    return " and ".join(f"{step.cost:.4g}" for step in bounds.steps)


def with_bounds(found: Statement, bounds: ReleasedBounds) -> Statement:
    """Return the approval of a fit that released bounds of its schema first."""
    own = f"bounds of the schema {bounds.budget}: choices {steps_of_bounds(bounds)}"
    columns = names(tuple(bounds.ranges))
    first, *others = found.covers
    return replace(
        found,
        contents=(*found.contents, ("bounds released", columns)),
        adds_noise=f"{found.adds_noise}; the bounds of the schema are drawn by {BOUNDS_LAW}",
        noise=f"{found.noise}, and the exponential mechanism",
        proofs=(*found.proofs, BOUNDS_PROOF),
        composition=(own, *found.composition),
        public=(*range_values(bounds), *found.public),
        found=found_of(bounds),
        exact=tuple("the bounds of all other columns" if what == "the bounds" else what for what in found.exact),
        chosen=tuple("public bounds and ranges" if what == "bounds" else what for what in found.chosen),
        covers=(first.replace("It covers ", "It covers the released bounds, "), *others)
        if isinstance(first, str)
        else found.covers,
        from_data=(*found.from_data, "the bounds of some columns, which the budget covers"),
    )
