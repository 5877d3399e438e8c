"""Approval of a multinomial fit."""

from dataclasses import replace

from dpci.approval.approvable import statement_of
from dpci.approval.statement import Statement
from dpci.data.labels import Label
from dpci.model.result import PrivateFit
from dpci.released.sources import PublicValue, source_of_classes
from dpci.shown.document import names


def approval_of_classes(fit: PrivateFit, classes: tuple[Label, ...], digest: str) -> Statement:
    """Return what an approver must know of a fit of these public classes; ``digest`` is the hash of its file."""
    one = statement_of(fit)
    claim = replace(one.claim, kind="a multinomial fit", digest=digest, kept=digest)
    return with_classes(replace(one, claim=claim), classes)


def with_classes(one: Statement, classes: tuple[Label, ...]) -> Statement:
    """Return what an approver must know of such a model, with its classes."""
    source = "INFERRED FROM THE DATA" if one.classes_inferred else source_of_classes(one.table)
    listed = PublicValue("classes", ", ".join(map(str, classes)), source)
    return replace(
        one,
        contents=(*one.contents, ("classes", names(map(str, classes)))),
        public=(listed, *one.public),
        exact=(one.exact[0], f"the {len(classes)} classes", *one.exact[1:]),
    )
