"""Moment matrices of persons and weighted rows in parts: those of the whole table, and no person in two parts."""

import itertools

import numpy as np
import pytest

import dpci
from dpci import regression
from dpci.errors import InvalidInput
from dpci.schema import NumericColumn, NumericTarget, Schema

P = 200
_rng = np.random.default_rng(3)
_counts = _rng.integers(1, 6, P)
IDS = np.repeat(np.arange(P), _counts)
N = len(IDS)
_own = _rng.normal(size=(P, 2))[IDS]
X = np.clip(0.3 * (_own + _rng.normal(size=(N, 2))), -1, 1)
Y = np.clip(X @ [1.0, -0.5] + 0.3 * _own[:, 0] + 0.3 * _rng.normal(size=N), -3, 3)
W = _rng.uniform(0.1, 2.0, N)
CUTS = (0, *np.searchsorted(IDS, (17, 17, 90, 160)), N)
BOUNDS = {"bounds": (-1.0, 1.0), "target_bound": 3.0}
SETTINGS = {"budget": dpci.ZCDP(1e24), "seed": 1, **BOUNDS}
RULES = {"mean": {}, "two rows": {"max_rows": 2}, "add or remove": {"neighbors": dpci.AddRemove(210)}, "weights": {}}


def chunks(ids=IDS, cuts=CUTS):
    return [(X[a:b], Y[a:b], {"id": ids[a:b]}) for a, b in itertools.pairwise(cuts)]


def weighted_chunks():
    return [
        (x, y, {**beside, "w": W[a:b]})
        for (x, y, beside), (a, b) in zip(chunks(), itertools.pairwise(CUTS), strict=True)
    ]


def both(rule, **keywords):
    """The release of parts and that of the table."""
    given = {**SETTINGS, **RULES[rule], **keywords}
    max_rows = given.pop("max_rows", None)
    parts = weighted_chunks() if rule == "weights" else chunks()

    def unit(ids, weights):
        weighing = {"weights": dpci.Weights(weights, bound=2.0, total=180.0)} if rule == "weights" else {}
        return {"persons": dpci.Persons(ids, max_rows=max_rows), **weighing}

    in_parts = regression.release(dpci.Chunks(parts), **unit("id", "w"), **given)
    return in_parts, regression.release(X, Y, **unit(IDS, W), **given)


@pytest.mark.parametrize("rule", RULES)
def test_parts_are_the_whole(rule):
    ours, theirs = both(rule, robust=[regression.Regression(), regression.Regression(features=["x1"])])
    assert ours.n_samples == theirs.n_samples == (210 if rule == "add or remove" else P)
    for features in (None, ["x1"]):
        mine, whole = ours.fit("y", features), theirs.fit("y", features)
        assert mine.covariance == "robust"
        np.testing.assert_allclose(mine.params, whole.params, atol=1e-10)
        np.testing.assert_allclose(mine.std_errors, whole.std_errors, rtol=1e-9)


def test_refined_regressions_of_parts_are_those_of_the_whole():
    ours, theirs = both("mean", refine=True)
    np.testing.assert_allclose(ours.fit().params, theirs.fit().params, atol=1e-9)


def schema():
    columns = tuple(NumericColumn(name=name, lower=-1, upper=1) for name in "ab")
    return Schema(columns=columns, target=NumericTarget(column="score", lower=-3, upper=3), persons="who")


def write(path, ids=IDS):
    rows = (
        ",".join([*map(repr, row.tolist()), f"p{i}", repr(float(y)), repr(float(w))])
        for row, i, y, w in zip(X, ids, Y, W, strict=True)
    )
    path.write_text("\n".join(["a,b,who,score,w", *rows]) + "\n")
    return path


