"""The laws of private tuning: against a second implementation, published accounting, brute force and an audit."""

import numpy as np
import pytest
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from scipy import stats

import dpci
from dpci import _core
from dpci.losses import Hinge, HuberHinge, Logistic, Squared
from support.audit import epsilon_of
from support.keywords import assembled
from support.tuning import (
    SCORE_SHARE,
    TwoCandidates,
    antipodal_params,
    chunks_again,
    model_scales,
    repeat_again,
    simulate,
    small_rows,
    tuning_spec,
)

FALSE_POSITIVES = 1e-6
GRID = [{"l2_strength": 0.1, "radius": 1.0}, {"l2_strength": 1.0, "radius": 0.5}, {"l2_strength": 10.0, "radius": 2.0}]


@pytest.mark.parametrize("method", ["chunks", "repeat"])
def test_choices_and_models_have_the_law_of_a_second_implementation(method):
    x, y = small_rows()
    epsilon, n_runs = 12.0, 4000
    spec = tuning_spec(len(y), GRID, dpci.PureDP(epsilon), method)
    indexes, params = simulate(spec, x, y, n_runs, seed=1)
    rng = np.random.default_rng(2)
    if method == "chunks":
        scales = model_scales(spec, 3, epsilon)
        again = [chunks_again(x, y, GRID, epsilon, scales, rng) for _ in range(n_runs)]
    else:
        scales = model_scales(spec, 3, (1 - SCORE_SHARE) * epsilon / 3.0)
        again = [repeat_again(x, y, GRID, epsilon, scales, rng, expected_runs=6) for _ in range(n_runs)]
    other, values = (np.array(part) for part in zip(*again, strict=True))
    counts = [np.bincount(found, minlength=3) for found in (indexes, other)]
    assert np.min(counts) > 100  # all candidates are chosen, so that their odds are tested
    tests = [stats.chi2_contingency(counts).pvalue, stats.ks_2samp(params[:, 0], values).pvalue]
    assert min(tests) > FALSE_POSITIVES / 2


def test_the_second_implementation_is_told_from_a_wrong_one():
    # The power of the test above: half the noise in the scores is noticed.
    x, y = small_rows()
    spec = tuning_spec(len(y), GRID, dpci.PureDP(12.0), "repeat")
    indexes, _ = simulate(spec, x, y, 4000, seed=1)
    rng = np.random.default_rng(2)
    scales = model_scales(spec, 3, (1 - SCORE_SHARE) * 4.0)
    wrong = [repeat_again(x, y, GRID, 12.0, scales, rng, expected_runs=6, score_share=0.5)[0] for _ in range(4000)]
    counts = [np.bincount(found, minlength=3) for found in (indexes, wrong)]
    assert stats.chi2_contingency(counts).pvalue < FALSE_POSITIVES


