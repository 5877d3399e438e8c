"""Audits as a tool: bounds against exact laws, their coverage, canned cases under their claims, and what is refused."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import audit
from dpci.audit.bounds import Event, delta_at, epsilon_at, lower_bound, probability_bounds, rho
from dpci.audit.cases import FitCase, fit_scores
from dpci.audit.catalogue import all_cases
from dpci.errors import InvalidInput

# One false alarm in a million.
CONFIDENCE = 1.0 - 1e-6
SEED = 50
BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.5), "approx": dpci.ApproxDP(1.0, 0.01)}
# Here 4,000 runs find half the noise in 37 of the cases; with half these budgets in 30.
CANNED = {"pure": dpci.PureDP(2.0), "zcdp": dpci.ZCDP(1.0), "approx": dpci.ApproxDP(2.0, 0.01)}

PURE = epsilon_at(0.0)


def bound(first, second, invert=PURE, quantity="epsilon", at=0.0, confidence=CONFIDENCE, **more):
    return lower_bound(first, second, invert, quantity=quantity, at=at, confidence=confidence, **more)


def test_probability_bounds_invert_binomial_tails():
    """At the bounds the counts are as unlikely as the error allows, by SciPy's exact tails."""
    alpha = 1.0 - CONFIDENCE
    for n, hits in ((10, 3), (1000, 999), (5000, 0), (5000, 5000), (200, 1)):
        least, greatest = (float(x) for x in probability_bounds(np.array(hits), np.array(hits), n, CONFIDENCE))
        assert 0.0 <= least <= hits / n <= greatest <= 1.0
        if hits > 0:
            assert math.isclose(stats.binom.sf(hits - 1, n, least), alpha / 2, rel_tol=1e-6)
        if hits < n:
            assert math.isclose(stats.binom.cdf(hits, n, greatest), alpha / 2, rel_tol=1e-6)
    assert probability_bounds(np.array(0), np.array(10), 10, CONFIDENCE) == (0.0, 1.0)


def test_bounds_hold_as_often_as_they_say():
    """Randomised response at the edge: of 400 audits at confidence 80% no more fail, by a binomial test of 1e-6."""
    rng = np.random.default_rng(1)
    truth = np.exp(1.0) / (1.0 + np.exp(1.0))
    answers = (rng.uniform(size=(400, 2, 200)) < np.array([truth, 1.0 - truth])[:, None]).astype(float)
    failures = sum(bound(*pair, confidence=0.8).value > 1.0 for pair in answers)
    assert failures < stats.binom.isf(1e-6, 400, 0.2)
    # They are not vacuous: most come near the truth.
    assert np.median([bound(*pair, confidence=0.8).value for pair in answers[:100]]) > 0.5


def test_bounds_of_known_mechanisms():
    """Near the truth and below: randomised response, whose rho is epsilon tanh(epsilon / 2), and a Gaussian."""
    rng, n = np.random.default_rng(SEED), 200_000
    truth = np.exp(1.0) / (1.0 + np.exp(1.0))
    answers = (rng.uniform(size=(2, n)) < np.array([[truth], [1.0 - truth]])).astype(float)
    assert 0.95 < bound(*answers).value <= 1.0
    assert 0.95 < bound(*answers[::-1]).value <= 1.0
    assert 0.92 * np.tanh(0.5) < bound(*answers, rho, "rho").value <= np.tanh(0.5)
    shifted = rng.standard_normal((2, n)) + np.array([[1.0], [0.0]])
    assert 0.5 * 0.5 < bound(*shifted, rho, "rho").value <= 0.5
    for epsilon in (0.5, 1.0):
        exact = stats.norm.cdf(0.5 - epsilon) - np.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon)
        found = bound(*shifted, delta_at(epsilon), "delta", epsilon)
        assert 0.6 * exact < found.value <= exact
        assert 0.6 * epsilon < bound(*shifted, epsilon_at(exact), "epsilon", exact).value <= epsilon


def test_nothing_is_found_where_nothing_is():
    same = np.random.default_rng(SEED).standard_normal((2, 20_000))
    assert bound(*same).value < 0.2
    assert bound(*same, rho, "rho").value < 0.01
    assert bound(*same, delta_at(0.0), "delta").value < 0.05
    assert bound(same[0], same[0]).value == 0.0


