"""Comparisons of fits whose records are persons or have weights: which targets are the same, and which are not."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.schema import NumericColumn, NumericTarget, Schema

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


def sample(seed, n=600):
    """Rows of persons of whom those with many rows are others than those with few."""
    rng = np.random.default_rng(seed)
    counts = rng.choice([1, 8], n)
    ids = np.repeat(np.arange(n), counts)
    X = rng.uniform(-0.6, 0.6, (len(ids), 2))
    slope = np.where(counts == 1, 4.0, -4.0)[ids]
    return X, np.where(slope * X[:, 0] + rng.logistic(size=len(ids)) > 0, 1, -1), ids


def fit(seed, *, max_rows=None, **keywords):
    X, y, ids = sample(seed)
    whose = {"persons": dpci.Persons(ids, max_rows=max_rows)}
    given = {"budget": dpci.PureDP(1e6), "l2_strength": 0.01, "classes": (-1, 1), "seed": seed, **whose, **keywords}
    return dpci.fit(X, y, **given)


def release(seed, *, max_rows=None, **keywords):
    X, y, ids = sample(seed)
    persons = dpci.Persons(ids, max_rows=max_rows)
    return dpci.regression.release(
        X, 1.0 * y, persons=persons, budget=dpci.ZCDP(1e6), robust=True, seed=seed, **keywords
    ).fit()


@pytest.mark.parametrize("make", [fit, release])
def test_other_sums_over_the_rows_of_a_person_are_other_targets(make):
    equal = dpci.compare(make(1), make(2))
    assert (equal.pvalues > 1e-6).all()
    for first, second in ((None, 8), (4, 8), (1, 8)):
        with pytest.raises(InvalidInput, match=f"must have the same max_rows to be compared, got {first} and {second}"):
            dpci.compare(make(1, max_rows=first), make(2, max_rows=second))
    assert dpci.compare(make(1, max_rows=3), make(2, max_rows=3)).private is False


def test_rows_are_persons_of_one_row():
    X, y, ids = sample(3)
    first = np.unique(ids, return_index=True)[1]
    keywords = {"budget": dpci.PureDP(1e6), "l2_strength": 0.01, "classes": (-1, 1)}
    alone = dpci.fit(X[first], y[first], seed=3, **keywords)
    persons = dpci.fit(X[first], y[first], seed=4, persons=ids[first], **keywords)
    assert np.abs(dpci.compare(alone, persons).difference).max() < 1e-3


@pytest.mark.parametrize("make", [fit, release])
def test_weights_that_were_lowered_to_two_bounds_are_refused(make):
    weights = np.random.default_rng(5).uniform(0.0, 3.0, len(sample(1)[1])), np.ones(len(sample(2)[1]))
    clipped = {"rows": "clip"}
    low, high = (make(1, weights=dpci.Weights(weights[0], bound=bound), **clipped) for bound in (1.0, 3.0))
    with pytest.raises(InvalidInput, match=r"bound of weights, to which they were lowered, .* got 1\.0 and 3\.0"):
        dpci.compare(low, high)
    same = make(2, weights=dpci.Weights(weights[1], bound=3.0), **clipped)
    assert np.isfinite(dpci.compare(high, same).std_errors).all()


def test_coefficients_in_other_units_are_not_compared():
    rng = np.random.default_rng(3)
    age = rng.uniform(18, 80, 2000)
    table = {"age": age, "dose": np.clip(1.0 + 0.5 * age + rng.normal(0, 5, 2000), 0, 100)}

    def of(upper=100.0, unit="", per=1.0, seed=1):
        column = NumericColumn("age", lower=18, upper=100, unit=unit, per=per)
        schema = Schema(columns=(column,), target=NumericTarget("dose", lower=0, upper=upper))
        return dpci.fit(table, schema=schema, loss="squared", budget=dpci.ZCDP(1e6), seed=seed)

    assert (dpci.compare(of(), of(seed=2), shared_data=True).pvalues > 1e-6).all()
    for other in (of(upper=200.0, seed=2), of(unit="month", seed=2), of(per=10.0, seed=2)):
        with pytest.raises(
            InvalidInput, match="in the same units, got schemas that differ in unit=, per= or the bounds"
        ):
            dpci.compare(of(), other, shared_data=True)


def test_the_variance_of_the_errors_is_in_the_unit_of_the_target():
    rng = np.random.default_rng(4)
    age = rng.uniform(18, 80, 20_000)
    table = {"age": age, "dose": np.clip(10.0 + 0.5 * age + rng.normal(0, 5, 20_000), 0, 100)}
    schema = Schema(
        columns=(NumericColumn("age", lower=18, upper=100),), target=NumericTarget("dose", lower=0, upper=100)
    )
    found = dpci.fit(table, schema=schema, loss="squared", budget=dpci.ZCDP(1e9), seed=1)
    _, (squares,), *_ = np.linalg.lstsq(np.column_stack([age, np.ones(20_000)]), table["dose"])
    assert found.residual_variance == pytest.approx(squares / (20_000 - 2), rel=1e-3)
    assert f"{np.sqrt(found.residual_variance):.4g}" in found.summary()
