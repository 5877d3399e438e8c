"""Many groups in one call: each as a fit of its own, whatever the threads, and paid for together."""

import json

import numpy as np
import pytest

import dpci
from support.keywords import assembled

_RNG = np.random.default_rng(11)
KEYWORDS = {"budget": dpci.PureDP(0.1), "l2_strength": 3.0}


def table(n, width=3):
    X = _RNG.uniform(-0.5, 0.5, size=(n, width))
    return X, X @ np.arange(1, width + 1) + _RNG.logistic(size=n) > 0


GROUPS = {f"school {k}": table(400 + 50 * k, 3 + k % 2) for k in range(9)}


def test_a_group_is_a_fit_whatever_the_threads():
    one, two, every = (dpci.threads(n)(dpci.fit_many)(GROUPS, **KEYWORDS, seed=3) for n in (1, 2, None))
    assert list(one) == list(GROUPS)
    for key in GROUPS:
        for other in (two, every):
            assert other[key].to_json() == one[key].to_json()
    first = next(iter(GROUPS))
    alone = json.loads(dpci.fit(*GROUPS[first], **KEYWORDS, seed=3).to_json())
    together = json.loads(one[first].to_json())
    # A group says which release it is a part of.
    assert together.pop("whole")["parts"] == len(GROUPS)
    assert alone.pop("whole") is None
    assert {**together, "checksum": None} == {**alone, "checksum": None}


@pytest.mark.entropy
def test_groups_have_noise_of_their_own():
    same = dict.fromkeys(range(6), GROUPS["school 0"])
    for seed in (3, None):
        released = {tuple(fit.params) for fit in dpci.fit_many(same, **KEYWORDS, seed=seed).values()}
        assert len(released) == len(same)


def test_private_groups_are_fits_of_their_groups():
    keywords = {"budget": dpci.PureDP(1e4), "l2_strength": 0.1, "moments": "none"}
    results = dpci.fit_many(GROUPS, **assembled(**keywords))
    for key, (X, y) in GROUPS.items():
        assert results[key].private
        exact = dpci.lowlevel.minimize_erm(X, np.where(y, 1.0, -1.0), l2_strength=0.1, intercept=1.0).params
        # Noise of scale 2 * row_norm / (n * epsilon * l2_strength), and n >= 400.
        np.testing.assert_allclose(results[key].params, exact, atol=1e-3)


@pytest.mark.parametrize(("disjoint", "left"), [(False, 0.1), (True, 0.9)])
def test_the_sum_is_charged_unless_the_groups_are_disjoint(disjoint, left):
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    results = dpci.fit_many(GROUPS, **KEYWORDS, ledger=ledger, disjoint=disjoint)
    assert ledger.remaining == dpci.PureDP(left)
    assert len(ledger.history) == 1
    assert all(result.spent == dpci.PureDP(0.1) for result in results.values())


def test_the_sum_is_not_rounded_down():
    # 3 * 0.1 is above 0.3 in floats, and 0.1 + 0.7 below 0.8: decimals are counted.
    ledger = dpci.Ledger(dpci.PureDP(0.3))
    few = {key: GROUPS[key] for key in list(GROUPS)[:3]}
    dpci.fit_many(few, **KEYWORDS, ledger=ledger)
    assert ledger.spent == {"epsilon": 0.3}
    for notion in (dpci.ZCDP(0.07), dpci.ApproxDP(0.07, 1e-7)):
        ledger = dpci.Ledger(type(notion)(*(100 * value for value in notion.parameters().values())))
        dpci.fit_many(GROUPS, budget=notion, l2_strength=3.0, ledger=ledger)
        for name, value in ledger.history[0].budget.parameters().items():
            assert value == pytest.approx(9 * notion.parameters()[name], rel=1e-12)


def test_all_or_nothing():
    ledger = dpci.Ledger(dpci.PureDP(0.8))
    with pytest.raises(dpci.BudgetExceeded):
        dpci.fit_many(GROUPS, **KEYWORDS, ledger=ledger)
    X, y = GROUPS["school 4"]
    for bad, error in (((X * 9.0, y), dpci.RowNormViolation), ((X, y[1:]), dpci.InvalidInput), (X, dpci.InvalidInput)):
        with pytest.raises(error) as caught:
            dpci.fit_many({**GROUPS, "school 4": bad}, **KEYWORDS, ledger=ledger, disjoint=True)
        assert caught.value.__notes__ == ["(in group 'school 4')"]
    assert ledger.remaining == dpci.PureDP(0.8)


def test_what_is_refused():
    private = dpci.Ledger(dpci.PureDP(8.0), errors="private")
    with pytest.raises(dpci.InvalidInput, match="errors='detailed' for many groups"):
        dpci.fit_many(GROUPS, **KEYWORDS, ledger=private, classes=(False, True), rows="clip")
    assert private.remaining == dpci.PureDP(8.0)
    for groups in ({}, [], list(GROUPS.values())):
        with pytest.raises(dpci.InvalidInput, match="groups must be a mapping of at least one key"):
            dpci.fit_many(groups, **KEYWORDS)
    X, y = GROUPS["school 0"]
    with pytest.raises(dpci.InvalidInput, match=r"classes=\(negative, positive\) must be given for many groups"):
        dpci.fit_many({0: (X, y.astype(int))}, **KEYWORDS)
    with pytest.raises(dpci.InvalidInput, match="disjoint"):
        dpci.fit_many(GROUPS, **KEYWORDS, disjoint="yes")
    with pytest.raises(dpci.InvalidInput, match="seed must be None with a ledger"):
        dpci.fit_many(GROUPS, **KEYWORDS, ledger=dpci.Ledger(dpci.PureDP(8.0)), seed=1)


def test_each_kind_of_warning_comes_once():
    with pytest.warns(dpci.DpciWarning) as caught:
        dpci.fit_many(GROUPS, **KEYWORDS | {"budget": dpci.PureDP(0.01), "l2_strength": 40.0}, seed=1)
    kinds = [warning.category for warning in caught]
    assert dpci.SeededNoiseWarning in kinds
    assert len(kinds) == len(set(kinds))
    assert all(warning.filename == __file__ for warning in caught)


def test_a_keyword_that_no_group_has_is_refused():
    # A schema would be kept with the results, but no group would be encoded by it.
    for name in ("schema", "projektion"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            dpci.fit_many(GROUPS, **KEYWORDS, **{name: None})
