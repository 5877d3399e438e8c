"""Public objects name the module from which users import them, so that pickles and messages name no inner file."""

import inspect
import sys
from collections.abc import Iterable


def name_publicly(module: str, names: Iterable[str], *, home: str | None = None) -> None:
    """Let the classes and functions that a public module exports say that they are its own; they are in `home`."""
    found = vars(sys.modules[home or module])
    for name in names:
        value = found.get(name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith(f"{module}."):
            value.__module__ = module
