"""Utility as a function of epsilon: how good a private model would be at other budgets, from one fit. Never private."""

from dpci.base.naming import name_publicly
from dpci.utility.error_bounds import ErrorBound, bound
from dpci.utility.expected import ExpectedUtility
from dpci.utility.measure import curve
from dpci.utility.metrics import Metric, SmoothedAccuracy
from dpci.utility.result import UtilityCurve

__all__ = ["ErrorBound", "ExpectedUtility", "Metric", "SmoothedAccuracy", "UtilityCurve", "bound", "curve"]

name_publicly(__name__, __all__)
