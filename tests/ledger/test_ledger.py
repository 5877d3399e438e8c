"""Ledgers as their users meet them: what pays, what is refused, that they are shared and never copied, the commands."""

import copy
import json
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import cross_val_score

import dpci
from dpci import _core
from dpci.budgets import core_budget
from dpci.cli.main import main
from dpci.errors import BudgetExceeded, InvalidInput, LedgerError, RowNormViolation
from dpci.model import settings
from support.commands import ran
from support.keywords import assembled

N = 60
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(N, 3))
Y = np.arange(N) % 2 == 1
TENTH = dpci.PureDP(0.1)


def fit(x=X, y=Y, **keywords):
    return dpci.fit(x, y, **assembled(**{"budget": TENTH, "l2_strength": 5.0, "projection": "floor", **keywords}))


def report(x=X, y=Y, **keywords):
    keywords = {"budget": dpci.ApproxDP(0.1, 1e-7), "l2_strength": 5.0, "n_public": N, **keywords}
    return dpci.per_instance.report(x, y, **keywords)


def functional_mechanism(x=X, y=Y, **keywords):
    return dpci.baselines.functional_mechanism(x, y, **{"budget": TENTH, "loss": "logistic", **keywords})


def projected_histogram(x=X, y=Y, **keywords):
    axes = [dpci.baselines.Bins(column, 2, -0.5, 0.5) for column in range(3)]
    keywords = {"budget": TENTH, "axes": axes, "l2_strength": 0.1, "loss": "logistic", **keywords}
    return dpci.baselines.projected_histogram(x, y, **keywords)


def tune(x=X, y=Y, **keywords):
    keywords = {
        "budget": TENTH,
        "candidates": [{"l2_strength": 30.0}, {"l2_strength": 60.0}],
        "validation_radius": 1.0,
        "projection": "floor",
        **keywords,
    }
    return dpci.tuning.tune(x, y, **assembled(**keywords))


def tune_by_rule(x=X, y=Y, **keywords):
    keywords = {"budget": TENTH, "method": "public_rule", "loss": "squared", "mechanism": "output", **keywords}
    return dpci.tuning.tune(x, y, **assembled(moments="none", **keywords))


RELEASES = {
    "dpci.fit": fit, "dpci.per_instance.report": report, "dpci.baselines.functional_mechanism": functional_mechanism,
    "dpci.baselines.projected_histogram": projected_histogram, "dpci.tuning.tune": tune, "by rule": tune_by_rule,
}  # fmt: skip


def ledger_for(name, total=None):
    if name == "dpci.per_instance.report":
        return dpci.Ledger(total or dpci.ApproxDP(1.0, 1e-6), "add_remove")
    return dpci.Ledger(total or dpci.PureDP(1.0))


@pytest.fixture(autouse=True)
def _quiet_projection(recwarn):
    """Tiny fits warn of their noise, which is no matter here."""


# What pays.


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_pays_its_whole_budget_once(name):
    ledger = ledger_for(name)
    result = RELEASES[name](ledger=ledger)
    (entry,) = ledger.history
    assert entry.source == ("dpci.tuning.tune" if name == "by rule" else name)
    assert entry.budget == (dpci.ApproxDP(0.1, 1e-7) if name == "dpci.per_instance.report" else TENTH)
    assert ledger.spent["epsilon"] == 0.1
    assert (result.result if "report" in name else result).budget == entry.budget


@pytest.mark.parametrize("name", RELEASES)
def test_overspending_is_refused_before_the_data_are_looked_at(name):
    total = dpci.ApproxDP(0.05, 1e-6) if name == "dpci.per_instance.report" else dpci.PureDP(0.05)
    ledger = ledger_for(name, total)
    with pytest.raises(BudgetExceeded, match=r"requested .*epsilon=0.1.*, remaining .*epsilon=0.05"):
        RELEASES[name](x="no table at all", ledger=ledger)
    assert ledger.history == ()


