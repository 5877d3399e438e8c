"""Saved results that are damaged or contradict themselves are refused when they are read."""

import functools
import json
from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.inference.validity import refusal
from dpci.losses import Custom
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from support import per_instance, tuning
from support.baselines import BUDGET
from support.saved import rewritten
from support.small_fits import N, X, Y, fit

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, 1e-6)
REAL = (X, X[:, 0])
ON_BALL = {"slope_bound": 2.0, "curvature_bound": 1.0, "target_bounds": (-1.0, 1.0), "predictor_bound": 1.0}
HALF_SQUARE = Custom(
    lambda u, y: (u - y) ** 2 / 2.0, lambda u, y: u - y, lambda u, _: u * 0.0 + 1.0, strong_convexity=0.5, **ON_BALL
)

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
    "strongly convex": lambda: fit(
        np.ones((N, 1)), X[:, 0], loss=HALF_SQUARE, mechanism="output", radius=1.0, intercept=False
    ),
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
    "persons and strong convexity": (
        "strongly convex",
        {"persons": {"max_rows": None}},
        "strong_convexity must be 0 with persons, got 0.5",
    ),
    "a budget without a notion": (
        "objective, pure",
        {"budget": {"epsilon": 1.0}},
        "budget must be an object with a notion and its parameters",
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


AXES = [dpci.baselines.Bins(column, 2, -1.0, 1.0) for column in range(X.shape[1])]
SAVED = {
    "fit": fit,
    "fit, ball": lambda: fit(budget=dpci.PureDP(1.0), radius=1.0),
    "report": lambda: per_instance.report(*per_instance.make_rows()),
    "tuning": tuning.tune,
    "tuning, model": lambda: tuning.tune(selection_share=1.0),
    "functional": lambda: dpci.baselines.functional_mechanism(
        X, Y, budget=BUDGET, loss="logistic", classes=(0, 1), seed=1
    ),
    "histogram": lambda: dpci.baselines.projected_histogram(
        X, Y, budget=BUDGET, axes=AXES, l2_strength=0.1, loss="logistic", classes=(0, 1), seed=1
    ),
}


@functools.cache
def saved(kind):
    result = SAVED[kind]()
    text = result.to_json()
    assert type(result).from_json(text).to_json() == text
    return type(result), text


def reads_as_something_else(kind, damaged):
    """Whether a damaged file is read, and not as what was saved."""
    read, text = saved(kind)
    try:
        return read.from_json(bytes(damaged)).to_json() != text
    except InvalidInput:
        return False


@pytest.mark.parametrize("kind", SAVED)
def test_flipped_bits_and_changed_bytes_are_found(kind):
    text = saved(kind)[1].encode()
    rng = np.random.default_rng(20)
    for at in rng.choice(len(text), size=min(len(text), 400), replace=False):
        for changed in (text[at] ^ (1 << int(rng.integers(8))), int(rng.integers(256)), ord(str(rng.integers(10)))):
            damaged = bytearray(text)
            damaged[at] = changed
            assert not reads_as_something_else(kind, damaged), (at, text[at], changed)


def test_every_digit_counts():
    text = saved("fit")[1].encode()
    digits = [at for at, byte in enumerate(text) if chr(byte).isdigit()]
    for at in digits:
        damaged = bytearray(text)
        damaged[at] = ord("0") + (text[at] - ord("0") + 1) % 10
        assert not reads_as_something_else("fit", damaged), at


@pytest.mark.parametrize("kind", SAVED)
def test_lost_and_moved_blocks_are_found(kind):
    text = saved(kind)[1].encode()
    rng = np.random.default_rng(21)
    for _ in range(150):
        start, end = sorted(rng.integers(0, len(text) + 1, size=2))
        zeros = b"0" * int(end - start)
        for damaged in (text[:start], text[:start] + text[end:], text[:start] + zeros + text[end:]):
            assert not reads_as_something_else(kind, damaged)


def test_the_message_is_plain_and_layout_does_not_count():
    read, text = saved("fit")
    values = json.loads(text)
    again = json.dumps(dict(reversed(values.items())), indent=2)
    assert read.from_json(again).to_json() == text
    rule = r"a saved fit must match its hash, got different contents \(the file is damaged or was edited\)"
    for change in ({"params": [0.0] * len(values["params"])}, {"checksum": "sha256:0"}, {"checksum": None}):
        with pytest.raises(InvalidInput, match=rule):
            read.from_json(json.dumps({**values, **change}))
    del values["checksum"]
    with pytest.raises(InvalidInput, match=rule):
        read.from_json(json.dumps(values))


def test_a_damaged_part_of_a_document_is_found():
    read, text = saved("report")
    values = json.loads(text)
    values["fit"]["params"][0] += 1.0
    with pytest.raises(InvalidInput, match="a saved report must match its hash"):
        read.from_json(json.dumps(values))
    assert read.from_json(rewritten(values)).result.params[0] != read.from_json(text).result.params[0]
