"""Private models, a private search and transformers that need no data, for scikit-learn 1.6 and later.

Import it as ``dpci.sklearn``; ``import dpci`` alone does not import scikit-learn. See docs/sklearn.md.
"""

from dpci.base.naming import name_publicly
from dpci.base.optional import optional

with optional("sklearn", extra="sklearn", what="dpci.sklearn", name="scikit-learn 1.6 or later"):
    from dpci.sklearn.classifiers import PrivateLinearSVC, PrivateLogisticRegression, PrivateMultinomialRegression
    from dpci.sklearn.linear import PrivateLinearRegression, PrivatePoissonRegressor, PrivateRegressor, PrivateRidge
    from dpci.sklearn.search import PrivateGridSearch
    from dpci.sklearn.transformers import PublicScaler, RowNormClipper

__all__ = [
    "PrivateGridSearch",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateMultinomialRegression",
    "PrivatePoissonRegressor",
    "PrivateRegressor",
    "PrivateRidge",
    "PublicScaler",
    "RowNormClipper",
]

name_publicly(__name__, __all__)
