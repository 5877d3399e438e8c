"""Audits of private tuning: an attacker with many releases on neighbouring data stays under the claim.

As in test_audit.py. One candidate is enough: what repeated runs and parts could break is the law of the winner.
"""

import pytest

import dpci
from support.audit import EpsilonBound, RhoBound, lower_bound, publish
from support.tuning import antipodal_params

pytestmark = pytest.mark.prove

N_RUNS = 200_000
DELTA = 0.01
BUDGETS = {
    "pure": (dpci.PureDP, (1.0,), EpsilonBound(0.0), 1.0),
    "zCDP": (dpci.ZCDP, (0.5,), RhoBound(), 0.5),
    "(ε, δ)": (dpci.ApproxDP, (1.0, DELTA), EpsilonBound(DELTA), 1.0),
}


def test_no_attack_beats_the_claim():
    lines = []
    for method in ("repeat", "chunks"):
        for mechanism in ("objective", "output"):
            for notion, (kind, parameters, bound, claim) in BUDGETS.items():
                budgets = kind(*parameters), kind(2 * parameters[0], *parameters[1:])
                found, twice = (
                    lower_bound(*antipodal_params(b, method, n_runs=N_RUNS, seed=60, mechanism=mechanism), bound)
                    for b in budgets
                )
                name = f"{method}, {mechanism}, {notion}"
                lines.append(f"| {name} | {'ρ' if notion == 'zCDP' else 'ε'} | {claim} | {found:.3f} | {twice:.3f} |")
                assert found <= claim, name
                assert twice > found, name
    publish("audit_tuning", lines, f"{N_RUNS:,} simulated tunings", "The record is in either of two parts by chance.")
