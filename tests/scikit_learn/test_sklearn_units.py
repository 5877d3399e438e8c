"""Persons and weights of the estimators: the fits of the library, and what is refused."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import dpci
from dpci import regression
from dpci.errors import InvalidInput
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from dpci.sklearn.linear import PrivateLinearRegression, PrivateRidge
from dpci.sklearn.transformers import RowNormClipper
from support.sklearn_rows import N, make_rows, make_targets, warnings_of

X, Y = make_rows()
T = make_targets(X)
WHOSE = np.arange(N) // 2
WEIGHTS = np.random.default_rng(3).uniform(0.0, 2.0, N)
KNOWN = {"bounds": (-0.5, 0.5), "target_bound": (-1.0, 1.0)}
quiet = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


@quiet
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
@pytest.mark.parametrize("rule", [None, dpci.Persons(max_rows=2)])
def test_persons(kind, rule):
    whose = np.arange(len(X)) // 3
    model = kind(epsilon=1e9, l2_strength=0.1, seed=1, persons=rule).fit(X, Y, persons=whose)
    persons = whose if rule is None else replace(rule, ids=whose)
    reference = dpci.fit(
        X, Y, persons=persons, budget=dpci.PureDP(1e9), l2_strength=0.1, rows="clip", seed=1,
        loss="logistic" if kind is PrivateLogisticRegression else "huber_hinge",
    )  # fmt: skip
    assert model.result_.n_samples == len(set(whose.tolist()))
    np.testing.assert_allclose(model.result_.params, reference.params, atol=1e-6)


def test_a_rule_needs_persons():
    with pytest.raises(dpci.errors.InvalidInput, match="persons=ids must be given to fit"):
        PrivateLogisticRegression(persons=dpci.Persons(max_rows=2)).fit(X, Y)


@quiet
@pytest.mark.parametrize(
    "counts",
    [
        {"persons": dpci.Persons(WHOSE)},
        {"persons": dpci.Persons(WHOSE, max_rows=2)},
        {"weights": dpci.Weights(WEIGHTS, bound=2.0)},
        {"persons": dpci.Persons(WHOSE), "weights": dpci.Weights(WEIGHTS, bound=2.0, total=700.0)},
    ],
    ids="-".join,
)
def test_linear_regressions(counts):
    public = {name: one.public for name, one in counts.items()}
    given = {"persons": WHOSE} if "persons" in counts else {}
    weights = WEIGHTS if "weights" in counts else None
    model = PrivateLinearRegression(epsilon=5.0, seed=3, **public, **KNOWN).fit(X, T, weights, **given)
    matrix = regression.release(X, T, budget=dpci.PureDP(5.0), rows="clip", seed=3, **counts, **KNOWN)
    assert model.result_.to_json() == matrix.fit().to_json()
    assert model.result_.covariance == "robust"
    ridge = PrivateRidge(epsilon=5.0, l2_strength=0.1, seed=3, **public).fit(X, T, weights, **given)
    fit = dpci.fit(X, T, loss="squared", budget=dpci.PureDP(5.0), l2_strength=0.1, rows="clip", seed=3, **counts)
    assert ridge.result_.to_json() == fit.to_json()


def test_a_huge_budget_gives_the_weighted_coefficients_of_scikit_learn():
    model = PrivateLinearRegression(epsilon=1e12, weights=dpci.Weights(bound=2.0), **KNOWN).fit(X, T, WEIGHTS)
    theirs = LinearRegression().fit(X, T, WEIGHTS)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), [*theirs.coef_, theirs.intercept_], atol=1e-6)
    # Each person counts by the mean over their rows: rows of a person of three count a third each.
    whose = np.minimum(np.arange(N) // 3, 300)
    model = PrivateLinearRegression(epsilon=1e12, **KNOWN).fit(X, T, persons=whose)
    theirs = LinearRegression().fit(X, T, 1.0 / np.bincount(whose)[whose])
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), [*theirs.coef_, theirs.intercept_], atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "given", "message"),
    [
        (PrivateRidge(), {"persons": WHOSE}, "l2_strength must be a number with persons and with weights"),
        (PrivateRidge(l2_strength=0.1, fit_intercept=False), {"persons": WHOSE}, "intercept must be True with"),
        (PrivateLinearRegression(fit_intercept=False, **KNOWN), {"persons": WHOSE}, "intercept must be True with"),
        (PrivateLinearRegression(**KNOWN), {"sample_weight": WEIGHTS}, "must not depend on the data, got weights=None"),
        (PrivateLinearRegression(persons=dpci.Persons(), **KNOWN), {}, "persons=ids must be given to fit"),
        (PrivateLinearRegression(persons=dpci.Persons(WHOSE), **KNOWN), {"persons": WHOSE}, "persons must have no ids"),
        (PrivateLinearRegression(persons="id", **KNOWN), {"persons": WHOSE}, "as a parameter of an estimator, got str"),
        (PrivateLinearRegression(weights=2.0, **KNOWN), {}, "as a parameter of an estimator, got float"),
        (PrivateLinearRegression(**KNOWN), {"persons": dpci.Persons(WHOSE)}, "persons must be an array in fit"),
        (
            PrivateLinearRegression(weights=dpci.Weights(bound=2.0), **KNOWN),
            {"sample_weight": dpci.Weights(WEIGHTS, bound=2.0)},
            "sample_weight must be an array in fit",
        ),
        (PrivateLinearRegression(**KNOWN), {"persons": "id"}, "persons must be an array of ids"),
        (PrivateLogisticRegression(), {"persons": "id"}, "persons must be an array of ids"),
        (PrivateLinearRegression(weights=dpci.Weights(bound=2.0), **KNOWN), {"sample_weight": -WEIGHTS}, "at least 0"),
        (PrivateLinearRegression(**KNOWN), {"persons": WHOSE[:-1]}, "persons must"),
        (PrivateLinearRegression(epsilon=0.01, **KNOWN), {"persons": WHOSE}, "vary more than the noise"),
    ],
    ids=str,
)
def test_what_is_refused_costs_nothing(estimator, given, message):
    ledger = dpci.Ledger(dpci.PureDP(9.0))
    estimator = sklearn.clone(estimator).set_params(ledger=ledger)
    with pytest.raises(dpci.InvalidInput, match=message):
        estimator.fit(X, Y if isinstance(estimator, PrivateLogisticRegression) else T, **given)
    assert ledger.history == ()
    assert not hasattr(estimator, "coef_")


def test_a_hidden_regression_of_persons_keeps_its_release():
    still = np.zeros((N, 2))
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    model = PrivateLinearRegression(bounds=(-0.5, 0.5), ledger=ledger)
    _, caught = warnings_of(lambda: model.fit(still, T, persons=WHOSE))
    (warning,) = caught
    assert warning.category is dpci.MomentNoiseWarning
    assert warning.filename == __file__
    assert "there are no coefficients, and result_ has the release" in str(warning.message)
    assert np.isnan([*model.coef_, model.intercept_]).all()
    assert len(ledger.history) == 1
    assert regression.MomentMatrix.of(model.result_).means(["x0"]).names == ("x0",)
    for call in (lambda: model.predict(still), model.conf_int):
        with pytest.raises(dpci.InvalidInput, match="vary more than the noise"):
            call()


@quiet
def test_persons_and_weights_are_routed_through_pipelines():
    with sklearn.config_context(enable_metadata_routing=True):
        last = PrivateLinearRegression(row_norm=1.0, weights=dpci.Weights(bound=2.0), seed=1)
        pipe = make_pipeline(RowNormClipper(), last.set_fit_request(persons=True, sample_weight=True))
        pipe.fit(X, T, persons=WHOSE, sample_weight=WEIGHTS)
    alone = PrivateLinearRegression(row_norm=1.0, weights=dpci.Weights(bound=2.0), seed=1).fit(
        X, T, WEIGHTS, persons=WHOSE
    )
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)


X, Y = make_rows()
ROW_WEIGHTS = np.random.default_rng(3).uniform(0.0, 2.0, len(X))
SAME = {"epsilon": 1e9, "l2_strength": 0.1, "seed": 1}


def reference(weights, bound, total=None, loss="logistic", y=Y):
    return dpci.fit(
        X,
        y,
        weights=dpci.Weights(weights, bound=bound, total=total),
        budget=dpci.PureDP(1e9),
        l2_strength=0.1,
        rows="clip",
        seed=1,
        loss=loss,
        mechanism=dpci.ObjectivePerturbation(radius=1.0 if loss == "squared" else None),
    ).params


@quiet
def test_sample_weight_is_that_of_the_library():
    for kind, loss, y in (
        (PrivateLogisticRegression, "logistic", Y),
        (PrivateLinearSVC, "huber_hinge", Y),
        (partial(PrivateRidge, mechanism=dpci.ObjectivePerturbation(radius=1.0)), "squared", make_targets(X)),
    ):
        model = kind(**SAME, weights=dpci.Weights(bound=2.0, total=700.0)).fit(X, y, ROW_WEIGHTS)
        np.testing.assert_allclose(model.result_.params, reference(ROW_WEIGHTS, 2.0, 700.0, loss, y), atol=1e-6)
        without = kind(**SAME, weights=dpci.Weights(bound=2.0)).fit(X, y)
        np.testing.assert_allclose(without.result_.params, kind(**SAME).fit(X, y).result_.params, atol=0.0)
        with pytest.raises(InvalidInput, match="must not depend on the data, got weights=None"):
            kind(**SAME).fit(X, y, ROW_WEIGHTS)


@quiet
def test_class_weight_multiplies_the_weights_of_rows():
    labels = np.unique(Y)
    public = {labels[0]: 0.5, labels[1]: 3.0}
    of_class = np.where(labels[1] == Y, 3.0, 0.5)
    for rows, rule in ((None, None), (ROW_WEIGHTS, dpci.Weights(bound=2.0))):
        model = PrivateLogisticRegression(**SAME, class_weight=public, weights=rule, classes=tuple(labels))
        model.fit(X, Y, rows)
        weights, greatest = (of_class, 3.0) if rows is None else (of_class * rows, 6.0)
        np.testing.assert_allclose(model.result_.params, reference(weights, greatest), atol=1e-6)
        assert model.result_.privacy["constants"]["weights"] == {"bound": greatest, "total": None}
    # As in scikit-learn, more weight on a class moves the intercept towards it.
    plain = PrivateLogisticRegression(**SAME, classes=tuple(labels)).fit(X, Y)
    assert model.set_params(weights=None).fit(X, Y).intercept_ > plain.intercept_


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("balanced", "computed from the labels are not private"),
        ({False: 1.0}, "for each of the classes"),
        ({False: 1.0, True: 1.0, 2: 1.0}, "for each of the classes"),
        ({False: 1.0, True: -1.0}, "class_weight must be"),
        ({"a": 1.0, "b": 1.0}, "for each of the classes"),
        ([1.0, 2.0], "must be a mapping"),
    ],
)
def test_what_is_no_public_class_weight(weights, message):
    for kind in (PrivateLogisticRegression, PrivateLinearSVC):
        ledger = dpci.Ledger(dpci.PureDP(1.0))
        with pytest.raises(InvalidInput, match=message):
            kind(epsilon=0.5, class_weight=weights, ledger=ledger).fit(X, X[:, 0] > 0)
        assert ledger.remaining == ledger.total


def test_private_errors_with_weights_of_classes():
    ledger = dpci.Ledger(dpci.PureDP(3.0), errors="private")
    model = PrivateLogisticRegression(epsilon=1.0, l2_strength=0.1, class_weight={False: 1.0, True: 2.0})
    model.set_params(classes=(False, True), ledger=ledger, weights=dpci.Weights(bound=2.0))
    model.fit(X, X[:, 0] > 0, np.where(X[:, 0] > 0, 9.0, 1.0))  # clipped
    with pytest.raises(dpci.errors.ReleaseFailed):
        model.fit(X, X[:, 0] > 0, np.full(len(X), -1.0))
    assert ledger.remaining == dpci.PureDP(1.0)


@quiet
def test_class_weight_of_other_labels_is_refused():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    model = PrivateLogisticRegression(epsilon=1.0, l2_strength=0.1, class_weight={0: 1.0, 1: 5.0}, ledger=ledger)
    with pytest.raises(InvalidInput, match=r"the classes of class_weight, \(0, 1\), got other labels"):
        model.fit(X, np.where(Y > 0, 7, 3))
    assert ledger.remaining == dpci.PureDP(1.0)
    assert list(model.fit(X, np.where(Y > 0, 1, 0)).classes_) == [0, 1]


@quiet
def test_weights_of_rows_have_their_own_bound_beside_class_weight():
    common = {"epsilon": 1e9, "l2_strength": 0.1, "class_weight": {False: 1.0, True: 5.0}, "seed": 1}
    heavy = np.where(Y, 1.0, 10.0)
    clipped = PrivateLogisticRegression(**common, weights=dpci.Weights(bound=3.0)).fit(X, Y, heavy)
    lowered = PrivateLogisticRegression(**common, weights=dpci.Weights(bound=3.0)).fit(X, Y, np.minimum(heavy, 3.0))
    np.testing.assert_array_equal(clipped.coef_, lowered.coef_)
    strict = PrivateLogisticRegression(**common, weights=dpci.Weights(bound=3.0), on_violation="error")
    with pytest.raises(InvalidInput, match="at most the bound of weights, 3, got 10 in row"):
        strict.fit(X, Y, heavy)
    total = PrivateLogisticRegression(**common, weights=dpci.Weights(bound=1.0, total=4000.0)).fit(X, Y)
    assert np.linalg.norm(total.coef_) < np.linalg.norm(PrivateLogisticRegression(**common).fit(X, Y).coef_)
