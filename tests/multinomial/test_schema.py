"""Multinomial fits of a schema, and their plans."""

import json

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.errors import BudgetExceeded, InvalidInput, ReleaseFailed
from dpci.schema import CategoricalColumn, CategoricalTarget, ClassTarget, NumericColumn, Schema
from support.saved import rewritten

N = 2000
rng = np.random.default_rng(8)
COLUMNS = (
    NumericColumn(name="age", lower=20, upper=60, unit="year"),
    CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
)
TARGET = CategoricalTarget(column="way", classes=("walk", ("bus", "tram"), "car"))
SCHEMA = Schema(columns=COLUMNS, target=TARGET)
CLASSES = ("walk", "bus|tram", "car")
TABLE = pd.DataFrame({"age": rng.integers(20, 61, N), "sex": rng.choice(["F", "M"], N)})
_odds = np.column_stack([np.zeros(N), (TABLE["age"] - 40) / 20, 1.0 * (TABLE["sex"] == "M")])
CODES = (_odds + rng.gumbel(size=(N, 3))).argmax(axis=1)
TABLE["way"] = np.where(CODES == 0, "walk", np.where(CODES == 2, "car", rng.choice(["bus", "tram"], N)))
ASKED = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.01, "seed": 3}


@pytest.fixture(scope="module")
def fitted():
    return dpci.multinomial.fit(TABLE, schema=SCHEMA, **ASKED)


def test_a_target_of_several_classes_codes_its_labels():
    np.testing.assert_array_equal(SCHEMA.targets(TABLE), CODES)
    assert TARGET.labels == CLASSES
    again = Schema.from_dict(json.loads(json.dumps(SCHEMA.to_dict())))
    assert again == SCHEMA
    assert again.digest == SCHEMA.digest
    other = Schema(columns=COLUMNS, target=CategoricalTarget(column="way", classes=("car", "walk", "bus")))
    assert other.digest != SCHEMA.digest
    with pytest.raises(InvalidInput, match=r"hold one of .*walk"):
        other.targets(TABLE)
    found = SCHEMA.check(TABLE.replace({"way": {"car": "ship"}}))
    assert "of no class: refused" in str(found)
    assert "label without rows" in str(found)


@pytest.mark.parametrize(
    ("classes", "match"),
    [
        (("a", "b"), "at least three"),
        (("a", "b", ("a", "c")), r"\['a'\] in several"),
        (("a", "b", "c:d"), "colon"),
        (("a", "b", ()), "at least one"),
        ("abc", "a list"),
        (3, "a list"),
    ],
)
def test_impossible_targets_are_refused(classes, match):
    with pytest.raises(InvalidInput, match=match):
        CategoricalTarget(column="way", classes=classes)


def test_the_fit_is_that_of_the_encoded_rows(fitted):
    rows, codes, _ = SCHEMA.transform(TABLE)
    plain = dpci.multinomial.fit(rows, codes, classes=range(3), **ASKED)
    np.testing.assert_array_equal(fitted.scaled.params, plain.params)
    assert fitted.classes == CLASSES
    assert fitted.names[:3] == ("bus|tram:age", "bus|tram:sex=M", "bus|tram:intercept")
    np.testing.assert_array_equal(fitted.predict_proba(TABLE), plain.predict_proba(rows))
    assert set(fitted.predict(TABLE)) <= set(CLASSES)
    beside = dpci.multinomial.fit(TABLE.drop(columns="way"), TABLE["way"], schema=SCHEMA, **ASKED)
    np.testing.assert_array_equal(fitted.params, beside.params)