@pytest.mark.parametrize("chunk_rows", [7, 10_000])
def test_files_have_the_cluster_robust_errors_of_statsmodels(tmp_path, chunk_rows):
    sm = pytest.importorskip("statsmodels.api")
    path = write(tmp_path / "visits.csv")
    source = dpci.Chunks.from_csv(path, schema=schema(), chunk_rows=chunk_rows, beside=["who", "w"])
    keywords = {"budget": dpci.ZCDP(1e24), "seed": 1, "persons": "who", "weights": dpci.Weights("w", bound=2.0)}
    found = dpci.fit(source, loss="squared", **keywords)
    share = W / _counts[IDS]
    model = sm.WLS(Y, sm.add_constant(X, prepend=False), weights=share)
    theirs = model.fit(cov_type="cluster", cov_kwds={"groups": IDS, "use_correction": False})
    np.testing.assert_allclose(found.params, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(found.std_errors, theirs.bse, rtol=1e-6)
    by_path = dpci.fit(path, schema=schema(), loss="squared", **keywords)
    np.testing.assert_allclose(by_path.params, found.params, rtol=1e-9)


def test_dask_collections_take_persons():
    da = pytest.importorskip("dask.array")
    pytest.importorskip("dask.dataframe")
    sizes = tuple(b - a for a, b in itertools.pairwise(CUTS))
    rows, targets, ids = (da.from_array(a, chunks=(sizes, *a.shape[1:])) for a in (X, Y, IDS))
    ours = regression.release(rows, targets, persons=ids, **SETTINGS)
    theirs = regression.release(X, Y, persons=IDS, **SETTINGS)
    np.testing.assert_allclose(ours.fit().params, theirs.fit().params, atol=1e-10)
    np.testing.assert_allclose(ours.fit().std_errors, theirs.fit().std_errors, rtol=1e-9)


def straddling():
    ids = IDS.copy()
    ids[-1] = ids[0]
    return chunks(ids)


REFUSED = {
    "straddles": (straddling, {}, "all of their rows in one part"),
    "no column": (lambda: [(x, y) for x, y, _ in chunks()], {}, "must have the column 'id'"),
    "ids beside": (chunks, {"persons": IDS}, "must be the name of a column"),
    "weights beside": (chunks, {"weights": dpci.Weights(W, bound=2.0)}, "must be the name of a column"),
    "a large weight": (weighted_chunks, {"weights": dpci.Weights("w", bound=1.0)}, "weight"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_anything_is_spent(case):
    make, more, message = REFUSED[case]
    ledger = dpci.Ledger(dpci.ZCDP(2.0))
    given = {"budget": dpci.ZCDP(1.0), "persons": "id", **BOUNDS, **more}
    with pytest.raises(InvalidInput, match=message):
        regression.release(dpci.Chunks(make()), ledger=ledger, **given)
    assert ledger.history == ()
    regression.release(dpci.Chunks(chunks()), ledger=ledger, budget=dpci.ZCDP(1.0), persons="id", **BOUNDS)
    assert [entry.unit for entry in ledger.history] == ["person"]


@pytest.mark.parametrize("at", [1, 2])
def test_passes_with_other_persons_are_refused(at):
    """The matrix is the second pass, the residuals' moments are the third: nothing is released."""
    count = []

    def source():
        count.append(None)
        return chunks(cuts=(0, int(np.searchsorted(IDS, 50)) + 1, N)) if len(count) - 1 == at else chunks()

    with pytest.raises(InvalidInput, match="every pass over a source must find the same rows"):
        regression.release(dpci.Chunks(source), persons="id", **SETTINGS)


def test_private_errors_say_nothing_of_a_person_in_two_parts():
    ledger = dpci.Ledger(dpci.ZCDP(2.0), errors="private")
    given = {"budget": dpci.ZCDP(1.0), "persons": "id", "rows": "clip", **BOUNDS}
    with pytest.raises(dpci.ReleaseFailed):
        regression.release(dpci.Chunks(straddling()), ledger=ledger, **given)
    assert regression.release(dpci.Chunks(chunks()), ledger=ledger, **given).n_samples == P
    assert [entry.unit for entry in ledger.history] == ["person"] * 2
