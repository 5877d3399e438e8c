"""Lengths of intervals that a plan predicts from an earlier fit."""

import pytest

import dpci
from dpci.losses import Squared

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
            dpci.plan(**{**ROWS, **keywords, "like": like, **changed})

    refused("must be a PrivateFit, got str", like="earlier")
    refused('got moments="none"', moments="none")
    refused("number of parameters of the plan, 6, got 7", n_features=5)
    refused("row norm of the plan, 2.0, got 1.0", row_norm=2.0)
    refused("loss of the plan", loss=Squared(target_bound=1.0), radius=1.0)
    refused("must be a fit with intervals", like=dpci.fit(X, y, budget=dpci.PureDP(3.0), moments="none", **LIKE))


def test_an_earlier_fit_of_the_ball_serves_a_plan_of_blocks_and_other_blocks_are_refused(halves):
    (X, y), _ = halves
    keywords = {"budget": dpci.PureDP(3.0), **LIKE}
    blocks = dpci.rows.Blocks([1.0] * 4 + [0.5] * 2)
    like = dpci.fit(X, y, **keywords, row_norm=blocks.norm * (1.0 + 1e-13))
    planned = dpci.plan(**ROWS, **keywords, rows=blocks, like=like)
    assert planned.interval_length < dpci.plan(**ROWS, **keywords, row_norm=blocks.norm, like=like).interval_length
    of_blocks = dpci.fit(X, y, **keywords, rows=blocks, on_violation="clip")
    other = dpci.rows.Blocks([0.5] * 2 + [1.0] * 4)
    with pytest.raises(dpci.InvalidInput, match="like must have the blocks of the plan"):
        dpci.plan(**ROWS, **keywords, rows=other, like=of_blocks)


def test_a_plan_names_the_intercept_where_it_has_more_noise():
    def planned(rows):
        return dpci.plan(n_samples=5_000, n_features=4, budget=dpci.PureDP(1.0), l2_strength=0.01, rows=rows)

    blocks = planned(dpci.rows.Blocks([0.5] * 4))
    ratio = blocks.noise_std_devs[-1] / max(blocks.noise_std_devs[:-1])
    assert ratio == pytest.approx(2.0)
    assert "the upper number: the intercept, with 2 times the noise of the others" in blocks.summary()
    assert "the upper number" not in planned(dpci.rows.Ball(1.0)).summary()