@pytest.mark.parametrize("name", RELEASES)
def test_seeds_are_refused(name):
    ledger = ledger_for(name)
    with pytest.raises(InvalidInput, match=r"seed must be None with a ledger.*, got seed=1"):
        RELEASES[name](ledger=ledger, seed=1)
    assert ledger.history == ()


@pytest.mark.parametrize("name", RELEASES)
def test_another_relation_is_refused(name):
    other = "replace_one" if name == "dpci.per_instance.report" else "add_remove"
    with pytest.raises(InvalidInput, match=f"neighbors must be '{other}', the relation of the ledger"):
        RELEASES[name](ledger=dpci.Ledger(dpci.ApproxDP(1.0, 1e-6), other))


@pytest.mark.parametrize("name", RELEASES)
def test_another_object_is_refused(name):
    with pytest.raises(InvalidInput, match=r"ledger must be a dpci.Ledger or None, got ledger=1.0"):
        RELEASES[name](ledger=1.0)


BAD_DATA = {
    "not finite": (np.where(np.arange(N)[:, None] == 3, np.nan, X), Y),
    "no table": (X[0], Y),
    "lengths": (X, Y[1:]),
    "labels": (X, np.arange(N)),
    "no rows": (X[:0], Y[:0]),
}


@pytest.mark.parametrize("case", BAD_DATA)
@pytest.mark.parametrize("name", [name for name in RELEASES if name != "by rule"])
def test_refused_data_cost_nothing(name, case):
    ledger = ledger_for(name)
    with pytest.raises(InvalidInput):
        RELEASES[name](*BAD_DATA[case], ledger=ledger)
    assert ledger.history == ()


def test_a_long_row_costs_nothing_and_a_clipped_one_is_paid():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    with pytest.raises(RowNormViolation):
        fit(x=3.0 * X, ledger=ledger)
    assert ledger.history == ()
    fit(x=3.0 * X, rows="clip", ledger=ledger)
    assert len(ledger.history) == 1


def test_the_spend_is_written_before_the_core_starts_and_stays_when_it_fails(monkeypatch):
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    seen = []

    def failing(*_args, **_keywords):
        seen.append(ledger.spent["epsilon"])
        raise dpci.NotConverged("no certificate")

    monkeypatch.setattr(_core, "release", failing)
    with pytest.raises(dpci.NotConverged):
        fit(ledger=ledger)
    assert seen == [0.1]
    assert ledger.spent == {"epsilon": 0.1}


def test_a_release_runs_within_the_decimals_that_are_charged(monkeypatch):
    seen = []

    def of(budget):
        seen.append(budget.epsilon)
        return core_budget(budget)

    monkeypatch.setattr(settings, "core_budget", of)
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    results = [fit(ledger=ledger) for _ in range(10)]
    assert seen == [np.nextafter(0.1, 0.0)] * 10
    assert ledger.remaining is None
    assert all(result.budget == TENTH for result in results)
    saved = dpci.PrivateFit.from_json(results[0].to_json())
    assert saved.budget == TENTH
    with pytest.raises(BudgetExceeded):
        fit(ledger=ledger)


# What a ledger takes.

BUDGETS = {"pure": dpci.PureDP(0.01), "zcdp": dpci.ZCDP(0.001), "approx": dpci.ApproxDP(0.01, 1e-9)}
TOTALS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(1.0), "approx": dpci.ApproxDP(1.0, 1e-6)}


@pytest.mark.parametrize("spent", BUDGETS)
@pytest.mark.parametrize("total", TOTALS)
def test_notions(total, spent):
    ledger = dpci.Ledger(TOTALS[total])
    order = list(TOTALS)
    if order.index(spent) <= order.index(total):
        assert ledger.can_afford(BUDGETS[spent])
        fit(budget=BUDGETS[spent], l2_strength=50.0, ledger=ledger)
        assert ledger.history[0].budget == BUDGETS[spent]
    else:
        with pytest.raises(InvalidInput, match="accepts budgets of the notions"):
            fit(budget=BUDGETS[spent], ledger=ledger)
        with pytest.raises(InvalidInput, match="accepts budgets of the notions"):
            ledger.can_afford(BUDGETS[spent])


