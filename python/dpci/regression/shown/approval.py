"""Approval of a moment matrix, and of a regression from one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from dpci.approval.noise import finding_of_lattice, finding_of_noise
from dpci.approval.of_bounds import with_bounds
from dpci.approval.of_fit import PROGRAM_PROOF, count_proofs, counts_text, public_number, what_moves
from dpci.approval.statement import Statement, steps_text
from dpci.regression.choices.model import Model
from dpci.regression.record import MomentRecord
from dpci.regression.shown.noise import other_noise
from dpci.released.calibration import Sealed
from dpci.released.sources import PublicValue, count_values, interval_value, table_values
from dpci.shown.document import Code, Words, names

_PROOF = "docs/proofs/linear_regression.md (Privacy)"


def approval_of_matrix(record: MomentRecord, digest: str) -> Statement:
    """Return what an approver must know of a release; ``digest`` is the hash of its file."""
    columns = (*record.features, *record.targets)
    planned, charge = _planned(record), record.charge
    spent = steps_text(record.steps, str(record.cost_unit), record.seals)
    found = Statement.of(
        record,
        kind="a moment matrix" if digest == record.digest else "a regression from a moment matrix",
        contents=(
            (
                "released",
                f"the means of {len(columns)} columns and of all their products, as one matrix with noise{planned}",
            ),
            ("columns", names(columns)),
            *(
                []
                if record.table is None or record.target == record.table.target.column
                else [("target", (Code(record.target), " is ", Code(record.table.target.column)))]
            ),
        ),
        made_by="noise in the matrix",
        adds_noise="moment matrix: noise is added to the means of the columns and of their products"
        + (
            "; of refined regressions to how many residuals have which size and to the means of the columns times them"
            if record.refined
            else ""
        ),
        noise=" and ".join(dict.fromkeys(f"{step.noise.replace('_', ' ')} noise" for step in record.steps)),
        proofs=(_PROOF, *count_proofs(record.persons, record.weights), PROGRAM_PROOF),
        audits=tuple(_audits(record)),
        composition=(spent, *([] if charge == record.budget else [f"a ledger counts it as {charge}"])),
        sealed="one matrix" if len(record.seals) == 1 else "a matrix and what refines its regressions",
        public=tuple(_public(record)),
        exact=("the names of the columns", "the bounds"),
        chosen=(
            *(public_number(record.persons) if record.neighbors == "add_remove" else ()),
            *(("planned regressions",) if record.residuals or record.refined else ()),
            *record.chosen,
        ),
        covers=(
            f"It covers every linear regression among the {len(columns)} columns: of any of them, on any others.",
            "It also covers the means, variances and correlations of the columns.",
            "All of these are computed from the released matrix. They cost nothing more, however many there are.",
        ),
        target="; ".join(["coefficients of linear regressions in the population", *_counts(record)]),
        intervals=_intervals(record),
        moved=("the ridge of a regression", *what_moves(record.table, record.on_violation, ridge=False)),
        has_page=len(record.targets) == 1,
        unchecked=("other regressions from the same matrix: they cost nothing, and nobody counts them",),
        findings=(
            finding_of_noise(record.version, lambda: other_noise(record)),
            finding_of_lattice(starmap(Sealed, zip(record.seals, _sealed(record), strict=True))),
        ),
    )
    found = replace(found, claim=replace(found.claim, digest=digest, charged=charge))
    bounds = record.released_bounds
    if bounds is None:
        return found
    return with_bounds(found, bounds, record.n_samples, joint=record.are_joint and bounds.stages > 0)


def approval_of_regression(
    record: MomentRecord,
    model: Model,
    digest: str,
    *,
    refusal: str | None,
    ridge: bool,
    refined: bool,
) -> Statement:
    """Return what an approver must know of a regression; ``refusal`` is why it has no coefficients."""
    found = approval_of_matrix(record, digest)
    shown: Words = (Code(model.target), " on ", names(model.names))
    kind = f"the coefficients of {'a ridge regression' if ridge else 'ordinary least squares'} in the population"
    if refusal is not None:
        shown = (shown, ": hidden by the noise, so that it has no coefficients")
        kind = "nothing by this regression"
    counts = _counts(record)
    return replace(
        found,
        contents=(("regression", shown), *found.contents),
        target="; ".join([kind, *counts]),
        intervals=None
        if refusal is not None
        else "Every coefficient has an interval, which accounts for "
        + (
            "sampling, the noise in the matrix and that in the gradient."
            if refined
            else "sampling and the noise in the matrix."
        ),
        moved=tuple(what_moves(record.table, record.on_violation, ridge=ridge)),
        has_page=refusal is None,
    )


def _counts(record: MomentRecord) -> list[str]:
    return counts_text(record)


def _audits(record: MomentRecord) -> Iterator[str]:
    """Yield the pages with the audits of a matrix."""
    yield "moment_audit" if record.persons is None else "person_moment_audit"
    if record.refined:
        yield "refined_audit"
    if record.weights is not None:
        yield "weight_audit"


def _sealed(record: MomentRecord) -> list[NDArray[np.float64]]:
    """Return the sealed arrays, in the order of the seals."""
    moments = (one.moments for one in record.residuals)
    levels = (one.levels for one in record.refined)
    gradients = (one.gradient for one in record.refined)
    return [record.matrix, *moments, *levels, *gradients]


def _planned(record: MomentRecord) -> str:
    """Return what was released of planned regressions besides the matrix."""
    planned = ""
    moments, refined = "the moments of the residuals", "the numbers of residuals of each size and the gradient"
    for what, n in ((moments, len(record.residuals)), (refined, len(record.refined))):
        if n:
            planned += f"; {what} of {'one planned regression' if n == 1 else f'each of {n} planned regressions'}"
    return planned


def _intervals(record: MomentRecord) -> str:
    """Return which regressions have intervals, and what these count."""
    counted = "They account for the sampling and the noise."
    if not record.needs_robust:
        return f"A regression that the noise does not hide has intervals. {counted}"
    return f"A planned regression that the noise does not hide has intervals; no other one has. {counted}"


def _public(record: MomentRecord) -> Iterator[PublicValue]:
    """Yield what was chosen for the release."""
    if record.table is None:
        if record.rows is not None:
            domain = record.rows
            yield PublicValue("rows", str(domain), "")
        else:
            places = zip(record.features, record.middle, record.scale, strict=False)
            yield from (interval_value(f"column {name}", place - half, place + half) for name, place, half in places)
        for name, (lower, upper) in zip(record.targets, record.target_bounds(), strict=True):
            yield interval_value(f"target {name}", lower, upper)
    if record.neighbors == "add_remove":
        yield PublicValue("n_public", f"{record.n_samples:,}", "")
    yield from count_values(record)
    # A regression may be planned with both.
    planned = [*(one.regression for one in record.residuals), *(one.regression for one in record.refined)]
    for chosen in dict.fromkeys(planned):
        regressors = ", ".join(chosen.features or ()) or "a constant"
        ridge = f", ridge {chosen.l2_strength:g}" if chosen.l2_strength else ""
        yield PublicValue("planned regression", f"{chosen.target} on {regressors}{ridge}", "")
    if record.table is not None:
        yield from table_values(record.table)
