"""Bounds and lists of tables in parts: the release of the table in memory, one pass a stage, and of the same rows."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.described.counts import first_rows
from dpci.schema import CategoricalColumn, ClassTarget, PartialSchema, UnboundedColumn, UnboundedTarget, UnlistedColumn

RNG = np.random.default_rng(8)
N = 6000
TABLE = {
    "age": RNG.uniform(18, 90, N).round(3),
    "income": np.where(RNG.random(N) < 0.3, 0.0, RNG.lognormal(10, 1, N)).round(2),
    "town": RNG.choice(["north", "south", "west", "harbour"], N, p=[0.5, 0.4, 0.099, 0.001]),
    "ward": RNG.choice(["A", "B"], N),
    "id": np.arange(N) // 3,
}
TABLE["ill"] = np.where(TABLE["age"] / 30 + RNG.logistic(size=N) > 1.8, "yes", "no")
ILL = ClassTarget(column="ill", negative=("no",), positive=("yes",))
NUMBERS = (UnboundedColumn(name="age", lower=0, upper=150), UnboundedColumn(name="income", zeros=True))
WARD = CategoricalColumn(name="ward", categories=("A", "B"), reference="A")
TOWN = UnlistedColumn(name="town", categories=("north",), reference="north")
PARTIAL = PartialSchema(columns=(*NUMBERS, WARD), target=ILL)
LISTS = PartialSchema(columns=(*NUMBERS, TOWN), target=ILL)
RHO, BOTH = dpci.ZCDP(rho=0.5), dpci.ApproxDP(4.0, 1e-6)


def tables(n_parts=5):
    """Parts of uneven sizes, one of them empty, none of which cuts a person."""
    ends = [0, 3, 3, *(3 * int(N / 3 * (k / n_parts) ** 2 + 2) for k in range(1, n_parts)), N]
    return [{name: cells[a:b] for name, cells in TABLE.items()} for a, b in itertools.pairwise(ends)]


class Tables(dpci.Chunks):
    """Chunks of tables that remember their passes, of which one may see other cells."""

    def __init__(self, changed=(), change=None):
        super().__init__([(table, None) for table in tables()])
        self.passes, self._changed, self._change = 0, changed, change

    def on_threads(self, n_threads):
        return self, n_threads or 1

    def reduce(self, work):
        self.passes += 1
        if self.passes not in self._changed:
            return super().reduce(work)
        return dpci.Chunks([(self._change(table), None) for table in tables()]).reduce(work)


@pytest.mark.parametrize(
    ("schema", "budget", "n_passes"),
    # The rows are described, one column has no range at first, and lists take a pass of their own.
    [(PARTIAL, dpci.PureDP(0.5), 3), (PARTIAL, dpci.ZCDP(0.05), 3), (LISTS, dpci.ApproxDP(1.0, 1e-6), 4)],
)
def test_the_schema_is_that_of_the_table_in_memory(schema, budget, n_passes):
    for seed in range(3):
        whole = dpci.release_schema(TABLE, schema=schema, budget=budget, seed=seed)
        parts = Tables()
        found = dpci.release_schema(parts, schema=schema, budget=budget, seed=seed)
        assert found.digest == whole.digest
        assert parts.passes == n_passes


def test_rows_beyond_a_persons_most_do_not_count():
    persons = np.array([0, 1, 0, 0, 1, 2, 0])
    assert first_rows(persons, 2).tolist() == [True, True, True, False, True, True, False]
    keywords = {"schema": LISTS, "budget": dpci.ApproxDP(2.0, 1e-6), "seed": 4}
    for most in (1, 3):
        whole = dpci.release_schema(TABLE, persons=dpci.Persons("id", max_rows=most), **keywords)
        found = dpci.release_schema(Tables(), persons=dpci.Persons("id", max_rows=most), **keywords)
        assert found.digest == whole.digest


def test_files_dask_frames_and_chunks_with_the_schema(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(TABLE).to_csv(path, index=False)
    keywords = {"budget": BOTH, "seed": 5}
    whole = dpci.release_schema(TABLE, schema=LISTS, **keywords)
    chunks = dpci.Chunks.from_csv(path, schema=LISTS, chunk_rows=700)
    for given in (dpci.release_schema(path, schema=LISTS, **keywords), dpci.release_schema(chunks, **keywords)):
        assert given.digest == whole.digest
    fit = dpci.fit(TABLE, schema=LISTS, **keywords)
    for given in (dpci.fit(path, schema=LISTS, **keywords), dpci.fit(chunks, **keywords)):
        assert given.digest == fit.digest
    with pytest.raises(dpci.InvalidInput, match="schema must be the one that the chunks were made with"):
        dpci.fit(chunks, schema=PARTIAL, **keywords)
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame(TABLE), npartitions=3)
    assert dpci.release_schema(frame, schema=LISTS, **keywords).digest == whole.digest
    assert dpci.fit(frame, schema=LISTS, **keywords).digest == fit.digest


def test_a_private_ledger_pays_before_a_file_is_read(tmp_path):
    path = tmp_path / "people.csv"
    pd.DataFrame(TABLE).to_csv(path, index=False)
    ledger = dpci.Ledger(dpci.ZCDP(2.0), errors="private")
    assert dpci.release_schema(path, schema=PARTIAL, budget=RHO, ledger=ledger).private
    assert dpci.fit(path, schema=PARTIAL, budget=RHO, rows="clip", ledger=ledger).private
    with pytest.raises(dpci.ReleaseFailed):
        dpci.fit(tmp_path / "none.csv", schema=PARTIAL, budget=RHO, rows="clip", ledger=ledger)
    assert ledger.spent == {"rho": 1.5}


@pytest.mark.parametrize("l2_strength", ["auto", 0.01])
def test_a_fit_with_gaps_is_that_of_the_table_in_memory(l2_strength):
    for keywords in (
        {"schema": PARTIAL, "budget": RHO},
        {"schema": replace(LISTS, bounds_share=0.2), "budget": BOTH},
        {"schema": PARTIAL, "budget": RHO, "persons": dpci.Persons("id", max_rows=2)},
        {"schema": PARTIAL, "budget": RHO, "neighbors": dpci.AddRemove(N - 50)},
    ):
        whole = dpci.fit(TABLE, l2_strength=l2_strength, seed=6, **keywords)
        found = dpci.fit(Tables(), l2_strength=l2_strength, seed=6, **keywords)
        assert found.schema == whole.schema
        np.testing.assert_allclose(found.params, whole.params, rtol=0, atol=1e-10)
        if l2_strength == "auto":
            assert found.digest == whole.digest


@pytest.mark.parametrize("keywords", [{"mechanism": "newton"}, {"l2_strength": 0.01}], ids=str)
def test_a_fit_releases_the_bounds_of_its_target(keywords):
    schema = PartialSchema(columns=(WARD,), target=UnboundedTarget(column="age", lower=0, upper=1000))
    keywords = {"budget": RHO, "loss": dpci.losses.Huber(k=15.0), "seed": 6, **keywords}
    both = dpci.fit(TABLE, schema=replace(schema, bounds_share=0.2), **keywords)
    first = dpci.release_schema(TABLE, schema=schema, budget=dpci.ZCDP(0.1), seed=6 ^ 0x5DEECE66D)
    assert both.schema == first.schema
    assert 80.0 < both.schema.target.upper < 150.0
    second = dpci.fit(TABLE, schema=first.schema, **{**keywords, "budget": both._record.own_budget})
    np.testing.assert_array_equal(both.params, second.params)
    assert 45.0 < both.predict({"ward": ["A"]})[0] < 65.0
    rows, target = {"ward": TABLE["ward"]}, TABLE["age"]
    beside = dpci.fit(rows, target, schema=replace(schema, bounds_share=0.2), **keywords)
    in_parts = dpci.fit(Tables(), schema=replace(schema, bounds_share=0.2), **keywords)
    for other in (beside, in_parts):
        np.testing.assert_allclose(other.params, both.params, rtol=0, atol=1e-10)


WAGE = PartialSchema(columns=(NUMBERS[0], WARD), target=UnboundedTarget(column="income", zeros=True))


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")  # few live elsewhere
def test_a_moment_matrix_of_parts_is_that_of_the_table_in_memory():
    lists = replace(WAGE, columns=(*NUMBERS[:1], TOWN), bounds_share=0.2)
    for keywords in (
        {"schema": WAGE, "budget": RHO},
        {"schema": lists, "budget": BOTH},
        {"schema": WAGE, "budget": RHO, "persons": dpci.Persons("id", max_rows=2)},
        {"schema": WAGE, "budget": RHO, "neighbors": dpci.AddRemove(N - 50)},
    ):
        given = {"loss": "squared", "seed": 6, **keywords}
        whole, parts = dpci.fit(TABLE, **given), dpci.fit(Tables(), **given)
        assert parts.schema == whole.schema
        found, other = (dpci.regression.MomentMatrix.of(fit) for fit in (parts, whole))
        np.testing.assert_allclose(found.moments, other.moments, rtol=1e-12)
    ledger = dpci.Ledger(RHO, errors="private")
    paid = dpci.fit(Tables(), schema=WAGE, budget=RHO, loss="squared", rows="clip", ledger=ledger)
    assert [entry.budget for entry in ledger.history] == [RHO]
    assert paid.privacy["released_bounds"]["columns"] == ["age", "income"]
    # Of the passes that a release makes, none may see other cells than those of which bounds were released.
    for passes in ([2], [3], [4], [5], [6]):
        with pytest.raises(dpci.InvalidInput, match="different values"):
            dpci.fit(Tables(passes, changed("age", 50.0)), schema=WAGE, budget=RHO, loss="squared", seed=6)


def test_the_squared_loss_by_objective_perturbation_takes_gaps_as_well():
    fit = dpci.fit(
        TABLE, schema=WAGE, loss="squared", mechanism=dpci.ObjectivePerturbation(radius=3.0), l2_strength=0.01,
        budget=RHO, seed=1,
    )  # fmt: skip
    assert fit.privacy["released_bounds"]["columns"] == ["age", "income"]
    found = dpci.release_schema(TABLE, schema=WAGE, budget=dpci.ZCDP(0.1), seed=1)
    assert dpci.fit(TABLE, schema=found.schema, loss="squared", budget=dpci.ZCDP(0.4), seed=1).names == fit.names


def changed(name, value):
    return lambda table: {**table, name: np.where(np.arange(len(table[name])) == 1, value, table[name])}


def test_cells_that_change_between_passes_are_refused():
    release = {"schema": LISTS, "budget": BOTH, "seed": 7}
    for name, value in (("age", 50.0), ("town", "elsewhere")):
        for at in (2, 3, 4):
            with pytest.raises(dpci.InvalidInput, match="different values"):
                dpci.release_schema(Tables([at], changed(name, value)), **release)
    # Before the fit: the description by the blank schema, that of the gaps, two stages of bounds, one of lists, and the
    # description of the complete rows, in which the gaps are compared once more.
    for passes in ([3], [4], [5], [6], [9], range(6, 99)):
        with pytest.raises(dpci.InvalidInput, match="different values"):
            dpci.fit(Tables(passes, changed("age", 50.0)), **release)
    shorter = Tables([2], lambda table: {name: cells[:1] for name, cells in table.items()})
    with pytest.raises(dpci.InvalidInput, match=r"the same rows, got \d+ rows and \d+ records after 6000 rows"):
        dpci.fit(shorter, **release)


def test_targets_beside_the_tables_have_their_bounds_released():
    schema = PartialSchema(columns=(WARD,), target=UnboundedTarget(column="income", zeros=True))
    whole = dpci.release_schema(TABLE, schema=schema, budget=dpci.PureDP(1.0), seed=8)
    chunks = [({"ward": table["ward"]}, table["income"]) for table in tables()]
    found = dpci.release_schema(dpci.Chunks(chunks), schema=schema, budget=dpci.PureDP(1.0), seed=8)
    assert found.digest == whole.digest


def test_malformed_cells_are_refused_before_they_are_paid_for():
    ledger = dpci.Ledger(RHO)
    bad = [({**table, "age": np.full(len(table["age"]), np.nan)}, None) for table in tables()]
    for call in (dpci.release_schema, dpci.fit):
        with pytest.raises(dpci.InvalidInput, match="'age'"):
            call(dpci.Chunks(bad), schema=PARTIAL, budget=RHO, ledger=ledger)
    assert not ledger.history
