"""Ledgers with private errors: whatever is wrong with the data, a failure looks the same and costs the same."""

import json
import traceback
import warnings

import dask.array
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dpci
from dpci import _core
from dpci.cli.main import main
from dpci.errors import InvalidInput, ReleaseFailed
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.search import PrivateGridSearch
from support.commands import ran
from support.keywords import assembled

N = 60
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(N, 3))
Y = np.arange(N) % 2
TENTH = dpci.PureDP(0.1)
COMMON = {"budget": TENTH, "classes": (0, 1)}
CLIP = {**COMMON, "rows": "clip"}
GRID = [{"l2_strength": 30.0}, {"l2_strength": 60.0}]
BINS = [dpci.baselines.Bins(column, 2, -0.5, 0.5) for column in range(3)]
FIT = {**CLIP, "l2_strength": 5.0, "projection": "floor"}


def chunks(x, y):
    return dpci.Chunks([(x[:10], y[:10]), (x[10:], y[10:])], names=("a", "b", "c"))


def in_dask(x, y):
    return dask.array.from_array(x, chunks=(25, 3)), dask.array.from_array(y, chunks=25)


def search(x, y, **keywords):
    ledger = keywords.pop("ledger")
    return PrivateGridSearch(
        estimator(ledger=ledger, **keywords), {"l2_strength": [30.0, 60.0]}, validation_radius=1.0
    ).fit(x, y)


def estimator(**keywords):
    return PrivateLogisticRegression(
        **assembled(epsilon=0.1, l2_strength=5.0, projection="floor", classes=(0, 1), **keywords)
    )


# Every way to pay, with its own relation where it has only one.
EITHER = {
    "fit": lambda x, y, **k: dpci.fit(x, y, **assembled(**FIT, **k)),
    "fit output": lambda x, y, **k: dpci.fit(x, y, **assembled(mechanism="output", **FIT, **k)),
    "chunks": lambda x, y, **k: dpci.fit(chunks(x, y), **assembled(**FIT, **k)),
    "dask": lambda x, y, **k: dpci.fit(*in_dask(x, y), **assembled(**FIT, **k)),
    "functional": lambda x, y, **k: dpci.baselines.functional_mechanism(x, y, loss="logistic", **CLIP, **k),
    "histogram": lambda x, y, **k: dpci.baselines.projected_histogram(
        x, y, axes=BINS, l2_strength=0.1, loss="logistic", **COMMON, **k
    ),
    "sklearn": lambda x, y, **k: estimator(**k).fit(x, y),
}
REPLACE_ONE = {
    "tune": lambda x, y, **k: dpci.tuning.tune(
        x, y, **assembled(candidates=GRID, validation_radius=1.0, projection="floor", **CLIP, **k)
    ),
    "tune in chunks": lambda x, y, **k: dpci.tuning.tune(
        x, y, **assembled(candidates=GRID, validation_radius=1.0, projection="floor", method="chunks", **CLIP, **k)
    ),
    "search": search,
}
ADD_REMOVE = {
    "report": lambda x, y, **k: dpci.per_instance.report(
        x, y, l2_strength=5.0, **{**CLIP, "budget": dpci.ApproxDP(0.1, 1e-7)}, **k
    ),
    "tune by rule": lambda x, y, **k: dpci.tuning.tune(
        x,
        2.0 * y - 1.0,
        **assembled(
            method="public_rule", loss="squared", mechanism="output", moments="none", **{**CLIP, "classes": None}, **k
        ),
    ),
}
CASES = [
    *((name, "replace_one") for name in {**EITHER, **REPLACE_ONE}),
    *((name, "add_remove") for name in {**EITHER, **ADD_REMOVE}),
]
WAYS = {**EITHER, **REPLACE_ONE, **ADD_REMOVE}

_rows = np.arange(N)[:, None]
BAD = {
    "not finite": (np.where(_rows == 3, np.nan, X), Y), "another not finite": (np.where(_rows == 50, -np.inf, X), Y),
    "a row beyond all bounds": (np.where(_rows == 7, 1e200, X), Y), "labels": (X, np.arange(N) % 3),
    "one wrong label": (X, np.where(np.arange(N) == 8, 7, Y)),
    "missing labels": (X, np.where(np.arange(N) == 8, np.nan, Y)), "text": (X, np.where(np.arange(N) == 8, "7", "0")),
    "lengths": (X, Y[1:]), "no numbers": (np.where(_rows == 4, "a", X.astype(str)), Y),
}  # fmt: skip
# Where the number of rows is public, it may be told.
BAD_NUMBERS = {"no rows": (X[:0], Y[:0]), "too many rows": (np.tile(X, (20, 1)), np.tile(Y, 20))}


