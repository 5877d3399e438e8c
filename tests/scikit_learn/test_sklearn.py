"""The estimators of dpci.sklearn: scikit-learn's own checks, its numbers, its habits, refits, and what they refuse."""

import dataclasses
import doctest
import inspect
import pickle
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn import preprocessing
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import dpci
import dpci.sklearn
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from dpci.sklearn.linear import PrivateLinearRegression, PrivatePoissonRegressor, PrivateRegressor, PrivateRidge
from dpci.sklearn.search import PrivateGridSearch
from dpci.sklearn.transformers import RowNormClipper
from support.keywords import assembled
from support.labels import labels_of_boolean_type, labels_of_other_types
from support.sklearn_rows import CHECKED, WEIGHTED, D, N, make_rows, make_targets, warnings_of

X, Y = make_rows()
T, CLASSIFIERS = make_targets(X), [PrivateLogisticRegression(), PrivateLinearSVC()]
ESTIMATORS = [
    *CLASSIFIERS,
    PrivateRidge(mechanism=dpci.ObjectivePerturbation(radius=1.0)),
    PrivatePoissonRegressor(),
    PrivateRegressor(),
]
HUGE = 1e9
OF_CLASSES = WEIGHTED | {
    "check_class_weight_classifiers": "at its weight of 1000 and 50 records there is too much noise",
}
OF_WEIGHTS = ("pandas_series", "not_an_array", "list", "shape", "not_overwritten")


def expected_failures(estimator):
    if not get_tags(estimator).requires_fit:
        return {}
    if isinstance(estimator, PrivateRidge) and estimator.mechanism is None:
        return OF_CLASSES | dict.fromkeys(map("check_sample_weights_{}".format, OF_WEIGHTS), "weights need l2_strength")
    return OF_CLASSES


@pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")
@parametrize_with_checks(
    [
        *(kind(**CHECKED) for kind in (PrivateLogisticRegression, PrivateLinearSVC)),
        *(kind(**CHECKED) for kind in (PrivatePoissonRegressor, PrivateRegressor)),
        *(
            PrivateRidge(epsilon=1e5, seed=1),
            PrivateRidge(**assembled(**CHECKED, radius=1.0)),
            PrivateLinearRegression(**CHECKED),
        ),
        PrivateGridSearch(PrivateLogisticRegression(**CHECKED), {"l2_strength": [0.1]}, validation_radius=4.0),
        RowNormClipper(),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [*(type(estimator) for estimator in ESTIMATORS), PrivateLinearRegression])
def test_tags(kind):
    """Without these two, scikit-learn would hold a private model to what only exact ones can do."""
    tags = get_tags(kind())
    poor = tags.regressor_tags if is_regressor(kind()) else tags.classifier_tags
    assert tags.non_deterministic and poor.poor_score and tags.input_tags.sparse  # noqa: PT018  # one thing: the tags


def fitted(estimator, **params):
    y = T if is_regressor(estimator) else Y
    return clone(estimator).set_params(**{"l2_strength": 0.2, **params}).fit(X, y)


def huge(estimator, **params):
    """A fit in which noise plays no part, intervals left out."""
    alone = dpci.ObjectivePerturbation(moments="none", radius=2.0 if isinstance(estimator, PrivateRidge) else None)
    return fitted(estimator, epsilon=HUGE, mechanism=alone, l2_strength=0.02, **params)


WITH_ONES = np.column_stack([X, np.ones(N)])


def test_logistic_regression_tends_to_that_of_scikit_learn():
    model = huge(PrivateLogisticRegression())
    # scikit-learn does not regularise its own intercept, so the constant is a column.
    theirs = LogisticRegression(C=1 / (N * 0.02), fit_intercept=False, tol=1e-10, max_iter=1000).fit(WITH_ONES, Y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.coef_[0], atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(WITH_ONES), atol=1e-4)
    np.testing.assert_allclose(model.predict_log_proba(X), theirs.predict_log_proba(WITH_ONES), atol=1e-3)
    assert (model.predict(X) == theirs.predict(WITH_ONES)).mean() > 0.999


def test_ridge_tends_to_that_of_scikit_learn():
    model, theirs = huge(PrivateRidge()), Ridge(alpha=N * 0.02 / 2, fit_intercept=False).fit(WITH_ONES, T)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict(X), theirs.predict(WITH_ONES), atol=1e-4)


