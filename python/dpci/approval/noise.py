"""Whether the noise in a released file is that which its public choices call for, as a finding."""

from collections.abc import Callable, Iterable

from dpci import _core
from dpci.approval.findings import Finding
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.released.calibration import fit_spec, other_noise
from dpci.released.record import FitRecord

_OK = "the noise scale was recomputed from the public choices in the file, and matches"
_CUSTOM = "that the noise is that which the public choices call for: no file holds the code of a custom loss"
_MUST = "the noise must be that which the public choices in the file call for"
_OF_A_REPORT = "the noise: this fit is a part of a per-instance report, whose own file has all of its choices"


def finding_of_noise(version: str, difference: Callable[[], str | None]) -> Finding:
    """Return whether noise is that of the public choices; ``difference`` calibrates once more and compares.

    ``version`` is that which made the file: another one may have calibrated otherwise.
    """
    try:
        differ = difference()
    except (InvalidInput, RegularizationTooSmall) as error:
        differ = f"which no release has: {error}"
    if differ is None:
        return Finding("ok", _OK)
    if version != _core.__version__:
        what = "that the noise is that which the public choices call for: this dpci is of another version"
        return Finding("not checked", f"{what} ({_core.__version__}) than the file, and calibrates otherwise")
    return Finding("FAILED", f"{_MUST}, {differ}")


def noise_of_fit(record: FitRecord) -> Finding:
    """Return whether the noise of a fit by itself, or of one part of a release, is that of its public choices."""
    return noise_of_fits([record])


def noise_of_fits(records: Iterable[FitRecord]) -> Finding:
    """Return the same of several fits: what is wrong with the first one that fails."""
    found = [_of_one(record) for record in records]
    return next((finding for finding in found if finding.outcome != "ok"), found[0])


def _of_one(record: FitRecord) -> Finding:
    if record.loss["name"] == "custom":
        return Finding("not checked", _CUSTOM)
    if any(step.step.startswith("report_") for step in record.steps):
        return Finding("not checked", _OF_A_REPORT)

    def difference() -> str | None:
        spec = fit_spec(record)
        return None if spec is None else other_noise(record, spec)

    return finding_of_noise(record.version, difference)
