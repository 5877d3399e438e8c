"""Strata whose numbers of records are released: what counts cost, their noise, what fits are told, and saved files."""

import contextlib
import json

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.schema import NumericColumn, NumericTarget, Schema
from dpci.strata.counts import count_noise, release_counts, split_off_counts
from support.keywords import assembled
from support.saved import rewritten

# How much noise there is varies.
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning", "ignore::dpci.CurvatureWarning")

SCHEMA = Schema(
    columns=(NumericColumn(name="x", lower=-1, upper=1),), target=NumericTarget(column="y", lower=-1, upper=1)
)
SIZES = {"A": 400, "B": 250, "C": 3}
BUDGETS = (dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6))


def table(copies=1):
    rng = np.random.default_rng(0)
    where = np.repeat(np.repeat(list(SIZES), list(SIZES.values())), copies)
    x = rng.uniform(-1, 1, len(where))
    return {"x": x, "y": np.clip(x / 2 + rng.normal(0, 0.1, len(x)), -1, 1), "where": where}


def fitted(data=None, **keywords):
    merged = {
        "by": "where",
        "strata": tuple(SIZES),
        "schema": SCHEMA,
        "budget": dpci.PureDP(2.0),
        "n_public": "private",
        "loss": dpci.losses.Huber(target_bound=1.0, k=0.5),
        "l2_strength": 0.1,
        **keywords,
    }
    return dpci.fit_strata(table() if data is None else data, **assembled(**merged))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_counts_and_fits_together_are_what_the_ledger_pays(budget, neighbors):
    total = {"pure": dpci.PureDP(9.0), "zcdp": dpci.ZCDP(9.0), "approximate": dpci.ApproxDP(9.0, 0.01)}
    ledger = dpci.Ledger(total[budget.notion] if budget.notion in total else total["approximate"], neighbors=neighbors)
    found = fitted(budget=budget, neighbors=neighbors, ledger=ledger)
    assert len(ledger.history) == 1
    free = fitted(budget=budget, neighbors=neighbors, n_public=300)
    assert found.charged == free.charged
    again = dpci.StrataFit.from_json(found.to_json())
    assert again == found
    assert again.counted == found.counted
    assert "counts of records" in again.summary("x")
    for forged in ("count", "fit"):
        values = json.loads(found.to_json())
        numbers = values["counted"] if forged == "count" else values["budget"]
        name = next(name for name in numbers if name != "notion")
        numbers[name] *= 0.9
        with pytest.raises(InvalidInput, match="strata must be models of one kind"):
            dpci.StrataFit.from_json(rewritten(values))
    if (values := json.loads(found.to_json()))["counted"]["notion"] == "pure":
        values["counted"] = {**values["counted"], "notion": "approx", "delta": 1e-9}
        with pytest.raises(InvalidInput, match="must have a budget of the notion 'pure'"):
            dpci.StrataFit.from_json(rewritten(values))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_one_record_moves_one_count_by_one_and_the_noise_is_that_of_the_budget(budget):
    """A seeded release is the counts and a noise that does not depend on them."""
    _, counts = split_off_counts(budget, 0.05)
    noise = count_noise(3, counts)
    if isinstance(counts, dpci.PureDP):
        assert noise.law == "laplace"
        assert 1.0 / counts.epsilon <= noise.scale <= 1.01 / counts.epsilon
    else:
        assert noise.law == "gaussian"
        assert (2.0 * counts.rho) ** -0.5 <= noise.scale <= 1.01 * (2.0 * counts.rho) ** -0.5
    large = {name: 100_000 + n for name, n in SIZES.items()}
    one_more = {**large, "B": large["B"] + 1}
    for seed in range(5):
        first = release_counts(large, counts, n_threads=1, seed=seed)
        second = release_counts(one_more, counts, n_threads=1, seed=seed)
        assert {name: second[name] - first[name] for name in SIZES} == {"A": 0, "B": 1, "C": 0}


def test_the_noise_of_counts_over_many_seeds():
    budget = dpci.PureDP(0.1)
    scale = count_noise(1, budget).scale
    errors = [release_counts({"A": 10_000}, budget, n_threads=1, seed=seed)["A"] - 10_000 for seed in range(3000)]
    # Laplace: the mean size of the noise is its scale, with a standard error of scale / √3000; five of them.
    assert abs(np.mean(np.abs(errors)) / scale - 1.0) < 5.0 / np.sqrt(3000)
    assert abs(np.mean(errors)) < 5.0 * scale * np.sqrt(2.0 / 3000)


def test_small_strata_are_told_to_be_larger_than_the_noise():
    """So no count lets a fit refuse more than 16 times as many records as it was told."""
    found = fitted()
    least = 4 * found.counted.scale
    assert found["C"].n_samples == int(np.ceil(least))
    assert all(fit.n_samples >= least for fit in found.values())