REFUSED = {
    "total": (
        lambda: dpci.Ledger(1.0),
        r"such as dpci.PureDP\(epsilon=1.0\), got budget=1.0",
    ),
    "total too large": (lambda: dpci.Ledger(dpci.PureDP(1e200)), r"must be at most 1e\+100, got epsilon=1e\+200"),
    "relation": (lambda: dpci.Ledger(TENTH, "substitute"), r"neighbors must be one of .*got neighbors='substitute'"),
    "path": (lambda: dpci.Ledger(TENTH, path=3), r"path must be the name of a file, got path=3"),
    "no path": (lambda: dpci.Ledger(TENTH, path=""), r"path must be the name of a file, got path=''"),
    "the root folder": (lambda: dpci.Ledger(TENTH, path="/"), r"path must be the name of a file, got path='/'"),
    "path with a zero": (lambda: dpci.Ledger(TENTH, path="a\0b"), r"path must be the name of a file"),
    "label": (lambda: dpci.Ledger(TENTH).labelled("a\nb"), r"label must be printable text"),
    "source": (lambda: dpci.Ledger(TENTH).spend(TENTH, neighbors="replace_one", source=1), r"source must be printable"),
    "spend": (lambda: dpci.Ledger(TENTH).spend(0.1, neighbors="replace_one"), r"budget must be dpci.PureDP"),
    "spend relation": (
        lambda: dpci.Ledger(TENTH).spend(TENTH, neighbors="add_remove"),
        r"neighbors must be 'replace_one', the relation of the ledger",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    call, message = REFUSED[case]
    with pytest.raises(InvalidInput, match=message):
        call()


def test_studies_and_plans_take_no_ledger():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    keywords = {"budget": TENTH, "l2_strength": 5.0, "ledger": ledger}
    calls = {
        "coverage": lambda: dpci.simulate.coverage(X, Y, **keywords, n_replicates=2, n_variability=0),
        "variability": lambda: dpci.simulate.variability(X, Y, **keywords, n_replicates=2),
        "curve": lambda: dpci.utility.curve(X, Y, at=TENTH, l2_strength=5.0, ledger=ledger),
        "plan": lambda: dpci.plan(n_samples=N, n_features=3, **keywords),
        "oracle_not_private": lambda: dpci.tuning.oracle_not_private(
            X, Y, budget=TENTH, candidates=[{"l2_strength": 5.0}], ledger=ledger
        ),
    }
    for name, call in calls.items():
        with pytest.raises(InvalidInput, match=rf"{name}\(\) takes no ledger, because it makes no private release"):
            call()
    with pytest.raises(TypeError, match="ledger"):
        dpci.baselines.non_private(X, Y, loss="logistic", l2_strength=1.0, ledger=ledger)
    assert ledger.history == ()


# What it tells.


def test_history_and_json():
    ledger = dpci.Ledger(dpci.ApproxDP(1.0, 1e-6))
    fit(ledger=ledger.labelled("first model"))
    fit(budget=dpci.ZCDP(0.001), ledger=ledger)
    ledger.spend(dpci.ApproxDP(0.1, 1e-8), neighbors="replace_one", source="another library")
    first, second, third = ledger.history
    assert (first.number, first.source, first.label, first.budget) == (1, "dpci.fit", "first model", TENTH)
    assert second.label is None
    assert second.reserve is not None
    assert third.source == "another library"
    saved = json.loads(ledger.to_json())
    assert saved["schema"] == "dpci.Ledger"
    assert saved["total"] == {"epsilon": 1.0, "delta": 1e-6}
    assert [entry["number"] for entry in saved["entries"]] == [1, 2, 3]
    assert saved["entries"][0] == first.to_dict()
    assert saved["spent"] == ledger.spent
    text = ledger.summary()
    assert "first model" in text
    assert "rho=0.001" in text
    assert "3 entries" in repr(ledger)


@pytest.mark.parametrize("name", [None, "ledger.db"])
def test_closing(name, tmp_path):
    with dpci.Ledger(dpci.PureDP(1.0), path=name and tmp_path / name) as ledger:
        fit(ledger=ledger)
        label = ledger.labelled("x")
    for use in (lambda: ledger.spent, lambda: fit(ledger=ledger), lambda: label.history):
        with pytest.raises(LedgerError, match="the ledger must be open, got a closed one"):
            use()
    assert "closed" in repr(ledger)


# Shared, not copied.


class Estimator(ClassifierMixin, BaseEstimator):
    """The least that scikit-learn needs to cross-validate a fit."""

    def __init__(self, epsilon=0.1, ledger=None):
        self.epsilon = epsilon
        self.ledger = ledger

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.result_ = fit(X, y, budget=dpci.PureDP(self.epsilon), moments="none", ledger=self.ledger)
        return self

    def predict(self, X):
        return self.result_.predict(X)


def test_copies_are_the_ledger():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    for again in (copy.copy(ledger), copy.deepcopy(ledger), copy.deepcopy([{"ledger": ledger}])[0]["ledger"]):
        assert again is ledger
    assert clone(Estimator(ledger=ledger)).ledger is ledger


def test_cross_validation_stops_where_the_total_ends():
    ledger = dpci.Ledger(dpci.PureDP(0.35))
    with pytest.raises(BudgetExceeded):
        cross_val_score(Estimator(ledger=ledger), X, Y, cv=5, error_score="raise")
    assert ledger.spent == {"epsilon": 0.3}


def test_cross_validation_in_other_processes_is_paid_for(tmp_path):
    ledger = dpci.Ledger(dpci.PureDP(1.0), path=tmp_path / "ledger.db")
    with joblib.parallel_config(backend="multiprocessing"):
        cross_val_score(Estimator(ledger=ledger), X, Y, cv=4, n_jobs=2)
    assert ledger.spent == {"epsilon": 0.4}


def test_a_ledger_in_memory_is_not_pickled():
    with pytest.raises(LedgerError, match=r"a ledger shared with other processes must have a file \(path=...\)"):
        pickle.dumps(dpci.Ledger(dpci.PureDP(1.0)))


# The commands.


def test_commands(tmp_path, capsys):
    file, table = str(tmp_path / "ledger.db"), str(tmp_path / "sample.csv")
    assert "no entries" in ran(capsys, "ledger", "create", file, "--epsilon", "1").out
    assert main(["data", "adult_sample", "--export", table]) == 0
    fitting = ["fit", table, "--schema", "adult_demo", "--l2-strength", "0.01", "--epsilon", "0.6"]
    assert main([*fitting, "--ledger", file, "--label", "monthly"]) == 0
    capsys.readouterr()
    assert "the ledger cannot pay for this release: requested " in ran(capsys, *fitting, "--ledger", file, code=3).err
    shown = ran(capsys, "ledger", "show", file).out
    assert "monthly" in shown
    assert "remaining  epsilon=0.4" in shown
    assert json.loads(ran(capsys, "ledger", "export", file).out) == json.loads(dpci.Ledger.open(file).to_json())
    exported = tmp_path / "ledger.json"
    assert main(["ledger", "export", file, "--output", str(exported)]) == 0
    assert json.loads(exported.read_text())["spent"] == {"epsilon": 0.6}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ledger", "create", "{there}", "--epsilon", "1"], "a new ledger must have a new file"),
        (["ledger", "create", "{new}"], "the budget must be --epsilon"),
        (["ledger", "show", "{new}"], "must exist, got"),
        (["ledger", "show", "{text}"], "file is not a database"),
        (["ledger", "export", "{there}", "--output", "{text}"], "--output must name a new file"),
        (["fit", "x.csv", "--schema", "adult_demo", "--l2-strength", "1", "--epsilon", "1", "--label", "a"], "--label"),
    ],
)
def test_refused_commands(tmp_path, capsys, arguments, message):
    files = {name: str(tmp_path / name) for name in ("there", "new", "text")}
    dpci.Ledger(TENTH, path=files["there"])
    (tmp_path / "text").write_text("people, budgets\n" * 100)
    assert message in ran(capsys, *[argument.format(**files) for argument in arguments], code=2).err
