"""Audits of whole per-instance reports: parameters, gradient and Hessian together stay under the claim.

The attacker of test_audit.py, who knows both data sets and takes the logarithm of the density ratio of all that was
released as the score. One parameter; with DPCI_EVIDENCE=1 the table is written to docs/evidence/audit_report.md.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import dpci
from dpci import _core
from dpci.losses import HuberHinge, Logistic, SoftLogistic
from dpci.settings import Settings
from support.audit import EpsilonBound, lower_bound, publish

pytestmark = pytest.mark.prove

SEED = 61
N_RUNS = 60_000
DELTA = 0.01


@dataclass(frozen=True)
class Case:
    """A loss, λ, the shares, and whether twice the budget must show; the record x=1 is there or is not."""

    loss: object
    l2_strength: float
    shares: tuple[float, float, float] | None
    calibration: str = "tight"
    power: bool = True
    target: float = 1.0

    def data(self, present):
        return np.array([[1.0], [0.0]][not present :]), np.array([self.target, self.target][not present :])

    def spec(self, epsilon):
        settings = Settings(
            budget=dpci.ApproxDP(epsilon, DELTA),
            l2_strength=self.l2_strength,
            loss=self.loss,
            moments="none",
            calibration=self.calibration,
            fit_intercept=False,
            neighbors="add_remove",
            n_public=2,
        )
        claim = {"failure_probability": 1e-6, "simultaneous": False, "bound": "interpolated"}
        return settings, _core.ReportSpec(settings.spec(2, 1), shares=self.shares, **claim)


# Parameters near zero: there the Huber hinge has its steepest slope and no curvature, the logistic loss its greatest
# curvature and half its slope.
CASES = {
    "report, Huber": Case(HuberHinge(h=0.5), 50.0, (0.2, 0.7, 0.1)),
    "report, Huber, half the budget for each of the first two": Case(HuberHinge(h=0.5), 50.0, (0.5, 0.499, 0.001)),
    "report, Huber, data-independent": Case(HuberHinge(h=0.5), 50.0, None),
    "report, Hessian alone": Case(Logistic(), 200.0, (1e-4, 1e-4, 0.9998)),
    "report, logistic": Case(Logistic(), 200.0, (0.2, 0.7, 0.1), power=False),
    "report, soft label 1": Case(SoftLogistic(), 200.0, (0.2, 0.7, 0.1), power=False),
    "report, Huber, paper": Case(HuberHinge(h=0.5), 50.0, (0.2, 0.7, 0.1), calibration="paper", power=False),
}


def releases(spec, data, seed):
    """Parameters, gradients and Hessians of many seeded reports, each of shape (n_runs,), or None; and the steps."""
    found = [
        _core.release_report(spec, *data, clip=False, n_threads=1, seed=seed * N_RUNS + run) for run in range(N_RUNS)
    ]
    values = [np.array([release["params"][0] for release in found])]
    for name in ("gradient", "hessian"):
        first = found[0][name]
        values.append(None if first is None else np.array([np.ravel(release[name])[0] for release in found]))
    return values, found[0]["steps"]


def log_density(settings, steps, data, values):
    """Of the releases on ``data``, up to what does not depend on it."""
    (X, y), (theta, gradient, hessian) = data, values
    ridge = settings.n_public * settings.l2_strength
    u = theta[:, None] * X[:, 0]
    _, slopes, curvatures = settings.core_loss.evaluate(u.ravel(), np.tile(y, len(theta)))
    slope = slopes.reshape(u.shape) @ X[:, 0] + ridge * theta
    curvature = curvatures.reshape(u.shape) @ X[:, 0] ** 2 + ridge
    # The noise that leads to these parameters is minus the gradient.
    total = np.log(curvature) - (slope / steps[0]["scale"]) ** 2 / 2.0
    if gradient is not None:
        total -= ((gradient - slope) / steps[1]["scale"]) ** 2 / 2.0
        total -= ((hessian - curvature) / steps[2]["scale"]) ** 2 / 2.0
    return total


def measured(case, epsilon):
    settings, spec = case.spec(epsilon)
    pair = []
    for seed, present in ((SEED, True), (SEED + 1, False)):
        values, steps = releases(spec, case.data(present), seed)
        with_record, without = (log_density(settings, steps, case.data(there), values) for there in (True, False))
        pair.append(np.round(with_record - without, 9))
    return lower_bound(*pair, EpsilonBound(DELTA))


@pytest.fixture(scope="module")
def table():
    lines = []
    yield lines
    publish("audit_report", lines, f"seed {SEED}: {N_RUNS:,} reports")


@pytest.mark.parametrize("name", CASES)
def test_the_claim_holds_and_twice_the_budget_breaks_it(name, table):
    case = CASES[name]
    found, doubled = (measured(case, epsilon) for epsilon in (1.0, 2.0))
    table.append(f"| {name} | ε at δ={DELTA} | 1.000 | {found:.3f} | {doubled:.3f} |")
    assert found <= 1.0
    if case.power:
        assert doubled > 1.0
