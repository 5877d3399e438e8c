"""Answers of a release to the points of NIST SP 800-226, and the checklist that its approval is signed on."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike

from dpci.approval.facts import RIDGE, Approval
from dpci.approval.findings import AGREES
from dpci.approval.ledger import SPENT, TOTAL, against_ledger
from dpci.approval.markdown import code, plain, table
from dpci.base.tables import change_text
from dpci.ledger.ledger import Ledger

ADVISORIES = "2026-11-22"
"""When the dependencies were last compared with published advisories (docs/evidence/advisories.md)."""


_SUPPLY = (
    "pinned crates; Python packages have a lower bound only; advisories last checked on "
    f"{ADVISORIES} (`evidence/advisories.md`)"
)


def nist_points(approval: Approval, paid: str) -> Iterator[str]:
    """Yield the points in the order of docs/approve.md, each answered for this release.

    ``paid`` is what :func:`counted` returns.
    """
    unit = approval.unit
    exact = [*([f"the number of {unit}s"] if approval.kind_of_numbers == "exact" else []), *approval.exact]
    moved = " and ".join(filter(None, [", ".join(approval.moved[:-1]), *approval.moved[-1:]]))
    bias = "Nothing but noise shifts the estimates."
    if moved:
        bias = f"{moved[0].upper()}{moved[1:]} can shift the estimates, most for small groups."
    publish = f"publish {' and '.join(_beside(approval))}; " if _beside(approval) else ""
    yield "## NIST SP 800-226, point by point"
    yield ""
    yield (
        "The topics of NIST's *Guidelines for Evaluating Differential Privacy Guarantees*, answered for this release. "
        "Wording and order are those of dpci, without numbers of sections, and so are the last two points."
    )
    yield ""
    yield from table(
        ("point", "this release", "left to you"),
        [
            ("privacy parameters", str(approval.budget), "is it within the approved total?"),
            (
                "unit of privacy",
                f"one {unit}",
                "is one record one person?" if approval.persons is None else "are the ids right?",
            ),
            (
                "neighbouring relation",
                change_text(approval.neighbors, unit),
                "does it hide what has to be hidden?",
            ),
            (
                "query model",
                "one release that is made once, of parameters and what is computed from them; no queries are answered",
                "is anything else computed from these records?",
            ),
            ("values released exactly", ", ".join(exact), "are they public?"),
            (
                "composition",
                f"Together {approval.budget}. Details for experts: {'; '.join(approval.composition)}",
                paid,
            ),
            (
                "releases without privacy",
                "not known to dpci, and covered by no budget",
                "was a table, a count or a plot of these records ever published without privacy?",
            ),
            (
                "correctness",
                _correctness(approval),
                "nobody but the authors has reviewed the proofs",
            ),
            (
                "floating point",
                f"rounded, with exact integer noise. Details for experts: {approval.sealed} on a lattice",
                "accept that elementary functions were tested, not proved",
            ),
            ("randomness", "ChaCha20 with 256 bits of the operating system", "a sound operating system"),
            ("bounds and clipping", approval.beyond, "the source of each bound"),
            (
                "choices from the data",
                "; ".join(approval.from_data) or "the file records none",
                "were there others?" if approval.from_data else "were there any?",
            ),
            ("utility", approval.intervals or "No intervals are released.", "is the precision good enough to publish?"),
            ("statistical bias", bias, f"{publish}check the sample's own bias"),
            ("bias of institutions and people", "outside dpci", "could the model, or its use, harm a group?"),
            ("trust model", "central: one holder of the raw data", "is such a holder acceptable?"),
            (
                "side channels",
                "time, memory and caches are not protected",
                "could anyone time the run or read the machine?",
            ),
            ("errors and messages", "meant for the holder only", "is any of them published?"),
            ("security and access", "outside dpci", "is access to data, machine and ledger restricted?"),
            ("exposure by collection", "outside dpci", "collect less, delete in time, have a legal basis"),
            (
                "software supply chain",
                f"dpci {plain(approval.version)}; {_SUPPLY}",
                "was dpci installed from a source that you trust?",
            ),
            (
                "faults found later",
                "the file names its version; there is no list for notices",
                "read the section Security of the changelog before each approval; keep a list of what was published",
            ),
        ],
    )


def checklist(approval: Approval, account: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the items that whoever approves a release has to confirm; ``account`` is that of the ledger."""
    yield "## Checklist"
    yield ""
    items = (_of_files(approval), _of_units(approval), _of_budget(approval, account), _of_statements(approval))
    yield from (f"- [ ] {item}" for item in chain.from_iterable(items))
    yield ""
    yield from decision()


