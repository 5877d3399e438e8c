"""Models of strata: the fits of the library on each, what the ledger pays, what is refused, and the collection."""

import json
import pickle

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, CategoricalTarget, ClassTarget, NumericColumn, Schema
from support.keywords import assembled
from support.saved import rewritten

STATES = ("A", "B", "C")
SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=90),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
N = 900
PUBLIC = {"A": 300, "B": 300, "C": 300}


def people(seed=0):
    rng = np.random.default_rng(seed)
    state = rng.permutation(np.repeat(STATES, N // 3))
    age = rng.uniform(18, 90, N)
    shift = np.select([state == "A", state == "B"], [0.0, 2.0], -2.0)
    return {
        "age": age,
        "sex": rng.choice(["F", "M"], N),
        "state": state,
        "ill": np.where((age - 54) / 18 + shift + rng.logistic(size=N) > 0, "yes", "no"),
        "w": rng.uniform(0.2, 1.8, N),
    }


def quiet(table, **keywords):
    given = {"by": "state", "schema": SCHEMA, "strata": STATES, "n_public": PUBLIC, "budget": dpci.PureDP(1e5)}
    return dpci.fit_strata(table, **assembled(**{**given, "l2_strength": 0.05, "seed": 3, **keywords}))


def part(table, state):
    return {name: cells[table["state"] == state] for name, cells in table.items()}


def test_a_stratum_has_the_model_of_its_rows():
    table = people()
    for more in ({}, {"weights": dpci.Weights("w", bound=2.0)}, {"persons": np.arange(N) // 2}):
        if "persons" in more:
            table = people() | {"state": np.repeat(STATES, N // 3)}
        found = quiet(table, **more)
        for state in STATES:
            alone = part(table, state)
            chosen = {**more, "persons": more["persons"][table["state"] == state]} if "persons" in more else more
            with pytest.warns(dpci.errors.SeededNoiseWarning):
                fit = dpci.fit(
                    alone, schema=SCHEMA, budget=dpci.PureDP(1e5), l2_strength=0.05, neighbors=dpci.AddRemove(300),
                    seed=9, **chosen,
                )  # fmt: skip
            assert found[state].params == pytest.approx(fit.params, abs=5e-3)
            assert found[state].n_samples == 300
        assert list(found) == list(STATES)


def test_the_column_of_the_schema_is_left_out_of_the_models():
    with_state = Schema(
        columns=(*SCHEMA.columns, CategoricalColumn(name="state", categories=STATES, reference="A")),
        target=SCHEMA.target,
    )
    table = people()
    found = quiet(table, schema=with_state, strata=None)
    assert found["B"].names == ("age", "sex=M", "intercept")
    assert found["B"].params == pytest.approx(quiet(table)["B"].params, abs=1e-12)
    given = {"schema": SCHEMA, "n_public": 300, "budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    for by, message in (("state", "strata, the public categories"), ("ill", "not be the target")):
        with pytest.raises(InvalidInput, match=message):
            dpci.fit_strata(table, by=by, **given)


@pytest.mark.parametrize(
    ("budget", "neighbors", "charge"),
    [
        (dpci.PureDP(1.0), "add_remove", dpci.PureDP(1.0)),
        (dpci.PureDP(1.0), "replace_one", dpci.PureDP(2.0)),
        (dpci.ZCDP(0.5), "add_remove", dpci.ZCDP(0.5)),
        (dpci.ZCDP(0.5), "replace_one", dpci.ZCDP(2.0)),
        (dpci.ApproxDP(1.0, 1e-6), "add_remove", dpci.ApproxDP(1.0, 1e-6)),
        (dpci.ApproxDP(1.0, 1e-6), "replace_one", dpci.ApproxDP(2.0, (1 + np.e) * 1e-6)),
    ],
)
def test_a_ledger_pays_once(budget, neighbors, charge):
    total = type(budget)(**{name: min(4.0 * value, 0.9) if name == "delta" else 4.0 * value
                            for name, value in budget.parameters().items()})  # fmt: skip
    ledger = dpci.Ledger(total, neighbors=neighbors)
    found = dpci.fit_strata(
        people(), by="state", schema=SCHEMA, strata=STATES, n_public=300, budget=budget, l2_strength=0.5,
        neighbors=neighbors, ledger=ledger,
    )  # fmt: skip
    (entry,) = ledger.history
    assert entry.source == "dpci.fit_strata, 3 strata of 'state'"
    for name, value in charge.parameters().items():
        assert ledger.spent[name] == pytest.approx(value, rel=1e-9)
        assert found.charged.parameters()[name] >= value * (1 - 1e-12)
    assert all(fit.spent == budget for fit in found.values())
    assert {fit.privacy["relation"] for fit in found.values()} == {"add_remove"}


def test_fifty_strata_cost_what_one_does():
    states = tuple(f"s{i:02}" for i in range(50))
    table = people()
    table["state"] = np.resize(states, N)
    ledger = dpci.Ledger(dpci.PureDP(1.0), neighbors="add_remove")
    found = dpci.fit_strata(
        table, by="state", schema=SCHEMA, strata=states, n_public=18, budget=dpci.PureDP(1.0), l2_strength=2.0,
        mechanism=dpci.ObjectivePerturbation(moments="none"), ledger=ledger,
    )  # fmt: skip
    assert len(found) == 50
    assert ledger.spent == {"epsilon": 1.0}


@pytest.mark.parametrize(
    ("change", "keywords", "message"),
    [
        ({"state": "Z"}, {}, "hold one of"),
        ({"state": "A"}, {}, "every stratum must have at least one row, got none of 'B'"),
        ({}, {"n_public": {"A": 300, "B": 300}}, "a number for each stratum"),
        ({}, {"n_public": 0}, "n_public must be at least 1"),
        ({}, {"persons": np.arange(N) // 2}, "all rows of a person must be in one stratum"),
        ({}, {"by": "county"}, "'county'"),
        ({}, {"neighbors": "both"}, "neighbors must be"),
        ({}, {"n_public": 3, "l2_strength": 2.0}, "n_public must be at least a sixteenth"),
        ({}, {"weights": dpci.Weights("w", bound=1.0)}, "at most weight_bound=1"),
    ],
)
def test_what_is_refused_is_not_paid(change, keywords, message):
    table = people()
    for name, value in change.items():
        table[name] = np.full(N, value)
    ledger = dpci.Ledger(dpci.PureDP(10.0), neighbors="add_remove")
    given = {"by": "state", "schema": SCHEMA, "strata": STATES, "n_public": PUBLIC, "budget": dpci.PureDP(1.0)}
    with pytest.raises(InvalidInput, match=message):
        dpci.fit_strata(table, **{**given, "l2_strength": 0.05, "ledger": ledger, **keywords})
    assert ledger.history == ()


def test_strata_without_intervals_have_estimates():
    found = quiet(people(), moments="none")
    assert "moments='none'" in found.interval_refusal
    assert found.parameters == ("age", "sex=M", "intercept")
    (row,) = (line.split() for line in found.summary("age").splitlines() if line.startswith("B"))
    assert row == ["B", f"{found['B'].params[0]:.4f}", "-", "-", "-", "-", "300"]
    assert "no intervals" in found.summary()
    assert "Forest plot" not in found.to_html()
    with pytest.raises(InvalidInput, match="intervals require"):
        found.conf_int("age")


def test_the_page_names_what_all_strata_cost_and_reveal_together():
    found = dpci.fit_strata(
        people(), by="state", schema=SCHEMA, strata=STATES, n_public=PUBLIC, budget=dpci.PureDP(0.5), l2_strength=0.5,
        neighbors="replace_one",
    )  # fmt: skip
    page = found.to_html()
    assert "epsilon=1 (pure DP)" in page
    assert "right with probability at most 73.2%" in page
    assert found.digest in page
    part = found["B"].to_html()
    assert "a release that spends epsilon=1 (pure DP) in total: all 3 strata of the table" in part
    assert "right with probability at most 73.2%" in part
    label = found.plot("age").get_xlabel()
    assert label.split("\n")[-2:] == ["logistic loss", "ε=1 (pure DP)"]
    assert " ".join(label.split()).startswith("age (log odds per unit) with 95% interval")


def test_ledgers_of_another_relation_or_with_private_errors_are_refused():
    given = {"by": "state", "schema": SCHEMA, "strata": STATES, "n_public": 300, "budget": dpci.PureDP(1.0)}
    for ledger in (
        dpci.Ledger(dpci.PureDP(4.0)),
        dpci.Ledger(dpci.PureDP(4.0), neighbors="add_remove", n_public=300, errors="private"),
    ):
        with pytest.raises(InvalidInput):
            dpci.fit_strata(people(), **given, l2_strength=0.1, ledger=ledger)
        assert ledger.history == ()
    with pytest.raises(dpci.BudgetExceeded):
        dpci.fit_strata(
            people(), **given, l2_strength=0.1, neighbors="replace_one", ledger=dpci.Ledger(dpci.PureDP(1.5))
        )


def test_the_collection():
    found = quiet(people(), n_public=300)
    assert found.parameters == found["A"].names
    intervals = found.conf_int("age", level=0.9)
    assert set(intervals.per) == {"per unit"}
    assert "age, per unit: 95% confidence intervals by" in found.summary("age")
    assert intervals.names == STATES
    alone = found["B"].conf_int(level=0.9)
    assert intervals.estimate[1] == pytest.approx(alone.estimate[alone.names.index("age")])
    assert intervals.upper[1] == pytest.approx(alone.upper[alone.names.index("age")])
    text = found.summary()
    assert "NOT PRIVATE (seeded)" in text
    assert "one record added or removed" in text
    assert all(state in found.summary("age") for state in STATES)
    difference = found.compare("B", "C")
    assert difference.intervals.lower[-1] > 0.0
    page = found.to_html(title="Illness <by> state")
    assert page.count('class="forest"') == len(found.parameters)
    assert "Illness &lt;by&gt; state" in page
    for bad in (lambda: found.conf_int("height"), lambda: found.compare("A", "Z"), lambda: found.summary("height")):
        with pytest.raises(InvalidInput):
            bad()
    with pytest.raises(KeyError):
        found["Z"]


def test_a_forest_plot():
    pytest.importorskip("matplotlib").use("Agg")
    axes = quiet(people()).plot("age", order="estimate")
    assert axes.get_ylabel() == "state"
    assert {label.get_text() for label in axes.get_yticklabels()} == set(STATES)


def test_strata_are_saved_and_read(tmp_path):
    found = quiet(people())
    again = dpci.StrataFit.from_json(found.to_json())
    assert again == found == pickle.loads(pickle.dumps(found))
    assert again.summary() == found.summary()
    page = tmp_path / "page.html"
    assert page.write_text(found.to_html(page)) > 0
    text = found.to_json()
    cheap = json.loads(text) | {name: {"notion": "pure", "epsilon": 0.1} for name in ("budget", "charged")}
    with pytest.raises(InvalidInput, match="at the budget of all"):
        dpci.StrataFit.from_json(rewritten(cheap))
    for broken in (text.replace('"add_remove"', '"replace_one"', 1), text[:-5], "[]", text.replace('"A"', '"B"', 1)):
        with pytest.raises(InvalidInput):
            dpci.StrataFit.from_json(broken)


@pytest.mark.parametrize("loss", [{}, {"loss": "multinomial"}])
def test_several_classes_are_refused_with_what_to_do(loss):
    target = CategoricalTarget(column="way", classes=("bus", "car", "train"))
    schema = Schema(columns=(NumericColumn(name="x", lower=0, upper=1),), target=target)
    table = {"x": [0.1, 0.2, 0.3], "way": ["bus", "car", "train"], "where": ["A", "A", "B"]}
    with pytest.raises(InvalidInput, match=r"put the stratum into the model of dpci\.multinomial\.fit as a column"):
        dpci.fit_strata(
            table, by="where", strata=("A", "B"), schema=schema, n_public=2, budget=dpci.PureDP(1.0), l2_strength=0.1,
            **loss,
        )  # fmt: skip
