"""Every function that takes records, as docs/persons.md lists them: persons, weights and parts are never ignored."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import CategoricalTarget, ClassTarget, NumericColumn, NumericTarget, PartialSchema, Schema
from support.fuzz_targets import parameters_of, public_callables
from support.keywords import assembled

PAGE = Path(__file__).parents[2] / "docs" / "persons.md"
pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N, PERSONS = 120, 40
_RNG = np.random.default_rng(0)
X = _RNG.uniform(-0.5, 0.5, (N, 2))
Y = np.where(X[:, 0] + 0.3 * _RNG.normal(size=N) > 0, 1, -1)
T = 0.5 * X[:, 0]
C = np.array(["a", "b", "c"])[np.arange(N) % 3]
IDS, ALONE, WEIGHTS = np.repeat(np.arange(PERSONS), 3), np.arange(N)[::-1], _RNG.uniform(0.0, 2.0, N)

FIT = {"budget": dpci.ApproxDP(3.0, 1e-6), "l2_strength": 1.0}
CLASSES = {"classes": (-1, 1)}
AXES = [dpci.baselines.Bins(0, 2), dpci.baselines.Bins(1, 2)]
STRATA = {"by": "ward", "strata": ("u", "v"), "n_public": 60}
SCHEMA = Schema(
    columns=tuple(NumericColumn(name=name, lower=-1, upper=1) for name in ("one", "two")),
    target=ClassTarget(column="y", negative=("no",), positive=("yes",)),
)
TABLE = {"one": X[:, 0], "two": X[:, 1], "y": np.where(Y > 0, "yes", "no"), "ward": np.repeat(["u", "v"], N // 2)}
PARTIAL = PartialSchema(columns=(dpci.schema.UnboundedColumn(name="one", lower=-1, upper=1),), target=SCHEMA.target)
HALF = slice(0, N // 2), slice(N // 2, N)
STUDY = {"n_replicates": 3, "n_variability": 3, "progress": False}


def many(X, y, persons=None, weights=None, **keywords):
    """Two groups of the same table; parts are one group."""
    if not isinstance(X, np.ndarray):
        return dpci.fit_many({"a": (X, y)}, **FIT, **CLASSES, **keywords)["a"]

    def of_halves(values):
        if isinstance(values, dpci.Weights):
            return {key: replace(values, values=half) for key, half in of_halves(values.values).items()}
        return None if values is None else {key: values[half] for key, half in zip("ab", HALF, strict=True)}

    groups = {key: (X[half], y[half]) for key, half in zip("ab", HALF, strict=True)}
    return dpci.fit_many(groups, **FIT, **CLASSES, persons=of_halves(persons), weights=of_halves(weights), **keywords)[
        "a"
    ]


def strata(X, _, **keywords):
    """The table with its schema, or the parts."""
    table = TABLE if isinstance(X, np.ndarray) else X
    return dpci.fit_strata(table, schema=SCHEMA, **STRATA, **FIT, **keywords)["u"]


def bounds(X, _, persons=None, **keywords):
    """The table, or parts of it."""
    table = TABLE
    if not isinstance(X, np.ndarray):
        table = dpci.Chunks([({name: values[half] for name, values in TABLE.items()}, None) for half in HALF])
    if persons is not None:
        keywords["persons"] = dpci.Persons(persons, max_rows=3)
    return dpci.release_schema(table, schema=PARTIAL, budget=dpci.PureDP(20.0), **keywords)


def estimators(X, y, *, weights=None, **keywords):
    """Each kind of estimator; the last one's result."""
    sklearn = pytest.importorskip("dpci.sklearn", reason="scikit-learn is optional")
    public = {"epsilon": 30.0, "weights": weights and weights.public}
    labels = [Y, Y, C, T, T, np.abs(T), T] if isinstance(X, np.ndarray) else [y] * 7
    for model, target in zip(
        [
            sklearn.PrivateLogisticRegression(**public, **CLASSES),
            sklearn.PrivateLinearSVC(**public, **CLASSES),
            sklearn.PrivateMultinomialRegression(**public, classes=("a", "b", "c")),
            sklearn.PrivateRidge(**assembled(**public, l2_strength=1.0, radius=1.0)),
            sklearn.PrivateLinearRegression(**public, row_norm=1.0, target_bound=1.0),
            sklearn.PrivatePoissonRegressor(**public, radius=1.0, l2_strength=1.0),
            sklearn.PrivateRegressor(**public, l2_strength=1.0),
        ],
        labels,
        strict=True,
    ):
        model.fit(X, target, weights and weights.values, **keywords)
    return model.result_


def search(X, y, *, weights=None, **keywords):
    sklearn = pytest.importorskip("dpci.sklearn", reason="scikit-learn is optional")
    model = sklearn.PrivateLogisticRegression(epsilon=6.0, weights=weights and weights.public, **CLASSES)
    grid = {"l2_strength": [1.0, 2.0]}
    values = weights and weights.values
    found = sklearn.PrivateGridSearch(model, grid, validation_radius=1.0).fit(X, y, values, **keywords)
    return found.result_.result


