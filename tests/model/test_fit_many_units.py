"""Persons and weights of many groups: the fits of the groups, paid by person; no person is in two disjoint ones."""

import datetime as dt
import json

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput

_RNG = np.random.default_rng(4)
KEYWORDS = {"budget": dpci.PureDP(0.2), "l2_strength": 3.0}
KEYS = ("north", "south", "west")


def table(n):
    ids = _RNG.permutation(np.repeat(np.arange(n), _RNG.integers(1, 5, n)))
    X = _RNG.uniform(-0.5, 0.5, size=(len(ids), 3))
    return X, X @ [1, 2, 3] + _RNG.logistic(size=len(ids)) > 0, ids


TABLES = {key: table(300 + 50 * k) for k, key in enumerate(KEYS)}
GROUPS = {key: (X, y) for key, (X, y, _) in TABLES.items()}
IDS = {key: ids + 1000 * k for k, (key, (_, _, ids)) in enumerate(TABLES.items())}
WEIGHTS = {key: _RNG.uniform(0.0, 2.0, len(ids)) for key, ids in IDS.items()}


def weighted(bound=2.0, totals=lambda _: None):
    """The weights of every group."""
    return {"weights": {key: dpci.Weights(w, bound=bound, total=totals(key)) for key, w in WEIGHTS.items()}}


CASES = {
    "persons": {"persons": IDS},
    "first rows": {"persons": {key: dpci.Persons(ids, max_rows=2) for key, ids in IDS.items()}},
    "weights": weighted(),
    "both": {"persons": IDS, **weighted()},
    "totals": {"persons": IDS, **weighted(totals=lambda key: 400.0 + KEYS.index(key))},
    "one total": weighted(totals=lambda _: 500.0),
}


def of_group(key, keywords):
    """The keywords of a fit of one group."""
    return {name: value[key] if isinstance(value, dict) else value for name, value in keywords.items()}


@pytest.mark.parametrize("case", CASES)
def test_a_group_is_a_fit_whatever_the_threads(case):
    one, two = (dpci.threads(n)(dpci.fit_many)(GROUPS, **KEYWORDS, **CASES[case], seed=3) for n in (1, 2))
    for key in KEYS:
        assert two[key].to_json() == one[key].to_json()
    alone = json.loads(dpci.fit(*GROUPS[KEYS[0]], **KEYWORDS, **of_group(KEYS[0], CASES[case]), seed=3).to_json())
    together = json.loads(one[KEYS[0]].to_json())
    assert together.pop("whole")["parts"] == len(KEYS)
    assert alone.pop("whole") is None
    assert {**together, "checksum": None} == {**alone, "checksum": None}
    assert dpci.PrivateFit.from_json(one[KEYS[2]].to_json()).to_json() == one[KEYS[2]].to_json()


@pytest.mark.parametrize("case", CASES)
def test_every_group_has_its_own_persons_and_weights(case):
    keywords = {"budget": dpci.PureDP(1e7), "l2_strength": 0.1, "seed": 1}
    found = dpci.fit_many(GROUPS, **keywords, **CASES[case])
    for key in KEYS:
        alone = dpci.fit(*GROUPS[key], **keywords, **of_group(key, CASES[case]))
        np.testing.assert_allclose(found[key].params, alone.params, atol=1e-4)
        np.testing.assert_allclose(found[key].gradient_cov, alone.gradient_cov, atol=1e-4)
        assert found[key].n_samples == (len(IDS[key]) if case in {"weights", "one total"} else len(set(IDS[key])))


@pytest.mark.parametrize(("disjoint", "left"), [(False, 0.4), (True, 0.8)])
def test_a_ledger_pays_for_persons(disjoint, left):
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    dpci.fit_many(GROUPS, **KEYWORDS, persons=IDS, ledger=ledger, disjoint=disjoint)
    assert ledger.remaining == dpci.PureDP(left)
    assert [entry.unit for entry in ledger.history] == ["person"]
    with pytest.raises(InvalidInput, match="person"):
        dpci.fit_many(GROUPS, **KEYWORDS, ledger=ledger)
    assert len(ledger.history) == 1


@pytest.mark.parametrize(
    "kind",
    [int, str, lambda i: dt.date(2000, 1, 1) + dt.timedelta(days=int(i)), np.float32],
    ids=["int", "str", "date", "float32"],
)
def test_a_person_in_two_disjoint_groups_is_refused_before_payment(kind):
    ids = {key: [kind(i) for i in of.tolist()] for key, of in IDS.items()}
    assert dpci.fit_many(GROUPS, **KEYWORDS, persons=ids, disjoint=True)["south"].n_samples == 350
    ids["west"][-1] = ids["north"][0]
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(InvalidInput, match="one group with disjoint=True, got a person with rows in several") as caught:
        dpci.fit_many(GROUPS, **KEYWORDS, persons=ids, disjoint=True, ledger=ledger)
    assert str(ids["north"][0]) not in str(caught.value)
    assert len(ledger.history) == 0
    # Of groups that are not disjoint every person pays for each.
    dpci.fit_many(GROUPS, **KEYWORDS, persons=ids, ledger=ledger)
    assert ledger.remaining == dpci.PureDP(0.4)


def test_one_person_under_ids_of_two_types_is_refused():
    ids = {**IDS, "west": IDS["north"][:1].astype(str).repeat(len(IDS["west"]))}
    with pytest.raises(InvalidInput, match="ids of one type in all parts and groups"):
        dpci.fit_many(GROUPS, **KEYWORDS, persons=ids, disjoint=True)


REFUSED = {
    "an array of ids": ({"persons": IDS["north"]}, "persons must be a mapping from the keys of groups, got ndarray"),
    "a name": ({"persons": "id"}, "persons must be a mapping from the keys of groups, got str"),
    "names": ({"persons": dict.fromkeys(KEYS, "id")}, "persons must be an array of ids without a schema"),
    "no ids": ({"persons": {key: IDS[key] for key in KEYS[1:]}}, "an entry for each group and no other, got none for"),
    "no weights": ({"weights": {"north": dpci.Weights(WEIGHTS["north"], bound=2.0)}}, "an entry for each group"),
    "one without ids": ({"persons": {**IDS, "north": None}}, "an entry for each group and no other, got None"),
    "other ids": ({"persons": {**IDS, "p-771": IDS["north"]}}, "got one for another key"),
    "too few": ({"persons": {**IDS, "south": IDS["south"][1:]}}, "one id for each of the"),
    "no bound": ({"weights": WEIGHTS}, r"weights must be dpci.Weights\(values, bound=...\)"),
    "no mapping": ({"weights": dpci.Weights(bound=3.0)}, "weights must be a mapping from the keys of groups"),
    "no values": ({"weights": dict.fromkeys(KEYS, dpci.Weights(bound=3.0))}, "weights must have values"),
    "no persons": ({"persons": dict.fromkeys(KEYS, dpci.Persons(max_rows=2))}, "persons must have ids"),
    "heavy": (weighted(bound=1.0), "weights"),
    "a total below the bound": (weighted(totals=lambda _: 1.0), "weight_bound"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_before_payment(case):
    keywords, message = REFUSED[case]
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(InvalidInput, match=message) as caught:
        dpci.fit_many(GROUPS, **KEYWORDS, **keywords, ledger=ledger)
    assert "p-771" not in str(caught.value)
    assert len(ledger.history) == 0
