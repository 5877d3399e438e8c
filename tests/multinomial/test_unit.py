"""Multinomial fits of persons and of weighted rows: their limit, whole persons that change, and what is refused."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import statsmodels.api as sm
from scipy import optimize

import dpci
from dpci.errors import InvalidInput

N, STRENGTH, CLASSES = 3000, 1e-2, ("a", "b", "c")
rng = np.random.default_rng(8)
X = rng.uniform(-1.0, 1.0, (N, 2)) / np.sqrt(2.0)
Z = np.column_stack([X, np.ones(N)])
# Person 0 has 600 rows; those of the others are anywhere in the table.
WHOSE = np.where(np.arange(N) % 5 == 1, 0, 1 + (np.arange(N) * 7) % 431)
SHIFT = rng.normal(size=(432, 3))[WHOSE]
TRUE = np.array([[0.0, 0.0, 0.0], [1.5, -1.0, 0.5], [-1.0, 2.0, 0.2]])
CODES = (Z @ TRUE.T + SHIFT + rng.gumbel(size=(N, 3))).argmax(axis=1)
Y = np.array(CLASSES)[CODES]
WEIGHTS = rng.uniform(0.0, 3.0, N)
LIMIT = {"budget": dpci.ZCDP(rho=1e15), "classes": CLASSES, "l2_strength": STRENGTH, "seed": 1}
ASKED = {"budget": dpci.ZCDP(rho=0.5), "classes": CLASSES, "l2_strength": STRENGTH}

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")


def shares(max_rows):
    """How much each row counts of its person."""
    if max_rows is None:
        return 1.0 / np.bincount(WHOSE)[WHOSE]
    earlier = pd.Series(WHOSE).groupby(WHOSE).cumcount().to_numpy()
    return np.where(earlier < max_rows, 1.0 / max_rows, 0.0)


def expected(omega, unit, divisor):
    """The minimiser and its matrices, where row i counts omega[i] and the gradients of a unit add up."""

    def parts(params):
        u = np.column_stack([np.zeros(N), Z @ params.reshape(2, 3).T])
        log_sum = np.logaddexp.reduce(u, axis=1)
        p = np.exp(u - log_sum[:, None])
        slope = (p - np.eye(3)[CODES])[:, 1:]
        gradients = omega[:, None] * (slope[:, :, None] * Z[:, None, :]).reshape(N, 6)
        return log_sum - u[np.arange(N), CODES], gradients, p[:, 1:]

    def risk(params):
        loss, gradients, _ = parts(params)
        ridge = STRENGTH * params
        return omega @ loss / divisor + 0.5 * params @ ridge, gradients.sum(axis=0) / divisor + ridge

    params = optimize.minimize(risk, np.zeros(6), jac=True, method="BFGS", options={"gtol": 1e-11}).x
    _, gradients, p = parts(params)
    curvature = np.einsum("ij,jk->ijk", p, np.eye(2)) - p[:, :, None] * p[:, None, :]
    hessian = np.einsum("i,ijk,ia,ib->jakb", omega, curvature, Z, Z).reshape(6, 6) / divisor + STRENGTH * np.eye(6)
    of_unit = np.zeros((unit.max() + 1, 6))
    np.add.at(of_unit, unit, gradients)
    return params, hessian, of_unit.T @ of_unit / divisor


@pytest.mark.parametrize("max_rows", [None, 3])
@pytest.mark.parametrize("stored", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize(("weighted", "mechanism"), [(False, "output"), (True, "output"), (True, "objective")])
def test_the_limit_of_persons(max_rows, stored, weighted, mechanism):
    weights = {"weights": dpci.Weights(WEIGHTS, bound=3.0)} if weighted else {}
    asked = {**LIMIT, "mechanism": mechanism}
    if mechanism == "objective":
        asked["budget"] = dpci.PureDP(1e10)
    fitted = dpci.multinomial.fit(stored(X), Y, **asked, persons=dpci.Persons(WHOSE, max_rows=max_rows), **weights)
    n_persons = len(np.unique(WHOSE))
    assert fitted.n_samples == n_persons
    numbers = np.unique(WHOSE, return_inverse=True)[1]
    omega = shares(max_rows) * (WEIGHTS if weighted else 1.0)
    params, hessian, squares = expected(omega, numbers, n_persons)
    np.testing.assert_allclose(fitted.params, params, atol=1e-6)
    np.testing.assert_allclose(fitted.hessian, hessian, atol=1e-6)
    # The ridge's gradient is that of every person.
    meat = squares - STRENGTH**2 * np.outer(params, params)
    # That of weighted records is released over the greatest weight.
    np.testing.assert_allclose(fitted.gradient_cov * (3.0 if weighted else 1.0), meat, atol=1e-6)
    bread = np.linalg.inv(hessian)
    np.testing.assert_allclose(fitted.std_errors, np.sqrt(np.diag(bread @ meat @ bread / n_persons)), rtol=1e-4)


def test_the_limit_of_weights():
    fitted = dpci.multinomial.fit(X, Y, **LIMIT, weights=dpci.Weights(WEIGHTS, bound=3.0, total=4000.0))
    params, hessian, squares = expected(WEIGHTS, np.arange(N), 4000.0)
    np.testing.assert_allclose(fitted.params, params, atol=1e-6)
    np.testing.assert_allclose(fitted.hessian, hessian, atol=1e-6)
    bread = np.linalg.inv(hessian)
    # The mean gradient of the N records, whose sum the total divides.
    meat = squares - 4000.0 / N * STRENGTH**2 * np.outer(params, params)
    np.testing.assert_allclose(fitted.std_errors, np.sqrt(np.diag(bread @ meat @ bread / 4000.0)), rtol=1e-4)


def test_statsmodels_has_the_same_errors_by_cluster():
    """Its log-likelihood with the ridge: the minimiser, and the sandwich of its scores and Hessian by cluster."""
    whose = np.arange(N) // 4  # as many rows each, so that the mean over persons is that over rows
    fitted = dpci.multinomial.fit(X, Y, **LIMIT, persons=whose)
    model, n_persons = sm.MNLogit(CODES, Z), N // 4

    def slope(params):
        return STRENGTH * params - model.score(params.reshape(2, 3).T) / N

    found = optimize.root(slope, np.zeros(6), tol=1e-13)
    params, at = found.x, found.x.reshape(2, 3).T
    np.testing.assert_allclose(fitted.params, params, atol=1e-6)
    scores = STRENGTH * params - model.score_obs(at).reshape(n_persons, 4, 6).mean(axis=1)
    bread = np.linalg.inv(STRENGTH * np.eye(6) - model.hessian(at) / N)
    errors = np.sqrt(np.diag(bread @ scores.T @ scores @ bread)) / n_persons
    np.testing.assert_allclose(fitted.std_errors, errors, rtol=1e-6)
    # What statsmodels itself calls errors by cluster is this sandwich at its own, unregularised minimiser.
    theirs = model.fit(disp=0, cov_type="cluster", cov_kwds={"groups": whose, "use_correction": False})
    scores = model.score_obs(theirs.params).reshape(n_persons, 4, 6).sum(axis=1)
    bread = np.linalg.inv(model.hessian(theirs.params))
    same = np.sqrt(np.diag(bread @ scores.T @ scores @ bread))
    np.testing.assert_allclose(np.asarray(theirs.bse).T.ravel(), same, rtol=1e-6)
    # Its default multiplies by a correction for few clusters, .0015 here, which is not a part of the target.
    corrected = model.fit(disp=0, cov_type="cluster", cov_kwds={"groups": whose})
    factor = np.sqrt(n_persons / (n_persons - 1) * (N - 1) / (N - 6))
    np.testing.assert_allclose(np.asarray(corrected.bse), factor * np.asarray(theirs.bse), rtol=1e-6)


def test_persons_of_one_row_and_weights_of_one_change_nothing():
    plain = dpci.multinomial.fit(X, Y, **LIMIT)
    for same in (
        {"persons": np.arange(N)},
        {"persons": dpci.Persons(np.arange(N), max_rows=1)},
        {"weights": dpci.Weights(np.ones(N), bound=1.0)},
    ):
        other = dpci.multinomial.fit(X, Y, **LIMIT, **same)
        np.testing.assert_allclose(other.params, plain.params, atol=1e-6)
        np.testing.assert_allclose(other.std_errors, plain.std_errors, rtol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_a_whole_person_moves_the_minimiser_by_no_more_than_the_sensitivity(weighted, neighbors):
    """One of ten persons of three rows has others, or none: the fits with next to no noise are the minimisers."""
    draw = np.random.default_rng(3)
    relation = {"neighbors": neighbors if neighbors == "replace_one" else dpci.AddRemove(10)}
    mechanism = dpci.OutputPerturbation(moments="none")
    asked = {
        **LIMIT,
        "l2_strength": 5.0,
        "mechanism": mechanism,
        "rows": dpci.rows.Within(1.5, intercept=False),
        **relation,
    }
    greatest = 0.0
    for trial in range(12):
        rows = draw.normal(size=(33, 2))
        rows *= 1.5 / np.linalg.norm(rows, axis=1, keepdims=True)
        # The last two persons are extreme: all rows of one are of a class, those of the other point the other way.
        rows[27:30], rows[30:] = rows[27], -rows[27]
        labels = draw.choice(CLASSES, 33)
        labels[27:] = CLASSES[1 + trial % 2]
        of_rows = draw.uniform(0.0, 2.0, 33)
        of_rows[27:] = 2.0
        found = []
        for kept in (np.arange(30), np.r_[0:27, 30:33] if neighbors == "replace_one" else np.arange(27)):
            given = {"weights": dpci.Weights(of_rows[kept], bound=2.0)} if weighted else {}
            result = dpci.multinomial.fit(rows[kept], labels[kept], **asked, persons=kept // 3, **given)
            found.append(result.params)
        sensitivity = result.privacy["steps"][0]["sensitivity"]
        greatest = max(greatest, np.linalg.norm(found[0] - found[1]) / sensitivity)
    bound = (2.0 if weighted else 1.0) * np.sqrt(2.0) * 1.5 / (10 * 5.0)
    np.testing.assert_allclose(sensitivity, bound * (2.0 if neighbors == "replace_one" else 1.0), rtol=1e-9)
    # At this λ all probabilities are near 1/3, where a gradient has .53 of its bound.
    assert 0.45 < greatest <= 1.0


def test_a_release_is_saved_planned_and_told():
    plain = dpci.multinomial.fit(X, Y, **ASKED, persons=WHOSE, weights=dpci.Weights(WEIGHTS, bound=3.0), seed=4)
    again = dpci.multinomial.MultinomialFit.from_json(plain.to_json())
    assert again.to_json() == plain.to_json()
    assert "person" in again.summary()
    assert again.privacy["constants"]["persons"] == {"max_rows": None}
    planned = dpci.multinomial.plan(
        n_samples=plain.n_samples, n_features=2, **ASKED, persons=dpci.Persons(), weights=dpci.Weights(bound=3.0)
    )
    step = plain.privacy["steps"][0]
    assert [one.sensitivity for one in planned.steps][:1] == [step["sensitivity"]]


def test_a_schema_names_persons_and_weights():
    table = pd.DataFrame({"x": X[:, 0], "who": WHOSE, "kg": WEIGHTS, "y": Y})
    schema = dpci.schema.Schema(
        columns=(dpci.schema.NumericColumn(name="x", lower=-1, upper=1),),
        target=dpci.schema.CategoricalTarget(column="y", classes=tuple((label,) for label in CLASSES)),
    )
    asked = {"budget": dpci.ZCDP(1e13), "l2_strength": STRENGTH, "seed": 1}
    named = dpci.multinomial.fit(table, schema=schema, **asked, persons="who", weights=dpci.Weights("kg", bound=3.0))
    given = dpci.multinomial.fit(table, schema=schema, **asked, persons=WHOSE, weights=dpci.Weights(WEIGHTS, bound=3.0))
    np.testing.assert_allclose(named.params, given.params, atol=1e-6)
    known = dataclasses.replace(schema, persons="who")
    with pytest.raises(InvalidInput, match="persons must be given"):
        dpci.multinomial.fit(table, schema=known, budget=dpci.ZCDP(1.0), l2_strength=STRENGTH)
    planned = dpci.multinomial.plan(n_samples=431, schema=known, budget=dpci.ZCDP(1.0), l2_strength=STRENGTH)
    assert planned.persons is not None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"persons": WHOSE[:-1]}, "persons"),
        ({"persons": dpci.Persons(max_rows=2)}, "persons must have ids"),
        ({"persons": "who"}, "must be an array of ids"),
        ({"weights": WEIGHTS}, "bound="),
        ({"weights": dpci.Weights(bound=3.0)}, "weights"),
        ({"weights": dpci.Weights(WEIGHTS, bound=1.0)}, "weight"),
        ({"weights": dpci.Weights(-WEIGHTS, bound=3.0)}, "weight"),
    ],
)
def test_what_is_refused(change, match):
    ledger = dpci.Ledger(dpci.ZCDP(rho=1.0))
    with pytest.raises(InvalidInput, match=match):
        dpci.multinomial.fit(X, Y, **ASKED, ledger=ledger, **change)
    assert not ledger.history
