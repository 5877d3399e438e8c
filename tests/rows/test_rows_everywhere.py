"""``rows=`` wherever rows are bounded: blocks are checked or scaled, recorded, saved, shown and compared."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci.errors import InvalidInput, RowNormViolation
from dpci.rows import Ball, Blocks
from support.saved import rewritten

RNG = np.random.default_rng(3)
N = 400
ROWS = Blocks([0.5], groups=[([0, 2], 1.0)])
X = np.column_stack([RNG.uniform(0, 0.5, N), RNG.uniform(-0.5, 0.5, N), RNG.uniform(-0.5, 0, N)])
Y = X[:, 0] + RNG.normal(0, 0.3, N) > 0.2
# In the ball around the blocks, and not in the blocks.
LONG = X.copy()
LONG[7] = (0.7, 0.1, -0.7)
PURE = dpci.PureDP(2.0)
CURVE = {"mechanism": dpci.ObjectivePerturbation(noise="spherical_laplace")}
FIT = {"budget": PURE, "l2_strength": 0.1, "seed": 1}
GRID = [{"l2_strength": 0.1}, {"l2_strength": 0.2}]
TUNE = {"budget": PURE, "candidates": GRID, "validation_radius": 4.0, "seed": 1}
STUDY = {"budget": PURE, "n_threads": 1}
REPORT = {"budget": dpci.ApproxDP(1.0, 1e-6), "l2_strength": 0.2, "n_public": N, "seed": 1}
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning")


def chunks(X):
    return dpci.Chunks(lambda: ((X[i : i + 100], Y[i : i + 100]) for i in range(0, N, 100)))


def sklearn_fit(X, *, rows=None):
    domain, on_violation, _ = dpci.rows.read_rows(rows)
    model = dpci.sklearn.PrivateLogisticRegression(
        epsilon=2.0, l2_strength=0.1, classes=(False, True), seed=1, rows=domain, on_violation=on_violation
    )
    return model.fit(X, Y).result_.params


def dask_fit(X, **keywords):
    da = pytest.importorskip("dask.array")
    return dpci.fit(da.from_array(X, chunks=(100, 3)), da.from_array(Y, chunks=100), **FIT, **keywords).params


# Each takes rows and keywords, and returns numbers that depend on both.
READERS = {
    "fit": lambda X, **k: dpci.fit(X, Y, **FIT, **k).params,
    "sparse": lambda X, **k: dpci.fit(scipy.sparse.csr_array(X), Y, **FIT, **k).params,
    "float32": lambda X, **k: dpci.fit(X.astype(np.float32), Y, **FIT, **k).params,
    "chunks": lambda X, **k: dpci.fit(chunks(X), **FIT, **k).params,
    "dask": dask_fit,
    "sklearn": sklearn_fit,
    "tune": lambda X, **k: dpci.tuning.tune(X, Y, **TUNE, **k).result.params,
    "oracle": lambda X, **k: dpci.tuning.oracle_not_private(X, Y, budget=PURE, candidates=GRID, n_runs=1, **k).losses,
    "report": lambda X, **k: dpci.per_instance.report(X, Y, **REPORT, **k).result.params,
    "coverage": lambda X, **k: (
        dpci.simulate.coverage(X, Y, l2_strength=0.1, n_replicates=2, n_variability=2, **STUDY, **k).params
    ),
    "configs": lambda X, **k: (
        dpci.simulate.coverage(X, Y, configs=GRID, n_replicates=2, n_variability=0, **STUDY, **k)[1].params
    ),
    "curve": lambda X, **k: dpci.utility.curve(X, Y, at=PURE, l2_strength=0.1, **CURVE, **k).predict_utility(1.0),
    "lowlevel": dpci.lowlevel.checked_rows,
}


@pytest.mark.parametrize("name", READERS)
def test_rows_are_held_to_their_blocks(name):
    read = READERS[name]
    rule = r"begins with column 0 \(size 2\) must sum to at most 1, got 1\.[34]\S* in row 7 "
    with pytest.raises(RowNormViolation, match=rule):
        read(LONG, rows=ROWS)
    halved = LONG.copy()
    halved[7, [0, 2]] /= 1.4
    clipped = read(LONG, rows=dpci.rows.Clipped(ROWS))
    np.testing.assert_allclose(clipped, read(halved, rows=ROWS), rtol=1e-6)
    assert not np.array_equal(clipped, read(LONG, rows=ROWS.norm))
    with pytest.raises(InvalidInput, match=r"rows must bound every column of X, 3 .* got Blocks\(\[1.0\]\), which"):
        read(X, rows=Blocks([1.0]))
    np.testing.assert_array_equal(read(X, rows=Ball(0.9)), read(X, rows=0.9))


def test_a_curve_says_that_it_needs_a_ball():
    with pytest.raises(InvalidInput, match=r"got noise in the shape of rows=Blocks.*noise='spherical_laplace'"):
        dpci.utility.curve(X, Y, at=PURE, l2_strength=0.1, rows=ROWS)


def test_chunks_count_rows_in_their_part():
    with pytest.raises(RowNormViolation, match="in row 7 "):
        dpci.fit(chunks(LONG), **FIT, rows=ROWS)


def test_scaling_moves_the_blocks_that_are_too_large_alone():
    wild = RNG.normal(0, 1, (500, 3))
    dense = dpci.lowlevel.checked_rows(wild, rows=dpci.rows.Clipped(ROWS))
    single, group = np.abs(dense[:, 1]), np.abs(dense[:, [0, 2]]).sum(axis=1)
    assert single.max() == pytest.approx(0.5, rel=1e-12)
    assert group.max() == pytest.approx(1.0, rel=1e-12)
    inside = np.abs(wild[:, 1]) <= 0.5
    np.testing.assert_array_equal(dense[inside, 1], wild[inside, 1])
    # Towards zero, in the direction that the block had.
    assert (dense[:, 0] * wild[:, 2]) == pytest.approx(dense[:, 2] * wild[:, 0], rel=1e-12, abs=1e-15)
    sparse = dpci.lowlevel.checked_rows(scipy.sparse.csr_array(wild), rows=dpci.rows.Clipped(ROWS))
    np.testing.assert_array_equal(sparse, dense)


def test_columns_are_counted_before_targets_are_looked_at():
    with pytest.raises(InvalidInput, match="rows must bound every column of X"):
        dpci.fit(X, [None] * N, **FIT, rows=Blocks([1.0]))


def test_what_a_fit_keeps_of_its_rows():
    result = dpci.fit(X, Y, **FIT, rows=dpci.rows.Clipped(ROWS))
    assert result.rows == ROWS
    assert result.privacy["constants"]["blocks"] == ROWS.to_dict()
    assert result.privacy["constants"]["row_norm"] == ROWS.norm
    shown = "blocks of 3 columns, 1 bounded and 2 in 1 group; norm 1.118"
    assert f"rows {shown}, without the intercept, clipped n " in " ".join(result.summary(full=True).split())
    assert shown in result.to_html()
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.rows == ROWS == pickle.loads(pickle.dumps(result)).rows
    assert again.summary(full=True) == result.summary(full=True)
    ball = dpci.fit(X, Y, **FIT)
    assert ball.rows == Ball(1.0)
    assert ball.privacy["constants"]["blocks"] is None
    assert "rows             ball of norm 1, without the intercept\n" in ball.summary(full=True)
    with pytest.raises(InvalidInput, match="the same rows, to which records were clipped"):
        dpci.compare(result, dpci.fit(X, Y, **FIT | {"seed": 2}, rows=dpci.rows.Clipped(ROWS.norm)))


def test_files_hold_every_field_of_one_version():
    saved = json.loads(dpci.fit(X, Y, **FIT).to_json())
    with pytest.raises(InvalidInput, match="schema_version=1, got schema_version=2"):
        dpci.PrivateFit.from_json(rewritten({**saved, "schema_version": 2}))
    for name in ("rows", "persons", "weights", "table", "paid", "whole"):
        with pytest.raises(InvalidInput, match=f"none called '{name}'"):
            dpci.PrivateFit.from_json(rewritten({key: value for key, value in saved.items() if key != name}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": {"norm": 2.0, "bounds": [1.0]}}, "rows must have the fields norm and no other"),
        ({"rows": Blocks([1.25**0.5]).to_dict()}, "blocks must bound 3 columns, got blocks of 1 column"),
        ({"rows": {"bounds": [1.0]}}, "blocks must have the fields"),
        ({"rows": 1.0}, "blocks must have the fields"),
    ],
)
def test_files_that_contradict_themselves(change, message):
    saved = json.loads(dpci.fit(X, Y, **FIT, rows=ROWS).to_json())
    with pytest.raises(InvalidInput, match=message):
        dpci.PrivateFit.from_json(rewritten({**saved, **change}))


def test_a_report_holds_later_records_to_the_blocks():
    report = dpci.per_instance.report(X, Y, **REPORT, rows=ROWS)
    with pytest.raises(RowNormViolation, match="in row 0 "):
        report(LONG[7:8], Y[7:8])
    clipping = dpci.per_instance.report(X, Y, **REPORT, rows=dpci.rows.Clipped(ROWS))
    half = LONG[7:8] / [[1.4, 1.0, 1.4]]
    np.testing.assert_allclose(clipping(LONG[7:8], Y[7:8]).eps1, clipping(half, Y[7:8]).eps1, rtol=1e-12)


def test_a_plan_shows_its_rows():
    plan = dpci.plan(n_samples=N, n_features=3, budget=PURE, l2_strength=0.1, rows=ROWS)
    assert plan.rows == ROWS
    assert plan.row_norm == pytest.approx(1.5)
    assert "rows                 blocks of 3 columns" in plan.summary()
    with pytest.raises(InvalidInput, match=r"every column of X, 4 without"):
        dpci.plan(n_samples=N, n_features=4, budget=PURE, l2_strength=0.1, rows=ROWS)


def test_a_ledger_is_not_charged_for_rows_beyond_their_blocks():
    ledger = dpci.Ledger(dpci.PureDP(4.0), neighbors="replace_one")
    with pytest.raises(RowNormViolation):
        dpci.fit(LONG, Y, budget=PURE, l2_strength=0.1, rows=ROWS, ledger=ledger)
    assert ledger.spent == {"epsilon": 0.0}
