"""``dpci.tuning``: what is chosen, fitted, spent and refused; its results, files and pickles."""

import json
import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest

import dpci
from dpci import _core, tuning
from dpci.budgets import split_budget
from dpci.errors import InvalidInput, PrivacyLeakWarning, RegularizationTooSmall, SeededNoiseWarning
from support import custom_losses
from support.keywords import assembled
from support.saved import rewritten
from support.tuning import BUDGET, GRID, X, Y, tune, tuning_spec

BUDGETS = [BUDGET, dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6)]
METHODS = ["repeat", "chunks"]
GRID_IN_BALL = [{"l2_strength": 1.0, "radius": 1.0}]


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
    # One that fits, and nine that leave the parameters at 0.
    candidates = [{"l2_strength": strength} for strength in (0.02, *np.geomspace(500.0, 900.0, 9))]
    keywords = {"candidates": candidates, "budget": dpci.PureDP(200.0)}
    for method in ({"method": "repeat", "expected_runs": 1000.0}, {"method": "chunks"}):
        chosen = [tune(seed=seed, **method, **keywords).index for seed in range(9)]
        # A uniform draw has the good one in six of nine with probability 6e-5. No run tries it with probability 1/112:
        # four of nine, 8e-7.
        assert chosen.count(0) >= 6
    with pytest.warns(PrivacyLeakWarning):
        oracle = tuning.oracle_not_private(
            X, Y, budget=dpci.PureDP(40.0), candidates=candidates, mechanism=dpci.ObjectivePerturbation(radius=4.0)
        )
    assert oracle.index == 0
    assert (oracle.losses[0] < oracle.losses[1:]).all()


def test_releases_are_private_and_differ():
    with warnings.catch_warnings(action="error"):
        first, second = (tune(seed=None) for _ in range(2))
    assert first.private
    assert (first.result.params != second.result.params).all()
    for share in (0.5, 1.0):
        with pytest.warns(SeededNoiseWarning):
            tune(selection_share=share)


def test_warnings_point_at_the_caller():
    calls = [
        lambda: tuning.tune(
            X, Y, budget=dpci.PureDP(0.1), candidates=GRID, mechanism=dpci.ObjectivePerturbation(radius=4.0), seed=1
        ),
        lambda: tuning.tune(
            X, Y, budget=BUDGET, candidates=GRID, mechanism=dpci.ObjectivePerturbation(radius=4.0), seed=1,
            selection_share=1.0,
        ),
        lambda: tuning.tune(
            X, np.where(Y, "b", "a"), budget=BUDGET, candidates=GRID, mechanism=dpci.ObjectivePerturbation(radius=4.0)
        ),
        lambda: tuning.tune(X, np.where(Y, "b", "a"), budget=BUDGET, method="public_rule"),
        lambda: tuning.tune(X, Y, budget=BUDGET, method="chunks", candidates=GRID, validation_radius=4.0, seed=1),
        lambda: tuning.oracle_not_private(X, np.where(Y, "b", "a"), budget=BUDGET, candidates=GRID, n_runs=1),
        lambda: dpci.fit(X, np.where(Y, "b", "a"), budget=dpci.PureDP(0.1), l2_strength=0.1, seed=1),
    ]  # fmt: skip
    for call in calls:
        with warnings.catch_warnings(record=True, action="always") as caught:
            call()
        assert caught
        assert {warning.filename for warning in caught} == {__file__}


def test_unknown_keywords_are_named():
    for call in (lambda: tune(colour=3), lambda: tune(method="public_rule", candidates=None, radius=None, colour=3)):
        with pytest.raises(TypeError, match=r"^tune\(\) got an unexpected keyword argument 'colour'$"):
            call()
    with pytest.raises(TypeError, match=r"^oracle_not_private\(\) got an unexpected keyword argument 'colour'$"):
        tuning.oracle_not_private(X, Y, budget=BUDGET, candidates=GRID, colour=3)


