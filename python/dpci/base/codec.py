"""Saved objects: JSON from the fields of a frozen dataclass, and back by the fields' types. A file can hold anything.

The annotation of a field is its rule: ``float`` is a finite number, ``Positive`` one above zero, ``Literal["a", "b"]``
one of two texts, ``tuple[Step, ...]`` a list of objects with the fields of ``Step``. ``Annotated[T, check]`` calls
``check(name, value)``; ``Annotated[T, Form(write, read)]`` has a form of its own.
"""

import hashlib
import json
import math
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import (
    broken,
    check_choice,
    check_count,
    check_finite,
    check_flag,
    check_not_negative,
    check_positive,
    check_real,
    check_reals,
)
from dpci.errors import InvalidInput

DIFFERENT = "different_contents"
"""The code of the error for a saved object that does not match its hash."""
Rule = Callable[[str, Any], Any]
"""Takes the name and the value of a field; returns the value in one plain type, or raises ``InvalidInput``."""

_HINTS: dict[type[Any], dict[str, Any]] = {}
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
# Characters of a foreign name that a message shows.
_LONGEST = 60


class Form(NamedTuple):
    """Form of a field in a file."""

    write: Callable[[Any], Any]
    read: Rule


def formed(pattern: str, rule: str) -> Rule:
    """Return the rule that a field is text of this pattern; ``rule`` says so in words."""
    form = re.compile(pattern, re.ASCII)

    def check(name: str, value: object) -> str:
        if form.fullmatch(text := check_text(name, value)) is None:
            raise InvalidInput(f"{name} must be {rule}, got {name}={text[:_LONGEST]!r}")
        return text

    return check


def check_text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise broken(name, "text", value)
    return value


def has_fields(name: str, value: object, *fields_: str) -> dict[str, Any]:
    """Return an object with these fields and no other."""
    if not isinstance(value, dict) or set(value) != set(fields_):
        raise InvalidInput(f"{name} must have the fields {', '.join(fields_)} and no other, got {name}={value!r}")
    return value


def check_interval(name: str, value: object) -> tuple[float, float]:
    """Return (lower, upper), finite and increasing."""
    lower, upper = check_reals(name, value, 2)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise broken(name, "finite and increasing", value)
    return lower, upper


def _check_number(name: str, value: object) -> float:
    if not math.isfinite(number := check_real(name, value)):
        raise InvalidInput(f"{name} must be finite, got {name}={number}")
    return number


def _check_array(name: str, value: object) -> NDArray[np.float64]:
    return check_finite(name, np.atleast_1d(np.array(value, dtype=np.float64)))


Positive = Annotated[float, check_positive]
NotNegative = Annotated[float, check_not_negative]
Version = Annotated[str, formed(r"\d[\w.+!-]{0,59}", "the version of a program")]
_PLAIN: dict[object, Rule] = {
    bool: check_flag,
    str: check_text,
    int: check_count,
    float: _check_number,
    NDArray[np.float64]: _check_array,
}


def saved_text(values: Mapping[str, Any], *, schema: str, version: int) -> str:
    """Return an object as JSON, with the two fields that name its schema and the checksum of all its contents."""
    document = {"schema": schema, "schema_version": version, **values}
    return json.dumps({**document, "checksum": checksum(document)}, allow_nan=False)


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of what a document says, however it is written: it finds damage, not a forger."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def _parsed(text: str | bytes, *, what: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_fields_once)
    except (TypeError, ValueError, RecursionError) as error:
        if isinstance(text, PathLike) or (isinstance(text, str) and text.rstrip().endswith((".json", ".JSON"))):
            raise InvalidInput(
                f"{what} must be JSON text, got the path {str(text)!r} (dpci.load(path) reads it)"
            ) from None
        raise InvalidInput(f"{what} must be JSON, got {error}") from error


def _contents(values: object, *, what: str, schema: str, version: int) -> dict[str, Any]:
    if not isinstance(values, dict) or values.get("schema") != schema:
        other = values.get("schema") if isinstance(values, dict) else None
        got = f"schema={other[:_LONGEST]!r}" if isinstance(other, str) else "no schema"
        raise InvalidInput(f"{what} must be a JSON object with schema={schema!r}, got {got}")
    found = values.get("schema_version")
    if type(found) is not int or found != version:
        raise InvalidInput(f"{what} must have schema_version={version}, got schema_version={found!r}")
    contents = {name: value for name, value in values.items() if name != "checksum"}
    if values.get("checksum") != checksum(contents):
        rule = f"{what} must match its hash, got different contents (the file is damaged or was edited)"
        raise InvalidInput(rule, code=DIFFERENT)
    return {name: value for name, value in contents.items() if name not in {"schema", "schema_version"}}


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object: of one that comes twice a reader may see the other value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice[:_LONGEST]!r} twice in one object")
    return found