def test_vectors_are_told_apart_along_the_best_direction():
    rng = np.random.default_rng(SEED)
    # A difference of 2 standard deviations along (1, -1), hidden by a common term in each coordinate.
    common = 10.0 * rng.standard_normal((2, 40_000, 1))
    outputs = common + np.array([1.0, 1.0]) + rng.standard_normal((2, 40_000, 2))
    outputs[1, :, 0] += math.sqrt(8.0)
    found = bound(*outputs)
    ratio = found.event.weights[0] / found.event.weights[1]
    assert -1.1 < ratio < -0.9
    assert found.value > 2.0
    axes = bound(outputs[0][:, :1], outputs[1][:, :1])
    assert axes.value < 0.5


def test_the_event_is_a_function_of_one_output():
    rng = np.random.default_rng(SEED)
    outputs = rng.standard_normal((1001, 3))
    event = Event(likelier_on="D", above=True, threshold=0.1, weights=(0.3, -0.7, 0.2))
    alone = [event.holds(outputs[i : i + 1])[0] for i in range(1001)]
    assert (event.holds(outputs) == alone).all()
    assert "more likely on D" in str(event)


def test_callables_are_audited_and_claims_refuted():
    rng = np.random.default_rng(SEED)
    # Half of the noise that epsilon = 1 needs.
    found = audit.epsilon_lower_bound(lambda x: x + rng.laplace(scale=0.5), 0.0, 1.0, n_runs=20_000)
    assert 1.5 < found.value <= 2.0
    assert found.refutes(dpci.PureDP(1.0))
    assert not found.refutes(dpci.PureDP(2.0))
    assert found.refutes(dpci.ApproxDP(1.0, 1e-3))
    assert not found.refutes(dpci.ApproxDP(1.0, 0.5))
    assert not found.refutes(dpci.ZCDP(2.0 * np.tanh(1.0)))
    assert found.private is False
    assert float(found) == found.value
    with pytest.raises(InvalidInput, match="claim must be given"):
        found.refutes()
    vector = audit.epsilon_lower_bound(
        lambda x: [rng.standard_normal(), x + rng.laplace()], 0.0, 1.0, n_runs=5000, claim=dpci.PureDP(1.0)
    )
    assert 0.5 < vector.value <= 1.0
    assert not vector.refutes()
    delta = audit.delta_lower_bound(lambda x: x + rng.standard_normal(), 0.0, 3.0, epsilon=1.0, n_runs=4000)
    assert 0.5 < delta.value < 1.0
    assert delta.quantity == "delta"
    assert audit.rho_lower_bound(lambda x: x + rng.standard_normal(), 0.0, 1.0, n_runs=4000).value <= 0.5


def test_the_complement_of_an_event_refutes_as_well():
    rng = np.random.default_rng(SEED)
    # Certain on D, and on D2 as good as: what tells them apart is that it fails to come on D2 alone.
    first, second = np.ones(20_000), (rng.uniform(size=20_000) < 0.99).astype(float)
    found = bound(first, second, delta_at(0.0), "delta", 0.0, claim=dpci.PureDP(1.0))
    assert found.refutes()
    assert not found.refutes(dpci.ApproxDP(1.0, 0.02))


@pytest.mark.parametrize("case", all_cases(CANNED), ids=lambda case: case.title)
def test_canned_cases_stay_under_their_claims(case):
    """4,000 runs on each side, confidence 1 - 1e-6."""
    quantity = audit.rho_lower_bound if case.budget.notion == "zcdp" else audit.epsilon_lower_bound
    delta = {"delta": 0.01} if case.budget.notion == "approx" else {}
    found = quantity(case, n_runs=4000, confidence=CONFIDENCE, seed=SEED, **delta)
    assert found.claim == case.budget
    assert not found.refutes()
    assert np.isfinite(found.value)


EXTREME = [
    *(dpci.PureDP(epsilon) for epsilon in (1e-3, 0.1, 20.0)),
    *(dpci.ZCDP(rho) for rho in (1e-5, 0.1, 200.0)),
    *(dpci.ApproxDP(epsilon, delta) for epsilon, delta in ((0.01, 1e-9), (0.1, 1e-6), (20.0, 1e-9))),
]


@pytest.mark.parametrize("budget", EXTREME, ids=str)
def test_every_case_takes_small_and_large_budgets(budget):
    cases = all_cases({budget.notion: budget})
    assert len(cases) > 15
    for case in cases:
        assert np.isfinite(case.simulate(n_runs=10, seed=SEED)).all(), case.title


@pytest.mark.parametrize("name", ["objective", "objective_cms11", "output"])
def test_cases_of_small_budgets_are_still_the_worst(name):
    """The log-ratio of the densities is within epsilon, and mostly close to one end or the other."""
    budget = dpci.PureDP(0.05)
    scores = np.array(audit.worst_case(name, budget=budget).simulate(n_runs=5_000, seed=SEED))
    assert np.abs(scores).max() <= budget.epsilon
    assert np.abs(scores).mean() > 0.9 * budget.epsilon


