"""Plans side by side: every combination with its own plan, noise by coefficient, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.model.recommend import noise_std_devs
from dpci.model.settings import Settings
from dpci.rows import Ball, Blocks
from dpci.schema import ClassTarget, NumericColumn, Schema
from support.keywords import assembled

ROWS = Blocks([1.0, 0.5], groups=[([1, 3, 4], 2.0)])
BUDGETS = (dpci.PureDP(1.0), dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6))
SEPARATE = dpci.ObjectivePerturbation(moments="separate"), dpci.OutputPerturbation(moments="separate")
PLAN = {"n_samples": 2000, "n_features": 5, "l2_strength": 0.05}


def test_every_combination_has_its_plan():
    table = dpci.plan_table(**PLAN, rows=ROWS, budgets=BUDGETS, mechanisms=SEPARATE)
    found = [(entry.rows, entry.budget, entry.mechanism.name) for entry in table.entries]
    wanted = [(r, b, m) for r in (ROWS, Ball(ROWS.norm)) for b in BUDGETS for m in ("objective", "output")]
    assert found == wanted
    for entry in table.entries:
        alone = dpci.plan(
            **assembled(**PLAN, moments="separate", rows=entry.rows, budget=entry.budget, mechanism=entry.mechanism)
        )
        assert entry.plan == alone
        assert entry.refusal is None
    lines = table.summary().splitlines()
    assert lines[0] == "Plans: n=2,000, 5 columns, lambda=0.05"
    assert len([line for line in lines if line.startswith(("blocks  ", "ball  ")) and "DP" in line]) == 12
    assert any(line.startswith("ball ") and line.endswith("ball of norm 2.291") for line in lines)
    assert repr(table) == table.summary()


def test_what_is_refused_says_why():
    table = dpci.plan_table(**PLAN | {"l2_strength": 1e-5}, budgets=dpci.PureDP(1.0))
    refused, offered = table.entries
    assert refused.plan is None
    assert refused.refusal.startswith("l2_strength must be greater than")
    assert offered.plan is not None
    shown = " ".join(table.summary().split())
    assert " refused " in shown
    assert refused.refusal in shown
    with pytest.raises(InvalidInput, match="combination that is offered, got none: l2_strength must be greater"):
        dpci.plan_table(**PLAN | {"l2_strength": 1e-5}, budgets=dpci.PureDP(1.0), mechanisms="objective")


def test_several_domains():
    table = dpci.plan_table(**PLAN, rows=[Ball(1.0), Ball(2.0)], budgets=dpci.PureDP(1.0), mechanisms="objective")
    assert [entry.plan.row_norm for entry in table.entries] == pytest.approx([2**0.5, 5**0.5])
    assert "ball 2  ball of norm 2" in table.summary()
    one = dpci.plan_table(**PLAN, rows=2.0, budgets=dpci.PureDP(1.0), mechanisms=dpci.OutputPerturbation())
    assert [entry.rows for entry in one.entries] == [Ball(2.0)]


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
def test_an_earlier_fit_predicts_the_lengths():
    rng = np.random.default_rng(1)
    X = np.zeros((2000, 5))
    X[:, 0], X[:, 2] = rng.uniform(-1, 1, 2000), rng.uniform(-0.5, 0.5, 2000)
    X[np.arange(2000), rng.choice([1, 3, 4], 2000)] = 2.0
    earlier = dpci.fit(X, X[:, 0] > 0, rows=ROWS, budget=dpci.PureDP(5.0), l2_strength=0.05, seed=1)
    table = dpci.plan_table(**PLAN, rows=ROWS, budgets=dpci.PureDP(1.0), mechanisms="objective", like=earlier)
    shaped, ball = (entry.plan.interval_length for entry in table.entries)
    assert shaped < 0.95 * ball
    assert "expected length" in table.summary()
    assert table.summary().splitlines()[4].endswith(f"{shaped:.3g}")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"budgets": 1.0}, InvalidInput, "budget must be dpci.PureDP"),
        ({"budgets": ()}, InvalidInput, "budgets must hold at least one, got none"),
        ({"mechanisms": "noisy"}, InvalidInput, "mechanism must be 'objective'"),
        ({"rows": [ROWS, "ball"]}, InvalidInput, "rows must be a number, 'clip', 'weight' or an object of dpci.rows"),
        ({"rows": Blocks([1.0])}, InvalidInput, "rows must bound every column of X, 5 without"),
        ({"budget": dpci.PureDP(1.0)}, TypeError, "unexpected keyword argument 'budget'"),
        ({"mechanism": "output"}, TypeError, "unexpected keyword argument 'mechanism'"),
        ({"n_columns": 3}, TypeError, "unexpected keyword argument 'n_columns'"),
        ({"ledger": None}, InvalidInput, r"plan_table\(\) takes no ledger"),
    ],
)
def test_arguments_are_checked(change, error, message):
    with pytest.raises(error, match=message):
        dpci.plan_table(**PLAN, **{"budgets": dpci.PureDP(1.0)} | change)


def gradient_noise(n_draws, plan):
    """Draws of the noise of objective perturbation by its own sampler, over n."""
    step = plan.steps[0]
    if step.noise == "gaussian":
        draws = dpci.lowlevel.gaussian(n_draws, plan.n_params, step.scale, 1)
    else:
        draws = dpci.lowlevel.spherical_laplace(n_draws, plan.n_params, step.scale, 1)
    return draws


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.notion)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_standard_deviations_are_those_of_draws(budget, mechanism):
    plan = dpci.plan(**PLAN, rows=Ball(2.0), budget=budget, mechanism=mechanism)
    draws = gradient_noise(200_000, plan) / (PLAN["n_samples"] if mechanism == "objective" else 1)
    assert len(plan.noise_std_devs) == plan.n_params == 6
    np.testing.assert_allclose(draws.std(axis=0), plan.noise_std_devs, rtol=0.02)


def test_standard_deviations_of_noise_in_the_shape_of_the_rows():
    rng = np.random.default_rng(2)
    n = 400_000
    settings = Settings.checked(budget=dpci.PureDP(1.0), l2_strength=0.1, rows=dpci.rows.Within(ROWS, intercept=3.0))
    spec = SimpleNamespace(noise_law="shaped_laplace", noise_scale=0.5, divisor=1000.0)
    # Uniform in each block, by exponentials with random signs, at a radius of Gamma(D + 1).
    point = np.empty((n, 6))
    for columns, bound in (([0], 1.0), ([2], 0.5), ([1, 3, 4], 2.0), ([5], 3.0)):
        parts = rng.exponential(size=(n, len(columns) + 1))
        signs = rng.choice([-1.0, 1.0], size=(n, len(columns)))
        point[:, columns] = bound * signs * parts[:, :-1] / parts.sum(axis=1, keepdims=True)
    draws = 0.5 * rng.gamma(7.0, size=(n, 1)) * point / 1000
    found = noise_std_devs(settings, spec, 6)
    np.testing.assert_allclose(draws.std(axis=0), found, rtol=0.01)


def test_a_schema_that_names_persons_makes_a_table_for_persons():
    schema = Schema(
        columns=tuple(NumericColumn(name=name, lower=0, upper=1) for name in "abcde"),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
        persons="id",
    )
    asked = {"n_samples": 2000, "l2_strength": 0.05, "budgets": dpci.PureDP(1.0)}
    found = dpci.plan_table(schema=schema, **asked)
    assert {str(entry.plan.persons) for entry in found.entries} == {"the mean of each person's rows"}
    assert found.title == "Plans: n=2,000 persons, 5 columns, lambda=0.05"
    first = dpci.plan_table(schema=schema, persons=dpci.Persons(max_rows=2), weights=dpci.Weights(bound=3.0), **asked)
    assert {entry.plan.persons.max_rows for entry in first.entries} == {2}
    assert {entry.plan.weights.bound for entry in first.entries} == {3.0}
    for entry in found.entries:
        alone = dpci.plan(
            **PLAN, persons=dpci.Persons(), rows=entry.rows, budget=entry.budget, mechanism=entry.mechanism
        )
        assert entry.plan == alone
