"""Frames, persons and weights of the estimators: the fits of the library, and what is refused."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import dpci
from dpci import regression
from dpci.errors import InvalidInput
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from dpci.sklearn.linear import PrivateLinearRegression, PrivateRidge
from dpci.sklearn.search import PrivateGridSearch
from dpci.sklearn.transformers import RowNormClipper
from support.keywords import assembled
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
    assert "vary more than the noise" in repr(model.conf_int())
    with pytest.raises(dpci.InvalidInput, match="vary more than the noise"):
        model.predict(still)


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


SAME = {"epsilon": 1e9, "l2_strength": 0.1, "seed": 1}


def reference(weights, bound, total=None, loss="logistic", y=Y):
    return dpci.fit(
        X, y, weights=dpci.Weights(weights, bound=bound, total=total), budget=dpci.PureDP(1e9), l2_strength=0.1,
        rows="clip", seed=1, loss=loss, mechanism=dpci.ObjectivePerturbation(radius=1.0 if loss == "squared" else None),
    ).params  # fmt: skip


@quiet
def test_sample_weight_is_that_of_the_library():
    for kind, loss, y in (
        (PrivateLogisticRegression, "logistic", Y),
        (PrivateLinearSVC, "huber_hinge", Y),
        (partial(PrivateRidge, mechanism=dpci.ObjectivePerturbation(radius=1.0)), "squared", make_targets(X)),
    ):
        model = kind(**SAME, weights=dpci.Weights(bound=2.0, total=700.0)).fit(X, y, WEIGHTS)
        np.testing.assert_allclose(model.result_.params, reference(WEIGHTS, 2.0, 700.0, loss, y), atol=1e-6)
        without = kind(**SAME, weights=dpci.Weights(bound=2.0)).fit(X, y)
        np.testing.assert_allclose(without.result_.params, kind(**SAME).fit(X, y).result_.params, atol=0.0)
        with pytest.raises(InvalidInput, match="must not depend on the data, got weights=None"):
            kind(**SAME).fit(X, y, WEIGHTS)


@quiet
def test_class_weight_multiplies_the_weights_of_rows():
    labels = np.unique(Y)
    public = {labels[0]: 0.5, labels[1]: 3.0}
    of_class = np.where(labels[1] == Y, 3.0, 0.5)
    for rows, rule in ((None, None), (WEIGHTS, dpci.Weights(bound=2.0))):
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


pd = pytest.importorskip("pandas", reason="no frames to be read")

TEXT = np.where(Y == 1, "yes", "no")
# So great a budget that no fit is refused.
LOGISTIC = PrivateLogisticRegression(epsilon=1e3)
SEARCH = PrivateGridSearch(LOGISTIC, {"l2_strength": [0.1]}, validation_radius=4.0)


def frame(names, last):
    return pd.DataFrame({names[0]: X[:, 0], names[1]: X[:, 1], names[2]: last})


WHOLE = (X[:, 2] > 0).astype(int)
NO_NUMBERS = {
    "category": pd.Categorical(WHOLE),
    "object": WHOLE.astype(object),
    "text": WHOLE.astype(str),
    "date": pd.Timestamp("2020-01-01"),
}


@pytest.mark.parametrize("names", ["abc", range(3)], ids=str)
@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_columns_that_are_no_numbers_are_refused_by_every_method(names, kind):
    """scikit-learn makes numbers of them, of whatever the columns are called."""
    model = PrivateLogisticRegression(epsilon=1e3).fit(frame(names, X[:, 2]), Y)
    bad = frame(names, NO_NUMBERS[kind])
    for call in (lambda: model.fit(bad, Y), lambda: model.predict(bad), lambda: SEARCH.fit(bad, Y)):
        with pytest.raises(dpci.InvalidInput, match=rf"must be numeric, got dtype \S+ in column '{names[2]}' \(encode"):
            call()


def test_a_missing_value_is_named():
    holes = pd.Series([0.1] * 7 + [None] + [0.2] * (N - 8), dtype="Float64")
    for estimator, y in ((LOGISTIC, Y), (PrivateRidge(epsilon=1e3), T)):
        with pytest.raises(dpci.InvalidInput, match=r"got one in row 7 of column 'c'"):
            estimator.fit(frame("abc", holes), y)


def test_names_that_are_no_text_are_those_of_scikit_learn():
    for model in (PrivateLogisticRegression(epsilon=1e3).fit(pd.DataFrame(X), Y), SEARCH.fit(pd.DataFrame(X), Y)):
        assert model.conf_int().names == ("x0", "x1", "x2", "intercept")
        assert not hasattr(model, "feature_names_in_")
        np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=[7, 8, 9])), model.predict(X))
    with pytest.raises(ValueError, match="3 features"):
        model.predict(pd.DataFrame(X[:, :2]))


def test_labels_of_several_levels_are_refused():
    levels = pd.DataFrame(X, columns=pd.MultiIndex.from_product([["a"], list("xyz")]))
    with pytest.raises(dpci.InvalidInput, match="of several levels"):
        LOGISTIC.fit(levels, Y)


def test_a_lazy_frame_is_computed():
    pl = pytest.importorskip("polars", reason="no lazy frames")
    frame, seeded = pl.DataFrame(X, schema=["a", "b", "c"]), {"epsilon": 1e3, "seed": 3}
    lazy, plain = (PrivateLogisticRegression(**seeded).fit(rows, Y) for rows in (frame.lazy(), frame))
    assert list(lazy.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(lazy.result_.params, plain.result_.params)
    np.testing.assert_array_equal(lazy.predict(frame.lazy()), plain.predict(frame))


def test_a_frame_gives_the_bits_of_its_numbers():
    given = {"seed": 3, "projection": "floor", "l2_strength": 0.2}
    single = X.astype(np.float32)
    plain = PrivateLogisticRegression(**assembled(**given)).fit(single, Y)
    named = PrivateLogisticRegression(**assembled(**given)).fit(pd.DataFrame(single, columns=list("abc")), Y)
    np.testing.assert_array_equal(plain.coef_, named.coef_)
    np.testing.assert_array_equal(plain.decision_function(single), named.result_.decision_function(single))


def test_rows_and_targets_are_paired_by_position_as_in_scikit_learn():
    given = {"seed": 3, "projection": "floor", "l2_strength": 0.2}
    plain = PrivateLogisticRegression(**assembled(**given)).fit(X, Y)
    turned = pd.Series(Y, index=range(N, 0, -1))
    np.testing.assert_array_equal(
        PrivateLogisticRegression(**assembled(**given)).fit(pd.DataFrame(X), turned).coef_, plain.coef_
    )


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_missing_labels_among_text_are_named(missing):
    labels = TEXT.astype(object)
    labels[5] = missing
    estimator = PrivateLogisticRegression(epsilon=1e3, classes=("no", "yes"))
    for y in (labels, pd.Series(labels, dtype="string")):
        with pytest.raises(dpci.InvalidInput, match=r"y must have no missing values, got \S+ in row 5"):
            estimator.fit(X, y)


def test_a_null_among_dictionary_encoded_labels_is_missing():
    pa = pytest.importorskip("pyarrow", reason="no such labels")
    labels = TEXT.tolist()
    labels[5] = None
    with pytest.raises(dpci.InvalidInput, match=r"y must have no missing values, got None in row 5"):
        LOGISTIC.fit(X, pa.chunked_array([pa.array(labels).dictionary_encode()]))


# What encodes labels before it fits: docs/sklearn.md names them.
ENCODING = {
    "voting": lambda model, y=TEXT: VotingClassifier([("a", model)]).fit(X, y),
    "stacking": lambda model, y=TEXT: StackingClassifier([("a", model)], cv=2).fit(X, y),
    "bagging": lambda model, y=TEXT: BaggingClassifier(
        model.set_params(weights=dpci.Weights(bound=1.0)), n_estimators=1, bootstrap=False
    ).fit(X, y),
    "rest": lambda model, y=TEXT: OneVsRestClassifier(model).fit(X, y),
    "calibration": lambda model, y=TEXT: CalibratedClassifierCV(model, cv=2, ensemble=False).fit(X, y),
    "prediction": lambda model, y=TEXT: cross_val_predict(model, X, y, cv=2, method="predict_proba"),
}


@pytest.mark.parametrize("case", ENCODING)
def test_classes_under_tools_that_encode_labels(case):
    with pytest.raises(dpci.InvalidInput, match=r"encode labels as 0 and 1, .* use classes=\(0, 1\)"):
        warnings_of(lambda: ENCODING[case](PrivateLogisticRegression(epsilon=1e3, classes=("no", "yes"))))
    model, _ = warnings_of(lambda: ENCODING[case](PrivateLogisticRegression(epsilon=1e3)))
    if hasattr(model, "predict"):
        assert set(model.predict(X)) == {"no", "yes"}
    public = PrivateLogisticRegression(epsilon=1e3, classes=(0, 1))
    warnings_of(lambda: ENCODING[case](public, Y))
    if case != "calibration":  # whose last fit has the labels as they came
        warnings_of(lambda: ENCODING[case](public))


def test_warnings_point_to_the_line_that_called_the_pipeline():
    for model in (LOGISTIC, make_pipeline(RowNormClipper(), LOGISTIC), SEARCH, make_pipeline(make_pipeline(SEARCH))):
        _, caught = warnings_of(lambda model=model: model.fit(X, TEXT))
        assert {str(warning.message)[:32] for warning in caught} == {"the classes were inferred from y"}
        assert {warning.filename for warning in caught} == {__file__}


def test_labels_that_are_simply_wrong_get_no_such_hint():
    with pytest.raises(dpci.InvalidInput) as refused:
        PrivateLogisticRegression(classes=("no", "yes")).fit(X, np.where(Y == 1, "yes", "maybe"))
    assert "encode" not in str(refused.value)
    with pytest.raises(dpci.InvalidInput) as refused:
        PrivateLogisticRegression(classes=(1, 2)).fit(X, np.full(N, 0))
    assert "encode labels as 0 and 1" in str(refused.value)
