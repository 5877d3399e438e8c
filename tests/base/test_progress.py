"""Bars of progress where somebody looks, and warnings that point at the line of the caller."""

import inspect
import io
import sys

import numpy as np
import pytest

import dpci
from dpci.base import progress
from dpci.base.warn import warn

pytest.importorskip("tqdm")
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 2))
Y = X[:, 0] > 0
CHUNKS = [(X[:200], Y[:200]), (X[200:], Y[200:])]
FIT = {"budget": dpci.ZCDP(1.0), "l2_strength": 0.1, "rows": "clip", "classes": (False, True)}

STUDY = {"budget": dpci.PureDP(2.0), "l2_strength": 0.1, "n_replicates": 4, "n_variability": 4}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def watched(monkeypatch):
    """Standard error as a terminal, on which bars appear at once."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    return shown


TUNING = {
    "budget": dpci.PureDP(4.0),
    "candidates": [{"l2_strength": 0.1}, {"l2_strength": 0.3}, {"l2_strength": 1.0}],
    "validation_radius": 2.0,
    "classes": (False, True),
    "rows": "clip",
}


def study(**keywords):
    with pytest.warns(dpci.PrivacyLeakWarning):
        dpci.simulate.coverage(
            X, Y, budget=dpci.PureDP(2.0), l2_strength=0.1, n_replicates=4, n_variability=4, **keywords
        )


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(progress, "_DELAY", 0.0)
    study()
    dpci.fit(dpci.Chunks(CHUNKS), **FIT)
    assert shown.getvalue() == ""
    study(progress=True)
    assert "8/8" in shown.getvalue()
    monkeypatch.setattr(sys, "stderr", None)  # closed
    study()


def test_studies_and_passes_are_shown_on_a_terminal(monkeypatch):
    terminal = watched(monkeypatch)
    study()
    assert "replicates" in terminal.getvalue()
    terminal.truncate(0)
    dpci.fit(dpci.Chunks(CHUNKS), **FIT)
    assert "chunks" in terminal.getvalue()
    terminal.truncate(0)
    study(progress=False)
    dpci.fit(dpci.Chunks(CHUNKS, progress=False), **FIT)
    assert terminal.getvalue().strip("\0") == ""


@pytest.mark.filterwarnings("ignore:group '[ab]'. no coefficient has an interval:dpci.DpciWarning")
def test_models_of_groups_are_counted(monkeypatch):
    terminal = watched(monkeypatch)
    counted = []
    monkeypatch.setattr("tqdm.auto.tqdm.update", lambda _, n=1: counted.append(n))
    groups = {"a": (X, Y), "b": (X, ~Y)}
    dpci.fit_many(groups, budget=dpci.ZCDP(5.0), classes=(False, True), rows="clip")
    assert "models" in terminal.getvalue()
    assert "/2.00" in terminal.getvalue()
    assert counted == [1, 1]


def test_a_utility_curve_shows_its_fits(monkeypatch):
    keywords = {"at": dpci.PureDP(2.0), "l2_strength": 0.1, "classes": (False, True), "rows": "clip", "n_draws": 3}

    def measured(**progress):
        with pytest.warns(dpci.PrivacyLeakWarning):
            return dpci.utility.curve(X, Y, **keywords, **progress)

    plain = measured()
    terminal, counted = watched(monkeypatch), []
    monkeypatch.setattr("tqdm.auto.tqdm.update", lambda _, n=1: counted.append(n))
    shown = measured()
    assert "/3.00" in terminal.getvalue()
    assert counted == [1, 1, 1]
    assert (shown.params == plain.params).all()
    assert "fits" not in terminal.getvalue()
    assert shown.epsilon_for(plain.predict_utility(3.0)) == plain.epsilon_for(plain.predict_utility(3.0))
    assert "fits" in terminal.getvalue()
    assert set(counted[3:]) == {3}  # of each draw one
    terminal.truncate(0)
    hidden = measured(progress=False)
    hidden.epsilon_for(plain.predict_utility(3.0))
    assert terminal.getvalue().strip("\0") == ""


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
@pytest.mark.parametrize("method", ["repeat", "chunks"])
def test_a_tuning_counts_models_and_is_the_same_without_a_bar(monkeypatch, method):
    plain = dpci.tuning.tune(X, Y, method=method, seed=1, **TUNING)
    terminal = watched(monkeypatch)
    found = dpci.tuning.tune(X, Y, method=method, seed=1, **TUNING)
    assert found.to_json() == plain.to_json()
    assert "models" in terminal.getvalue()
    # The number of runs of "repeat" is drawn, and not released.
    assert ("/3" in terminal.getvalue()) is (method == "chunks")
    terminal.truncate(0)
    dpci.tuning.tune(X, Y, method=method, seed=1, progress=False, **TUNING)
    assert terminal.getvalue().strip("\0") == ""


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_what_a_bar_raises_ends_the_tuning(monkeypatch):
    watched(monkeypatch)

    class Broken(Exception):
        pass

    def update(*_):
        raise Broken

    monkeypatch.setattr("tqdm.auto.tqdm.update", update)
    with pytest.raises(Broken):
        dpci.tuning.tune(X, Y, seed=1, **TUNING)


def test_what_is_over_at_once_has_no_bar(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    study()
    assert "replicates" not in shown.getvalue()


@pytest.mark.parametrize("errors", ["detailed", "private"])
def test_private_errors_hide_how_many_passes_there_are(monkeypatch, errors):
    terminal = watched(monkeypatch)
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
    dpci.fit(dpci.Chunks(CHUNKS, progress=True), ledger=ledger, **FIT)
    assert ("chunks" in terminal.getvalue()) is (errors == "detailed")
    ledger = dpci.Ledger(dpci.PureDP(4.0), errors=errors)
    dpci.tuning.tune(X, Y, ledger=ledger, progress=True, **TUNING)
    assert ("models" in terminal.getvalue()) is (errors == "detailed")
    assert not progress._HIDDEN.get()
    broken = [(X * np.nan, Y)]
    with pytest.raises(dpci.ReleaseFailed if errors == "private" else dpci.InvalidInput):
        dpci.fit(dpci.Chunks(broken), ledger=dpci.Ledger(dpci.ZCDP(1.0), errors=errors), **FIT)
    assert not progress._HIDDEN.get()


@pytest.mark.parametrize("module", ["dpci.room.file", "sklearn.base", "joblib.parallel", "dpci_of_another"])
def test_a_warning_points_at_the_first_line_outside(module):
    inner = {"__name__": "dpci.inner", "warn": warn}
    exec("def give():\n    warn(UserWarning('said'))", inner)  # a function of another module
    outer = {"__name__": module, "give": inner["give"]}
    exec(compile("def call():\n    give()", "outer.py", "exec"), outer)  # as above
    with pytest.warns(UserWarning, match="said") as caught:
        outer["call"]()
    line = inspect.currentframe().f_lineno - 1
    passed = not module.startswith("dpci_")
    assert (caught[0].filename, caught[0].lineno) == ((__file__, line) if passed else ("outer.py", 2))