def _of_files(approval: Approval) -> Iterator[str]:
    paid = approval.claim.paid
    yield f"The file has the hash {code(approval.claim.digest)}, and it loads in dpci"
    given = [
        *(["the ledger"] if paid is not None else []),
        *(["the agreed schema"] if approval.table is not None else []),
    ]
    compared = f", compared with {' and '.join(given)}" if given else ""
    yield f'`dpci verify` ends with "{AGREES}"{compared}'
    if paid is not None:
        yield f"The ledger has the id {code(str(paid['ledger']))}, as noted when its total was approved, on: ___"
    if approval.table is not None:
        yield "The agreed schema is the approver's own copy, kept since: ___"
    if approval.has_page:
        yield "The page for publication was made from this file by whoever approves, with `dpci report`"
    else:
        yield f"{approval.claim.kind.capitalize()} has no page: its file is published, with the budget beside it"


def _of_units(approval: Approval) -> Iterator[str]:
    unit, numbers = approval.unit, numbers_text(approval)
    if approval.persons is None:
        in_group = " in one group" * approval.of_groups
        yield f"One record is one person. If not, the largest number of rows of one person{in_group}: ___"
        yield "Guarantee for that many rows: ___, at most the approved total per person: ___"
    else:
        stated = "by the analyst: ___"
        if approval.table is not None and approval.table.persons:
            stated = f"by the schema: {code(approval.table.persons)}"
        yield f"Column of ids, as stated {stated}"
        yield f"The column of ids names persons, and the rule for their rows is agreed: {approval.persons}"
        if approval.claim.paid is None:
            yield "The operator states in writing that the rows were told apart by their persons"
        else:
            yield "The entry of the ledger protects persons, as `dpci verify` says"
    if approval.kind_of_numbers == "exact":
        yield f"The number of {unit}s, {numbers}, is public"
    elif approval.kind_of_numbers == "released":
        counts = "the count" if len(approval.numbers) == 1 else "the counts"
        yield f"The total includes the release of {counts}, {numbers}"
    else:
        yield f"n_public = {numbers} was chosen without counting"


def _of_budget(approval: Approval, account: Sequence[str] | None) -> Iterator[str]:
    yield "Approved total: ___"
    yield f"This release: {approval.budget}"
    if approval.claim.paid is None:
        yield "A written statement says that this is the only release from these records"
        return
    yield from account or (f"{TOTAL}: ___", f"{SPENT}: ___", "Remaining: ___")
    yield "Every other release from these records is counted in these numbers"


def _of_statements(approval: Approval) -> Iterator[str]:
    yield (
        "Each public value of the table above has a source that is independent of these data, and was fixed before "
        "they were seen"
    )
    if approval.table is None:
        yield "A written statement says what each column means, and states its bounds and their sources"
    yield "No preparation step learnt from the table (scaling, imputation, selection, encoding)"
    yield (
        "The operator states in writing that no attempt failed because of a record, or that only the holder of the "
        "data knows it"
    )
    if approval.custom_loss:
        yield "The declared bounds of the custom loss were checked by: ___"
    if approval.classes_inferred:
        yield "A written statement says that the class labels would be the same for any data"
    yield "The operator states in writing that nobody else could see errors, timing or memory of the run"
    yield "Nothing else that was computed from these records is published with the model"
    yield f"Estimates are published with {', '.join([*_beside(approval), 'the budget'])} and the relation"


def decision() -> Iterator[str]:
    """Yield the lines that are signed."""
    yield "Statements: who stated what, and when: ___"
    yield ""
    yield "Decision: ( ) approved  ( ) returned, because these statements are missing: ___  ( ) refused, because: ___"
    yield ""
    yield "Name, role, date, signature:"


def numbers_text(approval: Approval) -> str:
    """Return the numbers of records, each with the name of its stratum."""
    return ", ".join(f"{number:,}{f' in {code(name)}' if name else ''}" for name, number in approval.numbers)


def counted(approval: Approval, ledger: "Ledger | str | PathLike[str] | None") -> str:
    """Return what the file, and the ledger if there is one, show of other releases."""
    paid = approval.claim.paid
    if paid is None:
        return "no ledger is named"
    if ledger is None:
        return "the file says that a ledger paid; check it with `dpci verify --ledger`"
    if any(finding.outcome == "FAILED" for finding in against_ledger(approval.claim, ledger)):
        return "the ledger that was given does not agree with the file"
    return f"entry {paid['entry']} of the ledger paid (checked). Ask whether anything was released outside it"


def _correctness(approval: Approval) -> str:
    audits = ", ".join(f"`evidence/{page}.md`" for page in approval.audits)
    noise = approval.noise.replace("laplace", "Laplace").replace("gaussian", "Gaussian")
    source = f"In the folder docs of the source of dpci {plain(approval.version)}"
    return f"{approval.adds_noise}. Law: {noise}. {source}: audits {audits}; proofs {_addresses(approval.proofs)}"


def _addresses(proofs: Iterable[str]) -> str:
    """Return where the documentation has proofs that are named by their files: page and section."""
    split = (proof.removeprefix("docs/").partition(" (") for proof in proofs)
    return ", ".join(f'`{page}` ("{section[:-1]}")' for page, _, section in split)


def _beside(approval: Approval) -> list[str]:
    """Return what is published beside the estimates."""
    return [
        *([] if approval.intervals is None else ["intervals"]),
        *(["λ"] if RIDGE in approval.moved else []),
    ]
