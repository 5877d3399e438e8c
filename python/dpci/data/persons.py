"""Identifiers of persons as numbers, and as keyed hashes where rows come in parts. No id is kept."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dpci.data.frames import decoded, is_nan, same_index, taken_over, text_of
from dpci.errors import InvalidInput
from dpci.unit import Beside

_I64 = NDArray[np.int64]

# Integers over at most so many times as many values as there are rows are counted instead of hashed.
_SPREAD = 8

_NOT_IDS = (tuple, dict, list, set)


def numbered(ids: object, n_rows: int, X: object = None) -> _I64:
    """Return the persons of all rows as numbers from 0 without gaps. No message shows an id.

    Texts are compared as categories are: in normal form C, without the space around them, a whole number by its digits.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        Integers, texts, dates or other objects that can be told apart, all of one type.
    n_rows : int
        Number of rows.
    X : table, optional
        The rows: an index of theirs must be that of the ids, where both have one.
    """
    return numbers_of(checked_ids(ids, n_rows, X))


def checked_ids(ids: object, n_rows: int | None, X: object) -> NDArray[Any]:
    """Return the ids of all rows, of which none is missing, as an array of what is compared; see :func:`numbered`.

    ``n_rows`` None: the number of rows is not known yet.
    """
    cells = np.ma.asarray(decoded(ids)) if isinstance(ids, np.ma.MaskedArray) else _cells(ids)
    if cells.ndim != 1:
        raise InvalidInput(f"persons must be one-dimensional, one id for each row, got shape {cells.shape}")
    if n_rows is not None and len(cells) != n_rows:
        raise InvalidInput(f"persons must have one id for each of the {n_rows} rows, got {len(cells)}")
    check_index_of_persons(X, ids)
    kind = cells.dtype.kind
    if kind == "V":
        raise InvalidInput("persons must have ids of one field, got a structured array")
    if np.ma.getmaskarray(cells).any() or (kind == "f" and not np.isfinite(cells).all()):
        raise _missing()
    if kind in "mM" and np.isnat(cells).any():
        raise _missing()
    return _as_compared(cells)


def numbers_of(cells: NDArray[Any]) -> _I64:
    """Return the persons of ids that are checked, as numbers from 0 without gaps; see :func:`numbered`."""
    kind = cells.dtype.kind
    if kind in "biu" and len(cells):
        cells = cells.copy()  # between its bounds and its use no other thread changes it
        least, greatest = int(cells.min()), int(cells.max())
        if greatest - least <= _SPREAD * len(cells):
            if greatest < 2**63:
                cells = np.ascontiguousarray(cells, dtype=np.int64)
            return _counted((cells - least).astype(np.int64, copy=False) if least else cells)
    if kind in "biufmM":
        return np.unique(np.asarray(cells), return_inverse=True)[1].astype(np.int64)
    return _told_apart(cells.tolist())


def count_records(n_rows: int, numbers: _I64 | None) -> int:
    """Return the number of records: of rows, or of the persons that are numbered, of whom there may be none."""
    return n_rows if numbers is None or not len(numbers) else int(numbers.max()) + 1


def by_appearance(numbers: _I64) -> _I64:
    """Return the numbers of the same persons in the order of their first rows."""
    firsts = np.unique(numbers, return_index=True)[1]
    ranks = np.empty(len(firsts), dtype=np.int64)
    ranks[np.argsort(firsts)] = np.arange(len(firsts))
    in_order: _I64 = ranks[numbers]
    return in_order


def check_columns_of_unit(known: str | None, beside: Beside) -> None:
    """Refuse rows without the persons whose ids a schema names, other persons, and one column for ids and weights."""
    persons, weights = beside
    if persons is None and known:
        raise InvalidInput(
            f"persons must be given where the schema names a column of persons, {known!r}, because a person may have "
            f"several rows: pass persons={known!r}, got persons=None"
        )
    if not isinstance(persons, str):
        return
    if known and persons != known:
        raise InvalidInput(
            f"persons must be the column of persons that the schema names, {known!r}, got persons={persons!r} (change "
            "the schema to protect others)"
        )
    if isinstance(weights, str) and persons == weights:
        raise InvalidInput(f"persons and weights must be two columns, got {persons!r} for both")


def check_no_column_of_persons(known: str, because: str) -> None:
    """Refuse a schema that names persons, for what has no place for their ids."""
    if known:
        raise InvalidInput(
            f"schema must not name a column of persons here, because {because}, got persons={known!r} (pass "
            "dataclasses.replace(schema, persons='') here, and the ids as persons= to the function that fits)"
        )


def check_index_of_persons(X: object, ids: object) -> None:
    """Refuse ids whose index is another one than that of the table."""
    if not same_index(X, ids):
        raise InvalidInput(
            "the index of persons must be that of X, got another one (persons.loc[X.index] brings the ids into the "
            "order of X; ids without an index are paired by position: persons.to_numpy())"
        )


def _cells(ids: object) -> NDArray[Any]:
    # Of a list NumPy would make one type: 1 and "1" two texts that are equal.
    if isinstance(ids, list | tuple):
        cells = np.empty(len(ids), dtype=object)
        cells[:] = ids
        return cells
    ids = taken_over("persons", ids)
    try:
        return np.asarray(decoded(ids))
    except Exception as error:  # noqa: BLE001  # whatever the conversion of another library's object raises
        failed = type(error).__name__
    # Outside of the clause: what the library says may show an id.
    raise InvalidInput(f"persons must be an array, got {type(ids).__name__}, whose conversion raises {failed}")


def _as_compared(cells: NDArray[Any]) -> NDArray[Any]:
    """Return ids as they are compared: a person's texts may differ in how a program wrote them."""
    if cells.dtype.kind not in "OTU":
        return cells
    listed = cells.tolist()
    kinds = set(map(type, listed))
    if len(kinds) != 1 or not issubclass(kinds.pop(), str):
        return cells
    texts = np.empty(len(listed), dtype=object)
    texts[:] = list(map(text_of, listed))
    if (texts == "").any():
        raise _missing()
    return texts


