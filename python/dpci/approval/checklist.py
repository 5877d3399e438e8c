"""The points of NIST SP 800-226 that a release decides, and the checklist that its approval is signed on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike

from dpci.approval.findings import AGREES
from dpci.approval.ledger import SPENT, TOTAL, against_ledger
from dpci.approval.statement import RIDGE, Statement
from dpci.base.tables import change_text
from dpci.ledger.ledger import Ledger
from dpci.shown.document import Bullets, Code, Paragraph, Part, Section, Table, Words, joined

NIST_PAGE = "NIST SP 800-226"
"""The page of the docs (docs/nist.md) with what is the same for every release."""


def nist_points(found: Statement, paid: Words) -> Section:
    """Return the points that a release decides, in the order of docs/nist.md.

    ``paid`` is what :func:`counted` returns.
    """
    unit = found.unit
    exact = [*([f"the number of {unit}s"] if found.kind_of_numbers == "exact" else []), *found.exact]
    moved = " and ".join(filter(None, [", ".join(found.moved[:-1]), *found.moved[-1:]]))
    bias = "Nothing but noise shifts the estimates." if found.target else "No estimates are released."
    if moved:
        bias = f"{moved[0].upper()}{moved[1:]} can shift the estimates, most for small groups."
    publish = f"publish {' and '.join(_beside(found))}; " if _beside(found) else ""
    rows: list[tuple[str, Words, Words]] = [
        ("privacy parameters", str(found.budget), "is it within the approved total?"),
        (
            "unit of privacy",
            f"one {unit}",
            "is one record one person?" if found.persons is None else "are the ids right?",
        ),
        ("neighbouring relation", change_text(found.claim.neighbors, unit), "does it hide what has to be hidden?"),
        ("values released exactly", ", ".join(exact), "are they public?"),
        ("composition", f"Together {found.budget}. Details for experts: {'; '.join(found.composition)}", paid),
        ("correctness", _correctness(found), "nobody but the authors has reviewed the proofs"),
        (
            "floating point",
            *_rounding(found),
        ),
        ("bounds and clipping", found.beyond, "the source of each bound"),
        (
            "choices from the data",
            "; ".join(found.from_data) or "the file records none",
            "were there others?" if found.from_data else "were there any?",
        ),
        (
            "utility",
            " ".join([found.intervals or "No intervals are released.", *found.cautions]),
            "is the precision good enough to publish?" if found.publishable else "there is nothing to publish",
        ),
        ("statistical bias", bias, f"{publish}check the sample's own bias"),
    ]
    topics = (
        "The topics of NIST's Guidelines for Evaluating Differential Privacy Guarantees that this release decides. The "
        f'page "{NIST_PAGE}" of dpci ('
    )
    others = (
        ") answers the others, which are the same for every release: among them the query model, randomness, the trust "
        "model, side channels, security, collection and the software supply chain. It asks you about each."
    )
    table = Table(("point", "this release", "left to you"), rows, of_words=True)
    return Section(
        "nist", "NIST SP 800-226, point by point", [Paragraph((topics, Code("docs/nist.md"), others)), table]
    )


def _rounding(found: Statement) -> tuple[str, str]:
    """Return what floating point does to what is released, and what is left to the reader."""
    if found.sealed is None:
        return "nothing is rounded: the choice is exact, in whole numbers", "nothing"
    seal = f"rounded, with exact integer noise. Details for experts: {found.sealed} on a lattice"
    return seal, "accept that elementary functions were tested, not proved"


def checklist(found: Statement, account: Sequence[str] | None = None) -> Section:
    """Return the items that whoever approves a release has to confirm; ``account`` is that of the ledger."""
    items = chain(_of_files(found), _of_units(found), _of_budget(found, account), _of_statements(found))
    return Section(
        "checklist", "Checklist", [Bullets(list(items), to_tick=True), *decision(publishable=found.publishable)]
    )


def _of_files(found: Statement) -> Iterator[Words]:
    paid = found.claim.paid
    yield "The file has the hash at the top of this report, and it loads in dpci"
    given = [
        *(["the ledger"] if paid is not None else []),
        *(["the agreed schema"] if found.table is not None else []),
    ]
    compared = f", compared with {' and '.join(given)}" if given else ""
    yield Code("dpci verify"), f' ends with "{AGREES}"{compared}'
    if paid is not None:
        yield "The ledger has the id ", Code(paid["ledger"]), ", as noted when its total was approved, on: ___"
    if found.table is not None:
        yield "The agreed schema is the approver's own copy, kept since: ___"
    if found.has_page:
        yield "The page for publication was made from this file by whoever approves, with ", Code("dpci report")
    else:
        yield f"{found.claim.kind.capitalize()} has no page: its file is published, with the budget beside it"


def _of_units(found: Statement) -> Iterator[Words]:
    unit, numbers = found.unit, numbers_words(found)
    if found.persons is None:
        in_group = " in one group" * found.of_groups
        yield f"One record is one person. If not, the largest number of rows of one person{in_group}: ___"
        yield "Guarantee for that many rows: ___, at most the approved total per person: ___"
    else:
        stated: Words = "by the analyst: ___"
        if found.table is not None and found.table.persons:
            stated = ("by the schema: ", Code(found.table.persons))
        yield "Column of ids, as stated ", stated
        yield f"The column of ids names persons, and the rule for their rows is agreed: {found.counted}"
        if found.claim.paid is None:
            yield "The operator states in writing that the rows were told apart by their persons"
        else:
            yield "The entry of the ledger protects persons, as ", Code("dpci verify"), " says"
    if found.kind_of_numbers == "exact":
        yield f"The number of {unit}s, ", numbers, ", is public"
    elif found.kind_of_numbers == "released":
        counts = "the count" if len(found.numbers) == 1 else "the counts"
        yield f"The total includes the release of {counts}, ", numbers
    else:
        yield "n_public = ", numbers, " was chosen without counting"


def _of_budget(found: Statement, account: Sequence[str] | None) -> Iterator[Words]:
    yield "Approved total: ___"
    yield f"This release: {found.budget}"
    if found.claim.paid is None:
        yield "A written statement says that this is the only release from these records"
        return
    yield from account or (f"{TOTAL}: ___", f"{SPENT}: ___", "Remaining: ___")
    yield "Every other release from these records is counted in these numbers"


def _of_statements(found: Statement) -> Iterator[Words]:
    but: Words = "" if found.found is None else (", except ", found.found)
    fixed = "has a source that is independent of these data, and was fixed before they were seen"
    yield f"Each public value of the table above {fixed}", but
    if found.table is None:
        yield "A written statement says what each column means, and states its bounds and their sources"
    yield "No preparation step learnt from the table (scaling, imputation, selection, encoding)"
    yield (
        "The operator states in writing that no attempt failed because of a record, or that only the holder of the "
        "data knows it"
    )
    if found.custom_loss:
        yield "The declared bounds of the custom loss were checked by: ___"
    if found.classes_inferred:
        yield "A written statement says that the class labels would be the same for any data"
    yield "The operator states in writing that nobody else could see errors, timing or memory of the run"
    yield f'What the page "{NIST_PAGE}" leaves to the approver was considered'
    result = "schema" if found.target is None else "model"
    yield f"Nothing else that was computed from these records is published with the {result}"
    what = "The schema is" if found.target is None else "Estimates are"
    yield f"{what} published with {', '.join([*_beside(found), 'the budget'])} and the relation"


def decision(*, publishable: bool = True) -> list[Part]:
    """Return the lines that are signed."""
    nothing = "" if publishable else "  ( ) nothing to publish, and the budget is spent"
    return [
        Paragraph("Statements: who stated what, and when: ___"),
        Paragraph(
            "Decision: ( ) approved  ( ) returned, because these statements are missing: ___  ( ) refused, because: ___"
            + nothing
        ),
        Paragraph("Name, role, date, signature:"),
    ]


def numbers_words(found: Statement) -> Words:
    """Return the numbers of records, each with the name of its stratum."""
    return joined((f"{number:,}", (" in ", Code(name)) if name else "") for name, number in found.numbers)


def counted(found: Statement, ledger: "Ledger | str | PathLike[str] | None") -> Words:
    """Return what the file, and the ledger if there is one, show of other releases."""
    paid = found.claim.paid
    if paid is None:
        return "no ledger is named"
    if ledger is None:
        return "the file says that a ledger paid; check it with ", Code("dpci verify --ledger")
    if any(finding.outcome == "FAILED" for finding in against_ledger(found.claim, ledger)):
        return "the ledger that was given does not agree with the file"
    return f"entry {paid['entry']} of the ledger paid (checked). Ask whether anything was released outside it"


def _correctness(found: Statement) -> Words:
    audits = joined(Code(f"evidence/{page}.md") for page in found.audits)
    noise = found.noise.replace("laplace", "Laplace").replace("gaussian", "Gaussian")
    source = f"In the folder docs of the source of dpci {found.version}"
    return f"{found.adds_noise}. Law: {noise}. {source}: audits ", audits, "; proofs ", _addresses(found.proofs)


def _addresses(proofs: Iterable[str]) -> Words:
    """Return where the documentation has proofs that are named by their files: page and section."""
    split = (proof.removeprefix("docs/").partition(" (") for proof in proofs)
    return joined((Code(page), f' ("{section[:-1]}")') for page, _, section in split)


def _beside(found: Statement) -> list[str]:
    """Return what is published beside the estimates."""
    return [
        *([] if found.intervals is None else ["intervals"]),
        *(["λ"] if RIDGE in found.moved else []),
    ]
