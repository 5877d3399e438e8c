"""An audit of strata: a record that is taken away shows no more than one change, and one that moves more than that."""

BENCH = "strata_audit"


def test_a_record_that_moves_changes_two_strata(bench):
    taken, moved = (bench.bound("output", change, 4000, first_seed=10**6) for change in bench.CLAIMS)
    assert 0.4 < taken <= 1.0
    assert 1.0 < moved <= 2.0
