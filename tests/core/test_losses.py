"""Losses: known values, overflow, suprema that grow up to their bounds, and custom declarations, true or refused."""

import numpy as np
import pytest
from scipy import optimize

import dpci
from dpci import _core, lowlevel
from dpci.losses import Custom, HuberHinge, Logistic, SmoothHinge
from support.keywords import assembled

BUILT_IN = [
    Logistic(),
    *(HuberHinge(h=h) for h in (0.01, 0.5, 1.0, 3.0)),
    *(SmoothHinge(s=s) for s in (0.01, 0.1, 1.0, 5.0)),
]
by_loss = pytest.mark.parametrize("loss", BUILT_IN, ids=repr)


def evaluate(loss, u, y=1.0):
    u = np.atleast_1d(np.asarray(u, dtype=float))
    return loss.to_core().evaluate(u, np.full(len(u), float(y)))


def width(loss):
    """Margins over which the loss bends."""
    return {"logistic": 1.0, "huber_hinge": getattr(loss, "h", 0.0), "smooth_hinge": getattr(loss, "s", 0.0)}[loss.name]


# Value, slope and curvature.


@by_loss
def test_a_loss_is_a_function_of_the_margin(loss):
    u = np.linspace(-5.0, 5.0, 101)
    (value, slope, curvature), mirrored = evaluate(loss, u, 1.0), evaluate(loss, -u, -1.0)
    np.testing.assert_array_equal(value, mirrored[0])
    np.testing.assert_array_equal(slope, -mirrored[1])
    np.testing.assert_array_equal(curvature, mirrored[2])


def test_known_values():
    np.testing.assert_allclose(np.ravel(evaluate(Logistic(), 0.0)), [np.log(2.0), -0.5, 0.25], rtol=1e-15)
    # The three pieces of the Huber hinge of half-width 1/2, and its joints.
    pieces = [(2.0, 0, 0, 0), (1.5, 0, 0, 1), (1.0, 0.125, -0.5, 1), (0.5, 0.5, -1, 1), (0.0, 1, -1, 0), (-3, 4, -1, 0)]
    for u, *parts in pieces:
        np.testing.assert_allclose(np.ravel(evaluate(HuberHinge(h=0.5), u)), parts, rtol=1e-15, atol=1e-300)
    np.testing.assert_allclose(np.ravel(evaluate(SmoothHinge(s=0.2), 1.0)), [0.2 * np.log(2.0), -0.5, 1.25], rtol=1e-15)


@by_loss
@pytest.mark.parametrize("size", [40.0, 800.0, 1e4, 1e150, 1e300])
def test_no_overflow_at_huge_margins(loss, size):
    value, slope, curvature = evaluate(loss, [size, -size])
    hinge = loss.name != "logistic"
    # From s exp(-z / s) <= s, no loss is above its line by more than its width.
    np.testing.assert_allclose(value[1], size + hinge, rtol=1e-14, atol=width(loss))
    assert 0.0 <= value[0] <= width(loss)
    np.testing.assert_allclose(slope, [0.0, -1.0], atol=5e-4)
    np.testing.assert_allclose(curvature, 0.0, atol=1e-4)
    if size >= 1e4:
        np.testing.assert_allclose(slope, [0.0, -1.0], rtol=0, atol=1e-300)
        np.testing.assert_allclose(curvature, 0.0, rtol=0, atol=1e-300)


@by_loss
def test_a_fit_with_huge_params_does_not_overflow(loss):
    rng = np.random.default_rng(5)
    X, y = rng.uniform(-1.0, 1.0, (500, 2)), rng.choice([-1.0, 1.0], 500)
    for params in ([1e4, -1e4], [1e150, 1e150]):
        gradient = lowlevel.erm_value_and_gradient(X, y, params, loss=loss, l2_strength=1e-3)[1]
        hessian, _ = lowlevel.hessian_and_gradient_cov(X, y, np.array(params) / 1e10, loss=loss, l2_strength=1e-3)
        assert np.isfinite([*gradient, *hessian.flat]).all()
    with pytest.raises(dpci.InvalidInput, match="the risk must be finite"):
        lowlevel.erm_value_and_gradient(X, y, [1e300, 1e300], loss=loss, l2_strength=1e-3)


