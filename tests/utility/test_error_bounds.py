"""Bounds on the error of output perturbation: their arithmetic, persons and weights, and errors that are measured."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import binom

import dpci
from dpci.errors import InvalidInput
from support.keywords import assembled
from support.seal import left_of

SQUARED = dpci.losses.Squared()
KNOWN = {"n_samples": 2_000, "n_features": 3, "budget": dpci.PureDP(1.0), "l2_strength": 0.1, "intercept": False}
BALL = {**KNOWN, "loss": SQUARED, "radius": 1.0}
# Sensitivity of the minimiser: the diameter of the gradients on the unit ball over n lambda.
SENSITIVITY = 3.0 * math.sqrt(3.0) / 200.0
# Of the noise, which the seal leaves a little less than epsilon = 1.
SCALE = SENSITIVITY / left_of(1.0)
# Of the logistic loss: that of two gradients at norms of at most the root of .278/lambda, .607 of 2/(n lambda).
FREE = dpci.plan(**assembled(**KNOWN, mechanism="output", moments="none")).steps[0].sensitivity
# A loss for which it is 2/(n lambda).
STRAIGHT = {**KNOWN, "loss": dpci.losses.HuberHinge(h=0.5)}
PROJECTED = dpci.OutputPerturbation(project=True)


def bound(**keywords):
    return dpci.utility.bound(**assembled(**{"mechanism": "output", **keywords}))


# The norm of the noise.


@pytest.mark.parametrize("failure", [0.5, 0.05, 1e-6])
def test_quantile_of_spherical_laplace(failure):
    found = bound(of="training", failure_probability=failure, **BALL)
    rate = 1.0 / SCALE
    # The radius has density r^(d-1) exp(-rate r), d = 3.
    beyond, _ = quad(lambda r: rate**3 * r**2 * np.exp(-rate * r) / 2.0, found.noise_norm, np.inf, epsabs=1e-14)
    assert beyond == pytest.approx(failure, rel=1e-4)


def test_quantile_of_the_gaussian():
    plan = dpci.plan(**assembled(**{**BALL, "budget": dpci.ZCDP(0.5)}, mechanism="output", moments="none"))
    found = bound(of="training", failure_probability=0.05, **{**BALL, "budget": dpci.ZCDP(0.5)})
    scale = plan.steps[0].scale
    expected = scale * math.sqrt(stats.chi2.isf(0.05, 3)) + plan.tolerance
    assert found.noise_norm == pytest.approx(expected, rel=1e-9)
    assert scale == pytest.approx(SENSITIVITY / math.sqrt(left_of(1.0)), rel=1e-9)


# Arithmetic of the theorems, spelled out.


def test_training_error_of_a_smooth_loss():
    found = bound(of="training", **KNOWN)
    kappa = found.noise_norm
    assert found.value == pytest.approx((0.25 + 0.1) * kappa**2 / 2, rel=1e-3)
    assert found.theorem == "Lemma 22"
    # Quantile of a Gamma law.
    assert pytest.approx(0.00607, rel=1e-3) == FREE
    assert kappa == pytest.approx(FREE / left_of(1.0) * stats.gamma.isf(0.05, 3), rel=1e-5)


@pytest.mark.parametrize("projected", [True, False])
def test_theorems_on_a_ball(projected):
    mechanism = PROJECTED if projected else "output"
    of = {
        name: bound(of=name, failure_probability=0.1, mechanism=mechanism, **BALL)
        for name in ("training", "empirical", "regularized", "population")
    }
    for found in of.values():
        kappa = found.noise_norm
        slope = 4.0 if projected else 2.0 * (1.0 + kappa + 1.0)
        second = 0.0 if projected else kappa**2 / 2
        assert found.slope_bound == pytest.approx(slope, rel=1e-9)
        lipschitz = slope * kappa
        noise = {"training": lipschitz + 0.1 * (kappa + second), "empirical": lipschitz}
        noise |= {"regularized": noise["training"], "population": lipschitz}
        assert found.terms["noise"] == pytest.approx(noise[found.of], rel=1e-9)
        assert found.value == sum(found.terms.values())
    assert of["empirical"].terms["regularization"] == of["population"].terms["regularization"] == 0.05
    for name in ("regularized", "population"):
        left = 0.1 - stats.gamma.sf(of[name].noise_norm / SCALE, 3)
        assert of[name].terms["generalization"] == pytest.approx(4 * SENSITIVITY / left, rel=1e-4)
        assert "generalization" not in of["training"].terms
    # The failure probability is shared for the least sum: no other share does better.
    for share in np.linspace(0.001, 0.099, 50):
        kappa = SCALE * stats.gamma.isf(share, 3)
        slope = 4.0 if projected else 2.0 * (2.0 + kappa)
        other = slope * kappa + 4 * SENSITIVITY / (0.1 - share) + 0.05
        assert of["population"].value <= other * (1 + 1e-6)


def test_the_solver_may_be_off():
    found = bound(of="training", **KNOWN)
    plan = dpci.plan(**assembled(**KNOWN, mechanism="output", moments="none"))
    beyond = found.noise_norm - plan.steps[0].scale * stats.gamma.isf(0.05, 3)
    assert beyond == pytest.approx(plan.tolerance, rel=1e-3)
    assert plan.tolerance > 1e-9


def test_curvature_is_that_of_where_the_model_is():
    # The Huber hinge is straight near zero and bent where the minimiser may be, up to 1/lambda.
    loss = dpci.losses.HuberHinge(h=0.5)
    assert loss.to_core().sup_curvature(0.0) == 0.0
    found = bound(of="training", loss=loss, **KNOWN)
    assert found.value == pytest.approx((1.0 + 0.1) * found.noise_norm**2 / 2, rel=1e-9)


def test_great_noise_is_bounded_by_the_slope():
    found = bound(of="training", **{**KNOWN, "n_samples": 10, "budget": dpci.PureDP(0.1)})
    kappa = found.noise_norm
    by_slope, by_curvature = kappa + 0.1 * (10 * kappa + kappa**2 / 2), (0.25 + 0.1) * kappa**2 / 2
    assert by_slope < by_curvature / 2
    assert found.value == pytest.approx(by_slope, rel=1e-9)


@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_generalization_replaces_a_record_whatever_the_relation(neighbors):
    # The noise is for a record more or less, half as far; the second sample has other records, not fewer.
    ways = {**KNOWN, "of": "regularized", "neighbors": neighbors, "failure_probability": 0.1}
    found, plan = bound(**ways), bound(of="training", neighbors=neighbors, **KNOWN)
    scale = plan.noise_norm / stats.gamma.isf(0.05, 3)
    assert scale == pytest.approx((FREE if neighbors == "replace_one" else 0.005) / left_of(1.0), rel=1e-4)
    left = 0.1 - stats.gamma.sf(found.noise_norm / scale, 3)
    # Slope 1; the sensitivity to replacing a record is 2 / (n lambda) where the number of records is private.
    stability = FREE if neighbors == "replace_one" else 0.01
    assert found.terms["generalization"] == pytest.approx(stability / left, rel=1e-3)


def test_a_known_rate():
    found = bound(rate=(0.2, 0.02), failure_probability=0.05, mechanism=PROJECTED, **BALL)
    assert found.theorem == "Theorem 18"
    assert found.value == pytest.approx(0.2 + 4 * SCALE * stats.gamma.isf(0.03, 3), rel=1e-5)


def test_scaling():
    # Four times the records: a fourth of the noise, and of the generalization error.
    few, many = (bound(of="regularized", mechanism=PROJECTED, **{**BALL, "n_samples": n}) for n in (5_000, 20_000))
    assert few.value == pytest.approx(4 * many.value, rel=1e-4)
    # Half of lambda doubles the sensitivity.
    weak = bound(of="training", **{**STRAIGHT, "l2_strength": 0.05})
    assert weak.noise_norm == pytest.approx(2 * bound(of="training", **STRAIGHT).noise_norm, rel=1e-5)
    added = bound(of="training", neighbors="add_remove", **STRAIGHT)
    assert added.noise_norm == pytest.approx(bound(of="training", **STRAIGHT).noise_norm / 2, rel=1e-5)
    assert "the number of records is n_public" in added.assumes


def test_the_text_says_what_it_is():
    text = bound(**BALL).summary()
    for part in (
        "population risk above its least value on the ball of radius 1\n",
        "Theorem 21",
        "at most",
        "independent draws",
        "probability 0.05",
    ):
        assert part in text
    assert repr(bound(**BALL)) == text
    assert "regularised empirical risk above its least value of all\n" in bound(of="training", **KNOWN).summary()
    assert "empirical risk above its least value on the ball of radius 1\n" in bound(of="training", **BALL).summary()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"of": "test"}, "of must be one of"),
        ({"failure_probability": 0.0}, "failure_probability"),
        ({"failure_probability": math.nan}, "failure_probability"),
        ({"n_samples": 0}, "n_samples"),
        ({"mechanism": "objective"}, "bounds require output perturbation"),
        ({"radius": None, "loss": "logistic"}, "radius must be given with of='population'"),
        ({"radius": None}, "radius"),
        ({"rate": (0.1, 0.05)}, r"rate\[1\] must be >= 0 and below"),
        ({"rate": (-0.1, 0.01)}, r"rate\[0\]"),
        ({"rate": (math.nan, 0.01)}, r"rate\[0\]"),
        ({"rate": 0.1}, "rate must be a sequence of 2"),
        ({"rate": (0.1, 0.01), "of": "training"}, "rate must be None unless of='population'"),
        ({"l2_strength": -1.0}, "l2_strength"),
        ({"neighbors": dpci.AddRemove(1_000)}, "n_public must equal n_samples=2000, .* got n_public=1000"),
        ({"neighbors": "swap"}, "neighbors must be 'replace_one' or"),
    ],
)
def test_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        bound(**{**BALL, **change})


def square(u, y):
    return (u - y) ** 2


def double(u, y):
    return 2.0 * (u - y)


def two(u, _y):
    return np.full_like(u, 2.0)


def test_other_losses():
    # No second derivative: first order alone, the reach of the minimiser being 1/lambda.
    hinge = bound(of="training", **KNOWN, loss=dpci.losses.Hinge())
    kappa = hinge.noise_norm
    assert hinge.value == pytest.approx(kappa + 0.1 * (10 * kappa + kappa**2 / 2))
    bounded = {"slope_bound": 4.0, "curvature_bound": 2.0, "target_bounds": (-1.0, 1.0), "predictor_bound": 1.0}
    custom = {**BALL, "loss": dpci.losses.Custom(square, double, two, **bounded)}
    with pytest.raises(InvalidInput, match=r"bounds hold up to predictors of 1 requires .*project=True"):
        bound(of="training", **custom)
    projected = bound(of="training", mechanism=PROJECTED, **custom)
    assert projected.slope_bound == 4.0
    # Declared strong convexity stands in for the regulariser.
    strong = dpci.losses.Custom(square, double, two, strong_convexity=2.0, **bounded)
    ways = {"n_samples": 2_000, "n_features": 1, "intercept": False, "budget": dpci.PureDP(1.0), "radius": 1.0}
    found = bound(mechanism=PROJECTED, loss=strong, l2_strength=0.0, **ways)
    assert found.terms["regularization"] == 0.0
    moved = 2 * 4 / (2_000 * 2.0)
    for_noise = 0.05 - 4 * moved / found.terms["generalization"]
    assert found.noise_norm == pytest.approx(moved / left_of(1.0) * stats.gamma.isf(for_noise, 1), rel=1e-4)


def test_missing_and_unknown_keywords():
    with pytest.raises(TypeError, match="'l2_strength'"):
        bound(n_samples=10, n_features=1, budget=dpci.PureDP(1.0))
    with pytest.raises(TypeError, match="sed"):
        bound(**BALL, sed=1)


# Against errors measured on a known population.

N_REPEATS = 80
FAILURE = 0.3


def population():
    """Sixty equally likely records of norm at most 1: every population risk is a plain mean."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    X /= np.linalg.norm(X, axis=1)[:, None] * rng.uniform(1.0, 2.0, size=(60, 1))
    y = np.clip(X @ [0.9, -0.5, 0.3] + rng.normal(scale=0.3, size=60), -1.0, 1.0)
    return X, y


