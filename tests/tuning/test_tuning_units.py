"""Tuning where the records are persons, or have weights: limits, how far one record moves a score, payment."""

import numpy as np
import pytest

import dpci
from dpci import _core, tuning
from dpci.losses import Logistic
from support.core import specified

GRID = [{"l2_strength": 0.003}, {"l2_strength": 0.3}]
PANEL = dpci.datasets.simulate_panel(1500, n_rows=(1, 8), seed=0)
SURVEY = dpci.datasets.simulate_survey(3000, seed=0)
HUGE = {"budget": dpci.PureDP(1e6), "classes": (-1, 1), "seed": 1}
PERSONS = {"persons": PANEL.persons}
WEIGHTS = {"weights": dpci.Weights(SURVEY.weights, bound=SURVEY.weight_bound)}


@pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning")
@pytest.mark.parametrize("method", ["repeat", "chunks"])
@pytest.mark.parametrize(
    ("data", "unit"),
    [
        (PANEL, PERSONS),
        (PANEL, {"persons": dpci.Persons(PANEL.persons, max_rows=3)}),
        (SURVEY, WEIGHTS),
        (SURVEY, {"weights": dpci.Weights(SURVEY.weights, bound=SURVEY.weight_bound, total=4e3)}),
    ],
    ids=["mean", "max_rows", "weights", "total"],
)
def test_without_noise_the_least_penalty_wins_and_is_fitted(method, data, unit):
    found = tuning.tune(data.X, data.y, candidates=GRID, validation_radius=4.0, method=method, **unit, **HUGE)
    assert found.params == GRID[0]
    expected = dpci.fit(data.X, data.y, **found.params, **unit, **HUGE)
    assert found.result.n_samples == expected.n_samples
    assert found.result.privacy["unit"] == expected.privacy["unit"]
    assert found.result.params == pytest.approx(expected.params, abs=1e-4)
    assert found.result.std_errors == pytest.approx(expected.std_errors, rel=1e-3)


@pytest.mark.parametrize(
    ("unit", "counts"),
    [
        ({"persons": True}, [(1.0, 1.0), (1.0, 1.0)]),
        ({"persons": True, "max_rows": 4}, [(1.0, 1.0), (0.25, 0.25)]),
        ({"weight_bound": 3.0}, [(1.0, 1.0), (0.0, 0.0)]),
    ],
    ids=["mean", "max_rows", "weights"],
)
def test_no_record_moves_a_score_further_than_is_paid_for_and_one_does_nearly(unit, counts):
    """The loss of a whole person is that of its rows together; one that counts less may have almost none."""
    n, radius = 50, 1.5
    budget = dpci.budgets.core_budget(dpci.PureDP(1.0))
    spec = specified(
        _core.Spec,
        n_samples=n,
        n_columns=1,
        intercept=None,
        row_norm=2.0,
        loss=Logistic().to_core(),
        l2_strength=1.0,
        radius=radius,
        budget=budget,
        mechanism="output",
        noise=None,
        variant="standard",
        project=False,
        split=None,
        moments="none",
        projection="auto",
        calibration="tight",
        neighbors="replace_one",
        **unit,
    )
    choice = _core.TuningSpec(
        [spec],
        loss=Logistic().to_core(),
        validation_radius=None,
        method="repeat",
        shape=1.0,
        expected_runs=3.0,
        budget=budget,
    )
    paid = choice.facts()["score_sensitivity"]
    losses = np.logaddexp(0.0, np.array([3.0, -3.0]))  # at the ends of the ball, rows of norm 2
    values = [share * loss for shares in counts for share, loss in zip(shares, losses, strict=True)]
    # Replaced: all pairs of what a record can add.
    moved = max(abs(a - b) for a in values for b in values) / n
    assert 0.95 * paid <= moved <= paid


def test_persons_in_parts_and_without_a_rule_are_refused():
    with pytest.raises(dpci.InvalidInput, match="persons must have ids"):
        tuning.tune(
            PANEL.X,
            PANEL.y,
            candidates=GRID,
            validation_radius=4.0,
            budget=dpci.PureDP(1.0),
            persons=dpci.Persons(max_rows=3),
        )
    with pytest.raises(dpci.InvalidInput, match="bound="):
        tuning.tune(
            SURVEY.X, SURVEY.y, candidates=GRID, validation_radius=4.0, budget=dpci.PureDP(1.0), weights=SURVEY.weights
        )


def test_a_tuning_of_persons_pays_once_and_names_its_unit():
    ledger = dpci.Ledger(dpci.PureDP(2.0))
    found = tuning.tune(
        PANEL.X,
        PANEL.y,
        candidates=[{"l2_strength": 0.1}],
        validation_radius=4.0,
        budget=dpci.PureDP(1.0),
        classes=(-1, 1),
        ledger=ledger,
        **PERSONS,
    )
    assert ledger.remaining == dpci.PureDP(1.0)
    assert found.result.privacy["unit"] == "person"
    assert tuning.TuneResult.from_json(found.to_json()).to_json() == found.to_json()