@by_loss
def test_suprema_grow_up_to_the_bounds(loss):
    core = loss.to_core()
    radii = [*np.linspace(0.0, 20.0, 400), 1e3, np.inf]
    for sup in (
        core.sup_slope,
        core.sup_curvature,
        lambda r: _core.Testing.sup_weighted_sum(core, 2.0, r),
        lambda r: _core.Testing.sup_joint_norm(core, 3.0, r),
    ):
        assert (np.diff([sup(r) for r in radii]) >= -1e-14).all()
    assert core.sup_slope(np.inf) == core.slope_bound == 1.0
    assert core.sup_curvature(np.inf) == pytest.approx(core.curvature_bound, rel=1e-14)
    assert core.sup_curvature(np.inf) >= core.curvature_bound
    assert core.one_signed
    assert core.target_bounds is None


def test_no_curvature_within_reach():
    """The Huber hinge is a line below 1 - h, so its Hessian has no data part for short params."""
    core = HuberHinge(h=0.4).to_core()
    assert core.sup_curvature(0.59) == 0.0
    assert core.sup_curvature(0.6) == core.curvature_bound


@pytest.mark.parametrize("radius", [np.nan, -1.0])
def test_a_radius_that_is_none_never_gives_a_smaller_bound(radius):
    """A supremum over nothing must not pass for a small one: NaN is refused by every calibration."""
    for loss in BUILT_IN:
        core = loss.to_core()
        for sup in (core.sup_slope(radius), core.sup_curvature(radius)):
            assert not sup < 0.0


@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
@pytest.mark.parametrize("shape", [0.0, -1.0, np.nan, np.inf, 1e-320, "wide", None, True])
def test_bad_shapes_are_refused(kind, shape):
    with pytest.raises(dpci.InvalidInput):
        kind(shape).to_core()


# Custom losses.


def sigmoid(u):
    return np.exp(-np.logaddexp(0.0, -u))


LOGISTIC = {
    "value": lambda u, y: np.logaddexp(0.0, -y * u),
    "slope": lambda u, y: -y * sigmoid(-y * u),
    "curvature": lambda u, _y: sigmoid(u) * sigmoid(-u),
    "slope_bound": 1.0,
    "curvature_bound": 0.25,
    "one_signed": True,
}
# For regression: sqrt(1 + r^2) - 1 with the residual r, bent like half a square near 0, a line far out.
PSEUDO_HUBER = {
    "value": lambda u, y: np.hypot(1.0, u - y) - 1.0,
    "slope": lambda u, y: (u - y) / np.hypot(1.0, u - y),
    "curvature": lambda u, y: np.hypot(1.0, u - y) ** -3,
    "slope_bound": 1.0,
    "curvature_bound": 1.0,
    "target_bounds": (-2.0, 2.0),
}


def custom(base, **changes):
    return Custom(**{**base, **changes})


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(6)
    X = rng.uniform(-0.5, 0.5, (3000, 3))
    return X, np.where(rng.logistic(size=3000) < X @ [4.0, -2.0, 1.0], 1.0, -1.0)


def test_declared_logistic_is_the_built_in_one(rows):
    loss, keywords = custom(LOGISTIC), {"l2_strength": 0.01, "tolerance": 1e-11}
    ours, built_in = lowlevel.minimize_erm(*rows, loss=loss, **keywords), lowlevel.minimize_erm(*rows, **keywords)
    np.testing.assert_allclose(ours.params, built_in.params, rtol=0, atol=1e-10)
    for solver in ("newton", "lbfgs"):
        found = lowlevel.minimize_erm(*rows, loss=loss, solver=solver, n_threads=2, **keywords)
        np.testing.assert_allclose(found.params, built_in.params, rtol=0, atol=1e-10)
    moments = [
        lowlevel.hessian_and_gradient_cov(*rows, ours.params, loss=same, l2_strength=0.01)
        for same in (loss, "logistic")
    ]
    np.testing.assert_allclose(moments[0], moments[1], rtol=1e-12, atol=1e-15)


def test_declared_logistic_gives_the_same_private_fit(rows):
    """The seed draws the same noise; only the suprema differ, which stay at the declared bounds without moments."""
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.01, "moments": "none", "seed": 4}
    ours, built_in = (
        dpci.fit(*rows, **assembled(loss=custom(LOGISTIC), **keywords)),
        dpci.fit(*rows, **assembled(**keywords)),
    )
    np.testing.assert_allclose(ours.params, built_in.params, rtol=0, atol=1e-7)