def test_the_support_vector_machine_minimises_the_huber_hinge():
    model = huge(PrivateLinearSVC(), h=0.3, intercept_scale=0.7)
    rows = np.column_stack([X, np.full(N, 0.7)])
    signs = np.where(Y == 1, 1.0, -1.0)

    def objective(params):
        z = 1.0 - signs * (rows @ params)
        loss = np.where(z > 0.3, z, np.where(z < -0.3, 0.0, (z + 0.3) ** 2 / 1.2))
        return loss.mean() + 0.01 * params @ params

    best = scipy.optimize.minimize(objective, np.zeros(D + 1), tol=1e-12).x
    np.testing.assert_allclose(model.coef_[0], best[:-1], atol=1e-4)
    np.testing.assert_allclose(model.intercept_, [0.7 * best[-1]], atol=1e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_attributes_are_those_of_the_fit(estimator):
    model = fitted(estimator, intercept_scale=0.5)
    params = model.result_.params
    shape = (1, D) if is_classifier(model) else (D,)
    assert model.coef_.shape == shape
    np.testing.assert_array_equal(model.coef_.ravel(), params[:-1])
    np.testing.assert_array_equal(np.ravel(model.intercept_), 0.5 * params[-1:])
    score = X @ model.coef_.ravel() + np.ravel(model.intercept_)
    predict = model.decision_function if is_classifier(model) else model.predict
    expected = np.exp(score) if isinstance(model, PrivatePoissonRegressor) else score
    np.testing.assert_allclose(predict(X), expected, rtol=0, atol=1e-12)
    assert model.n_features_in_ == D
    assert not hasattr(model, "feature_names_in_")
    assert isinstance(model.result_, dpci.PrivateFit) and model.result_.private  # noqa: PT018  # one thing: the result
    without = fitted(estimator, fit_intercept=False)
    assert np.all(np.ravel(without.intercept_) == 0.0)
    assert without.coef_.shape == shape


# The parameters that scikit-learn's users look for, by the keyword of a fit that they make.
FLAT = {
    "rows": {"rows", "row_norm", "on_violation", "fit_intercept", "intercept_scale"},
    "neighbors": {"neighbors", "n_public"},
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_every_keyword_of_a_fit_arrives(estimator):
    # The parameters of an estimator are the keywords of a fit, but for budget, loss, schema and what belongs to rows.
    own = {"h", "target_bound", "count_bound", "loss", "radius"}
    ours = set(estimator.get_params()) - {"epsilon", "delta", "rho", "class_weight", "n_threads", *own}
    others = {"X", "y", "budget", "loss", "schema"}
    theirs = set(inspect.signature(dpci.fit).parameters) - others
    theirs = theirs - set(FLAT) | set().union(*FLAT.values())
    assert ours == (theirs if is_classifier(estimator) else theirs - {"classes"})
    counts = isinstance(estimator, PrivatePoissonRegressor)  # which has its own radius, 1
    params = {
        "l2_strength": 0.3,
        "row_norm": 0.9,
        "mechanism": dpci.OutputPerturbation(
            split=(0.5, 0.25, 0.25), moments="separate", projection="floor", radius=None if counts else 1.0
        ),
        "n_threads": 1,
        "seed": 3,
        "intercept_scale": 0.8,
    }
    y = T if is_regressor(estimator) else Y
    model = clone(estimator).set_params(**params)
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before
    losses = ("logistic", "huber_hinge", "squared", "poisson", "huber")
    if counts:
        params["mechanism"] = dataclasses.replace(params["mechanism"], radius=1.0)
    same = dict(zip(map(type, ESTIMATORS), losses, strict=True))[type(estimator)]
    del params["n_threads"]
    params["rows"] = dpci.rows.Clipped(params.pop("row_norm"), intercept=params.pop("intercept_scale"))
    direct = dpci.fit(X, y, budget=dpci.PureDP(1.0), loss=same, **params)
    assert model.result_.to_json() == direct.to_json()


@pytest.mark.parametrize(
    ("params", "budget"),
    [
        ({}, dpci.PureDP(1.0)),
        ({"epsilon": 2.0}, dpci.PureDP(2.0)),
        ({"delta": 1e-6}, dpci.ApproxDP(1.0, 1e-6)),
        ({"epsilon": None, "rho": 0.5}, dpci.ZCDP(0.5)),
    ],
)
def test_budgets(params, budget):
    assert fitted(PrivateLogisticRegression(), **params).result_.budget == budget


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rho": 0.5}, r"epsilon and delta must be None if rho is given.*, got epsilon=1.0, delta=None, rho=0.5"),
        ({"epsilon": None, "rho": 0.5, "delta": 1e-6}, r"epsilon and delta must be None if rho is given"),
        ({"epsilon": None}, r"epsilon must be given unless rho is given, got epsilon=None, delta=None, rho=None"),
        ({"epsilon": None, "delta": 1e-6}, r"epsilon must be given unless rho is"),
        ({"epsilon": -1.0}, r"epsilon must be finite and > 0, got epsilon=-1.0"),
        ({"delta": 1.0}, r"delta must be > 0 and < 1"),
        ({"l2_strength": 0}, r"l2_strength must be finite and > 0"),
        ({"h": -1.0}, r"h must be finite and > 0"),
        ({"classes": (1, 0)}, r"classes must be \(negative, positive\) in increasing order"),
        ({"classes": ("a", 0)}, r"classes must be \(negative, positive\) in increasing order"),
        ({"classes": (0, 1, 2)}, r"classes must be two different"),
        ({"n_public": 5}, r"n_public must be None"),
        ({"seed": "no"}, r"seed must be an integer"),
        ({"ledger": "no"}, r"ledger must be a dpci.Ledger or None"),
    ],
    ids=str,
)
def test_parameters_are_checked_by_fit_before_the_data(params, message):
    estimator = PrivateLinearSVC(**params)  # construction checks nothing, as scikit-learn wants it
    with pytest.raises(dpci.InvalidInput, match=message):
        estimator.fit("no table", None)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


