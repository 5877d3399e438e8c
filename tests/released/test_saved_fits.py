"""Saved fits that contradict themselves are refused when they are read, not when their intervals fail later."""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.inference.validity import refusal
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from support.saved import rewritten
from support.small_fits import X, Y, fit

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")
PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, 1e-6)
REAL = (X, X[:, 0])

KINDS = {
    "objective, zCDP": fit,
    "objective, pure": lambda: fit(budget=PURE),
    "objective, approximate": lambda: fit(budget=APPROX),
    "output, zCDP": lambda: fit(mechanism="output"),
    "output, pure": lambda: fit(mechanism="output", budget=PURE),
    "output, approximate": lambda: fit(mechanism="output", budget=APPROX),
    "paper": lambda: fit(calibration="paper"),
    "ball": lambda: fit(radius=1.0),
    "projected": lambda: fit(radius=1.0, mechanism=OutputPerturbation(project=True)),
    "cms11": lambda: fit(mechanism=ObjectivePerturbation(variant="cms11"), budget=PURE),
    "squared": lambda: fit(*REAL, loss="squared", radius=1.0),
    "hinge": lambda: fit(loss="hinge", mechanism="output", moments="none"),
    "soft labels": lambda: fit(X, Y.astype(float), loss="soft_logistic"),
    "no moments": lambda: fit(moments="none"),
    "little noise": lambda: fit(budget=dpci.PureDP(1e4), l2_strength=1e-4),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_fit_saves_is_read(kind):
    result = KINDS[kind]()
    assert dpci.PrivateFit.from_json(result.to_json()).to_json() == result.to_json()


def matrix(*diagonal, off=0.0):
    square = np.diag(np.array(diagonal, dtype=float))
    square[0, 1] += off
    return square.tolist()


NOT_LEGAL = {
    "asymmetric Hessian": ("objective, zCDP", {"hessian": matrix(1, 1, 1, 1, off=0.1)}, "hessian must be symmetric"),
    "asymmetric beyond floats": ("ball", {"hessian": matrix(1, 1, 1, 1, off=1e308)}, "hessian must be symmetric"),
    "asymmetric covariance": (
        "objective, zCDP",
        {"gradient_cov": matrix(1, 1, 1, 1, off=0.1)},
        r"gradient_cov must be symmetric, got 0.1 at \(0, 1\) and 0.0 at \(1, 0\)",
    ),
    "singular Hessian": ("ball", {"hessian": matrix(1, 1, 1, 0)}, "hessian must be positive definite"),
    "Hessian of zeros": ("ball", {"hessian": matrix(0, 0, 0, 0)}, "hessian must be positive definite"),
    "indefinite Hessian": ("ball", {"hessian": matrix(1, 1, 1, -1)}, "got a least eigenvalue of -1"),
    "indefinite covariance": (
        "objective, zCDP",
        {"gradient_cov": matrix(1, 1, 1, -1e-6)},
        "gradient_cov must be positive semidefinite, got a least eigenvalue of -1e-06",
    ),
    "hinge with moments": (
        "hinge",
        {"moments": "joint", "hessian": matrix(1, 1, 1, 1), "gradient_cov": matrix(1, 1, 1, 1)},
        "moments must be 'none' for the hinge loss, got moments='joint'",
    ),
    "hinge in the objective": (
        "hinge",
        {"mechanism": "objective", "noise_law": "spherical_laplace"},
        "mechanism must be 'output' for the hinge loss",
    ),
    "curved hinge": ("hinge", {"curvature_bound": 1.0}, "curvature_bound must be None for the hinge loss"),
    "no curvature": ("objective, zCDP", {"curvature_bound": None}, "curvature_bound must be None for the hinge loss"),
    "projected objective": ("ball", {"project": True}, "project must be False without output .* mechanism='objective'"),
    "projected everywhere": ("projected", {"radius": None}, "project must be False without .* and radius=None"),
    "cms11 with Gaussian noise": (
        "objective, approximate",
        {"variant": "cms11"},
        "variant='cms11' must go with objective perturbation and spherical Laplace noise, got .*'approx'",
    ),
    "cms11 in the output": ("output, pure", {"variant": "cms11"}, "variant='cms11' must go with objective"),
    "another law": ("objective, zCDP", {"noise_law": "gaussian"}, "must be 'spherical_laplace', got .*'gaussian'"),
    "squared everywhere": ("squared", {"radius": None}, "radius must be given for the squared loss"),
    "classes of real targets": ("squared", {"classes": [0, 1]}, "classes must be None for a loss with real targets"),
    "no classes": ("objective, zCDP", {"classes": None}, "classes must be given for a loss of two classes"),
    "a shape of another loss": (
        "squared",
        {"loss": {**KINDS["squared"]().loss, "h": 1.0}},
        r"loss must have the declaration of Squared\(target_bound=1.0\)",
    ),
    "a loss without bounds": ("squared", {"loss": {"name": "squared"}}, "loss must have slope_bound, got"),
    "another budget": (
        "objective, pure",
        {"budget": {"notion": "pure", "rho": 1.0}},
        "must hold every field .* epsilon, got",
    ),
    "no classes that were inferred": (
        "squared",
        {"classes_inferred": True},
        "classes_inferred must be False for real targets, got classes_inferred=True",
    ),
    "a field too many": ("ball", {"colour": "red"}, "every field of its schema and no other, got 'colour' too"),
}


@pytest.mark.parametrize("case", NOT_LEGAL)
def test_contradictions_are_refused(case):
    kind, changes, message = NOT_LEGAL[case]
    values = {**json.loads(KINDS[kind]().to_json()), **changes}
    with pytest.raises(InvalidInput, match=message) as caught:
        dpci.PrivateFit.from_json(rewritten(values))
    assert "__init__" not in str(caught.value)


def test_a_missing_field_is_named():
    values = json.loads(fit().to_json())
    del values["noise_scale"]
    with pytest.raises(InvalidInput, match="every field of its schema and no other, got none called 'noise_scale'"):
        dpci.PrivateFit.from_json(rewritten(values))


def test_rounding_is_no_contradiction():
    """A covariance with an eigenvalue just below 0, and entries that differ in their last digits."""
    values = json.loads(fit().to_json())
    values["gradient_cov"] = matrix(1, 1, 1, -1e-13, off=1e-13)
    assert np.isfinite(np.asarray(dpci.PrivateFit.from_json(rewritten(values)).conf_int())).all()


def test_projected_matrices_are_symmetric_to_a_billionth_of_their_greatest_entry():
    values = json.loads(fit(projection="floor").to_json())
    for size in (1.0, 1e6):
        values["hessian"] = matrix(size, size, size, size, off=0.9e-9 * size)
        dpci.PrivateFit.from_json(rewritten(values))
        values["hessian"] = matrix(size, size, size, size, off=1.1e-9 * size)
        with pytest.raises(InvalidInput, match="hessian must be symmetric"):
            dpci.PrivateFit.from_json(rewritten(values))


def test_a_hessian_with_its_noise_is_symmetric_to_the_last_bit():
    values = json.loads(fit(projection="noise_aware").to_json())
    values["hessian"][0][1] = np.nextafter(values["hessian"][0][1], np.inf)
    with pytest.raises(InvalidInput, match="hessian must be symmetric"):
        dpci.PrivateFit.from_json(rewritten(values))


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize(
    "changes",
    [
        *({"hessian": size * np.eye(4), "l2_strength": size} for size in (0.0, 1e-320, 1e-300, 1e-170)),
        {"gradient_cov": 1e300 * np.eye(4), "l2_strength": 1e-10},
        {"hessian": np.full((4, 4), np.nan)},
    ],
    ids=["zero", "subnormal", "tiny", "square of nothing", "huge covariance", "NaN"],
)
def test_numbers_beyond_the_range_of_floats_are_no_crash(changes, mechanism):
    """Records are made by other code too: what cannot be computed shows no slack."""
    record = replace(fit(radius=1.0, mechanism=mechanism)._record, **changes)
    assert "intervals require released values" in refusal(record)


def test_a_slope_beyond_the_range_of_floats_is_no_crash():
    record = replace(fit(*REAL, loss="squared", radius=1.0)._record, slope_bound=1e200)
    assert "intervals require released values" in refusal(record)


def test_no_part_of_a_result_can_be_changed_through_what_it_gives_out():
    result = fit(*REAL, loss="squared", radius=1.0)
    before = result.to_json()
    result.loss["target_bounds"][0] = -100.0
    result.privacy["constants"]["loss"]["target_bounds"][1] = 100.0
    assert result.to_json() == before
    assert result.loss["target_bounds"] == [-1.0, 1.0]
