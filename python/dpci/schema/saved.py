"""Schemas as plain dictionaries, as files hold them: every field by its name."""

import dataclasses
import json
from abc import abstractmethod
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

from dpci.base.reading import open_at_once
from dpci.base.validation import in_short
from dpci.errors import InvalidInput
from dpci.schema.columns import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    Column,
    Gap,
    NumericColumn,
    NumericTarget,
    Target,
    UnboundedColumn,
    UnboundedTarget,
    UnlistedColumn,
)
from dpci.schema.terms import Term
from dpci.shown.displayed import Displayed

_Part = TypeVar("_Part")


class FileSchema(Displayed):
    """A schema that files hold."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self, *, defaults: bool = False) -> dict[str, Any]:
        """Plain dictionary of the fields."""

    def to_file(self, path: str | PathLike[str]) -> None:
        """Write a ``.json`` file that `from_file` reads: the schema to agree on; one that exists is replaced."""
        path = Path(path)
        if path.suffix != ".json":
            raise InvalidInput(f"the file of a schema that is written must end in .json, got {str(path)!r}")
        path.write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Self:
        """Return the schema of a ``.toml`` or ``.json`` file."""
        found: Self = described_by(cls, read_file(path))
        return found


_KINDS: dict[str, type[Column | Gap]] = {
    "numeric": NumericColumn,
    "categorical": CategoricalColumn,
    "unbounded": UnboundedColumn,
    "unlisted": UnlistedColumn,
}


def fields_of(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a schema from those of a dictionary as TOML or JSON gives it."""
    entries = _as_mapping("a schema", description)
    if isinstance(entries.get("schema"), str):
        raise InvalidInput(
            "a schema must be the description of a table, got a saved result (use dpci.load(path).schema, the schema "
            "in it)"
        )
    for required in ("target", "columns"):
        if required not in entries:
            raise InvalidInput(f"a schema must have {required!r}, got {sorted(entries)}")
    target = _as_mapping("the target", entries.pop("target"))
    kind = target.pop("kind", None)
    if kind not in {None, "unbounded"}:
        raise InvalidInput(f"kind of the target must be 'unbounded' or left out, got {kind!r}")
    columns = _as_list("columns", entries.pop("columns"))
    kinds: dict[str, type[Target]] = {"lower": NumericTarget, "classes": CategoricalTarget}
    target_kind: type[Target | UnboundedTarget] = next(
        (kind for field, kind in kinds.items() if field in target), ClassTarget
    )
    target_kind = UnboundedTarget if kind == "unbounded" else target_kind
    if "terms" in entries:
        entries["terms"] = tuple(map(Term.from_dict, _as_list("terms", entries["terms"])))
    return {
        **entries,
        "target": build(target_kind, "the target", target),
        "columns": tuple(_build_column(_as_mapping("a column", column)) for column in columns),
    }


def described_by(kind: Any, description: Mapping[str, Any]) -> Any:  # noqa: ANN401  # Schema or PartialSchema
    """Return the schema of a dictionary as TOML or JSON gives it, with the model of its formula if it has one."""
    fields = fields_of(description)
    formula = fields.pop("formula", None)
    found = build(kind, "a schema", fields)
    if formula is None:
        return found
    if found.terms or not found.intercept:
        raise InvalidInput("a schema must have terms and intercept, or a formula, got both")
    return kind.from_formula(formula, found)


def build(kind: type[_Part], what: str, fields: Mapping[str, Any]) -> _Part:
    """Return an object of these fields, or say which of them are missing or unknown."""
    known = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # all are dataclasses
    if extra := sorted(set(fields) - set(known)):
        raise InvalidInput(f"{what} may have the fields {list(known)}, got {extra}")
    required = {name for name, field in known.items() if field.default is dataclasses.MISSING}
    if missing := sorted(required - set(fields)):
        raise InvalidInput(f"{what} must have {missing}, got {sorted(fields)}")
    return kind(**fields)


def plain_column(column: Column | Gap, *, defaults: bool) -> dict[str, Any]:
    """Return a column as a dictionary with its kind."""
    kinds = {kind: name for name, kind in _KINDS.items()}
    return {"kind": kinds[type(column)], **plain(column, defaults=defaults)}


def plain(part: Column | Gap | Target | UnboundedTarget, *, defaults: bool = False) -> dict[str, Any]:
    """Return the fields of a column or a target; those at their defaults only if asked for."""
    values = {field.name: (getattr(part, field.name), field.default) for field in dataclasses.fields(part)}
    return {name: _as_lists(value) for name, (value, default) in values.items() if defaults or value != default}


def _as_lists(value: Any) -> Any:  # noqa: ANN401  # a field
    return [_as_lists(each) for each in value] if isinstance(value, tuple) else value


def essential(part: Column | Target) -> dict[str, Any]:
    """Return the fields of a column or a target that decide what it does, but for defaults; 1 and 1.0 are one bound."""
    kept = {name: value for name, value in plain(part).items() if name not in {"source", "unit", "per"}}
    return {name: float(value) if isinstance(value, int) else value for name, value in kept.items()}


def read_file(path: str | PathLike[str]) -> Any:  # noqa: ANN401  # a file can hold anything
    """Return what a ``.toml`` or ``.json`` file holds."""
    import tomllib  # noqa: PLC0415  # most programs read no such file

    path = Path(path)
    readers = {".toml": tomllib.loads, ".json": json.loads}
    if path.suffix not in readers:
        raise InvalidInput(f"a schema file must end in .toml or .json, got {str(path)!r}")
    try:
        with open_at_once(path) as file:
            return readers[path.suffix](file.read().decode("utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"a schema file must be readable, got {str(path)!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        found = f"byte {error.object[error.start]:#04x} in line {line} of {path}"
        message = f"a schema file must be encoded as UTF-8, got {found} (save it as UTF-8 in the editor)"
        raise InvalidInput(message) from error
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"a schema file must be valid {path.suffix[1:].upper()}, got {path}: {error}") from error


def _build_column(fields: dict[str, Any]) -> Column | Gap:
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidInput(f"kind of column {fields.get('name')!r} must be one of {list(_KINDS)}, got {kind!r}")
    return build(_KINDS[kind], f"column {fields.get('name')!r}", fields)


def _as_mapping(what: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must be a table of fields, got {in_short(value)}")
    return dict(value)


def _as_list(what: str, value: object) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{what} must be a list of tables, got {in_short(value)}")
    return list(value)
