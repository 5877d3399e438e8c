"""A Markdown document for whoever has to approve a release: its guarantee in plain words, and a checklist to sign."""

from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path

from dpci.approval.checklist import checklist, counted, decision, nist_points, numbers_text
from dpci.approval.facts import Approval, verified
from dpci.approval.findings import Finding
from dpci.approval.ledger import account_of
from dpci.approval.markdown import code, plain, table
from dpci.base.tables import format_bound
from dpci.budgets import GaussianBudget, for_changes
from dpci.ledger.ledger import Ledger
from dpci.released.facts import CHOSEN_WITHOUT_DATA, OBEYS_BOUNDS
from dpci.released.sources import PublicValue
from dpci.report.attacker import best_guess, chance, implied, odds, percent_down, percent_up, what_it_says
from dpci.report.meaning import Meaning, meaning_of, meaning_of_budget
from dpci.schema.table import Schema

_PRIORS = (0.001, 0.01, 0.1, 0.5)
_GROUPS = (1, 2, 5, 10)
# Records that a release of this delta might publish in full, above which the reader is asked.
_EXPOSED = 0.1
_NO_SOURCE = "**none stated**; written statement of: ___"
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
    "not checked": "no file can show it, or what it has to be compared with was not given",
    "not covered": "the guarantee does not extend to it",
    "by tests of dpci": "tested on the software at the dates and commits that the logs name, and not on this file",
    "not verified": "true of every release of dpci, and not reviewed by others",
    "not protected": "outside what dpci protects, in every release",
    "not proved": "measured, without a proof",
}


def officer_report(
    approval: Approval,
    *,
    ledger: "Ledger | str | PathLike[str] | None" = None,
    schema: Schema | None = None,
    path: "str | PathLike[str] | None" = None,
) -> str:
    """Return the document, and write it; see :meth:`Approvable.officer_report`."""
    checked = verified(approval, ledger=ledger, schema=schema)
    account = None if ledger is None else account_of(approval.claim, ledger)
    paid = counted(approval, ledger)
    missing = [
        *(["no ledger"] if approval.claim.paid is not None and ledger is None else []),
        *(["no agreed schema"] if approval.table is not None and schema is None else []),
    ]
    parts = [_head(approval), _decide(approval, checked, " and ".join(missing))]
    if approval.private:
        parts += [_covered(approval), _protected(approval), _budget(approval), _assumptions(approval, paid)]
    parts.append(_verified(approval, checked))
    parts += [nist_points(approval, paid), checklist(approval, account)] if approval.private else [decision()]
    document = "\n\n".join("\n".join(part) for part in parts) + "\n"
    if path is not None:
        Path(path).write_text(document, encoding="utf-8")
    return document


def _head(approval: Approval) -> Iterator[str]:
    claim = approval.claim
    yield "# Report for the approval of a release" if approval.private else "# A result that must not be released"
    yield ""
    if not approval.private:
        yield "**NOT PRIVATE (seeded).**"
        yield ""
    yield (
        "This document is made from the released result, and from the ledger and the agreed schema where these were "
        "given. It holds released and public values only. It does not decide whether the release is anonymous in law. "
        'The page "Approve a release" of dpci explains the main terms, and the page "Terms" all technical words.'
    )
    yield ""
    paid = "no ledger is named"
    if claim.paid is not None:
        paid = f"entry {claim.paid['entry']} of ledger {code(str(claim.paid['ledger']))}"
    yield from table(
        ("what", "value"),
        [
            ("file", code(claim.digest)),
            ("made by", f"dpci {plain(approval.version)}"),
            *approval.contents,
            ("estimated", plain(approval.target)),
            (f"{approval.unit}s", _numbers(approval)),
            ("spent", _spent(approval) if approval.private else "nothing: the noise came from a seed"),
            ("paid by, as the file says", paid),
        ],
    )


def _numbers(approval: Approval) -> str:
    shown, many = numbers_text(approval), len(approval.numbers) > 1
    if approval.kind_of_numbers == "exact":
        return shown
    what = "counts that were released with noise" if many else "a count that was released with noise"
    if approval.kind_of_numbers == "stand_in":
        what = "public numbers" if many else "a public number"
    return f"private; {shown} {'are' if many else 'is'} {what}, used in {'their' if many else 'its'} place"


def _spent(approval: Approval) -> str:
    if approval.whole is None:
        return str(approval.budget)
    return f"{approval.budget} in total by {approval.whole}, {approval.own} by this fit"