def test_units_are_those_of_the_table(fitted):
    found, scaled = fitted, fitted.scaled
    assert found.names == scaled.names
    assert found.units == ("per year", "against F", "at 0") * 2
    # The predictor of a table is the same in both units.
    rows = SCHEMA.features(TABLE)
    per_class = found.params.reshape(2, 3)
    z = np.column_stack([TABLE["age"], TABLE["sex"] == "M", np.ones(N)])
    np.testing.assert_allclose(z @ per_class.T, fitted.decision_function(rows)[:, 1:], atol=1e-9)
    np.testing.assert_array_equal(np.column_stack([fitted.coef, fitted.intercept]), per_class)
    scale = np.array([20.0, 1.0]) * np.sqrt(2)
    np.testing.assert_allclose(found.std_errors.reshape(2, 3)[:, :2] * scale, scaled.std_errors.reshape(2, 3)[:, :2])


def test_odds_ratios_are_against_the_reference(fitted):
    ratios = fitted.odds_ratios()
    assert ratios.names == ("bus|tram:age", "bus|tram:sex=M", "car:age", "car:sex=M")
    units = fitted.conf_int(contrast=list(ratios.names))
    np.testing.assert_allclose(ratios.lower, np.exp(units.lower))
    np.testing.assert_allclose(ratios.estimate, np.exp(units.estimate))
    between = fitted.odds_ratios(contrast={"car:age": 10, "bus|tram:age": -10})
    difference = fitted.params[3] - fitted.params[0]
    np.testing.assert_allclose(between.estimate, np.exp(10 * difference))
    encoded = dpci.multinomial.fit(*SCHEMA.transform(TABLE)[:2], classes=range(3), **ASKED)
    np.testing.assert_allclose(encoded.odds_ratios().estimate, np.exp(encoded.coef.ravel()))


def test_text_and_page_have_units_and_the_reference(fitted, tmp_path):
    text = fitted.summary(full=True)
    assert "against 'walk'" in text
    assert "per year" in text
    assert "scaled" in text
    assert "per year" not in fitted.summary(units="scaled", full=True)
    file = tmp_path / "page.html"
    page = fitted.to_html(file)
    assert file.read_text(encoding="utf-8") == page
    assert "against &#x27;walk&#x27;" in page
    assert "Odds ratios" in page
    assert page.count("per year") >= 4
    assert fitted.digest in page
    assert "favours the class in its name" in page


def test_the_plot_has_a_row_for_each_class_and_column(fitted):
    plt = pytest.importorskip("matplotlib.pyplot")
    axes = fitted.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        f"{name}, {unit}" for name, unit in zip(fitted.names, fitted.units, strict=True) if unit != "at 0"
    ]
    assert fitted.plot(units="scaled") is not axes
    plt.close("all")


def test_without_intercept_each_category_has_a_coefficient(fitted):
    schema = Schema.from_formula("~ 0 + age + sex", SCHEMA)
    found = dpci.multinomial.fit(TABLE, schema=schema, **ASKED)
    assert found.names == tuple(f"{c}:{n}" for c in CLASSES[1:] for n in ("age", "sex=F", "sex=M"))
    # The same model as with an intercept, of other columns.
    women = [f"{c}:intercept" for c in CLASSES[1:]]
    np.testing.assert_allclose(found.params[1::3], [fitted.params[fitted.names.index(name)] for name in women])
    assert "car:sex=F" in found.summary(full=True)


def test_a_saved_fit_keeps_its_schema(fitted):
    again = dpci.multinomial.MultinomialFit.from_json(fitted.to_json())
    assert again.schema.digest == SCHEMA.digest
    np.testing.assert_array_equal(again.params, fitted.params)
    np.testing.assert_array_equal(again.predict(TABLE), fitted.predict(TABLE))
    assert again.digest == fitted.digest