def test_canned_cases_repeat_on_any_number_of_threads():
    case = audit.worst_case("whole_fit", budget=dpci.PureDP(1.0))
    runs = [case.simulate(n_runs=1000, seed=3, n_threads=threads) for threads in (1, 2)]
    assert (np.array(runs[0]) == np.array(runs[1])).all()
    assert (case.simulate(n_runs=10, seed=4)[0] != runs[0][0][:10]).any()


def test_report_prints_all_and_can_be_read_back():
    seen = []
    found = audit.report(
        mechanisms=("output", "histogram"), n_runs=2000, seed=1, confidence=CONFIDENCE, progress=seen.append
    )
    assert [bound.name for bound in seen] == [bound.name for bound in found.bounds]
    assert len(found.bounds) == 12
    assert found.refuted == ()
    assert found.private is False
    text = found.summary()
    assert "NOT PRIVATE" in text
    assert "histogram, zCDP, add/remove" in text
    assert "seed 1" in text
    loaded = json.loads(found.to_json())
    assert loaded["private"] is False
    assert loaded["bounds"][0]["refuted"] is False
    assert loaded["bounds"][0]["claim"] == {"notion": "pure", "epsilon": 1.0}
    one = json.loads(found.bounds[0].to_json())
    assert one["value"] == found.bounds[0].value
    assert one["event"]["likelier_on"] in {"D", "D2"}
    assert "Audit. NOT PRIVATE" in repr(found.bounds[0])


