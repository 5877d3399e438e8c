"""Persons with several rows, and weighted records: sensitivities by brute force, exact losses of small problems."""

import itertools

import mpmath
import numpy as np
import pytest

import dpci
from dpci import _core
from dpci.losses import HuberHinge, Logistic, SoftLogistic
from support.keywords import assembled

ROW_NORM, N, DIM, STRENGTH = 1.3, 40, 3, 0.05
BOUND, TOTAL = 2.5, 60.0
ROUNDING = 1.0 + 1e-9
LOSSES = {"logistic": Logistic(), "huber": HuberHinge(0.5), "soft": SoftLogistic()}
CORES = {name: loss.to_core() for name, loss in LOSSES.items()}
by_loss = pytest.mark.parametrize("name", LOSSES)


def steps(name, relation, budget, mechanism="objective", **rule):
    plan = dpci.plan(
        **assembled(
            n_samples=N, n_features=DIM, budget=budget, l2_strength=STRENGTH, loss=LOSSES[name], mechanism=mechanism,
            rows=ROW_NORM, intercept=False, neighbors=relation, **rule,
        )
    )  # fmt: skip
    return {step.step: step for step in plan.steps}


def targets(name, rng, size):
    return rng.uniform(size=size) if name == "soft" else rng.choice([-1.0, 1.0], size=size)


def person(name, rng, n_rows):
    """Rows on the sphere or inside, near each other or not: extreme persons and ordinary ones."""
    spread = rng.choice([0.0, 0.3, 10.0])
    rows = rng.normal(size=DIM) + spread * rng.normal(size=(n_rows, DIM))
    reach = ROW_NORM if rng.random() < 0.7 else ROW_NORM * rng.random()
    rows *= reach / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, np.full(n_rows, targets(name, rng, 1)[0]) if rng.random() < 0.5 else targets(name, rng, n_rows)


def terms(name, person, params, max_rows=None):
    """A person's mean gradient, and Hessian."""
    rows, y = person
    share = 1.0 / (len(rows) if max_rows is None else max_rows)
    rows, y = rows[:max_rows], y[:max_rows]
    slope, curvature = CORES[name].evaluate(rows @ params, y)[1:]
    return share * slope @ rows, share * (rows.T * curvature) @ rows


def norms(matrices):
    values = np.abs(np.linalg.eigvalsh(matrices))
    return np.linalg.norm(values, axis=-1), values.sum(axis=-1)


def pairs(name, rng, max_rows):
    """Mean gradients and Hessians of 1,200 pairs of persons, ordinary and constructed, along the second axis."""
    found = []
    for trial in range(1200):
        params = rng.normal(size=DIM) * rng.choice([0.0, 0.5, 30.0])
        pair = [person(name, rng, int(rng.integers(1, 7))) for _ in range(2)]
        if trial % 4 == 0:
            pair[1] = (-pair[0][0], 1.0 - pair[0][1] if name == "soft" else pair[0][1])
        if trial % 4 == 1:  # orthogonal persons
            axes = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] * ROW_NORM
            pair = [(np.tile(axes[k], (3, 1)), np.full(3, 1.0)) for k in range(2)]
            params = (
                np.zeros(DIM)
                if rng.random() < 0.5
                else axes[:2].sum(axis=0) * rng.choice([-20.0, 20.0, 0.4, 0.5001 / ROW_NORM**2])
            )
        if trial % 4 == 2:  # all slopes at their bound, nearly antipodal rows
            across, along = np.linalg.qr(rng.normal(size=(DIM, 2)))[0].T
            side = 1.0 if name == "soft" else -1.0
            rows = [ROW_NORM * (sign * np.cos(0.2) * across + side * np.sin(0.2) * along) for sign in (1.0, -1.0)]
            pair = [(np.tile(row, (3, 1)), np.full(3, 0.0 if name == "soft" else 1.0)) for row in rows]
            params = 50.0 * along
        found.append([terms(name, one, params, max_rows) for one in pair])
    return (np.array([[one[i] for one in pair] for pair in found]) for i in range(2))


