"""What a release answers to the points of NIST SP 800-226, and the checklist that its approval is signed on."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike

from dpci.approval.facts import RIDGE, Approval
from dpci.approval.findings import AGREES
from dpci.approval.ledger import against_ledger
from dpci.approval.markdown import code, plain, table
from dpci.ledger.ledger import Ledger


def nist_points(approval: Approval, paid: str) -> Iterator[str]:
    """Yield the points in the order of docs/approve.md, each answered for this release.

    ``paid`` is what :func:`counted` returns.
    """
    unit = approval.unit
    exact = [*([f"the number of {unit}s"] if approval.kind_of_numbers == "exact" else []), *approval.exact]
    moved = " and ".join(approval.moved)
    bias = "Nothing but noise shifts the estimates."
    if moved:
        bias = f"{moved[0].upper()}{moved[1:]} can shift the estimates, most for small groups."
    publish = f"publish {' and '.join(_beside(approval))}; " if _beside(approval) else ""
    yield "## NIST SP 800-226, point by point"
    yield ""
    yield (
        "The factors of NIST's *Guidelines for Evaluating Differential Privacy Guarantees*, in the words of dpci, "
        "answered for this release. The last two points are those of dpci."
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
                f"{'replace' if approval.replaces else 'add or remove'} one {unit}",
                "does it hide what has to be hidden?",
            ),
            ("values released exactly", ", ".join(exact), "are they public?"),
            (
                "composition",
                f"Together {approval.budget}. Details for experts: {'; '.join(approval.composition)}",
                paid,
            ),
            (
                "correctness",
                f"{approval.adds_noise}. Proofs, on the site of the documentation: {_addresses(approval.proofs)}",
                "nobody but the authors has reviewed the proofs",
            ),
            (
                "floating point",
                f"{approval.sealed} on a lattice with exact integer noise",
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
            ("bias", bias, f"{publish}check the sample's own bias"),
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
                f"dpci {plain(approval.version)}; pinned dependencies, advisories to be checked before every release",
                "was dpci installed from a source that you trust?",
            ),
            (
                "faults found later",
                "the file names its version; errors in privacy are repaired in patch releases",
                "keep a list of what was published",
            ),
        ],
    )


def checklist(approval: Approval, account: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the items that whoever approves a release has to confirm; ``account`` is that of the ledger."""
    unit, numbers = approval.unit, numbers_text(approval)
    yield "## Checklist"
    yield ""
    yield f"- [ ] The file has the hash {code(approval.claim.digest)}, and it loads in dpci"
    given = [
        *(["the ledger"] if approval.claim.paid is not None else []),
        *(["the agreed schema"] if approval.table is not None else []),
    ]
    compared = f", compared with {' and '.join(given)}" if given else ""
    yield f'- [ ] `dpci verify` ends with "{AGREES}"{compared}'
    yield "- [ ] The page for publication was made from this file by whoever approves, with `dpci report`"
    if approval.persons is None:
        in_group = " in one group" * approval.of_groups
        yield f"- [ ] One record is one person. If not, the largest number of rows of one person{in_group}: ___"
    else:
        yield f"- [ ] The column of persons names persons, and the rule for their rows is agreed: {approval.persons}"
        if approval.claim.paid is None:
            yield "- [ ] The operator states in writing that the rows were told apart by their persons"
        else:
            yield "- [ ] The entry of the ledger protects persons, as `dpci verify` says"
    if approval.kind_of_numbers == "exact":
        yield f"- [ ] The number of {unit}s, {numbers}, is public"
    elif approval.kind_of_numbers == "released":
        counts = "the count" if len(approval.numbers) == 1 else "the counts"
        yield f"- [ ] The total includes the release of {counts}, {numbers}"
    else:
        yield f"- [ ] n_public = {numbers} was chosen without counting"
    yield "- [ ] Approved total: ___"
    yield f"- [ ] This release: {approval.budget}"
    yield from (f"- [ ] {line}" for line in account or ("Spent before: ___", "Remaining: ___"))
    if approval.claim.paid is None:
        yield "- [ ] A written statement says that this is the only release from these records"
    elif account is None:
        yield "- [ ] The total of the ledger equals the approved total"
    yield "- [ ] Every other release from these records is counted in these numbers"
    yield (
        "- [ ] Each public value of the table above has a source that is independent of these data, and was fixed "
        "before they were seen"
    )
    if approval.table is None:
        yield "- [ ] A written statement says what each column means, and states its bounds and their sources"
    yield "- [ ] No preparation step learnt from the table (scaling, imputation, selection, encoding)"
    yield (
        "- [ ] The operator states in writing that no attempt failed because of a record, or that only the holder of "
        "the data knows it"
    )
    if approval.custom_loss:
        yield "- [ ] The declared bounds of the custom loss were checked by: ___"
    if approval.classes_inferred:
        yield "- [ ] A written statement says that the class labels would be the same for any data"
    yield "- [ ] The operator states in writing that nobody else could see errors, timing or memory of the run"
    yield "- [ ] Nothing else that was computed from these records is published with the model"
    yield f"- [ ] Estimates are published with {', '.join([*_beside(approval), 'the budget'])} and the relation"
    yield ""
    yield from decision()


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


def _addresses(proofs: Iterable[str]) -> str:
    """Return where the site has proofs that are named by their files: page and section."""
    split = (proof.removeprefix("docs/").partition(".md (") for proof in proofs)
    return ", ".join(f'`{page}.html` ("{section[:-1]}")' for page, _, section in split)


def _beside(approval: Approval) -> list[str]:
    """Return what is published beside the estimates."""
    return [
        *([] if approval.intervals is None else ["intervals"]),
        *(["λ"] if RIDGE in approval.moved else []),
    ]
