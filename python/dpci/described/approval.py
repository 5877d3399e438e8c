"""Approval of a released schema."""

from dpci.accounting.steps import steps_from
from dpci.approval.claims import Claim
from dpci.approval.noise import finding_of_noise
from dpci.approval.of_fit import PROGRAM_PROOF, count_proofs, public_number
from dpci.approval.statement import Statement, steps_text
from dpci.described.record import SchemaRecord
from dpci.released.calibration import differences_of_steps
from dpci.released.sources import PublicValue, count_values, interval_value, table_values
from dpci.shown.document import names

_PROOF = "docs/proofs/bounds.md (The choice)"
_CHOSEN = ("budget", "public ranges", "categories", "columns")


def approval_of_schema(record: SchemaRecord) -> Statement:
    """Return what an approver must know of a release of bounds."""
    digest, add = record.digest, record.neighbors == "add_remove"
    known = [PublicValue("n_public", f"{record.n_samples:,}", "")] if add else []
    ranges = [
        PublicValue(f"range of {name}", "none", "") if extent is None else interval_value(f"range of {name}", *extent)
        for name, extent in record.ranges.items()
    ]
    return Statement(
        record=record,
        claim=Claim(
            kind="a released schema",
            digest=digest,
            kept=digest,
            charged=record.budget,
            neighbors=record.neighbors,
            unit=record.unit,
            paid=record.paid,
        ),
        contents=(
            ("released", "a lower and an upper bound of each column"),
            ("columns", names(record.released)),
        ),
        made_by="the exponential mechanism",
        adds_noise="bounds: each is drawn at random among public points, those near the wanted rank most often",
        noise="exponential mechanism",
        proofs=(_PROOF, *count_proofs(record.persons, None), PROGRAM_PROOF),
        audits=(),
        budget=record.budget,
        own=record.budget,
        whole=None,
        guarantee=record.guarantee() if record.private else None,
        composition=(steps_text(record.steps, record.cost_unit, record.seals),),
        sealed="nothing: the choice is made in whole numbers",
        numbers=(("", record.n_samples),),
        kind_of_numbers="stand_in" if add else "exact",
        public=(*known, *count_values(record.persons, None), *ranges, *table_values(record.table)),
        exact=("the names of the columns", "the categories"),
        chosen=(*(public_number(record.persons) if add else ()), *_CHOSEN),
        conditions=tuple(record.conditions),
        custom_loss=False,
        classes_inferred=False,
        covers=(
            "It covers the bounds of the columns that are listed.",
            "It does not cover a model that uses these bounds. Such a model pays for itself.",
        ),
        target="nothing about a population: a bound lies near a rank of the values",
        intervals=None,
        moved=("values beyond a public range count as its ends",),
        has_page=False,
        findings=(finding_of_noise(record.version, lambda: _other_noise(record)),),
    )


def _other_noise(record: SchemaRecord) -> str | None:
    """Return the first number in which the noise is not that of the public choices, in words."""
    spec = record.spec()
    if record.share != spec.share:
        return f"share={spec.share!r}, got share={record.share!r}"
    return next(differences_of_steps(record.steps, steps_from(spec.steps)), None)
