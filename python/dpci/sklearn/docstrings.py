"""Docstrings of estimators, with the parameters of all base classes, and advice on names that they do not have."""

import re
from collections.abc import Iterable
from inspect import cleandoc
from typing import TypeVar

from dpci.base.habits import ESTIMATORS
from dpci.base.validation import advised_class

_Class = TypeVar("_Class", bound=type)

_SECTION = re.compile(r"^(Parameters|Attributes)\n-+\n((?:(?:\w.* : .*| +.*)?(?:\n|\Z))*)", re.MULTILINE)
_ENTRY = re.compile(r"^\w+ : .*(?:\n+ +.*)*", re.MULTILINE)
_HEADING = re.compile(r"^\w+\n-+$", re.MULTILINE)


def described(kind: _Class) -> _Class:
    """Give a class, as its decorator, the descriptions in all its base classes, and a constructor that advises."""
    if kind.__doc__ is not None:  # python -OO leaves no docstring
        kind.__doc__ = merged(cleandoc(base.__dict__.get("__doc__") or "") for base in reversed(kind.__mro__))
    advised_class(kind, ESTIMATORS)
    return kind


def merged(docstrings: Iterable[str]) -> str:
    """Return the last docstring with the entries of all; a later description of a name replaces an earlier one."""
    sections: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    last = ""
    for last in docstrings:
        for heading, entries in _SECTION.findall(last):
            sections[heading] |= {entry.split(" : ")[0]: entry for entry in _ENTRY.findall(entries)}
    last = _SECTION.sub("", last)
    found = _HEADING.search(last)
    at = found.start() if found else len(last)
    parts = [last[:at].rstrip()]
    parts += [f"{heading}\n{'-' * len(heading)}\n" + "\n".join(known.values()) for heading, known in sections.items()]
    return "\n\n".join([*parts, last[at:]]).rstrip() + "\n"
