"""Whose the rows of a part are: keyed hashes of ids, by which parts and passes are compared. No id is kept."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpci.data.persons import checked_ids, numbers_of
from dpci.errors import InvalidInput

_U64 = NDArray[np.uint64]

_OF_TYPES: Final[dict[type, tuple[str, Callable[[Any], bytes]]]] = {
    bool: ("truth values", lambda cell: b"%d" % cell),
    int: ("integers", lambda cell: b"%d" % cell),
    float: ("64-bit numbers", lambda cell: struct.pack("<d", cell + 0.0)),
    str: ("texts", lambda cell: cell.encode("utf-8", "surrogatepass")),
    bytes: ("bytes", bytes),
    date: ("dates", lambda cell: cell.isoformat().encode()),
    UUID: ("UUIDs", lambda cell: cell.bytes),
}
"""Name of the ids of a type, and bytes that are equal for equal ids."""


@dataclass(frozen=True, eq=False, repr=False)
class PartPersons:
    """Whose the rows of one part are."""

    numbers: NDArray[np.int64]
    """The person of each row, from 0 without gaps."""
    tags: _U64
    """The keyed hash of each person's id, of 128 bits in two numbers."""
    kind: str | None
    """Kind of the ids; None without rows. One person could have two ids of different kinds."""

    @property
    def for_core(self) -> tuple[NDArray[np.int64], _U64]:
        """The persons of the rows and their hashes, row by row."""
        return self.numbers, np.ascontiguousarray(self.tags[self.numbers])


def tagged(ids: object, n_rows: int, X: object, key: bytes) -> PartPersons:
    """Return the persons of the rows of a part. No message shows an id."""
    cells = checked_ids(ids, n_rows, X)
    numbers = numbers_of(cells)
    if not n_rows:
        return PartPersons(numbers, np.empty((0, 2), dtype=np.uint64), None)
    firsts = np.unique(numbers, return_index=True)[1]
    kind, encoded = _encoded(np.asarray(cells)[firsts])
    state = blake2b(digest_size=16, key=key, person=b"dpci persons")
    state.update(kind.encode() + b"\0")
    digests = bytearray()
    for each in encoded:
        mine = state.copy()
        mine.update(each)
        digests += mine.digest()
    return PartPersons(numbers, np.frombuffer(bytes(digests), dtype="<u8").astype(np.uint64).reshape(-1, 2), kind)


def check_apart(tags: Sequence[_U64]) -> None:
    """Refuse a person with rows in several parts."""
    if _meet(tags):
        raise InvalidInput(
            "persons must have all of their rows in one part, got a person with rows in several parts (sort the rows "
            "by person and cut parts between persons)"
        )


def check_in_one_group(groups: Sequence[NDArray[Any]]) -> None:
    """Refuse a person with rows in several groups, by the checked ids of each."""
    found = [tagged(ids, len(ids), None, b"") for ids in groups]
    kind = None
    for each in found:
        kind = check_one_kind(kind, each.kind)
    if _meet([each.tags for each in found]):
        raise InvalidInput(
            "persons must have all of their rows in one group with disjoint=True, got a person with rows in several "
            "groups (pass disjoint=False, which charges for every group)"
        )


def _meet(tags: Sequence[_U64]) -> bool:
    """Whether a person is in two of several places, by the hashes of the persons of each."""
    together = np.concatenate(tags)
    ordered = together[np.lexsort(together.T)]
    return bool((ordered[1:] == ordered[:-1]).all(axis=1).any())


def check_one_kind(mine: str | None, other: str | None) -> str | None:
    """Return what the ids of two parts are."""
    if mine is not None and other is not None and mine != other:
        raise InvalidInput(
            "persons must have ids of one type in all parts and groups, because a person's ids of two types would be "
            f"two persons, got {other} after {mine}"
        )
    return other if mine is None else mine


def _encoded(cells: NDArray[Any]) -> tuple[str, list[bytes]]:
    """Return what ids are, and bytes that are equal exactly for equal ids of this kind."""
    kind = cells.dtype.kind
    if kind in "mM":
        cells = cells.astype(cells.dtype.newbyteorder("="))
        return str(cells.dtype), [b"%d" % n for n in cells.view(np.int64).tolist()]
    if kind == "f" and cells.dtype.itemsize < 8:
        return f"{8 * cells.dtype.itemsize}-bit numbers", [struct.pack("<d", cell + 0.0) for cell in cells.tolist()]
    if kind == "O" and issubclass(type(cells[0]), np.generic):
        return _encoded(np.array(cells.tolist()))
    listed = cells.tolist()
    known = _OF_TYPES.get(type(listed[0]))
    if known is None:
        raise InvalidInput(
            "persons of rows in parts or disjoint groups must be integers, texts, dates, UUIDs or numbers of at most "
            f"64 bits, got the type {type(listed[0]).__name__}"
        )
    name, encode = known
    return name, list(map(encode, listed))
