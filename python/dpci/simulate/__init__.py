"""Bootstrap studies: how often intervals cover their target, and how much released parameters vary. Never private."""

from dpci.base.naming import name_publicly
from dpci.simulate.result import CoverageStudy, VariabilityStudy
from dpci.simulate.studies import coverage, variability

__all__ = ["CoverageStudy", "VariabilityStudy", "coverage", "variability"]

name_publicly(__name__, __all__)
