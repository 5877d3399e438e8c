"""Rows beyond their bounds that stay as they are and weigh less: targets, parts, files and refusals."""

import json
from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm

import dpci
from dpci import lowlevel, tuning
from dpci.approval.approvable import statement_of
from dpci.errors import InvalidInput
from dpci.regression.result import record_of as regression_record
from dpci.released.model import record_of
from dpci.rows import Blocks, Weighted
from dpci.schema import CategoricalTarget, ClassTarget, NumericTarget, PartialSchema, Schema, UnboundedColumn

pytestmark = pytest.mark.filterwarnings("ignore::dpci.DpciWarning")
N = 20_000
SLOPES, CONSTANT = np.array([0.25, 0.5]), -0.5


def drawn(n=N, seed=0):
    """A lognormal and a normal column, classes and numbers that follow the model of both as they are."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.lognormal(0.0, 1.0, n), rng.normal(size=n)])
    odds = X @ SLOPES + CONSTANT
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), odds + 0.2 * rng.normal(size=n)


X, CLASSES, NUMBERS = drawn()
TABLE = {"a": X[:, 0], "b": X[:, 1], "y": np.where(CLASSES, "yes", "no"), "z": NUMBERS}
WHICH = ClassTarget(column="y", negative=("no",), positive=("yes",))
BOUNDS = {"a": (0.0, 3.0), "b": (-1.5, 1.5)}


def schema(target=WHICH, outside="weight"):
    columns = (
        dpci.schema.NumericColumn(name=n, lower=low, upper=high, outside=outside) for n, (low, high) in BOUNDS.items()
    )
    return Schema(columns=tuple(columns), target=target)


def sizes():
    """How many times as far from the middle of its bounds as these each row is, by its farthest column."""
    places = [(X[:, j] - (low + high) / 2) / ((high - low) / 2) for j, (low, high) in enumerate(BOUNDS.values())]
    return np.maximum(1.0, np.abs(places).max(axis=0))


def coefficients(fit):
    return np.asarray(fit.params)


@pytest.mark.parametrize("target", [WHICH, NumericTarget(column="z", lower=-5, upper=20)], ids=["classes", "numbers"])
@pytest.mark.parametrize("budget", [dpci.ZCDP(0.5), dpci.PureDP(2.0)], ids=str)
def test_the_slope_of_a_long_tail_is_that_of_the_model_with_weights_alone(target, budget):
    # False-positive rate 1e-6: five standard errors.
    gaps = {}
    for outside in ("clip", "weight"):
        columns = tuple(UnboundedColumn(name=name, outside=outside) for name in BOUNDS)
        fit = dpci.fit(TABLE, schema=PartialSchema(columns=columns, target=target), budget=budget, seed=1)
        gaps[outside] = (np.abs(fit.params[:2] - SLOPES) / fit.std_errors[:2]).max()
    assert gaps["weight"] < 5.0
    assert gaps["clip"] > 4.0 or target is WHICH


def test_with_little_noise_the_matrix_is_that_of_weighted_least_squares():
    found = dpci.fit(
        TABLE, schema=schema(NumericTarget(column="z", lower=-40, upper=60)), budget=dpci.PureDP(1e9), seed=1
    )
    expected = sm.WLS(NUMBERS, sm.add_constant(X, prepend=False), sizes() ** -2.0).fit(cov_type="HC0")
    np.testing.assert_allclose(coefficients(found), expected.params, rtol=1e-5)
    np.testing.assert_allclose(found.std_errors, expected.bse, rtol=1e-2)


def test_with_little_noise_a_fit_is_the_weighted_one():
    found = dpci.fit(TABLE, schema=schema(), budget=dpci.PureDP(1e9), l2_strength=1e-9, seed=1)
    model = sm.GLM(CLASSES, sm.add_constant(X, prepend=False), sm.families.Binomial(), freq_weights=sizes() ** -2.0)
    np.testing.assert_allclose(coefficients(found), model.fit(tol=1e-12).params, rtol=2e-4)
    assert record_of(found).weights == dpci.Weights(bound=1.0, far_rows=True)


@pytest.mark.parametrize("persons", [None, np.arange(N) // 2], ids=["rows", "persons"])
@pytest.mark.parametrize(
    "keywords", [{}, {"l2_strength": 1e-3}, {"loss": "squared"}], ids=["newton", "ridge", "squared"]
)
def test_rows_in_parts_weigh_the_same(keywords, persons):
    squared = keywords.get("loss") == "squared"
    y = np.clip(NUMBERS / 40.0, -1.0, 1.0) if squared else CLASSES.astype(float)
    rows = Weighted(Blocks([1.0, 1.0]))
    common = {"budget": dpci.ZCDP(2.0), "rows": rows, "seed": 3, **keywords}
    beside = {} if persons is None else {"persons": persons}
    whole = dpci.fit(X, y, classes=None if squared else (0.0, 1.0), **common, **beside)
    cuts = [slice(0, 7000), slice(7000, N)]
    if persons is None:
        chunks = dpci.Chunks([(X[cut], y[cut]) for cut in cuts])
    else:
        chunks = dpci.Chunks([(X[cut], y[cut], {"id": persons[cut]}) for cut in cuts])
        beside = {"persons": "id"}
    found = dpci.fit(chunks, classes=None if squared else (0.0, 1.0), **common, **beside)
    np.testing.assert_allclose(found.params, whole.params, rtol=1e-6, atol=1e-9)


def test_a_column_and_a_file_say_what_happens_beyond_the_bounds(tmp_path):
    far = schema()
    assert far.digest != schema(outside="clip").digest
    path = tmp_path / "people.json"
    path.write_text(json.dumps(far.to_dict()))
    assert Schema.from_file(path) == far
    encoded = far.transform(TABLE).X
    assert np.abs(encoded).max() > 2.0
    np.testing.assert_allclose(
        np.abs(schema(outside="clip").transform(TABLE).X).max(), encoded[sizes() == 1.0].max(), rtol=0.1
    )
    assert "stays as it is, and its row weighs less" in str(far.check(TABLE))
    fit = dpci.fit(TABLE, schema=far, budget=dpci.ZCDP(0.5), seed=1)
    assert record_of(fit).on_violation == "weight"
    assert "with numbers as they are, where the model holds" in " ".join(fit.summary().split())
    again = dpci.PrivateFit.from_json(fit.to_json())
    np.testing.assert_array_equal(again.conf_int(), fit.conf_int())
    ridge = dpci.fit(TABLE, schema=far, budget=dpci.ZCDP(0.5), l2_strength=1e-3, seed=1)
    again = dpci.PrivateFit.from_json(ridge.to_json())
    assert record_of(again).weights == record_of(ridge).weights
    assert "kept, and the row weighs less" in str(statement_of(fit).beyond)


FAR, RIDGE = {"budget": dpci.ZCDP(1.0), "rows": "weight"}, {"l2_strength": 0.1}
TO_BUDGET = {"budget": dpci.ZCDP(1.0), **RIDGE}
SEVERAL = CategoricalTarget(column="y", classes=(("no",), ("yes",), ("else",)))
WITHIN = dpci.mechanisms.ObjectivePerturbation(radius=1.0)
REFUSED = {
    'rows must not be "clip"': lambda: dpci.fit(TABLE, schema=schema(), budget=dpci.ZCDP(1.0), rows="clip"),
    "without a radius": lambda: dpci.fit(X, CLASSES, mechanism=WITHIN, **FAR, **RIDGE),
    "hinge": lambda: dpci.fit(X, CLASSES, loss="hinge", mechanism="output", **FAR, **RIDGE),
    "bounds move numbers": lambda: dpci.regression.release(X, NUMBERS, bounds=(0, 1), target_bound=9, **FAR),
    "tuning requires rows within": lambda: tuning.tune(
        X,
        CLASSES,
        candidates=[RIDGE, {"l2_strength": 1.0}],
        validation_radius=1.0,
        **{**FAR, "budget": dpci.PureDP(1.0)},
    ),
    "rows=.weight": lambda: dpci.per_instance.report(
        X, CLASSES, n_public=N, **{**FAR, **RIDGE, "budget": dpci.ApproxDP(1.0, 1e-6)}
    ),
    "rows must be a bound": lambda: dpci.multinomial.fit(X, CLASSES, classes=(0, 1, 2), **FAR, **RIDGE),
    "a schema for dpci.multinomial": lambda: dpci.multinomial.fit(
        TABLE, schema=schema(SEVERAL), rows="clip", **TO_BUDGET
    ),
    "without weights": lambda: dpci.plan_table(n_samples=N, n_features=2, budgets=dpci.ZCDP(1.0), rows="weight"),
    "a spline ends at": lambda: Schema.from_formula("y ~ bs(a, df=5)", schema()),
    "come without weights": lambda: lowlevel.checked_rows(X, rows="weight"),
    "rows must be a bound on": lambda: dpci.baselines.functional_mechanism(X, CLASSES, **FAR),
}


@pytest.mark.parametrize("message", REFUSED)
def test_others_refuse_them_before_anything_is_spent(message):
    with pytest.raises(InvalidInput, match=message):
        REFUSED[message]()


def test_a_caller_cannot_say_that_rows_lie_beyond_their_bounds():
    weights = dpci.Weights(np.ones(N), bound=1.0, far_rows=True)
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    fit = dpci.fit(
        X / 1e3, CLASSES, classes=(False, True), budget=dpci.ZCDP(1.0), weights=weights, ledger=ledger, **RIDGE
    )
    assert record_of(fit).weights == dpci.Weights(bound=1.0)


@pytest.mark.parametrize(
    "keywords", [{}, {"l2_strength": 1e-3}, {"loss": "squared"}], ids=["newton", "ridge", "squared"]
)
@pytest.mark.parametrize("value", [1e20, 1e200, -1.7e308])
def test_no_number_makes_a_release_fail(value, keywords):
    described = schema(NumericTarget(column="z", lower=-5, upper=20) if "loss" in keywords else WHICH)
    described = Schema.from_formula("a * b + I(a**10)", described)
    table = {**TABLE, "a": np.where(np.arange(N) == 7, value, TABLE["a"])}
    fit = dpci.fit(table, schema=described, budget=dpci.ZCDP(1.0), seed=1, **keywords)
    assert np.isfinite(fit.scaled.params if "loss" in keywords else record_of(fit).params).all()


@pytest.mark.parametrize(
    "keywords",
    [{}, {"l2_strength": 1e-3}, {"loss": "squared", "mechanism": "moments"}],
    ids=["newton", "ridge", "matrix"],
)
def test_a_forged_record_is_refused(keywords):
    target = NumericTarget(column="z", lower=-5, upper=20) if "loss" in keywords else WHICH
    fit = dpci.fit(TABLE, schema=schema(target), budget=dpci.ZCDP(1.0), seed=1, **keywords)
    record = regression_record(fit) if "loss" in keywords else record_of(fit)
    other = dpci.Weights(bound=1.0, far_rows=record.weights is None)
    for forged in ({"on_violation": "clip"}, {"on_violation": "error"}, {"weights": other}):
        with pytest.raises(InvalidInput, match="rows beyond their bounds"):
            replace(record, **forged)


def test_a_comparison_needs_equal_bounds_beyond_which_rows_weigh_less():
    fits = [
        dpci.fit(
            X, CLASSES, classes=(False, True), budget=dpci.ZCDP(1.0), rows=Weighted(bound), seed=seed, l2_strength=0.01
        )
        for seed, bound in enumerate((1.0, 1.0, 2.0))
    ]
    dpci.compare(*fits[:2])
    with pytest.raises(InvalidInput, match="the same rows, beyond which records weigh less"):
        dpci.compare(*fits[1:])


def test_a_regression_says_whether_other_columns_weigh_its_rows():
    matrix = dpci.regression.release(
        TABLE,
        schema=schema(NumericTarget(column="z", lower=-5, upper=20)),
        budget=dpci.ZCDP(1.0),
        seed=1,
        robust=[dpci.regression.Regression(), dpci.regression.Regression(features=("b",))],
    )
    texts = [" ".join(matrix.fit(features=names).summary().split()) for names in (None, ("b",))]
    assert "of the columns as they are" in texts[0]
    assert "of the columns as they are" not in texts[1]
    assert "regressor or not" in texts[1]


@pytest.mark.parametrize("rows", [None, "weight"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("keywords", [{}, RIDGE], ids=["newton", "ridge"])
def test_bad_weights_cost_nothing(rows, value, keywords):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    weights = dpci.Weights(np.where(np.arange(N) == 5, value, 1.0), bound=2.0)
    with pytest.raises(InvalidInput, match="weights must be finite"):
        dpci.fit(X / 1e3, CLASSES, budget=dpci.ZCDP(1.0), rows=rows, weights=weights, ledger=ledger, **keywords)
    assert ledger.spent == {"rho": 0.0}


def test_with_released_bounds_of_the_target_no_column_is_said_to_be_as_it_is():
    columns = tuple(UnboundedColumn(name=name, outside="weight") for name in BOUNDS)
    partial = PartialSchema(columns=columns, target=dpci.schema.UnboundedTarget(column="z"))
    fit = dpci.fit(TABLE, schema=partial, budget=dpci.ZCDP(1.0), seed=1)
    # Targets beyond the bounds follow no line.
    assert (fit.params[0] - SLOPES[0]) / fit.std_errors[0] < -4.0
    text = " ".join(fit.summary().split())
    assert "those of the moved targets" in text
    assert "as they are" not in text


def test_a_ridge_pulls_the_regression_of_weighted_rows():
    fit = dpci.fit(TABLE, schema=schema(), budget=dpci.ZCDP(1.0), seed=1, **RIDGE)
    text = " ".join(fit.summary(full=True).split())
    assert "in which rows beyond the bounds weigh less" in text
    assert "as they are" not in text