def test_a_failed_fit_leaves_no_fitted_model():
    model = PrivateLogisticRegression(l2_strength=1e-9)
    with pytest.raises(dpci.RegularizationTooSmall):
        model.fit(X, Y)
    for call in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(NotFittedError):
            call(X)
    with pytest.raises(NotFittedError):
        model.conf_int()


def test_a_pipeline_that_learns_from_the_records_is_told():
    for step, names in ((preprocessing.StandardScaler(), ["StandardScaler"]), (preprocessing.Normalizer(), [])):
        steps = make_pipeline(make_pipeline(step), PrivateLogisticRegression(classes=(0, 1), l2_strength=0.5))
        _, caught = warnings_of(lambda steps=steps: steps.fit(X, Y))
        assert [str(warning.message).split()[0] for warning in caught] == names
        assert {warning.category for warning in caught} <= {dpci.PrivacyLeakWarning}


def test_labels():
    text = np.where(Y == 1, "yes", "no")
    model, caught = warnings_of(lambda: PrivateLogisticRegression(epsilon=HUGE, classes=("no", "yes")).fit(X, text))
    assert caught == []
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) == {"no", "yes"}
    inferred, caught = warnings_of(lambda: PrivateLogisticRegression().fit(X, text))
    assert [warning.category for warning in caught] == [dpci.PrivacyLeakWarning]
    assert caught[0].filename == __file__
    assert inferred.classes_.tolist() == ["no", "yes"]
    assert inferred.result_.privacy["classes_inferred"]
    one = PrivateLogisticRegression(classes=(0, 1)).fit(X, np.ones(N))  # with public classes one alone is legal
    assert one.classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        PrivateLogisticRegression().fit(X, np.arange(N) % 3)


SEARCH = PrivateGridSearch(PrivateLogisticRegression(), {"l2_strength": [0.1]}, validation_radius=4.0)


