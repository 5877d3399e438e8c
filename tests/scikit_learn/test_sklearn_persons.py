"""``fit(X, y, persons=)`` of the estimators is the fit of the library."""

import numpy as np
import pytest

import dpci
from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression
from support.sklearn_rows import make_rows

X, Y = make_rows()


@pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
@pytest.mark.parametrize("rule", [{}, {"max_rows": 2}])
def test_persons(kind, rule):
    whose = np.arange(len(X)) // 3
    model = kind(epsilon=1e9, l2_strength=0.1, seed=1).fit(X, Y, persons=whose, **rule)
    reference = dpci.fit(
        X, Y, persons=whose, budget=dpci.PureDP(1e9), l2_strength=0.1, on_violation="clip", seed=1,
        loss="logistic" if kind is PrivateLogisticRegression else "huber_hinge", **rule,
    )  # fmt: skip
    assert model.result_.n_samples == len(set(whose.tolist()))
    np.testing.assert_allclose(model.result_.params, reference.params, atol=1e-6)


def test_a_rule_needs_persons():
    with pytest.raises(dpci.errors.InvalidInput, match="persons must be given"):
        PrivateLogisticRegression().fit(X, Y, max_rows=2)