def _decide(approval: Approval, checked: Sequence[Finding], missing: str) -> Iterator[str]:
    """Say what alone decides, and what only the reader can decide; ``missing`` was not given to compare with."""
    yield "## Decide first"
    yield ""
    if not approval.private:
        yield "- **Refuse.** The noise of this model was drawn from a seed. Whoever knows the seed can subtract it."
        return
    yield from (f"- **Refuse.** A check failed: {plain(what)}." for outcome, what in checked if outcome == "FAILED")
    if missing:
        verb = "were" if " and " in missing else "was"
        yield f"- **Return: {missing} {verb} given for this report.** Make it again with them."
    if approval.classes_inferred:
        yield (
            "- **Refuse, unless the class labels are public.** They were inferred from the data, and the "
            "guarantee does not cover them. A written statement that they are fixed by the question, such as -1 for no "
            "and 1 for yes, and would be the same for any data, is enough."
        )
    in_group, in_this = (f" in {which} group" * approval.of_groups for which in ("one", "this"))
    if approval.kind_of_numbers == "exact":
        number = f"the number of {approval.unit}s{in_this} ({numbers_text(approval)})"
        yield f"- **Refuse if {number} is a secret.** It is released exactly."
    if approval.persons is None:
        weak = "and the guarantee for that many rows (below) is too weak."
        yield f"- **Refuse if one person can have more than one row{in_group}**, {weak}"
    yield from _delta(approval)
    yield from approval.refusals
    if approval.custom_loss:
        yield "- **Refuse unless an expert has checked the declared bounds of the custom loss.**"
    if approval.table is None:
        yield (
            "- **Refuse without a description of every column.** The file has no schema. It shows neither what a "
            "column stands for nor how a row was scaled. Ask for a written statement of the meaning of each column, "
            "its public bounds and their sources, and that each row was prepared by itself."
        )
    if approval.claim.paid is None:
        yield (
            "- **Refuse, unless the analyst states in writing that this is the only release from these records.** "
            "No ledger is named, which would list the releases that were paid from it."
        )
    yield f"- **Refuse if any of these was chosen after a look at these data: {approval.any_chosen}.**"
    together = "the budgets of all releases from these records, this one included, add up to more than was approved"
    yield f"- **Refuse if {together}.**"


def _delta(approval: Approval) -> Iterator[str]:
    # NIST SP 800-226 asks for a delta well below 1/n: publishing a few whole records can be (0, delta)-DP.
    delta, number = approval.budget.parameters().get("delta", 0.0), sum(number for _, number in approval.numbers)
    if delta * number > _EXPOSED:
        yield (
            "- **Refuse, unless such a large delta is intended.** A mechanism that publishes each "
            f"{approval.unit} in full with probability delta can have this guarantee. With delta={delta:g} and "
            f"{number:,} {approval.unit}s it would publish {delta * number:.3g} on average. Delta is usually far "
            f"below 1/n, here {1 / number:.2g}."
        )


def _covered(approval: Approval) -> Iterator[str]:
    yield "## What the budget covers"
    yield ""
    yield from (f"- {plain(sentence)}" for sentence in approval.covers)


def _protected(approval: Approval) -> Iterator[str]:
    unit = approval.unit
    weighted = "" if approval.weights is None else ", with its weight"
    in_group = " in any group" * approval.of_groups
    only = f"A person is protected like a record only if no person has more than one row{in_group}."
    whose = (
        f"One record, that is one row{weighted}. {only}"
        if approval.persons is None
        else f"One person with all of that person's rows. What counts: {approval.persons}."
    )
    yield "## Who is protected"
    yield ""
    yield from table(
        ("question", "answer"),
        [
            ("unit of privacy", whose),
            ("what changes between neighbours", _change(approval)),
            ("against whom", f"anyone who sees the release, knows all public choices, and knows every other {unit}"),
            ("not against", "the holder of the data, who sees errors and timing, and whoever can read that machine"),
            (
                "not hidden",
                "facts about the population, which may reveal something about people outside the data too",
            ),
        ],
    )
    if approval.persons is None:
        yield ""
        yield f"The guarantee for a person with several rows{' in one group' * approval.of_groups}:"
        yield ""
        yield from table(("rows of one person", "guarantee"), [(f"{m}", _group(approval.budget, m)) for m in _GROUPS])
        yield ""
        yield _GROUP_RULES[approval.budget.notion]


def _change(approval: Approval) -> str:
    unit = approval.unit
    changes = "replaced by another" if approval.replaces else "added or removed"
    if approval.of_strata:
        moves = ", possibly of another stratum" * approval.replaces
        together = "" if approval.persons is None else " All rows of a person are in one stratum."
        return f"One {unit} is {changes}{moves}. The number of {unit}s in each stratum is private.{together}"
    one = "In every group, at most one" if approval.of_groups else "One"
    each = " of each group" * approval.of_groups
    rows = "" if approval.persons is None else " How many rows a person has is private."
    number = "public" if approval.replaces else "private"
    return f"{one} {unit} is {changes}. The number of {unit}s{each} is {number}.{rows}"


def _group(budget: GaussianBudget, count: int) -> str:
    """Return the guarantee for records that change together, rounded up."""
    found = for_changes(budget, count)
    if found is None:
        return "none that this budget implies"
    numbers = found.parameters().items()
    shown = ", ".join(f"{name}={format_bound(value, 3 if name == 'delta' else 4)}" for name, value in numbers)
    return f"{shown} {str(found)[str(found).index('(') :]}"


