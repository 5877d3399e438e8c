"""Utility curves of persons and of weighted rows: curves of other tables that are the same, refits, and Monte Carlo.

A Monte Carlo check fails by chance with probability 1e-6: 4.9 standard errors of a normal mean.
"""

import numpy as np
import pytest
from scipy import special, stats

import dpci
from dpci import _core
from dpci.errors import InvalidInput
from dpci.unit import given_unit
from support.keywords import assembled
from support.utility import APPROX, L2_STRENGTH, SEED, curve, make_rows

DEVIATIONS = stats.norm.isf(0.5e-6)
N_DRAWS = 400
X, Y = make_rows(900, 3)
Z = np.column_stack([X, np.ones(len(Y))])
_RNG = np.random.default_rng(6)
IDS = _RNG.permutation(np.arange(len(Y)) * 7 % 300)
WEIGHTS = _RNG.uniform(0.0, 3.0, len(Y))
WEIGHTED = {"weights": dpci.Weights(WEIGHTS, bound=3.0)}

_FIRST = np.array([np.sum(IDS[:i] == IDS[i]) < 2 for i in range(len(IDS))])
CASES = {
    # Keywords, how much each row counts, and what divides sums.
    "persons": ({"persons": IDS}, 1.0 / np.bincount(IDS)[IDS], 300.0),
    "first rows": ({"persons": dpci.Persons(IDS, max_rows=2)}, 0.5 * _FIRST, 300.0),
    "weights": (WEIGHTED, WEIGHTS / 3.0, 300.0),
    "a total": ({"weights": dpci.Weights(WEIGHTS, bound=3.0, total=1200.0)}, WEIGHTS / 3.0, 400.0),
    "both": ({"persons": IDS, **WEIGHTED}, WEIGHTS / 3.0 / np.bincount(IDS)[IDS], 100.0),
}
MECHANISMS = {
    "gaussian": {"at": APPROX},
    "pure": {"at": dpci.PureDP(1.0)},
    "output": {"at": dpci.ZCDP(0.3), "mechanism": "output"},
    "add_remove": {"at": APPROX, "neighbors": "add_remove"},
    "moments": {"at": dpci.PureDP(1.0), "moments": "joint"},
}
MANY = pytest.mark.parametrize("case", CASES)
EACH = pytest.mark.parametrize("mechanism", MECHANISMS)


def minimisers(shares, divisor, l2_strength, linear):
    """The perturbed minimisers, one for each linear term, by Newton's method on the formulas."""
    signs, params = 2 * Y - 1, np.zeros_like(linear)
    for _ in range(100):
        pull = signs * special.expit(-signs * (params @ Z.T)) * shares / divisor
        gradient = l2_strength * params + linear - pull @ Z
        if np.abs(gradient).max() < 1e-12:
            return params
        u = params @ Z.T
        curvature = special.expit(u) * special.expit(-u) * shares / divisor
        hessian = np.einsum("mi,ij,ik->mjk", curvature, Z, Z, optimize=True) + l2_strength * np.eye(4)
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        # A step of length 1 at most, which the bounded curvature keeps from overshooting.
        params = params - step / np.maximum(1.0, np.linalg.norm(step, axis=1, keepdims=True))
    pytest.fail(f"not converged, at a gradient of {np.abs(gradient).max()}")


def refits(found, case, value, draws, seed=SEED):
    """The parameters at a budget, a row for each draw of the noise."""
    _, shares, divisor = CASES[case]
    spec = found.path.spec(value)
    noise = spec.noise_scale * np.array([_core.Utility.draw_noise(spec, seed, draw) for draw in draws])
    if found.path.settings.mechanism.name == "output":
        return minimisers(shares, divisor, L2_STRENGTH, np.zeros((1, 4))) + noise
    return minimisers(shares, divisor, L2_STRENGTH, noise / divisor)


def refit(found, case, value):
    return refits(found, case, value, [0])[0]


def mean_loss(case, params):
    _, shares, _ = CASES[case]
    return np.logaddexp(0.0, -(2 * Y - 1) * (params @ Z.T)) @ shares / shares.sum()


def measured(case, mechanism, **more):
    return curve((X, Y), **CASES[case][0], **MECHANISMS[mechanism], **more)