def plain_fields(value: Any) -> dict[str, Any]:  # noqa: ANN401  # any dataclass
    """Return the fields of a dataclass as JSON can hold them; floats survive exactly."""
    hints = _hints(type(value))
    return {part.name: _written(hints[part.name], getattr(value, part.name)) for part in fields(value)}


def from_fields(kind: type[Any], name: str, values: object, rules: Mapping[str, Rule] | None = None) -> Any:  # noqa: ANN401  # an instance of the kind
    """Return the dataclass whose fields a file holds, each by the rule of its type.

    ``rules``: those of fields that differ from the rules of their types.
    """
    hints = _hints(kind)
    names = [part.name for part in fields(kind)]
    if not isinstance(values, dict):
        raise broken(name, "an object", values)
    missing = [field for field in names if field not in values]
    if missing or len(values) > len(names):
        unknown = next((field for field in values if field not in names), "")
        got = f"none called {missing[0]!r}" if missing else f"{unknown[:_LONGEST]!r} too"
        raise InvalidInput(f"{name} must hold every field of its schema and no other, got {got}")
    own = rules or {}
    try:
        read = {
            field: own[field](field, values[field]) if field in own else _read(hints[field], field, values[field])
            for field in names
        }
        return kind(**read)
    except InvalidInput:
        raise
    except _UNREADABLE as error:
        raise InvalidInput(f"{name} must hold every field of its schema, got {error!r}") from error


def _hints(kind: type[Any]) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind, include_extras=True)
    return _HINTS[kind]


def _read(hint: Any, name: str, value: Any) -> Any:  # noqa: ANN401  # any type, any value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        rule = arguments[1]
        return (rule.read if isinstance(rule, Form) else rule)(name, value)
    if origin in {Union, types.UnionType}:
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else _read(inner, name, value)
    if origin is Literal:
        return check_choice(name, value, arguments)
    if origin in {tuple, Sequence}:
        if not isinstance(value, list):
            raise broken(name, "a list", value)
        return tuple(_read(arguments[0], name, entry) for entry in value)
    if hint in _PLAIN:
        return _PLAIN[hint](name, value)
    return hint.from_dict(value) if hasattr(hint, "from_dict") else from_fields(hint, name, value)


def _written(hint: Any, value: Any) -> Any:  # noqa: ANN401  # as above
    if value is None:
        return None
    if get_origin(hint) in {Union, types.UnionType}:
        (hint,) = (argument for argument in get_args(hint) if argument is not types.NoneType)
    if get_origin(hint) is Annotated and isinstance(form := get_args(hint)[1], Form):
        return form.write(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        inner = get_args(hint)[0] if get_origin(hint) in {tuple, Sequence} else None
        return [_written(inner, entry) for entry in value]
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return plain_fields(value) if is_dataclass(value) else value


@dataclass(frozen=True, kw_only=True, eq=False)
class Saved:
    """A frozen dataclass that is saved as JSON. Arrays are copied and read-only."""

    KIND: ClassVar[str]
    """The name of the kind in its file."""
    WHAT: ClassVar[str]
    """The kind in messages."""
    VERSION: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for part in fields(self):
            if isinstance(value := getattr(self, part.name), np.ndarray):
                object.__setattr__(self, part.name, read_only(value))

    def to_json(self) -> str:
        """Return the record as JSON; floats survive exactly."""
        return saved_text(plain_fields(self), schema=self.KIND, version=self.VERSION)

    def to_dict(self) -> dict[str, Any]:
        """Return what the JSON says, as a part of another document."""
        document: dict[str, Any] = json.loads(self.to_json())
        return document

    @classmethod
    def from_json(cls, text: str | bytes, *, rules: Mapping[str, Rule] | None = None) -> Self:
        """Rebuild a record from :meth:`to_json`; ``rules`` as for :func:`from_fields`."""
        return cls.from_dict(_parsed(text, what=cls.WHAT), rules=rules)

    @classmethod
    def from_dict(cls, values: object, *, rules: Mapping[str, Rule] | None = None) -> Self:
        """Rebuild a record from :meth:`to_dict`, as :meth:`from_json` does."""
        contents = _contents(values, what=cls.WHAT, schema=cls.KIND, version=cls.VERSION)
        found: Self = from_fields(cls, cls.WHAT, contents, rules)
        found.check()
        return found

    def check(self) -> None:
        """Refuse fields that are legal alone, and together are of no possible release: a file can hold them."""

    @property
    def digest(self) -> str:
        """SHA-256 of all that :meth:`to_json` says, which is the checksum in it; the ledger that paid holds it too."""
        return str(self.to_dict()["checksum"])


def read_only(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy that cannot be changed."""
    values = np.array(values, dtype=np.float64)
    values.flags.writeable = False
    return values