@by_loss
@pytest.mark.parametrize("rule", [dpci.Persons(), dpci.Persons(max_rows=3)], ids=["mean", "max_rows"])
def test_no_person_moves_more_and_some_move_that_much(name, rule):
    gradients, hessians = pairs(name, np.random.default_rng(5), rule.max_rows)
    for relation in ("replace_one", "add_remove"):
        pure, gaussian = (steps(name, relation, budget, persons=rule) for budget in (dpci.PureDP(3.0), dpci.ZCDP(2.0)))
        separate = steps(name, relation, dpci.ZCDP(2.0), moments="separate", persons=rule)
        # What the joint release of the moments weights the Hessian by: the ratio of the two scales of noise.
        weight = pure["moments"].scale / pure["moments"].hessian_scale
        alpha = gaussian["moments"].scale / gaussian["moments"].hessian_scale
        squares = gradients[:, :, :, None] * gradients[:, :, None, :]
        moved_g, moved_h, moved_s = (
            parts[:, 0] - (parts[:, 1] if relation == "replace_one" else 0.0)
            for parts in (gradients, hessians, squares)
        )
        (of_h, nuclear_of_h), (of_s, nuclear_of_s) = norms(moved_h / N), norms(moved_s / N)
        found = {
            "shift": np.linalg.norm(moved_g, axis=1) / pure["coefficients"].sensitivity,
            "hessian": of_h / separate["hessian"].sensitivity,
            "covariance": of_s / separate["gradient_cov"].sensitivity,
            "nuclear": (weight * nuclear_of_h + nuclear_of_s) / pure["moments"].sensitivity,
            "joint": np.hypot(alpha * of_h, of_s) / gaussian["moments"].sensitivity,
        }
        attained = {key: shares.max() for key, shares in found.items()}
        assert max(attained.values()) <= ROUNDING, attained
        assert min(attained.values()) >= 0.95, attained


def minimiser(name, records, strength, total, of=terms):
    """The minimiser of sums over persons or weighted records, by Newton's method."""
    params = np.zeros(DIM)
    for _ in range(30):
        parts = [of(name, one, params) for one in records]
        gradient = sum(g for g, _ in parts) / total + strength * params
        hessian = sum(h for _, h in parts) / total + strength * np.eye(DIM)
        params = params - np.linalg.solve(hessian, gradient)
    return params


def minimiser_plan(name, strength, n, **unit):
    return dpci.plan(
        n_samples=n, n_features=DIM, budget=dpci.ZCDP(1.0), l2_strength=strength, loss=LOSSES[name],
        mechanism=dpci.OutputPerturbation(moments="none"), rows=dpci.rows.Within(ROW_NORM, intercept=False), **unit,
    )  # fmt: skip


@by_loss
def test_no_person_moves_the_minimiser_more(name):
    rng = np.random.default_rng(6)
    n, strength = 4, 0.5

    plan = minimiser_plan(name, strength, n, persons=dpci.Persons())
    greatest = 0.0
    for _ in range(40):
        rest = [person(name, rng, int(rng.integers(1, 5))) for _ in range(n - 1)]
        rest = [(rows * 1e-3, y) for rows, y in rest]
        one = person(name, rng, 4)
        other = (-one[0], one[1]) if rng.random() < 0.5 else person(name, rng, 2)
        gap = np.linalg.norm(np.subtract(*(minimiser(name, [*rest, last], strength, n) for last in (one, other))))
        greatest = max(greatest, gap / plan.steps[0].sensitivity)
    assert 0.5 < greatest <= ROUNDING


def profile(kappa, n_params, relation="replace_one", *, one_signed=True, **rule):
    return _core.ObjectiveProfile(
        n_samples=1.0, row_norm=1.0, intercept=None, curvature_bound=kappa, l2_strength=1.0, one_signed=one_signed,
        neighbors=relation, n_params=n_params, **rule,
    )  # fmt: skip


def test_the_jacobian_of_a_person_is_bounded_with_its_rank():
    rng = np.random.default_rng(7)
    for kappa, dim, max_rows in itertools.product([0.01, 0.5, 20.0], [1, 2, 5], [None, 1, 2, 4]):
        bound = _core.Testing.log_det(profile(kappa, dim, persons=True, max_rows=max_rows))
        attained = 0.0
        for trial in range(130):
            n_rows = int(rng.integers(1, 8)) if max_rows is None else max_rows
            rows = rng.normal(size=(n_rows, dim))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            if trial == 0:  # orthonormal rows, as many as there can be
                rows = np.eye(dim)[: n_rows if max_rows else dim]
            # The others' Hessian, 1/kappa times the identity or more; curvatures up to 1.
            others = np.eye(dim) / kappa + (trial > 60) * np.diag(rng.random(dim))
            share = 1.0 / max(len(rows), max_rows or 1)
            curved = (rows.T * (share if trial == 0 else share * rng.random(len(rows)))) @ rows
            gain = np.linalg.slogdet(others + curved)[1] - np.linalg.slogdet(others)[1]
            assert gain <= bound * ROUNDING
            attained = max(attained, gain / bound)
        if max_rows is None or max_rows <= dim:
            assert attained >= 0.999
    rules = ({}, {"persons": True, "max_rows": 1}, {"persons": True})
    row, one, person = (_core.Testing.log_det(profile(0.5, 5, **rule)) for rule in rules)
    assert one == row < person < 0.5