# Real targets are clipped, and every record has a nearest cell.
LEGAL = {
    "tune by rule": ("text", "missing labels", "labels", "one wrong label"),
    "histogram": ("a row beyond all bounds", "too many rows"),
}


def ledger_of(relation, name="", **keywords):
    total = dpci.ApproxDP(100.0, 1e-3) if name == "report" else dpci.PureDP(100.0)
    n_public = N if relation == "add_remove" else None
    return dpci.Ledger(total, relation, errors="private", n_public=n_public, **keywords)


def relation_of(relation, name):
    flat = {"neighbors": relation, "n_public": N}
    of_name = {"report": {"n_public": N}, "sklearn": flat if relation == "add_remove" else {}}
    return of_name.get(name, {"neighbors": dpci.AddRemove(N)} if relation == "add_remove" else {})


def failure(call):
    """Text for whoever sees errors, down to the lines of the traceback, and warnings."""
    with warnings.catch_warnings(record=True, action="always") as told:
        try:
            call()
        except Exception as error:  # noqa: BLE001  # whatever it is
            lines = "".join(traceback.format_exception(error))
            hidden = error.__cause__, error.__context__, getattr(error, "__notes__", None)
            return type(error), str(error), lines, hidden, [str(each.message) for each in told]
    return None


@pytest.fixture(autouse=True)
def _quiet_projection(recwarn):
    """Tiny fits warn of their noise, which is no matter here."""


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_failures_are_all_alike(name, relation):
    keywords = relation_of(relation, name)
    cases = {**BAD, **(BAD_NUMBERS if relation == "add_remove" else {})}
    for legal in LEGAL.get(name, ()):
        cases.pop(legal, None)
    ledger = ledger_of(relation, name)
    seen = {}
    for label, (x, y) in cases.items():
        before = len(ledger.history)
        seen[label] = failure(lambda x=x, y=y: WAYS[name](x, y, ledger=ledger, **keywords))
        assert seen[label] is not None, label
        assert len(ledger.history) == before + 1, label
    kind, message, lines, hidden, told = seen["not finite"]
    assert kind is ReleaseFailed
    assert "does not report the reason" in message
    assert hidden == (None, None, None)
    assert told == []
    assert "nan" not in lines.lower()
    for label, each in seen.items():
        assert each == seen["not finite"], label
    assert len({(entry.source, entry.budget, entry.label) for entry in ledger.history}) == 1


@pytest.mark.parametrize(("name", "relation"), CASES)
def test_good_data_are_released_and_paid_once(name, relation):
    keywords = relation_of(relation, name)
    ledger = ledger_of(relation, name)
    assert WAYS[name](X, Y, ledger=ledger, **keywords) is not None
    assert len(ledger.history) == 1
    # A long row is clipped, and one class is as good as two.
    WAYS[name](3.0 * X, np.zeros(N, dtype=int), ledger=ledger, **keywords)
    assert len(ledger.history) == 2