def test_persons_are_counted_and_not_their_rows():
    data = table(copies=3)
    ids = np.repeat(np.arange(sum(SIZES.values())), 3)
    rows = fitted(data, seed=1)
    persons = fitted(data, persons=ids, seed=1)
    assert "\ncounts of records " in rows.summary("x")
    assert "\ncounts of persons " in persons.summary("x")
    page = " ".join(persons.to_html().split())
    assert "at lambda times n (released) / (number of its persons, which is private)" in page
    assert rows["A"].n_samples - persons["A"].n_samples == 2 * SIZES["A"]
    assert rows["B"].n_samples - persons["B"].n_samples == 2 * SIZES["B"]


def test_what_is_refused_and_what_it_costs():
    ledger = dpci.Ledger(dpci.PureDP(9.0), neighbors="add_remove")
    for share in (0.0, 1.0, -1.0, "much"):
        with pytest.raises(InvalidInput, match="count_share"):
            fitted(count_share=share, ledger=ledger)
    with pytest.raises(InvalidInput, match="n_public"):
        fitted(n_public="secret", ledger=ledger)
    for share in (0.05, "much"):
        with pytest.raises(InvalidInput, match="count_share must be None"):
            fitted(n_public=300, count_share=share, ledger=ledger)
    assert ledger.history == ()
    # What a released count forbids is found when the count is released.
    with pytest.raises(RegularizationTooSmall):
        fitted(l2_strength=0.01, budget=dpci.PureDP(0.5), ledger=ledger)
    assert len(ledger.history) == 1


@pytest.mark.parametrize("persons", [None, np.arange(sum(SIZES.values()))], ids=["rows", "persons"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_lambda_that_is_too_small_for_any_count_names_the_least(epsilon, persons):
    ledger = dpci.Ledger(dpci.PureDP(9.0), neighbors="add_remove")
    given = {"budget": dpci.PureDP(epsilon), "persons": persons, "n_public": "private", "ledger": ledger}
    with pytest.raises(RegularizationTooSmall, match="a count of 10,000,000 before anything is paid") as refused:
        fitted(l2_strength=1e-9, **given)
    least = refused.value.least
    assert f"must be at least {least:g} for strata" in str(refused.value)
    assert refused.value.value == 1e-9
    assert least < 1e-4
    with pytest.raises(RegularizationTooSmall, match=f"at least {least:g}"):
        fitted(l2_strength=0.98 * least * (1 - 0.1), **given)
    assert ledger.history == ()
    # The least one is accepted, and paid for, whatever the released counts say of it.
    with contextlib.suppress(RegularizationTooSmall):
        fitted(l2_strength=least, **given)
    assert len(ledger.history) == 1


def test_counts_are_raised_to_the_bound_of_weights():
    """So no fit is refused after payment for a bound above the number that divides."""
    weights = np.ones(sum(SIZES.values()))
    given = {"l2_strength": 20.0, "seed": 1, "moments": "none"}
    found = fitted(weights=dpci.Weights(weights, bound=300.5), **given)
    assert found["C"].n_samples == 301
    assert found["A"].n_samples == fitted(weights=dpci.Weights(weights, bound=2.0), **given)["A"].n_samples
    # A public total is what divides.
    assert fitted(weights=dpci.Weights(weights, bound=300.5, total=400.0), **given)["C"].n_samples < 100
    ledger = dpci.Ledger(dpci.PureDP(9.0), neighbors="add_remove")
    with pytest.raises(InvalidInput, match="weight_bound must be at most weight_total"):
        fitted(**{**given, "seed": None}, weights=dpci.Weights(weights, bound=500.0, total=400.0), ledger=ledger)
    assert ledger.history == ()


def test_a_file_of_one_stratum_says_that_its_number_was_released():
    ledger = dpci.Ledger(dpci.PureDP(9.0), neighbors="add_remove")
    counted, public = fitted(ledger=ledger)["A"], fitted(n_public=400)["A"]
    assert "n (released)" in counted.summary(full=True)
    assert "epsilon=2 (pure DP) by all 3 strata of the table with the counts of their records" in counted.summary(
        full=True
    )
    assert "n (public)" in public.summary(full=True)
    report = counted.officer_report()
    assert "a count that was released with noise" in report
    assert "was chosen without counting" not in report
    assert "released with noise, as a part of the whole" in report
    assert "The number of records in each stratum is private." in report
    assert "was chosen without counting" in public.officer_report()
    assert dpci.PrivateFit.from_json(counted.to_json()).summary(full=True) == counted.summary(full=True)
