"""Private models, a private search and transformers that need no data, for scikit-learn 1.6 and later.

Import it as ``dpci.sklearn``; ``import dpci`` alone does not import scikit-learn. See docs/sklearn.md.
"""

from dpci.errors import DpciError

try:
    from dpci.sklearn._classifiers import PrivateLinearSVC, PrivateLogisticRegression
    from dpci.sklearn._ridge import PrivateRidge
    from dpci.sklearn._search import PrivateGridSearch
    from dpci.sklearn._transformers import PublicScaler, RowNormClipper
except ImportError as error:
    # Also raised by releases before 1.6, which have no public validate_data.
    if (error.name or "").split(".")[0] != "sklearn":
        raise
    raise DpciError("dpci.sklearn needs scikit-learn 1.6 or later: pip install 'dpci[sklearn]'") from error

__all__ = [
    "PrivateGridSearch",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateRidge",
    "PublicScaler",
    "RowNormClipper",
]
