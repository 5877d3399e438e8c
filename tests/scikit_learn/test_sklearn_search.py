"""The private search, and the tools of scikit-learn around estimators: what they spend, and what they say."""

import pickle

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import AdaBoostRegressor, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets IterativeImputer be imported
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier

import dpci
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from dpci.sklearn.linear import PrivateRegressor, PrivateRidge
from dpci.sklearn.search import PrivateGridSearch
from dpci.sklearn.transformers import RowNormClipper
from support.sklearn_rows import D, N, make_rows, make_targets, warnings_of

X, Y = make_rows()
T = make_targets(X)
SVC = PrivateLinearSVC(epsilon=4.0)
GRID = {"l2_strength": [0.02, 0.1]}
BALLS = {"mechanism": [dpci.ObjectivePerturbation(radius=radius) for radius in (0.5, 1.0)]}
# So great a budget that no score depends on the noise.
LOGISTIC = PrivateLogisticRegression(epsilon=1e3)
LEAK = "scikit-learn's model selection scores records without noise"


def leaks_of(call):
    """Result of a call, and its warnings of model selection, which all point to this file."""
    value, caught = warnings_of(call)
    leaks = [warning for warning in caught if LEAK in str(warning.message)]
    assert {warning.category for warning in leaks} <= {dpci.PrivacyLeakWarning}
    assert {warning.filename for warning in leaks} <= {__file__}
    return value, leaks


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc"])
def test_grid_search_works_and_says_that_it_is_not_private(scoring, n_jobs):
    # This thread dispatches all tasks: joblib may start later ones in a thread of its own, which has no caller.
    search, leaks = leaks_of(
        lambda: GridSearchCV(LOGISTIC, GRID, scoring=scoring, n_jobs=n_jobs, cv=2, pre_dispatch="all").fit(X, Y)
    )
    assert leaks
    assert search.best_score_ > 0.6
    assert search.best_estimator_.result_.private
    assert set(search.predict(X)) == {0, 1}


def test_tasks_that_a_thread_of_joblib_starts_are_told_there():
    grid = {"l2_strength": [0.02, 0.04, 0.06, 0.08, 0.1]}
    _, caught = warnings_of(lambda: GridSearchCV(LOGISTIC, grid, n_jobs=2, cv=2, pre_dispatch=1).fit(X, Y))
    told = {warning.filename for warning in caught if LEAK in str(warning.message)}
    assert __file__ in told
    assert told <= {__file__, joblib.parallel.__file__}


@pytest.mark.parametrize(
    "call",
    [
        lambda: cross_val_score(LOGISTIC, X, Y, cv=2),
        lambda: cross_val_score(LOGISTIC, X, Y, cv=2, n_jobs=2, scoring="accuracy", pre_dispatch="all"),
        lambda: cross_validate(LOGISTIC, X, Y, cv=2, return_estimator=True),
        lambda: cross_val_predict(LOGISTIC, X, Y, cv=2, method="predict_proba"),
        lambda: learning_curve(LOGISTIC, X, Y, cv=2, train_sizes=[0.5, 1.0]),
        lambda: validation_curve(LOGISTIC, X, Y, cv=2, param_name="l2_strength", param_range=[0.1, 0.2]),
        lambda: RandomizedSearchCV(PrivateLinearSVC(epsilon=4.0, l2_strength=0.4), {"h": [0.4, 0.5]}, n_iter=2).fit(
            X, Y
        ),
        lambda: GridSearchCV(PrivateRidge(l2_strength=0.4), BALLS, cv=2).fit(X, T),
        lambda: GridSearchCV(make_pipeline(RowNormClipper(), LOGISTIC), {"rownormclipper__row_norm": [0.9, 1.0]}).fit(
            X, Y
        ),
        lambda: cross_val_score(PrivateGridSearch(LOGISTIC, GRID, validation_radius=4.0), X, Y, cv=2),
    ],
)
def test_every_kind_of_model_selection_is_noticed(call):
    value, leaks = leaks_of(call)
    assert value is not None
    assert leaks


def test_routing_of_metadata_finds_nothing_to_route():
    with config_context(enable_metadata_routing=True):
        for model in (LOGISTIC, PrivateGridSearch(LOGISTIC, GRID, validation_radius=4.0)):
            scores, _ = leaks_of(
                lambda model=model: cross_val_score(make_pipeline(RowNormClipper(), model), X, Y, cv=2)
            )
            assert scores.min() > 0.6


