"""``dpci.tuning``: what is chosen, fitted, spent and refused."""

import json
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.special import expit

import dpci
from dpci import tuning
from dpci.errors import InvalidInput, PrivacyLeakWarning, RegularizationTooSmall, SeededNoiseWarning
from support.fits import make_rows

X, Y = make_rows()
GRID = [{"l2_strength": strength} for strength in (0.02, 0.2, 2.0)]
BUDGETS = [dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6)]
METHODS = ["repeat", "chunks"]


def tune(**keywords):
    values = {"budget": BUDGETS[0], "candidates": GRID, "radius": 4.0, "seed": 3, **keywords}
    return tuning.tune(X, Y, **values)


def numbers(budget):
    return np.array(list(budget.parameters().values()))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_choice_and_fit_spend_the_budget_and_no_more(method, budget, mechanism, share):
    result = tune(method=method, budget=budget, mechanism=mechanism, selection_share=share)
    assert result.params == GRID[result.index]
    assert result.method == method
    assert result.spent == result.budget == budget
    spent = numbers(result.selection.budget)
    if share < 1.0:
        spent = spent + numbers(result.result.spent)
    np.testing.assert_allclose(spent, numbers(budget), rtol=1e-12)
    record = result.privacy
    assert record["relation"] == "replace_one"
    assert record["selection"]["index"] == result.index
    # One run, its score included, or each of the parallel parts.
    model, score = record["selection"]["model_budget"], record["selection"]["score_budget"]
    if method == "chunks":
        assert model == score == result.selection.budget.parameters()
        assert sum(record["selection"]["chunk_sizes"]) == len(Y)
    elif "epsilon" in model:
        whole = result.selection.budget
        pure = whole.pure_within() if isinstance(whole, dpci.ZCDP) else whole
        assert 3.0 * (model["epsilon"] + score["epsilon"]) == pytest.approx(pure.epsilon, rel=1e-12)
        assert 3.0 * (model["epsilon"] + score["epsilon"]) <= pure.epsilon


def test_the_fit_is_a_fit_with_the_rest_of_the_budget():
    # Without a radius of the fit, whose intervals would have to show that it does not bind.
    result = tune(budget=dpci.PureDP(4.0), selection_share=0.25, radius=None, validation_radius=4.0)
    assert result.privacy["selection"]["score_sensitivity"] == tune().privacy["selection"]["score_sensitivity"]
    again = dpci.fit(X, Y, budget=dpci.PureDP(3.0), seed=3 ^ (2**64 - 1), **result.params)
    np.testing.assert_array_equal(result.result.params, again.params)
    np.testing.assert_array_equal(np.asarray(result.result.conf_int()), np.asarray(again.conf_int()))
    assert result.result.l2_strength == result.params["l2_strength"]


def test_good_candidates_are_chosen():
    candidates = [{"l2_strength": strength} for strength in (0.02, 500.0)]
    keywords = {"candidates": candidates, "budget": dpci.PureDP(40.0), "expected_runs": 40.0}
    for method in METHODS:
        chosen = [tune(method=method, seed=seed, **keywords).index for seed in range(9)]
        # All of a geometric number of runs, mean 40, are of the bad one with probability 1/41: five of nine, 1e-6.
        assert sum(chosen) <= 4
    with pytest.warns(PrivacyLeakWarning):
        oracle = tuning.oracle_not_private(X, Y, budget=dpci.PureDP(40.0), candidates=candidates, radius=4.0)
    assert oracle.index == 0
    assert oracle.losses[0] < oracle.losses[1]