def density(name, one, grid, sigma, ridge):
    """Density of the minimiser over a grid of the plane, by the noise that gives each point."""
    rows, y = one
    gradient, hessian = ridge * grid, np.tile(ridge * np.eye(2), (len(grid), 1, 1))
    for row, target in zip(rows, y, strict=True):
        slope, curvature = CORES[name].evaluate(grid @ row, np.full(len(grid), target))[1:]
        gradient = gradient + slope[:, None] * row / len(rows)
        hessian += curvature[:, None, None] * np.outer(row, row) / len(rows)
    jacobian = hessian[:, 0, 0] * hessian[:, 1, 1] - hessian[:, 0, 1] ** 2
    return np.exp(-(gradient**2).sum(axis=1) / (2 * sigma**2)) / (2 * np.pi * sigma**2) * jacobian


@by_loss
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_gaussian_objective_perturbation_of_whole_persons(name, relation):
    """The exact hockey-stick divergence of two persons, by quadrature over the plane, is below the profile's."""
    rng = np.random.default_rng(8)
    kappa, sigma = 0.3, 1.5
    ridge = CORES[name].curvature_bound / kappa
    reach = (7.0 * sigma + 1.0) / ridge
    axis = np.linspace(-reach, reach, 161)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = (axis[1] - axis[0]) ** 2
    bounds = profile(kappa, 2, relation, one_signed=name != "soft", persons=True)
    epsilons = (0.35, 0.7, 1.2)
    limits = np.array([bounds.delta(epsilon, 1.0 / sigma, 0.0) for epsilon in epsilons])
    greatest = np.zeros(len(epsilons))
    for trial in range(16):
        pair = []
        for k in range(2):
            n_rows = int(rng.integers(1, 5))
            angles = rng.uniform(0, 2 * np.pi, n_rows) if trial % 3 else np.full(n_rows, np.pi * k)
            rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
            y = targets(name, rng, n_rows) if trial % 2 else np.full(n_rows, 1.0)
            pair.append((rows, y))
        if relation == "add_remove":
            pair[1] = (np.zeros((1, 2)), np.ones(1))
        first, second = (density(name, one, grid, sigma, ridge) for one in pair)
        # The Hessian of the Huber hinge jumps.
        assert abs(first.sum() * cell - 1.0) < (2e-3 if name == "huber" else 1e-6)
        for p, q in ((first, second), (second, first)):
            found = [np.maximum(p - np.exp(epsilon) * q, 0.0).sum() * cell for epsilon in epsilons]
            greatest = np.maximum(greatest, found / limits)
    assert greatest.max() <= 1.0 + 1e-6
    # All corners count at once, and no person stays at a corner for all params: below 1, but of that size.
    assert greatest.max() > 0.1


def test_the_mean_excess_is_that_of_a_normal_loss():
    rng = np.random.default_rng(9)
    one_signed = profile(0.0, 3, "add_remove", persons=True)
    for epsilon, ratio in ((0.1, 0.5), (1.0, 0.4), (0.5, 0.9)):
        loss = ratio**2 / 2 + ratio * rng.normal(size=4_000_000)
        expected = np.maximum(loss - epsilon, 0.0).mean()
        assert one_signed.delta(epsilon, ratio, 0.0) == pytest.approx(expected, rel=0.02)
        # Never below that of a row.
        assert one_signed.delta(epsilon, ratio, 0.0) >= profile(0.0, 3, "add_remove").delta(epsilon, ratio, 0.0)


def test_the_price_of_persons_is_small():
    """At the same n a person costs hardly more noise than a row, by every mechanism and notion."""
    for mechanism, budget in itertools.product(
        ("objective", "output"), (dpci.PureDP(1.0), dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6))
    ):
        row, person = (
            dpci.plan(n_samples=5000, n_features=10, budget=budget, l2_strength=0.01, mechanism=mechanism, **rule)
            for rule in ({}, {"persons": dpci.Persons()})
        )
        assert 1.0 <= person.steps[0].scale / row.steps[0].scale < 1.02


