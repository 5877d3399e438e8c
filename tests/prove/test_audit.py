"""Audits of every mechanism on its worst cases: a million paired runs stay under the claim, and twice the budget shows.

The attacker of dpci.audit, with all digits of what is released. With DPCI_EVIDENCE=1 the table is written to
docs/evidence/audit.md.
"""

import pytest

from dpci import audit
from dpci.audit.catalogue import all_cases
from support.audit import APPROX, CONFIDENCE, PURE, TWICE, ZCDP, check, publish

pytestmark = pytest.mark.prove

SEED = 50
N_RUNS = 1_000_000
N_TWICE = 200_000
# On these pairs the attack is too weak for twice the budget to show; their rows say only that it stays under the claim.
# A tuned model hides which of its runs won; the seal converts (ε, δ) to zCDP, which is not tight; spherical Laplace
# noise leaks little of what zCDP allows; the functional mechanism drops what has the wrong sign.
WEAK = {
    "objective_curvature": ("zcdp", "approx"), "whole_fit": ("zcdp",), "ball_objective": ("zcdp", "approx"),
    "ball_output": ("zcdp",), "ball_projected": ("zcdp",), "functional_mechanism": ("zcdp",),
    "tuning_repeat": ("pure", "zcdp", "approx"), "tuning_chunks": ("pure", "zcdp", "approx"), "seal": ("approx",),
}  # fmt: skip
CASES = all_cases({"pure": PURE, "zcdp": ZCDP, "approx": APPROX})


@pytest.fixture(scope="module")
def table():
    lines = []
    yield lines
    publish("audit", lines, f"seed {SEED}: {N_RUNS:,} releases ({N_TWICE:,} at twice the budget)", "All digits count.")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_claim_holds_and_twice_the_budget_breaks_it(case, table):
    # Made anew, because some worst cases depend on the budget.
    twice = audit.worst_case(case.name, budget=TWICE[case.budget], neighbors=case.neighbors)
    lines, (claim, doubled) = check(case, n_runs=N_RUNS, n_twice=N_TWICE, seed=SEED, twice=twice)
    table.extend(lines)
    if case.budget.notion not in WEAK.get(case.name, ()):
        assert doubled > claim


def test_an_audit_without_a_difference_finds_nothing():
    case = audit.worst_case("whole_fit", budget=PURE)
    first, second = (case.outputs(case.first, n_runs=100_000, seed=seed) for seed in (1, 2))
    found = audit.epsilon_lower_bound(
        next, iter(first[:20_000]), iter(second[:20_000]), n_runs=20_000, confidence=CONFIDENCE
    )
    assert found.value < 0.2
