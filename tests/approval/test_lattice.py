"""Saved files whose numbers no release can have: off their lattices, contradictions, numbers without end."""

import json
import warnings

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from support.approved import KINDS, REAL, WEIGHTS, X, Y, made, opened
from support.commands import ran
from support.forged import changed, failures
from support.keywords import assembled
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")

MUST = "released numbers must be multiples of the step of the lattice of their seal, got"
RELEASES = ("residual_levels", "residual_gradient")
ARRAYS = ("params", "hessian", "gradient_cov", "gradient", "levels", "matrix", "moments")


def sealed(node, prefix=()):
    """Yield the places of the released arrays of a document."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key in ARRAYS and isinstance(value, list):
            yield (*prefix, key)
        elif isinstance(value, dict | list) and key != "table":
            yield from sealed(value, (*prefix, key))


def lattices(node):
    """Yield the steps of all lattices of a document."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if key == "lattice":
            yield value
        elif isinstance(value, dict | list):
            yield from lattices(value)


def first_of(values, place):
    """Return the place of the first number of an array, and that number."""
    for key in place:
        values = values[key]
    place = (*place, 0)
    return ((*place, 0), values[0][0]) if isinstance(values[0], list) else (place, values[0])


# Bounds are chosen in whole numbers.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("bounds")])
def test_a_number_off_its_lattice_is_found(kind):
    notion, neighbors = ("approx", "add_remove") if kind == "report" else ("zcdp", "replace_one")
    result, values = opened(kind, notion, neighbors)
    if "release" in values:  # the document of a regression holds that of its matrix as text
        result = dpci.regression.MomentMatrix.of(result)
        values = json.loads(result.to_json())
    assert failures(result) == []
    places = list(sealed(values))
    least = min(lattices(values))
    assert places
    for place in places:
        first, number = first_of(values, place)
        forged = rewritten(changed(values, first, number + 0.5 * least))
        failed = failures(type(result).from_json(forged))
        assert any(what.startswith(MUST) for what in failed), (place, failed)


@pytest.mark.parametrize("chosen", [
    {"mechanism": dpci.OutputPerturbation(project=True), "radius": 0.05},
    {"mechanism": dpci.OutputPerturbation(project=True), "radius": 50.0},
    {"mechanism": "output", "radius": 0.05}, {"radius": 0.05},
    {"radius": 0.2, "neighbors": dpci.AddRemove(300)},
    {"moments": "separate"}, {"calibration": "paper", "moments": "separate"},
    {"mechanism": dpci.ObjectivePerturbation(variant="cms11")},
    {"intercept": True}, {"weights": dpci.Weights(WEIGHTS, bound=2.5), "radius": 0.1},
    {"loss": "squared", "radius": 1},
    {"budget": dpci.ZCDP(1e4)}, {"budget": dpci.PureDP(0.01), "l2_strength": 30.0},
], ids=str)  # fmt: skip
def test_no_release_is_off_its_lattice(chosen):
    choices = {"budget": dpci.PureDP(3.0), "l2_strength": 0.1, **chosen}
    if "loss" not in choices:
        choices["classes"] = (False, True)
    with warnings.catch_warnings(action="ignore"):
        for _ in range(5):
            result = dpci.fit(X, REAL if "loss" in choices else Y, **assembled(**choices))
            assert failures(result) == []
            assert failures(dpci.PrivateFit.from_json(result.to_json())) == []


def test_what_a_seeded_file_looks_like_is_said(tmp_path, capsys):
    result = dpci.fit(X, Y, budget=dpci.PureDP(1.0), l2_strength=0.2, classes=(False, True), seed=1)
    path = tmp_path / "model.json"
    path.write_text(result.to_json())
    assert "its noise came from a seed: NOT PRIVATE" in ran(capsys, "verify", path, code=1).out
    values = json.loads(result.to_json())
    path.write_text(rewritten({**values, "private": True}))
    shown = ran(capsys, "verify", path).out
    assert "not shown    that no seed was given: a seeded file looks the same once its field 'private'" in shown
    assert "not shown    that nothing else was released from these records" in shown


def test_levels_and_gradients_have_their_own_lattices():
    # Small residuals have a small cap: the lattice of the gradients is then finer than that of the levels.
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1.0, 1.0, (3000, 2))
    y = rows @ [1.0, -1.0] + 1e-3 * rng.normal(size=3000)
    refine = [dpci.regression.Regression(), dpci.regression.Regression(features=["x0"])]
    for budget in (dpci.PureDP(4.0), dpci.ZCDP(2.0)):
        common = {"budget": budget, "rows": 2.0, "target_bound": 5.0, "neighbors": dpci.AddRemove(3000)}
        result = dpci.regression.release(rows, y, **common, refine=refine)
        assert failures(result) == []
        values = json.loads(result.to_json())
        steps = {name: [s["lattice"] for s in values["seals"] if s["release"] == name] for name in RELEASES}
        for i, one in enumerate(values["refined"]):
            for field, name in zip(("levels", "gradient"), RELEASES, strict=True):
                place = ("refined", i, field, 0)
                forged = rewritten(changed(values, place, one[field][0] + 0.5 * steps[name][i]))
                failed = failures(dpci.regression.MomentMatrix.from_json(forged))
                assert any(what.startswith(MUST) for what in failed), (place, failed)


def test_numbers_that_a_projection_moved_are_not_called_checked():
    choices = {"budget": dpci.PureDP(3.0), "l2_strength": 0.1, "classes": (False, True)}
    output = {"mechanism": dpci.OutputPerturbation(project=True), "radius": 1e-3, "moments": "none"}
    for chosen, moved in ((output, "coefficients"), ({"projection": "floor"}, "matrices")):
        report = dpci.fit(X, Y, **assembled(**choices, **chosen)).officer_report()
        assert f"whether the {moved} were edited: a projection moved them off their lattices" in str(report)
        assert "the released numbers lie on the grid" not in str(report)


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
