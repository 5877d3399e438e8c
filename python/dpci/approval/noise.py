"""Whether the noise in a released file is that which its public choices call for, and its numbers on their lattices."""

from collections.abc import Callable, Iterable

from dpci import _core
from dpci.approval.findings import Finding
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.released.calibration import (
    OTHER_PARAMETERS,
    Sealed,
    fit_spec,
    moved_of_fit,
    off_lattice,
    other_noise,
    other_steps,
    sealed_of_fit,
)
from dpci.released.record import FitRecord

_OK = "the noise scale was recomputed from the public choices in the file, and matches"
_MUST = "the noise must be that which the public choices in the file call for"
_REPEAT = "repeat with that version"
_ON_LATTICES = (
    "the released numbers are multiples of the steps in which noise is drawn: none was typed in or rounded later"
)
_OFF = "released numbers must be multiples of the step of the lattice of their seal"
_OF_A_REPORT = "the noise: this fit is a part of a per-instance report, whose own file has all of its choices"


def finding_of_noise(version: str, difference: Callable[[], str | None]) -> Finding:
    """Return whether noise is that of the public choices; ``difference`` calibrates once more and compares.

    ``version`` is that which the file says made it. Another one may have calibrated otherwise: whoever has it can tell.
    """
    try:
        differ = difference()
    except (InvalidInput, RegularizationTooSmall) as error:
        differ = f"which no release has: {error}"
    if differ is None:
        return Finding("ok", _OK)
    if version != _core.__version__:
        here = f"by the rules of dpci {_core.__version__} it differs"
        return Finding("not checked", f"the noise: the file says that dpci {version} made it, {here}; {_REPEAT}")
    return Finding("FAILED", differ if differ == OTHER_PARAMETERS else f"{_MUST}, {differ}")


def noise_of_fits(records: Iterable[FitRecord]) -> Finding:
    """Return whether the noise of fits is that of their public choices: what is wrong with the first that fails."""
    found = [_of_one(record) for record in records]
    return next((finding for finding in found if finding.outcome != "ok"), found[0])


def _of_one(record: FitRecord) -> Finding:
    if any(step.step.startswith("report_") for step in record.steps):
        return Finding("not shown", _OF_A_REPORT)
    if (newton := record.newton) is not None:
        return finding_of_noise(record.version, lambda: other_steps(record, newton))
    return finding_of_noise(record.version, lambda: other_noise(record, fit_spec(record)))


def lattice_of_fits(records: Iterable[FitRecord]) -> Finding:
    """Return whether the numbers of fits lie on their lattices: what is wrong with the first one that fails."""
    records = list(records)
    moved = next(filter(None, map(moved_of_fit, records)), None)
    return finding_of_lattice([sealed for record in records for sealed in sealed_of_fit(record)], moved)


def finding_of_lattice(parts: Iterable[Sealed], moved: str | None = None) -> Finding:
    """Return whether released numbers lie on their lattices; a projection ``moved`` some of them off theirs."""
    wrong = off_lattice(parts)
    if wrong is not None:
        return Finding("FAILED", f"{_OFF}, got {wrong}")
    if moved is not None:
        return Finding("not shown", f"whether the {moved} were edited: a projection moved them off their lattices")
    return Finding("ok", _ON_LATTICES)
