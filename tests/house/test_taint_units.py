"""Releases tell of persons and weights in sealed numbers alone, whatever ids, numbers of rows and weights are."""

import pickle
import re

import numpy as np
import pytest

import dpci
from dpci.baselines import Bins, functional_mechanism, projected_histogram
from house.test_taint import FIT, REPORT, SEALED, TUNING
from support import taint
from support.taint import D, N, quietly, record_of, tables, tainted

PURE, APPROX = dpci.PureDP(1.0), dpci.ApproxDP(1.0, 1e-6)
COMMON = {"l2_strength": 0.5, "rows": "clip"}


def weighed(weights, total=None):
    return dpci.Weights(weights, bound=2.0, total=total)


AXES = [Bins(column, 2, -0.5, 0.5) for column in range(D)]
CHOICE = (r".*\.(index|l2_strength|noise_scale)", r".*\.(steps|seals|releases)\..*")


def people():
    """Yield (rows, labels, ids, weights) of N persons: one row each, up to eight, or 500 rows of one person."""
    rng = np.random.default_rng(5)
    counts = [np.ones(N, int), rng.integers(1, 9, N), np.where(np.arange(N) == 3, 500, 1)]
    for k, (X, y) in enumerate(tables().values()):
        ids = np.repeat(np.arange(N), counts[k % 3])
        ids = rng.permutation(ids) if k % 2 else ids
        named = [ids, ids.astype(str), ids + 0.5, [f"secret-{i}" for i in ids]][k % 4]
        weights = [np.zeros(len(ids)), rng.uniform(0.0, 2.0, len(ids)), np.full(len(ids), 5.0)][k % 3]
        yield X[ids], y[ids], named, weights


def fit(X, y, ids, weights, **keywords):
    weighing = weighed(weights, total=keywords.pop("total", None))
    given = {"weights": weighing} if keywords.pop("weighted", True) else {}
    persons = dpci.Persons(ids, max_rows=keywords.pop("max_rows", None))
    return dpci.fit(X, y, persons=persons, **{"budget": PURE, **COMMON, **given, **keywords})


def in_parts(X, y, ids, weights):
    return dpci.fit(
        dpci.Chunks([(X[:0], y[:0], {"id": ids[:0], "w": weights[:0]}), (X, y, {"id": ids, "w": weights})]),
        persons="id", weights=weighed("w"), budget=dpci.ZCDP(0.5), **COMMON,
    )  # fmt: skip


RELEASES = {
    "fit": (lambda *rows: fit(*rows, weighted=False), FIT),
    "weighted": (fit, FIT),
    "total": (lambda *rows: fit(*rows, budget=APPROX, total=250.0), FIT),
    "max_rows": (lambda *rows: fit(*rows, budget=dpci.ZCDP(0.5), mechanism="output", max_rows=3), FIT),
    "add_remove": (lambda *rows: fit(*rows, neighbors=dpci.AddRemove(N), weighted=False), FIT),
    "parts": (in_parts, FIT),
    "multinomial": (
        lambda X, y, ids, weights: dpci.multinomial.fit(
            X, np.where(y, "a", "b"), classes=("a", "b", "c"), budget=PURE, persons=ids,
            weights=weighed(weights), **COMMON,
        ),
        tuple(rf"\.fit{pattern}" for pattern in FIT),
    ),
    "moment matrix": (
        lambda X, y, ids, weights: taint.moment_matrix(X, y, persons=ids, weights=weighed(weights)),
        taint.OF_THE_MATRIX,
    ),
    "report": (
        lambda X, y, ids, weights: dpci.per_instance.report(
            X, y, persons=ids, weights=weighed(weights), budget=APPROX, n_public=N, **COMMON
        ),
        REPORT,
    ),
    "functional": (
        lambda X, y, ids, weights: functional_mechanism(
            X, y, persons=ids, weights=weighed(weights), budget=APPROX, loss="logistic", rows="clip"
        ),
        (SEALED,),
    ),
    "histogram": (
        lambda X, y, ids, weights: projected_histogram(
            X, y, persons=ids, weights=weighed(weights), budget=PURE, loss="logistic", l2_strength=0.5, axes=AXES
        ),
        (SEALED,),
    ),
    "tuning": (
        lambda X, y, ids, weights: dpci.tuning.tune(
            X, y, persons=ids, weights=weighed(weights), budget=dpci.PureDP(4.0), rows="clip",
            validation_radius=1.0, candidates=[{"l2_strength": 0.5}, {"l2_strength": 1.0}],
        ),
        (*TUNING, *CHOICE),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_of_persons_tells_released_numbers_only(name):
    release, allowed = RELEASES[name]
    found = [quietly(lambda rows=rows: release(*rows)) for rows in people()]
    assert len({tuple(told) for _, told in found}) == 1
    assert tainted((record_of(made) for made, _ in found), allowed) == {}
    shapes = {re.sub(r"[-+\d.]+(e-?\d+)?", "", repr(made)) for made, _ in found}
    assert len(shapes) == 1
    for made, _ in found:
        texts = [made.to_json(), repr(made), repr(pickle.dumps(made)), getattr(made, "summary", str)()]
        assert not any("secret" in text for text in texts)


def test_a_number_of_rows_is_found():
    """The test above finds one that is told."""
    made = []
    for rows in people():
        record = record_of(RELEASES["fit"][0](*rows))
        made.append({**record, "n_samples": len(rows[1])})
    assert set(tainted(made, FIT)) == {".n_samples"}
