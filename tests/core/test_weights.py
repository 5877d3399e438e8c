"""Weighted records: sensitivities by brute force, the exact loss of small problems, and what changes a determinant."""

import numpy as np
import pytest

import dpci
from dpci.losses import HuberHinge, Logistic, SoftLogistic
from support.keywords import assembled

ROW_NORM, N, DIM, STRENGTH = 1.3, 40, 3, 0.05
BOUND, TOTAL = 2.5, 60.0
ROUNDING = 1.0 + 1e-9
LOSSES = {"logistic": Logistic(), "huber": HuberHinge(0.5), "soft": SoftLogistic()}
CORES = {name: loss.to_core() for name, loss in LOSSES.items()}
by_loss = pytest.mark.parametrize("name", LOSSES)


def steps(name, relation, budget, mechanism="objective", **keywords):
    plan = dpci.plan(
        **assembled(
            n_samples=N,
            n_features=DIM,
            budget=budget,
            l2_strength=STRENGTH,
            loss=LOSSES[name],
            mechanism=mechanism,
            rows=ROW_NORM,
            intercept=False,
            neighbors=relation,
            weights=dpci.Weights(bound=BOUND, total=TOTAL),
            **keywords,
        )
    )
    return {step.step: step for step in plan.steps}


def record(name, rng):
    """A row, its target and its weight, often the greatest."""
    row = rng.normal(size=DIM)
    row *= (ROW_NORM if rng.random() < 0.7 else ROW_NORM * rng.random()) / np.linalg.norm(row)
    target = rng.uniform() if name == "soft" else rng.choice([-1.0, 1.0])
    return row, target, BOUND if rng.random() < 0.7 else BOUND * rng.random()


def terms(name, one, params):
    """The weighted gradient of a record, and its Hessian."""
    row, target, weight = one
    slope, curvature = (
        float(value[0]) for value in CORES[name].evaluate(np.array([row @ params]), np.array([target]))[1:]
    )
    return weight * slope * row, weight * curvature * np.outer(row, row)


def norms(matrix):
    values = np.abs(np.linalg.eigvalsh(matrix))
    return np.linalg.norm(values), values.sum()


@by_loss
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_no_weighted_record_moves_more_and_some_move_that_much(name, relation):
    rng = np.random.default_rng(5)
    pure, gaussian = (steps(name, relation, budget) for budget in (dpci.PureDP(5.0), dpci.ZCDP(3.0)))
    separate = steps(name, relation, dpci.ZCDP(3.0), moments="separate")
    # The noise b is added to the sum of weights over their bound: the sum of weights has bound times its sensitivity.
    shift = BOUND * pure["coefficients"].sensitivity
    weight = pure["moments"].scale / pure["moments"].hessian_scale
    alpha = gaussian["moments"].scale / gaussian["moments"].hessian_scale
    attained = dict.fromkeys(["shift", "hessian", "covariance", "nuclear", "joint"], 0.0)
    for trial in range(1000):
        params = rng.normal(size=DIM) * rng.choice([0.0, 0.5, 30.0])
        pair = [record(name, rng) for _ in range(2)]
        if trial % 3 == 0:
            row, target, _ = pair[0]
            pair = [(row, target, BOUND), (-row, target, BOUND)]
        if trial % 3 == 1:  # orthogonal rows
            axes = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] * ROW_NORM
            target = 0.0 if name == "soft" else 1.0
            pair = [(axes[k], target, BOUND) for k in range(2)]
            away = rng.choice([-20.0, 20.0, 0.0, 0.4, 0.5001 / ROW_NORM**2])
            params = axes[:2].sum(axis=0) * away
        if trial % 6 == 5:  # both slopes at their bound, nearly antipodal rows
            across, along = np.linalg.qr(rng.normal(size=(DIM, 2)))[0].T
            side, target = (1.0, 0.0) if name == "soft" else (-1.0, 1.0)
            rows = [ROW_NORM * (sign * np.cos(0.2) * across + side * np.sin(0.2) * along) for sign in (1.0, -1.0)]
            pair = [(row, target, BOUND) for row in rows]
            params = 50.0 * along
        (g, h), (other_g, other_h) = (terms(name, one, params) for one in pair)
        if relation == "add_remove":
            other_g, other_h = 0.0 * other_g, 0.0 * other_h
        moved_h = (h - other_h) / TOTAL
        moved_s = (np.outer(g, g) - np.outer(other_g, other_g)) / (TOTAL * BOUND)
        found = {
            "shift": np.linalg.norm(g - other_g) / shift,
            "hessian": norms(moved_h)[0] / separate["hessian"].sensitivity,
            "covariance": norms(moved_s)[0] / separate["gradient_cov"].sensitivity,
            "nuclear": (weight * norms(moved_h)[1] + norms(moved_s)[1]) / pure["moments"].sensitivity,
            "joint": np.hypot(alpha * norms(moved_h)[0], norms(moved_s)[0]) / gaussian["moments"].sensitivity,
        }
        attained = {key: max(value, found[key]) for key, value in attained.items()}
    assert max(attained.values()) <= ROUNDING, attained
    assert min(attained.values()) >= 0.95, attained


