"""A Markdown document for whoever has to approve a release: its guarantee in plain words, and a checklist to sign."""

import math
from collections.abc import Iterator, Sequence

from dpci.base.tables import format_bound
from dpci.budgets import GDP, ZCDP, GaussianBudget, PureDP
from dpci.inference.methods import Inference
from dpci.losses import describe
from dpci.released.facts import conditions
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.released.sources import public_values
from dpci.report.checklist import charged, checklist, counted, nist_points, relation, unit_of
from dpci.report.markdown import code, plain, table
from dpci.report.meaning import Meaning, meaning_of, meaning_of_budget

_PRIORS = (0.001, 0.01, 0.1, 0.5)
_GROUPS = (2, 5, 10)
# Odds beyond this say no more to a reader.
_GREAT = 17.0


def officer_report(result: Inference, findings: Sequence[tuple[str, str]] = ()) -> str:
    """Return the document; see :meth:`dpci.PrivateFit.officer_report`.

    ``findings`` are outcomes of further checks of the file, each with what was checked.
    """
    parts = [
        _head(result),
        _refusals(result),
        _protected(result),
        *([_budget(result)] if result.private else []),
        _assumptions(result),
        _verified(result, findings),
        nist_points(result),
        checklist(result),
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def _head(result: Inference) -> Iterator[str]:
    record = record_of(result)
    yield "# Approval of a private release"
    yield ""
    if not result.private:
        yield "**NOT PRIVATE (seeded).**"
        yield ""
    yield (
        "This document is made from the saved model alone and holds nothing that the model does not hold. The page "
        "docs/approve.md of dpci explains every term."
    )
    yield ""
    paid = "no ledger is named" if record.paid is None else f"entry {record.paid['entry']} of ledger "
    ledger = paid if record.paid is None else paid + code(str(record.paid["ledger"]))
    yield from table(
        ("what", "value"),
        [
            ("file", code(record.digest)),
            ("made by", f"dpci {plain(record.version)}"),
            ("model", f"{describe(record.loss)} loss, {record.mechanism} perturbation, {len(record.names)} parameters"),
            ("parameters", ", ".join(code(name) for name in record.names)),
            ("records", _records(record)),
            ("spent", _spent(result) if result.private else "nothing: the noise came from a seed"),
            ("paid by", ledger),
        ],
    )


def _spent(result: Inference) -> str:
    whole = record_of(result).whole
    return str(result.spent) if whole is None else f"{whole.budget} in total by {whole}, {result.spent} by this fit"


def _refusals(result: Inference) -> Iterator[str]:
    """Say what alone decides, and what only the reader can decide."""
    record = record_of(result)
    yield "## Decide first"
    yield ""
    if not record.private:
        yield "- **Refuse.** The noise of this model was drawn from a seed. Whoever knows the seed can subtract it."
        return
    if record.classes_inferred:
        yield (
            "- **Refuse, unless the two class labels are public.** They were inferred from the data, and the "
            "guarantee does not cover them. A written statement is enough that they are fixed by the question, such "
            "as -1 for no and 1 for yes, and would be the same for any data."
        )
    if record.neighbors == "replace_one":
        number = f"the number of {unit_of(record)}s ({record.n_samples:,})"
        yield f"- **Refuse if {number} is a secret.** It is released exactly."
    if record.persons is None:
        yield "- **Refuse if one person can have many rows**, and the guarantee for that many rows (below) is too weak."
    if record.whole is not None:
        yield (
            "- **Approve the whole release, not this file alone.** This fit is one part of it. The whole "
            f"({record.whole}) spends {record.whole.budget}, which is the number that counts here and below."
        )
    if record.loss["name"] == "custom":
        yield "- **Refuse unless an expert has checked the declared bounds of the custom loss.**"
    if record.table is None:
        yield (
            "- **Refuse without a description of every column.** The file has no schema. It shows neither what a "
            "parameter stands for nor how a row was scaled. Ask for a written statement of the meaning of each column, "
            "its public bounds and their sources, and that each row was prepared by itself."
        )
    if record.paid is None:
        yield "- **Ask what else was released from these records.** No ledger is named, so dpci did not count it."
    yield "- **Refuse if a bound, a category, a column or λ was chosen after a look at these data.**"
    yield "- **Refuse if all releases from these records together, this one included, spend more than was approved.**"


def _protected(result: Inference) -> Iterator[str]:
    record = record_of(result)
    unit = unit_of(record)
    if record.whole is not None and record.whole.of_strata:
        change = (
            f"One {unit} is {'added or removed' if relation(record) == 'add_remove' else 'replaced by another one'}"
            f"{', possibly of another stratum' * (relation(record) == 'replace_one')}. The number of {unit}s in each "
            "stratum is private."
        )
    elif record.neighbors == "replace_one":
        change = f"One {unit} is replaced by another one. The number of {unit}s is public."
    else:
        change = f"One {unit} is added or removed. The number of {unit}s is private."
    whose = (
        "One record, that is one row. A person is protected like a record only if no person has more than one row."
        if record.persons is None
        else f"One person with all of that person's rows. What counts: {record.persons}."
    )
    yield "## Who is protected"
    yield ""
    yield from table(
        ("question", "answer"),
        [
            ("unit of privacy", whose),
            ("what changes between neighbours", change),
            ("against whom", f"anyone who sees the release, knows all public choices, and knows every other {unit}"),
            ("not against", "the holder of the data, who sees errors and timing, and whoever can read that machine"),
            (
                "not hidden",
                "facts about the population, which may reveal something about people outside of the data too",
            ),
        ],
    )
    if record.persons is None and record.private:
        yield ""
        yield "The guarantee for a person with several rows:"
        yield ""
        yield from table(
            ("rows of one person", "guarantee"), [(f"{m}", _group(charged(result), m)) for m in (1, *_GROUPS)]
        )


def _group(budget: GaussianBudget, m: int) -> str:
    """Return the guarantee for m records that change together, rounded up."""
    if m == 1:
        return str(budget)
    match budget:
        case PureDP():
            return f"epsilon={format_bound(m * budget.epsilon, 4)} (pure DP)"
        case ZCDP():
            return f"rho={format_bound(m * m * budget.rho, 4)} (zCDP)"
        case GDP():
            return f"mu={format_bound(m * budget.mu, 4)} (GDP)"
    # Each of the m steps from one data set to the next multiplies by e^epsilon what was lost before.
    delta = budget.delta * sum(math.exp(min(700.0, i * budget.epsilon)) for i in range(m))
    if delta >= 1.0:
        return "none that this budget implies"
    return f"epsilon={format_bound(m * budget.epsilon, 4)}, delta={format_bound(delta, 3)} (approximate DP)"


def _budget(result: Inference) -> Iterator[str]:
    record = record_of(result)
    meaning = meaning_of(result.guarantee) if record.whole is None else meaning_of_budget(record.whole.budget)
    unit = unit_of(record)
    doubt = (
        f"which of two equally likely versions of one {unit} is in the data"
        if relation(record) == "replace_one"
        else f"whether a {unit} is in the data, which is as likely as not"
    )
    yield "## What the budget means"
    yield ""
    yield f"The release spends {charged(result)}. It bounds what anyone can learn about one {unit}:"
    yield ""
    yield (
        f"- **Best guess.** Someone who knows every other {unit} guesses {doubt}. The guess is right with "
        f"probability at most {format_bound(100.0 * meaning.best_guess, 4)}%. Without the release it is 50%."
    )
    yield f"- **Odds.** {_odds(meaning, unit)}"
    yield ""
    yield (
        f"As probabilities, for somebody who knows every other {unit}: how likely a statement about that {unit} is "
        "before the release and after it."
    )
    yield ""
    rows = [(f"{100 * prior:g}%", *_outward(*meaning.posterior(prior))) for prior in _PRIORS]
    yield from table(("before", "after: at least", "after: at most"), rows)
    if meaning.rare:
        yield ""
        rare = format_bound(meaning.rare, 3)
        yield f"No bound holds with certainty at this budget: the table is wrong with probability at most {rare}."


def _outward(least: float, greatest: float) -> tuple[str, str]:
    """Return percentages of a range that holds the given one."""
    return f"{math.floor(1e5 * least) / 1e3:g}%", f"{min(100.0, math.ceil(1e5 * greatest) / 1e3):g}%"


def _odds(meaning: Meaning, unit: str) -> str:
    exponent = format_bound(meaning.odds_exponent, 4)
    factor = f"e^{exponent}"
    if meaning.odds_exponent < _GREAT:
        factor += f" = {format_bound(math.exp(meaning.odds_exponent), 4)}"
    odds = f"For the same attacker, the odds of any statement about that {unit} change"
    if not meaning.rare:
        return f"{odds} by at most a factor of {factor}, with certainty."
    return f"{odds} by more than a factor of {factor} with probability at most {format_bound(meaning.rare, 3)}."


def _assumptions(result: Inference) -> Iterator[str]:
    record = record_of(result)
    yield "## Assumptions"
    yield ""
    yield "The guarantee is a theorem under these assumptions. The file shows what is in the second column and no more."
    yield ""
    rows = [
        (
            "bounds, classes, λ, loss and columns were chosen without the data",
            "cannot be shown by a file: ask for the source of each (below)",
        ),
        ("every record that is used obeys the bounds", _bounded(record)),
        ("rows were prepared one by one, with nothing learnt from the table", _prepared(record)),
        ("all releases from these records are counted against one total", counted(record)),
        ("attackers do not see errors, timing, memory or logs of the run", "cannot be shown by a file"),
        *((f"{fact[0].upper()}{fact[1:]}", "assumed") for fact in conditions(record)),
    ]
    yield from table(("assumption", "what the file shows"), rows)
    yield ""
    yield "The public values of this release, each of which needs a source:"
    yield ""
    values = [
        (code(what), code(value), plain(source) or "**none stated**") for what, value, source in public_values(record)
    ]
    yield from table(("value", "in this release", "source that the schema states"), values)


def _bounded(record: FitRecord) -> str:
    if record.on_violation == "clip":
        return "holds by construction: a record beyond the bounds was moved to them"
    if record.table is not None:
        return "holds by construction: the schema moves a value to its bounds or refuses the record"
    return "holds by construction: a record beyond the bounds is refused, which only the holder of the data may see"


def _prepared(record: FitRecord) -> str:
    if record.table is None:
        return "cannot be shown: the model was fitted to encoded rows and holds no schema"
    return "the schema in the file encodes each record by itself; what was done before is not shown"


def _verified(result: Inference, findings: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield "## Verified and not verified"
    yield ""
    yield from table(
        ("outcome", "what"),
        [
            ("ok", "the fields of the model agree with each other, and with its checksum if it was read from a file"),
            *((outcome, plain(what)) for outcome, what in findings),
            (
                "by tests of dpci",
                "noise laws, sensitivities, composition, rounding, ledgers (docs/approve.md has the logs)",
            ),
            ("not verified", "the proofs, by anyone but their authors"),
            ("not protected", "time, memory and caches of the machine that fitted the model"),
            ("not proved", _intervals(result)),
        ],
    )
    yield ""
    yield "`dpci verify MODEL --schema SCHEMA --ledger LEDGER` compares the file with the agreed schema and the ledger."


def _intervals(result: Inference) -> str:
    if result.interval_refusal is not None:
        return "nothing about intervals, because the release has none"
    return "the coverage of the intervals: it holds for large samples and was measured by simulation"


def _records(record: FitRecord) -> str:
    if record.neighbors == "add_remove":
        what = "a released count, with noise," if record.n_is_released else "a public number"
        return f"private; {record.n_samples:,} is {what} in its place"
    return f"{record.n_samples:,} {unit_of(record)}s"
