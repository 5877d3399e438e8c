"""An audit of the moment matrix: a record shows no more than the claim, and with half the noise more than it."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/moment_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("moment_audit")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize(
    ("notion", "domain", "relation", "least", "n_runs"),
    [("gdp", "blocks", "replace_one", 0.5, 4000), ("pure", "ball", "add_remove", 0.7, 12_000)],
)
def test_a_record_on_the_edge_of_its_domain(bench, notion, domain, relation, least, n_runs):
    _, claim = bench.claim_of(notion)
    found, half = (
        bench.lower(notion, bench.statistics(notion, domain, relation, n_runs, size=size)) for size in (1.0, 2.0)
    )
    assert least < found <= claim
    assert half > 1.1 * claim
