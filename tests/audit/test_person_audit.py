"""An audit of whole persons: one with ten rows is replaced, below the claim, and above it with two ids or ten."""

import pytest

import dpci

BENCH = "person_audit"


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_person_of_ten_rows(bench, mechanism):
    protected, twice, alone = (
        bench.bound(mechanism, dpci.PureDP(1.0), 4000, ids=ids, first_seed=10**6) for ids in bench.IDS
    )
    assert 0.4 < protected <= 1.0 < twice
    assert alone > 2.0


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_person_with_a_delta(bench, mechanism):
    """With two ids the person moves the sum by twice as much: what half of the noise would show."""
    budget = dpci.ApproxDP(1.0, 0.1)
    protected, twice = (
        bench.bound(mechanism, budget, 4000, ids=ids, first_seed=10**6) for ids in ("person", "two ids")
    )
    assert protected <= 0.1 < twice
