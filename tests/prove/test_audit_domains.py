"""Audits over a ball: binding bounds, the squared loss, the hinge, projection, variant cms11.

As in test_audit.py. Scores are one number of the released parameters: the log-ratio of densities for output
perturbation; for objective perturbation over a ball, whose law has no density on the sphere, the parameters along the
direction in which the neighbours pull. With DPCI_EVIDENCE=1 the table is written to docs/evidence/audit_domains.md.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

import dpci
from dpci import _core, lowlevel
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from dpci.settings import Settings
from support.audit import EpsilonBound, RhoBound, lower_bound, publish

pytestmark = pytest.mark.prove

SEED = 51
N_RUNS = 200_000
DELTA = 0.01
PURE, ZCDP, APPROX = dpci.PureDP(1.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, DELTA)
TWICE = {PURE: dpci.PureDP(2.0), ZCDP: dpci.ZCDP(1.0), APPROX: dpci.ApproxDP(2.0, DELTA)}

# The rows that move the gradient of the squared loss most when R = W = B = 1: 30 degrees off the second axis.
EXTREME = {"first": [0.5, np.sqrt(0.75)], "second": [0.5, -np.sqrt(0.75)]}
OTHERS = 30


@dataclass(frozen=True)
class Case:
    """Keywords of a fit and how the neighbours are made.

    ``power``: whether twice the budget must show. Where it need not, the score or the pair is too weak for that, and
    the row only says that this attack stays below the claim; tests/test_ball_privacy.py has exact laws.
    """

    budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP
    keywords: dict = field(default_factory=dict)
    power: bool = True

    def rows(self, which):
        """One extreme row among others along the first axis, which push the minimiser out to the sphere."""
        if self.keywords["loss"] == "hinge":
            return np.array([[1.0, 0.0] if which == "first" else [-1.0, 0.0]]), np.array([1.0])
        X = np.tile([1.0, 0.0], (OTHERS + 1, 1))
        y = np.ones(OTHERS + 1)
        X[0], y[0] = EXTREME[which], -1.0
        return X, y

    def claims(self):
        if self.budget.notion == "pure":
            return [("ε", EpsilonBound(0.0), self.budget.epsilon)]
        if self.budget.notion == "approx":
            return [(f"ε at δ={DELTA}", EpsilonBound(DELTA), self.budget.epsilon)]
        return [("ρ", RhoBound(), self.budget.rho)]


# The unconstrained minimiser is far outside: the bound binds for almost every draw of the noise.
BINDING = {"loss": "squared", "radius": 0.3, "l2_strength": 0.5}
FREE = {"loss": "squared", "radius": 1.0, "l2_strength": 0.5}
HINGE = {"loss": "hinge", "l2_strength": 50.0, "mechanism": "output"}
OUTPUT = {"mechanism": "output"}
PROJECTED = {"mechanism": OutputPerturbation(project=True)}
CMS11 = {"mechanism": ObjectivePerturbation(variant="cms11")}

CASES = {
    "objective, pure, binding": Case(PURE, BINDING),
    "objective, zCDP, binding": Case(ZCDP, BINDING, power=False),
    "objective, (ε, δ), binding": Case(APPROX, BINDING, power=False),
    "objective, pure, inside": Case(PURE, FREE),
    "objective, (ε, δ), inside": Case(APPROX, FREE, power=False),
    "objective, pure, cms11, raised": Case(dpci.PureDP(1.0), {**BINDING, "l2_strength": 1e-4, **CMS11}, power=False),
    "output, pure, binding": Case(PURE, {**BINDING, **OUTPUT}, power=False),
    "output, pure, inside": Case(PURE, {**FREE, **OUTPUT}),
    "output, zCDP, inside": Case(ZCDP, {**FREE, **OUTPUT}, power=False),
    "output, (ε, δ), inside": Case(APPROX, {**FREE, **OUTPUT}),
    "output, pure, projected": Case(PURE, {**BINDING, **PROJECTED}, power=False),
    "output, pure, hinge": Case(PURE, HINGE),
    "output, zCDP, hinge": Case(ZCDP, HINGE),
    "output, (ε, δ), hinge": Case(APPROX, HINGE),
    "output, pure, hinge, binding": Case(PURE, {**HINGE, "l2_strength": 0.5, "radius": 0.5}, power=False),
}


def scores(case, budget):
    """One score a release for each of the two data sets."""
    keywords = {"moments": "none", "fit_intercept": False, **case.keywords}
    settings = Settings(budget=budget, **keywords)
    first, second = case.rows("first"), case.rows("second")
    spec = settings.spec(*first[0].shape)
    tables = _core.audit(spec, *first, *second, n_runs=N_RUNS, seed=SEED, n_threads=None)
    minima = [
        lowlevel.minimize_erm(
            *rows, loss=settings.loss, l2_strength=spec.l2_strength, radius=settings.radius, tolerance=1e-9
        ).params
        for rows in (first, second)
    ]
    pull = minima[0] - minima[1]
    found = []
    for params in (table[:, :2] for table in tables):
        if settings.checked_mechanism == OutputPerturbation():
            distances = [np.linalg.norm(params - minimum, axis=1) for minimum in minima]
            power = 1 if spec.noise_law == "spherical_laplace" else 2
            found.append(distances[1] ** power - distances[0] ** power)
        else:
            found.append(params @ pull / np.linalg.norm(pull))
    # The last digits belong to floating point, which test_audit.py looks at.
    return [np.round(score, 9) for score in found]


@pytest.fixture(scope="module")
def report():
    lines = []
    yield lines
    publish(
        "audit_domains",
        lines,
        f"seed {SEED}: {N_RUNS:,} releases",
        "Scores are rounded to 9 digits. Rows whose last number is below the claim have no power to refute "
        "half of the noise; tests/test_ball_privacy.py has exact laws.",
    )


@pytest.mark.parametrize("name", CASES)
def test_the_claim_holds(name, report):
    case = CASES[name]
    pairs = [scores(case, budget) for budget in (case.budget, TWICE[case.budget])]
    for statement, bound, claim in case.claims():
        found, doubled = (lower_bound(*pair, bound) for pair in pairs)
        report.append(f"| {name} | {statement} | {claim:.3f} | {found:.3f} | {doubled:.3f} |")
        assert found <= claim
        assert doubled > claim or not case.power