def test_declared_values_are_used_as_they_are():
    """Never a maximum over the grid: looser declarations buy more noise."""
    core = custom(LOGISTIC, slope_bound=1.5, curvature_bound=0.7).to_core()
    for radius in (0.0, 1.0, np.inf):
        assert core.sup_slope(radius) == core.slope_bound == 1.5
        assert core.sup_curvature(radius) == core.curvature_bound == 0.7
        assert _core.Testing.sup_weighted_sum(core, 2.0, radius) >= 2.0 * 0.7 + 1.5**2
        assert _core.Testing.sup_joint_norm(core, 3.0, radius) >= np.hypot(3.0 * 0.7, 1.5**2) * (1.0 - 1e-15)


def raises(_u, _y):
    raise RuntimeError("out of coffee")


NOT_AN_ARRAY = "not an array of"
WRONG = {
    "slope_bound too small": (LOGISTIC, {"slope_bound": 0.99}, "above slope_bound=0.99"),
    "curvature_bound too small": (LOGISTIC, {"curvature_bound": 0.2499}, "above curvature_bound=0.2499"),
    "curvature_bound far too small": (LOGISTIC, {"curvature_bound": 1e-6}, "above curvature_bound"),
    "not convex": (
        LOGISTIC,
        {
            "value": lambda u, _y: np.cos(u),
            "slope": lambda u, _y: -np.sin(u),
            "curvature": lambda u, _y: -np.cos(u),
            "curvature_bound": 1.0,
            "one_signed": False,
        },
        "must be convex",
    ),
    "slope of another function": (LOGISTIC, {"slope": lambda u, y: -0.9 * y * sigmoid(-y * u)}, "not the derivative"),
    "slope with the wrong sign": (LOGISTIC, {"slope": lambda u, y: y * sigmoid(-y * u)}, "not the derivative"),
    "slope that forgets the label": (LOGISTIC, {"slope": lambda u, _y: -sigmoid(-u)}, "not the derivative"),
    "curvature of another function": (
        LOGISTIC,
        {"curvature": lambda u, _y: 0.8 * sigmoid(u) * sigmoid(-u)},
        "curvature that is not the derivative of the slope",
    ),
    "curvature of zero": (
        LOGISTIC,
        {"curvature": lambda u, _y: 0.0 * u},
        "curvature that is not the derivative of the slope",
    ),
    "one sign that is two": (PSEUDO_HUBER, {"one_signed": True}, "slope of both signs"),
    "slope_bound too small for regression": (PSEUDO_HUBER, {"slope_bound": 0.9}, "above slope_bound"),
    "no slope bound holds": (
        PSEUDO_HUBER,
        {
            "value": lambda u, y: (u - y) ** 2,
            "slope": lambda u, y: 2.0 * (u - y),
            "curvature": lambda u, _y: np.full_like(u, 2.0),
            "curvature_bound": 2.0,
            "slope_bound": 8.0,
        },
        "above slope_bound=8",
    ),
    "value NaN": (LOGISTIC, {"value": lambda u, _y: np.nan * u}, "value=NaN"),
    "slope infinite": (
        LOGISTIC,
        {"slope": lambda u, y: np.where(u > 11.0, np.inf, -y * sigmoid(-y * u))},
        "slope=inf at linear predictor 11.01",
    ),
    "curvature NaN": (
        LOGISTIC,
        {"curvature": lambda u, _y: np.where(u < -11.0, np.nan, sigmoid(u) * sigmoid(-u))},
        "curvature=NaN",
    ),
    "a number for an array": (LOGISTIC, {"curvature": lambda _u, _y: 0.25}, NOT_AN_ARRAY),
    "too short": (LOGISTIC, {"value": lambda u, y: np.logaddexp(0.0, -y * u)[:-1]}, NOT_AN_ARRAY),
    "a column": (LOGISTIC, {"value": lambda u, y: np.logaddexp(0.0, -y * u)[:, None]}, NOT_AN_ARRAY),
    "text": (LOGISTIC, {"slope": lambda _u, _y: "steep"}, NOT_AN_ARRAY),
    "complex": (LOGISTIC, {"slope": lambda u, y: -y * sigmoid(-y * u) + 0j}, NOT_AN_ARRAY),
    "nothing": (LOGISTIC, {"value": lambda _u, _y: None}, NOT_AN_ARRAY),
    "an exception": (LOGISTIC, {"value": raises}, "out of coffee"),
    "too few arguments": (LOGISTIC, {"slope": lambda u: u}, "positional argument"),
    "not callable": (LOGISTIC, {"curvature": 0.25}, "curvature must be callable"),
    "a word for a flag": (LOGISTIC, {"one_signed": "yes"}, "one_signed must be True or False, got one_signed='yes'"),
    "a number for target bounds": (LOGISTIC, {"target_bounds": 1.0}, "target_bounds must be a sequence of 2 numbers"),
    "a bound of zero": (LOGISTIC, {"slope_bound": 0.0}, "slope_bound must be finite and > 0"),
    "a negative bound": (LOGISTIC, {"curvature_bound": -0.25}, "curvature_bound must be finite and > 0"),
    "a NaN bound": (LOGISTIC, {"slope_bound": np.nan}, "slope_bound must be finite and > 0"),
    "an infinite bound": (LOGISTIC, {"curvature_bound": np.inf}, "curvature_bound must be finite and > 0"),
    "target bounds in disorder": (PSEUDO_HUBER, {"target_bounds": (2.0, -2.0)}, "less than target_bounds"),
    "equal target bounds": (PSEUDO_HUBER, {"target_bounds": (1.0, 1.0)}, "less than target_bounds"),
    "infinite target bounds": (PSEUDO_HUBER, {"target_bounds": (0.0, np.inf)}, "target_bounds must be finite"),
    "NaN target bounds": (PSEUDO_HUBER, {"target_bounds": (np.nan, 1.0)}, "target_bounds must be finite"),
    "three target bounds": (PSEUDO_HUBER, {"target_bounds": (0.0, 1.0, 2.0)}, "target_bounds must be"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_declarations_are_refused(case):
    base, changes, message = WRONG[case]
    with pytest.raises(dpci.InvalidInput, match=message):
        custom(base, **changes)


@pytest.mark.parametrize("base", [LOGISTIC, PSEUDO_HUBER], ids=["logistic", "pseudo_huber"])
def test_true_declarations_are_accepted(base):
    custom(base)
    custom(base, slope_bound=7.0, curvature_bound=9.0)


@pytest.mark.parametrize("loss", BUILT_IN, ids=repr)
def test_the_built_in_losses_pass_as_custom_ones(loss):
    """Kinks of the curvature and bends as narrow as the grid are no contradiction."""
    core = loss.to_core()
    parts = {name: (lambda u, y, i=i: core.evaluate(u, y)[i]) for i, name in enumerate(["value", "slope", "curvature"])}
    Custom(**parts, slope_bound=1.0, curvature_bound=core.curvature_bound, one_signed=True)


def test_a_failure_during_the_fit_is_an_error_and_its_message_is_kept(rows):
    """The grid ends before these rows begin."""

    def value(u, y):
        if np.abs(u).max() > 1.1e4:
            raise RuntimeError("out of coffee")
        return np.logaddexp(0.0, -y * u)

    loss = custom(LOGISTIC, value=value)
    with pytest.raises(dpci.InvalidInput, match="out of coffee"):
        lowlevel.erm_value_and_gradient(*rows, [1e6, 1e6, 1e6], loss=loss, l2_strength=0.01)


def test_arguments_are_copies(rows):
    def value(u, y):
        result = np.logaddexp(0.0, -y * u)
        u[:] = y[:] = np.nan
        return result

    ours = lowlevel.minimize_erm(*rows, loss=custom(LOGISTIC, value=value), l2_strength=0.01)
    np.testing.assert_allclose(ours.params, lowlevel.minimize_erm(*rows, l2_strength=0.01).params, atol=1e-8)


# Real targets.


def test_regression_equals_scipy():
    rng = np.random.default_rng(7)
    X = rng.uniform(-0.5, 0.5, (800, 3))
    y = np.clip(X @ [2.0, -1.0, 0.5] + 0.2 * rng.standard_normal(800), -2.0, 2.0)
    found = lowlevel.minimize_erm(X, y, loss=custom(PSEUDO_HUBER), l2_strength=0.01, tolerance=1e-11)

    def gradient(params):
        residual = X @ params - y
        return X.T @ (residual / np.sqrt(1.0 + residual**2)) / len(y) + 0.01 * params

    expected = optimize.root(gradient, np.zeros(3), tol=1e-14).x
    assert np.linalg.norm(expected) > 1.0
    np.testing.assert_allclose(found.params, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("target", [-2.0000001, 2.5, np.nan, np.inf])
def test_targets_out_of_bounds_are_refused(target):
    X, y = np.full((3, 1), 0.5), np.array([0.0, target, 1.0])
    with pytest.raises(dpci.InvalidInput):
        lowlevel.minimize_erm(X, y, loss=custom(PSEUDO_HUBER), l2_strength=0.01)
    lowlevel.minimize_erm(X, [0.0, 2.0, -2.0], loss=custom(PSEUDO_HUBER), l2_strength=0.01)