def test_a_selected_model_has_no_intervals_and_says_why():
    result = tune(selection_share=1.0)
    model = result.result
    assert model.predict(X).shape == (len(Y),)
    assert np.linalg.norm(model.params) <= 4.0 * (1 + 1e-12)
    for get in (model.conf_int, lambda: model.std_errors, lambda: model.pvalues, lambda: model.cov):
        with pytest.raises(InvalidInput, match=r"not fresh.*selection_share < 1"):
            get()
    for get in (lambda: model.privacy, lambda: model.guarantee, model.to_json):
        with pytest.raises(InvalidInput, match="whole tuning"):
            get()
    assert "not fresh" in result.summary()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).params, model.params)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_records_are_json_and_say_that_a_seed_is_not_private(share):
    mechanism = dpci.OutputPerturbation(project=True)
    candidates = [{"l2_strength": np.float64(0.1), "mechanism": mechanism}, {"l2_strength": 1.0, "loss": "hinge"}]
    keywords = {"validation_loss": dpci.losses.Hinge(), "moments": "none", "mechanism": "output"}
    result = tune(candidates=candidates, selection_share=share, **keywords)
    saved = json.loads(result.to_json())
    assert saved["coefficients"] == result.result.params.tolist()
    assert saved["privacy"]["conditions"][0].startswith("none: the noise is seeded") or share < 1.0
    assert not saved["privacy"]["private"]
    assert not result.private
    assert "NOT PRIVATE" in result.summary()
    assert "NOT PRIVATE" in repr(result)
    assert any("duration" in condition for condition in saved["privacy"]["conditions"])


def test_releases_are_private_and_differ():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (tune(seed=None) for _ in range(2))
    assert first.private
    assert (first.result.params != second.result.params).all()
    for share in (0.5, 1.0):
        with pytest.warns(SeededNoiseWarning):
            tune(selection_share=share)


@pytest.mark.parametrize("method", METHODS)
def test_seeds_repeat_whatever_the_threads(method):
    results = [tune(method=method, n_threads=n, selection_share=1.0) for n in (1, 2)]
    np.testing.assert_array_equal(results[0].result.params, results[1].result.params)
    other = tune(method=method, seed=4, selection_share=1.0)
    assert (other.result.params != results[0].result.params).all()


def test_the_public_rule_spends_nothing_on_the_choice():
    rule = tuning.public_rule(2000, 4, dpci.PureDP(2.0))
    assert rule == {"l2_strength": math.sqrt(4 / 4000), "radius": 1.0}
    assert tuning.public_rule(2000, 4, dpci.ApproxDP(2.0, 1e-6)) == rule
    pure = dpci.ZCDP(0.5).pure_within().epsilon
    assert tuning.public_rule(10, 5, dpci.ZCDP(0.5))["l2_strength"] == math.sqrt(0.5 / pure)
    result = tuning.tune(X, Y, budget=dpci.PureDP(2.0), method="public_rule", seed=1)
    assert result.params == rule
    assert result.index is None
    assert result.privacy["selection"] is None
    assert result.result.spent == dpci.PureDP(2.0)
    alone = dpci.fit(X, Y, budget=dpci.PureDP(2.0), seed=1, **rule)
    np.testing.assert_array_equal(result.result.params, alone.params)
    # The rule needs no partition and no score, so it takes the other relation.
    counted = {"neighbors": "add_remove", "n_public": 1000}
    again = tuning.tune(X, Y, budget=dpci.PureDP(2.0), method="public_rule", **counted)
    assert again.params["l2_strength"] == math.sqrt(4 / 2000)


def test_the_oracle_averages_simulated_models():
    keywords = {"budget": dpci.PureDP(4.0), "candidates": GRID, "radius": 4.0}
    with pytest.warns(PrivacyLeakWarning, match="neither its choice nor its losses"):
        found = tuning.oracle_not_private(X, Y, n_runs=30, **keywords)
    assert found.private is False
    assert found.params == GRID[found.index]
    assert found.losses.shape == found.std_errors.shape == (3,)
    rows = np.column_stack([X, np.ones(len(Y))])
    signs = 2 * Y - 1
    for candidate, loss, error in zip(GRID, found.losses, found.std_errors, strict=True):
        fits = [
            dpci.fit(X, Y, budget=dpci.PureDP(4.0), moments="none", radius=4.0, seed=s, **candidate) for s in range(30)
        ]
        again = [np.mean(np.logaddexp(0.0, -signs * (rows @ fit.params))) for fit in fits]
        # Two means of independent noise, 58 degrees of freedom: below 1e-6 each.
        assert abs(np.mean(again) - loss) < 6 * math.hypot(error, np.std(again) / math.sqrt(29))


