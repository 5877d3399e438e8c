"""Saved files whose numbers no release can have: equal names, halves of a matrix that differ, numbers without end."""

import json
import warnings

import numpy as np
import pytest

from dpci.errors import InvalidInput
from support.approved import KINDS, made
from support.forged import changed, failures
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")

EXACT = ("hessian", "matrix", "moments")
"""Released matrices whose noise is drawn once for both halves, and from which nothing is subtracted."""


def saved(kind):
    result, _ = made(
        kind, "approx" if kind == "report" else "zcdp", "add_remove" if kind == "report" else "replace_one"
    )
    return type(result), json.loads(result.to_json())


def places(node, wanted, prefix=()):
    """Yield the places of the values of a document that are called so; a matrix within it may be text."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in wanted and isinstance(value, list):
            yield (*prefix, key)
        elif isinstance(value, dict | list) and key != "table":
            yield from places(value, wanted, (*prefix, key))


def found(values, place):
    for key in place:
        values = values[key]
    return values


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_different_and_matrices_symmetric_to_the_last_bit(kind):
    read, values = saved(kind)
    assert read.from_json(rewritten(values)).to_json() == rewritten(values)
    for place in places(values, ("names", "columns")):
        if place[0] == "release" or len(found(values, place)) < 2:
            continue
        first = found(values, place)[0]
        with pytest.raises(InvalidInput):
            read.from_json(rewritten(changed(values, (*place, 1), first)))
    for place in places(values, EXACT):
        entry = found(values, place)[0][1]
        with pytest.raises(InvalidInput, match=r"must be symmetric, got .* at \(0, 1\) and .* at \(1, 0\)"):
            read.from_json(rewritten(changed(values, (*place, 0, 1), float(np.nextafter(entry, np.inf)))))


def test_equal_names_are_refused_however_they_were_typed():
    read, values = saved("fit")
    for names in (["x0", "x0"], ["\u00e9", "e\u0301"]):
        with pytest.raises(InvalidInput, match=r"names of parameters in a saved fit must differ, got '.*' twice"):
            read.from_json(rewritten({**values, "names": [*names, *values["names"][2:]]}))


@pytest.mark.parametrize("kind", ["fit", "output", "ball", "report", "multinomial", "matrix", "strata"])
@pytest.mark.parametrize("size", [1e200, 1e300, -1.7e308])
def test_numbers_that_overflow_are_found_without_a_warning(kind, size):
    read, values = saved(kind)
    for place in places(values, ("params", "gradient_cov", "hessian", "matrix")):
        with warnings.catch_warnings(action="error", category=RuntimeWarning):
            numbers = found(values, place)
            at = (*place, 0, 0) if isinstance(numbers[0], list) else (*place, 0)
            try:
                failed = failures(read.from_json(rewritten(changed(values, at, size))))
            except InvalidInput:
                continue
        # Every number so large is a multiple of the step. The matrices give it away, which the fit of a report lacks.
        assert failed or place[-1] != "params" or kind == "report"
