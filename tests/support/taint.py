"""Parts of a released object, value by value, and very different data behind equal public facts."""

import dataclasses
import json
import re
import warnings
from collections.abc import Mapping

import numpy as np
import scipy.sparse

import dpci

N, D = 240, 3
NAMES = ("age", "dose", "time")


def tables(n=N):
    """Return (rows, boolean labels) by name: whatever differs between them is private."""
    rng = np.random.default_rng(7)
    rows = rng.uniform(-0.5, 0.5, size=(n, D))
    labels = rows[:, 0] + rng.logistic(scale=0.2, size=n) > 0
    none, all_ = np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
    return {
        "ordinary": (rows, labels), "one class": (rows, all_), "the other class, sorted": (np.sort(rows, axis=0), none),
        "one record, n times": (np.tile(rows[:1], (n, 1)), all_), "rows of zeros": (np.zeros((n, D)), labels),
        "one column alone": (rows * [1.0, 0.0, 0.0], labels), "too long": (1e140 * np.sign(rows), labels),
        "hardly there": (np.full((n, D), 5e-324), all_), "whole numbers": (np.sign(rows).astype(np.int64), labels),
    }  # fmt: skip


# The same numbers as a fit may be given them; which of these it was is told by nothing either.
STORED = (
    lambda rows, y: (rows, y),
    lambda rows, y: (scipy.sparse.csr_array(rows), y),
    lambda rows, y: (np.asfortranarray(rows, dtype=np.float32) if np.abs(rows).max() < 1e30 else rows, y),
    lambda rows, y: (rows.tolist(), y),
    lambda rows, y: (dpci.Chunks([(rows, y)]), None),
    lambda rows, y: (dpci.Chunks([(rows[k::5], y[k::5]) for k in range(5)]), None),
)


# Of a moment matrix: the coefficients of the residuals and their cap follow from the released one.
OF_THE_MATRIX = (
    r"\.(matrix|residuals(\.None|\[\d+\])\.(point|moments))\[\d+\](\[\d+\])?",
    r"\.(steps|seals)\.residual_moments(\.\w+)*",
)


def moment_matrix(X, y, **given):
    y = None if y is None else 1.0 * np.asarray(y)
    return dpci.regression.release(X, y, budget=dpci.ApproxDP(4.0, 1e-6), robust=True, rows="clip", **given)


def leaves(value, path=""):
    """Return every plain value within an object by its path, with its type."""
    if value is None or isinstance(value, bool | int | float | str | bytes | np.generic | type):
        return {path: (type(value).__name__, repr(value))}
    if isinstance(value, Mapping):
        children = [(f"{path}.{name}", each) for name, each in value.items()]
    elif isinstance(value, list | tuple | set | frozenset):
        children = [(f"{path}[{k}]", each) for k, each in enumerate(value)]
    elif isinstance(value, np.ndarray):
        children = [(f"{path}[{k}]", each) for k, each in enumerate(value.ravel().tolist())]
        children.append((f"{path}.type", f"{value.dtype} {value.shape}"))
    elif dataclasses.is_dataclass(value):
        children = [(f"{path}.{each.name}", getattr(value, each.name)) for each in dataclasses.fields(value)]
    else:
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()) if name[:2] != "__"]
        inside = {**{name: getattr(value, name) for name in slots}, **getattr(value, "__dict__", {})}
        if not inside:
            raise TypeError(f"nothing is known of {type(value)} at {path}")
        children = [(f"{path}.{name}", each) for name, each in inside.items()]
    found = {path: (type(value).__name__, str(len(children)))}
    for name, child in children:
        found |= leaves(child, name)
    return found


def record_of(released):
    """The JSON of a released object, steps and seals under their names, whose places change with those released.

    Without checksums, which reading the JSON again shows to be functions of the rest.
    """
    return _without_checksums(_by_name(json.loads(released.to_json())))


def _without_checksums(value):
    if isinstance(value, dict):
        return {name: _without_checksums(each) for name, each in value.items() if name != "checksum"}
    return [_without_checksums(each) for each in value] if isinstance(value, list) else value


def state(model):
    """Content of a fitted estimator, its results as their records."""
    kept = dict(vars(model))
    for name in ("result_", "best_estimator_"):
        if name in kept:
            kept[name] = record_of(kept[name]) if name == "result_" else state(kept[name])
    return kept


def _by_name(value):
    if isinstance(value, dict):
        return {name: _by_name(each) for name, each in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        named = [each.get("step", each.get("release")) for each in value]
        if len(set(named)) == len(named):
            return dict(zip(named, value, strict=True))
    return value


def differing(objects):
    """Return the paths, with the values, at which not all objects are the same."""
    maps = [leaves(each) for each in objects]
    paths = dict.fromkeys(path for each in maps for path in each)
    found = {path: [each.get(path) for each in maps] for path in paths}
    return {path: values for path, values in found.items() if len(set(values)) > 1}


def tainted(objects, allowed):
    """Return what differs between objects and may not: ``allowed`` are patterns of whole paths."""
    return {path: values for path, values in differing(objects).items() if not re.fullmatch("|".join(allowed), path)}


def quietly(call):
    """Return what a call returns, and its warnings but for those that tell of released numbers only."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        value = call()
    told = [f"{each.category.__name__}: {each.message}" for each in caught]
    of_released = ("MomentNoiseWarning", "CurvatureWarning", "CommonLevelWarning", "FarRowsWarning")
    return value, [each for each in told if not each.startswith(of_released)]


def drawn(axes):
    """The texts and the curves of a plot."""
    from matplotlib.lines import Line2D  # noqa: PLC0415  # optional
    from matplotlib.text import Text  # noqa: PLC0415  # optional

    figure = axes.figure
    return [text.get_text() for text in figure.findobj(Text)], [line.get_xydata() for line in figure.findobj(Line2D)]
