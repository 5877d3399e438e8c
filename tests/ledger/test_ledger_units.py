"""Ledgers of rows and of persons: a total is over releases that protect the same unit."""

import json

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput

PANEL = dpci.datasets.simulate_panel(500, n_rows=3, seed=0)
SAME = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1, "classes": (-1, 1)}


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    path = None if request.param == "memory" else tmp_path / "ledger"
    with dpci.Ledger(dpci.PureDP(9.0), path=path) as found:
        yield found


def of_rows(ledger):
    return dpci.fit(PANEL.X, PANEL.y, ledger=ledger, **SAME)


def of_persons(ledger):
    return dpci.fit(PANEL.X, PANEL.y, persons=PANEL.persons, ledger=ledger, **SAME)


@pytest.mark.parametrize(("first", "second"), [(of_rows, of_persons), (of_persons, of_rows)], ids=["rows", "persons"])
def test_a_release_of_another_unit_is_refused_and_costs_nothing(ledger, first, second):
    first(ledger)
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        second(ledger)
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        ledger.spend(dpci.PureDP(1.0), neighbors="replace_one", unit="row" if first is of_persons else "person")
    first(ledger)
    assert [entry.unit for entry in ledger.history] == ["row" if first is of_rows else "person"] * 2
    assert ledger.remaining == dpci.PureDP(7.0)
    assert ("persons, each with all rows" in ledger.summary()) == (first is of_persons)
    assert [entry["unit"] for entry in json.loads(ledger.to_json())["entries"]] == [e.unit for e in ledger.history]


def test_the_unit_is_in_the_file_and_protected_by_its_checksum(tmp_path):
    path = tmp_path / "ledger"
    with dpci.Ledger(dpci.PureDP(9.0), path=path) as ledger:
        of_persons(ledger)
    with dpci.Ledger.open(path) as again, pytest.raises(InvalidInput, match="protects a row after entry 1"):
        of_rows(again)
    with pytest.raises(InvalidInput, match="unit"):
        dpci.Ledger(dpci.PureDP(1.0)).spend(dpci.PureDP(1.0), neighbors="replace_one", unit="household")


# Its noise is real, and can hide the curvature of persons.
@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_every_function_that_takes_persons_says_so_to_the_ledger():
    pytest.importorskip("sklearn", reason="scikit-learn is what the estimator is for")
    from dpci.sklearn import PrivateLogisticRegression  # noqa: PLC0415  # optional

    grid = [{"l2_strength": 0.1}]
    keywords = {"budget": dpci.PureDP(1.0), "classes": (-1, 1), "persons": PANEL.persons}
    ledger = dpci.Ledger(dpci.PureDP(9.0))
    dpci.tuning.tune(PANEL.X, PANEL.y, candidates=grid, validation_radius=2.0, ledger=ledger, **keywords)
    dpci.tuning.tune(PANEL.X, PANEL.y, method="public_rule", ledger=ledger, **keywords)
    model = PrivateLogisticRegression(epsilon=1.0, l2_strength=0.1, classes=(-1, 1), ledger=ledger)
    model.fit(PANEL.X, PANEL.y, persons=PANEL.persons)
    assert [entry.unit for entry in ledger.history] == ["person"] * 3
    with pytest.raises(InvalidInput, match="must protect the same unit"):
        model.fit(PANEL.X, np.asarray(PANEL.y))
