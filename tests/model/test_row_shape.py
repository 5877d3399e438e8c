"""The domain of the rows that a schema has by default: less noise, by public values alone."""

import dataclasses

import numpy as np
import pytest

import dpci
from dpci.datasets import load_adult_sample, load_schema
from dpci.datasets.tables import load_sample_table
from dpci.rows import Ball
from dpci.schema import ClassTarget, NumericColumn, Schema
from support.keywords import assembled

SCHEMA = load_schema("adult_demo")
BALL = Ball(1.0)
BUDGETS = (dpci.PureDP(1.0), dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6))


def chosen(**keywords):
    return dpci.plan(
        **assembled(schema=SCHEMA, **{"n_samples": 4000, "budget": BUDGETS[0], "l2_strength": 0.05, **keywords})
    ).rows


def noise(rows, **keywords):
    shared = {"n_samples": 4000, "budget": BUDGETS[0], "l2_strength": 0.05}
    plan = dpci.plan(**assembled(schema=SCHEMA, rows=rows, **{**shared, **keywords}))
    return float(np.log(plan.noise_std_devs).mean())


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"radius": 3.0},
        {"radius": 0.2},
        {"neighbors": "add_remove"},
        {"neighbors": dpci.AddRemove(4000), "weights": dpci.Weights(bound=3.0)},
        {"weights": dpci.Weights(bound=3.0)},
        {"weights": dpci.Weights(bound=3.0, total=1e6)},
        {"persons": dpci.Persons()},
        {"persons": dpci.Persons(max_rows=5), "weights": dpci.Weights(bound=3.0)},
    ],
)
def test_it_is_the_domain_with_less_noise(budget, more):
    least = min((BALL, SCHEMA.rows), key=lambda rows: noise(rows, budget=budget, **more))
    assert chosen(budget=budget, **more) == least


def test_it_depends_on_no_size():
    found = {
        chosen(n_samples=n, budget=dpci.PureDP(epsilon), l2_strength=strength)
        for n, epsilon, strength in ((4000, 1.0, 0.05), (10**6, 1.0, 1e-4), (100, 8.0, 0.5), (10**5, 0.01, 0.05))
    }
    assert found == {SCHEMA.rows}


@pytest.mark.parametrize("unit", [{}, {"persons": dpci.Persons()}, {"persons": dpci.Persons(max_rows=5)}])
@pytest.mark.parametrize("bound", [0.5, 1.0, np.nextafter(1.0, 2.0), 3.0, 30.0])
def test_it_depends_on_no_weights_and_no_persons(unit, bound):
    assert chosen(weights=dpci.Weights(bound=bound), **unit) == chosen() == SCHEMA.rows


def test_a_fit_with_weights_takes_it():
    table = load_sample_table()
    weights = np.where(np.arange(len(table["age"])) % 2, 2.0, 0.5)
    with pytest.warns(dpci.errors.SeededNoiseWarning):
        result = dpci.fit(
            table, schema=SCHEMA, weights=dpci.Weights(weights, bound=3.0), budget=dpci.PureDP(2.0), l2_strength=0.02,
            seed=1,
        )  # fmt: skip
    assert result.rows == SCHEMA.rows


def test_the_ball_stays_where_there_is_no_noise_in_a_shape():
    assert chosen(mechanism="output") == BALL
    assert chosen(mechanism=dpci.ObjectivePerturbation(noise="spherical_laplace")) == BALL
    assert chosen(mechanism="output", radius=2.0) == BALL


def test_what_is_asked_for_stays():
    assert chosen(rows=BALL) == BALL
    assert chosen(rows=1.0) == BALL
    whole = dataclasses.replace(SCHEMA, encoding="full_range")
    assert dpci.plan(n_samples=4000, schema=whole, budget=BUDGETS[0], l2_strength=0.05).rows == whole.rows


def test_a_fit_takes_it_and_is_saved_with_it():
    data = load_adult_sample()
    table = load_sample_table()
    with pytest.warns(dpci.errors.SeededNoiseWarning):
        result = dpci.fit(table, schema=SCHEMA, budget=dpci.PureDP(2.0), l2_strength=0.02, seed=1)
    assert result.rows == SCHEMA.rows
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.rows == SCHEMA.rows
    np.testing.assert_array_equal(again.predict(data.X), result.predict(data.X))
    np.testing.assert_array_equal(np.asarray(again.conf_int()), np.asarray(result.conf_int()))


GRID = [{"l2_strength": strength} for strength in (0.02, 0.2)]
MECHANISMS = [{"l2_strength": 0.2, "mechanism": name} for name in ("objective", "output")]


@pytest.mark.parametrize(
    ("more", "rows"),
    [
        ({"candidates": GRID}, SCHEMA.rows),
        ({"candidates": GRID, "method": "chunks"}, SCHEMA.rows),
        ({"method": "public_rule"}, SCHEMA.rows),
        ({"method": "public_rule", "mechanism": "output"}, BALL),
        ({"candidates": MECHANISMS}, BALL),
        ({"candidates": GRID, "rows": BALL}, BALL),
        ({"method": "public_rule", "rows": 1.0}, BALL),
    ],
)
def test_a_tuning_takes_it_where_all_candidates_do(more, rows):
    radius = {} if more.get("method") == "public_rule" else {"validation_radius": 3.0}
    with pytest.warns(dpci.errors.SeededNoiseWarning):
        found = dpci.tuning.tune(load_sample_table(), schema=SCHEMA, budget=dpci.PureDP(8.0), seed=1, **radius, **more)
    assert found.result.rows == rows


@pytest.mark.parametrize("given", [{}, {"rows": BALL}])
def test_strata_take_it(given):
    schema = dataclasses.replace(SCHEMA, columns=tuple(c for c in SCHEMA.columns if c.name != "sex"))
    with pytest.warns(dpci.errors.SeededNoiseWarning):
        found = dpci.fit_strata(
            load_sample_table(), by="sex", strata=("Female", "Male"), schema=schema, n_public=2000, seed=1,
            budget=dpci.PureDP(8.0), l2_strength=0.05, **given,
        )  # fmt: skip
    assert {found[name].rows for name in found} == {given.get("rows", schema.rows)}


def test_one_column_without_an_intercept():
    target = ClassTarget(column="y", negative=("no",), positive=("yes",))
    described = Schema(columns=(NumericColumn(name="x", lower=0, upper=1),), target=target)
    schema = Schema.from_formula("y ~ x - 1", described)
    plan = dpci.plan(
        n_samples=500, schema=schema, rows=dpci.rows.Within(intercept=False), budget=BUDGETS[0], l2_strength=0.1
    )
    # A ball and a block of one coordinate are the same set, with the same law.
    assert plan.rows == BALL