def targets(y, values):
    """Parts hold their targets."""
    return y if y is None else values


CALLS = {
    "dpci.fit": lambda X, y, **k: dpci.fit(X, y, **FIT, **CLASSES, **k),
    'dpci.fit(loss="squared")': lambda X, y, **k: dpci.fit(
        X, targets(y, T), loss="squared", budget=dpci.ZCDP(5.0), rows=1.0, l2_strength=0.1, **k
    ),
    "dpci.regression.release": lambda X, y, **k: dpci.regression.release(X, targets(y, T), budget=dpci.ZCDP(5.0), **k),
    "dpci.multinomial.fit": lambda X, y, **k: dpci.multinomial.fit(
        X, targets(y, C), classes=(0, 1, 2) if y is None else ("a", "b", "c"), **FIT, **k
    ),
    "dpci.release_schema": bounds,
    "dpci.fit_many": many,
    "dpci.fit_strata": strata,
    "dpci.per_instance.report": lambda X, y, **k: (
        dpci.per_instance.report(X, y, **FIT, **CLASSES, n_public=PERSONS if "persons" in k else N, **k).result
    ),
    "dpci.tuning.tune": lambda X, y, **k: (
        dpci.tuning.tune(
            X, y, candidates=[{"l2_strength": 1.0}], validation_radius=1.0, budget=dpci.PureDP(6.0), **CLASSES, **k
        ).result
    ),
    "dpci.tuning.oracle_not_private": lambda X, y, **k: dpci.tuning.oracle_not_private(
        X, y, candidates=[{"l2_strength": 1.0}], budget=dpci.PureDP(6.0), **CLASSES, **k
    ),
    "dpci.simulate.coverage": lambda X, y, **k: dpci.simulate.coverage(X, y, **FIT, **CLASSES, **STUDY, **k),
    "dpci.simulate.variability": lambda X, y, **k: dpci.simulate.variability(
        X, y, **FIT, **CLASSES, n_variability=3, **k
    ),
    "dpci.utility.curve": lambda X, y, **k: dpci.utility.curve(X, y, at=FIT["budget"], l2_strength=1.0, **CLASSES, **k),
    "dpci.baselines.functional_mechanism": lambda X, y, **k: dpci.baselines.functional_mechanism(
        X, targets(y, T), budget=dpci.PureDP(3.0), **k
    ),
    "dpci.baselines.projected_histogram": lambda X, y, **k: dpci.baselines.projected_histogram(
        X, targets(y, T), budget=dpci.PureDP(3.0), axes=AXES, l2_strength=1.0, **k
    ),
    "dpci.baselines.non_private": lambda X, y, **k: dpci.baselines.non_private(
        X, targets(y, T), loss="squared", l2_strength=1.0, **k
    ),
    "estimators of `dpci.sklearn`": estimators,
    "dpci.sklearn.PrivateGridSearch": search,
}


def entries():
    """Yield the entries of the table: the name of a function, the column, and what is said."""
    section = PAGE.read_text(encoding="utf-8").split("## Where you can pass persons")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and set(cells[0]) - set("-") and cells[0] != "function" and "plan" not in cells[0]:
            name = re.sub(r"^`(.*)`$", r"\1", cells[0])
            yield from ((name, *entry) for entry in zip(("persons", "weights", "parts"), cells[1:], strict=True))


ENTRIES = sorted(entries())


def test_the_table_has_every_function_that_takes_records():
    assert {name for name, *_ in ENTRIES} == set(CALLS)
    assert len(ENTRIES) == 3 * len(CALLS)
    paying = {
        name if name.startswith("dpci.") else f"dpci.{name}"
        for name, function in public_callables().items()
        if "ledger" in parameters_of(function)[0]
    }
    assert paying <= set(CALLS)


def n_records(result):
    """How many records a result says that it protects; None where it does not say."""
    return getattr(result, "n_samples", None)


REAL = {'dpci.fit(loss="squared")', "dpci.regression.release"}
# The first of two halves is what these return.
HALVES = {"dpci.fit_many", "dpci.fit_strata"}


@pytest.mark.parametrize(("name", "what", "said"), ENTRIES)
def test_what_is_said_is_what_happens(name, what, said):
    call = CALLS[name]
    y = T if name in REAL else np.arange(N) % 3 if "multinomial" in name else Y
    if what == "parts":
        chunks = dpci.Chunks([(X[:50], y[:50]), (X[50:], y[50:])])
        if said == "yes":
            assert n_records(call(chunks, None)) == N
            return
        call(X, Y)
        with pytest.raises((TypeError, ValueError), match=r"Chunks|rows in parts"):  # InvalidInput is a ValueError
            call(chunks, Y if "sklearn" in name else None)
        return
    given = {"persons": IDS} if what == "persons" else {"weights": dpci.Weights(WEIGHTS, bound=2.0)}
    if said == "no":
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{what}'"):
            call(X, Y, **given)
        return
    expected = {"persons": PERSONS, "weights": N}[what] // (2 if name in HALVES else 1)
    # Under add/remove the number is public, whatever the records are.
    assert n_records(call(X, Y, **given)) in {None, STRATA["n_public"] if name == "dpci.fit_strata" else expected}


