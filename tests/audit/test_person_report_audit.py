"""An audit of per-instance reports of persons: below the claim, and above it with half the noise."""

import pytest

BENCH = "person_report_audit"


@pytest.mark.parametrize("kind", ["data dependent", "data independent"])
def test_a_person_with_two_ids_refutes_the_claim(bench, kind):
    """He moves sums by twice as much, which is what half of the noise would show."""
    protected, twice = (bench.bound(kind, 4000, ids=ids, first_seed=10**6) for ids in ("person", "two ids"))
    assert protected <= bench.BUDGET.delta < twice
