"""Whether released numbers lie on the lattices of their seals, as all numbers do that left a release."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.costs import Seal
from dpci.released.fit_record import FitRecord

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


def sealed_of_fit(record: FitRecord) -> Iterator[Sealed]:
    """Yield the sealed numbers of a fit by itself: those that no projection moved."""
    seals = {seal.release: seal for seal in record.seals}
    norm = record.params_norm
    if not _projected(record, norm):
        yield Sealed(seals["params"], record.params)
    if record.hessian is None or record.gradient_cov is None or record.projection != "noise_aware":
        return
    if "hessian" in seals:
        yield Sealed(seals["hessian"], record.hessian, record.l2_strength * np.eye(len(record.params)))
    added, error = None, 16.0
    if record.neighbors == "replace_one":
        # The mean gradient at the point where the matrices are taken.
        point = record.params
        if record.radius is not None and norm > record.radius:
            point, error = point * (record.radius / norm), error + 2.0 * len(point)
        mean = record.l2_strength * point
        # Saved records may hold any numbers; products beyond the range of floats are on no lattice.
        with np.errstate(all="ignore"):
            added = -record.divisor / record.n_samples * np.outer(mean, mean)
    yield Sealed(seals["gradient_cov"], record.gradient_cov, added, error * _EPSILON)


def moved_of_fit(record: FitRecord) -> str | None:
    """Return the released numbers of a fit that a projection moved, in words; they are on no lattice."""
    norm = record.params_norm
    moved = []
    if _projected(record, norm):
        moved.append("coefficients")
    if record.hessian is not None and record.projection != "noise_aware":
        moved.append("matrices")
    return " and ".join(moved) or None


def _projected(record: FitRecord, norm: float) -> bool:
    """Return whether the coefficients ended on the sphere, within rounding, which a projection does."""
    return record.project and record.radius is not None and norm >= record.radius * (1.0 - 1e-9)


def off_lattice(parts: Iterable[Sealed]) -> str | None:
    """Return the first number that is no whole number of steps of its lattice, in words; None if all are."""
    with np.errstate(all="ignore"):  # as above
        for seal, values, added, error in parts:
            room: _F64 | float = 0.0
            sealed = values
            if added is not None:
                sealed = values - added
                # One rounding when it was added, one when it is taken away.
                room = _EPSILON * (np.abs(values) + np.abs(sealed)) + error * np.abs(added)
            # Exact, as remainders of floats are; those of infinite numbers are none.
            rest = np.abs(np.fmod(sealed, seal.lattice))
            wrong = np.argwhere(~(np.minimum(rest, seal.lattice - rest) <= room))
            if len(wrong):
                place = tuple(wrong[0].tolist())
                where = ", ".join(map(str, place))
                return f"{seal.release}[{where}]={float(values[place])!r} with the step {seal.lattice!r}"
    return None
