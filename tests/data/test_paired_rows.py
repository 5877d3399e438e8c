"""Rows and targets are paired by position: indexes that disagree are refused wherever both have one."""

import itertools

import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpci
from dpci.errors import InvalidInput
from support.parts import assert_same_fit, make_rows

N, NAMES = 2000, list("abc")
X, Y, _ = make_rows(N, 3)
TABLE = pd.DataFrame(X, columns=NAMES).assign(ill=Y)
SHUFFLED = TABLE.sample(frac=1.0, random_state=1)
PURE = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
SEEDED = {**PURE, "seed": 3}
TUNED = {"budget": dpci.PureDP(1.0), "candidates": [{"l2_strength": 0.1}], "validation_radius": 1.0}
REPORT = {"budget": dpci.ApproxDP(1.0, 1e-6), "l2_strength": 0.1, "n_public": N}


def report_of_records(rows, targets):
    report = dpci.per_instance.report(TABLE[NAMES], TABLE["ill"], **REPORT)
    return report(rows, targets)


CALLS = {
    "fit": lambda X, y: dpci.fit(X, y, **PURE),
    "narwhals": lambda X, y: dpci.fit(narwhals.from_native(X), narwhals.from_native(y, series_only=True), **PURE),
    "chunks": lambda X, y: dpci.fit(dpci.Chunks(lambda: [(X, y)]), **PURE),
    "tune": lambda X, y: dpci.tuning.tune(X, y, **TUNED),
    "public rule": lambda X, y: dpci.tuning.tune(X, y, budget=dpci.PureDP(1.0), method="public_rule"),
    "oracle": lambda X, y: dpci.tuning.oracle_not_private(
        X, y, budget=dpci.PureDP(1.0), candidates=[{"l2_strength": 1.0}]
    ),
    "coverage": lambda X, y: dpci.simulate.coverage(X, y, **PURE),
    "matrix": lambda X, y: dpci.regression.release(X, y.astype(float), budget=dpci.ZCDP(1.0), bounds=(-1.0, 1.0)),
    "targets": lambda X, y: dpci.regression.release(
        X, pd.DataFrame({"p": y, "q": y}, dtype=float), budget=dpci.ZCDP(1.0), bounds=(-1.0, 1.0)
    ),
    "utility": lambda X, y: dpci.utility.curve(X, y, at=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.1),
    "report": lambda X, y: dpci.per_instance.report(X, y, **REPORT),
    "report of records": report_of_records,
    "baseline": lambda X, y: dpci.baselines.non_private(X, y, loss="logistic", l2_strength=0.1),
    "minimize_erm": lambda X, y: dpci.lowlevel.minimize_erm(X, y, l2_strength=0.1),
    "moments": lambda X, y: dpci.lowlevel.hessian_and_gradient_cov(X, y, np.zeros(4), l2_strength=0.1),
}


@pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning", "ignore::dpci.errors.MomentNoiseWarning")
@pytest.mark.parametrize("call", CALLS)
def test_every_function_compares_the_indexes(call):
    first = SHUFFLED.index[0]
    message = rf"the index of y must be that of X, got 0 and {first} in row 0 \(y\.loc\[X\.index\] .*y\.to_numpy\(\)"
    with pytest.raises(InvalidInput, match=message):
        CALLS[call](SHUFFLED[NAMES], TABLE["ill"])


def test_the_remedies():
    expected = dpci.fit(SHUFFLED[NAMES].to_numpy(), SHUFFLED["ill"].to_numpy(), **SEEDED).params
    rows, labels = SHUFFLED[NAMES], TABLE["ill"]
    np.testing.assert_array_equal(dpci.fit(rows, labels.loc[rows.index], **SEEDED).params, expected)
    by_position = dpci.fit(rows, labels.to_numpy(), **SEEDED).params
    assert not np.allclose(by_position, expected)


