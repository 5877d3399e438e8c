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
        ({"target_bound": 1e-160, "rows": "clip"}, X, "target_bound must be at least 1e-60 and at most 1e60"),
        ({"bounds": None, "rows": 1e150}, X, "row_norm must be at least 1e-60 and at most 1e60"),
        ({}, sparse.csr_array(X), "X must be dense with bounds"),
    ],
    ids=["target", "rows", "sparse"],
)
def test_nothing_is_paid_for_bounds_without_a_scale(changed, rows, message):
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=message):
        dpci.regression.release(rows, Y, ledger=ledger, **{**KEYWORDS, **changed})
    assert ledger.spent == {"rho": 0.0}


@pytest.mark.parametrize("size", [1e-200, 1e-61, 1e61, 1e200])
@pytest.mark.parametrize("errors", ["detailed", "private"])
def test_columns_and_further_targets_without_a_scale_are_refused_before_they_are_paid(size, errors):
    planned = [dpci.regression.Regression(target="x1", features=["x0"])]
    wide = {"bounds": ([0, 0], [1, size]), "robust": planned}
    both = {"target_bound": [(-size, size), (-2, 2)], "robust": True}
    blocks = {"bounds": None, "rows": dpci.rows.Blocks([1.0, min(size, 1e30)]), "robust": planned}
    far = {"bounds": ([0, size], [1, 1.5 * size]), "robust": [dpci.regression.Regression(l2_strength=0.1)]}
    for changed in [wide, both, far, *([blocks] if size < 1.0 else [])]:
        targets = np.column_stack([Y * size, Y]) if changed is both else Y
        ledger = dpci.Ledger(dpci.ZCDP(1.0), errors=errors)
        keywords = {**KEYWORDS, **changed, "rows": dpci.rows.Clipped(changed.get("rows")), "persons": np.arange(200)}
        with pytest.raises(dpci.InvalidInput, match="must be at least 1e-60 and at most 1e60"):
            dpci.regression.release(X, targets, ledger=ledger, **keywords)
        assert ledger.spent == {"rho": 0.0}


def test_the_middle_of_bounds_has_a_scale_too():
    with pytest.raises(dpci.InvalidInput, match="the middle of bounds must be at least -1e60 and at most 1e60"):
        dpci.regression.release(X, Y, **{**KEYWORDS, "bounds": (-1e61, -0.95e61 + 1e60)})


def test_sparse_rows_with_bounds_cost_nothing_with_private_errors():
    ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
    with pytest.raises(dpci.InvalidInput, match="X must be dense with bounds"):
        dpci.regression.release(sparse.csr_array(X), Y, ledger=ledger, **KEYWORDS, rows="clip")
    assert ledger.spent == {"rho": 0.0}


def test_hypotheses_of_nothing_are_refused():
    fit = dpci.regression.release(X, Y, **{**KEYWORDS, "budget": dpci.ZCDP(1e3)}).fit()
    with pytest.raises(dpci.InvalidInput, match="other than 0 in every row"):
        fit.wald_test(np.zeros((1, 3)))
    with pytest.raises(dpci.InvalidInput, match="value must be finite, got nan"):
        fit.wald_test("x0", np.nan)
