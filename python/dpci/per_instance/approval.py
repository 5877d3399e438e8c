"""What an approver must know of a model with bounds on the privacy loss of each record."""

from dataclasses import replace

from dpci.approval.approvable import approval_of
from dpci.approval.facts import Approval
from dpci.model.result import PrivateFit
from dpci.released.record import FitRecord

_VALUES = "bounds that someone computed for records: they are not in the file, and are private"


def approval_of_report(fit: FitRecord, digest: str, *, data_dependent: bool) -> Approval:
    """Return what an approver must know of a report; ``digest`` is the hash of its file."""
    one = approval_of(PrivateFit(fit))
    more = ", and a gradient and a Hessian, from which the bounds are computed" * data_dependent
    return replace(
        one,
        claim=replace(one.claim, kind="a per-instance report", digest=digest, kept=digest),
        proofs=(*one.proofs, "docs/per_instance.md (Appendix: proofs)"),
        covers=(
            f"It covers the released parameters{more}.",
            "It also covers the function that bounds the privacy loss of a record, for records that anyone makes up.",
            "It does not cover the value of that function at a record of the data. Such values are private.",
        ),
        unchecked=(_VALUES,),
    )
