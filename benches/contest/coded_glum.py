"""glum as a contestant on coded rows: its own split matrix, with categories as it stores them; not private."""

from typing import Any

import numpy as np
import pandas as pd
import tabmat
from glum import GeneralizedLinearRegressor

L2_STRENGTH = 0.002


def contestant(data: dict[str, Any], kind: str, _: int) -> tuple[Any, int]:
    """glum on its own split matrix: dense numbers, and categories as it stores them."""
    parts: list[Any] = [tabmat.DenseMatrix(np.asfortranarray(data["numbers"]))]
    for codes, m in zip(data["codes"].T, data["levels"], strict=True):
        category = pd.Categorical.from_codes(codes.astype(np.int64) - 1, categories=list(range(int(m))))
        parts.append(tabmat.CategoricalMatrix(category, cat_missing_method="zero"))
    X = tabmat.SplitMatrix(parts)
    poisson = str(data["loss"]) == "poisson"
    y = data["y"] if poisson else (data["y"] > 0).astype(float)

    def fit() -> Any:
        model = GeneralizedLinearRegressor(
            family="poisson" if poisson else "binomial",
            alpha=L2_STRENGTH,
            l1_ratio=0,
            fit_intercept=False,
            gradient_tol=float(kind),
            max_iter=1000,
            copy_X=False,
            check_input=False,
        )
        return model.fit(X, y).coef_

    return fit, data["numbers"].nbytes + data["codes"].nbytes
