"""Sums over whole persons, as releases compute them: no replaced person moves them more than every loss claims.

Persons have one to five rows anywhere in the table and weights up to a bound. Constructed ones come near the claims.
"""

import functools
import itertools

import numpy as np
import pytest

import dpci
from dpci import _core, losses
from support import custom_losses
from support.core import specified
from support.keywords import assembled

ROW_NORM, DIM, N, BOUND, RADIUS = 1.3, 3, 25, 4.0, 2.0
ROUNDING = 1.0 + 1e-9
LOSSES = {
    "logistic": (losses.Logistic(), None),
    "logistic on a ball": (losses.Logistic(), RADIUS),
    "huber_hinge": (losses.HuberHinge(0.5), None),
    "smooth_hinge": (losses.SmoothHinge(0.3), None),
    "soft_logistic": (losses.SoftLogistic(), None),
    "squared": (losses.Squared(1.0), RADIUS),
    "poisson": (losses.Poisson(count_bound=6.0), RADIUS),
    "negative_binomial": (losses.NegativeBinomial(count_bound=6.0, dispersion=0.4), RADIUS),
    "probit": (losses.Probit(), RADIUS),
    "cloglog": (losses.CLogLog(), RADIUS),
    "huber": (losses.Huber(target_bound=1.0, k=0.3), None),
    "quantile": (losses.Quantile(quantile=0.8, target_bound=1.0, s=0.2), None),
    "custom": (
        custom_losses.pseudo_huber(3.0, target_bounds=(-1.0, 1.0)),
        None,
    ),
}
RULES = {"mean": (True, None), "first three": (True, 3), "rows": (False, None)}


def test_no_loss_is_left_out():
    tested = {loss.name for loss, _ in LOSSES.values()}
    # The hinge has no persons.
    assert tested == {*losses.NAMES} - {"hinge"}


def targets_of(core):
    return np.array([-1.0, 1.0]) if core.target_bounds is None else np.linspace(*core.target_bounds, 5)


class Case:
    """The sums of a loss for persons or weighted rows, and what a plan claims of their sensitivities."""

    def __init__(self, name, rule, neighbors):
        self.loss, self.radius = LOSSES[name]
        self.core = self.loss.to_core()
        self.is_persons, self.max_rows = RULES[rule]
        self.targets = targets_of(self.core)
        self.keywords = {
            "l2_strength": 3.0,
            "loss": self.loss,
            "radius": self.radius,
            "rows": ROW_NORM,
            "intercept": False,
            "neighbors": neighbors,
            "weights": dpci.Weights(bound=BOUND, total=BOUND * N),  # so that N divides shares
            "persons": dpci.Persons(max_rows=self.max_rows) if self.is_persons else None,
        }
        plans = [
            dpci.plan(**assembled(n_samples=N, n_features=DIM, budget=budget, moments="separate", **self.keywords))
            for budget in (dpci.PureDP(1000.0), dpci.ZCDP(1000.0))
        ]
        pure, gaussian = ({step.step: step.sensitivity for step in plan.steps} for plan in plans)
        self.claims = {
            "gradient": pure["coefficients"],
            "hessian": N * gaussian["hessian"],
            "hessian, nuclear": N * pure["hessian"],
            "covariance": N * gaussian["gradient_cov"],
            "covariance, nuclear": N * pure["gradient_cov"],
        }
        self.spec = specified(
            _core.Spec, n_samples=N, n_columns=DIM, row_norm=ROW_NORM, loss=self.core, l2_strength=3.0,
            radius=self.radius, budget=_core.Budget.pure(1000.0), mechanism="objective", moments="joint",
            projection="floor", neighbors=neighbors, persons=self.is_persons, max_rows=self.max_rows,
            weight_bound=BOUND, weight_total=BOUND * N,
        )  # fmt: skip

    def person(self, rng):
        """Rows on the sphere or inside, near each other or not, with weights from 0 to the bound."""
        m = int(rng.integers(1, 6)) if self.is_persons else 1
        x = rng.normal(size=DIM) + rng.choice([0.0, 0.3, 10.0]) * rng.normal(size=(m, DIM))
        reach = ROW_NORM * (1.0 if rng.random() < 0.7 else rng.random())
        x *= reach / np.linalg.norm(x, axis=1, keepdims=True)
        y = rng.choice(self.targets, m) if rng.random() < 0.5 else np.full(m, rng.choice(self.targets))
        weights = BOUND * (np.ones(m) if rng.random() < 0.5 else rng.uniform(size=m))
        return x, y, weights

    def sums(self, params, persons, rng):
        """The gradient, the Hessian and the covariance of a table in which the rows of the persons are anywhere."""
        x, y, weights = (np.concatenate(part) for part in zip(*persons, strict=True))
        ids = np.repeat(rng.permutation(len(persons)), [len(one[1]) for one in persons])
        # Of more than max_rows the first count: the order of each person's rows is kept where that matters.
        keys = rng.uniform(size=len(y)) if self.max_rows is None else rng.uniform(size=len(persons))[ids]
        order = np.argsort(keys, kind="stable")
        gradient, hessian, covariance = _core.Testing.sums(
            self.spec,
            _core.Records(
                np.ascontiguousarray(x[order]),
                y[order],
                persons=ids[order] if self.is_persons else None,
                weights=weights[order],
            ),
            params.tolist(),
        )
        return gradient, hessian.reshape(DIM, DIM), covariance.reshape(DIM, DIM)

    def parts(self, params, pair, others, rng):
        """How far the sums move, over what is claimed; a pair of which the second is None comes or goes."""
        one, other = (self.sums(params, [*others, *([] if p is None else [p])], rng) for p in pair)
        gradient, hessian, covariance = (a - b for a, b in zip(one, other, strict=True))
        moved = {
            "gradient": np.linalg.norm(gradient),
            "hessian": np.linalg.norm(hessian),
            "hessian, nuclear": np.linalg.norm(hessian, "nuc"),
            "covariance": np.linalg.norm(covariance),
            "covariance, nuclear": np.linalg.norm(covariance, "nuc"),
        }
        # What is claimed of moments holds at margins of any size, on a ball at those that it has.
        return {key: value / self.claims[key] for key, value in moved.items()}

    def params(self, rng):
        theta = rng.normal(size=DIM) * rng.choice([0.0, 0.5, 3.0, 100.0])
        norm = np.linalg.norm(theta)
        return theta if self.radius is None or norm <= self.radius else theta * (self.radius / norm)


