"""Approval of a fit, and of the parts that other releases have in common with fits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dpci.accounting.guarantee import Guarantee
from dpci.approval.noise import lattice_of_fits, noise_of_fits
from dpci.approval.of_bounds import with_bounds
from dpci.approval.schema import Strata
from dpci.approval.statement import RIDGE, Statement
from dpci.base.tables import printable
from dpci.data.arrays import OnViolation
from dpci.inference.methods import FitInference
from dpci.inference.remarks import notes, publishes_nothing
from dpci.losses import SEVERAL
from dpci.released.bounds import are_joint
from dpci.released.model import record_of
from dpci.released.record import NOISE_AWARE, FitRecord, Record
from dpci.released.sources import public_values, weights_words
from dpci.released.whole import Whole, counted_strata
from dpci.report.summary import (
    WEIGHED,
    Numbers,
    View,
    answer_table,
    bare_table,
    no_intervals,
    noise_size,
    ordinary_coefficients,
    outcome_words,
    refusal_notes,
)
from dpci.schema.cells import stand_in
from dpci.schema.columns import NumericColumn
from dpci.schema.table import Schema
from dpci.shown.document import Strong, Table, Words, names
from dpci.unit import Persons, Weights

_ADDS = {
    "objective": "noise is added to the function that the parameters minimise",
    "output": "the parameters are computed without noise, and noise is added to them",
    "newton": "noise is added to the sums of which each step is computed",
}
_SOURCES = {
    "strata": "dpci.fit_strata",
    "counted_strata": "dpci.fit_strata",
    "groups": "dpci.fit_many",
    "disjoint_groups": "dpci.fit_many, disjoint groups",
    "tuning": "dpci.tuning.tune",
}
"""Name in the ledger of a release that a fit is a part of."""
STRATA_PROOF = "docs/strata.md (Proof)"
TUNING_PROOF = "docs/tuning.md (Appendix: proofs)"
_PROOF_OF = {
    "strata": STRATA_PROOF,
    "counted_strata": STRATA_PROOF,
    "groups": "docs/proofs/ledger.md (Adaptive sums)",
    "disjoint_groups": "docs/ledger.md (9. Many groups)",
    "tuning": TUNING_PROOF,
}


def approval_of_fit(result: FitInference) -> Statement:
    """Return what an approver must know of a fit by itself, or of one part of a release."""
    guarantee = result.guarantee if result.private else None
    record = record_of(result)
    found = approval_of_record(record, refusal=result.interval_refusal, guarantee=guarantee)
    if record.released_bounds is not None:
        joint = are_joint(record.budget, record.mechanism) and record.released_bounds.stages > 0
        found = with_bounds(found, record.released_bounds, record.n_samples, joint=joint)
    return found if found.whole is None else _of_part(found, found.whole)


def approval_of_record(record: FitRecord, *, refusal: str | None, guarantee: Guarantee | None) -> Statement:
    """Return what an approver must know of a fit by itself; ``refusal`` is why it has no intervals."""
    numbers = None if refusal is not None else Numbers(record, View())
    several = record.loss["name"] == SEVERAL
    chose_classes = not record.classes_inferred and (record.classes is not None or several)
    n_parameters = f"{len(record.names)} {'parameter' if len(record.names) == 1 else 'parameters'}"
    made_by = f"{record.mechanism} perturbation" if record.newton is None else record.newton.made_by
    others = "" if record.moments == "none" else ", and the matrices from which intervals are computed"
    if record.newton is not None:
        others = ", and the sums from which they and their intervals are computed"
    return Statement.of(
        record,
        kind="a fit",
        contents=(
            ("model", f"{record.loss_facts.words} loss, {made_by}, {n_parameters}"),
            *([] if several else [("outcome", outcome_words(record))]),
            ("parameters", names(record.names)),
        ),
        made_by=made_by,
        adds_noise=f"{made_by}: {_adds(record)}",
        noise=f"{record.noise_law.replace('_', ' ')} noise",
        proofs=(*_proofs(record), *count_proofs(record.persons, record.weights), PROGRAM_PROOF),
        audits=_audits(record),
        whole=record.whole,
        guarantee=guarantee,
        sealed=_sealed(record),
        kind_of_numbers=(
            "exact" if record.neighbors == "replace_one" else "released" if record.n_is_released else "stand_in"
        ),
        public=tuple(public_values(record)),
        exact=_exact(record),
        chosen=(
            *(public_number(record.persons) if record.neighbors == "add_remove" and not record.n_is_released else ()),
            *(what for what in record.chosen if what != "classes" or chose_classes),
        ),
        from_data=("the class labels, which the budget does not cover",) if record.classes_inferred else (),
        custom_loss=record.loss["name"] == "custom",
        classes_inferred=record.classes_inferred,
        covers=(
            f"It covers the released parameters{others}.",
            "Whatever is computed from these costs nothing more, such as predictions for new records.",
            "Predictions for confidential records are as confidential as those records.",
        ),
        target=_target(record),
        intervals=None if numbers is None else " ".join([intervals_words({"": numbers}), *noise_size(numbers)]),
        warnings=tuple(notes(record)),
        cautions=tuple(refusal_notes(numbers)) if numbers is not None else _without(refusal),
        shown=() if publishes_nothing(record) else (_shown(record, numbers),),
        moved=(
            *(["keeping the parameters in a ball"] if record.radius is not None else []),
            *what_moves(record.table, record.on_violation, ridge=record.l2_strength > 0.0),
        ),
        findings=(noise_of_fits([record]), lattice_of_fits([record])),
    )


def _shown(record: FitRecord, numbers: Numbers | None) -> Table:
    if numbers is None:
        return bare_table(record, View(), full=False)
    return without_p_values(answer_table(numbers))


def without_p_values(table: Table) -> Table:
    """Return a table of estimates without a column that decides nothing about an approval."""
    kept = [at for at, name in enumerate(table.header) if name != "p-value"]
    rows = [[row[at] for at in kept] for row in table.rows]
    return replace(table, header=[table.header[at] for at in kept], rows=rows)


def _exact(record: FitRecord) -> tuple[str, ...]:
    """Return what the file shows exactly."""
    return (
        "the names of the parameters",
        *(() if record.classes is None else ("the classes",)),
        *("the bounds", *(["λ"] if record.newton is None else [])),
        *([] if record.radius is None else ["the radius"]),
        "the loss",
    )


def _adds(record: FitRecord) -> str:
    """Return where the noise enters."""
    if record.newton is not None and record.newton.ridge > 0.0:
        return "noise is added to the function that the start of the step minimises, and to the sums of the step"
    return _ADDS[record.mechanism]


def _of_part(found: Statement, whole: Whole) -> Statement:
    """Return the approval of the release that a fit is a part of, as far as the file of the fit shows it."""
    source = _SOURCES[whole.kind]
    if whole.of_strata:
        source += f", {counted_strata(whole.parts)} of "
    claim = replace(found.claim, kept=None, charged=whole.budget, neighbors=whole.neighbors, source=source)
    covers, exact = {
        "groups": (
            (
                f"It covers {whole}, whose costs add up. One person may have a record in each of them.",
                "One record of each group may change, and the guarantee still holds.",
            ),
            "the names of the groups",
        ),
        "disjoint_groups": (
            (
                f"It covers {whole}. Every person is in one group only, and which one is public.",
                "So they cost together what one of them costs.",
            ),
            "which group a person is in",
        ),
        "tuning": ((f"It covers {whole}. The file of the tuning says how the choice was made.",), ""),
    }.get(whole.kind, (strata_covers(whole, found.unit), "the names of the strata"))
    not_alone = f"The whole is {whole}. It spends {whole.budget}, which is the number that counts here and below."
    refusals: list[Words] = [(Strong("Approve the whole release, not this file alone."), f" {not_alone}")]
    if whole.kind == "disjoint_groups":
        secret = Strong("Refuse if the group of a person is a secret.")
        refusals.append((secret, " The budget assumes that it is public."))
    part = replace(
        found,
        claim=claim,
        budget=whole.budget,
        guarantee=None,
        strata=Strata() if whole.of_strata else None,
        composition=(f"this fit: {found.composition[0]}",),
        covers=covers,
        proofs=(*found.proofs, _PROOF_OF[whole.kind]),
        refusals=tuple(refusals),
    )
    if whole.kind == "tuning":
        maybe = "perhaps chosen with noise: the file of the tuning says it"
        return tuned(part, whole.parts, dict.fromkeys(("l2_strength", "radius"), maybe))
    listed = "the list of strata" if whole.of_strata else "the list of groups"
    return replace(part, exact=(*part.exact, exact), chosen=(listed, *part.chosen))


def strata_covers(whole: Whole, unit: str) -> tuple[str, ...]:
    """Return why strata cost together what they cost."""
    parts = "the model of one stratum" if whole.parts == 1 else f"the models of {whole.parts} strata"
    parts += f", and the counts of their {unit}s" * whole.counts
    covered = f"It covers {parts}. A {unit} is in one stratum."
    if whole.neighbors == "add_remove":
        alone = f"Adding or removing a {unit} changes that stratum alone."
        return covered, f"{alone} So all of it costs {whole.budget}, what one stratum costs (parallel composition)."
    moves = f"Replacing a {unit} by one of another stratum changes two of them."
    cost = f"So all of it costs {whole.budget}, what two changes of one stratum cost."
    return covered, f"{moves} {cost}"


_NAMES = {"l2_strength": "λ"}
"""Keywords of candidates that lists of choices call otherwise."""


def tuned(found: Statement, n_candidates: int, sources: Mapping[str, str]) -> Statement:
    """Return the approval where a choice among candidates took place.

    ``sources`` has, by their keywords, the settings that the candidates may differ in, and why each is what it is.
    """
    of_choice = {_NAMES.get(name, name) for name in sources}
    kept = [what for what in found.exact if what.removeprefix("the ") not in of_choice]
    return replace(
        found,
        chosen=("the list of candidates", *(what for what in found.chosen if what not in of_choice)),
        exact=(*kept, "the list of candidates (which of them was chosen is released with privacy)"),
        public=tuple(value._replace(source=sources.get(value.name, value.source)) for value in found.public),
        from_data=(*found.from_data, f"the choice among {n_candidates} candidates, which the budget covers"),
    )


def public_number(persons: Persons | None) -> tuple[str]:
    """Return what stands in for a private number of records, as something that must not depend on the data."""
    return (f"the public number of {'records' if persons is None else 'persons'}",)


def counts_text(record: Record) -> list[str]:
    """Return how rows and records count in what is estimated."""
    weights = weights_words(record)
    if record.weights is not None and record.weights.left_out:
        counted = "each record counts once, but for rows that miss a value, which are left out"
    else:
        counted = f"records count by their weights ({weights})"
    return [
        *([] if record.persons is None else [f"rows count by the rule for persons ({record.persons})"]),
        *([counted] if weights else []),
    ]


def what_moves(table: Schema | None, on_violation: OnViolation | None, *, ridge: bool) -> Iterator[str]:
    """Yield what shifts estimates, besides noise."""
    if ridge:
        yield RIDGE
    numeric = [] if table is None else [part for part in table.columns if isinstance(part, NumericColumn)]
    if on_violation == "clip" or any(column.outside == "clip" for column in numeric):
        yield "moving values to their bounds"
    if on_violation == "weight":
        yield "less weight of records beyond their bounds"
    if any(stand_in(column) is not None for column in numeric):
        yield "public numbers in the place of missing values"
    if table is not None and table.drops:
        yield "rows with missing values, which are left out"


PROGRAM_PROOF = "docs/proofs/program.md (The theorem for the program)"


def count_proofs(persons: Persons | None, weights: Weights | None) -> Iterator[str]:
    """Yield the pages with the proofs for persons and for weights."""
    if persons is not None:
        yield "docs/proofs/persons.md (Setting)"
    if weights is not None:
        yield "docs/weights.md (Appendix: proofs)"


def _without(refusal: str | None) -> tuple[str, ...]:
    """Return why a fit has no intervals at all."""
    return () if refusal is None else (no_intervals(refusal),)


def intervals_words(found: Mapping[str, Numbers]) -> str:
    """Return which parameters have an interval, and what it accounts for, of models with the names of their strata."""
    record = next(iter(found.values())).record
    if record.projection == NOISE_AWARE:
        counted = "sampling, the noise in the parameters and the noise in the matrices"
    else:
        counted = "sampling and the noise in the parameters, but not the noise in the matrices"
    refused = [
        printable(name + f" of {stratum}" * bool(stratum))
        for stratum, numbers in found.items()
        for name, reason in zip(numbers.names, numbers.refusals, strict=True)
        if reason is not None
    ]
    if not refused:
        return f"Every parameter has an interval, which accounts for {counted}."
    total = sum(len(numbers.names) for numbers in found.values())
    given = f"{total - len(refused)} of {total} parameters have an interval; none for {', '.join(refused)}"
    return f"{given}. The intervals account for {counted}."


def _sealed(record: FitRecord) -> str:
    if record.newton is not None:
        return "sums of which the parameters are computed, with two matrices"
    count = len(record.seals) - 1
    return {0: "parameters", 1: "parameters and one matrix"}.get(count, "parameters and two matrices")


def _target(record: FitRecord) -> str:
    least = f"the parameters with the smallest regularised loss in the population, λ = {record.l2_strength:g}"
    if record.newton is not None:
        least = f"{ordinary_coefficients(record)}; {WEIGHED}"
    units = "records" if record.persons is None else "persons"
    if record.radius is not None:
        least += f", over the ball ‖parameters‖ ≤ {record.radius:g}"
    public = [f"λ applies to {record.n_samples:,} {units}"] if record.neighbors == "add_remove" else []
    return "; ".join([least, *public, *counts_text(record)])


def _audits(record: FitRecord) -> tuple[str, ...]:
    """Return the pages with the audits of a fit."""
    if record.newton is not None:
        return ("newton_audit",)
    several, shaped = record.loss["name"] == SEVERAL, record.noise_law.startswith("shaped")
    own = "multinomial_audit" if several else "shaped_audit" if shaped else "audit"
    levels = ("level_audit",) if record.moments == "levels" else ()
    return (own, *levels, *count_audits(record.persons, record.weights))


def count_audits(persons: Persons | None, weights: Weights | None) -> Iterator[str]:
    """Yield the pages with the audits of persons and of weights."""
    if persons is not None:
        yield "person_audit"
    if weights is not None:
        yield "weight_audit"


def _proofs(record: FitRecord) -> Iterator[str]:
    """Yield the pages with the proofs of the mechanism and of the matrices, each with its section."""
    if record.newton is not None:
        yield "docs/proofs/newton.md (Privacy)"
        if record.newton.ridge > 0.0:
            yield "docs/proofs/newton.md (Pure DP)"
        return
    in_ball, has_moments = record.radius is not None, record.moments != "none"
    if record.loss["name"] == SEVERAL:
        gaussian = record.mechanism == "objective" and record.noise_law == "gaussian"
        yield f"docs/proofs/multinomial.md ({'Gaussian objective perturbation' if gaussian else 'Coefficients'})"
        if has_moments:
            yield "docs/proofs/multinomial.md (Moments)"
        return
    if record.loss["name"] == "hinge":
        yield "docs/proofs/domains.md (The hinge)"
    elif record.variant == "cms11":
        yield "docs/proofs/domains.md (Variant cms11)"
    elif in_ball:
        yield f"docs/proofs/domains.md ({record.mechanism.capitalize()} perturbation over a ball)"
    elif record.mechanism == "objective" and "gaussian" in record.noise_law:
        yield "docs/proofs/mechanisms.md (Gaussian objective perturbation)"
    else:
        yield f"docs/proofs/mechanisms.md ({record.mechanism.capitalize()} perturbation)"
    if has_moments:
        yield f"docs/proofs/{'domains' if in_ball else 'intervals'}.md (Moments)"
    yield from ["docs/proofs/intervals.md (Level totals)"] * (record.moments == "levels")
