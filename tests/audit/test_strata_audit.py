"""An audit of strata: a record that is taken away shows no more than one change, and one that moves more than that."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/strata_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("strata_audit")
    finally:
        sys.path.remove(folder)


def test_a_record_that_moves_changes_two_strata(bench):
    taken, moved = (bench.bound("output", change, 4000, first_seed=10**6) for change in bench.CLAIMS)
    assert 0.4 < taken <= 1.0
    assert 1.0 < moved <= 2.0
