"""The one way in for X and y: converted once, public choices first, labels that a schema has coded."""

import numpy as np
import pytest

import dpci
from dpci.data import arrays
from dpci.data.labels import CodedLabels
from dpci.errors import InvalidInput, RegularizationTooSmall

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(400, 2))
Y = X[:, 0] > 0
REALS = np.clip(X[:, 0], -1.0, 1.0)
PURE = dpci.PureDP(3.0)
FIT = {"budget": PURE, "l2_strength": 0.1, "seed": 1}
TUNE = {"budget": PURE, "candidates": [{"l2_strength": 0.1}, {"l2_strength": 0.2}], "validation_radius": 4.0, "seed": 1}
BINS = [dpci.baselines.Bins(column=i, lower=-1.0, upper=1.0, count=3) for i in range(2)]
pytestmark = pytest.mark.filterwarnings(
    "ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning"
)

READERS = {
    "fit": lambda X: dpci.fit(X, Y, **FIT),
    "tune": lambda X: dpci.tuning.tune(X, Y, **TUNE),
    "parts": lambda X: dpci.tuning.tune(X, Y, method="chunks", **TUNE),
    "rule": lambda X: dpci.tuning.tune(X, Y, budget=PURE, method="public_rule", mechanism="output", seed=1),
    "oracle": lambda X: dpci.tuning.oracle_not_private(X, Y, budget=PURE, candidates=TUNE["candidates"], n_runs=1),
    "report": lambda X: dpci.per_instance.report(
        X, Y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.2, n_public=400, seed=1
    ),
    "functional": lambda X: dpci.baselines.functional_mechanism(X, REALS, budget=PURE, seed=1),
    "histogram": lambda X: dpci.baselines.projected_histogram(
        X, REALS, budget=PURE, axes=BINS, l2_strength=0.1, seed=1
    ),
    "non-private": lambda X: dpci.baselines.non_private(X, Y, loss="logistic", l2_strength=0.1),
    "coverage": lambda X: dpci.simulate.coverage(
        X, Y, budget=PURE, l2_strength=0.1, n_replicates=2, n_variability=2, n_threads=1
    ),
    "curve": lambda X: dpci.utility.curve(X, Y, at=PURE, l2_strength=0.1),
}


@pytest.mark.parametrize("reader", READERS)
def test_rows_are_converted_once(reader, monkeypatch):
    converted = []
    convert = arrays._dense

    def count(table):
        converted.append(table)
        return convert(table)

    monkeypatch.setattr(arrays, "_dense", count)
    table = X.tolist()
    READERS[reader](table)
    assert len(converted) == 1
    assert converted[0] is table


def test_what_public_choices_rule_out_is_refused_before_targets_are_looked_at():
    with pytest.raises(RegularizationTooSmall):
        dpci.fit(X, ["a", "b", "c", "d"] * 100, budget=dpci.PureDP(1e-3), l2_strength=1e-6)


def test_coded_labels_are_the_labels():
    labels = np.where(Y, "yes", "no")
    coded = CodedLabels(np.where(Y, 1.0, -1.0), ("no", "yes"))
    given = dpci.fit(X, labels, classes=("no", "yes"), **FIT).to_json()
    assert dpci.fit(X, coded, classes=("no", "yes"), **FIT).to_json() == given
    parts = [dpci.Chunks(lambda y=y: iter([(X[:150], y(0, 150)), (X[150:], y(150, 400))])) for y in cuts(labels, coded)]
    in_parts = [dpci.fit(chunks, classes=("no", "yes"), **FIT).to_json() for chunks in parts]
    assert in_parts[0] == in_parts[1]
    with pytest.raises(InvalidInput, match="y must have one entry for each row of X, got 400 entries and 10 rows"):
        dpci.fit(X[:10], coded, classes=("no", "yes"), **FIT)


def cuts(labels, coded):
    """Two functions that return a part: of labels, and of coded ones."""
    return lambda i, j: labels[i:j], lambda i, j: CodedLabels(coded.values[i:j], coded.classes)