@pytest.mark.filterwarnings("ignore::dpci.PrivacyLeakWarning")
def test_the_oracle_checks_what_a_tuning_checks():
    def search(**keywords):
        tuning.oracle_not_private(X, Y, budget=BUDGET, **assembled(**{"candidates": GRID, **keywords}))

    squared = [{**GRID[1], "radius": 1.0, "loss": dpci.losses.Squared(bound)} for bound in (1.0, 2.0)]
    with pytest.raises(InvalidInput, match=r"got \[-2, 2\] for the squared loss and \[-1, 1\] for validation"):
        search(candidates=squared, validation_loss="squared")
    with pytest.raises(InvalidInput, match='neighbors="replace_one"'):
        search(neighbors=dpci.AddRemove(100))
    parts = (lambda u, y: u**2 + 1 + 0 * y, lambda u, y: 2 * u + 0 * y, lambda u, y: 2 + 0 * u * y)
    bounded = dpci.losses.Custom(*parts, slope_bound=2.0, curvature_bound=2.0, predictor_bound=1.0)
    with pytest.raises(InvalidInput, match="at most predictor_bound=1 of the validation loss, got inf"):
        search(validation_loss=bounded)


def test_shares_never_exceed_the_budget():
    rng = np.random.default_rng(8)
    exceeded = 0
    for share, epsilon in zip(rng.uniform(0.01, 0.99, 2000), rng.uniform(0.1, 10.0, 2000), strict=True):
        first, rest = split_budget(dpci.PureDP(epsilon), share)
        assert Fraction(first.epsilon) + Fraction(rest.epsilon) <= Fraction(epsilon)
        exceeded += Fraction(first.epsilon) + Fraction(epsilon - first.epsilon) > Fraction(epsilon)
        assert rest.epsilon >= (epsilon - first.epsilon) * (1 - 1e-15)
    assert exceeded > 0  # the rounding happens


def test_runs_take_the_noise_that_is_less_after_the_split():
    decisive = 0
    for n_columns in (1, 6, 20):
        for epsilon in np.linspace(0.2, 8.0, 40):
            spec = tuning_spec(100, GRID_IN_BALL, dpci.ApproxDP(epsilon, 1e-6), "repeat", n_columns=n_columns)
            rho = _core.Testing.run_count(1.0, 6.0).run_rho(epsilon, 1e-6)
            by_shares, by_whole = (
                0.5 / (share * rho) < (n_columns + 1) / (share * epsilon / 3.0) ** 2 for share in (0.75, 1.0)
            )
            decisive += by_shares != by_whole
            assert spec.model(0).noise_law == ("gaussian" if by_shares else "spherical_laplace")
    assert decisive > 0


@pytest.mark.parametrize("method", METHODS)
def test_seeds_repeat_whatever_the_threads(method):
    results = [dpci.threads(n)(tune)(method=method, selection_share=1.0) for n in (1, 2)]
    np.testing.assert_array_equal(results[0].result.params, results[1].result.params)
    other = tune(method=method, seed=4, selection_share=1.0)
    assert (other.result.params != results[0].result.params).all()


def test_the_public_rule_spends_nothing_on_the_choice():
    rule = tuning.public_rule(2000, 4, dpci.PureDP(2.0))
    assert rule == {"l2_strength": math.sqrt(4 / 4000), "mechanism": dpci.ObjectivePerturbation(radius=1.0)}
    assert tuning.public_rule(2000, 4, dpci.ApproxDP(2.0, 1e-6)) == rule
    pure = dpci.ZCDP(0.5).pure_within().epsilon
    assert tuning.public_rule(10, 5, dpci.ZCDP(0.5))["l2_strength"] == math.sqrt(0.5 / pure)
    with pytest.raises(InvalidInput, match="epsilon must give a finite l2_strength"):
        tuning.public_rule(10, 5, dpci.PureDP(1e-320))
    result = tuning.tune(X, Y, budget=dpci.PureDP(2.0), method="public_rule", seed=1)
    assert result.params == rule
    assert result.index is None
    assert result.privacy["selection"] is None
    assert result.result.spent == dpci.PureDP(2.0)
    alone = dpci.fit(X, Y, budget=dpci.PureDP(2.0), seed=1, **rule)
    np.testing.assert_array_equal(result.result.params, alone.params)
    # The rule needs no partition and no score, so it takes the other relation.
    counted = {"neighbors": dpci.AddRemove(1000)}
    again = tuning.tune(X, Y == 1, budget=dpci.PureDP(2.0), method="public_rule", **counted)
    assert again.params["l2_strength"] == math.sqrt(4 / 2000)


