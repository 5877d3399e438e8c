"""Tables and labels of other libraries in dpci.sklearn, read as by dpci.fit; where its warnings point."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import dpci
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.linear import PrivateRidge
from dpci.sklearn.search import PrivateGridSearch
from dpci.sklearn.transformers import RowNormClipper
from support.keywords import assembled
from support.sklearn_rows import N, make_rows, make_targets, warnings_of

pd = pytest.importorskip("pandas", reason="no frames to be read")

X, Y = make_rows()
T = make_targets(X)
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


@pytest.mark.parametrize("method", ["repeat", "chunks", "public_rule"])
def test_warnings_of_a_tuning_point_to_its_caller(method):
    given = {"candidates": [{"l2_strength": 0.1}], "validation_radius": 4.0} if method != "public_rule" else {}
    tune = dpci.tuning.tune
    for seed, category in ((None, dpci.PrivacyLeakWarning), (1, dpci.SeededNoiseWarning)):
        _, caught = warnings_of(
            lambda seed=seed: tune(X, TEXT, budget=dpci.PureDP(1e3), method=method, seed=seed, **given)
        )
        assert {warning.category for warning in caught} - {dpci.MomentNoiseWarning} == {category}
        assert {warning.filename for warning in caught} == {__file__}
