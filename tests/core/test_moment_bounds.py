"""How near one person comes to the stated sensitivities of the moments, for every loss: a search, and the core's sums.

A person whose rows are alike moves what a row moves. Someone who joins attains every bound. One person for another does
where both can have the greatest weight in orthogonal directions. Where only margins at the surface of the ball have it,
two such persons nearly share a direction, and their matrices cancel in part: there the bound is not tight.
"""

import functools

import numpy as np
import pytest

import dpci
from core.test_whole_persons import BOUND, DIM, LOSSES, RADIUS, ROUNDING, ROW_NORM, Case, N
from support.keywords import assembled

ANGLES = np.linspace(0.0, np.pi, 37)
# What one person for another attains at least of each bound where that is below .95, whatever the rows are.
NOT_TIGHT = {
    "logistic on a ball": 0.87,
    "squared": 0.70,
    "poisson": 0.55,
    "negative_binomial": 0.90,
    "probit": 0.68,
    "cloglog": 0.50,
    "custom": 0.59,  # its declared bounds are met by no margin together
}


class Moments(Case):
    """A case with the claims of joint releases, and the weights of the Hessian in them."""

    def __init__(self, name, neighbors):
        super().__init__(name, "mean", neighbors)
        for key, budget in (("joint, nuclear", dpci.PureDP(1000.0)), ("joint", dpci.ZCDP(1000.0))):
            plan = dpci.plan(**assembled(n_samples=N, n_features=DIM, budget=budget, moments="joint", **self.keywords))
            (step,) = (step for step in plan.steps if step.step == "moments")
            self.claims[key] = N * step.sensitivity, step.scale / step.hessian_scale

    def ratios(self, hessian, covariance):
        """Return what sums that moved by these nuclear and Frobenius norms have of each claim."""
        (nuclear, k), (frobenius, alpha) = self.claims["joint, nuclear"], self.claims["joint"]
        return {
            "hessian": hessian[1] / self.claims["hessian"],
            "hessian, nuclear": hessian[0] / self.claims["hessian, nuclear"],
            "covariance": covariance[1] / self.claims["covariance"],
            "covariance, nuclear": covariance[0] / self.claims["covariance, nuclear"],
            "joint, nuclear": (k * hessian[0] + covariance[0]) / nuclear,
            "joint": np.hypot(alpha * hessian[1], covariance[1]) / frobenius,
        }

    def records(self, length):
        """Return angles to the parameters, slopes and curvatures of rows, and targets: those that can be extreme."""
        u = ROW_NORM * length * np.cos(ANGLES)
        ends = self.core.target_bounds
        targets = np.array([-1.0, 1.0]) if ends is None else np.linspace(*ends, 41) * (1.0 - 1e-9)
        if self.loss.name in {"poisson", "negative_binomial"}:
            targets = np.arange(ends[0], ends[1] + 1.0)
        values = [self.core.evaluate(u, np.full(len(u), y))[1:] for y in targets]
        slope, curvature = (np.array(part) for part in zip(*values, strict=True))
        best = {
            (int(np.argmax(weight * curvature[:, j] + slope[:, j] ** 2)), j)
            for weight in (0.0, 0.3, 1.0, 3.0, 9.0, 1e9)
            for j in range(len(u))
        }
        i, j = np.array(sorted(best)).T
        return ANGLES[j], slope[i, j], curvature[i, j], targets[i]

    def attained(self, neighbors):
        """Return, for each claim, the parameters and the rows of the pair that comes nearest, and how near."""
        found = {}
        for length in [0.0, 1.0, 100.0, 1e4] if self.radius is None else [0.0, 0.5 * RADIUS, RADIUS]:
            angle, slope, curvature, y = self.records(length)
            # In three dimensions two rows can be at any angle from |a - b| to a + b, or what is left of a full turn.
            least, most = np.abs(angle[:, None] - angle), np.pi - np.abs(np.pi - angle[:, None] - angle)
            between = np.clip(0.5 * np.pi, least, most)
            moved = (_norms(weight, between, neighbors) for weight in (curvature, slope**2))
            for key, ratio in self.ratios(*moved).items():
                at = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
                if ratio[at] > found.get(key, (0.0,))[0]:
                    found[key] = ratio[at], length, angle[list(at)], between[at], y[list(at)]
        return found


def _norms(weight, between, neighbors):
    """The nuclear and Frobenius norms of what a pair moves, whose rows have the greatest length and share an angle."""
    p, q = ROW_NORM**2 * weight[:, None], ROW_NORM**2 * weight * (neighbors == "replace_one")
    overlap = 2.0 * p * q * np.cos(between) ** 2
    # Of equal matrices nothing is left but rounding.
    return np.sqrt(np.maximum((p + q) ** 2 - 2.0 * overlap, 0.0)), np.sqrt(np.maximum(p**2 + q**2 - overlap, 0.0))


def rows_at(angles, between):
    """Return two rows at these angles to the first axis, and at an angle to each other."""
    (a, b), cosine = angles, np.cos(between)
    turn = np.clip((cosine - np.cos(a) * np.cos(b)) / max(np.sin(a) * np.sin(b), 1e-9), -1.0, 1.0)
    return (
        ROW_NORM * np.array([np.cos(a), np.sin(a), 0.0]),
        ROW_NORM * np.array([np.cos(b), np.sin(b) * turn, np.sin(b) * np.sqrt(1.0 - turn**2)]),
    )


@functools.cache
def others():
    case, rng = Moments("logistic", "replace_one"), np.random.default_rng(2)
    return [case.person(rng) for _ in range(N - 1)]


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("name", LOSSES)
def test_one_person_attains_the_sensitivities_of_the_moments(name, neighbors):
    case, rng = Moments(name, neighbors), np.random.default_rng(3)
    is_tight = name not in NOT_TIGHT or (neighbors == "add_remove" and name != "custom")
    found = case.attained(neighbors)
    assert min(part[0] for part in found.values()) > (0.95 if is_tight else NOT_TIGHT[name])
    for key, (ratio, length, angles, between, y) in found.items():
        pair = [(np.tile(x, (3, 1)), np.full(3, t), np.full(3, BOUND))
                for x, t in zip(rows_at(angles, between), y, strict=True)]  # fmt: skip
        if neighbors == "add_remove":
            pair[1] = None
        around = [(x, np.full(len(x), y[0]), w) for x, _, w in others()]
        sums = [
            case.sums(np.array([length, 0.0, 0.0]), [*around, *([] if one is None else [one])], rng)[1:] for one in pair
        ]
        moved = [a - b for a, b in zip(*sums, strict=True)]
        norms = [(np.linalg.norm(each, "nuc"), np.linalg.norm(each)) for each in moved]
        reached = case.ratios(*norms)[key]
        assert reached == pytest.approx(ratio, rel=1e-6)
        assert reached <= ROUNDING
