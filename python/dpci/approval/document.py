"""The document for whoever has to approve a release: its guarantee in plain words, and a checklist to sign."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from dpci.approval.checklist import checklist, counted, decision, nist_points, numbers_words
from dpci.approval.findings import Finding
from dpci.approval.ledger import account_of
from dpci.approval.statement import Statement, verified
from dpci.base.tables import format_bound
from dpci.budgets import GaussianBudget, for_changes
from dpci.inference.remarks import NOTHING
from dpci.ledger.ledger import Ledger
from dpci.released.record import ENCODED_WITHIN, OBEYS_BOUNDS
from dpci.released.sources import PublicValue
from dpci.report.meaning import (
    Meaning,
    best_guess,
    chance,
    implied,
    meaning_of,
    meaning_of_budget,
    odds,
    percent_down,
    percent_up,
    what_it_says,
)
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema
from dpci.shown.document import (
    BANNER,
    Bullets,
    Code,
    Document,
    Facts,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    Words,
    joined,
)

_PRIORS = (0.001, 0.01, 0.1, 0.5)
_GROUPS = (1, 2, 5, 10)
# Probabilities nearer to 0 or to 1 than this say no more to a reader.
_CERTAIN = 1e-4
_NEARLY = 0.999
# Records that a release of this delta might publish in full, above which the reader is asked.
_EXPOSED = 0.1
_NO_SOURCE: Words = (Strong("none stated"), "; written statement of: ___")
_WITHOUT_DATA = "were chosen without the data"
_ALWAYS = (
    (
        "by tests of dpci",
        'noise laws, sensitivities, composition, rounding, ledgers (the page "Approve a release" has the logs)',
    ),
    ("not verified", "the proofs: nobody but their authors has verified them"),
    ("not protected", "time, memory and caches of the machine that made the release"),
)

_GROUP_RULES = {
    "pure": "For m rows, epsilon is multiplied by m.",
    "zcdp": "For m rows, rho is multiplied by m².",
    "gdp": "For m rows, mu is multiplied by m.",
    "approx": "For m rows, epsilon is multiplied by m, and delta by 1 + e^epsilon + … + e^((m - 1) epsilon).",
}
"""The guarantee of a group, by the notion of the budget (docs/approve.md, "Who is protected")."""

_OUTCOMES = {
    "ok": "compared for this report, and it agrees",
    "stated": "the file says so, and nothing else shows it",
    "FAILED": "it differs: refuse",
    "not checked": "what it has to be compared with was not given: repeat with it",
    "not shown": "no file can show it",
    "not covered": "the guarantee does not extend to it",
    "by tests of dpci": "tested on the software at the dates and commits that the logs name, and not on this file",
    "not verified": "true of every release of dpci, and not reviewed by others",
    "not protected": "outside what dpci protects, in every release",
    "not proved": "measured, without a proof",
}


class Names(NamedTuple):
    """Names of files, for whoever reads the document; empty where they are not known."""

    model: str = ""
    schema: str = ""


NO_NAMES = Names()


def approval_document(
    statement: Statement,
    *,
    ledger: "Ledger | str | PathLike[str] | None" = None,
    schema: Schema | PartialSchema | None = None,
    names: Names = NO_NAMES,
) -> Document:
    """Return the document of a release of any kind; see :meth:`Approvable.officer_report`.

    ``names``: those of the files of the release and of the agreed schema.
    """
    found, claim = statement, statement.claim
    checked = verified(found, ledger=ledger, schema=schema)
    account = None if ledger is None else account_of(claim, ledger)
    paid = counted(found, ledger)
    first = Section("first", "Decide first", [Bullets(list(_decide(found, checked)))])
    parts: list[Part] = [*_head(found, _compared(ledger, schema, names)), first]
    if found.private:
        parts += [*_contents(found), _covered(found), _protected(found), _budget(found), _assumptions(found, paid)]
        parts += [] if account is None else [Section("ledger", "The ledger", account.parts)]
    parts.append(_verified(found, checked))
    parts += (
        [nist_points(found, paid), checklist(found, None if account is None else account.items)]
        if found.private
        else decision()
    )
    title = "Report for the approval of a release" if found.private else "A result that must not be released"
    return Document(title=title, parts=parts, banner=BANNER[found.private], version=found.version)


def _compared(
    ledger: "Ledger | str | PathLike[str] | None", schema: Schema | PartialSchema | None, names: Names
) -> Iterator[tuple[str, Words]]:
    """Yield the names of files and the hash of the agreed schema that the release was compared with."""
    if names.model:
        yield "name of the file", Code(names.model)
    if ledger is not None:
        path = ledger.path if isinstance(ledger, Ledger) else str(ledger)
        yield "compared with the ledger", Code(Path(path).name) if path else "in memory"
    if schema is not None:
        digest: Words = ("hash ", Code(schema.digest))
        yield "compared with the agreed schema", ((Code(names.schema), ": ", digest) if names.schema else digest)


def _head(found: Statement, compared: Iterable[tuple[str, Words]]) -> list[Part]:
    paid = found.claim.paid
    about = (
        "This document is made from the released result, and from the ledger and the agreed schema where these were "
        "given. It holds released and public values only. It does not decide whether the release is anonymous in law. "
        'The page "Approve a release" of dpci explains the main terms, and the page "Terms" all technical words.'
    )
    facts: list[tuple[str, Words]] = [
        ("hash of the file", Code(found.claim.digest)),
        *compared,
        ("made by", f"dpci {found.version}"),
        *found.contents,
        *([] if found.target is None else [("estimated", found.target)]),
        (f"{found.unit}s", _numbers(found)),
        ("spent", _spent(found) if found.private else "no privacy: the noise can be subtracted"),
        (
            "paid by, as the file says",
            "no ledger is named" if paid is None else (f"entry {paid['entry']} of ledger ", Code(paid["ledger"])),
        ),
    ]
    return [Paragraph(about), Facts(facts)]


def _numbers(found: Statement) -> Words:
    shown, many = numbers_words(found), len(found.numbers) > 1
    if found.kind_of_numbers == "exact":
        return shown
    what = "counts that were released with noise" if many else "a count that was released with noise"
    if found.kind_of_numbers == "stand_in":
        what = "public numbers" if many else "a public number"
    return "private; ", shown, f" {'are' if many else 'is'} {what}, used in {'their' if many else 'its'} place"


def _spent(found: Statement) -> str:
    if found.whole is None:
        return str(found.budget)
    return f"{found.budget} in total by {found.whole}, {found.own} by this fit"


def _decide(found: Statement, checked: Sequence[Finding]) -> Iterator[Words]:
    """Yield what alone decides, and what only the reader can decide."""
    if not found.private:
        yield (
            Strong("Refuse."),
            " The noise of this model was drawn from a seed. Whoever knows the seed can subtract it.",
        )
        return
    if not found.publishable:
        yield Strong(NOTHING.partition(". ")[0] + "."), " The budget is spent."
    yield from ((Strong("Refuse."), f" A check failed: {what}.") for outcome, what in checked if outcome == "FAILED")
    yield from ((Strong("Return."), f" Not checked: {what}.") for outcome, what in checked if outcome == "not checked")
    yield from ((Strong("Warning."), f" {said}") for said in found.warnings if said != NOTHING)
    if found.classes_inferred:
        yield (
            Strong("Refuse, unless the class labels are public."),
            (
                " They were inferred from the data, and the guarantee does not cover them. A written statement that "
                "they are fixed by the question, such as -1 for no and 1 for yes, and would be the same for any data, "
                "is enough."
            ),
        )
    in_group, in_this = (f" in {which} group" * found.of_groups for which in ("one", "this"))
    if found.kind_of_numbers == "exact":
        number: Words = (f"Refuse if the number of {found.unit}s{in_this} (", numbers_words(found), ") is a secret.")
        yield Strong(number), " It is released exactly."
    if found.persons is None:
        weak = " and the guarantee for that many rows (below) is too weak."
        yield Strong(f"Refuse if one person can have more than one row{in_group}"), f",{weak}"
    yield from _delta(found)
    yield from found.refusals
    if found.custom_loss:
        yield Strong("Refuse unless an expert has checked the declared bounds of the custom loss.")
    if found.table is None:
        yield (
            Strong("Refuse without a description of every column."),
            (
                " The file has no schema. It shows neither what a column stands for nor how a row was scaled. Ask for "
                "a written statement of the meaning of each column, its public bounds and their sources, and that "
                "each row was prepared by itself."
            ),
        )
    if found.claim.paid is None:
        yield (
            Strong("Refuse, unless the analyst states in writing that this is the only release from these records."),
            " No ledger is named, which would list the releases that were paid from it.",
        )
    yield Strong(f"Refuse if any of these was chosen after a look at these data: {found.any_chosen}.")
    together = "the budgets of all releases from these records, this one included, add up to more than was approved"
    yield Strong(f"Refuse if {together}.")


def _delta(found: Statement) -> Iterator[Words]:
    # NIST SP 800-226 asks for a delta well below 1/n: publishing a few whole records can be (0, delta)-DP.
    delta, number = found.budget.parameters().get("delta", 0.0), sum(number for _, number in found.numbers)
    if delta * number > _EXPOSED:
        yield (
            Strong("Refuse, unless such a large delta is intended."),
            (
                f" A mechanism that publishes each {found.unit} in full with probability delta can have this "
                f"guarantee. With delta={delta:g} and {number:,} {found.unit}s it would publish {delta * number:.3g} "
                f"on average. Delta is usually far below 1/n, here {1 / number:.2g}."
            ),
        )


def _contents(found: Statement) -> list[Section]:
    """Return the numbers that are to be approved, if there are any, and what a reader must not overlook."""
    parts = [*map(Paragraph, (*found.warnings, *found.cautions)), *found.shown]
    heading = "The numbers to be approved" if found.shown else "Notes on the results"
    return [Section("released", heading, parts)] if parts else []


def _covered(found: Statement) -> Section:
    return Section("covers", "What the budget covers", [Bullets(found.covers)])


def _protected(found: Statement) -> Section:
    unit = found.unit
    weighted = "" if found.weights is None else ", with its weight"
    in_group = " in any group" * found.of_groups
    only = f"A person is protected like a record only if no person has more than one row{in_group}."
    whose = (
        f"One record, that is one row{weighted}. {only}"
        if found.persons is None
        else f"One person with all of that person's rows. What counts: {found.counted}."
    )
    answers = [
        ("unit of privacy", whose),
        ("what changes between neighbours", _change(found)),
        ("against whom", f"anyone who sees the release, knows all public choices, and knows every other {unit}"),
        ("not against", "the holder of the data, who sees errors and timing, and whoever can read that machine"),
        ("not hidden", "facts about the population, which may reveal something about people outside the data too"),
    ]
    parts: list[Part] = [Table(("question", "answer"), answers, of_words=True)]
    if found.persons is None:
        groups = [(f"{m}", _group(found.budget, m)) for m in _GROUPS]
        parts += [
            Paragraph(f"The guarantee for a person with several rows{' in one group' * found.of_groups}:"),
            Table(("rows of one person", "guarantee"), groups),
            Paragraph(_GROUP_RULES[found.budget.notion]),
        ]
    return Section("protected", "Who is protected", parts)


def _change(found: Statement) -> str:
    unit = found.unit
    changes = "replaced by another" if found.replaces else "added or removed"
    if found.of_strata:
        moves = ", possibly of another stratum" * found.replaces
        together = "" if found.persons is None else " All rows of a person are in one stratum."
        return f"One {unit} is {changes}{moves}. The number of {unit}s in each stratum is private.{together}"
    one = "In every group, at most one" if found.of_groups else "One"
    each = " of each group" * found.of_groups
    rows = "" if found.persons is None else " How many rows a person has is private."
    number = "public" if found.replaces else "private"
    return f"{one} {unit} is {changes}. The number of {unit}s{each} is {number}.{rows}"


def _group(budget: GaussianBudget, count: int) -> str:
    """Return the guarantee for records that change together, rounded up."""
    found = for_changes(budget, count)
    if found is None:
        return "none that this budget implies"
    numbers = found.parameters().items()
    shown = ", ".join(f"{name}={format_bound(value, 3 if name == 'delta' else 4)}" for name, value in numbers)
    return f"{shown} {str(found)[str(found).index('(') :]}"


def _budget(found: Statement) -> Section:
    guarantee, unit, neighbors = found.guarantee, found.unit, found.claim.neighbors
    meaning = meaning_of_budget(found.budget) if guarantee is None else meaning_of(guarantee)
    delta = found.budget.parameters().get("delta", 0.0)
    in_words = f" Delta is {chance(delta)}." if delta else ""
    bounds = f"The release spends {found.budget}.{in_words} This budget bounds what anyone can learn about one {unit}:"
    pair = implied(found.budget, meaning)
    learns: list[Words] = [
        (Strong("Best guess."), f" {best_guess(neighbors, unit, meaning)}"),
        *([] if pair is None else [(Strong("In ε and δ."), f" The budget implies {pair}.")]),
        (Strong("Odds."), f" {odds(neighbors, unit, meaning)}"),
    ]
    if (further := what_it_says(neighbors, unit, found.budget)) is not None:
        learns.append((Strong("Contents."), f" {further}"))
    is_so = f"a statement about that {unit} is" if found.replaces else f"it is that this {unit} is in the data,"
    probabilities = (
        f"As probabilities, for somebody who knows every other {unit}: how likely {is_so} before the release and after "
        "it."
    )
    parts = [Paragraph(bounds), Bullets(learns), Paragraph(probabilities), *_before_and_after(meaning)]
    of_two = None if found.replaces else for_changes(found.budget, 2)
    if of_two is not None:
        knows = f"For somebody who also knows that the {unit} is in the data: how likely a statement about it is."
        parts += [Paragraph(knows), *_before_and_after(meaning_of_budget(of_two))]
    return Section("budget", "What the budget means", parts)


def _before_and_after(meaning: Meaning) -> Iterator[Part]:
    """Yield probabilities before the release and after it, and with what probability these do not hold."""
    ranges = ((prior, *meaning.posterior(prior)) for prior in _PRIORS)
    rows = [(f"{100 * prior:g}%", _lowest(low), _highest(high)) for prior, low, high in ranges]
    yield Table(("before", "lowest after", "highest after"), rows)
    if meaning.rare:
        most = "5%" if meaning.usual is not None else chance(meaning.rare)
        yield Paragraph(
            f"A single release may exceed this table, with probability at most {most}. The best guess is an average "
            "over all possible releases."
        )


def _lowest(probability: float) -> str:
    return "below 0.01%" if probability < _CERTAIN else percent_down(probability)


def _highest(probability: float) -> str:
    if 1.0 - probability < _CERTAIN:
        return "above 99.99%"
    return f"{format_bound(100.0 * probability, 4)}%" if probability > _NEARLY else percent_up(probability)


def _assumptions(found: Statement, paid: Words) -> Section:
    prepared = "cannot be shown: the release is of encoded rows, and the file holds no schema"
    if found.reads is not None:
        prepared = f"{found.reads}; what was done before is not shown"
    elif found.table is not None:
        prepared = "the schema in the file encodes each record by itself; what was done before is not shown"
    absent: Words = ("assumed absent: ", joined(found.absent, "; "))
    if found.clips or found.table is not None:
        ruled = (
            "are moved or replaced by public rules"
            if found.table is not None
            else "beyond the bounds are moved or weigh less"
        )
        absent = (absent, f'. Nothing is assumed about other values, which {ruled} (below, "bounds and clipping")')
    further = (
        fact
        for fact in found.conditions
        if not fact.endswith(_WITHOUT_DATA) and not fact.startswith((OBEYS_BOUNDS, ENCODED_WITHIN))
    )
    rows: list[tuple[str, Words]] = [
        (
            f"{found.all_chosen} were chosen without the data",
            "cannot be shown by a file: ask for the source of each (below)",
        ),
        (
            "the run succeeds on any table: if a missing value would stop it, its success tells that there is none",
            absent,
        ),
        ("rows were prepared one by one, with nothing learnt from the table", prepared),
        ("all releases from these records are counted against one total", paid),
        (
            "attackers do not see errors, timing, memory or logs of the run",
            "cannot be shown by a file: ask the operator for a written statement",
        ),
        *((f"{fact[0].upper()}{fact[1:]}", "assumed") for fact in further),
    ]
    shows = (
        "The guarantee is a theorem under these assumptions. The file shows what is in the second column and no more."
    )
    released = "" if found.found is None else ", except those that the release found"
    values = [(Code(value.name), Code(value.value), _source(value, found.table)) for value in found.public]
    parts = [
        Paragraph(shows),
        Table(("assumption", "what the file shows"), rows, of_words=True),
        Paragraph(f"The public values of this release. Each needs a source{released}:"),
        Table(("value", "in this release", "source"), values, of_words=True),
    ]
    return Section("conditions", "Assumptions", parts)


def _source(value: PublicValue, schema: Schema | None) -> Words:
    """Return why a value is public, or what has to be asked for."""
    if value.source:
        return value.source
    of_table = value.name == "classes" or value.name.startswith(("column ", "target ", "range of "))
    if of_table and schema is not None and schema.source:
        return f"the whole schema: {' '.join(schema.source.split())}"
    return _NO_SOURCE


def _verified(found: Statement, checked: Sequence[Finding]) -> Section:
    covered = "the coverage of the intervals: it rests on a large-sample approximation, and was measured by simulation"
    intervals = [] if found.intervals is None else [("not proved", covered)]
    rows = [*checked, *_ALWAYS, *intervals]
    seen = {outcome for outcome, _ in rows}
    meanings: list[Words] = [
        (Strong(outcome), f": {meaning}.") for outcome, meaning in _OUTCOMES.items() if outcome in seen
    ]
    compares = " compares the file with the agreed schema and the ledger."
    parts = [
        Bullets(meanings),
        Table(("outcome", "what"), rows, of_words=True),
        Paragraph((Code("dpci verify MODEL --schema SCHEMA --ledger LEDGER"), compares)),
    ]
    return Section("verified", "Verified and not verified", parts)
