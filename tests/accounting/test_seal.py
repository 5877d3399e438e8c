"""The seal as results show it: its lattice and cost in records, guarantees, intervals, and damaged records."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci import _core
from dpci.budgets import core_budget
from dpci.errors import InvalidInput
from dpci.inference.intervals import ErrorLaw
from support import per_instance, seal
from support.core import specified
from support.fits import N, make_rows
from support.keywords import assembled
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
X, Y = make_rows()
BUDGETS = [dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(1.0, 1e-6)]
MOMENTS = {"joint": ["params", "hessian", "gradient_cov"], "separate": ["params", "hessian", "gradient_cov"]}
MOMENTS["none"] = ["params"]
by_budget = pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: b.notion)
by_mechanism = pytest.mark.parametrize("mechanism", ["objective", "output"])


def fit(**keywords):
    return dpci.fit(X, Y, **assembled(**{"budget": BUDGETS[0], "l2_strength": 0.02, "seed": 5, **keywords}))


def rho(cost):
    """Cost of discrete Gaussian noise in zero-concentrated privacy."""
    return cost["rho"] if "rho" in cost else _core.approx_to_zcdp(**cost, calibration="tight")


def steps_apart(sealed, dim):
    """How far two computations of one ideal vector may lie apart after rounding, in L1 or L2 and in steps."""
    apart, root = 2.0 * sealed["distance"] / sealed["lattice"], math.sqrt(dim)
    return root * apart + dim if sealed["noise"] == "discrete_laplace" else apart + root


def on_lattice(values, lattice):
    # Where the numbers of f64 are themselves as coarse as the lattice, nothing would be shown.
    shown = np.ravel(values)[4.0 * np.spacing(np.abs(np.ravel(values))) <= lattice]
    assert len(shown) > 2
    return bool((shown / lattice % 1.0 == 0.0).all())


# What the record says.


@by_budget
@by_mechanism
@pytest.mark.parametrize("moments", MOMENTS)
def test_records_name_lattice_noise_and_cost(budget, mechanism, moments):
    result = fit(budget=budget, mechanism=mechanism, moments=moments)
    releases = result.privacy["seal"]["releases"]
    assert [sealed["release"] for sealed in releases] == MOMENTS[moments]
    assert json.loads(result.to_json())["seals"] == releases
    assert result.privacy["seal"]["failure_probability"] == 2.0**-960
    k = len(result.params)
    for sealed in releases:
        dim = k if sealed["release"] == "params" else k * (k + 1) // 2
        # The lemma of docs/proofs/program.md, with its own numbers: enough noise, no more than rounding up makes of it.
        assert math.frexp(sealed["lattice"])[0] == 0.5
        assert sealed["distance"] / (2.0 * math.sqrt(dim)) < sealed["lattice"] <= sealed["distance"] / math.sqrt(dim)
        cost, pure = sealed["cost"], budget.notion == "pure"
        assert sealed["noise"] == ("discrete_laplace" if pure else "discrete_gaussian")
        least = steps_apart(sealed, dim) / (cost["epsilon"] if pure else math.sqrt(2.0 * rho(cost)))
        assert least <= sealed["scale"] <= least * (1.0 + 1e-12) + 1.0
        width = sealed["scale"] * sealed["lattice"] * (math.sqrt(2.0) if pure else 1.0)
        assert sealed["std_dev"] == pytest.approx(width, rel=1e-12)


@by_budget
@by_mechanism
@pytest.mark.parametrize("moments", MOMENTS)
def test_seals_cost_a_thousandth_in_equal_shares_and_nothing_is_left(budget, mechanism, moments):
    result = fit(budget=budget, mechanism=mechanism, moments=moments)
    releases = result.privacy["seal"]["releases"]
    for name, whole in budget.parameters().items():
        assert seal.total(releases)[name] == pytest.approx(1e-3 * whole, rel=1e-13)
        assert seal.total(releases)[name] <= 1e-3 * whole
        assert len({sealed["cost"][name] for sealed in releases}) == 1
    assert result.spent == result.budget == budget
    if budget.notion != "approx":
        (whole,) = budget.parameters().values()
        ((_, seals),) = seal.total(releases).items()
        steps = sum(step["cost"] for step in result.privacy["steps"])
        assert whole * (1.0 - 1e-14) <= steps + seals <= whole


def test_plans_and_summaries_show_the_seal():
    keywords = {"budget": BUDGETS[1], "l2_strength": 0.02, "moments": "none"}
    planned, result = dpci.plan(**assembled(n_samples=N, n_features=3, **keywords)), fit(**assembled(**keywords))
    assert [sealed.to_dict() for sealed in planned.seals] == result.privacy["seal"]["releases"]
    for text in (str(planned), result.summary(full=True)):
        assert f"rho 0.0005, discrete gaussian noise on multiples of {planned.seals[0].lattice:.3g}" in text


# What is released lies on the lattice.


@by_budget
@by_mechanism
def test_params_are_multiples_of_the_lattice(budget, mechanism):
    result = fit(budget=budget, mechanism=mechanism)
    lattice = result.privacy["seal"]["releases"][0]["lattice"]
    assert on_lattice(result.params, lattice)
    # The values themselves are not, so the test can fail.
    assert not on_lattice(dpci.lowlevel.minimize_erm(X, 2 * Y - 1, l2_strength=0.02).params, lattice)


@pytest.mark.parametrize("budget", [dpci.PureDP(1.0), dpci.ZCDP(0.5)], ids=lambda b: b.notion)
def test_counts_of_a_histogram_are_multiples_of_the_lattice(budget):
    spec = specified(
        _core.HistogramSpec, axes=[([j], np.linspace(-0.5, 0.5, 5).tolist()) for j in range(3)], n_columns=3,
        targets=[-1.0, 1.0], loss=_core.Loss("squared", 1.0), l2_strength=0.1, budget=core_budget(budget),
    )  # fmt: skip
    found = _core.release(spec, _core.Records(X, 2.0 * Y - 1.0), on_violation="clip", n_threads=1, seed=3)
    (sealed,) = found["seals"]
    assert on_lattice(found["counts"], sealed.lattice)
    assert sealed.lattice <= 1.0
    assert abs(found["counts"].sum() - N) < 40.0 * found["steps"][0].scale * math.sqrt(250)


def test_derivatives_of_a_report_are_multiples_of_their_lattices():
    rows, targets = per_instance.make_rows(200)
    report = per_instance.report(rows, targets)
    releases = report.result.privacy["seal"]["releases"]
    assert [sealed["release"] for sealed in releases] == ["params", "gradient", "hessian"]
    for values, sealed in zip((report.result.params, report.gradient, report.hessian), releases, strict=True):
        assert on_lattice(values, sealed["lattice"])


# The guarantee counts it.


@pytest.mark.parametrize("moments", ["joint", "none"])
def test_the_guarantee_covers_all_gaussians_and_seals(moments):
    """Squared ratios of Gaussians add: the steps' and the seals' own, from their records, by Balle & Wang 2018."""
    budget = BUDGETS[2]
    result = fit(budget=budget, mechanism="output", moments=moments)
    releases, k = result.privacy["seal"]["releases"], len(result.params)
    ratios = [step["sensitivity"] / step["scale"] for step in result.privacy["steps"]]
    dims = {"params": k, "hessian": k * (k + 1) // 2, "gradient_cov": k * (k + 1) // 2}
    sealing = [steps_apart(sealed, dims[sealed["release"]]) / sealed["scale"] for sealed in releases]
    mu = math.hypot(*ratios, *sealing)
    # Every part counts in what is claimed, and at the budget there is nothing left.
    assert result.guarantee.delta(budget.epsilon) == pytest.approx(budget.delta, rel=1e-9)
    assert result.guarantee.delta(budget.epsilon) <= budget.delta
    for epsilon in (0.2, 0.5, 1.0, 2.0):
        ahead, behind = stats.norm.cdf(mu / 2 - epsilon / mu), stats.norm.logcdf(-mu / 2 - epsilon / mu)
        assert ahead - math.exp(epsilon + behind) <= result.guarantee.delta(epsilon)
        assert result.guarantee.delta(epsilon) >= seal.total(releases)["delta"]
    claimed = sum(ratio**2 for ratio in ratios) / 2.0 + sum(rho(sealed["cost"]) for sealed in releases)
    for order in (1.5, 8.0, 64.0):
        assert order * mu**2 / 2.0 <= result.guarantee.rdp(order) == pytest.approx(order * claimed, rel=1e-12)


def test_an_epsilon_below_that_of_the_seals_has_a_delta():
    """Where the seals alone may cost more, delta is that of the other direction, and still a bound that falls."""
    guarantee = fit(budget=BUDGETS[2], mechanism="output").guarantee
    epsilons = np.array([0.0, 1e-4, 5e-4, 0.999e-3, 1.001e-3, 2e-3])
    deltas = guarantee.delta(epsilons)
    assert (np.diff(deltas) < 0.0).all()
    assert np.abs(np.diff(deltas) / np.diff(epsilons)).max() < 1.0 + 1e-3
    mu = guarantee.mu
    total_variation = 2.0 * stats.norm.cdf(mu / 2.0) - 1.0
    assert total_variation < deltas[0] < total_variation + 1.1e-3


def test_the_guarantee_of_a_baseline_counts_its_seals():
    budget = BUDGETS[2]
    result = dpci.baselines.functional_mechanism(X, 2.0 * Y - 1.0, budget=budget, seed=1)
    sealing = seal.total(result.privacy["seal"]["releases"])
    assert result.guarantee.delta(budget.epsilon) == pytest.approx(budget.delta, rel=1e-9)
    assert result.guarantee.delta(30.0) == pytest.approx(sealing["delta"], rel=1e-9)


# Intervals count it.


@by_budget
@by_mechanism
def test_intervals_count_the_variance_of_the_seal(budget, mechanism):
    result = fit(budget=budget, mechanism=mechanism, projection="floor")
    step = result.privacy["steps"][0]
    core = _core.ErrorLaw.plug_in(result.hessian, result.gradient_cov, N, mechanism)
    without = sum(ErrorLaw(core.sampling, core.noise, 0.0, step["noise"], step["scale"]).parts(np.eye(len(core.noise))))
    added = result.std_errors**2 - np.diag(without)
    np.testing.assert_allclose(added, seal.std_dev(result) ** 2, rtol=1e-6)
    off = ~np.eye(len(without), dtype=bool)
    np.testing.assert_array_equal(result.cov[off], without[off])
    # For the same specification the seal lengthens intervals by far less than a thousandth: no noise in this number.
    v, a = _core.error_components(result.hessian, result.gradient_cov, N, mechanism, np.eye(len(without)))
    law = _core.ErrorShape(step["noise"], step["scale"], len(without))
    plain, sealed = (law.half_widths(v + more, a, 0.95) for more in (0.0, seal.std_dev(result) ** 2))
    np.testing.assert_allclose(result.conf_int().length, 2.0 * sealed, rtol=1e-12)
    assert (sealed > plain).all()
    assert (sealed / plain < 1.0 + 1e-4).all()


@by_mechanism
@pytest.mark.filterwarnings("ignore::dpci.PrivacyLeakWarning")
def test_sealed_intervals_are_as_long_as_those_of_studies(mechanism):
    """On resampled rows, as a study takes them; the difference of the means has a standard error below 0.02%."""
    keywords = {"budget": dpci.ZCDP(20.0), "l2_strength": 0.2, "mechanism": mechanism, "projection": "floor"}
    keywords["split"] = (0.9, 0.05, 0.05)
    study = dpci.simulate.coverage(X, Y, **assembled(n_replicates=4000, n_variability=0, seed=8, **keywords))
    rng, lengths = np.random.default_rng(9), []
    for seed in range(1500):
        rows = rng.integers(N, size=N)
        lengths.append(
            dpci.fit(X[rows], Y[rows], **assembled(classes=(0, 1), seed=seed, **keywords)).conf_int().length.mean()
        )
    error = np.std(lengths) * math.hypot(1 / math.sqrt(1500), 1 / math.sqrt(4000)) / np.mean(lengths)
    difference = abs(np.mean(lengths) / np.mean(study.mean_length) - 1.0)
    assert error < 2e-4
    assert difference < 1e-3


# Damaged records.


def damaged(result, change):
    values = json.loads(result.to_json())
    change(values["seals"], values)
    return rewritten(values)


def without(name):
    return lambda seals, _: seals[0].pop(name)


def with_value(name, value, number=0):
    return lambda seals, _: seals[number].update({name: value})


def scaled(factor):
    def change(seals, _):
        for sealed in seals:
            sealed["cost"] = {name: factor * value for name, value in sealed["cost"].items()}

    return change


DAMAGE = {
    "no seals": (lambda _, values: values.pop("seals"), "none called 'seals'"),
    "no list": (lambda _, values: values.update(seals={}), "seals must be a list"),
    "a lattice of three": (with_value("lattice", 3.0), "lattice must be a power of two"),
    "a lattice below 0": (with_value("lattice", -0.5), "lattice must be finite and > 0"),
    "a negative scale": (with_value("scale", -1), "scale must be at least 1"),
    "half a scale": (with_value("scale", 1.5), "scale must be an integer"),
    "another width": (with_value("std_dev", 1.0), "std_dev must be that of the noise"),
    "a distance of NaN": (with_value("distance", math.nan), "distance must be finite"),
    "another release": (with_value("release", "losses"), "release must be one of"),
    "no release": (without("release"), "every field of its schema"),
    "no scale": (without("scale"), "every field of its schema"),
    "no cost": (without("cost"), "every field of its schema"),
    "a cost of no notion": (with_value("cost", {"mu": 1.0}), "cost must have one of the parameters"),
    "a list as cost": (with_value("cost", ["epsilon"]), "cost must have one of the parameters"),
    "a negative cost": (with_value("cost", {"rho": -1.0}), "rho must be finite and > 0"),
    "Laplace noise": (
        lambda seals, _: seals[0].update(noise="discrete_laplace", std_dev=math.sqrt(2.0) * seals[0]["std_dev"]),
        "noise of a seal that costs rho must be 'discrete_gaussian'",
    ),
    "another unit": (with_value("cost", {"epsilon": 1e-5}), "cost of a seal must be in rho, as the budget"),
    "no seal at all": (lambda _, values: values.update(seals=[]), "seals with moments='joint' must be those of"),
    "params last": (lambda seals, _: seals.reverse(), "seals with moments='joint' must be those of"),
    "one too many": (lambda seals, _: seals.append(seals[0]), "seals with moments='joint' must be those of"),
    "params alone": (lambda seals, _: seals.__delitem__(slice(1, 3)), "seals with moments='joint' must be those of"),
    "costs beyond the budget": (scaled(2.0), "steps and seals must spend at most the budget rho=0.5"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_seals_of_no_fit_are_refused(case):
    change, message = DAMAGE[case]
    with pytest.raises(InvalidInput, match=message):
        dpci.PrivateFit.from_json(damaged(fit(budget=BUDGETS[1]), change))


def test_seals_beside_no_moments_or_beyond_an_approximate_budget_are_refused():
    twice = lambda seals, _: seals.append({**seals[0], "release": "hessian"})  # noqa: E731
    with pytest.raises(InvalidInput, match="seals with moments='none' must be those of"):
        dpci.PrivateFit.from_json(damaged(fit(moments="none"), twice))
    with pytest.raises(InvalidInput, match="steps and seals must spend at most the budget epsilon=1"):
        dpci.PrivateFit.from_json(damaged(fit(budget=BUDGETS[2], mechanism="output"), scaled(1100.0)))
    with pytest.raises(InvalidInput, match="steps and seals must spend at most the budget epsilon=2"):
        dpci.PrivateFit.from_json(damaged(fit(), scaled(1.5)))


def test_a_baseline_with_other_seals_is_refused():
    result = dpci.baselines.functional_mechanism(X, 2.0 * Y - 1.0, budget=BUDGETS[0], seed=1)
    for seals in ([], json.loads(result.to_json())["seals"][:1]):
        with pytest.raises(InvalidInput, match="seals of a functional_mechanism must be those of"):
            dpci.baselines.BaselineFit.from_json(damaged(result, lambda _, values, s=seals: values.update(seals=s)))


def test_more_records_than_the_public_number_stay_within_the_distance():
    """Under add/remove N may be 16 n_public and the minimiser that many times LR/lambda: its digits are covered."""
    n_public, l2_strength = 1000, 50.0
    keywords = {
        "budget": dpci.PureDP(1e6),
        "l2_strength": l2_strength,
        "mechanism": dpci.OutputPerturbation(moments="none"),
        "rows": dpci.rows.Within(intercept=False),
        "neighbors": dpci.AddRemove(n_public),
    }
    rows = 16 * n_public
    with pytest.warns(dpci.SeededNoiseWarning):
        result = dpci.fit(np.ones((rows, 1)), np.ones(rows), classes=(0, 1), seed=1, **keywords)
    assert result.params[0] > 5 / l2_strength
    seal = result.privacy["seal"]["releases"][0]
    greatest = 16 / l2_strength
    plan = dpci.plan(n_samples=n_public, n_features=1, **keywords)
    assert seal["distance"] - plan.tolerance > np.finfo(float).eps / 2 * greatest
    with pytest.raises(InvalidInput, match="n_public must be at least a sixteenth of the number of records"):
        dpci.fit(np.ones((rows + 1, 1)), np.ones(rows + 1), classes=(0, 1), **keywords)


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", [dpci.ApproxDP(0.1, 1e-9), dpci.ApproxDP(1.0, 1e-6)])
def test_profiles_never_rise(mechanism, budget):
    plan = dpci.plan(n_samples=10_000, n_features=3, budget=budget, l2_strength=0.5, mechanism=mechanism)
    seal_epsilon = plan.guarantee.seal[0]
    epsilons = np.sort(np.concatenate([seal_epsilon * np.linspace(0, 3, 200), np.linspace(0, budget.epsilon, 50)]))
    deltas = plan.guarantee.delta(epsilons)
    assert (np.diff(deltas) <= 1e-15).all()
    assert deltas[0] < 0.5
    assert plan.guarantee.delta(budget.epsilon) <= budget.delta


def test_a_budget_without_a_seal_is_refused_before_it_is_paid():
    rows, targets = np.eye(40)[np.arange(500) % 40], np.arange(500) % 2
    for budget in (dpci.PureDP(2e-12), dpci.ZCDP(3e-19)):
        ledger = dpci.Ledger(budget)
        with pytest.raises(InvalidInput, match="budget of a seal must be large enough"):
            dpci.fit(rows, targets, budget=budget, l2_strength=1.0, mechanism="output", ledger=ledger)
        assert ledger.remaining == budget


def test_the_noise_of_the_seal_is_small_wherever_digits_are_left():
    for row_norm in (1e-6, 1e-3, 1.0, 1e3):
        for n in (1000, 100_000):
            for strength in (1e-3, 1.0):
                l2_strength = strength * row_norm**2
                plan = dpci.plan(
                    n_samples=n, n_features=10, budget=dpci.PureDP(1.0), l2_strength=l2_strength,
                    rows=dpci.rows.Within(row_norm, intercept=row_norm), mechanism="output",
                )  # fmt: skip
                step = plan.steps[0]
                noise = step.scale * np.sqrt(12.0)
                assert plan.seals[0].std_dev <= 0.0101 * noise