def test_the_oracle_averages_simulated_models():
    keywords = {"budget": dpci.PureDP(4.0), "candidates": GRID, "radius": 4.0}
    with pytest.warns(PrivacyLeakWarning, match="neither its choice nor its losses"):
        found = tuning.oracle_not_private(X, Y, n_runs=30, **assembled(**keywords))
    assert found.private is False
    assert found.params == GRID[found.index]
    assert found.losses.shape == found.std_errors.shape == (3,)
    rows = np.column_stack([X, np.ones(len(Y))])
    signs = 2 * Y - 1
    for candidate, loss, error in zip(GRID, found.losses, found.std_errors, strict=True):
        fits = [
            dpci.fit(X, Y, **assembled(budget=dpci.PureDP(4.0), moments="none", radius=4.0, seed=s, **candidate))
            for s in range(30)
        ]
        again = [np.mean(np.logaddexp(0.0, -signs * (rows @ fit.params))) for fit in fits]
        # Two means of independent noise, 58 degrees of freedom: below 1e-6 each.
        assert abs(np.mean(again) - loss) < 6 * math.hypot(error, np.std(again) / math.sqrt(29))


def test_regression_is_tuned_over_radius_and_strength():
    rng = np.random.default_rng(1)
    y = np.clip(X @ [0.5, -0.5, 0.0] + 0.1 * rng.standard_normal(len(X)), -1.0, 1.0)
    candidates = [{"l2_strength": s, "radius": w} for s in (0.01, 0.1) for w in (0.5, 1.0)]
    result = tuning.tune(
        X, y, budget=dpci.PureDP(20.0), method="chunks", loss="squared", seed=1,
        **assembled(candidates=candidates, moments="none"),
    )  # fmt: skip
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
        ({"candidates": [{"rows": 2.0, "l2_strength": 1.0}]}, "differ only in .*, got 'rows'"),
        ({"candidates": [{"radius": 2.0}]}, "must have a number as l2_strength"),
        ({"radius": None}, "every candidate must have a radius"),
        ({"candidates": [*GRID, {"l2_strength": -1.0}]}, "l2_strength must be finite and > 0"),
        ({"candidates": [*GRID, {"l2_strength": 1.0, "loss": "huber_hinge"}]}, "validation_loss must be given"),
        ({"validation_loss": "squared"}, "got two classes for the logistic loss and"),
        ({"neighbors": dpci.AddRemove(2000)}, 'requires neighbors="replace_one"'),
        ({"radius": None, "validation_radius": 0.0}, "validation_radius must be finite and > 0"),
        ({"shape": -0.5}, "shape must be >= 0 and <= 10"),
        ({"expected_runs": 1.0}, "expected_runs must be > 1"),
        ({"expected_runs": math.inf}, "expected_runs must be > 1"),
        ({"method": "grid"}, "method must be one of"),
        ({"candidates": 3}, "list of dictionaries.*got candidates=3"),
        (
            {"method": "chunks", "shape": math.nan},
            "shape must keep its default 1.0 with method='chunks'.*got shape=nan",
        ),
        ({"method": "chunks", "expected_runs": 5.0}, "expected_runs must keep its default None"),
        ({"method": "public_rule"}, "candidates must keep its default None with method='public_rule'"),
        (
            {"method": "public_rule", "candidates": None, "selection_share": 1.0},
            "selection_share must keep its default 0.5",
        ),
        ({"method": "public_rule", "candidates": None, "validation_radius": 1.0}, "validation_radius must keep"),
        ({"method": "public_rule", "candidates": None}, "radius must be None with method='public_rule'"),
        ({"selection_share": 1e-320, "budget": dpci.PureDP(1e-5)}, "selection_share must leave two parts of"),
        # Rounding of the scores would exceed what one record moves them by.
        ({"radius": 4e-16}, "100 times its rounding"),
        ({"radius": 4e-25, "method": "chunks"}, "100 times its rounding"),
        (
            {"mechanism": dpci.OutputPerturbation(noise="gaussian"), "budget": dpci.ZCDP(1.0)},
            'method="repeat" takes noise=',
        ),
        (
            {
                "candidates": [{**GRID[1], "loss": dpci.losses.Squared(b)} for b in (1.0, 2.0)],
                "validation_loss": "squared",
            },
            r"must have the same targets.*got \[-2, 2\] for the squared loss and \[-1, 1\] for validation",
        ),
        ({"method": "chunks", "candidates": GRID * 1000}, "n_samples must be at least 3001"),
        # Could be chosen, but not fitted afterwards with intervals: refused before anything is spent.
        (
            {"candidates": [{"l2_strength": 1.0, "loss": "hinge"}], "mechanism": "output", "moments": "joint"},
            "a loss with a Hessian",
        ),
    ],
)
def test_what_is_refused(keywords, message):
    with pytest.raises(InvalidInput, match=message):
        tune(**keywords)


