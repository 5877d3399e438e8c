"""Baselines: the functional mechanism, regression on a noisy histogram, and no privacy, with the interface of a fit."""

from dpci.base.naming import name_publicly
from dpci.baselines.axes import Bins, Levels, OneHot, axes_of
from dpci.baselines.functional import functional_mechanism
from dpci.baselines.histogram import projected_histogram
from dpci.baselines.reference import non_private
from dpci.baselines.result import BaselineFit

__all__ = [
    "BaselineFit",
    "Bins",
    "Levels",
    "OneHot",
    "axes_of",
    "functional_mechanism",
    "non_private",
    "projected_histogram",
]

name_publicly(__name__, __all__)
