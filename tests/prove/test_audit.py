"""Audits: an attacker with many releases on neighbouring data stays under the claim, and twice the budget shows.

For each mechanism the neighbours are a worst case, or near one, and the attacker knows both data sets: the score of a
release is the logarithm of the ratio of its densities, or something close. On one half of the releases a threshold and
a direction are chosen. On the other half Clopper-Pearson bounds p <= P(event on D) and q >= P(event on D') give, with
confidence 99.9%, an epsilon that the mechanism exceeds: log((p - delta) / q). Under zCDP they give a rho, because a
yes/no question has no greater Renyi divergence than the whole release. With DPCI_EVIDENCE=1 the table is written to
docs/evidence/audit.md.
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

import dpci
from dpci import _core, lowlevel
from dpci.losses import HuberHinge, Logistic, SoftLogistic
from dpci.settings import Settings
from support.audit import EpsilonBound, RhoBound, lower_bound, publish

pytestmark = pytest.mark.prove

SEED = 50
N_RUNS = 400_000
# Where no delta is claimed, one that this many runs can measure.
DELTA = 0.01
PURE, ZCDP, APPROX = dpci.PureDP(1.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, DELTA)
TWICE = {PURE: dpci.PureDP(2.0), ZCDP: dpci.ZCDP(1.0), APPROX: dpci.ApproxDP(2.0, DELTA)}

Rows = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """Two neighbouring data sets and the keywords of a fit; ``power``: whether twice the budget must show."""

    budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP
    first: Rows
    second: Rows
    keywords: dict = field(default_factory=dict)
    power: bool = True

    def settings(self, budget):
        return Settings(budget=budget, fit_intercept=False, **self.keywords)

    def claims(self):
        """What the budget promises: name, bound and value of each statement, the sharpest first."""
        if self.budget.notion == "pure":
            return [("ε", EpsilonBound(0.0), self.budget.epsilon)]
        at_delta = f"ε at δ={DELTA}", EpsilonBound(DELTA)
        if self.budget.notion == "approx":
            return [(*at_delta, self.budget.epsilon)]
        epsilon = _core.zcdp_to_approx_epsilon(self.budget.rho, DELTA, "tight")
        return [("ρ", RhoBound(), self.budget.rho), (*at_delta, epsilon)]


def rows(*x):
    return np.array(x, dtype=float), np.ones(len(x))


def turned(angle):
    return -np.cos(angle), np.sin(angle)


# With this much regularisation the params stay near zero, where the Huber hinge is a line of slope -1: neighbours shift
# the noise, and the minimiser, by all that the bounds allow.
LINE = {"loss": HuberHinge(h=0.5), "l2_strength": 50.0}
COEFFICIENTS = {**LINE, "moments": "none"}
ADD_REMOVE = {"neighbors": "add_remove", "n_public": 2}
ANTIPODAL = {"first": rows([1.0]), "second": rows([-1.0])}
ONE_LESS = {"first": rows([1.0], [0.0]), "second": rows([0.0])}
# Near params of zero the logistic loss has its greatest curvature, and all slopes are as great as their bound.
MOMENTS = {"loss": Logistic(), "l2_strength": 1e4, "split": (0.02, 0.49, 0.49)}
ORTHOGONAL = {"first": rows([1.0, 0.0]), "second": rows([0.0, 1.0])}
SEPARATE, PAPER = {"moments": "separate"}, {"moments": "separate", "calibration": "paper"}
# Between antipodal, the worst for the coefficients, and orthogonal, the worst for the moments.
BETWEEN = {"first": rows([1.0, 0.0]), "second": rows(turned(0.5))}
# Thirty rows push the params to where the slope of the changed row, at a negative margin, is close to its bound.
STEEP = {"moments": "none", "l2_strength": 0.025}
OTHERS = 30 * [[-1.0]]
STEEP_REMOVED = {"first": rows([1.0], *OTHERS), "second": rows(*OTHERS)}
STEEP_REPLACED = {
    "first": rows([0.6, 0.8], *(30 * [[-1.0, 0.0]])),
    "second": rows([0.6, -0.8], *(30 * [[-1.0, 0.0]])),
}
STEEP_ADD_REMOVE = {"neighbors": "add_remove", "n_public": 30}


def output(**keywords):
    return {**keywords, "mechanism": "output"}


CASES = {
    "objective, pure": Case(PURE, **ANTIPODAL, keywords=COEFFICIENTS),
    "objective, pure, two parameters": Case(PURE, rows([1.0, 0.0]), rows([-1.0, 0.0]), COEFFICIENTS),
    "objective, pure, add/remove": Case(PURE, **ONE_LESS, keywords={**COEFFICIENTS, **ADD_REMOVE}),
    "objective, pure, logistic, curvature costs half": Case(
        PURE,
        **ANTIPODAL,
        keywords={"loss": Logistic(), "moments": "none", "l2_strength": 0.25 / np.expm1(0.5)},
        power=False,
    ),
    "objective, zCDP": Case(ZCDP, **ANTIPODAL, keywords=COEFFICIENTS),
    "objective, zCDP, paper": Case(ZCDP, **ANTIPODAL, keywords={**COEFFICIENTS, "calibration": "paper"}),
    "objective, (ε, δ)": Case(APPROX, **ANTIPODAL, keywords=COEFFICIENTS),
    "objective, (ε, δ), two parameters": Case(APPROX, rows([1.0, 0.0]), rows([-1.0, 0.0]), COEFFICIENTS),
    "objective, (ε, δ), add/remove": Case(APPROX, **ONE_LESS, keywords={**COEFFICIENTS, **ADD_REMOVE}),
    "objective, (ε, δ), paper, add/remove": Case(
        APPROX, **ONE_LESS, keywords={**COEFFICIENTS, **ADD_REMOVE, "calibration": "paper"}, power=False
    ),
    # So few rows do not make both slopes steep and the rows nearly opposite: 1.3 of the shift of 2 that noise hides.
    "objective, (ε, δ), logistic": Case(APPROX, **STEEP_REPLACED, keywords={"loss": Logistic(), **STEEP}, power=False),
    "objective, (ε, δ), logistic, add/remove": Case(
        APPROX, **STEEP_REMOVED, keywords={"loss": Logistic(), **STEEP, **STEEP_ADD_REMOVE}
    ),
    "objective, (ε, δ), soft logistic": Case(
        APPROX, **STEEP_REPLACED, keywords={"loss": SoftLogistic(), **STEEP}, power=False
    ),
    "objective, (ε, δ), soft logistic, add/remove": Case(
        APPROX, **STEEP_REMOVED, keywords={"loss": SoftLogistic(), **STEEP, **STEEP_ADD_REMOVE}
    ),
    "output, pure": Case(PURE, **ANTIPODAL, keywords=output(**COEFFICIENTS)),
    "output, pure, two parameters": Case(PURE, rows([1.0, 0.0]), rows([-1.0, 0.0]), output(**COEFFICIENTS)),
    "output, pure, add/remove": Case(PURE, **ONE_LESS, keywords=output(**COEFFICIENTS, **ADD_REMOVE)),
    "output, zCDP": Case(ZCDP, **ANTIPODAL, keywords=output(**COEFFICIENTS)),
    "output, (ε, δ)": Case(APPROX, **ANTIPODAL, keywords=output(**COEFFICIENTS)),
    "output, (ε, δ), paper": Case(
        APPROX, **ANTIPODAL, keywords=output(**COEFFICIENTS, calibration="paper"), power=False
    ),
    "joint moments, pure": Case(PURE, **ORTHOGONAL, keywords=MOMENTS),
    "joint moments, pure, add/remove": Case(
        PURE, rows([1.0, 0.0], [0.0, 0.0]), rows([0.0, 0.0]), {**MOMENTS, **ADD_REMOVE}
    ),
    "separate moments, pure": Case(PURE, **ORTHOGONAL, keywords={**MOMENTS, **SEPARATE}),
    "separate moments, pure, paper": Case(PURE, **ORTHOGONAL, keywords={**MOMENTS, **PAPER}, power=False),
    "joint moments, zCDP": Case(ZCDP, **ORTHOGONAL, keywords=MOMENTS),
    "separate moments, zCDP": Case(ZCDP, **ORTHOGONAL, keywords={**MOMENTS, **SEPARATE}),
    "separate moments, zCDP, paper": Case(ZCDP, **ORTHOGONAL, keywords={**MOMENTS, **PAPER}, power=False),
    "joint moments, (ε, δ)": Case(APPROX, **ORTHOGONAL, keywords=output(**MOMENTS)),
    "separate moments, (ε, δ)": Case(APPROX, **ORTHOGONAL, keywords=output(**MOMENTS, **SEPARATE)),
    "whole fit, objective, pure": Case(PURE, **BETWEEN, keywords=LINE),
    # In two dimensions spherical Laplace noise leaks little of what zCDP allows; in one the moments do not change.
    "whole fit, objective, zCDP": Case(ZCDP, **BETWEEN, keywords=LINE, power=False),
    "whole fit, objective, zCDP, one parameter": Case(ZCDP, **ANTIPODAL, keywords=LINE),
    "whole fit, objective, (ε, δ)": Case(APPROX, **BETWEEN, keywords=LINE),
    "whole fit, objective, (ε, δ), add/remove": Case(APPROX, **ONE_LESS, keywords={**LINE, **ADD_REMOVE}),
    "whole fit, output, pure": Case(PURE, **BETWEEN, keywords=output(**LINE)),
    "whole fit, output, zCDP": Case(ZCDP, **BETWEEN, keywords=output(**LINE)),
    "whole fit, output, (ε, δ)": Case(APPROX, **BETWEEN, keywords=output(**LINE)),
    "whole fit, objective, pure, logistic": Case(
        PURE, **BETWEEN, keywords={"loss": Logistic(), "l2_strength": 2.0}, power=False
    ),
}


# Scores.


@dataclass
class Releases:
    """Released values of many runs: params (n_runs, d), and matrices (n_runs, d, d) or nothing."""

    params: np.ndarray
    matrices: list[np.ndarray]

    @classmethod
    def from_table(cls, table, dim):
        params, *triangles = np.split(table, [dim, dim + dim * (dim + 1) // 2], axis=1)
        lower = np.tril_indices(dim)
        matrices = []
        for triangle in triangles:
            if triangle.shape[1]:
                matrix = np.zeros((len(table), dim, dim))
                matrix[:, lower[0], lower[1]] = matrix[:, lower[1], lower[0]] = triangle
                matrices.append(matrix)
        return cls(params, matrices)


def log_density(settings, steps, data, releases):
    """Of the releases on ``data``, up to what does not depend on the data; close to it for matrix Laplace noise."""
    (X, y), theta = data, releases.params
    n, strength = settings.n_public or len(X), settings.l2_strength
    u = theta @ X.T
    _, slopes, curvatures = settings.core_loss.evaluate(u.ravel(), np.tile(y, len(theta)))
    slopes, curvatures = slopes.reshape(u.shape), curvatures.reshape(u.shape)
    squares = X[:, :, None] * X[:, None, :]
    if settings.checked_mechanism.name == "objective":
        noise = slopes @ X + n * strength * theta
        jacobian = np.einsum("rn,nij->rij", curvatures, squares) + n * strength * np.eye(X.shape[1])
        total = np.linalg.slogdet(jacobian)[1]
    else:
        noise = (
            theta
            - lowlevel.minimize_erm(
                X, y, loss=settings.checked_loss, l2_strength=strength * n / len(X), tolerance=1e-12
            ).params
        )
        total = np.zeros(len(theta))
    total += log_noise(steps[0]["noise"], steps[0]["scale"], np.linalg.norm(noise, axis=1))
    if releases.matrices:
        scales = [steps[1]["hessian_scale"], steps[1]["scale"]] if len(steps) == 2 else [s["scale"] for s in steps[1:]]
        for noisy, weights, scale in zip(releases.matrices, (curvatures, slopes**2), scales, strict=True):
            error = noisy - np.einsum("rn,nij->rij", weights, squares) / n
            order = "nuc" if steps[1]["noise"] == "matrix_laplace" else "fro"
            size = (
                np.abs(np.linalg.eigvalsh(error)).sum(axis=1) if order == "nuc" else np.linalg.norm(error, axis=(1, 2))
            )
            if scale:
                total += log_noise(steps[-1]["noise"], scale, size)
    return total


def log_noise(family, scale, size):
    return -((size / scale) ** 2) / 2.0 if family == "gaussian" else -size / scale


def scores(case, budget):
    """Log density ratios of the releases on the first data set, and of those on the second."""
    settings = case.settings(budget)
    dim = case.first[0].shape[1]
    spec = settings.spec(len(case.first[0]), dim)
    steps = _core.fit(spec, *case.first, clip=False, n_threads=1, seed=SEED)["steps"]
    tables = _core.audit(spec, *case.first, *case.second, n_runs=N_RUNS, seed=SEED, n_threads=None)
    result = []
    for table in tables:
        releases = Releases.from_table(table, dim)
        densities = [log_density(settings, steps, data, releases) for data in (case.first, case.second)]
        result.append(densities[0] - densities[1])
    return result


# Audits.


@pytest.fixture(scope="module")
def report():
    """Collect lines of the table, then print them, and keep them as evidence where that is asked for."""
    lines = []
    yield lines
    publish(
        "audit",
        lines,
        f"seed {SEED}: {N_RUNS:,} releases",
        'Scores are rounded to 9 digits; the last line is not rounded, see "Floating point" in docs/privacy.md.',
    )


@pytest.mark.parametrize("name", CASES)
def test_the_claim_holds_and_twice_the_budget_breaks_it(name, report):
    case = CASES[name]
    # The last digits belong to floating point, which has a test of its own.
    pairs = [[np.round(score, 9) for score in scores(case, budget)] for budget in (case.budget, TWICE[case.budget])]
    results = [
        (statement, claim, *(lower_bound(*pair, bound) for pair in pairs)) for statement, bound, claim in case.claims()
    ]
    for statement, claim, found, doubled in results:
        report.append(f"| {name} | {statement} | {claim:.3f} | {found:.3f} | {doubled:.3f} |")
    assert all(found <= claim for _, claim, found, _ in results)
    if case.power:
        _, claim, _, doubled = results[0]
        assert doubled > claim


@pytest.mark.xfail(strict=True, reason="noise is added in double precision: docs/privacy.md, Floating point")
def test_the_last_digits_tell_nothing(report):
    """Which doubles can be sums of the minimiser and noise depends on the minimiser (Mironov 2012)."""
    case = CASES["output, pure"]
    found, doubled = (lower_bound(*scores(case, budget), EpsilonBound(0.0)) for budget in (PURE, TWICE[PURE]))
    report.append(f"| output, pure, all digits | ε | {PURE.epsilon:.3f} | {found:.3f} | {doubled:.3f} |")
    assert found <= PURE.epsilon


def test_an_audit_without_a_difference_finds_nothing():
    data = rows([1.0])
    same = scores(Case(PURE, data, data, COEFFICIENTS), PURE)
    noise = np.random.default_rng(SEED).standard_normal((2, N_RUNS))
    for bound in (EpsilonBound(0.0), EpsilonBound(DELTA), RhoBound()):
        assert lower_bound(*same, bound) == 0.0
        assert lower_bound(*noise, bound) < 0.02


def test_bounds_of_known_mechanisms():
    """Near the truth and below: randomised response, whose rho is epsilon tanh(epsilon / 2), and a Gaussian."""
    rng = np.random.default_rng(SEED)
    truth = np.exp(1.0) / (1.0 + np.exp(1.0))
    answers = (rng.uniform(size=(2, N_RUNS)) < np.array([[truth], [1.0 - truth]])).astype(float)
    assert 0.97 < lower_bound(*answers, EpsilonBound(0.0)) <= 1.0
    assert 0.95 * np.tanh(0.5) < lower_bound(*answers, RhoBound()) <= np.tanh(0.5)
    shifted = rng.standard_normal((2, N_RUNS)) + np.array([[1.0], [0.0]])
    assert 0.6 * 0.5 < lower_bound(*shifted, RhoBound()) <= 0.5
    epsilon = next(e for e in np.linspace(0.0, 5.0, 5001) if _core.gaussian_delta(e, 1.0) <= DELTA)
    assert 0.85 * epsilon < lower_bound(*shifted, EpsilonBound(DELTA)) <= epsilon