def test_the_number_of_rows_cannot_be_found():
    """A client who varies n_public, sees errors and reads the history learns the same for any number of rows."""
    seen = {}
    for n_rows in (N, 40 * N):
        data = np.tile(X, (n_rows // N, 1)), np.tile(Y, n_rows // N)
        ledger = ledger_of("add_remove")
        seen[n_rows] = [
            failure(
                lambda n=n, data=data, ledger=ledger: EITHER["fit"](*data, ledger=ledger, neighbors=dpci.AddRemove(n))
            )
            for n in (1, 3, 4, N - 1, N + 1, 10 * N)
        ]
        assert all(
            each[0] is InvalidInput and "n_public must equal the ledger's n_public=60" in each[1]
            for each in seen[n_rows]
        )
        assert ledger.history == ()
    assert seen[N] == seen[40 * N]


def test_the_data_are_not_looked_at_before_the_spend_is_written(monkeypatch):
    ledger = ledger_of("replace_one")
    spent = []

    class Rows:
        shape = (N, 3)

        def __array__(self, dtype=None, copy=None):
            spent.append(ledger.spent["epsilon"])
            return X

    fit = EITHER["fit"]
    fit(Rows(), Y, ledger=ledger)
    assert spent
    assert set(spent) == {0.1}

    def failing(*_args, **_keywords):
        raise dpci.NotConverged("no certificate within 1e-9")

    monkeypatch.setattr(_core, "release", failing)
    for source in ("fit", "chunks"):
        with pytest.raises(ReleaseFailed):
            EITHER[source](X, Y, ledger=ledger)
    assert ledger.spent["epsilon"] == pytest.approx(0.3)


def test_interrupts_pass_and_stay_paid(monkeypatch):
    def interrupted(*_args, **_keywords):
        raise KeyboardInterrupt

    ledger = ledger_of("replace_one")
    monkeypatch.setattr(_core, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        EITHER["fit"](X, Y, ledger=ledger)
    assert len(ledger.history) == 1
    monkeypatch.setattr(_core, "release", lambda *_, **__: bytearray(2**62))
    with pytest.raises(ReleaseFailed):
        EITHER["fit"](X, Y, ledger=ledger)


class Panic(BaseException):
    """Panic of libraries whose panics are no ``Exception``."""


class Panicking:
    dtype, shape = np.dtype(float), (N, 3)

    def __array__(self, *_args, **_keywords):
        raise Panic("row 3 holds 17.5")


def test_what_is_no_exception_but_no_request_to_end_is_replaced_too():
    ledger = ledger_of("replace_one")
    with pytest.raises(ReleaseFailed) as failure:
        EITHER["fit"](Panicking(), Y, ledger=ledger)
    assert "17.5" not in "".join(traceback.format_exception(failure.value))
    assert len(ledger.history) == 1


def test_no_frame_of_the_traceback_keeps_what_happened():
    """Some programs print the variables of the frames."""
    with pytest.raises(ReleaseFailed) as failure:
        EITHER["fit"](NAN, Y, ledger=ledger_of("replace_one"))
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(failure.tb)]
    kept = [value for names in frames for value in names.values() if isinstance(value, BaseException)]
    assert {type(each) for each in kept} <= {ReleaseFailed}


NAN = np.full((N, 3), np.nan)
SMALL = {**FIT, "l2_strength": 1e-9}
REFUSED = {
    "classes": (lambda **k: dpci.fit(NAN, Y, budget=TENTH, l2_strength=5.0, rows="clip", **k), "classes="),
    "bool": (lambda **k: dpci.fit(NAN, Y > 0, budget=TENTH, l2_strength=5.0, rows="clip", **k), "classes="),
    "error": (
        lambda **k: dpci.fit(NAN, Y, **assembled(**{**FIT, "rows": None}, **k)),
        "rows must be clipped with a ledger",
    ),
    "strength": (lambda **k: dpci.fit(NAN, Y, **assembled(**SMALL, **k)), "l2_strength must be"),
    "hinge": (lambda **k: dpci.fit(chunks(NAN, Y), **assembled(loss="hinge", **FIT, **k)), "all rows in memory"),
    "radius": (lambda **k: dpci.fit(NAN, Y, **assembled(**{**FIT, "radius": -1.0}, **k)), "radius must be"),
    "lists": (
        lambda **k: dpci.fit(NAN.tolist(), Y, **assembled(**FIT, **k)),
        r"known two-dimensional shape .* got list",
    ),
    "a vector": (
        lambda **k: dpci.fit(NAN[0], Y, **assembled(**FIT, **k)),
        r"known two-dimensional shape .* got ndarray",
    ),
    "y twice": (lambda **k: dpci.fit(chunks(NAN, Y), Y, **assembled(**FIT, **k)), "y must be None"),
    "parts": (lambda **k: REPLACE_ONE["tune"](chunks(NAN, Y), None, **k), "must have all rows in memory"),
    "no targets": (lambda **k: REPLACE_ONE["tune"](NAN, None, **k), "y must be given"),
    "candidate": (
        lambda **k: dpci.tuning.tune(NAN, Y, candidates=[{"l2_strength": 1e-9}], validation_radius=1.0, **CLIP, **k),
        "l2_strength must be",
    ),
    "axes": (
        lambda **k: dpci.baselines.projected_histogram(
            NAN, Y, axes=BINS[:2], l2_strength=0.1, loss="logistic", **COMMON, **k
        ),
        "exactly one axis",
    ),
    "seed": (lambda **k: dpci.fit(NAN, Y, **assembled(**FIT, seed=1, **k)), "seed must be None"),
    "budget": (
        lambda **k: dpci.fit(NAN, Y, **assembled(**{**FIT, "budget": dpci.PureDP(200.0)}, **k)),
        "requested .*, remaining ",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_public_values_rule_out_is_told_and_costs_nothing(case):
    call, message = REFUSED[case]
    ledger = ledger_of("replace_one")
    with pytest.raises(dpci.DpciError, match=message) as refused:
        call(ledger=ledger)
    assert not isinstance(refused.value, ReleaseFailed)
    assert ledger.history == ()


def test_tables_of_every_kind_have_a_shape():
    ledger = ledger_of("replace_one")
    for table in (pd.DataFrame(X), scipy.sparse.csr_array(X), X.astype(np.float32)):
        EITHER["fit"](table, Y, ledger=ledger)
    assert len(ledger.history) == 3


def test_warnings_come_back_when_the_last_release_has_ended():
    before = list(warnings.filters)
    ledger = ledger_of("replace_one")
    with pytest.raises(ReleaseFailed):
        EITHER["fit"](NAN, Y, ledger=ledger)
    EITHER["fit"](X, Y, ledger=ledger)
    assert warnings.filters == before
    loud = {**FIT, "budget": dpci.PureDP(0.5), "projection": "auto", "l2_strength": 0.05}
    with pytest.warns(dpci.MomentNoiseWarning):  # of released values
        dpci.fit(X, Y, **assembled(**loud, ledger=ledger))


def test_the_choice_belongs_to_the_file(tmp_path):
    path = tmp_path / "people.ledger"
    ledger_of("add_remove", path=path)
    again = dpci.Ledger.open(path)
    assert (again.errors, again.n_public) == ("private", N)
    assert "private errors" in again.summary()
    saved = json.loads(again.to_json())
    assert (saved["errors"], saved["n_public"]) == ("private", N)
    for other in ({"errors": "detailed"}, {"errors": "private", "n_public": N + 1}):
        with pytest.raises(InvalidInput, match="the value in the ledger file"):
            dpci.Ledger(dpci.PureDP(100.0), "add_remove", path, **other)
    for wrong, message in (
        ({"errors": "none"}, "errors must be one of"),
        ({"errors": "private", "neighbors": "add_remove"}, "n_public must be given"),
        ({"errors": "private", "n_public": 3}, "n_public must be None"),
        ({"neighbors": "add_remove", "n_public": 3}, "n_public must be None"),
        ({"errors": "private", "neighbors": "add_remove", "n_public": 0}, "n_public must be"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dpci.Ledger(TENTH, **wrong)


SCHEMA = """
[[columns]]
name = "age"
kind = "numeric"
lower = 0
upper = 100

[target]
column = "income"
negative = ["low"]
positive = ["high"]
"""
TABLES = {
    "a text": "age,income\n" + "3,low\n" * 9 + "old,high\n",
    "another class": "age,income\n" + "3,low\n" * 900 + "3,middle\n",
    "fields": "age,income\n" + "3,low,7\n" * 9,
    "no rows": "age,income\n",
    "no column": "years,income\n3,low\n",
}


def test_the_command_line(tmp_path, capsys):
    ledger, schema, table = tmp_path / "a.ledger", tmp_path / "a.toml", tmp_path / "a.csv"
    schema.write_text(SCHEMA)
    create = ["ledger", "create", str(ledger), "--epsilon", "10", "--neighbors", "add_remove"]
    assert main([*create, "--errors", "private", "--n-public", "60"]) == 0
    capsys.readouterr()
    fit = ["fit", str(table), "--schema", str(schema), "--epsilon", "0.1", "--l2-strength", "5"]
    fit += ["--neighbors", "add_remove", "--n-public", "60", "--ledger", str(ledger), "--on-violation", "clip"]
    said = set()
    for text in TABLES.values():
        table.write_text(text)
        said.add(ran(capsys, *fit, code=4))
    assert len(said) == 1
    (only,) = said
    assert only.out == ""
    assert only.err == (
        "dpci: the release failed after its budget was spent; "
        "a ledger with errors='private' does not report the reason\n"
    )
    assert len(dpci.Ledger.open(ledger).history) == len(TABLES)
    table.write_text("age,income\n" + "3,low\n30,high\n" * 30)
    for arguments in (["-"], [str(table), "--progress"]):
        assert main(["fit", *arguments, *fit[2:]]) == 2
    assert main(fit) == 0
    assert len(dpci.Ledger.open(ledger).history) == len(TABLES) + 1


def test_targets_that_are_no_dask_collection_are_refused_before_anything_is_paid():
    array = pytest.importorskip("dask.array")
    ledger = ledger_of("replace_one")
    with pytest.raises(InvalidInput, match="y must be a Dask array or series"):
        dpci.fit(array.from_array(X, chunks=(20, 3)), Y, **assembled(**FIT, ledger=ledger))
    assert "no entries" in ledger.summary()
