"""Rules for the fields of saved records: a file can hold anything."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpci.arrays import check_finite
from dpci.errors import InvalidInput
from dpci.labels import Classes, check_classes
from dpci.validation import check_choice, check_real, check_reals

Rule = Callable[[str, Any], Any]
"""Takes the name and the value of a field; returns the value in one plain type, or raises ``InvalidInput``."""


def one_of(*choices: str) -> Rule:
    """Return the rule that a field holds one of these texts."""
    return lambda name, value: check_choice(name, value, choices)


def optional(rule: Rule) -> Rule:
    """Return the rule that a field is None or obeys another one."""
    return lambda name, value: None if value is None else rule(name, value)


def check_text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, got {name}={value!r}")
    return value


def check_array(name: str, value: object) -> NDArray[np.float64]:
    """Return a finite array of at least one dimension."""
    return check_finite(name, np.atleast_1d(np.array(value, dtype=np.float64)))


def check_names(name: str, value: object) -> tuple[str, ...]:
    """Return texts."""
    if not isinstance(value, list):
        raise InvalidInput(f"{name} must be a list of texts, got {name}={value!r}")
    return tuple(check_text(name, entry) for entry in value)


def check_interval(name: str, value: object) -> tuple[float, float]:
    """Return (lower, upper), finite and increasing."""
    lower, upper = check_reals(name, value, 2)
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise InvalidInput(f"{name} must be finite and increasing, got {name}={value!r}")
    return lower, upper


def check_labels(name: str, value: object) -> Classes:
    """Return (negative, positive)."""
    classes = check_classes(value)
    for label in classes:
        # An integer may be too great to be compared with targets.
        if not isinstance(label, str) and math.isinf(number := check_real(name, label + 0)):
            raise InvalidInput(f"{name} must be within the range of floats, got {number}")
    return classes