def _budget(approval: Approval) -> Iterator[str]:
    guarantee, unit, neighbors = approval.guarantee, approval.unit, approval.neighbors
    meaning = meaning_of_budget(approval.budget) if guarantee is None else meaning_of(guarantee)
    yield "## What the budget means"
    yield ""
    delta = approval.budget.parameters().get("delta", 0.0)
    in_words = f" Delta is {chance(delta)}." if delta else ""
    if (pair := implied(approval.budget)) is not None:
        in_words = f" It implies {pair}."
    yield f"The release spends {approval.budget}.{in_words} This budget bounds what anyone can learn about one {unit}:"
    yield ""
    yield f"- **Best guess.** {best_guess(neighbors, unit, meaning)}"
    yield f"- **Odds.** {odds(neighbors, unit, meaning)}"
    if (further := what_it_says(neighbors, unit, approval.budget)) is not None:
        yield f"- **Contents.** {further}"
    statement = f"a statement about that {unit} is" if approval.replaces else f"it is that this {unit} is in the data,"
    yield ""
    yield (
        f"As probabilities, for somebody who knows every other {unit}: how likely {statement} before the release and "
        "after it."
    )
    yield from _before_and_after(meaning)
    of_two = None if approval.replaces else for_changes(approval.budget, 2)
    if of_two is not None:
        yield ""
        yield f"For somebody who also knows that the {unit} is in the data: how likely a statement about it is."
        yield from _before_and_after(meaning_of_budget(of_two))


def _before_and_after(meaning: Meaning) -> Iterator[str]:
    """Yield probabilities before the release and after it, and with what probability these do not hold."""
    yield ""
    ranges = ((prior, *meaning.posterior(prior)) for prior in _PRIORS)
    rows = [(f"{100 * prior:g}%", percent_down(low), percent_up(high)) for prior, low, high in ranges]
    yield from table(("before", "after: at least", "after: at most"), rows)
    if meaning.rare:
        yield ""
        yield (
            f"A single release may exceed this table, with probability at most {chance(meaning.rare)}. The best guess "
            "is an average over all possible releases; the table bounds every single one but for this exception."
        )


def _assumptions(approval: Approval, paid: str) -> Iterator[str]:
    yield "## Assumptions"
    yield ""
    yield "The guarantee is a theorem under these assumptions. The file shows what is in the second column and no more."
    yield ""
    prepared = "cannot be shown: the release is of encoded rows, and the file holds no schema"
    if approval.table is not None:
        prepared = "the schema in the file encodes each record by itself; what was done before is not shown"
    absent = f"assumed absent: {'; '.join(approval.absent)}"
    if approval.clips or approval.table is not None:
        ruled = "are moved or replaced by public rules" if approval.table is not None else "beyond the bounds are moved"
        absent += f'. Nothing is assumed about other values, which {ruled} (below, "bounds and clipping")'
    further = (fact for fact in approval.conditions if fact != CHOSEN_WITHOUT_DATA and OBEYS_BOUNDS not in fact)
    rows = [
        (
            f"{approval.all_chosen} were chosen without the data",
            "cannot be shown by a file: ask for the source of each (below)",
        ),
        ("no possible table would have made the run fail; otherwise its success reveals something", absent),
        ("rows were prepared one by one, with nothing learnt from the table", prepared),
        ("all releases from these records are counted against one total", paid),
        (
            "attackers do not see errors, timing, memory or logs of the run",
            "cannot be shown by a file: ask the operator for a written statement",
        ),
        *((plain(f"{fact[0].upper()}{fact[1:]}"), "assumed") for fact in further),
    ]
    yield from table(("assumption", "what the file shows"), rows)
    yield ""
    yield "The public values of this release, each of which needs a source:"
    yield ""
    values = [(code(value.name), code(value.value), _source(value, approval.table)) for value in approval.public]
    yield from table(("value", "in this release", "source"), values)


def _source(value: PublicValue, schema: Schema | None) -> str:
    """Return why a value is public, or what has to be asked for."""
    if value.source:
        return plain(value.source)
    of_table = value.name == "classes" or value.name.startswith(("column ", "target "))
    if of_table and schema is not None and schema.source:
        return f"the whole schema: {plain(' '.join(schema.source.split()))}"
    return _NO_SOURCE


def _verified(approval: Approval, checked: Sequence[Finding]) -> Iterator[str]:
    yield "## Verified and not verified"
    yield ""
    covered = "the coverage of the intervals: it rests on a large-sample approximation, and was measured by simulation"
    intervals = [] if approval.intervals is None else [("not proved", covered)]
    rows = [*((outcome, plain(what)) for outcome, what in checked), *_ALWAYS, *intervals]
    yield from (f"- *{outcome}*: {meaning}." for outcome, meaning in _OUTCOMES.items() if outcome in dict(rows))
    yield ""
    yield from table(("outcome", "what"), rows)
    yield ""
    yield "`dpci verify MODEL --schema SCHEMA --ledger LEDGER` compares the file with the agreed schema and the ledger."
