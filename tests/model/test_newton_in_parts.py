"""Newton steps on rows in parts release the bits of the rows in memory, one pass a stage."""

import csv

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from support.parts import CountingChunks, cut, make_rows

N, D = 3000, 4
X, Y, REALS = make_rows(N, D, seed=2)
BUDGETS = {"zcdp": dpci.ZCDP(rho=0.5), "approx": dpci.ApproxDP(2.0, 1e-6)}
ROUND = ["moved_counts", "moved_second_moments"]


def assert_same_bits(ours, theirs):
    """Noise hides rounding: the seal's lattice leaves no trace of the parts."""
    assert ours.digest == theirs.digest


def in_parts(X, y, n_parts=7, **keywords):
    return dpci.fit(dpci.Chunks(cut(X, y, n_parts)), seed=3, **keywords)


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("notion", BUDGETS)
def test_every_number_of_parts(notion, n_parts):
    whole = dpci.fit(X, Y, budget=BUDGETS[notion], seed=3)
    assert whole.mechanism == "newton"
    assert_same_bits(in_parts(X, Y, n_parts, budget=BUDGETS[notion]), whole)


@pytest.mark.parametrize(
    "keywords",
    [
        {"rows": dpci.rows.Clipped(0.5)},
        {"neighbors": dpci.AddRemove(2500)},
        {"rows": dpci.rows.Within(intercept=False)},
        {"rows": dpci.rows.Weighted(intercept=0.5)},
        {"rows": dpci.rows.Blocks([1.0] * D)},
        {"loss": dpci.losses.Huber(k=0.3), "mechanism": "newton"},
        {"loss": "soft_logistic"},
    ],
    ids=str,
)
def test_every_setting(keywords):
    targets = {"soft_logistic": (REALS + 1) / 2}.get(keywords.get("loss"), REALS if "loss" in keywords else Y)
    keywords = {"budget": BUDGETS["zcdp"], **keywords}
    assert_same_bits(in_parts(X, targets, **keywords), dpci.fit(X, targets, seed=3, **keywords))


@pytest.mark.parametrize("loss", [dpci.losses.Poisson(count_bound=1), dpci.losses.Probit(), dpci.losses.CLogLog()])
def test_losses_are_continued_in_parts_too(loss):
    """Predictors of some rows are beyond the reach of the loss, where its own slope would be another."""
    steep = np.clip(X * [8.0, 1.0, 1.0, 1.0], -0.9, 0.9)
    counted = isinstance(loss, dpci.losses.Poisson)
    targets = (
        np.minimum(np.exp(5.0 * steep[:, 0] - 2.0), 1.0) if counted else (9.0 * steep[:, 0] + REALS > 0).astype(int)
    )
    keywords = {"budget": dpci.ZCDP(rho=5.0), "loss": loss, "rows": 2.0, "classes": None if counted else (0, 1)}
    assert_same_bits(in_parts(steep, targets, **keywords), dpci.fit(steep, targets, seed=3, **keywords))


def test_sparse_and_single_chunks():
    rows = (X * (np.abs(X) > 0.1)).astype(np.float32)
    parts = [(x if k % 2 else scipy.sparse.csr_array(x), y) for k, (x, y) in enumerate(cut(rows, Y, 7))]
    whole = dpci.fit(rows, Y, budget=BUDGETS["zcdp"], seed=3)
    assert_same_bits(dpci.fit(dpci.Chunks(parts), budget=BUDGETS["zcdp"], seed=3), whole)


def test_persons_and_weights_of_chunks():
    ids, weights = np.arange(N) // 3, 0.5 + (np.arange(N) % 4) / 2
    parts = [(X[a:b], Y[a:b], {"id": ids[a:b], "weight": weights[a:b]}) for a, b in ((0, 300), (300, 900), (900, N))]
    for given, named in (
        ({"persons": dpci.Persons(ids, max_rows=2)}, {"persons": dpci.Persons("id", max_rows=2)}),
        ({"persons": ids}, {"persons": "id"}),
        (
            {"weights": dpci.Weights(weights, bound=2.0, total=3750.0)},
            {"weights": dpci.Weights("weight", bound=2.0, total=3750.0)},
        ),
    ):
        beside = next(iter(named))
        column = {"persons": "id", "weights": "weight"}[beside]
        chunks = dpci.Chunks([(x, y, {column: columns[column]}) for x, y, columns in parts])
        ours = dpci.fit(chunks, budget=BUDGETS["zcdp"], seed=3, **named)
        assert_same_bits(ours, dpci.fit(X, Y, budget=BUDGETS["zcdp"], seed=3, **given))


def test_a_stage_is_one_pass():
    chunks = CountingChunks(cut(X, Y, 3))
    dpci.fit(chunks, budget=BUDGETS["zcdp"], seed=3)
    assert chunks.passes == [
        "describe",
        *ROUND,
        "moved_counts",
        "moved_risk",
        *["moved_hessian", *["moved_derivative_counts"] * 2, "moved_risk"] * 2,
        "moved_moments",
        "moved_risk",
    ]


def test_dask_collections():
    array = pytest.importorskip("dask.array")
    rows, labels = array.from_array(X, chunks=(700, D)), array.from_array(Y, chunks=700)
    ours = dpci.fit(rows, labels, budget=BUDGETS["zcdp"], seed=3)
    assert_same_bits(ours, dpci.fit(X, Y, budget=BUDGETS["zcdp"], seed=3))


def test_a_file_and_chunks_of_it(tmp_path):
    rng = np.random.default_rng(5)
    table = {"age": rng.uniform(0, 90, N).round(2), "group": rng.choice(["a", "b"], N)}
    table["ill"] = np.where(table["age"] / 30 + rng.logistic(size=N) > 1.5, "yes", "no")
    path = tmp_path / "people.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    schema = Schema(
        columns=(
            NumericColumn(name="age", lower=0, upper=90),
            CategoricalColumn(name="group", categories=("a", "b"), reference="a"),
        ),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    whole = dpci.fit(table, schema=schema, budget=BUDGETS["zcdp"], seed=3)
    assert_same_bits(dpci.fit(path, schema=schema, budget=BUDGETS["zcdp"], seed=3), whole)
    chunks = dpci.Chunks.from_csv(path, schema=schema, chunk_rows=400)
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.0))
    assert_same_bits(dpci.fit(chunks, budget=BUDGETS["zcdp"], seed=3), whole)
    assert dpci.fit(chunks, budget=BUDGETS["zcdp"], ledger=ledger).private
    assert ledger.spent == {"rho": 0.5}


@pytest.mark.parametrize("changed_pass", [1, 4, 9])
def test_rows_that_change_between_passes_are_refused(changed_pass):
    passes = []

    def source():
        passes.append(None)
        yield (X * 0.999 if len(passes) == changed_pass + 2 else X), Y  # the first is read twice

    with pytest.raises(dpci.InvalidInput, match="different values"):
        dpci.fit(dpci.Chunks(source), budget=BUDGETS["zcdp"], seed=3)
