"""Models name the entry of the ledger that paid for them, and ledgers hold the hashes of models."""

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import dpci
from dpci.errors import LedgerError

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