@pytest.mark.parametrize("damage", ["order", "labels", "target", "names", "rows"])
def test_a_file_must_agree_with_its_schema(fitted, damage):
    saved = json.loads(fitted.to_json())
    described = saved["fit"]["table"]["schema"]
    if damage == "order":
        saved["classes"] = [CLASSES[0], CLASSES[2], CLASSES[1]]
    elif damage == "labels":
        described["target"]["classes"][0] = ["run"]
    elif damage == "target":
        described["target"] = {"column": "way", "negative": ["walk"], "positive": ["car"]}
    elif damage == "names":
        saved["fit"]["names"][0] = "bus|tram:pay"
    else:
        saved["fit"]["rows"] = {"norm": 2.0}
    saved["fit"]["table"]["digest"] = Schema.from_dict(described).digest
    with pytest.raises(InvalidInput):
        dpci.multinomial.MultinomialFit.from_json(rewritten(saved))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"schema": Schema(columns=COLUMNS, target=ClassTarget(column="way", negative="walk", positive="car"))}, "Cat"),
        ({"schema": Schema(columns=COLUMNS, target=TARGET, encoding="full_range")}, "unit_norm"),
        ({"schema": Schema(columns=COLUMNS, target=TARGET, persons="id")}, "persons"),
        ({"schema": "people.toml"}, "schema must be"),
        ({"classes": ("walk", "car", "bus|tram")}, "those of the schema"),
        ({"rows": 1.0}, "rows must be None"),
    ],
)
def test_what_is_refused_with_a_schema(change, match):
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.0))
    with pytest.raises(InvalidInput, match=match):
        dpci.multinomial.fit(TABLE, **{**ASKED, "seed": None, "schema": SCHEMA, "ledger": ledger, **change})
    assert not ledger.history


def test_other_functions_take_no_target_of_several_classes():
    for function, more in ((dpci.fit, {}), (dpci.fit, {"loss": "squared", "mechanism": "objective"})):
        with pytest.raises(InvalidInput, match="several classes"):
            function(TABLE, schema=SCHEMA, **ASKED, **more)
    with pytest.raises(InvalidInput, match="must be a number"):
        dpci.fit(TABLE, schema=SCHEMA, budget=ASKED["budget"], loss="squared")
    with pytest.raises(InvalidInput, match="several classes"):
        dpci.plan(n_samples=N, schema=SCHEMA, budget=ASKED["budget"], l2_strength=0.01)


def test_a_value_outside_the_lists_is_an_error_that_private_errors_hide():
    wrong = TABLE.assign(way=TABLE["way"].where(TABLE.index != 7, "ship"))
    with pytest.raises(InvalidInput, match="ship"):
        dpci.multinomial.fit(wrong, schema=SCHEMA, **ASKED)
    ledger = dpci.Ledger(dpci.ZCDP(rho=2.0), errors="private")
    asked = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.01, "rows": "clip", "ledger": ledger}
    with pytest.raises(ReleaseFailed) as failed:
        dpci.multinomial.fit(wrong, schema=SCHEMA, **asked)
    assert "ship" not in str(failed.value)
    result = dpci.multinomial.fit(TABLE, schema=SCHEMA, **asked)
    assert len(ledger.history) == 2
    assert ledger.models[ledger.history[1].number] == result.digest


def test_a_ledger_that_cannot_pay_refuses_before_a_table_is_looked_at():
    ledger = dpci.Ledger(dpci.ZCDP(rho=0.1))
    with pytest.raises(BudgetExceeded):
        dpci.multinomial.fit("missing.csv", schema=SCHEMA, budget=dpci.ZCDP(0.5), l2_strength=0.01, ledger=ledger)


def test_rows_without_targets_are_refused():
    with pytest.raises(InvalidInput, match="y must be given"):
        dpci.multinomial.fit(SCHEMA.features(TABLE), classes=range(3), **ASKED)


SIZE = 4000
drawn = np.random.default_rng(2)
X = drawn.uniform(-0.5, 0.5, (SIZE, 2))
Y = (np.column_stack([np.zeros(SIZE), 3 * X[:, 0], 3 * X[:, 1]]) + drawn.gumbel(size=(SIZE, 3))).argmax(axis=1)