@pytest.mark.parametrize("estimator", [PrivateLogisticRegression(l2_strength=0.2), SEARCH], ids=["model", "search"])
def test_only_the_type_of_booleans_makes_classes_public(estimator):
    """scikit-learn makes an array of a list, and numbers of pandas' own booleans; neither may change what is said."""
    for y in labels_of_boolean_type(Y):
        model, caught = warnings_of(lambda y=y: clone(estimator).fit(X, y))
        assert caught == []
        assert model.classes_.tolist() == [False, True]
    for y, classes in labels_of_other_types(Y):
        if not (isinstance(y, np.ndarray) and y.dtype == object):  # which scikit-learn refuses
            model, caught = warnings_of(lambda y=y: clone(estimator).fit(X, y))
            assert [str(warning.message)[:32] for warning in caught] == ["the classes were inferred from y"]
            assert model.classes_.tolist() == list(classes)
            assert getattr(model, "best_estimator_", model).result_.privacy["classes_inferred"]


def test_masked_arrays_are_refused():
    masked = np.ma.masked_array(X, mask=X > 0.4)
    model = fitted(PrivateLogisticRegression())
    for call in (
        lambda: model.fit(masked, Y),
        lambda: model.fit(X, np.ma.masked_array(Y)),
        lambda: model.predict(masked),
    ):
        with pytest.raises(dpci.InvalidInput, match="must have no masked values"):
            call()


def test_intervals_are_those_of_the_result():
    model = fitted(PrivateLogisticRegression())
    given = {"level": 0.8, "contrast": [1.0, -1.0, 0.0, 0.0]}
    np.testing.assert_array_equal(model.conf_int(**given), model.result_.conf_int(**given))
    assert model.conf_int().names == ("x0", "x1", "x2", "intercept")


def test_scores_say_that_they_are_not_private():
    for estimator, y in ((PrivateLogisticRegression(epsilon=HUGE), Y), (PrivateRidge(epsilon=HUGE), T)):
        model = clone(estimator).set_params(l2_strength=0.02).fit(X, y)
        score, caught = warnings_of(lambda model=model, y=y: model.score(X, y))
        assert score > 0.5
        (warning,) = caught
        assert warning.category is dpci.PrivacyLeakWarning
        assert "a score is computed from rows and labels without noise" in str(warning.message)
        assert warning.filename == __file__
        weighted, _ = warnings_of(lambda model=model, y=y: model.score(X, y, sample_weight=np.arange(N) < 5))
        assert weighted == pytest.approx(warnings_of(lambda model=model, y=y: model.score(X[:5], y[:5]))[0])


def test_a_seed_is_not_private():
    with pytest.warns(dpci.SeededNoiseWarning):
        model = PrivateLogisticRegression(seed=1).fit(X, Y)
    assert not model.result_.private
    assert "random_state" not in model.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_pickle_and_joblib(estimator, tmp_path):
    model = fitted(estimator)
    joblib.dump(model, tmp_path / "model.joblib")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model.joblib")):
        np.testing.assert_array_equal(again.predict(X), model.predict(X))
        assert again.result_.to_json() == model.result_.to_json()
        assert again.get_params() == model.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_sparse_rows_and_single_precision(estimator):
    radius = 1.0 if isinstance(estimator, PrivateRidge) else None
    floor = dpci.ObjectivePerturbation(projection="floor", radius=radius)
    given = {"seed": 1, "mechanism": floor, "l2_strength": 0.2}
    y = T if is_regressor(estimator) else Y
    dense = clone(estimator).set_params(**given).fit(X, y)
    for form in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        sparse = clone(estimator).set_params(**given).fit(form(X), y)
        np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-7)
        np.testing.assert_allclose(dense.predict(form(X)), dense.predict(X), atol=1e-12)
    single = clone(estimator).set_params(**given).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, dense.coef_, atol=1e-4)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_name_the_parameters(library):
    frames = pytest.importorskip(library, reason="no frames of this library to be named")
    frame = frames.DataFrame({name: X[:, i] for i, name in enumerate(("age", "dose", "time"))})
    model = PrivateLogisticRegression(l2_strength=0.2).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["age", "dose", "time"]
    assert model.result_.names == ("age", "dose", "time", "intercept")
    np.testing.assert_array_equal(model.predict(frame), model.predict_proba(frame).argmax(axis=1))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["dose", "age", "time"]])


