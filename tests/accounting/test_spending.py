"""A saved release whose steps and seals spend more than the budget that it states is refused, for every notion."""

import json
import math

import numpy as np
import pytest
from scipy.stats import norm

import dpci
from dpci.errors import InvalidInput
from support.saved import rewritten

N = 2_000
RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (N, 3))
REAL = np.clip(X[:, 0] + 0.1 * RNG.normal(size=N), -1, 1)
BUDGETS = {
    "pure": dpci.PureDP(1.0),
    "zcdp": dpci.ZCDP(0.3),
    "approx": dpci.ApproxDP(1.0, 1e-6),
    "gdp": dpci.GDP(0.8),
    # Where e^epsilon is beyond floats.
    "great": dpci.GDP(1e5),
}
RELATIONS = {"replace_one": {}, "add_remove": {"neighbors": dpci.AddRemove(N)}}


def matrix(budget, relation, **keywords):
    return dpci.regression.release(X, REAL, rows=1.0, budget=budget, **RELATIONS[relation], **keywords)


def made(kind, notion, relation):
    budget, facts = BUDGETS[notion], RELATIONS[relation]
    if kind == "matrix":
        return matrix(budget, relation)
    if kind == "multinomial":
        labels = np.resize(["a", "b", "c"], N)
        return dpci.multinomial.fit(X, labels, classes=["a", "b", "c"], l2_strength=0.2, budget=budget, **facts)
    keywords = {"l2_strength": 0.2, "classes": (False, True), "mechanism": kind, "budget": budget}
    return dpci.fit(X, REAL > 0, **keywords, **facts)


def kinds(notion):
    # Gaussian DP is a notion of matrices alone.
    return ("matrix",) if notion in {"gdp", "great"} else ("matrix", "objective", "output", "multinomial")


CASES = [(kind, notion, relation) for notion in BUDGETS for kind in kinds(notion) for relation in RELATIONS]


def budget_of(values):
    return values["fit"]["budget"] if "fit" in values else values["budget"]


def numbers_of(budget):
    return [name for name in budget if name != "notion"]


@pytest.mark.parametrize(("kind", "notion", "relation"), CASES)
def test_a_smaller_budget_is_refused(kind, notion, relation):
    result = made(kind, notion, relation)
    text = result.to_json()
    assert type(result).from_json(text).to_json() == text
    for name in numbers_of(budget_of(json.loads(text))):
        values = json.loads(text)
        # The seals of Gaussian DP leave a few millionths of the budget unspent.
        budget_of(values)[name] *= 1.0 - (1e-3 if name == "mu" else 1e-6)
        with pytest.raises(InvalidInput, match="the steps and seals must spend at most the budget"):
            type(result).from_json(rewritten(values))


def test_the_parts_of_a_gaussian_budget_make_up_the_whole():
    """A seal is epsilon-DP, and so as good as a normal shift with mu = 2 quantile(e^epsilon / (1 + e^epsilon))."""
    for text in ("gdp", "approx"):
        values = json.loads(matrix(BUDGETS[text], "replace_one").to_json())
        (step,), (seal,) = values["steps"], values["seals"]
        assert step["cost"] == pytest.approx((step["sensitivity"] / step["scale"]) ** 2, rel=1e-12)
        if text == "gdp":
            of_seal = 2.0 * norm.ppf(1.0 / (1.0 + math.exp(-seal["cost"]["epsilon"])))
            assert step["cost"] + of_seal**2 == pytest.approx(0.8**2, rel=1e-5)


@pytest.mark.parametrize("notion", BUDGETS)
@pytest.mark.parametrize("part", ["cost", "scale", "sensitivity"])
def test_a_step_that_costs_something_else_than_its_noise_is_refused(notion, part):
    values = json.loads(matrix(BUDGETS[notion], "replace_one").to_json())
    values["steps"][0][part] *= 1.01
    with pytest.raises(InvalidInput, match="cost of the step 'moment_matrix' must be that of its noise"):
        dpci.regression.MomentMatrix.from_json(rewritten(values))


@pytest.mark.parametrize("notion", ["pure", "approx", "gdp"])
def test_a_seal_in_another_unit_is_refused(notion):
    values = json.loads(matrix(BUDGETS[notion], "replace_one").to_json())
    values["seals"][0]["cost"] = {"rho": 1e-9}
    with pytest.raises(InvalidInput, match="the cost of a seal must be in epsilon"):
        dpci.regression.MomentMatrix.from_json(rewritten(values))


@pytest.mark.parametrize("refused", [None, ["law"], {"a": 1}, math.nan, 3])
@pytest.mark.parametrize("name", ["source", "unit"])
def test_a_source_or_unit_of_a_schema_is_text(name, refused):
    column = dpci.schema.NumericColumn(name="age", lower=0, upper=1, **{name: refused})
    target = dpci.schema.NumericTarget(column="wage", lower=0, upper=1)
    with pytest.raises(InvalidInput, match=f"the {name} of a column must be text"):
        dpci.schema.Schema(columns=(column,), target=target)