@pytest.mark.parametrize("budget", [dpci.PureDP(2.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-6)])
@pytest.mark.parametrize("relation", [{}, {"neighbors": "add_remove"}])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_plan_is_that_of_the_fit(budget, relation, mechanism):
    asked = {"budget": budget, "classes": [0, 1, 2], "l2_strength": 0.02, "mechanism": mechanism, **relation}
    found = dpci.multinomial.plan(n_samples=SIZE, n_features=2, **asked)
    public = {"neighbors": dpci.AddRemove(SIZE)} if relation else {}
    fitted = dpci.multinomial.fit(X, Y, **{**asked, **public}, seed=1)
    assert found.n_params == len(fitted.params)
    assert [step.to_dict() for step in found.steps] == fitted.privacy["steps"]
    points = [0.1, 1.0]
    assert (found.guarantee.delta(points) == fitted.guarantee.delta(points)).all()
    assert (found.least_l2_strength > 0.0) == (mechanism == "objective")
    assert found.recommended_l2_strength is None


def test_the_usual_mechanism_follows_from_the_budget():
    for budget, name in (
        (dpci.PureDP(2.0), "objective"),
        (dpci.ZCDP(0.5), "output"),
        (dpci.ApproxDP(2.0, 1e-6), "objective"),
    ):
        found = dpci.multinomial.plan(n_samples=SIZE, n_features=2, budget=budget, classes=[0, 1, 2], l2_strength=0.02)
        assert f"{name} perturbation" in found.title


def test_the_noise_is_that_of_releases():
    asked = {"budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    sds = dpci.multinomial.plan(n_samples=SIZE, n_features=2, **asked).noise_std_devs
    many = [dpci.multinomial.fit(X, Y, **asked, seed=seed).params for seed in range(400)]
    # The standard deviation of 2400 numbers has a relative error of 1.5%; 5 of them have a rate of 6e-7.
    spread = np.sqrt(np.var(many, axis=0, ddof=1).mean())
    assert abs(spread / sds[0] - 1.0) < 5 * 0.0145
    assert len(set(sds)) == 1


def test_an_earlier_fit_predicts_lengths():
    asked = {"budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    like = dpci.multinomial.fit(X, Y, **asked, seed=5)
    for n in (SIZE, 4 * SIZE):
        found = dpci.multinomial.plan(n_samples=n, n_features=2, like=like, **asked)
        times = n // SIZE
        lengths = [
            dpci.multinomial.fit(np.tile(X, (times, 1)), np.tile(Y, times), **asked, seed=seed).conf_int().length.mean()
            for seed in range(20)
        ]
        np.testing.assert_allclose(found.interval_length, np.mean(lengths), rtol=0.1)
        assert f"{found.interval_length:.4g} on average" in found.summary()
    assert found.title.startswith("Plan: multinomial loss of 3 classes, output perturbation")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"classes": [0, 1]}, "at least three"),
        ({"classes": None}, "at least three"),
        ({"n_features": None}, "n_features must be given"),
        ({"n_samples": 0}, "n_samples"),
        ({"l2_strength": 0.0}, "l2_strength"),
        ({"like": "model.json"}, "MultinomialFit"),
        ({"neighbors": dpci.AddRemove(SIZE + 1)}, "n_public"),
    ],
)
def test_what_is_refused(change, match):
    asked = {"n_samples": SIZE, "n_features": 2, "budget": dpci.ZCDP(0.5), "classes": [0, 1, 2], "l2_strength": 0.02}
    with pytest.raises(InvalidInput, match=match):
        dpci.multinomial.plan(**{**asked, **change})


def test_an_earlier_fit_must_have_as_many_classes():
    asked = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.02}
    # Both have six parameters.
    like = dpci.multinomial.fit(X[:, :1], Y, classes=[0, 1, 2, 3], seed=1, **asked)
    assert len(like.params) == 6
    with pytest.raises(InvalidInput, match="as many classes"):
        dpci.multinomial.plan(n_samples=SIZE, n_features=2, classes=[0, 1, 2], like=like, **asked)
