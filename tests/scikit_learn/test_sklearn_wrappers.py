"""Private models in what scikit-learn builds from other estimators: what is noticed, what is not, what it costs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import AdaBoostRegressor, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets IterativeImputer be imported
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

import dpci
from dpci.sklearn.classifiers import PrivateLogisticRegression
from dpci.sklearn.linear import PrivateRidge
from dpci.sklearn.search import PrivateGridSearch
from dpci.sklearn.transformers import RowNormClipper
from support.sklearn_rows import make_rows, make_targets, warnings_of

X, Y = make_rows()
T = make_targets(X)
THREE = np.arange(len(X)) % 3
# So great a budget that no fit is refused. Tools that encode labels hand 0 and 1 to it.
LOGISTIC = PrivateLogisticRegression(epsilon=1e3, classes=(0, 1))
# Weights of a bootstrap: how often a record was drawn.
WEIGHTED = clone(LOGISTIC).set_params(weights=dpci.Weights(bound=3.0))
RIDGE = PrivateRidge(epsilon=1e3, mechanism=dpci.ObjectivePerturbation(radius=2.0))
SEARCH = PrivateGridSearch(WEIGHTED, {"l2_strength": [0.1, 0.2]}, validation_radius=4.0)


def leaks_of(call):
    """Result of a call, and the first words of its warnings, which all point to this file."""
    value, caught = warnings_of(call)
    assert {warning.category for warning in caught} <= {dpci.PrivacyLeakWarning}
    assert {warning.filename for warning in caught} <= {__file__}
    assert len({str(warning.message) for warning in caught}) == len(caught)
    return value, {str(warning.message).split(" fits private models")[0] for warning in caught}


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("ensemble", lambda: BaggingClassifier(WEIGHTED, n_estimators=2).fit(X, Y)),
        ("ensemble", lambda: BaggingClassifier(make_pipeline(RowNormClipper(), LOGISTIC), n_estimators=2).fit(X, Y)),
        ("ensemble", lambda: BaggingClassifier(SEARCH, n_estimators=2).fit(X, Y)),
        ("ensemble", lambda: AdaBoostRegressor(RIDGE, n_estimators=2).fit(X, T)),
        ("ensemble", lambda: VotingClassifier([("a", LOGISTIC), ("b", LOGISTIC)], n_jobs=2).fit(X, Y)),
        ("ensemble", lambda: StackingClassifier([("a", LOGISTIC)], cv=2).fit(X, Y)),
        ("multiclass", lambda: OneVsRestClassifier(LOGISTIC).fit(X, THREE)),
        ("multiclass", lambda: OneVsOneClassifier(LOGISTIC).fit(X, THREE)),
        ("multioutput", lambda: MultiOutputClassifier(LOGISTIC).fit(X, np.column_stack([Y, 1 - Y]))),
        ("multioutput", lambda: MultiOutputRegressor(RIDGE).fit(X, np.column_stack([T, T]))),
        ("calibration", lambda: CalibratedClassifierCV(LOGISTIC, cv=2).fit(X, Y)),
        ("feature_selection", lambda: RFE(LOGISTIC, n_features_to_select=1).fit(X, Y)),
        ("feature_selection", lambda: RFECV(LOGISTIC, cv=2).fit(X, Y)),
        ("feature_selection", lambda: SelectFromModel(LOGISTIC).fit(X, Y)),
        ("impute", lambda: IterativeImputer(RIDGE, max_iter=1).fit(np.where(X > 0.45, np.nan, X))),
        ("semi_supervised", lambda: SelfTrainingClassifier(LOGISTIC).fit(X, np.where(X[:, 2] < 0.45, Y, -1))),
    ],
)
def test_what_fits_other_estimators_is_noticed(package, call):
    fitted, told = leaks_of(call)
    assert f"sklearn.{package}" in told
    use = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    assert len(use(X[:2])) == 2


def test_a_fit_of_each_member_pays_and_repeated_records_are_weights():
    ledger = dpci.Ledger(dpci.PureDP(1e4))
    bagging = BaggingClassifier(clone(WEIGHTED).set_params(ledger=ledger), n_estimators=3, random_state=1)
    leaks_of(lambda: bagging.fit(X, Y))
    assert ledger.spent == {"epsilon": 3e3}
    # Some records were drawn more often than the bound: they count by it.
    assert max(np.bincount(sample).max() for sample in bagging.estimators_samples_) > 3
    assert bagging.estimators_[0].result_.privacy["constants"]["weights"]["bound"] == 3.0
    assert bagging.estimators_[0].result_.n_samples == len(X)
    with pytest.raises(dpci.InvalidInput, match="must not depend on the data, got weights=None"):
        leaks_of(lambda: bagging.set_params(estimator__weights=None).fit(X, Y))


def test_inspection_is_noticed_where_it_predicts():
    model = LOGISTIC.fit(X, Y)
    for call in (
        lambda: permutation_importance(model, X, Y, n_repeats=1, scoring="accuracy"),
        lambda: partial_dependence(model, X, [0], grid_resolution=3),
        lambda: partial_dependence(SEARCH.fit(X, Y), X, [0], grid_resolution=3),
    ):
        (told,) = leaks_of(call)[1]
        assert "sklearn.inspection averages over rows and labels without noise" in told


def test_what_compares_nothing_is_not_accused():
    fixed = FixedThresholdClassifier(LOGISTIC, threshold=0.3)
    assert leaks_of(lambda: fixed.fit(X, Y).predict(X))[1] == set()
    assert leaks_of(lambda: TransformedTargetRegressor(RIDGE).fit(X, T).predict(X))[1] == set()
    # But inside of a comparison the same estimator is seen.
    (told,) = leaks_of(lambda: cross_val_score(fixed, X, Y, cv=2))[1]
    assert "model selection" in told
    (told,) = leaks_of(lambda: TunedThresholdClassifierCV(LOGISTIC, cv=2).fit(X, Y))[1]
    assert "model selection" in told


def test_every_call_is_told_once():
    scores = [lambda: cross_val_score(LOGISTIC, X, Y, cv=3) for _ in range(2)]
    _, caught = warnings_of(lambda: [score() for score in scores])
    both = ["scikit-learn's model selection", "a score is computed from rows"]
    assert [next(start for start in both if start in str(warning.message)) for warning in caught] == 2 * both


def test_a_frozen_model_is_not_noticed():
    # docs/sklearn.md says so: nothing is fitted or cloned.
    frozen = FrozenEstimator(LOGISTIC.fit(X, Y))
    assert leaks_of(lambda: CalibratedClassifierCV(frozen, cv=2).fit(X, Y))[1] == set()
