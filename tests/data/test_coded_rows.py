"""Coded and sparse rows: every release of a table with a schema is that of the dense rows, whatever the table is."""

import itertools

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.data.arrays import NamedRows, as_features, as_matrix
from dpci.data.coded import CodedRows
from dpci.data.storage import SparseRows, stacked, storage
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, NumericTarget, Schema
from dpci.schema.table import encoded_rows

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N = 1500
SIGNS = ClassTarget(column="y", negative=("no",), positive=("yes",))


def columns():
    towns = tuple(f"town {i}" for i in range(30))
    return (
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
        NumericColumn(name="age", lower=0, upper=100, missing=50.0),
        CategoricalColumn(name="town", categories=towns, unknown="zeros"),
        NumericColumn(name="pay", lower=0, upper=9, scale="unit"),
        CategoricalColumn(name="job", categories=tuple("abcdefgh"), reference="c", missing="h"),
        CategoricalColumn(name="kind", categories=("1", "2", "3"), other="3"),
    )


def schema(**choices):
    return Schema(columns=columns(), **{"target": SIGNS, **choices})


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    jobs = rng.choice([*"abcdefgh", ""], N)
    pay = rng.uniform(0, 9, N)
    score = pay / 4 - 1 + (jobs == "a") + rng.logistic(size=N)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], N), "age": np.where(rng.random(N) < 0.1, np.nan, rng.uniform(0, 100, N)),
            "town": [f"town {i}" for i in rng.integers(0, 33, N)], "pay": pay, "job": jobs,
            "kind": rng.choice([1, 2, 7], N), "y": np.where(score > 0, "yes", "no"), "amount": rng.uniform(0, 5, N),
            "id": rng.integers(0, 500, N), "weight": rng.uniform(0, 2, N),
        }
    )  # fmt: skip


def released(monkeypatch, function):
    """Results of a function with rows as they are stored, and with dense ones."""
    stored = function()
    monkeypatch.setattr("dpci.schema.table.storage", lambda *_: "dense")
    return stored, function()


FIT = {"budget": dpci.PureDP(2.0), "l2_strength": 0.02, "seed": 5}
REAL = {"target": NumericTarget(column="amount", lower=0, upper=5)}
EACH = {"terms": Schema.from_formula("~ sex + age + town + pay + job + kind", schema()).terms}
SPLINES = {"terms": Schema.from_formula("~ bs(age, df=20):job + pay:town + sex + kind", schema()).terms}
COUNTS = {"target": NumericTarget(column="amount", lower=0, upper=5, scale="unit")}

stored = pytest.mark.parametrize("terms", [{}, SPLINES], ids=["coded", "sparse"])


@stored
@pytest.mark.parametrize(
    ("described", "keywords"),
    [
        ({}, {}),
        ({"encoding": "full_range"}, {"rows": "those of the schema", "l2_strength": 0.5}),
        ({}, {"mechanism": "output", "rows": dpci.rows.Within(intercept=0.5)}),
        (EACH, {"mechanism": "newton", "budget": dpci.ZCDP(1e6), "l2_strength": "auto"}),
        ({}, {"loss": "huber_hinge"}),
        ({}, {"loss": "hinge", "mechanism": dpci.OutputPerturbation(moments="none")}),
        ({}, {"loss": "probit", "mechanism": dpci.ObjectivePerturbation(radius=3.0)}),
        ({}, {"persons": dpci.Persons("id", max_rows=2)}),
        ({}, {"weights": dpci.Weights("weight", bound=2.0)}),
        (REAL, {"loss": "squared", "mechanism": dpci.ObjectivePerturbation(radius=3.0)}),
        (COUNTS, {"loss": "poisson", "mechanism": dpci.ObjectivePerturbation(radius=3.0)}),
    ],
    ids=str,
)
def test_releases_are_those_of_encoded_rows(monkeypatch, table, described, keywords, terms):
    described = schema(**{**described, **terms})
    assert isinstance(encoded_rows(described, table), SparseRows if terms else CodedRows)
    if isinstance(keywords.get("rows"), str):
        keywords = {**keywords, "rows": described.rows}
    coded, dense = released(monkeypatch, lambda: dpci.fit(table, schema=described, **{**FIT, **keywords}))
    assert coded.names == dense.names
    for attribute in ("params", "hessian", "gradient_cov"):
        if getattr(dense, attribute) is not None:
            np.testing.assert_allclose(getattr(coded, attribute), getattr(dense, attribute), rtol=0, atol=1e-8)
    scores = [function(table) for function in (coded.decision_function, dense.decision_function)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-7)
    matrix = coded.decision_function(described.features(table))
    np.testing.assert_allclose(scores[0], matrix, rtol=0, atol=1e-12)


