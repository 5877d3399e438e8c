"""Public bounds and hypotheses of regressions that are refused before anything is paid."""

import numpy as np
import pytest
from scipy import sparse

import dpci

RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 1.0, (200, 2))
Y = X @ [1.0, -1.0]
KEYWORDS = {"budget": dpci.ZCDP(0.5), "bounds": (0, 1), "target_bound": 2.0}


@pytest.mark.parametrize(
    ("changed", "rows", "message"),
    [
        ({"target_bound": 1e-160, "on_violation": "clip"}, X, "target_bound must be at least 1e-60 and at most 1e60"),
        ({"bounds": None, "row_norm": 1e150}, X, "row_norm must be at least 1e-60 and at most 1e60"),
        ({}, sparse.csr_array(X), "X must be dense where"),
    ],
    ids=["target", "rows", "sparse"],
)
def test_nothing_is_paid_for_bounds_without_a_scale(changed, rows, message):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=message):
        dpci.regression.release(rows, Y, ledger=ledger, **{**KEYWORDS, **changed})
    assert ledger.spent == {"rho": 0.0}


def test_sparse_rows_with_bounds_cost_nothing_with_private_errors():
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    with pytest.raises(dpci.InvalidInput, match="X must be dense where"):
        dpci.regression.release(sparse.csr_array(X), Y, ledger=ledger, **KEYWORDS, on_violation="clip")
    assert ledger.spent == {"rho": 0.0}


def test_hypotheses_of_nothing_are_refused():
    fit = dpci.regression.release(X, Y, **{**KEYWORDS, "budget": dpci.ZCDP(1e3)}).fit()
    with pytest.raises(dpci.InvalidInput, match="other than 0 in every row"):
        fit.wald_test(np.zeros((1, 3)))
    with pytest.raises(dpci.InvalidInput, match="value must be finite, got nan"):
        fit.wald_test("x0", np.nan)