def test_regression_is_tuned_over_radius_and_strength():
    rng = np.random.default_rng(1)
    y = np.clip(X @ [0.5, -0.5, 0.0] + 0.1 * rng.standard_normal(len(X)), -1.0, 1.0)
    candidates = [{"l2_strength": s, "radius": w} for s in (0.01, 0.1) for w in (0.5, 1.0)]
    result = tuning.tune(
        X, y, budget=dpci.PureDP(20.0), candidates=candidates, method="chunks", loss="squared", moments="none", seed=1
    )
    assert result.result.loss["name"] == "squared"
    # (R W + B)² over the last part, R with the intercept.
    expected = (math.sqrt(2.0) + 1.0) ** 2 / 400
    assert result.selection.facts["score_sensitivity"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"selection_share": 0.0}, "selection_share must be > 0 and <= 1"),
        ({"selection_share": 1.1}, "selection_share must be > 0 and <= 1"),
        ({"selection_share": math.nan}, "selection_share must be > 0 and <= 1"),
        ({"candidates": []}, "at least one"),
        ({"candidates": None}, "list of dictionaries"),
        ({"candidates": GRID[0]}, "list of dictionaries"),
        ({"candidates": [0.1]}, "every candidate must be a dictionary"),
        ({"candidates": [{"row_norm": 2.0, "l2_strength": 1.0}]}, "differ in .* only, got 'row_norm'"),
        ({"candidates": [{"radius": 2.0}]}, "must have an l2_strength"),
        ({"radius": None}, "every candidate must have a radius"),
        ({"candidates": [*GRID, {"l2_strength": -1.0}]}, "l2_strength must be finite and > 0"),
        ({"candidates": [*GRID, {"l2_strength": 1.0, "loss": "huber_hinge"}]}, "validation_loss must be given"),
        ({"validation_loss": "squared"}, "targets of their losses and of the validation loss"),
        ({"neighbors": "add_remove", "n_public": 2000}, 'takes neighbors="replace_one"'),
        ({"radius": None, "validation_radius": 0.0}, "validation_radius must be finite and > 0"),
        ({"shape": -0.5}, "shape must be >= 0 and <= 10"),
        ({"expected_runs": 1.0}, "expected_runs must be > 1"),
        ({"expected_runs": math.inf}, "expected_runs must be > 1"),
        ({"method": "grid"}, "method must be one of"),
        ({"method": "public_rule"}, "candidates must be None"),
        ({"method": "public_rule", "candidates": None}, "radius must be left to method='public_rule'"),
        ({"method": "chunks", "candidates": GRID * 1000}, "n_samples must be at least 3001"),
        # Could be chosen, but not fitted afterwards with intervals: refused before anything is spent.
        ({"candidates": [{"l2_strength": 1.0, "loss": "hinge"}], "mechanism": "output"}, "no Hessian"),
    ],
)
def test_what_is_refused(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        tune(**keywords)


def test_losses_of_unknown_range_are_refused_as_validation():
    loss = dpci.losses.Custom(
        lambda u, y: np.logaddexp(0.0, -u * y),
        lambda u, y: -y * expit(-u * y),
        lambda u, y: expit(u * y) * expit(-u * y),
        slope_bound=1.0,
        curvature_bound=0.25,
    )
    with pytest.raises(InvalidInput, match="known, finite range"):
        tune(loss=loss)
    assert tune(loss=loss, validation_loss="logistic").params in GRID


def test_a_candidate_that_needs_more_regularisation_is_named():
    with pytest.raises(RegularizationTooSmall, match="l2_strength must be greater than"):
        tune(candidates=[*GRID, {"l2_strength": 1e-5}], method="chunks")
