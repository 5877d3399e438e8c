"""An audit of whole persons: one with ten rows is replaced, below the claim, and far above it where rows are people."""

import importlib
import sys
from pathlib import Path

import pytest

import dpci


@pytest.fixture(scope="module")
def bench():
    """Return the script that makes docs/evidence/person_audit.md."""
    folder = str(Path(__file__).parents[2] / "benches")
    sys.path.insert(0, folder)
    try:
        yield importlib.import_module("person_audit")
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_person_of_ten_rows(bench, mechanism):
    protected, alone = (
        bench.bound(mechanism, dpci.PureDP(1.0), 2000, persons=persons, first_seed=10**6) for persons in (True, False)
    )
    assert 0.4 < protected <= 1.0
    assert alone > 2.0
