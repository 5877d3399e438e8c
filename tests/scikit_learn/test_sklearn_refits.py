"""A fitted private model whose next fit is refused, for whatever reason, stays the model that it was."""

import pickle

import numpy as np
import pytest

import dpci
from dpci.sklearn.classifiers import PrivateLogisticRegression
from support.sklearn_rows import make_rows

X, Y = make_rows()


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