LEDGERS = {
    name: CALLS[name]
    for name in CALLS
    if not name.startswith(("dpci.simulate", "dpci.utility", "estimators", "dpci.sklearn"))
    and "not" not in name
    and name != "dpci.baselines.non_private"
}


@pytest.mark.parametrize("name", sorted(LEDGERS))
def test_a_ledger_counts_persons_where_they_are_given_and_rows_otherwise(name):
    relation = "add_remove" if name in {"dpci.per_instance.report", "dpci.fit_strata"} else "replace_one"
    for given, unit in (({}, "row"), ({"persons": ALONE}, "person")):
        ledger = dpci.Ledger(dpci.ApproxDP(1e3, 0.5), neighbors=relation)
        LEDGERS[name](X, Y, **given, ledger=ledger)
        assert [entry.unit for entry in ledger.history] == [unit]


NAMED = {
    "two classes": Schema(columns=SCHEMA.columns, target=SCHEMA.target, persons="id"),
    "a number": Schema(columns=SCHEMA.columns, target=NumericTarget(column="t", lower=-1, upper=1), persons="id"),
    "several": Schema(
        columns=SCHEMA.columns, target=CategoricalTarget(column="c", classes=(("a",), ("b",), ("c",))), persons="id"
    ),
}
ALL = {**TABLE, "t": T, "c": C, "id": IDS}
BY_SCHEMA = {
    "fit": ("two classes", lambda table, s: dpci.fit(table, schema=s, **FIT)),
    "squared": ("a number", lambda table, s: dpci.fit(table, schema=s, loss="squared", budget=dpci.ZCDP(5.0))),
    "multinomial": ("several", lambda table, s: dpci.multinomial.fit(table, schema=s, **FIT)),
    "strata": ("two classes", lambda table, s: dpci.fit_strata(table, schema=s, **STRATA, **FIT)),
    "tune": (
        "two classes",
        lambda table, s: dpci.tuning.tune(
            table, schema=s, candidates=[{"l2_strength": 1.0}], validation_radius=1.0, budget=dpci.PureDP(6.0)
        ),
    ),
    "axes": ("two classes", lambda _, s: dpci.baselines.axes_of(s)),
}


@pytest.mark.parametrize("name", BY_SCHEMA)
def test_a_schema_that_names_persons_is_never_ignored(name):
    schema, call = BY_SCHEMA[name]
    with pytest.raises(InvalidInput, match="a column of persons"):
        call(ALL, NAMED[schema])


@pytest.mark.parametrize("name", ["fit", "squared", "multinomial", "release"])
def test_nor_is_that_of_chunks(name, tmp_path):
    path, names = tmp_path / "people.csv", ("one", "two", "y", "t", "c", "id")
    lines = [",".join(names), *(",".join(map(str, row)) for row in zip(*(ALL[name] for name in names), strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    schema, call = {**BY_SCHEMA, "release": ("a number", lambda table, _: release(table))}[name]
    chunks = dpci.Chunks.from_csv(path, schema=NAMED[schema])
    for given in (None, NAMED[schema]):
        with pytest.raises(InvalidInput, match="the schema names a column of persons, 'id'"):
            call(chunks, given)
        if name == "release":  # which takes the ids, too
            beside = dpci.Chunks.from_csv(path, schema=NAMED[schema], beside=["id"], together="id")
            assert release(beside, persons="id").n_samples == PERSONS


def release(table, **given):
    return dpci.regression.release(table, rows=1.0, budget=dpci.ZCDP(5.0), **given)


def test_plans_of_a_schema_that_names_persons_are_for_persons():
    asked = {"n_samples": 2000, "l2_strength": 1.0}
    two, several = NAMED["two classes"], NAMED["several"]
    plans = [
        dpci.plan(schema=two, budget=dpci.PureDP(1.0), **asked),
        dpci.multinomial.plan(schema=several, budget=dpci.PureDP(1.0), **asked),
        dpci.plan(schema=NAMED["a number"], loss="squared", budget=dpci.ZCDP(1.0), n_samples=2000),
        *(entry.plan for entry in dpci.plan_table(schema=two, budgets=dpci.PureDP(1.0), **asked).entries),
    ]
    assert all(plan.persons is not None for plan in plans)


def test_a_public_scaler_of_such_a_schema_is_refused():
    sklearn = pytest.importorskip("dpci.sklearn", reason="scikit-learn is optional")
    for use in (lambda scaler: scaler.fit(), lambda scaler: scaler.transform(ALL)):
        with pytest.raises(InvalidInput, match="schema must not name a column of persons here"):
            use(sklearn.PublicScaler(NAMED["two classes"]))
