"""``Statement``: all that an approval needs of a release; each kind gives it, and one function makes the document."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias, cast

from dpci.accounting.costs import Seal, Step, seal_cost, step_names
from dpci.accounting.guarantee import Guarantee
from dpci.approval.findings import Claim, Finding
from dpci.approval.ledger import against_ledger
from dpci.approval.schema import Strata, against_schema
from dpci.budgets import Budget, GaussianBudget
from dpci.inference.remarks import NOTHING
from dpci.ledger.ledger import Ledger
from dpci.released.choices import given_weights
from dpci.released.record import Record
from dpci.released.sources import PublicValue, exceptions, failures
from dpci.released.whole import Whole
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.shown.document import Part, Words, joined, names
from dpci.unit import Persons, Weights

RIDGE = "regularisation (λ)"
"""Cause of a shift in the estimates of most models."""
Numbers: TypeAlias = Literal["exact", "stand_in", "released"]
"""Kind of a number of records in a result: the true one, a public one in its place, or a count with noise."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """Facts of a kind of release for whoever approves it, besides its record."""

    record: Record
    claim: Claim
    contents: tuple[tuple[str, Words], ...]
    """Names and values of what was released."""
    made_by: str
    """By which mechanism, in words."""
    adds_noise: str
    """Where the noise is added."""
    noise: str
    """The laws of the noise, in words."""
    proofs: tuple[str, ...]
    """Pages with the proofs, each with its section in brackets."""
    audits: tuple[str, ...]
    """Pages of the evidence with the audits of what the release consists of."""
    budget: GaussianBudget
    """Budget to be approved: for a part the charge of the whole release."""
    own: GaussianBudget
    """Budget that this file spends: the same but for a part."""
    whole: Whole | None
    """The release that the file is a part of."""
    guarantee: Guarantee | None
    """The guarantee of everything that was paid for; None where no more is known of it than its budget."""
    composition: tuple[str, ...]
    """Uses of the budget, and how they add up."""
    sealed: str | None
    """The released vectors, matrices and counts, in words; None for a choice in whole numbers, which needs no seal."""
    numbers: tuple[tuple[str, int], ...]
    """Numbers of records, with the names of the strata; a name is empty where there are none."""
    kind_of_numbers: Numbers
    public: tuple[PublicValue, ...]
    exact: tuple[str, ...]
    """Values that are published exactly besides the number of records."""
    chosen: tuple[str, ...]
    """Choices that must not depend on the data."""
    conditions: tuple[str, ...]
    covers: tuple[Words, ...]
    """Sentences on what the one budget covers."""
    custom_loss: bool = False
    classes_inferred: bool = False
    target: str | None = None
    """Target of the estimates; None where there are none."""
    intervals: str | None = None
    """How many parameters have an interval, and what the intervals count; None where there are none."""
    warnings: tuple[str, ...] = ()
    """Warnings of the fit, as notes for readers of its numbers."""
    cautions: tuple[str, ...] = ()
    """Sentences that a reader of the numbers must not overlook, such as why parameters have no estimate."""
    shown: tuple[Part, ...] = ()
    """The released numbers, as the summary shows them."""
    moved: tuple[str, ...] = ()
    """Causes of shifts in the estimates, besides noise."""
    found: "Words | None" = None
    """Public values that the release itself found, in words; None where all were public before."""
    reads: str | None = None
    """Parts of the table that are read, where no schema encodes its rows; None for a model."""
    beyond_bounds: "Words | None" = None
    """Treatment of values beyond public bounds; None: by the rules of the schema, or by clipping."""
    fails_at: tuple[Words, ...] | None = None
    """Values at which the release fails; None: those that the rules of the schema do not replace."""
    strata: Strata | None = None
    """The strata that the release, or the whole, is of."""
    from_data: tuple[str, ...] = ()
    """Choices made with the help of the data, and whether the budget covers it."""
    refusals: tuple[Words, ...] = ()
    """Further items of the list "Decide first"."""
    findings: tuple[Finding, ...] = ()
    """Further things that the file was held against."""
    unchecked: tuple[str, ...] = ()
    """Further things that no file can show."""
    has_page: bool = True
    """Whether there is a page for readers."""

    @classmethod
    def of(cls, record: Record, *, kind: str, **facts: Any) -> "Statement":  # noqa: ANN401  # fields of this class
        """Return the statement of a release by itself; ``facts`` are the fields that its record does not say."""
        digest, budget = record.digest, record.budget
        claim = Claim(
            kind=kind,
            digest=digest,
            kept=digest,
            charged=cast("Budget", budget),
            neighbors=str(record.neighbors),
            unit=record.unit,
            paid=record.paid,
        )
        said: dict[str, Any] = {
            "claim": claim,
            "budget": budget,
            "own": budget,
            "whole": None,
            "composition": (steps_text(record.steps, str(record.cost_unit), record.seals),),
            "numbers": (("", record.n_samples),),
            "kind_of_numbers": "exact" if record.neighbors == "replace_one" else "stand_in",
            "conditions": tuple(record.conditions),
        }
        if "guarantee" not in facts:
            said["guarantee"] = record.guarantee() if record.private else None
        return cls(record=record, **{**said, **facts})

    @property
    def publishable(self) -> bool:
        """Whether anything was estimated that can be published."""
        return NOTHING not in self.warnings

    @property
    def version(self) -> str:
        """The version of dpci that made the release."""
        return self.record.version

    @property
    def private(self) -> bool:
        """Whether noise from the operating system protects the data."""
        return self.record.private

    @property
    def persons(self) -> Persons | None:
        """How much the rows of a person count; None where records are protected."""
        return self.record.persons

    @property
    def counted(self) -> str:
        """Rows of a person that count, and by how much, in words."""
        if self.persons is None:
            return "each row"
        return self.persons.kept if self.target is None else str(self.persons)

    @property
    def weights(self) -> Weights | None:
        """The public facts of weights; None without them."""
        return self.record.weights

    @property
    def clips(self) -> bool:
        """Whether what is beyond the bounds is moved to them, or weighs less."""
        return self.record.on_violation in {"clip", "weight"}

    @property
    def table(self) -> Schema | None:
        """The public schema; None if the caller passed encoded rows."""
        return self.record.table

    @property
    def unit(self) -> str:
        """The unit of privacy."""
        return "record" if self.persons is None else "person"

    @property
    def replaces(self) -> bool:
        """Whether neighbours differ by a record that is replaced."""
        return self.claim.neighbors == "replace_one"

    @property
    def beyond(self) -> Words:
        """Treatment of rows and values beyond the public bounds."""
        if self.beyond_bounds is not None:
            return self.beyond_bounds
        rule: Words = "the release fails if a record is beyond the bounds or a value is missing"
        if self.table is not None:
            rules = joined(((names(columns), f": {each}") for columns, each in exceptions(self.table)), ". ")
            rule = ("the schema has a rule for each column. ", rules)
        elif self.clips:
            kept = "is moved to them" if self.record.on_violation == "clip" else "is kept, and the record weighs less"
            rule = f"what is beyond the bounds {kept}; the release fails if a value is missing"
        if given_weights(self.weights, self.table) is None:
            return rule
        return rule, f"; a weight beyond its bound {'is lowered to it' if self.clips else 'makes the release fail'}"

    @property
    def absent(self) -> tuple[Words, ...]:
        """Contents of the data at which the release fails."""
        if self.fails_at is not None:
            return self.fails_at
        found: list[Words]
        if self.table is None:
            found = [*([] if self.clips else ["records beyond the bounds"]), "missing values"]
        else:
            found = [(f"{what} ", names(columns)) for what, columns in failures(self.table).items()]
        if given_weights(self.weights, self.table) is not None and not self.clips:
            found.append("weights beyond their bound")
        if self.of_strata:
            found.append("records of no stratum of the list")
            found += [] if self.persons is None else ["persons with rows in several strata"]
        return tuple(found)

    @property
    def all_chosen(self) -> str:
        """Choices that must not depend on the data, in words."""
        return ", ".join(self.chosen[:-1]) + f" and {self.chosen[-1]}"

    @property
    def any_chosen(self) -> str:
        """Choices that must not depend on the data, as alternatives."""
        return ", ".join(self.chosen[:-1]) + f" or {self.chosen[-1]}"

    @property
    def of_strata(self) -> bool:
        """Whether a record may move between strata."""
        return self.strata is not None

    @property
    def of_groups(self) -> bool:
        """Whether the release is of groups, of each of which a record may change at once."""
        return self.whole is not None and self.whole.kind == "groups"


_INFERRED = "the class labels: they were inferred from the data, so the guarantee holds only if the labels are public"


def steps_text(steps: Sequence[Step], unit: str, seals: Sequence[Seal]) -> str:
    """Return what the steps of a release and its seals cost; ``unit`` is what the costs of steps are counted in."""
    named = zip(step_names(steps), steps, strict=True)
    shown = (f"{name} {unit.replace('_', ' ')} {step.cost:.4g}" for name, step in named)
    sealed = " ".join(f"{name} {cost:.4g}" for name, cost in seal_cost(tuple(seals), steps).items())
    return "; ".join([*shown, *([f"rounding seal {sealed}"] if seals else [])])


def verified(
    statement: Statement, *, ledger: "Ledger | str | PathLike[str] | None", schema: Schema | PartialSchema | None
) -> list[Finding]:
    """Return what agrees, what does not and what cannot be checked of a result whose checksum holds."""
    claim = statement.claim
    spent = (
        str(statement.own)
        if statement.whole is None
        else f"{statement.own}, of {statement.budget} by {statement.whole}"
    )
    seeded = (
        Finding("stated", "the noise came from the operating system: the file says so")
        if statement.private
        else Finding("FAILED", "its noise came from a seed: NOT PRIVATE")
    )
    units = "each person is one row" if statement.persons is None else "each id is one person"
    forged = "a hash is not a signature (sign the file, or keep its hash elsewhere)"
    never = (
        "that the noise was drawn as the model says: no file can show it",
        "that no seed was given: a seeded file looks the same once its field 'private' and its hash are changed",
        "that nothing else was released from these records: a file shows its own budget alone",
        "that the numbers, bounds and settings in the file are those of the run: only its holder can repeat it",
        f"that {statement.all_chosen} were chosen without the data, and that {units}",
        f"that nobody replaced the file and its hash: {forged}",
        *statement.unchecked,
    )
    return [
        Finding("ok", f"the contents have the hash {claim.digest}; a file that states a different one is refused"),
        Finding("ok", f"type, mechanism and budget are consistent: {claim.kind}, {statement.made_by}, {spent}"),
        seeded,
        *against_schema(statement.table, schema, statement.strata),
        *statement.findings,
        *against_ledger(claim, ledger),
        *([Finding("not covered", _INFERRED)] if statement.classes_inferred else []),
        *(Finding("not shown", what) for what in never),
    ]
