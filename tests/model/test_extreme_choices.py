"""Public choices of any size: refused before anything is spent, or all that can be asked of the fit has an answer."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from support.extreme_choices import CLASSES, PATTERN, attempt
from support.keywords import assembled

COMMON = {"classes": (0, 1)}
BUDGET = dpci.ZCDP(0.5)
PLANNED = {"n_samples": 8, "n_features": 2, "mechanism": "output", "budget": BUDGET}


def test_accepted_choices_have_all_answers():
    accepted = sum(attempt(seed) for seed in range(50))
    assert accepted > 10


@pytest.mark.prove
def test_accepted_choices_have_all_answers_at_length():
    accepted = 0
    for seed in range(1000, 9000):
        accepted += attempt(seed)
    assert accepted > 2000


HINGE = {"loss": "hinge", "moments": "none", "mechanism": "output"}

# Once accepted and spent: afterwards an interval overflowed, a test or a saved file was refused, or the call failed.
FOUND = {
    "intervals overflow": {"l2_strength": 1e-160, "mechanism": "output", "budget": BUDGET},
    "nothing is left": {"l2_strength": 1e-300, "mechanism": "output", "budget": BUDGET},
    "condition": {"l2_strength": 6e-25, "mechanism": "output", "budget": dpci.ZCDP(0.06), "rows": 3.8},
    "great strength": {"l2_strength": 4e299, "mechanism": "output", "budget": dpci.PureDP(2.6), "rows": 8.5},
    "small rows": {"l2_strength": 1.0, "rows": 1e-175, "intercept": 1e-175, "budget": BUDGET},
    "intercept": {"l2_strength": 0.1, "intercept": 1e151, "mechanism": "output", "budget": dpci.PureDP(70.0)},
    "radius": {"l2_strength": 1.0, "radius": 1e-84, "mechanism": "output", "budget": dpci.PureDP(5.0)},
    "hinge": {**HINGE, "l2_strength": 1.0, "radius": 6e207, "budget": BUDGET},
    "budget": {"l2_strength": 0.1, "mechanism": "output", "budget": dpci.PureDP(5e36)},
    "small budget": {"l2_strength": 0.1, "mechanism": "output", "budget": dpci.ZCDP(1e-100)},
    "split": {"l2_strength": 0.35, "budget": dpci.ZCDP(0.18), "moments": "separate", "split": (0.9, 0.1, 1e-130)},
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_is_refused_before_it_is_paid(case):
    keywords = {"moments": "joint", **FOUND[case]}
    rule = r"must (be at least|be at most).*, got "
    refused = (InvalidInput, dpci.RegularizationTooSmall)
    with pytest.raises(refused, match=rule):
        dpci.plan(**assembled(n_samples=8, n_features=2, classes=(0, 1), **keywords))
    ledger = dpci.Ledger(dpci.PureDP(1e50) if keywords["budget"].notion == "pure" else dpci.ZCDP(1.0))
    rows = PATTERN * keywords.get("rows", 1.0)
    with pytest.raises(refused, match=rule):
        dpci.fit(rows, CLASSES, **assembled(**COMMON, **keywords, ledger=ledger))
    assert ledger.history == ()


@pytest.mark.parametrize("name", ["l2_strength", "rows", "intercept", "radius"])
@pytest.mark.parametrize("size", [1e-61, 1e61])
def test_the_message_says_the_rule_and_the_value(name, size):
    keywords, said = {"l2_strength": 1.0, "moments": "none", **PLANNED, name: size}, name.replace("rows", "row_norm")
    with pytest.raises(InvalidInput, match=rf"{said} must be at least 1e-60 and at most 1e60, got {said}={size:g}"):
        dpci.plan(**assembled(**keywords))


def test_sizes_up_to_the_bounds_are_taken():
    dpci.plan(**PLANNED, l2_strength=1.0, rows=1e-60)
    dpci.plan(**PLANNED, l2_strength=1.0, rows=dpci.rows.Within(intercept=1e-60))
    dpci.plan(**assembled(**PLANNED, l2_strength=1.0, radius=1e60))
    dpci.plan(**PLANNED, l2_strength=1e59)


def test_the_condition_of_a_hessian_is_bounded_where_it_is_released():
    keywords = {"n_samples": 10**6, "n_features": 2, "mechanism": "output", "l2_strength": 1e-6}
    dpci.plan(**keywords, budget=dpci.PureDP(1e-8))
    rule = r"greatest eigenvalue .* at most 1e12 times the strong convexity .*, got \d.*e\d+ and 1e-6: use"
    with pytest.raises(InvalidInput, match=rule):
        dpci.plan(**keywords, budget=dpci.PureDP(1e-12))
    dpci.plan(**assembled(**keywords, budget=dpci.PureDP(1e-12), moments="none"))


def test_levels_at_both_ends_have_intervals():
    result = dpci.fit(
        PATTERN, CLASSES, **assembled(**COMMON, budget=BUDGET, l2_strength=1.0, projection="floor", seed=1)
    )
    for level in (5e-324, 1e-12, np.nextafter(1.0, 0.0)):
        assert np.isfinite(np.asarray(result.conf_int(level=level))).all()


@pytest.mark.parametrize("loss", [dpci.losses.HuberHinge(1e300), dpci.losses.SmoothHinge(1e-3)], ids=["small", "tail"])
@pytest.mark.parametrize("moments", ["separate", "joint"])
def test_curvatures_that_vanish_beside_the_ridge_have_no_hessian_to_release(loss, moments):
    assert 0.0 < loss.to_core().sup_curvature(0.1) < 1e-300
    keywords = {"loss": loss, "radius": 0.1, "l2_strength": 1.0, "moments": moments, "intercept": False}
    with pytest.warns(dpci.SeededNoiseWarning):
        result = dpci.fit(PATTERN, CLASSES, **assembled(**COMMON, **keywords, budget=BUDGET, seed=1))
    np.testing.assert_array_equal(result.hessian, np.eye(2))
    assert np.isfinite(result.params).all()
    assert np.isfinite(result.gradient_cov).all()


def test_a_subnormal_curvature_is_refused():
    """Refused with 8 records as with 200: the sum of the losses would overflow for some number of them."""
    loss = dpci.losses.HuberHinge(1e308)
    assert 0.0 < loss.to_core().sup_curvature(0.1) < np.finfo(float).tiny
    for n_samples in (8, 200):
        with pytest.raises(InvalidInput, match="sum of losses must be finite"):
            dpci.plan(
                n_samples=n_samples, n_features=2, loss=loss, mechanism=dpci.ObjectivePerturbation(radius=0.1),
                l2_strength=1.0, budget=BUDGET,
            )  # fmt: skip
