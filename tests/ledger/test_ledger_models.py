"""Models and their ledgers name each other, and a total is over releases that protect the same unit."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput, LedgerError

TENTH = dpci.PureDP(0.1)
X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (500, 1))


def fit(**keywords):
    return dpci.fit(X, X[:, 0] > 0, **{"budget": TENTH, "l2_strength": 0.5, **keywords})


def test_a_result_and_its_ledger_know_each_other(tmp_path):
    for path in (None, tmp_path / "ledger.db"):
        ledger = dpci.Ledger(dpci.PureDP(1.0), path=path)
        ledger.spend(TENTH, neighbors="replace_one")
        result = fit(ledger=ledger.labelled("secret label"))
        saved = json.loads(result.to_json())
        assert saved["paid"] == {"ledger": ledger.id, "entry": 2, "time": ledger.history[1].time}
        assert "secret label" not in result.to_json()
        assert ledger.models == {2: result.digest}
        assert result.digest == saved["checksum"] == dpci.PrivateFit.from_json(result.to_json()).digest
        assert json.loads(ledger.to_json())["models"] == {"2": result.digest}
    assert fit().to_json().count('"paid": null') == 1
    assert dpci.Ledger.open(path).models == {2: result.digest}
    with closing(sqlite3.connect(path)) as file, file:
        for change in ("UPDATE models SET digest = 'x'", "DELETE FROM models"):
            with pytest.raises(sqlite3.IntegrityError, match="a ledger only grows"):
                file.execute(change)
        with pytest.raises(sqlite3.IntegrityError, match="an entry has one model"):
            file.execute("REPLACE INTO models VALUES (2, 'x', 'y')")
        file.execute("INSERT INTO models VALUES (1, 'sha256:x', 'y')")
    with pytest.raises(LedgerError, match="hashes of its models do not match"):
        dpci.Ledger.open(path).models  # noqa: B018  # read


def test_a_model_is_not_lost_where_the_ledger_cannot_take_its_hash(monkeypatch):
    ledger = dpci.Ledger(dpci.PureDP(1.0))

    def full(*_):
        raise LedgerError("the disk is full")

    monkeypatch.setattr(type(ledger._store), "keep_model", full)
    with pytest.warns(dpci.DpciWarning, match="hash of the model of entry 1, got none: the disk is full"):
        result = fit(ledger=ledger)
    assert result.params.size


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