def test_pipelines():
    pipe = make_pipeline(RowNormClipper(0.5), PrivateLogisticRegression(row_norm=0.5, l2_strength=0.2))
    model = clone(pipe).fit(4 * X, Y)
    assert model[:-1].get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert model.predict_proba(4 * X).shape == (N, 2)
    assert pipe.set_params(privatelogisticregression__epsilon=2.0)[-1].epsilon == 2.0


def test_clones_share_a_ledger_and_every_fit_pays():
    ledger = dpci.Ledger(dpci.PureDP(2.5))
    model = PrivateLogisticRegression(l2_strength=0.2, ledger=ledger).fit(X, Y)
    clone(model).fit(X, Y)
    assert ledger.spent == {"epsilon": 2.0}
    assert ledger.history[0].source == "dpci.sklearn.PrivateLogisticRegression"
    with pytest.raises(dpci.BudgetExceeded):
        model.fit(X, Y)
    model.set_params(ledger=None)
    pickle.loads(pickle.dumps(model)).predict(X)


def run(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_scikit_learn_is_imported_when_it_is_asked_for():
    assert run("import sys, dpci; print('sklearn' in sys.modules); dpci.sklearn.PrivateRidge()") == ["False"]
    assert not hasattr(dpci, "sclearn")


NONE = "sys.modules['sklearn'] = None"
OLD = "sys.modules['sklearn.utils.validation'] = type(sys)('sklearn.utils.validation')"


@pytest.mark.parametrize("lack", [NONE, OLD])
def test_without_scikit_learn_the_extra_is_named(lack):
    script = f"""
import sys
{lack}
import dpci
try:
    dpci.sklearn
except dpci.DpciError as error:
    print(error)
"""
    expected = "dpci.sklearn needs scikit-learn 1.6 or later: pip install 'dpci[sklearn]'"
    assert run(script) == expected.split()


def test_examples_in_docstrings():
    found = doctest.testmod(dpci.sklearn)
    assert found.failed == 0
    assert found.attempted > 4


def test_examples_of_the_page():
    pytest.importorskip("pandas", reason="the page has frames")
    page = (Path(__file__).parents[2] / "docs" / "sklearn.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["search"].best_estimator_.epsilon == 1.0
    assert names["leaking"][0].mean_[0] == names["people"]["age"].mean()


def frame_of(rows, names):
    return pytest.importorskip("pandas", reason="no frames to be named").DataFrame(rows, columns=names)


class Interrupting(dpci.Ledger):
    """A ledger whose user presses Ctrl-C while it is asked to pay."""

    def spend(self, *_, **__):
        raise KeyboardInterrupt


REFUSED = {
    "columns": ({}, lambda: (X[:, :2], np.arange(len(X)) % 3), ValueError),
    "missing": ({}, lambda: (np.where(X > 0.4, np.nan, X)[:, :2], Y), ValueError),
    "names": ({"l2_strength": 1e-9}, lambda: (frame_of(X[:, :2], ["b", "a"]), Y), dpci.RegularizationTooSmall),
    "no names": ({"l2_strength": 1e-9}, lambda: (X[:, :2], Y), dpci.RegularizationTooSmall),
    "long": ({"on_violation": "error"}, lambda: (9 * X[:, :2], Y), dpci.RowNormViolation),
    "parameter": ({"epsilon": -1.0}, lambda: (X[:, :2], Y), dpci.InvalidInput),
    "broke": ({"ledger": dpci.Ledger(dpci.PureDP(0.1))}, lambda: (X[:, :2], Y), dpci.BudgetExceeded),
    "stopped": ({"ledger": Interrupting(dpci.PureDP(9.0))}, lambda: (X[:, :2], Y), KeyboardInterrupt),
}


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_refit_leaves_the_fitted_model_as_it_was(case, named):
    rows = frame_of(X, ["age", "dose", "time"]) if named else X
    model = PrivateLogisticRegression(l2_strength=0.2).fit(rows, Y)
    before, learnt = model.predict_proba(rows), {name: vars(model)[name] for name in vars(model) if name[-1] == "_"}
    params, data, error = REFUSED[case]
    with pytest.raises(error):
        model.set_params(**params).fit(*data())
    assert {name: vars(model)[name] for name in vars(model) if name[-1] == "_"} == learnt
    model.set_params(ledger=None)
    for again in (model, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_proba(rows), before)
