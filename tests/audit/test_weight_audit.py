"""An audit of weights: a record at the bound shows no more than the claim, five equal rows in its place far more."""

BENCH = "weight_audit"


def test_a_record_at_the_bound(bench):
    for mechanism in ("objective", "output"):
        assert 0.35 < bench.bound(mechanism, 2000, protected=True, first_seed=10**6) <= 1.0
    assert bench.bound("output", 2000, protected=False, first_seed=10**6) > 2.0