@functools.cache
def worst(name, relation):
    """Pairs of rows, and parameters, at which single rows come near the claim of the gradient, by a search."""
    (loss, radius), angles = LOSSES[name], np.linspace(0.0, np.pi, 91)
    core = loss.to_core()
    lengths = [0.0, 1.0, 100.0, 1e4] if radius is None else np.linspace(0.0, radius, 9)
    best, found = 0.0, None
    for length, targets in itertools.product(lengths, itertools.product(targets_of(core), repeat=2)):
        # Two rows at two angles to the parameters, on both sides of them.
        u = ROW_NORM * length * np.cos(angles)
        slopes = [core.evaluate(u, np.full(len(u), y))[1] for y in targets]
        for side in (1.0, -1.0):
            x = ROW_NORM * np.column_stack([np.cos(angles), np.sin(angles), 0.0 * angles])
            z = x * [1.0, side, 1.0]
            g, h = slopes[0][:, None] * x, slopes[1][:, None] * z
            if relation == "add_remove":
                h = 0.0 * h
            # Squared distances of the gradients.
            gaps = (g**2).sum(axis=1)[:, None] + (h**2).sum(axis=1) - 2.0 * g @ h.T
            i, j = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
            if gaps[i, j] > best:
                best, found = gaps[i, j], (np.array([length, 0.0, 0.0]), (x[i], targets[0]), (z[j], targets[1]))
    return found


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LOSSES)
def test_no_person_moves_the_sums_more_and_some_move_the_gradient_that_much(name, rule, neighbors):
    case = Case(name, rule, neighbors)
    rng = np.random.default_rng(11)
    others = [case.person(rng) for _ in range(N - 1)]
    for _ in range(60):
        pair = [case.person(rng), case.person(rng) if neighbors == "replace_one" else None]
        parts = case.parts(case.params(rng), pair, others, rng)
        assert max(parts.values()) <= ROUNDING, parts
    # As many rows as count, all alike, with the greatest weight.
    params, *rows = worst(name, neighbors)
    m = 3 if case.is_persons else 1
    pair = [(np.tile(x, (m, 1)), np.full(m, y), np.full(m, BOUND)) for x, y in rows]
    if neighbors == "add_remove":
        pair[1] = None
    parts = case.parts(params, pair, others, rng)
    assert 0.95 <= parts["gradient"] <= ROUNDING, parts
    assert max(parts.values()) <= ROUNDING, parts