@MANY
@EACH
def test_the_curve_is_that_of_refits(case, mechanism):
    found = measured(case, mechanism, n_steps=4)
    at = found.path.at
    assert found.core.total == pytest.approx(CASES[case][1].sum(), rel=1e-12)
    for value in (0.5 * at, at, 3.0 * at):
        params = refit(found, case, value)
        np.testing.assert_allclose(found.predict_params(value)[0], params, atol=2e-4 * np.abs(params).max())
        assert found.predict_utility(value) == pytest.approx(mean_loss(case, params), rel=1e-4)
    assert found.utility == pytest.approx(mean_loss(case, refit(found, case, at)), rel=1e-6)
    step = 1e-4 * at
    slope = (mean_loss(case, refit(found, case, at + step)) - mean_loss(case, refit(found, case, at - step))) / (
        2 * step
    )
    assert found.derivative == pytest.approx(slope, rel=1e-3)
    target = found.predict_utility(2.0 * at)
    assert mean_loss(case, refit(found, case, found.epsilon_for(target))) == pytest.approx(target, abs=1e-6)


@MANY
@EACH
def test_the_noise_is_that_of_a_fit(case, mechanism):
    found, keywords = measured(case, mechanism), {**CASES[case][0], **MECHANISMS[mechanism]}
    given = given_unit(keywords.get("persons"), keywords.get("weights"))
    plan = dpci.plan(
        **assembled(
            n_samples=300 if "persons" in keywords else 900, n_features=3, budget=found.at, l2_strength=L2_STRENGTH,
            moments=keywords.get("moments", "none"), neighbors=keywords.get("neighbors", "replace_one"),
            mechanism=keywords.get("mechanism", "objective"), persons=given.unit, weights=given.weights,
        )
    )  # fmt: skip
    assert plan.steps[0].scale == found.path.spec(found.path.at).noise_scale


@MANY
@pytest.mark.parametrize("mechanism", ["gaussian", "pure", "output"])
def test_mean_and_spread_over_refits(case, mechanism):
    found = measured(case, mechanism)
    at = found.path.at * 3.0  # second order in the noise
    losses = mean_loss(case, refits(found, case, at, range(N_DRAWS)))
    mean, std = found.expected_utility(at)
    error = losses.std(ddof=1) / np.sqrt(N_DRAWS)
    assert abs(losses.mean() - mean) < DEVIATIONS * error
    assert 0.7 < std / losses.std(ddof=1) < 1.4
    assert losses.mean() - DEVIATIONS * error < found.worst_case(at)


@pytest.mark.parametrize("mechanism", ["gaussian", "pure", "output"])
def test_equal_tables_have_equal_curves(mechanism):
    """Twice the same row of a person is one row; weights of 1 are none, in whatever unit."""
    n = len(Y)
    rows = curve((X, Y), **MECHANISMS[mechanism])
    twice = curve((np.tile(X, (2, 1)), np.tile(Y, 2)), persons=np.tile(np.arange(n), 2), **MECHANISMS[mechanism])
    ones = curve((X, Y), weights=dpci.Weights(np.ones(n), bound=1.0), **MECHANISMS[mechanism])
    values = np.array([0.5, 2.0]) * rows.path.at
    # Objective perturbation has more noise for persons, whose Hessians have a greater rank.
    for other in (twice, ones) if mechanism == "output" else (ones,):
        np.testing.assert_allclose(other.predict_utility(values), rows.predict_utility(values), rtol=1e-7)
        np.testing.assert_allclose(other.expected_utility(values), rows.expected_utility(values), rtol=1e-7)
        np.testing.assert_allclose(other.worst_case(values), rows.worst_case(values), rtol=1e-7)
    assert "persons" in twice.summary()
    assert "from 0 to 1" in ones.summary()


def test_a_smoothed_accuracy_has_the_weights_of_rows():
    found = curve((X, Y), at=APPROX, metric=dpci.utility.SmoothedAccuracy(0.3), **CASES["both"][0])
    shares = CASES["both"][1]
    margins = (2 * Y - 1) * (Z @ found.params[0])
    assert found.utility == pytest.approx(shares @ special.expit(margins / 0.3) / shares.sum(), rel=1e-10)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"persons": IDS[1:]}, "one id for each"),
        ({"persons": "id"}, "persons must be an array of ids without a schema"),
        ({"persons": dpci.Persons(max_rows=2)}, "persons must have ids"),
        ({"weights": WEIGHTS}, "must not depend on the data, got ndarray"),
        ({"weights": dpci.Weights(bound=2.0)}, "weights must have values"),
        ({"weights": dpci.Weights(WEIGHTS, bound=1.0)}, "weights"),
        ({"weights": dpci.Weights(0.0 * WEIGHTS, bound=1.0)}, "the sum of weights must be > 0"),
        ({"persons": IDS, "calibration": "paper", "neighbors": "add_remove"}, "paper"),
    ],
)
def test_what_is_refused(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        dpci.utility.curve(X, Y, **assembled(at=APPROX, l2_strength=L2_STRENGTH, **keywords))