class Wrapped(ClassifierMixin, BaseEstimator):
    """An estimator of somebody else, whose clones do not show that it is private inside."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.model_ = PrivateLogisticRegression(epsilon=4.0).fit(X, y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_a_private_fit_inside_of_another_estimator_is_noticed():
    assert leaks_of(lambda: cross_val_score(Wrapped(), X, Y, cv=2))[1]


def test_nothing_is_said_where_nothing_is_compared():
    splits = StratifiedKFold(n_splits=2)

    def by_hand():
        for train, test in splits.split(X, Y):
            clone(LOGISTIC).fit(X[train], Y[train]).predict(X[test])
        return PrivateGridSearch(LOGISTIC, GRID, validation_radius=4.0).fit(X, Y)

    assert leaks_of(by_hand)[1] == []


def test_each_fit_of_a_search_pays(tmp_path):
    ledger = dpci.Ledger(dpci.PureDP(1e4), path=tmp_path / "search.ledger")
    leaks_of(lambda: GridSearchCV(clone(LOGISTIC).set_params(ledger=ledger), GRID, cv=2, n_jobs=2).fit(X, Y))
    assert ledger.spent == {"epsilon": (2 * 2 + 1) * 1e3}
    alone = clone(LOGISTIC).set_params(ledger=dpci.Ledger(dpci.PureDP(1e4)))
    with pytest.raises(pickle.PicklingError) as refused:
        leaks_of(lambda: GridSearchCV(alone, GRID, cv=2, n_jobs=2).fit(X, Y))
    assert "a ledger shared with other processes must have a file (path=...)" in str(refused.value.__cause__)


SEARCHES = {
    "logistic": (PrivateLogisticRegression(epsilon=4.0), GRID, {"validation_radius": 4.0}),
    "svc": (
        PrivateLinearSVC(epsilon=4.0),
        {"h": [0.5, 0.7], "l2_strength": [0.2]},
        {"validation_loss": "huber_hinge", "validation_radius": 4.0},
    ),
    "ridge": (PrivateRidge(epsilon=4.0, l2_strength=0.3), BALLS, {"method": "chunks"}),
    "loss": (
        PrivateRegressor(epsilon=4.0, l2_strength=0.3),
        {"loss": ["huber", dpci.losses.Quantile(quantile=0.9)]},
        {"validation_loss": "huber", "validation_radius": 1.0},
    ),
    "one": (
        PrivateLogisticRegression(epsilon=4.0, mechanism=dpci.ObjectivePerturbation(radius=2.0)),
        GRID,
        {"selection_share": 1.0},
    ),
}


@pytest.mark.parametrize("case", SEARCHES)
def test_private_search_stays_within_one_budget(case):
    estimator, grid, options = SEARCHES[case]
    y = T if is_regressor(estimator) else Y
    ledger = dpci.Ledger(dpci.PureDP(4.0))
    search = PrivateGridSearch(clone(estimator).set_params(ledger=ledger), grid, **options)
    before = search.get_params()
    search, caught = warnings_of(lambda: search.fit(X, y))
    assert [w for w in caught if w.category is dpci.PrivacyLeakWarning] == []
    assert search.get_params() == before
    assert ledger.spent == {"epsilon": 4.0}
    assert search.result_.spent == dpci.PureDP(4.0)
    assert search.result_.private
    assert set(search.best_params_) == set(grid)
    best = search.best_estimator_
    assert {name: getattr(best, name) for name in grid} == search.best_params_
    assert best.ledger is None
    share = options.get("selection_share", 0.5)
    assert best.epsilon == best.result_.budget.epsilon == (4.0 if share == 1.0 else 2.0)
    assert search.n_features_in_ == D
    np.testing.assert_array_equal(search.predict(X), best.predict(X))
    assert is_classifier(search) == is_classifier(estimator)
    assert hasattr(search, "predict_proba") == hasattr(estimator, "predict_proba")
    assert hasattr(search, "decision_function") == hasattr(estimator, "decision_function")
    assert isinstance(best.result_, dpci.PrivateFit) is (share < 1.0)
    if share == 1.0:
        with pytest.raises(dpci.InvalidInput, match="intervals require fresh noise"):
            search.conf_int()
    else:
        assert len(search.conf_int(level=0.9)) == D + 1
    pickle.dumps(search.best_estimator_)
    search.set_params(estimator__ledger=None)
    again = pickle.loads(pickle.dumps(search))
    np.testing.assert_array_equal(again.predict(X), best.predict(X))


def test_private_search_is_the_tuning_of_the_same_candidates():
    estimator = PrivateLogisticRegression(epsilon=None, rho=2.0, seed=7, classes=(0, 1), row_norm=0.9)
    options = {"validation_radius": 3.0, "shape": 0.5, "expected_runs": 5.0, "selection_share": 0.4}
    search = PrivateGridSearch(estimator, GRID, **options).fit(X, Y)
    direct = dpci.tuning.tune(
        X, Y, budget=dpci.ZCDP(2.0), candidates=[{"l2_strength": strength} for strength in GRID["l2_strength"]],
        rows=dpci.rows.Clipped(0.9), classes=(0, 1), seed=7, **options,
    )  # fmt: skip
    assert search.best_index_ == direct.index
    assert search.best_params_ == dict(direct.params)
    assert search.result_.result.to_json() == direct.result.to_json()
    np.testing.assert_array_equal(search.best_estimator_.coef_[0], direct.result.params[:-1])
    assert search.classes_.tolist() == [0, 1]


def test_private_search_in_a_pipeline_and_on_frames():
    pd = pytest.importorskip("pandas", reason="no frames to be named")
    frame = pd.DataFrame(X, columns=["age", "dose", "time"])
    search = PrivateGridSearch(
        LOGISTIC, [GRID, {"mechanism": BALLS["mechanism"][:1], "l2_strength": [0.1]}], validation_radius=4.0
    )
    model = make_pipeline(RowNormClipper().set_output(transform="pandas"), search).fit(frame, Y)
    assert model[-1].feature_names_in_.tolist() == ["age", "dose", "time"]
    assert model[-1].conf_int().names == ("age", "dose", "time", "intercept")
    np.testing.assert_array_equal(model.predict(frame), model.predict_proba(frame).argmax(axis=1))
    np.testing.assert_allclose(model.predict_log_proba(frame), np.log(model.predict_proba(frame)))
    assert not hasattr(clone(search).fit(frame, Y).fit(X, Y), "feature_names_in_")
    score, caught = warnings_of(lambda: model.score(frame, Y))
    assert score > 0.6
    assert [(warning.category, warning.filename) for warning in caught] == [(dpci.PrivacyLeakWarning, __file__)]


@pytest.mark.parametrize(
    ("estimator", "grid", "options", "message"),
    [
        (make_pipeline(LOGISTIC), GRID, {}, "estimator must be a private estimator.*got Pipeline"),
        (LOGISTIC, {"epsilon": [1.0, 2.0]}, {}, "candidates must differ only in l2_strength, mechanism, got 'epsilon'"),
        (LOGISTIC, {"h": [1.0]}, {}, "candidates must differ only in .*, got 'h'"),
        (LOGISTIC, {"l2_strength": [-1.0]}, {"validation_radius": 4.0}, "l2_strength must be finite and > 0"),
        (LOGISTIC, GRID, {}, "validation_radius"),
        (LOGISTIC, GRID, {"method": "public_rule"}, "method must be one of 'repeat', 'chunks'"),
        (PrivateLogisticRegression(rho=1.0), GRID, {}, "epsilon and delta must be None if rho is given"),
        (SVC, {"h": [0.5, 0.7], "l2_strength": [0.1]}, {"validation_radius": 4.0}, "validation_loss must be given"),
        (SVC, {"h": [0.5]}, {"validation_radius": 4.0}, "every candidate must have a number as l2_strength"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(estimator, grid, options, message):
    search = PrivateGridSearch(estimator, grid, **options)
    with pytest.raises(dpci.InvalidInput, match=message):
        search.fit(X, Y)
    with pytest.raises(NotFittedError):
        search.predict(X[:N])


def test_the_name_of_a_column_is_no_persons():
    """The ids would be persons and a column of X at once."""
    pandas = pytest.importorskip("pandas", reason="optional")
    frame = pandas.DataFrame(X).assign(id=np.arange(N) % 50 / 100).rename(columns=str)
    ledger = dpci.Ledger(dpci.PureDP(9.0))
    model = PrivateLogisticRegression(epsilon=4.0, classes=(0, 1), ledger=ledger, weights=dpci.Weights(bound=1.0))
    for given in ({"persons": "id"}, {"sample_weight": "id"}):
        with pytest.raises(dpci.InvalidInput, match=r"without a schema|pass the column: persons=frame\['id'\]"):
            PrivateGridSearch(model, GRID, validation_radius=4.0).fit(frame, Y, **given)
    assert ledger.history == ()


THREE = np.arange(len(X)) % 3
# So great a budget that no fit is refused. Tools that encode labels hand 0 and 1 to it.
PLAIN = PrivateLogisticRegression(epsilon=1e3, classes=(0, 1))
# Weights of a bootstrap: how often a record was drawn.
WEIGHTED = clone(PLAIN).set_params(weights=dpci.Weights(bound=3.0))
RIDGE = PrivateRidge(epsilon=1e3, mechanism=dpci.ObjectivePerturbation(radius=2.0))
SEARCH = PrivateGridSearch(WEIGHTED, {"l2_strength": [0.1, 0.2]}, validation_radius=4.0)


def told_leaks(call):
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
        ("ensemble", lambda: BaggingClassifier(make_pipeline(RowNormClipper(), PLAIN), n_estimators=2).fit(X, Y)),
        ("ensemble", lambda: BaggingClassifier(SEARCH, n_estimators=2).fit(X, Y)),
        ("ensemble", lambda: AdaBoostRegressor(RIDGE, n_estimators=2).fit(X, T)),
        ("ensemble", lambda: VotingClassifier([("a", PLAIN), ("b", PLAIN)], n_jobs=2).fit(X, Y)),
        ("ensemble", lambda: StackingClassifier([("a", PLAIN)], cv=2).fit(X, Y)),
        ("multiclass", lambda: OneVsRestClassifier(PLAIN).fit(X, THREE)),
        ("multiclass", lambda: OneVsOneClassifier(PLAIN).fit(X, THREE)),
        ("multioutput", lambda: MultiOutputClassifier(PLAIN).fit(X, np.column_stack([Y, 1 - Y]))),
        ("multioutput", lambda: MultiOutputRegressor(RIDGE).fit(X, np.column_stack([T, T]))),
        ("calibration", lambda: CalibratedClassifierCV(PLAIN, cv=2).fit(X, Y)),
        ("feature_selection", lambda: RFE(PLAIN, n_features_to_select=1).fit(X, Y)),
        ("feature_selection", lambda: RFECV(PLAIN, cv=2).fit(X, Y)),
        ("feature_selection", lambda: SelectFromModel(PLAIN).fit(X, Y)),
        ("impute", lambda: IterativeImputer(RIDGE, max_iter=1).fit(np.where(X > 0.45, np.nan, X))),
        ("semi_supervised", lambda: SelfTrainingClassifier(PLAIN).fit(X, np.where(X[:, 2] < 0.45, Y, -1))),
    ],
)
def test_what_fits_other_estimators_is_noticed(package, call):
    fitted, told = told_leaks(call)
    assert f"sklearn.{package}" in told
    use = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    assert len(use(X[:2])) == 2


def test_a_fit_of_each_member_pays_and_repeated_records_are_weights():
    ledger = dpci.Ledger(dpci.PureDP(1e4))
    bagging = BaggingClassifier(clone(WEIGHTED).set_params(ledger=ledger), n_estimators=3, random_state=1)
    told_leaks(lambda: bagging.fit(X, Y))
    assert ledger.spent == {"epsilon": 3e3}
    # Some records were drawn more often than the bound: they count by it.
    assert max(np.bincount(sample).max() for sample in bagging.estimators_samples_) > 3
    assert bagging.estimators_[0].result_.privacy["constants"]["weights"]["bound"] == 3.0
    assert bagging.estimators_[0].result_.n_samples == len(X)
    with pytest.raises(dpci.InvalidInput, match="must not depend on the data, got weights=None"):
        told_leaks(lambda: bagging.set_params(estimator__weights=None).fit(X, Y))


def test_inspection_is_noticed_where_it_predicts():
    model = PLAIN.fit(X, Y)
    for call in (
        lambda: permutation_importance(model, X, Y, n_repeats=1, scoring="accuracy"),
        lambda: partial_dependence(model, X, [0], grid_resolution=3),
        lambda: partial_dependence(SEARCH.fit(X, Y), X, [0], grid_resolution=3),
    ):
        (told,) = told_leaks(call)[1]
        assert "sklearn.inspection averages over rows and labels without noise" in told


def test_what_compares_nothing_is_not_accused():
    fixed = FixedThresholdClassifier(PLAIN, threshold=0.3)
    assert told_leaks(lambda: fixed.fit(X, Y).predict(X))[1] == set()
    assert told_leaks(lambda: TransformedTargetRegressor(RIDGE).fit(X, T).predict(X))[1] == set()
    # But inside of a comparison the same estimator is seen.
    (told,) = told_leaks(lambda: cross_val_score(fixed, X, Y, cv=2))[1]
    assert "model selection" in told
    (told,) = told_leaks(lambda: TunedThresholdClassifierCV(PLAIN, cv=2).fit(X, Y))[1]
    assert "model selection" in told


def test_every_call_is_told_once():
    scores = [lambda: cross_val_score(PLAIN, X, Y, cv=3) for _ in range(2)]
    _, caught = warnings_of(lambda: [score() for score in scores])
    both = ["scikit-learn's model selection", "a score is computed from rows"]
    assert [next(start for start in both if start in str(warning.message)) for warning in caught] == 2 * both


def test_a_frozen_model_is_not_noticed():
    # docs/sklearn.md says so: nothing is fitted or cloned.
    frozen = FrozenEstimator(PLAIN.fit(X, Y))
    assert told_leaks(lambda: CalibratedClassifierCV(frozen, cv=2).fit(X, Y))[1] == set()
