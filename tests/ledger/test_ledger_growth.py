"""Entries of a ledger: no spend for refused rows, none in place of another, each counted once and rounded up."""

import sqlite3
from fractions import Fraction

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.ledger import composition as _composition
from support.keywords import assembled

N_PUBLIC = 10
MOST = 16 * N_PUBLIC
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(MOST + 1, 3))
Y = np.arange(MOST + 1) % 2 == 1
HALF = dpci.PureDP(0.5)
APPROX = dpci.ApproxDP(0.5, 1e-7)
ADDED = {"neighbors": dpci.AddRemove(N_PUBLIC)}

RELEASES = {
    "fit": lambda x, y, **k: dpci.fit(x, y, **assembled(budget=HALF, l2_strength=30.0, moments="none", **ADDED, **k)),
    "report": lambda x, y, **k: dpci.per_instance.report(x, y, budget=APPROX, l2_strength=30.0, n_public=N_PUBLIC, **k),
    "functional_mechanism": lambda x, y, **k: dpci.baselines.functional_mechanism(
        x, y, budget=HALF, loss="logistic", **ADDED, **k
    ),
    "moment_matrix": lambda x, y, **k: dpci.regression.release(x, 1.0 * y, budget=HALF, **ADDED, **k),
    "tune by rule": lambda x, y, **k: dpci.tuning.tune(
        x,
        y,
        **assembled(
            budget=HALF, method="public_rule", loss="squared", mechanism="output", moments="none", **ADDED, **k
        ),
    ),
}


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
@pytest.mark.parametrize("name", RELEASES)
def test_more_rows_than_the_core_takes_cost_nothing(name):
    ledger = dpci.Ledger(dpci.ApproxDP(1.0, 1e-6), "add_remove")
    rule = r"n_public must be at least a sixteenth of the number of records, got n_public=10 for 161 records"
    with pytest.raises(InvalidInput, match=rule):
        RELEASES[name](X, Y, ledger=ledger)
    assert ledger.history == ()
    # The core has the same rule: what is refused with a ledger is refused without one, and no more.
    with pytest.raises(InvalidInput, match=rule):
        RELEASES[name](X, Y)
    RELEASES[name](X[:MOST], Y[:MOST], ledger=ledger)
    assert len(ledger.history) == 1


def test_whole_counts_have_no_such_limit():
    ledger = dpci.Ledger(HALF, "add_remove")
    axes = [dpci.baselines.Bins(column, 2, -0.5, 0.5) for column in range(3)]
    dpci.baselines.projected_histogram(
        X, Y, budget=HALF, axes=axes, l2_strength=0.1, loss="logistic", **ADDED, ledger=ledger
    )
    assert len(ledger.history) == 1


CHANGES = [
    "REPLACE INTO entries SELECT number, time, source, label, notion, 1e-9, rho, delta, reserve, unit FROM entries",
    "REPLACE INTO entries SELECT * FROM entries WHERE number = 1",
    "INSERT OR IGNORE INTO entries SELECT * FROM entries",
    "INSERT INTO entries SELECT * FROM entries WHERE number = 1 ON CONFLICT (number) DO UPDATE SET epsilon = 1e-9",
    "UPDATE OR REPLACE entries SET number = 1 WHERE number = 2",
    "UPDATE entries SET epsilon = 1e-9",
    "DELETE FROM entries WHERE number = 2",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_no_statement_changes_an_entry(tmp_path, statement):
    path = tmp_path / "ledger.db"
    ledger = dpci.Ledger(dpci.PureDP(1.0), path=path)
    for _ in range(2):
        ledger.spend(dpci.PureDP(0.1), neighbors="replace_one")
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="a ledger only grows"):
        connection.execute(statement)
    connection.commit()
    connection.close()
    assert dpci.Ledger.open(path).spent == {"epsilon": 0.2}


@pytest.mark.parametrize("in_file", [True, False], ids=["file", "memory"])
def test_a_spend_counts_new_entries_only(tmp_path, monkeypatch, in_file):
    counted = []
    add = _composition.Account.add

    def adding(account, budget, reserve=None):
        counted.append(budget)
        add(account, budget, reserve)

    monkeypatch.setattr(_composition.Account, "add", adding)
    path = tmp_path / "ledger.db" if in_file else None
    ledger = dpci.Ledger(dpci.ZCDP(1.0), path=path)

    def spend(one):
        counted.clear()
        one.check(dpci.PureDP(0.001), neighbors="replace_one")
        one.spend(dpci.PureDP(0.001), neighbors="replace_one")
        return len(counted)

    # At the first spend two questions whether the budget fits; later the entry before counts once as well.
    assert [spend(ledger) for _ in range(40)] == [2] + [3] * 39
    assert spend(ledger.labelled("x")) == 3
    if in_file:
        # Another object, as in another process, counts all once; then each what is new, its own last entry included.
        other = dpci.Ledger.open(path)
        assert [spend(other), spend(other), spend(ledger), spend(other)] == [43, 3, 5, 4]


def test_the_account_that_is_kept_is_that_of_all_entries(tmp_path):
    """All notions, through two objects that write by turns, against one account of the whole history."""
    total = dpci.ApproxDP(2.0, 1e-5)
    ledger = dpci.Ledger(total, path=tmp_path / "ledger.db")
    other = dpci.Ledger.open(tmp_path / "ledger.db")
    budgets = [dpci.PureDP(0.1), dpci.ApproxDP(0.1, 1e-8), dpci.ZCDP(0.001), dpci.PureDP(0.01), dpci.ZCDP(0.002)]
    for i, budget in enumerate(budgets * 2):
        (ledger, other)[i % 2].spend(budget, neighbors="replace_one")
        afresh = _composition.Account(total).after((entry.budget, entry.reserve) for entry in ledger.history)
        assert ledger.spent == other.spent == afresh.spent_as_floats()
        assert ledger.remaining == other.remaining == afresh.remaining()
    # A view from before the last entries, as a slower thread may have.
    earlier = ledger.history[:3]
    account = ledger._account(earlier)
    assert account.spent() == _composition.Account(total).after((e.budget, e.reserve) for e in earlier).spent()
    assert ledger.spent == other.spent


@pytest.mark.parametrize("epsilon", [1e-300, 1e-200, 1e-162, 1e-160, 3e-158, 1e-154, 1e-100])
def test_no_pure_spend_is_free_in_zcdp(epsilon):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    ledger.spend(dpci.PureDP(epsilon), neighbors="replace_one")
    # tanh(x) is x - x³/3 + ..., which is x to a hundred digits here.
    exact = Fraction(epsilon) ** 2 / 2
    assert Fraction(ledger.spent["rho"]) >= exact
