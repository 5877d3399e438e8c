"""The audit of released schemas: its laws, and what few runs find."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "benches"


@pytest.fixture(scope="module")
def audit():
    """Return the script that makes docs/evidence/schema_audit.md."""
    sys.path.insert(0, str(BENCHES))
    try:
        yield importlib.import_module("schema_audit")
    finally:
        sys.path.remove(str(BENCHES))


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("rows", [1, 3])
def test_few_runs_find_no_more_than_the_claim(audit, neighbors, rows):
    way = audit.Way(neighbors=neighbors, rows=rows)
    assert audit.of_bounds(way, 300) <= 4.0
    assert audit.of_levels(way, 300) <= 0.05
    for law in (audit.levels_law((3, 8), way), audit.bounds_law(audit.np.arange(100.0) / 13.0, 0.1, way)[0]):
        assert sum(law.values()) == pytest.approx(1.0)


def test_rows_that_are_taken_for_people_are_found(audit):
    way = audit.Way(neighbors="add_remove", rows=3, as_people=True)
    assert audit.of_bounds(way, 6_000) > 4.0
    assert audit.of_levels(way, 1_000) > 0.05
