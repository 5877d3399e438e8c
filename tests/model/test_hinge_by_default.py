"""The hinge loss chooses its mechanism: noise at the minimiser, without intervals, which plan and summary say."""

import numpy as np
import pytest

import dpci
from dpci.cli import main

X = np.tile([[0.6, 0.0], [-0.6, 0.1], [0.1, -0.3]], (200, 1))
Y = X[:, 0] > 0
FIT = {"loss": "hinge", "budget": dpci.PureDP(1.0), "l2_strength": 0.1}
REASON = "because the hinge has no second derivative"


@pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning")
def test_the_mechanism_need_not_be_named():
    found = dpci.fit(X, Y, seed=1, **FIT)
    asked = dpci.fit(X, Y, seed=1, **FIT, mechanism=dpci.OutputPerturbation(moments="none"))
    assert found.to_json() == asked.to_json() == dpci.fit(X, Y, seed=1, **FIT, mechanism="output").to_json()
    said = "No intervals: noise was added to the parameters, and the hinge has no second derivative"
    for full in (False, True):
        assert said in " ".join(found.summary(full=full).split())
    assert found.interval_refusal.startswith("intervals require a loss with a Hessian, and the hinge has no second")


def test_the_plan_says_so():
    planned = dpci.plan(n_samples=len(Y), n_features=2, **FIT)
    assert planned.steps == dpci.plan(n_samples=len(Y), n_features=2, mechanism="output", **FIT).steps
    assert "output perturbation" in planned.title
    assert f"none, {REASON}" in planned.summary()
    assert dpci.plan(n_samples=len(Y), n_features=2, budget=FIT["budget"], l2_strength=0.1).without_intervals is None


def test_public_values_choose_the_ridge_too():
    assert 0.0 < dpci.fit(X, Y, loss="hinge", budget=dpci.PureDP(1.0), classes=(False, True)).l2_strength < 1.0


@pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning")
def test_functions_that_pass_keywords_on_choose_it_too():
    many = dpci.fit_many({"a": (X, Y), "b": (X, ~Y)}, seed=1, **FIT)
    assert {fit.privacy["mechanism"] for fit in many.values()} == {"output"}
    grid = [{"l2_strength": 0.1}, {"l2_strength": 0.3}]
    tuned = dpci.tuning.tune(
        X,
        Y,
        loss="hinge",
        budget=dpci.PureDP(4.0),
        candidates=grid,
        validation_radius=3.0,
        classes=(False, True),
        seed=1,
    )
    assert tuned.result.privacy["mechanism"] == "output"


def test_objective_perturbation_is_still_refused():
    with pytest.raises(dpci.InvalidInput, match="requires a loss with a second derivative, got the hinge loss"):
        dpci.fit(X, Y, mechanism="objective", **FIT)
    with pytest.raises(dpci.InvalidInput, match="intervals require a loss with a Hessian, got the hinge loss"):
        dpci.fit(X, Y, mechanism=dpci.OutputPerturbation(moments="joint"), **FIT)


def test_the_command_chooses_it(capsys):
    options = ["--n-samples", "600", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.1", "--loss", "hinge"]
    assert main(["plan", *options]) == 0
    assert REASON in capsys.readouterr().out
    assert main(["plan", *options, "--radius", "2"]) == 0
    assert "output perturbation" in capsys.readouterr().out