@by_loss
def test_no_weighted_record_moves_the_minimiser_more(name):
    """Also where most records weigh more than the total says, and one of them pulls the others far."""
    rng = np.random.default_rng(6)
    n, strength, bound, total = 4, 0.5, 3.0, 6.0

    def minimiser(records):
        params = np.zeros(DIM)
        for _ in range(30):
            parts = [terms(name, one, params) for one in records]
            gradient = sum(g for g, _ in parts) / total + strength * params
            hessian = sum(h for _, h in parts) / total + strength * np.eye(DIM)
            params = params - np.linalg.solve(hessian, gradient)
        return params

    plan = dpci.plan(
        n_samples=n,
        n_features=DIM,
        budget=dpci.ZCDP(1.0),
        l2_strength=strength,
        loss=LOSSES[name],
        mechanism=dpci.OutputPerturbation(moments="none"),
        rows=ROW_NORM,
        intercept=False,
        weights=dpci.Weights(bound=bound, total=total),
    )
    greatest = 0.0
    for _ in range(60):
        scale = rng.choice([1e-3, 1.0])
        rest = [(scale * row, target, bound) for row, target, _ in (record(name, rng) for _ in range(n - 1))]
        row, target, _ = record(name, rng)
        row *= ROW_NORM / np.linalg.norm(row)
        pair = [(row, target, bound), (-row, target, bound)]
        gap = np.linalg.norm(minimiser([*rest, pair[0]]) - minimiser([*rest, pair[1]]))
        greatest = max(greatest, gap / plan.steps[0].sensitivity)
    assert 0.5 < greatest <= ROUNDING


@by_loss
def test_pure_objective_perturbation_of_one_parameter(name):
    """The density of the released parameter by its noise: that of two neighbours differs by the claim at most."""
    rng = np.random.default_rng(7)
    n, strength, total, epsilon = 3, 2.0, 6.0, 1.5
    plan = dpci.plan(
        n_samples=n,
        n_features=1,
        budget=dpci.PureDP(epsilon),
        l2_strength=strength,
        loss=LOSSES[name],
        rows=1.0,
        intercept=False,
        mechanism=dpci.ObjectivePerturbation(moments="none"),
        weights=dpci.Weights(bound=BOUND, total=total),
    )
    scale, grid, greatest = plan.steps[0].scale, np.linspace(-6.0, 6.0, 1001), 0.0
    divisor = total / BOUND

    def log_density(records):
        b, jacobian = -divisor * strength * grid, divisor * strength
        for x, target, weight in records:
            slope, curvature = CORES[name].evaluate(grid * x, np.full(len(grid), target))[1:]
            b = b - weight / BOUND * slope * x
            jacobian = jacobian + weight / BOUND * curvature * x**2
        return -np.abs(b) / scale + np.log(jacobian)

    for _ in range(100):
        rest = [(rng.uniform(-1, 1), rng.choice([0.0, 1.0]) if name == "soft" else 1.0, BOUND) for _ in range(n - 1)]
        pair = [
            (rng.choice([-1.0, 1.0]), rng.choice([0.0, 1.0]) if name == "soft" else 1.0, rng.choice([0.0, BOUND]))
            for _ in range(2)
        ]
        gap = log_density([*rest, pair[0]]) - log_density([*rest, pair[1]])
        greatest = max(greatest, np.abs(gap).max())
    # At one parameter the gradients of two logistic records differ by L R, not twice that.
    assert 0.45 * epsilon < greatest <= epsilon * ROUNDING