def _counted(offsets: NDArray[Any]) -> _I64:
    present = np.zeros(int(offsets.max()) + 1, dtype=bool)
    present[offsets] = True
    if present.all():
        return offsets
    numbers: _I64 = (np.cumsum(present, dtype=np.int64) - 1)[offsets]
    return numbers


def _told_apart(cells: list[Any]) -> _I64:
    kinds = sorted(set(map(type, cells)), key=lambda kind: kind.__name__)
    try:
        return _compared(cells, kinds)
    except InvalidInput:
        raise
    except Exception as error:  # noqa: BLE001  # whatever ids of another library raise when they are compared
        failed = type(error).__name__
    # Outside of the clause: what the library says may show an id.
    raise InvalidInput(
        f"persons must have ids that can be hashed and compared, got the type {kinds[0].__name__}, which raises "
        f"{failed}"
    )


def _compared(cells: list[Any], kinds: list[type]) -> _I64:
    # In a column of objects a gap is None, NaN or a library's own, whatever the type of the ids.
    if any(cell is None or is_nan(cell) for cell in cells) or (kinds == [float] and not all(map(np.isfinite, cells))):
        raise _missing()
    if len(kinds) > 1:
        raise InvalidInput(
            "persons must have ids of one type, because a person's ids of two types would be two persons, got the "
            f"types {[kind.__name__ for kind in kinds]}"
        )
    # What is equal only to itself, as most objects are, would make two persons of two copies of an id.
    if any(issubclass(kind, _NOT_IDS) or vars(object)["__eq__"] is kind.__eq__ for kind in kinds):
        raise InvalidInput(
            "persons must have ids whose values tell them apart, such as integers, texts and dates, got the type "
            f"{kinds[0].__name__}"
        )
    known: dict[Any, int] = {}
    return np.fromiter((known.setdefault(cell, len(known)) for cell in cells), np.int64, len(cells))


def _missing() -> InvalidInput:
    return InvalidInput("persons must have an id in every row, got a row without one (leave such rows out)")


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
