"""Plans of multinomial fits: cost and noise are those of the fit, and lengths those of an earlier one."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput

N = 4000
rng = np.random.default_rng(2)
X = rng.uniform(-0.5, 0.5, (N, 2))
Y = (np.column_stack([np.zeros(N), 3 * X[:, 0], 3 * X[:, 1]]) + rng.gumbel(size=(N, 3))).argmax(axis=1)

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.SeededNoiseWarning")


@pytest.mark.parametrize("budget", [dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6)])
@pytest.mark.parametrize("relation", [{}, {"neighbors": "add_remove"}])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_plan_is_that_of_the_fit(budget, relation, mechanism):
    asked = {"budget": budget, "classes": [0, 1, 2], "l2_strength": 0.02, "mechanism": mechanism, **relation}
    found = dpci.multinomial.plan(n_samples=N, n_features=2, **asked)
    public = {"neighbors": dpci.AddRemove(N)} if relation else {}
    fitted = dpci.multinomial.fit(X, Y, **{**asked, **public}, seed=1)
    assert found.n_params == len(fitted.params)
    assert [step.to_dict() for step in found.steps] == fitted.privacy["steps"]
    points = [0.1, 1.0]
    assert (found.guarantee.delta(points) == fitted.guarantee.delta(points)).all()
    assert (found.least_l2_strength > 0.0) == (mechanism == "objective")
    assert found.recommended_l2_strength is None


def test_the_usual_mechanism_follows_from_the_budget():
    for budget, name in (
        (dpci.PureDP(2.0), "objective"),
        (dpci.ZCDP(0.5), "output"),
        (dpci.ApproxDP(2.0, 1e-6), "objective"),
    ):
        found = dpci.multinomial.plan(n_samples=N, n_features=2, budget=budget, classes=[0, 1, 2], l2_strength=0.02)
        assert f"{name} perturbation" in found.title


def test_the_noise_is_that_of_releases():
    asked = {"budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    sds = dpci.multinomial.plan(n_samples=N, n_features=2, **asked).noise_std_devs
    many = [dpci.multinomial.fit(X, Y, **asked, seed=seed).params for seed in range(400)]
    # The standard deviation of 2400 numbers has a relative error of 1.5%; 5 of them have a rate of 6e-7.
    spread = np.sqrt(np.var(many, axis=0, ddof=1).mean())
    assert abs(spread / sds[0] - 1.0) < 5 * 0.0145
    assert len(set(sds)) == 1


def test_an_earlier_fit_predicts_lengths():
    asked = {"budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    like = dpci.multinomial.fit(X, Y, **asked, seed=5)
    for n in (N, 4 * N):
        found = dpci.multinomial.plan(n_samples=n, n_features=2, like=like, **asked)
        times = n // N
        lengths = [
            dpci.multinomial.fit(np.tile(X, (times, 1)), np.tile(Y, times), **asked, seed=seed).conf_int().length.mean()
            for seed in range(20)
        ]
        np.testing.assert_allclose(found.interval_length, np.mean(lengths), rtol=0.1)
        assert f"{found.interval_length:.4g} on average" in found.summary()
    assert found.title.startswith("Plan: multinomial loss of 3 classes, output perturbation")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"classes": [0, 1]}, "at least three"),
        ({"classes": None}, "at least three"),
        ({"n_features": None}, "n_features must be given"),
        ({"n_samples": 0}, "n_samples"),
        ({"l2_strength": 0.0}, "l2_strength"),
        ({"like": "model.json"}, "MultinomialFit"),
        ({"neighbors": dpci.AddRemove(N + 1)}, "n_public"),
    ],
)
def test_what_is_refused(change, match):
    asked = {"n_samples": N, "n_features": 2, "budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    with pytest.raises(InvalidInput, match=match):
        dpci.multinomial.plan(**{**asked, **change})


def test_an_earlier_fit_must_have_as_many_classes():
    asked = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.02}
    # Both have six parameters.
    like = dpci.multinomial.fit(X[:, :1], Y, classes=[0, 1, 2, 3], seed=1, **asked)
    assert len(like.params) == 6
    with pytest.raises(InvalidInput, match="as many classes"):
        dpci.multinomial.plan(n_samples=N, n_features=2, classes=[0, 1, 2], like=like, **asked)
