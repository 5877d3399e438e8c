"""Linear regression from one noisy moment matrix: every regression among its columns, with intervals."""

from dpci.base.naming import name_publicly
from dpci.regression import difference as _difference  # noqa: F401  # registers how two are compared
from dpci.regression.choices.assumed import Assumptions
from dpci.regression.choices.planned import Regression
from dpci.regression.estimates import LinearTest
from dpci.regression.matrix import MomentMatrix
from dpci.regression.mechanism import release
from dpci.regression.plan import MomentPlan
from dpci.regression.result import LinearFit

__all__ = ["Assumptions", "LinearFit", "LinearTest", "MomentMatrix", "MomentPlan", "Regression", "release"]

name_publicly(__name__, __all__)
