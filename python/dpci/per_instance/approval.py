"""Approval of a model with bounds on the privacy loss of each record."""

from dataclasses import replace
from itertools import starmap

from dpci.accounting.costs import seals_from, steps_from
from dpci.approval.approvable import statement_of
from dpci.approval.noise import finding_of_lattice, finding_of_noise
from dpci.approval.statement import Statement
from dpci.model.result import PrivateFit
from dpci.per_instance.record import ReportRecord
from dpci.released.calibration import (
    Sealed,
    differences,
    differences_of_derivatives,
    differences_of_seals,
    differences_of_steps,
    fit_spec,
    sealed_of_fit,
)

_VALUES = "bounds that someone computed for records: they are not in the file, and are private"


def approval_of_report(record: ReportRecord) -> Statement:
    """Return what an approver must know of a report."""
    fit, digest = record.fit, record.digest
    derivatives = [array for array in (record.gradient, record.hessian) if array is not None]
    one = statement_of(PrivateFit(fit))
    more = ", and a gradient and a Hessian, from which the bounds are computed" * bool(derivatives)
    return replace(
        one,
        claim=replace(one.claim, kind="a per-instance report", digest=digest, kept=digest),
        proofs=(*one.proofs, "docs/per_instance.md (Appendix: proofs)"),
        audits=("audit" if fit.persons is None else "person_report_audit",),
        covers=(
            f"It covers the released parameters{more}.",
            "It also covers the function that bounds the privacy loss of a record, for records that anyone makes up.",
            "It does not cover the value of that function at a record of the data. Such values are private.",
        ),
        unchecked=(_VALUES,),
        has_page=False,
        findings=(
            finding_of_noise(fit.version, lambda: _other_noise(record)),
            finding_of_lattice([*sealed_of_fit(fit), *starmap(Sealed, zip(fit.seals[1:], derivatives, strict=True))]),
        ),
    )


def _other_noise(record: ReportRecord) -> str | None:
    """Return the first number in which the noise of a report is not that of its public choices, in words."""
    fit, spec = record.fit, fit_spec(record.fit)
    report = record.calibrated(spec)
    steps, (seal,) = steps_from(report.steps), seals_from([report.seal])
    differ = (
        *differences({"slope_bound": (fit.slope_bound, spec.slope_bound)}),
        *differences({"curvature_bound": (fit.curvature_bound, spec.curvature_bound)}),
        *differences({"noise_spectral_radius": (fit.noise_spectral_radius, 0.0)}),
        *differences_of_steps(fit.steps, steps),
        *differences_of_seals(fit.seals[:1], [seal]),
        *differences_of_derivatives(fit.seals[1:], seal, len(fit.names)),
    )
    return next(iter(differ), None)