def mean_excess(epsilon, square):
    """E(L - epsilon)₊ for L ~ N(square / 2, square), by 30 digits."""
    if square == 0.0:
        return 0.0
    with mpmath.workdps(30):
        s = mpmath.sqrt(square)
        x = epsilon / s - s / 2
        return float(s * (mpmath.npdf(x) - x * mpmath.ncdf(-x)))


def test_no_angle_between_two_persons_is_worse_than_the_bound():
    """Any-signed losses under replace-one: the four corners have the squares w, w, 4 - w and 4 - w."""
    bound = profile(0.0, 3, one_signed=False, persons=True)
    interior = 0
    for epsilon, ratio, mu in itertools.product(
        (0.0, 0.01, 0.1, 0.45, 1.0), (1e-3, 9e-3, 0.05, 0.12), (0.0, 0.01, 0.2)
    ):
        found = bound.delta(epsilon, ratio, mu)
        sums = [
            2 * mean_excess(epsilon, w * ratio**2 + mu**2) + 2 * mean_excess(epsilon, (4 - w) * ratio**2 + mu**2)
            for w in np.linspace(0.0, 2.0, 41).tolist()
        ]
        greatest = min(max(sums), 1.0)
        assert found >= greatest * (1 - 1e-9)
        # The chord is above the worst angle by little, and where ε + q/2 ≥ √q on the way to 2LR by nothing.
        assert found <= 1.017 * greatest or greatest > 0.79
        length = np.hypot(2 * ratio, mu)
        if length <= 1 and epsilon + length**2 / 2 >= length:
            assert found <= sums[0] * (1 + 1e-9)
        else:
            interior += found > 1.001 * greatest
    assert interior


def record(name, rng):
    """A row, its target and its weight, often the greatest."""
    row = rng.normal(size=DIM)
    row *= (ROW_NORM if rng.random() < 0.7 else ROW_NORM * rng.random()) / np.linalg.norm(row)
    target = rng.uniform() if name == "soft" else rng.choice([-1.0, 1.0])
    return row, target, BOUND if rng.random() < 0.7 else BOUND * rng.random()


def weighted(name, one, params):
    """The weighted gradient of a record, and its Hessian."""
    row, target, weight = one
    slope, curvature = (
        float(value[0]) for value in CORES[name].evaluate(np.array([row @ params]), np.array([target]))[1:]
    )
    return weight * slope * row, weight * curvature * np.outer(row, row)


@by_loss
@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_no_weighted_record_moves_more_and_some_move_that_much(name, relation):
    rng = np.random.default_rng(5)
    given = {"weights": dpci.Weights(bound=BOUND, total=TOTAL)}
    pure, gaussian = (steps(name, relation, budget, **given) for budget in (dpci.PureDP(5.0), dpci.ZCDP(3.0)))
    separate = steps(name, relation, dpci.ZCDP(3.0), moments="separate", **given)
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
        (g, h), (other_g, other_h) = (weighted(name, one, params) for one in pair)
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
    plan = minimiser_plan(name, strength, n, weights=dpci.Weights(bound=bound, total=total))
    greatest = 0.0
    for _ in range(60):
        scale = rng.choice([1e-3, 1.0])
        rest = [(scale * row, target, bound) for row, target, _ in (record(name, rng) for _ in range(n - 1))]
        row, target, _ = record(name, rng)
        row *= ROW_NORM / np.linalg.norm(row)
        pair = [(row, target, bound), (-row, target, bound)]
        ends = [minimiser(name, [*rest, last], strength, total, weighted) for last in pair]
        gap = np.linalg.norm(np.subtract(*ends))
        greatest = max(greatest, gap / plan.steps[0].sensitivity)
    assert 0.5 < greatest <= ROUNDING


@by_loss
def test_pure_objective_perturbation_of_one_parameter(name):
    """The density of the released parameter by its noise: that of two neighbours differs by the claim at most."""
    rng = np.random.default_rng(7)
    n, strength, total, epsilon = 3, 2.0, 6.0, 1.5
    plan = dpci.plan(
        n_samples=n, n_features=1, budget=dpci.PureDP(epsilon), l2_strength=strength, loss=LOSSES[name],
        rows=dpci.rows.Within(1.0, intercept=False), mechanism=dpci.ObjectivePerturbation(moments="none"),
        weights=dpci.Weights(bound=BOUND, total=total),
    )  # fmt: skip
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