@pytest.mark.parametrize("shape", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("mean", [3.0, 30.0])
@pytest.mark.parametrize("rho", [1e-3, 0.05, 1.0])
def test_best_of_runs_costs_what_dp_accounting_says(shape, mean, rho):
    count = _core.Testing.run_count(shape, mean)
    orders = 1.0 + np.geomspace(1e-2, 1e4, 400)
    accountant = RdpAccountant(orders=list(orders))
    event = dp_event.RepeatAndSelectDpEvent(dp_event.ZCDpEvent(rho), mean, shape)
    accountant.compose(event)
    for delta in (1e-3, 1e-8):
        epsilon = accountant.get_epsilon(delta)
        # Ours is the infimum over all orders: no greater, and no less than a fine grid can tell.
        assert count.delta(epsilon, rho) <= delta * (1 + 1e-9)
        assert count.delta(epsilon * (1 - 2e-3), rho) > delta
        inverse = count.run_rho(epsilon, delta)
        assert rho * (1 - 1e-9) <= inverse < rho * 1.01


@pytest.mark.parametrize("mean", [6.0, 30.0, 72.0])
@pytest.mark.parametrize("shape", [0.0, 1.0])
def test_under_zcdp_pure_runs_may_spend_more_than_the_renyi_bound_allows(shape, mean):
    count = _core.Testing.run_count(shape, mean)
    orders = 1.0 + np.geomspace(1e-3, 1e4, 2000)
    for rho in np.geomspace(1e-4, 10.0, 40):
        run = count.run_epsilon(dpci.ZCDP(rho).pure_within().epsilon)
        # Divergences grow with the order, so the least bound of all orders holds near order 1: above rho already.
        assert min(count.rdp(order, run * np.tanh(run / 2)) for order in orders) > rho


def worst_change(loss, reach, targets):
    """Greatest change of the loss of one record among predictors of size ``reach`` and these targets, by search."""
    u, y = (grid.ravel() for grid in np.meshgrid(np.linspace(-reach, reach, 401), targets))
    values = loss.to_core().evaluate(np.ascontiguousarray(u), np.ascontiguousarray(y))[0]
    # At fixed parameters a record can be replaced by any other, and reach any predictor.
    return values.max() - values.min()


@pytest.mark.parametrize("method", ["chunks", "repeat"])
@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (Squared(0.5), np.linspace(-0.5, 0.5, 21)),
        (Logistic(), [-1.0, 1.0]),
        (Hinge(), [-1.0, 1.0]),
        (HuberHinge(h=0.5), [-1.0, 1.0]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_sensitivity_of_a_score_is_attained(method, loss, targets):
    n, radii = 50, (0.5, 1.5)
    candidates = [{"l2_strength": 0.5, "radius": radius} for radius in radii]
    spec = tuning_spec(n, candidates, dpci.PureDP(5.0), method, loss=loss, rows=2.0, intercept=0.5)
    facts = spec.facts()
    n_scored = facts["chunk_sizes"][-1] if method == "chunks" else n
    reach = np.hypot(2.0, 0.5) * max(radii)
    ratio = worst_change(loss, reach, targets) / n_scored / facts["score_sensitivity"]
    assert 0.999 < ratio <= 1.0


def test_a_record_touches_the_model_of_its_part_alone():
    x, y = small_rows()
    candidates = [{"l2_strength": 1.0, "radius": 3.0}] * 4
    spec = tuning_spec(len(y), candidates, dpci.PureDP(50.0), "chunks")
    changed = x.copy(), y.copy()
    changed[0][17], changed[1][17] = -x[17], -y[17] / 2
    first, second = (simulate(spec, *rows, 5000, seed=4) for rows in ((x, y), changed))
    same = first[0] == second[0]
    differ = (first[1] != second[1]).any(axis=1) & same
    # The parts do not look at the records: the winner's is one of five, and holds the changed record so often.
    assert stats.binomtest(int(differ.sum()), int(same.sum()), 0.2).pvalue > FALSE_POSITIVES


@pytest.mark.parametrize(("method", "least"), [("repeat", 0.1), ("chunks", 0.25)])
def test_an_attacker_stays_under_the_claim(method, least):
    budget = dpci.PureDP(2.0)
    scores = antipodal_params(budget, method, n_runs=20_000, seed=5)
    found = epsilon_of(*scores)
    assert least * budget.epsilon < found <= budget.epsilon


def leaks(budget):
    """Privacy losses of the choice alone, and of the choice with the parameter, by their exact laws."""
    attack = TwoCandidates(budget)
    ours, theirs = attack.law(1.0), attack.law(-1.0)
    return np.abs(np.log(np.divide(ours, theirs)))


def test_exact_laws_of_the_choice_stay_under_the_claim_and_show_a_forgotten_factor():
    # With scales that the library calibrates; that it draws from them is tested above.
    claim = 3.0
    index, both = leaks(dpci.PureDP(claim))
    assert index <= claim
    assert 0.5 * claim < both <= claim
    # What runs would spend that did not divide by 2 + η: the choice alone gives it away, and its model even twice.
    assert leaks(dpci.PureDP(3 * claim))[0] > claim
    assert leaks(dpci.PureDP(2 * claim))[1] > claim


def test_the_attacked_candidates_have_the_minimisers_of_their_law():
    attack = TwoCandidates(dpci.PureDP(1e12))
    for y in (1.0, -1.0):
        targets = np.r_[y, np.full(attack.n - 1, attack.targets)]
        for number, candidate in enumerate(attack.candidates):
            keywords = {"mechanism": "output", "moments": "none", "intercept": False, "seed": 1, **candidate}
            found = dpci.fit(np.ones((attack.n, 1)), targets, **assembled(budget=dpci.PureDP(1e12), **keywords))
            # The noise of the seal is beyond 20 standard deviations with probability 1e-11.
            (seal,) = found.privacy["seal"]["releases"]
            allowed = 1e-9 + seal["distance"] + 20.0 * seal["std_dev"]
            assert found.params[0] == pytest.approx(attack.minimiser(number, y), abs=allowed)


def test_a_raw_score_would_break_the_claim():
    # What the noise in the score is for: the best of many runs of noise that is small beside the claim, without it.
    rng = np.random.default_rng(7)
    n_runs, n_models, epsilon = 20_000, 400, 0.5
    best = []
    for target in (1.0, -1.0):
        models = np.clip(rng.laplace(scale=1.0 / epsilon, size=(n_runs, n_models)), -1.0, 1.0)
        best.append(models[np.arange(n_runs), np.argmin((models - target) ** 2, axis=1)])
    assert epsilon_of(*best) > 3 * epsilon