def best_on_the_ball(value, radius, *, jac=None):
    ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w, "jac": lambda w: -2.0 * w}
    return minimize(value, np.zeros(3), jac=jac, constraints=[ball], method="SLSQP", options={"ftol": 1e-12}).fun


def excesses(loss, radius, *, project, n=400, epsilon=2.0, l2_strength=0.05, seeds=range(N_REPEATS)):
    """Measured excesses of each risk, in repeats of sampling and noise."""
    X, y = population()
    targets = y if loss is SQUARED else np.where(y > 0, 1.0, -1.0)
    core = loss.to_core()

    def risk(w, rows):
        return core.evaluate(np.ascontiguousarray(X[rows] @ w), targets[rows])[0].mean()

    def best(rows, strength=0.0):
        """The least risk on the ball, by its gradient too."""

        def objective(w):
            value, slope, _ = core.evaluate(np.ascontiguousarray(X[rows] @ w), targets[rows])
            return value.mean() + strength / 2 * w @ w, slope @ X[rows] / len(rows) + strength * w

        return best_on_the_ball(objective, radius or 10.0, jac=True)

    everyone = np.arange(60)
    floor = {"population": best(everyone), "regularized": best(everyone, l2_strength)}
    found = {name: [] for name in ("training", "empirical", *floor)}
    for seed in seeds:
        rows = np.random.default_rng([7, seed]).integers(60, size=n)
        common = {"l2_strength": l2_strength, "loss": loss, "radius": radius, "intercept": False, "moments": "none"}
        mechanism = dpci.OutputPerturbation(project=project)
        fit = dpci.fit(
            X[rows], targets[rows], **assembled(budget=dpci.PureDP(epsilon), mechanism=mechanism, seed=seed, **common)
        )
        w, square = fit.params, l2_strength / 2 * (fit.params @ fit.params)
        exact = dpci.lowlevel.minimize_erm(
            X[rows], targets[rows], loss=loss, l2_strength=l2_strength, radius=radius, tolerance=1e-8
        ).params
        least = risk(exact, rows) + l2_strength / 2 * (exact @ exact)
        found["training"].append(risk(w, rows) + square - least)
        found["regularized"].append(risk(w, everyone) + square - floor["regularized"])
        found["population"].append(risk(w, everyone) - floor["population"])
        found["empirical"].append(risk(w, rows) - best(rows))
    keywords = {**common, "budget": dpci.PureDP(epsilon), "n_samples": n, "n_features": 3, "mechanism": mechanism}
    return {name: np.array(values) for name, values in found.items()}, keywords