def tables(table):
    texts = table.astype({"kind": str})
    arrow = pytest.importorskip("pyarrow")
    categories = dict.fromkeys(("sex", "town", "kind"), "category")
    stored = table.assign(job=table["job"].replace("", None)).astype({**categories, "job": "category"})
    yield table
    yield texts
    yield {name: list(texts[name]) for name in texts}
    yield {name: texts[name].to_numpy().astype(str) if name not in ("age", "pay") else texts[name] for name in texts}
    halves = [arrow.Table.from_pandas(stored[: N // 2]), arrow.Table.from_pandas(stored[N // 2 :])]
    yield arrow.concat_tables(halves)


def test_tables_of_every_kind_have_the_same_codes(table):
    expected = schema().features(table)
    for given in tables(table):
        coded = encoded_rows(schema(), given)
        assert isinstance(coded, CodedRows)
        assert coded.codes.dtype == np.uint8
        np.testing.assert_array_equal(coded.dense(), expected)
        np.testing.assert_array_equal(schema().features(given), expected)


@pytest.mark.parametrize("encoding", ["unit_norm", "full_range"])
@pytest.mark.parametrize(
    "formula",
    [
        "y ~ C(town) + age + pay", "y ~ C(town):C(job) + bs(pay, df=6)", "y ~ C(town)*age + C(sex)", "y ~ C(town) - 1",
        "y ~ bs(pay, df=20)*C(job) + age", "y ~ C(job):bs(pay, df=9):bs(age, df=9, degree=1)", "y ~ bs(pay, df=3)",
    ],
)  # fmt: skip
def test_models_have_the_rows_of_their_matrix(table, formula, encoding):
    model = Schema.from_formula(formula, schema(encoding=encoding))
    rows = encoded_rows(model, table)
    kind = SparseRows if "*" in formula or "9" in formula else np.ndarray if "3" in formula else CodedRows
    assert isinstance(rows, kind)
    matrix = rows if kind is np.ndarray else rows.dense()
    np.testing.assert_array_equal(matrix, model.features(table))


@stored
def test_parts_have_the_sums_of_the_table(monkeypatch, table, tmp_path, terms):
    frames = pytest.importorskip("dask.dataframe")
    described = schema(**terms)
    whole = dpci.fit(table, schema=described, **FIT)
    path = tmp_path / "table.csv"
    table.to_csv(path, index=False)
    held = dpci.Chunks.from_csv(path, schema=described, chunk_rows=400)
    parts = [
        lambda: dpci.fit(path, schema=described, **FIT),
        lambda: dpci.fit(held, schema=described, **FIT),
        lambda: dpci.fit(dpci.Chunks([(table[:300], None), (table[300:], None)]), schema=described, **FIT),
        lambda: dpci.fit(frames.from_pandas(table, npartitions=3), schema=described, **FIT),
    ]
    for fit in parts:
        for found in released(monkeypatch, fit):
            np.testing.assert_allclose(found.params, whole.params, rtol=0, atol=1e-8)
            np.testing.assert_allclose(found.hessian, whole.hessian, rtol=0, atol=1e-8)
        monkeypatch.undo()


@stored
def test_studies_are_those_of_encoded_rows(monkeypatch, table, terms):
    def study():
        rows = NamedRows(encoded_rows(schema(**terms), table), schema(**terms).names)
        y = schema().targets(table)
        options = {**FIT, "rows": 1.0, "classes": (-1, 1), "n_threads": 1}
        return dpci.simulate.coverage(rows, y, n_replicates=20, n_variability=0, **options)

    coded, dense = released(monkeypatch, study)
    np.testing.assert_allclose(coded.mean_length, dense.mean_length, rtol=1e-6)


def test_public_groups_of_dense_columns_give_the_same_release(table):
    described = schema(encoding="full_range")
    X, y, _ = described.transform(table)
    groups = [range(start, stop) for start, stop in ((2, 32), (33, 40), (40, 43))]
    singles = [j for j in range(X.shape[1]) if not any(j in group for group in groups)]
    blocks = dpci.rows.Blocks([1.0] * len(singles), [(group, 1.0) for group in groups])
    assert described.rows.groups == blocks.groups
    options = {**FIT, "l2_strength": 0.5, "classes": (-1, 1)}
    found = dpci.fit(X, y, rows=blocks, **options)
    # Columns of a half are no category, and neither are those of which a row has two.
    sparse = pytest.importorskip("scipy.sparse")
    expected = dpci.fit(sparse.csr_array(X), y, rows=blocks, **options)
    np.testing.assert_allclose(found.params, expected.params, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=0, atol=1e-8)


def test_rows_as_an_array():
    rng = np.random.default_rng(0)
    rows = CodedRows(
        rng.normal(size=(50, 2)),
        rng.integers(0, 4, (50, 2)).astype(np.uint8) % np.array([2, 4], dtype=np.uint8),
        (1, 5),
        ((0, 1, 0.5), (2, 3, 2.0)),
    )
    dense = rows.dense()
    assert rows.shape == dense.shape == (50, 6)
    vector = rng.normal(size=6)
    np.testing.assert_allclose(rows.product(vector), dense @ vector, atol=1e-14)
    for at in (slice(3, 20), np.array([4, 4, 0]), rng.random(50) < 0.5):
        np.testing.assert_array_equal(rows[at].dense(), dense[at])
    np.testing.assert_array_equal(stacked([rows[:20], rows[20:]]).dense(), dense)
    np.testing.assert_array_equal(as_matrix(NamedRows(rows, tuple("abcdef"))).values, dense)
    blocks = [block for _, block in as_features(rows).blocks()]
    np.testing.assert_array_equal(np.concatenate(blocks), dense)


def test_sparse_rows_as_an_array(table, tmp_path):
    described = schema(**SPLINES)
    rows, dense = encoded_rows(described, table), described.features(table)
    assert rows.shape == dense.shape
    assert rows.nbytes < dense.nbytes / 10
    for at in (slice(3, 20), np.array([4, 4, 0]), table["pay"].to_numpy() < 5, slice(0, 0)):
        np.testing.assert_array_equal(rows[at].dense(), dense[at])
    np.testing.assert_array_equal(stacked([rows[:20], rows[20:]]).dense(), dense)
    table.to_csv(tmp_path / "table.csv", index=False)
    model = dpci.fit(table, schema=described, **FIT)
    np.testing.assert_allclose(
        model.decision_function(tmp_path / "table.csv"), model.decision_function(table), atol=1e-12
    )


RIDGE = {**FIT, "loss": "squared", "mechanism": dpci.ObjectivePerturbation(radius=3.0)}
FURTHER = {
    "moments": lambda table, by: dpci.regression.release(table, schema=by, budget=dpci.ZCDP(10.0), seed=1).moments,
    "strata": lambda table, by: dpci.fit_strata(table, by="sex", schema=by, **RIDGE)["F"].params,
}


@pytest.mark.parametrize("function", FURTHER.values(), ids=FURTHER)
def test_further_releases_are_those_of_dense_rows(monkeypatch, table, function):
    described = schema(**REAL, **SPLINES)
    found, dense = released(monkeypatch, lambda: function(table, described))
    np.testing.assert_allclose(found, dense, rtol=0, atol=1e-8)


def test_storage_follows_the_sizes():
    for n_numbers, levels in itertools.product((0, 3, 20), ([], [2], [2, 300], [5, 70_000])):
        each = 8 * n_numbers + len(levels) * (1 if max(levels, default=0) < 256 else 2 if max(levels) < 65_536 else 4)
        coded = levels and 2 * each <= 8 * (n_numbers + sum(levels))
        assert storage(n_numbers, levels, n_numbers + len(levels)) == ("coded" if coded else "dense")
    assert [storage(k, [], 5) for k in (33, 34)] == ["dense", "sparse"]