@pytest.mark.parametrize(
    "relabelled",
    [
        lambda y: y,
        lambda y: y.set_axis(np.arange(N)),
        lambda y: y.set_axis(np.arange(N, dtype=float)),
        lambda y: y.rename_axis("person"),
        lambda y: y.to_numpy(),
        lambda y: y.tolist(),
        lambda y: pl.Series(y.to_numpy()),
    ],
)
def test_equal_indexes_and_one_index_are_fine(relabelled):
    expected = dpci.fit(X, TABLE["ill"].to_numpy(), **SEEDED).params
    np.testing.assert_array_equal(dpci.fit(TABLE[NAMES], relabelled(TABLE["ill"]), **SEEDED).params, expected)
    turned = TABLE["ill"].set_axis(np.arange(N)[::-1])
    np.testing.assert_array_equal(dpci.fit(pl.DataFrame(dict(TABLE[NAMES])), turned, **SEEDED).params, expected)
    np.testing.assert_array_equal(dpci.fit(X, turned, **SEEDED).params, expected)


@pytest.mark.parametrize(
    ("index", "got"),
    [
        (np.r_[np.arange(N - 1), -1], f"got -1 and {N - 1} in row {N - 1}"),
        (list(map(str, range(N))), "got '0' and 0 in row 0"),
        (np.r_[np.arange(1, N + 1)], "got 1 and 0 in row 0"),
        (pd.MultiIndex.from_arrays([np.arange(N), np.arange(N)]), r"got \(0, 0\) and 0 in row 0"),
        (pd.array([pd.NA, *range(1, N)], dtype="Int64"), "got <NA> and 0 in row 0"),
    ],
    ids=["last", "strings", "shifted", "levels", "missing"],
)
def test_what_the_message_shows(index, got):
    with pytest.raises(InvalidInput, match=f"the index of y must be that of X, {got} "):
        dpci.fit(TABLE[NAMES], TABLE["ill"].set_axis(index), **PURE)


def test_another_number_of_targets_is_told_as_such():
    with pytest.raises(InvalidInput, match="y must have one entry for each row of X, got 1999 entries and 2000 rows"):
        dpci.fit(TABLE[NAMES], TABLE["ill"].iloc[1:], **PURE)


def test_partitions_of_dask():
    dask, dd = pytest.importorskip("dask"), pytest.importorskip("dask.dataframe")
    with dask.config.set(scheduler="sync"):
        rows, targets = (dd.from_pandas(TABLE, npartitions=3, sort=False)[each] for each in (NAMES, "ill"))
        expected = dpci.fit(TABLE[NAMES], TABLE["ill"], **SEEDED)
        assert_same_fit(dpci.fit(rows, targets, **SEEDED), expected)
        # Cut as the others are, so that nothing but the index tells.
        sizes = [len(rows.partitions[k]) for k in range(3)]
        starts = np.cumsum([0, *sizes])
        parts = [TABLE["ill"].iloc[a:b] for a, b in itertools.pairwise(starts)]
        parts[1] = parts[1].iloc[::-1]
        turned = dd.from_map(lambda k: parts[k], [0, 1, 2], meta=parts[0])
        with pytest.raises(
            InvalidInput, match=rf"the index of y must be that of X, got {starts[2] - 1} and "
        ) as caught:
            dpci.fit(rows, turned, **SEEDED)
        assert caught.value.__notes__ == [f"in partition 1, whose row 0 is row {starts[1]} of X"]
        # An array has no index, whatever Dask gives it with a frame.
        labelled = dd.from_pandas(TABLE.set_index(TABLE.index + 7), npartitions=3, sort=False)[NAMES]
        lengths = tuple(map(int, sizes))
        assert_same_fit(dpci.fit(labelled, targets.to_dask_array(lengths=lengths), **SEEDED), expected)


def test_a_prediction_names_what_dask_calls_it():
    dd = pytest.importorskip("dask.dataframe")
    result = dpci.fit(TABLE[NAMES], TABLE["ill"], **SEEDED)
    with pytest.raises(InvalidInput, match=r"X must be in memory, got a lazy DataFrame of Dask: compute\(\) it"):
        result.predict(dd.from_pandas(TABLE[NAMES], npartitions=2))