CASES = {
    "squared on a ball": (SQUARED, 1.0, False),
    "squared, projected": (SQUARED, 1.0, True),
    "squared, active": (SQUARED, 0.2, True),
    "logistic": (dpci.losses.Logistic(), None, False),
}


@pytest.mark.parametrize("name", CASES)
def test_bounds_are_not_exceeded_more_often_than_they_say(name):
    loss, radius, project = CASES[name]
    measured, keywords = excesses(loss, radius, project=project)
    for of, values in measured.items():
        if radius is None and of in {"empirical", "population"}:
            continue
        stated = bound(of=of, failure_probability=FAILURE, **keywords)
        # Where .3 is the truth, more come one time in a million, which is a false alarm.
        limit = stats.binom.isf(1e-6, N_REPEATS, FAILURE)
        assert np.sum(values > stated.value) <= limit, of
        # A bound below the typical error would be found.
        assert stated.value > np.median(values) > 0
        # Nothing is better than the best, but outside the ball something may be.
        assert values.min() > -1e-9 or not (project or radius is None)


@pytest.mark.parametrize("of", ["training", "regularized"])
def test_the_least_value_is_that_on_the_ball(of):
    # The ball is in the way of the best parameters of all, and there is hardly any noise.
    X, y = (np.tile(part, (100_000 // 60, *[1] * (part.ndim - 1))) for part in population())
    keywords = {"l2_strength": 0.05, "loss": SQUARED, "intercept": False}
    ball = {**keywords, "radius": 0.2, "budget": dpci.PureDP(1e6)}
    fit = dpci.fit(X, y, **assembled(mechanism="output", moments="none", seed=1, **ball))
    stated = bound(of=of, n_samples=len(y), n_features=3, failure_probability=0.5, **ball)
    assert stated.radius == 0.2

    # The rows are whole copies of the population, so that risks of both are the same.
    def risk(w):
        return np.mean((X @ w - y) ** 2) + 0.025 * w @ w

    best_of_all = np.linalg.solve(2 * X.T @ X / len(y) + 0.05 * np.eye(3), 2 * X.T @ y / len(y))
    assert np.linalg.norm(best_of_all) > 0.4
    assert -1e-6 < risk(fit.params) - best_on_the_ball(risk, 0.2) <= stated.value
    assert risk(fit.params) - risk(best_of_all) > 3 * stated.value


def test_the_norm_of_the_noise_is_a_quantile_and_no_more():
    # The only part that is exact: the share of norms beyond it is the failure probability.
    X, y = population()
    keywords = {"l2_strength": 0.1, "loss": SQUARED, "radius": 1.0, "intercept": False, "budget": dpci.PureDP(1.0)}
    exact = dpci.lowlevel.minimize_erm(X, y, loss=SQUARED, l2_strength=0.1, radius=1.0).params
    stated = bound(of="training", n_samples=60, n_features=3, failure_probability=FAILURE, **keywords)
    beyond = sum(
        np.linalg.norm(
            dpci.fit(X, y, **assembled(mechanism="output", moments="none", seed=seed, **keywords)).params - exact
        )
        > stated.noise_norm
        for seed in range(1_000)
    )
    # Two-sided, one false alarm in a million.
    assert stats.binom.ppf(5e-7, 1_000, FAILURE) <= beyond <= stats.binom.isf(5e-7, 1_000, FAILURE)


def test_the_half_of_lemma_22_is_attained():
    # Equal rows of norm 1 and the squared loss: the objective is a parabola of the curvature that the bound allows.
    loss, X, y = dpci.losses.Squared(target_bound=0.5), np.ones((50, 1)), np.full(50, 0.5)
    keywords = {"l2_strength": 0.1, "loss": loss, "radius": 1.0, "intercept": False}
    exact = dpci.lowlevel.minimize_erm(X, y, loss=loss, l2_strength=0.1, radius=1.0).params
    fit = dpci.fit(X, y, **assembled(budget=dpci.PureDP(1.0), mechanism="output", moments="none", seed=1, **keywords))

    def risk(w):
        return loss.to_core().evaluate(X @ w, y)[0].mean() + 0.05 * w @ w

    half = (loss.to_core().curvature_bound + 0.1) * np.sum((fit.params - exact) ** 2) / 2
    assert risk(fit.params) - risk(exact) == pytest.approx(half, rel=1e-6)


ASKED = {"n_samples": 3000, "n_features": 4, "budget": dpci.PureDP(1.0), "l2_strength": 0.05}
RISKS = ("training", "empirical", "regularized", "population")


@pytest.mark.parametrize("of", RISKS)
def test_records_that_count_one_have_the_bound_of_rows(of):
    plain = bound(of=of, radius=1.0, **ASKED)
    for unit in (
        {"persons": dpci.Persons()},
        {"persons": dpci.Persons(max_rows=3)},
        {"weights": dpci.Weights(bound=3.0, total=9000.0)},
        {"persons": dpci.Persons(), "weights": dpci.Weights(bound=1.0)},
    ):
        found = bound(of=of, radius=1.0, **ASKED, **unit)
        assert found.value == pytest.approx(plain.value, rel=1e-12)
        is_of_persons = "persons" in unit and of in {"regularized", "population"}
        assert ("persons are independent" in found.assumes[0]) is is_of_persons
    found = bound(of=of, neighbors="add_remove", persons=dpci.Persons(max_rows=2), radius=1.0, **ASKED)
    assert found.assumes[-1] == "the number of persons is n_public"


def test_weights_multiply_what_records_count():
    """The half of Lemma 22 with a curvature W/N times as great for each record."""
    found = bound(of="training", weights=dpci.Weights(bound=3.0), intercept=False, **ASKED)
    assert found.value == pytest.approx(0.5 * (3.0 * 0.25 + 0.05) * found.noise_norm**2, rel=1e-12)
    with pytest.raises(dpci.InvalidInput, match="weights must have no values"):
        bound(weights=dpci.Weights([1.0], bound=3.0), **ASKED)


def test_the_bound_of_weighted_persons_is_attained():
    """Rows of both classes at the end of the ball, of the greatest weight: the loss is most curved at 0."""
    n, runs, strength = 50, 400, 2.0
    keywords = {"budget": dpci.PureDP(4.0), "l2_strength": strength, "intercept": False, "mechanism": "output"}
    stated = bound(
        n_samples=n, n_features=1, of="training", failure_probability=0.5, persons=dpci.Persons(),
        weights=dpci.Weights(bound=2.0, total=60.0), **keywords,
    )  # fmt: skip
    X, y, persons = np.ones((2 * n, 1)), np.tile([-1, 1], n), np.repeat(np.arange(n), 2)
    counts = {"persons": persons, "weights": dpci.Weights(np.full(2 * n, 2.0), bound=2.0, total=60.0)}
    above = 0
    for seed in range(runs):
        theta = dpci.fit(X, y, **assembled(classes=(-1, 1), moments="none", seed=seed, **counts, **keywords)).params[0]
        losses = np.logaddexp(0.0, -y * theta)
        excess = 2.0 * losses.sum() / (2.0 * 60.0) - 2.0 * n * np.log(2.0) / 60.0 + 0.5 * strength * theta**2
        above += excess > stated.value
    # By the curvature's fall away from 0 and the room for rounding a little less than half.
    assert binom.sf(above - 1, runs, 0.5) > 1e-6
    assert binom.cdf(above, runs, 0.45) > 1e-6
