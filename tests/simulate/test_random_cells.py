"""The study of random cells: no unit of privacy is left out, and its verdicts are those of fits with intervals."""

import itertools
import warnings

import numpy as np
import pytest

import dpci
import random_cells as study
import random_newton

CASES = itertools.product(("rows", "persons", "weights"), ("replace_one", "add_remove"), ("fit", "moments"))


@pytest.mark.parametrize(("unit", "neighbors", "kind"), list(CASES))
def test_fits_of_every_unit_and_relation_are_accepted(unit, neighbors, kind):
    # A cell whose fit is refused is left out: a keyword too many once left out all cells of a unit.
    rng, n = np.random.default_rng(0), 400
    counts = rng.choice([1, 2, 4], n) if unit == "persons" else None
    X = rng.uniform(-1.0, 1.0, (n if counts is None else int(counts.sum()), 2))
    y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)
    keywords = {"budget": dpci.PureDP(8.0), "neighbors": neighbors}
    if kind == "moments":
        keywords |= {"bounds": (-1.0, 1.0), "robust": True}
    else:
        keywords |= {"loss": "logistic", "rows": dpci.rows.Clipped(1.5), "l2_strength": 0.1}
    weights = rng.choice([0.5, 1.0], n) if unit == "weights" else None
    made = study.Cell(0, "", X, y, counts, weights, n, keywords, np.zeros(3))
    found = study.fit(made, 0)
    assert found.covers.shape == found.named.shape == (3,)
    assert (found.lengths > 0.0).all()
    if kind == "fit":
        with warnings.catch_warnings(action="ignore"):
            assert "mean" in study.bootstrap(made, 2, 0)


def test_a_refused_fit_is_no_warning(monkeypatch):
    def fit(_, run):
        if run % 4:
            raise dpci.InvalidInput("too much noise")
        return study.Fit(np.array([False]), np.array([1.0]), set(), np.array([False]))

    monkeypatch.setattr(study, "fit", fit)
    row = study.repeated(None, 40, 0)
    assert row["refused"] == 30
    assert study.verdict(row) == "silent"


def test_a_repetition_without_intervals_is_no_verdict():
    low = {"mean": 0.5, "worst": 0.4, "coverage": [0.6, 0.4], "named": [0.0, 0.5], "warnings": {}}
    assert study.verdict(low | {"again": {"refused": 1000, "warnings": {}}}) == "silent"
    assert study.verdict(low | {"again": {"mean": 0.95, "worst": 0.94, "warnings": {}}}) == "holds"


def test_a_low_parameter_that_no_warning_names_is_not_named():
    low = {"mean": 0.62, "worst": 0.4, "coverage": [0.84, 0.4], "named": [0.0, 0.5]}
    warned = low | {"warnings": {"MomentNoiseWarning": 0.5, study.NOTE: 1.0}}
    assert study.verdict(warned) == "named"
    assert study.verdict(warned | {"coverage": [0.79, 0.4]}) == "warned"
    assert study.verdict(warned | {"mean": 0.95, "worst": 0.84, "coverage": [0.84, 0.9]}) == "holds"
    assert study.verdict(low | {"warnings": {"MomentNoiseWarning": 0.4, study.NOTE: 1.0}}) == "noted"


@pytest.mark.parametrize("number", [11, 32, 37, 38, 56])
def test_cells_of_newton_steps_have_both_targets(number):
    made = random_newton.cell(number)
    found = random_newton.fit(made, 1, {})
    assert study.FITS
    for name in ("target", "ordinary", "named"):
        assert found[name].shape == (made.X.shape[1] + 1,)
    # Weights and held slopes move the minimiser by less than an interval.
    assert np.nanmax(np.abs(found["target"] - found["ordinary"])) < 2.0
