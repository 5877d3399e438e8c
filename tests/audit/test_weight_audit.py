"""An audit of weights: a record at the bound shows no more than the claim, five equal rows in its place far more."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/weight_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("weight_audit")
    finally:
        sys.path.remove(folder)


def test_a_record_at_the_bound(bench):
    for mechanism in ("objective", "output"):
        assert 0.35 < bench.bound(mechanism, 2000, protected=True, first_seed=10**6) <= 1.0
    assert bench.bound("output", 2000, protected=False, first_seed=10**6) > 2.0
