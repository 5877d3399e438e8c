"""Lengths of intervals that a plan predicts from an earlier fit."""

from dataclasses import replace

import numpy as np
import pytest

import dpci
from dpci.losses import Squared
from support.keywords import assembled

LIKE = {"l2_strength": 0.01, "classes": (-1, 1)}
ROWS = {"n_samples": 2000, "n_features": 6}


@pytest.fixture(scope="module")
def halves():
    sample = dpci.datasets.load_adult_sample()
    return (sample.X[::2], sample.y[::2]), (sample.X[1::2], sample.y[1::2])


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", [dpci.PureDP(3.0), dpci.ZCDP(0.5)], ids=["pure", "zcdp"])
@pytest.mark.filterwarnings(*(f"ignore::dpci.{name}Warning" for name in ("MomentNoise", "SeededNoise", "PrivacyLeak")))
def test_the_predicted_length_is_that_of_a_study_of_other_rows(halves, budget, mechanism):
    (X, y), (other_X, other_y) = halves
    keywords = {"budget": budget, "mechanism": mechanism, **LIKE}
    study = dpci.simulate.coverage(other_X, other_y, n_replicates=100, n_variability=0, seed=1, **keywords)
    for reference, allowed in ((dpci.PureDP(1e6), 0.1), (budget, 0.15)):
        like = dpci.fit(X, y, seed=0, **{**keywords, "budget": reference})
        planned = dpci.plan(**ROWS, like=like, **keywords)
        assert planned.interval_length == pytest.approx(study.mean_length, rel=allowed)
        again = dpci.plan(**ROWS, like=dpci.PrivateFit.from_json(like.to_json()), **keywords)
        assert again.interval_length == planned.interval_length
        assert f"{planned.interval_length:.4g} on average" in planned.summary()


def test_without_an_earlier_fit_no_length_is_predicted():
    planned = dpci.plan(**ROWS, budget=dpci.PureDP(1.0), l2_strength=0.01)
    assert planned.interval_length is None
    assert "on average" not in planned.summary()


def test_an_earlier_fit_of_another_kind_is_refused(halves):
    (X, y), _ = halves
    like = dpci.fit(X, y, budget=dpci.PureDP(3.0), **LIKE)
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.01}

    def refused(match, **changed):
        with pytest.raises(dpci.InvalidInput, match=match):
            dpci.plan(**assembled(**{**ROWS, **keywords, "like": like, **changed}))

    refused("must be a PrivateFit, got str", like="earlier")
    refused('got moments="none"', moments="none")
    refused("number of parameters of the plan, 6, got 7", n_features=5)
    refused("row norm of the plan, 2.0, got 1.0", rows=2.0)
    refused("loss of the plan", loss=Squared(target_bound=1.0), radius=1.0)
    refused(
        "must be a fit with intervals",
        like=dpci.fit(X, y, **assembled(budget=dpci.PureDP(3.0), moments="none", **LIKE)),
    )


def test_an_earlier_fit_of_the_ball_serves_a_plan_of_blocks_and_other_blocks_are_refused(halves):
    (X, y), _ = halves
    keywords = {"budget": dpci.PureDP(3.0), **LIKE}
    blocks = dpci.rows.Blocks([1.0] * 4 + [0.5] * 2)
    like = dpci.fit(X, y, **keywords, rows=blocks.norm * (1.0 + 1e-13))
    planned = dpci.plan(**ROWS, **keywords, rows=blocks, like=like)
    assert planned.interval_length < dpci.plan(**ROWS, **keywords, rows=blocks.norm, like=like).interval_length
    of_blocks = dpci.fit(X, y, **keywords, rows=dpci.rows.Clipped(blocks))
    other = dpci.rows.Blocks([0.5] * 2 + [1.0] * 4)
    with pytest.raises(dpci.InvalidInput, match="like must have the blocks of the plan"):
        dpci.plan(**ROWS, **keywords, rows=other, like=of_blocks)


def test_a_plan_names_the_intercept_where_it_has_more_noise():
    def planned(rows, **others):
        keywords = {"n_samples": 5_000, "n_features": 4, "l2_strength": 0.01, **others}
        return dpci.plan(**assembled(budget=dpci.PureDP(1.0), rows=rows, **keywords))

    blocks = planned(dpci.rows.Blocks([0.5] * 4))
    ratio = blocks.noise_std_devs[-1] / max(blocks.noise_std_devs[:-1])
    assert ratio == pytest.approx(2.0)
    # Without an intercept that has more noise, the greatest length is that of the columns.
    alike = planned(dpci.rows.Blocks([0.5] * 4), intercept=0.5)
    assert alike.column_length == alike.privacy_length[1]
    scale = max(blocks.noise_std_devs[:-1]) / max(alike.noise_std_devs)
    assert blocks.column_length == pytest.approx(alike.privacy_length[1] * scale, rel=1e-3)
    assert "the upper number is for the intercept; at most about 0.33 for the others" in blocks.summary()
    assert "the upper number" not in planned(dpci.rows.Ball(1.0)).summary()
    assert planned(dpci.rows.Ball(1.0)).column_length == planned(dpci.rows.Ball(1.0)).privacy_length[1]
    # No interval is longer than the ball.
    assert planned(dpci.rows.Blocks([0.5] * 4), radius=0.01).column_length == 0.02


