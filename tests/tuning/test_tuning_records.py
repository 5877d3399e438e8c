"""Results of a tuning: the winner without intervals, records of the guarantee, files and pickles."""

import json
import math
import pickle

import numpy as np
import pytest

import dpci
from dpci import tuning
from dpci.errors import InvalidInput
from support.keywords import assembled
from support.saved import rewritten
from support.tuning import X, Y, tune

METHODS = ["repeat", "chunks"]


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
            candidates=[{"l2_strength": 1e-5}],
            method=method,
            selection_share=1.0,
            mechanism=mechanism,
            seed=seed,
            **keywords,
        )
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
        plan = {
            "budget": budget,
            "l2_strength": 1e-5,
            "moments": "none",
            "mechanism": mechanism,
            "intercept": False,
        }
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
        (
            lambda v: v["selection"].update(score_sensitivity=-1.0),
            "score_sensitivity must be finite and > 0",
        ),
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
