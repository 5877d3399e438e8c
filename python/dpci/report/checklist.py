"""What a release answers to the points of NIST SP 800-226, and the checklist that its approval is signed on."""

from collections.abc import Iterator

from dpci.budgets import Budget
from dpci.inference.methods import Inference
from dpci.released.model import record_of
from dpci.released.record import FitRecord
from dpci.report.markdown import code, table


def nist_points(result: Inference) -> Iterator[str]:
    """Yield the points in the order of docs/approve.md, each answered for this release."""
    record = record_of(result)
    unit = unit_of(record)
    moved = (
        "Regularisation (λ) and clipping move the estimates"
        if record.on_violation == "clip"
        else "Regularisation (λ) moves the estimates"
    )
    exact = [
        *([f"the number of {unit}s"] if record.neighbors == "replace_one" else []),
        "the names of the parameters",
        *(["the classes"] if record.classes is not None else []),
        "the bounds, λ and the loss",
    ]
    precision = (
        "No intervals are released."
        if result.interval_refusal is not None
        else "Every parameter has an interval that counts sampling error and privacy noise."
    )
    spent = str(charged(result)) if result.private else "none"
    yield "## NIST SP 800-226, point by point"
    yield ""
    yield "The points of *Guidelines for Evaluating Differential Privacy Guarantees*, answered for this release."
    yield ""
    yield from table(
        ("point", "this release", "left to you"),
        [
            (
                "privacy parameters",
                spent,
                "is it within the approved total?",
            ),
            (
                "unit of privacy",
                f"one {unit}",
                "is one record one person?" if record.persons is None else "are the ids right?",
            ),
            ("neighbouring relation", relation(record).replace("_", " "), "does it hide what has to be hidden?"),
            ("values released exactly", ", ".join(exact), "are they public?"),
            ("composition", _steps(record), counted(record)),
            (
                "correctness",
                f"{record.mechanism} perturbation, calibration {record.calibration}",
                "nobody but the authors has reviewed the proofs",
            ),
            (
                "floating point",
                f"{len(record.seals)} released vectors on a lattice with exact integer noise",
                "nothing",
            ),
            ("randomness", _randomness(record), "a sound operating system"),
            ("bounds and clipping", f"on_violation is {record.on_violation}", "the source of each bound"),
            ("choices from the data", "the file records none", "that there were none"),
            ("utility", precision, "is the precision good enough to publish?"),
            ("bias", f"{moved}, most for small groups.", "publish λ and the intervals; check the sample's own bias"),
            ("trust model", "central: one holder of the raw data", "is such a holder acceptable?"),
            (
                "side channels",
                "time, memory and caches are not protected",
                "nobody could time the run or read the machine",
            ),
            ("errors and messages", "meant for the holder only", "none is published"),
            ("security and access", "outside of dpci", "access to data, machine and ledger is restricted"),
            ("exposure by collection", "outside of dpci", "collect less, delete in time, have a legal basis"),
        ],
    )


def _steps(record: FitRecord) -> str:
    unit = record.cost_unit.replace("_", " ")
    steps = (f"{step.step.replace('_', ' ')} {unit} {step.cost:.4g}" for step in record.steps)
    return "; ".join([*steps, "rounding seals"])


def _randomness(record: FitRecord) -> str:
    return "ChaCha20 with 256 bits of the operating system" if record.private else "**a seed: not private**"


def checklist(result: Inference) -> Iterator[str]:
    """Yield the items that whoever approves a release has to confirm."""
    record = record_of(result)
    unit = unit_of(record)
    yield "## Checklist"
    yield ""
    yield f"- [ ] The file has the hash {code(record.digest)}, and it loads in dpci"
    if record.persons is None:
        yield "- [ ] One record is one person. If not, the greatest number of rows of one person: ___"
    else:
        yield f"- [ ] Every person has one id in the column of persons, and rows count as agreed: {record.persons}"
    if record.neighbors == "replace_one":
        yield f"- [ ] The number of {unit}s, {record.n_samples:,}, is public"
    elif record.n_is_released:
        yield f"- [ ] The total includes the release of the count, {record.n_samples:,}"
    else:
        yield f"- [ ] n_public = {record.n_samples:,} was chosen without counting"
    spent = charged(result) if result.private else "no private release"
    yield f"- [ ] Approved total: ___  Spent before: ___  This release: {spent}  Remaining: ___"
    yield "- [ ] Every other release from these records is counted in the line above"
    yield "- [ ] Each public value of the table above has a source, or was chosen before the data were seen"
    yield "- [ ] No preparation step learnt from the table (scaling, imputation, selection, encoding)"
    if record.on_violation == "error":
        yield "- [ ] No record was refused, or nobody but the holder of the data knows it"
    if record.loss["name"] == "custom":
        yield "- [ ] The declared bounds of the custom loss were checked by: ___"
    if record.classes_inferred:
        yield "- [ ] The two labels that occur are public"
    yield "- [ ] No attacker could see errors, timing or memory of the run"
    yield "- [ ] Nothing else that was computed from these records is published with the model"
    yield "- [ ] Estimates are published with intervals, λ, the budget and the relation"
    yield ""
    yield "Decision: ( ) approved  ( ) refused, because ___"
    yield ""
    yield "Name, role, date, signature:"


def unit_of(record: FitRecord) -> str:
    """Return the unit of privacy."""
    return "record" if record.persons is None else "person"


def charged(result: Inference) -> Budget:
    """Return what the release spends; of a part of a greater one what all parts spend together."""
    whole = record_of(result).whole
    return result.spent if whole is None else whole.budget


def relation(record: FitRecord) -> str:
    """Return the relation by which the release is charged."""
    return record.neighbors if record.whole is None else record.whole.neighbors


def counted(record: FitRecord) -> str:
    """Return what the file shows of other releases."""
    return "no ledger is named" if record.paid is None else "a ledger paid; check it with `dpci verify --ledger`"