WEIGHTS = np.random.default_rng(2).exponential(size=4000).clip(max=4.0)
PERSONS = np.arange(4000) // 4  # of each half a person has two rows


@pytest.mark.parametrize("counts", ["weights", "persons", "both"])
@pytest.mark.parametrize("budget", [dpci.PureDP(3.0), dpci.ZCDP(0.5)], ids=["pure", "zcdp"])
@pytest.mark.filterwarnings(*(f"ignore::dpci.{name}Warning" for name in ("MomentNoise", "SeededNoise", "PrivacyLeak")))
def test_the_predicted_length_with_weights_and_persons_is_that_of_a_study_of_other_rows(halves, budget, counts):
    (X, y), (other_X, other_y) = halves
    keywords, bound = {"budget": budget, **LIKE}, {} if counts == "persons" else {"weights": dpci.Weights(bound=4.0)}
    weights = [{name: replace(one, values=WEIGHTS[part::2]) for name, one in bound.items()} for part in range(2)]
    persons = [{} if counts == "weights" else {"persons": PERSONS[part::2]} for part in range(2)]
    study = dpci.simulate.coverage(
        other_X, other_y, n_replicates=100, n_variability=0, seed=1, **keywords, **weights[1], **persons[1]
    )
    like = dpci.fit(X, y, seed=0, **{**keywords, "budget": dpci.PureDP(1e6)}, **weights[0], **persons[0])
    unit = {"n_samples": 2000} if counts == "weights" else {"n_samples": 1000, "persons": dpci.Persons()}
    planned = dpci.plan(**{**ROWS, **unit}, like=like, **keywords, **bound)
    assert planned.interval_length == pytest.approx(study.mean_length, rel=0.1)


def test_what_weights_are_called_does_not_change_the_predicted_length(halves):
    # Weights of mean 1, or ones that add up to a population from which twice as many are asked.
    (X, y), _ = halves
    weights, keywords = WEIGHTS[::2], {"budget": dpci.PureDP(1e6), "seed": 0, **LIKE}
    with pytest.warns(dpci.SeededNoiseWarning):
        ones = dpci.fit(X, y, weights=dpci.Weights(weights, bound=4.0), **keywords)
    with pytest.warns(dpci.SeededNoiseWarning):
        people = dpci.fit(X, y, weights=dpci.Weights(500.0 * weights, bound=2000.0, total=1e6), **keywords)
    asked = {"n_samples": 4000, "n_features": 6, "budget": dpci.PureDP(1e6), **LIKE}
    expected = dpci.plan(like=ones, weights=dpci.Weights(bound=4.0), **asked).interval_length
    for like, public in (
        (people, {"weights": dpci.Weights(bound=4.0)}),
        (ones, {"weights": dpci.Weights(bound=1000.0, total=1e6)}),
        (people, {"weights": dpci.Weights(bound=1000.0, total=1e6)}),
        (ones, {"weights": dpci.Weights(bound=8.0)}),  # other noise, of which there is none to speak of
    ):
        assert dpci.plan(like=like, **public, **asked).interval_length == pytest.approx(expected, rel=1e-3)
    fewer = dpci.plan(like=ones, weights=dpci.Weights(bound=4.0), **{**asked, "n_samples": 1000}).interval_length
    assert fewer == pytest.approx(2.0 * expected, rel=0.01)


# Its noise is real, and can hide the curvature of persons.
@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_an_earlier_fit_of_another_unit_or_without_weights_is_refused(halves):
    (X, y), _ = halves
    keywords = {"budget": dpci.PureDP(3.0), **LIKE}
    unit = {"persons": dpci.Persons()}
    of_rows, of_persons = dpci.fit(X, y, **keywords), dpci.fit(X, y, persons=PERSONS[::2], **keywords)
    weighted = dpci.fit(X, y, weights=dpci.Weights(WEIGHTS[::2], bound=4.0), **keywords)
    for like, public, match in (
        (of_rows, unit, r"unit of privacy of the plan, a person \(the mean of each person's rows\), got a row"),
        (of_persons, {}, "unit of privacy of the plan, a row, got a person"),
        (of_persons, {"persons": dpci.Persons(max_rows=2)}, "unit of privacy of the plan"),
        (weighted, {}, "weights of the plan, None, got from 0 to 4"),
        (of_rows, {"weights": dpci.Weights(bound=4.0)}, "weights of the plan, from 0 to 4, got None"),
    ):
        with pytest.raises(dpci.InvalidInput, match=match):
            dpci.plan(**ROWS, **keywords, like=like, **public)
