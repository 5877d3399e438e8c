"""Private models, a private search and transformers that need no data, for scikit-learn 1.6 and later.

Import it as ``dpci.sklearn``; ``import dpci`` alone does not import scikit-learn. See docs/sklearn.md.
"""

from typing import NoReturn

from dpci.base.habits import SKLEARN, instead, unknown_name
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


def __getattr__(name: str) -> NoReturn:
    """Refuse another library's name with the name that it has here."""
    ours = f"Private{name}"
    advice = f": use {ours}" if ours in __all__ else instead(name, SKLEARN)
    raise unknown_name(__name__, name, advice)