def test_losses_of_unknown_range_are_refused_as_validation():
    loss = custom_losses.logistic()
    with pytest.raises(InvalidInput, match="known, finite range"):
        tune(loss=loss)
    assert tune(loss=loss, validation_loss="logistic").params in GRID


def test_a_candidate_that_needs_more_regularisation_is_named():
    with pytest.raises(RegularizationTooSmall, match="l2_strength must be greater than"):
        tune(candidates=[*GRID, {"l2_strength": 1e-5}], method="chunks")


def test_a_selected_model_has_no_intervals_and_says_why():
    result = tune(selection_share=1.0)
    model = result.result
    assert model.predict(X).shape == (len(Y),)
    assert np.linalg.norm(model.params) <= 4.0 * (1 + 1e-12)
    with pytest.raises(InvalidInput, match=r"not fresh.*selection_share < 1"):
        model.conf_int(level=0.9)
    assert "not fresh" in model.interval_refusal
    # What would be claimed of a fit is known of the whole tuning only.
    assert not isinstance(model, dpci.PrivateFit)
    for name in ("privacy", "guarantee", "to_json", "from_json", "to_html", "std_errors", "cov"):
        assert not hasattr(model, name)
    assert "not fresh" in result.summary()
    assert repr(model).startswith("<SelectedFit")
    again = pickle.loads(pickle.dumps(model))
    assert b"dpci.tuning.result" not in pickle.dumps((model, result))
    assert type(again) is type(model)
    np.testing.assert_array_equal(again.params, model.params)
    with pytest.raises(ValueError, match="read-only"):
        again.params[0] = 1.0


@pytest.mark.parametrize("method", METHODS)
def test_the_record_of_a_selected_model_has_what_its_guarantee_rests_on(method):
    mechanism = dpci.ObjectivePerturbation(variant="cms11")
    keywords = {"radius": None, "validation_radius": 4.0, "rows": "clip", "intercept": False}
    for seed in (3, None):
        result = tune(
            candidates=[{"l2_strength": 1e-5}], method=method, selection_share=1.0, mechanism=mechanism, seed=seed,
            **keywords,
        )  # fmt: skip
        record = result.privacy
        model, facts = record["model"], record["selection"]
        assert record["fit"] is None
        assert model["mechanism"] == "objective"
        constants = model["constants"]
        assert constants["row_norm"] == 1.0
        assert constants["on_violation"] == "clip"
        assert constants["intercept_scale"] is None
        assert constants["n_public"] == len(Y)
        assert constants["radius"] == 4.0
        assert constants["loss"]["name"] == "logistic"
        # λ as one run, or one part, used it: with what the variant added for that budget and number of records.
        n = facts["chunk_sizes"][0] if method == "chunks" else len(Y)
        budget = dpci.PureDP(**facts["model_budget"])
        plan = {"budget": budget, "l2_strength": 1e-5, "moments": "none", "mechanism": mechanism, "intercept": False}
        alone = dpci.fit(X[:n], Y[:n], **assembled(classes=(0, 1), seed=1, **plan))
        assert constants["l2_strength"] == alone.l2_strength > 1e-5
        assert model["noise_scale"] == alone.privacy["steps"][0]["scale"]
        rests_on = " ".join(record["conditions"])
        assert ("none: the noise is seeded" in rests_on) == (seed is not None)
        assert ("ChaCha20" in rests_on) == (seed is None)
        assert 'the page "Noise"' in rests_on
        assert "without looking at the data" in rests_on
        assert tuning.TuneResult.from_json(result.to_json()).privacy == record


def saved_tunings():
    loss = dpci.losses.HuberHinge(h=0.1)
    yield tune(selection_share=1.0, method="chunks", loss=loss)
    yield tune(candidates=[{"l2_strength": 0.1, "mechanism": dpci.OutputPerturbation(project=True), "loss": loss}])
    yield tune(budget=dpci.ZCDP(1.0), selection_share=0.3)
    yield tuning.tune(X, Y, budget=dpci.ApproxDP(2.0, 1e-6), method="public_rule", seed=1)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("method", ["repeat", "chunks"])
