"""Rules for the fields of saved records: a file can hold anything."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from math import frexp, isclose, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.seals import Seal
from dpci.accounting.steps import Step
from dpci.base.validation import broken, check_choice, check_count, check_positive, check_real, check_reals
from dpci.data.arrays import check_finite
from dpci.data.labels import Classes, check_classes
from dpci.errors import InvalidInput
from dpci.schema.table import Schema

_Record = TypeVar("_Record")
# Characters of a foreign name that a message shows.
_LONGEST = 60
_LEDGER = re.compile("[0-9a-f]{32}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_VERSION = re.compile(r"\d[\w.+!-]{0,59}", re.ASCII)

DIFFERENT = "different_contents"
"""The code of the error for a saved object that does not match its hash."""
Rule = Callable[[str, Any], Any]
"""Takes the name and the value of a field; returns the value in one plain type, or raises ``InvalidInput``."""


def saved_text(values: Mapping[str, Any], *, schema: str, version: int) -> str:
    """Return an object as JSON, with the two fields that name its schema and the checksum of all its contents."""
    document = {"schema": schema, "schema_version": version, **values}
    return json.dumps({**document, "checksum": checksum(document)}, allow_nan=False)


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of what a document says, however it is written: it finds damage, not a forger."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"


def read_saved(text: str | bytes, *, what: str, schema: str, version: int) -> dict[str, Any]:
    """Return the fields of a saved object, without those that name its schema and its checksum.

    Raises
    ------
    InvalidInput
        If the text is not a JSON object of this schema and version, or does not match its checksum. ``what`` names the
        expected object in the message.
    """
    try:
        values = json.loads(text, object_pairs_hook=_fields_once)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} must be JSON, got {error}") from error
    if not isinstance(values, dict) or values.get("schema") != schema:
        other = values.get("schema") if isinstance(values, dict) else None
        got = f"schema={other[:_LONGEST]!r}" if isinstance(other, str) else "no schema"
        raise InvalidInput(f"{what} must be a JSON object with schema={schema!r}, got {got}")
    found = values.get("schema_version")
    if type(found) is not int or found != version:
        raise InvalidInput(f"{what} must have schema_version={version}, got schema_version={found!r}")
    if values.pop("checksum", None) != checksum(values):
        rule = f"{what} must match its hash, got different contents (the file is damaged or was edited)"
        raise InvalidInput(rule, code=DIFFERENT)
    return {name: value for name, value in values.items() if name not in {"schema", "schema_version"}}


def _fields_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of an object: of one that comes twice a reader may see the other value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice[:_LONGEST]!r} twice in one object")
    return fields


def built(kind: Callable[..., _Record], values: dict[str, Any], rules: Mapping[str, Rule], *, what: str) -> _Record:
    """Return the record of a saved object, every field by its rule.

    Raises
    ------
    InvalidInput
        For a field that is missing, unknown or breaks its rule; ``what`` names the object.
    """
    try:
        for name, rule in rules.items():
            values[name] = rule(name, values[name])
        return kind(**values)
    except InvalidInput:
        raise
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{what} must hold every field of its schema, got {error!r}") from error


def steps_by(rules: Mapping[str, Rule], *, least: int = 0) -> Rule:
    """Return the rule that a field is a list of steps, at least so many, each of which obeys these rules."""

    def check(name: str, value: object) -> tuple[Step, ...]:
        if not isinstance(value, list) or len(value) < least:
            at_least = " of at least one step" if least else ""
            raise broken(name, f"a list{at_least}", value)
        steps = tuple(Step.from_mapping(step) for step in value)
        for step in steps:
            for part, rule in rules.items():
                rule(f"{name}.{part}", getattr(step, part))
        return steps

    return check


def saved_table(table: Schema | None) -> dict[str, Any] | None:
    """Return a schema as a record is saved with it: with all fields, so that no default changes what it says."""
    if table is None:
        return None
    return {"digest": table.digest, "schema": table.to_dict(defaults=True)}


def check_table(name: str, value: object) -> Schema:
    """Return the schema of :func:`saved_table`."""
    if not isinstance(value, dict) or set(value) != {"digest", "schema"}:
        raise InvalidInput(f"{name} must have the fields 'digest' and 'schema' and no other, got {name}={value!r}")
    schema = Schema.from_dict(value["schema"])
    if schema.digest != value["digest"]:
        raise InvalidInput(f"{name} must have the digest of its schema, {schema.digest}, got {value['digest']!r}")
    return schema


def check_paid(name: str, value: object) -> dict[str, Any]:
    """Return which entry of which ledger paid."""
    if not isinstance(value, dict) or set(value) != {"ledger", "entry", "time"}:
        raise InvalidInput(f"{name} must have the fields 'ledger', 'entry' and 'time' and no other, got {value!r}")
    return {
        "ledger": _check_form(f"{name}.ledger", value["ledger"], _LEDGER, "32 hexadecimal digits"),
        "entry": check_count(f"{name}.entry", value["entry"]),
        "time": _check_form(f"{name}.time", value["time"], _TIME, "a UTC time as ledgers write it"),
    }


def check_version(name: str, value: object) -> str:
    """Return the version of dpci that made a release."""
    return _check_form(name, value, _VERSION, "the version of a program")


def _check_form(name: str, value: object, form: re.Pattern[str], rule: str) -> str:
    if form.fullmatch(text := check_text(name, value)) is None:
        raise InvalidInput(f"{name} must be {rule}, got {name}={text[:_LONGEST]!r}")
    return text


def one_of(*choices: str) -> Rule:
    """Return the rule that a field holds one of these texts."""
    return lambda name, value: check_choice(name, value, choices)


def optional(rule: Rule) -> Rule:
    """Return the rule that a field is None or obeys another one."""
    return lambda name, value: None if value is None else rule(name, value)


def check_text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise broken(name, "text", value)
    return value


def check_array(name: str, value: object) -> NDArray[np.float64]:
    """Return a finite array of at least one dimension."""
    return check_finite(name, np.atleast_1d(np.array(value, dtype=np.float64)))


def check_names(name: str, value: object) -> tuple[str, ...]:
    """Return texts."""
    if not isinstance(value, list):
        raise broken(name, "a list of texts", value)
    return tuple(check_text(name, entry) for entry in value)


def check_interval(name: str, value: object) -> tuple[float, float]:
    """Return (lower, upper), finite and increasing."""
    lower, upper = check_reals(name, value, 2)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise broken(name, "finite and increasing", value)
    return lower, upper


def check_labels(name: str, value: object) -> Classes:
    """Return (negative, positive)."""
    classes = check_classes(value)
    for label in classes:
        # An integer may be too great to be compared with targets.
        if not isinstance(label, str) and math.isinf(number := check_real(name, label + 0)):
            raise InvalidInput(f"{name} must be within the range of floats, got {number}")
    return classes


_UNITS = (("epsilon",), ("rho",), ("epsilon", "delta"))


def check_seals(name: str, value: object) -> tuple[Seal, ...]:
    """Return the seals of a saved record.

    Raises
    ------
    InvalidInput
        For anything that no seal is.
    """
    if not isinstance(value, list):
        raise broken(name, "a list", value)
    seals = tuple(Seal.from_mapping(seal) for seal in value)
    for seal in seals:
        for part, rule in _RULES.items():
            rule(f"{name}.{part}", getattr(seal, part))
        if frexp(seal.lattice)[0] != 0.5:
            raise InvalidInput(f"{name}.lattice must be a power of two, got {seal.lattice!r}")
        width = seal.scale * seal.lattice * (sqrt(2.0) if seal.noise == "discrete_laplace" else 1.0)
        if not isclose(seal.std_dev, width, rel_tol=1e-9):
            raise InvalidInput(f"{name}.std_dev must be that of the noise, {width!r}, got {seal.std_dev!r}")
    return seals


def _check_cost(name: str, value: object) -> object:
    if not isinstance(value, dict) or tuple(value) not in _UNITS:
        raise InvalidInput(f"{name} must have one of the parameters {_UNITS}, got {name}={value!r}")
    for unit, cost in value.items():
        check_positive(f"{name}.{unit}", cost)
    return value


_RULES: dict[str, Rule] = {
    "release": one_of(
        "params",
        "hessian",
        "gradient_cov",
        "gradient",
        "polynomial",
        "the histogram",
        "score",
        "moment_matrix",
        "residual_moments",
        "residual_levels",
        "residual_gradient",
    ),
    "noise": one_of("discrete_laplace", "discrete_gaussian"),
    "lattice": check_positive,
    "scale": check_count,
    "distance": check_positive,
    "std_dev": check_positive,
    "cost": _check_cost,
}
