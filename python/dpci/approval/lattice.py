"""Whether released numbers lie on the lattices of their seals, as all numbers do that left a release."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.seals import Seal
from dpci.approval.findings import Finding
from dpci.inference.error_law import NOISE_AWARE
from dpci.released.record import FitRecord

_OK = "the released numbers are multiples of the steps of their lattices"
_MUST = "released numbers must be multiples of the step of the lattice of their seal"
_F64 = NDArray[np.float64]
_EPSILON = float(np.finfo(float).eps)


class Sealed(NamedTuple):
    """Numbers as a file holds them."""

    seal: Seal
    values: _F64
    added: _F64 | None = None
    """Numbers that were added to the sealed ones: public, or computed from released ones; None for nothing."""
    error: float = 0.0
    """Relative error of ``added``."""


def lattice_of_fits(records: Iterable[FitRecord]) -> Finding:
    """Return whether the numbers of fits lie on their lattices: what is wrong with the first one that fails."""
    return finding_of_lattice(sealed for record in records for sealed in sealed_of_fit(record))


def finding_of_lattice(parts: Iterable[Sealed]) -> Finding:
    """Return whether released numbers lie on their lattices."""
    wrong = _off_lattice(parts)
    return Finding("ok", _OK) if wrong is None else Finding("FAILED", f"{_MUST}, got {wrong}")


def sealed_of_fit(record: FitRecord) -> Iterator[Sealed]:
    """Yield the sealed numbers of a fit by itself: those that no projection moved."""
    seals = {seal.release: seal for seal in record.seals}
    norm = float(np.linalg.norm(record.params))
    outside = record.radius is not None and norm > record.radius
    # A projection ends within rounding of the sphere.
    if not (record.project and record.radius is not None and norm >= record.radius * (1.0 - 1e-9)):
        yield Sealed(seals["params"], record.params)
    if record.hessian is None or record.gradient_cov is None or record.projection != NOISE_AWARE:
        return
    if "hessian" in seals:
        yield Sealed(seals["hessian"], record.hessian, record.l2_strength * np.eye(len(record.params)))
    added = None
    if record.neighbors == "replace_one":
        # The mean gradient at the point where the matrices are taken.
        scale = record.radius / norm if outside and record.radius is not None else 1.0
        mean = record.l2_strength * (record.params * scale)
        added = -record.divisor / record.n_samples * np.outer(mean, mean)
    yield Sealed(seals["gradient_cov"], record.gradient_cov, added, 16.0 * _EPSILON)


def _off_lattice(parts: Iterable[Sealed]) -> str | None:
    """Return the first number that is no whole number of steps of its lattice, in words; None if all are."""
    for seal, values, added, error in parts:
        room = 0.0
        sealed = values
        if added is not None:
            sealed = values - added
            # One rounding when it was added, one when it is taken away.
            room = _EPSILON * (np.abs(values) + np.abs(sealed)) + error * np.abs(added)
        # Exact, as remainders of floats are.
        rest = np.abs(np.fmod(sealed, seal.lattice))
        wrong = np.argwhere(np.minimum(rest, seal.lattice - rest) > room)
        if len(wrong):
            place = tuple(wrong[0].tolist())
            where = ", ".join(map(str, place))
            return f"{seal.release}[{where}]={float(values[place])!r} with the step {seal.lattice!r}"
    return None