@pytest.mark.parametrize("budget", [dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6)], ids=lambda b: b.notion)
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_every_kind_of_selection_is_read_back(mechanism, method, budget, share):
    """Runs of a selection may be pure under another budget, and then have spherical Laplace noise."""
    result = tune(mechanism=mechanism, method=method, budget=budget, selection_share=share)
    again = tuning.TuneResult.from_json(result.to_json())
    assert again.to_json() == result.to_json()
    assert again.summary() == result.summary()


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
@pytest.mark.parametrize("number", range(4))
def test_saved_and_pickled(number):
    result = list(saved_tunings())[number]
    text = result.to_json()
    for again in (tuning.TuneResult.from_json(text), pickle.loads(pickle.dumps(result))):
        assert again.privacy == result.privacy
        assert again.summary() == result.summary()
        assert again.to_json() == text
        assert type(again.result) is type(result.result)
        np.testing.assert_array_equal(again.result.params, result.result.params)
    with pytest.raises(TypeError):
        result.params["l2_strength"] = 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(schema="other"), "schema='dpci.TuneResult'"),
        (lambda v: v.update(schema_version=9), "schema_version=1, got schema_version=9"),
        (lambda v: v.pop("params"), "every field of its schema"),
        (lambda v: v.update(coefficients=[0.0] * 4), "every field of its schema and no other"),
        (lambda v: v.update(model=v["fit"]), "either the fit or the model of a saved tuning must be given"),
        (lambda v: v["selection"].update(composition="parallel parts"), "the same in all its fields"),
        (lambda v: v["selection"].update(private=True), "the same in all its fields"),
        (lambda v: v["selection"].update(index=3), "index must be below n_candidates=3"),
        (lambda v: v["selection"]["budget"].update(epsilon=3.0), "and no more"),
        (lambda v: v["selection"].update(score_sensitivity=-1.0), "score_sensitivity must be finite and > 0"),
        (lambda v: v["selection"].update(radii=[4.0]), "must fit n_candidates=3"),
        (lambda v: v["selection"]["validation_loss"].update(slope_bound=0.5), "built-in loss"),
        (lambda v: v["budget"].update(epsilon=math.nan), "epsilon must be finite"),
        (lambda v: v["fit"].update(rows={"norm": -1.0}), "norm must be finite"),
    ],
)
def test_damaged_files_are_refused(change, message):
    values = json.loads(tune().to_json())
    change(values)
    with pytest.raises(InvalidInput, match=message):
        tuning.TuneResult.from_json(rewritten(values))
    for text in ("", "[]", "{}", b"\xff"):
        with pytest.raises(InvalidInput, match="a saved tuning must be"):
            tuning.TuneResult.from_json(text)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_records_are_json_and_say_that_a_seed_is_not_private(share):
    mechanism = dpci.OutputPerturbation(project=True)
    candidates = [{"l2_strength": np.float64(0.1), "mechanism": mechanism}, {"l2_strength": 1.0, "loss": "hinge"}]
    keywords = {"validation_loss": dpci.losses.Hinge(), "moments": "none", "mechanism": "output"}
    result = tune(candidates=candidates, selection_share=share, **keywords)
    saved = json.loads(result.to_json())
    model = saved["fit"] or saved["model"]
    assert model["params"] == result.result.params.tolist()
    assert result.privacy["conditions"][0].startswith("none: the noise is seeded") or share < 1.0
    assert not model["private"]
    assert not result.private
    assert "NOT PRIVATE" in result.summary()
    assert "NOT PRIVATE" in repr(result)
    assert any("duration" in condition for condition in result.privacy["conditions"])


def test_a_file_lists_the_candidates():
    result = tune(candidates=[{"l2_strength": 0.05}, {"l2_strength": 0.2}], classes=(False, True), seed=None)
    values = json.loads(result.to_json())
    listed = values["selection"]["candidates"]
    assert listed == [{"l2_strength": 0.05}, {"l2_strength": 0.2}]
    assert listed[result.index] == values["params"]
    place = ("the first of 2 candidates", "the second of 2 candidates")[result.index]
    assert result.selection.place == place
    assert f"repeat, {place}" in result.summary()
    text = result.officer_report()
    assert "| candidates | `l2_strength=0.05`, `l2_strength=0.2` |" in text
    assert f"chosen with noise, {place} |" in text
    assert "| `radius, common to all candidates` | `4` | **none stated**" in text
    assert "the list of candidates (which of them was chosen is released with privacy)" in text
    assert ", over the ball ‖parameters‖ ≤ 4" in text
    for changed, message in (
        ([{"l2_strength": 3.0}, {"l2_strength": 4.0}], "params must be the chosen candidate of the list"),
        ([{"l2_strength": 0.05}], "candidates must be as many as n_candidates=2, got 1"),
        ({}, "candidates must be a list of objects"),
    ):
        values["selection"]["candidates"] = changed
        with pytest.raises(InvalidInput, match=message):
            tuning.TuneResult.from_json(rewritten(values))
