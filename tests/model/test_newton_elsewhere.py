"""Newton steps in functions that fit many models, and their refusal in plain words in all others."""

import numpy as np
import pytest

import dpci
from dpci import multinomial, simulate, tuning
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from support.parts import make_rows

N = 3000
X, Y, _ = make_rows(N, 3, seed=4)
BUDGET = dpci.ZCDP(rho=0.5)
TABLE = {"age": 50.0 + 40.0 * X[:, 0], "ward": np.where(np.arange(N) % 3, "A", "B"), "ill": np.where(Y, "yes", "no")}
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=0, upper=100),
        CategoricalColumn(name="ward", categories=("A", "B"), reference="A"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


def test_each_group_is_fitted_by_itself():
    groups = {"a": (X, Y), "b": (X[:2000], Y[:2000]), "c": (X, Y)}
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.6))
    found = dpci.fit_many(groups, budget=BUDGET, seed=5)
    first = dpci.fit(X, Y, budget=BUDGET, seed=5)
    np.testing.assert_array_equal(found["a"].params, first.params)
    assert all(fit.mechanism == "newton" for fit in found.values())
    # Noise of its own: the same rows have another release.
    assert np.abs(found["c"].params - found["a"].params).min() > 1e-6
    dpci.fit_many(groups, budget=BUDGET, ledger=ledger)
    assert ledger.spent == {"rho": 1.5}
    assert dpci.PrivateFit.from_json(found["b"].to_json()).digest == found["b"].digest


@pytest.mark.parametrize("n_public", [1500, "private"])
def test_strata_take_newton_steps(n_public):
    keywords = {"by": "ward", "schema": SCHEMA, "n_public": n_public, "budget": BUDGET}
    strata = dpci.fit_strata(TABLE, seed=6, **keywords)
    assert list(strata) == ["A", "B"]
    assert all(fit.mechanism == "newton" for fit in strata.values())
    text = strata.summary()
    assert "Newton steps" in text
    assert "lambda" not in text
    assert "without a ridge" in strata.to_html()
    assert dpci.StrataFit.from_json(strata.to_json()).digest == strata.digest
    ledger = dpci.Ledger(BUDGET, neighbors="add_remove")
    paid = dpci.fit_strata(TABLE, ledger=ledger, **keywords)
    assert "| FAILED |" not in paid.officer_report(ledger=ledger, schema=SCHEMA)
    if n_public != "private":
        inside = TABLE["ward"] == "A"
        table = {name: cells[inside] for name, cells in TABLE.items() if name != "ward"}
        alone = Schema(columns=SCHEMA.columns[:1], target=SCHEMA.target)
        fit = dpci.fit(table, schema=alone, budget=BUDGET, neighbors=dpci.AddRemove(1500), seed=6)
        np.testing.assert_array_equal(strata["A"].params, fit.params)


def test_what_is_not_offered_is_refused_in_plain_words():
    only = r"mechanism must be 'objective' or 'output' for this function, got mechanism='newton' \(it has neither"
    for call in (
        lambda: tuning.tune(X, Y, candidates=[{"l2_strength": 0.1}, {"l2_strength": 0.2}], mechanism="newton",
                            budget=BUDGET),
        lambda: multinomial.fit(X, np.arange(N) % 3, classes=(0, 1, 2), mechanism="newton", l2_strength=0.1,
                                budget=BUDGET),
        lambda: dpci.plan_table(n_samples=N, n_features=3, budgets=BUDGET, mechanisms="newton", l2_strength=0.1),
    ):  # fmt: skip
        with pytest.raises(dpci.InvalidInput, match=only):
            call()
    study = {"n_replicates": 4, "n_variability": 0, "budget": BUDGET}
    with pytest.raises(TypeError, match=r"l2_strength' \(dpci\.fit, fit_many, fit_strata and plan need none\)"):
        simulate.coverage(X, Y, loss="squared", **study)
    with pytest.raises(dpci.InvalidInput, match=r"a number for coverage\(\), got 'auto' \(dpci\.plan recommends one"):
        simulate.coverage(X, Y, loss="squared", l2_strength="auto", **study)
    known = "dpci.OutputPerturbation.*, or for dpci.fit and dpci.plan 'newton' or 'moments', got mechanism='wrong'"
    with pytest.raises(dpci.InvalidInput, match=known):
        dpci.fit(X, Y, budget=BUDGET, mechanism="wrong")
    with pytest.raises(dpci.InvalidInput, match="must be 'auto' with mechanism='newton', which has no ridge"):
        dpci.fit_many({"a": (X, Y)}, budget=BUDGET, mechanism="newton", l2_strength=0.1)
