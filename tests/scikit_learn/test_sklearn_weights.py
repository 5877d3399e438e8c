"""``sample_weight`` and ``class_weight`` of the estimators: the fits of the library, and what is refused."""

from functools import partial

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from dpci.sklearn.linear import PrivateRidge
from support.sklearn_rows import make_rows, make_targets

X, Y = make_rows()
WEIGHTS = np.random.default_rng(3).uniform(0.0, 2.0, len(X))
SAME = {"epsilon": 1e9, "l2_strength": 0.1, "seed": 1}
quiet = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")


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