CASE = audit.worst_case("output", budget=dpci.PureDP(1.0))
REFUSED = [
    (lambda: audit.worst_case("nothing", budget=dpci.PureDP(1.0)), "mechanism must be one of"),
    (lambda: audit.worst_case("output", budget=1.0), "budget must be"),
    (lambda: audit.worst_case("report", budget=dpci.PureDP(1.0)), "takes a budget of notion approx"),
    (
        lambda: audit.worst_case("hinge", budget=dpci.PureDP(1.0), neighbors="add_remove"),
        "takes neighbors='replace_one'",
    ),
    (lambda: audit.worst_case("output", budget=dpci.PureDP(1.0), neighbors="x"), "neighbors must be one of"),
    (lambda: audit.epsilon_lower_bound(CASE, n_runs=3), "n_runs must be at least 4"),
    (lambda: audit.epsilon_lower_bound(CASE, n_runs=10, confidence=1.0), "confidence must be > 0 and < 1"),
    (lambda: audit.epsilon_lower_bound(CASE, n_runs=10, delta=1.0), "delta must be >= 0 and < 1"),
    (lambda: audit.epsilon_lower_bound(CASE, n_runs=10, delta=math.nan), "delta must be >= 0 and < 1"),
    (lambda: audit.epsilon_lower_bound(CASE, 1, n_runs=10), "which has its own data sets"),
    (lambda: audit.epsilon_lower_bound("output", n_runs=10), "draw must be a function"),
    (lambda: audit.epsilon_lower_bound(float, 1, 2, n_runs=10, seed=1), "seed must be None with a function as draw"),
    (lambda: audit.epsilon_lower_bound(str, 1, "x", n_runs=10), "outputs must be numbers"),
    (lambda: audit.epsilon_lower_bound(lambda _: math.nan, 1, 2, n_runs=10), "outputs must not be NaN"),
    (lambda: audit.epsilon_lower_bound(lambda x: [0.0] * x, 1, 2, n_runs=10), "outputs must have one length"),
    (lambda: audit.delta_lower_bound(CASE, epsilon=-1.0, n_runs=10), "epsilon must be finite and >= 0"),
    (lambda: audit.delta_lower_bound(CASE, epsilon=701.0, n_runs=10), "epsilon must be at most 700"),
    (lambda: audit.epsilon_lower_bound(lambda _: 10**400, 1, 2, n_runs=4), "in the range of floats, got a int"),
    (lambda: audit.epsilon_lower_bound(lambda _: 1j, 1, 2, n_runs=4), "real and in the range"),
    (lambda: audit.epsilon_lower_bound(lambda _: np.array([1j, 0]), 1, 2, n_runs=4), "real and in the range"),
    (lambda: audit.epsilon_lower_bound(lambda _: [10**30, 1j], 1, 2, n_runs=4), "real and in the range"),
    (lambda: audit.epsilon_lower_bound(lambda _: "1.5", 1, 2, n_runs=4), "outputs must be numbers"),
    (lambda: audit.report(budgets=dpci.PureDP(1.0)), "budgets must be a sequence"),
    (lambda: audit.report(mechanisms=5), "mechanisms must be a sequence"),
    (lambda: audit.report(mechanisms="seal"), "mechanisms must be a sequence"),
    (lambda: audit.report(budgets=[], n_runs=10), "budgets must hold"),
    (lambda: audit.report(budgets=[dpci.PureDP(1.0)] * 2, n_runs=10), "budgets must hold"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refusals(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


def test_integers_beyond_64_bits_are_numbers():
    found = audit.epsilon_lower_bound(lambda x: 10**30 * x, 1, 2, n_runs=400)
    assert found.value > 3.0


def test_extreme_outputs_are_no_error():
    for first, second in ((math.inf, 0.0), (math.inf, -math.inf), (1e308, -1e308), (0.0, 0.0)):
        found = audit.epsilon_lower_bound(lambda x: [x, 0.0], first, second, n_runs=400)
        assert (found.value > 3.0) == (first != second)
        assert math.isfinite(found.event.threshold)
        assert "Infinity" not in found.to_json()


@pytest.mark.parametrize(
    ("name", "neighbors"),
    [
        ("moments_separate", "add_remove"),
        ("moments_joint", "add_remove"),
        ("moments_separate", "replace_one"),
        ("whole_fit", "replace_one"),
        ("whole_fit_output", "replace_one"),
    ],
)
def test_a_score_is_one_function_of_an_output(name, neighbors):
    """Else the attack would know the data set from the other outputs that it scores."""
    case = audit.worst_case(name, budget=dpci.PureDP(1.0), neighbors=neighbors)
    outputs = np.array(list(case.outputs(case.first, n_runs=50, seed=1)))
    scores = fit_scores(case.settings, case.spec, case.first, case.second, outputs)
    for start in range(1, 50, 7):
        np.testing.assert_array_equal(
            fit_scores(case.settings, case.spec, case.first, case.second, outputs[start:]), scores[start:]
        )


def test_a_run_that_fails_is_an_outcome():
    """Failures on one data set alone leave no finite epsilon; as many on both leave the mechanism its own."""
    rng = np.random.default_rng(SEED)

    def fails_on(*data):
        def draw(given):
            if given in data and rng.uniform() < 0.5:
                raise dpci.NotConverged("of a test")
            return rng.laplace(scale=2.0)

        return draw

    settings = {"n_runs": 4000, "confidence": CONFIDENCE, "claim": dpci.PureDP(1.0)}
    found = audit.epsilon_lower_bound(fails_on(1), 0, 1, **settings)
    assert found.refutes()
    assert found.value > 4.0
    assert (found.event.likelier_on, found.event.weights) == ("D2", (0.0, 1.0))
    assert not audit.epsilon_lower_bound(fails_on(0, 1), 0, 1, **settings).refutes()

    def always(given):
        raise ValueError(f"no result on {given}")

    with pytest.raises(ValueError, match="no result on 0"):
        audit.epsilon_lower_bound(always, 0, 1, n_runs=4)
    only_one = audit.epsilon_lower_bound(lambda given: 1.0 if given else always(given), 0, 1, **settings)
    assert only_one.refutes()


def test_runs_of_the_core_that_fail_are_outcomes():
    """A custom loss that fails at one record: no run is dropped, and the claim of the fit is refuted."""

    def refusing(u, y):
        if np.any(y == 0.777):
            raise ValueError("of a test")
        return u - y

    loss = dpci.losses.Custom(
        lambda u, y: 0.5 * (u - y) ** 2, refusing, lambda u, _: np.ones_like(u), slope_bound=3.0, curvature_bound=1.0,
        target_bounds=(-1.0, 1.0), predictor_bound=2.0,
    )  # fmt: skip
    keywords = {"loss": loss, "l2_strength": 1.0, "mechanism": dpci.OutputPerturbation(moments="none", radius=1.0)}

    class Case(FitCase):
        def scores(self, outputs):
            return outputs[:, 0]

    X = np.full((4, 1), 0.5)
    case = Case(
        name="a fit that fails", budget=BUDGETS["pure"], neighbors="replace_one",
        first=(X, np.array([0.5, 0.1, 0.2, 0.3])), second=(X, np.array([0.777, 0.1, 0.2, 0.3])), keywords=keywords,
    )  # fmt: skip
    found = audit.epsilon_lower_bound(case, n_runs=400, confidence=CONFIDENCE, seed=SEED)
    assert found.refutes()
    assert found.hits == found.n_measured == 200
