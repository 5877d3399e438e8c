"""Functions and classes of ``dpci`` that a fit takes and returns; loaded when the first of them is used."""

from dpci import errors, losses, rows
from dpci.base.naming import name_publicly
from dpci.base.threads import threads
from dpci.budgets import GDP, ZCDP, AddRemove, ApproxDP, Budget, PureDP
from dpci.errors import (
    BudgetExceeded,
    CommonLevelWarning,
    CurvatureWarning,
    DpciError,
    DpciWarning,
    FarRowsWarning,
    InvalidInput,
    LedgerError,
    MissingExtra,
    MomentNoiseWarning,
    NotConverged,
    PrivacyLeakWarning,
    RegularizationTooSmall,
    ReleaseFailed,
    RowNormViolation,
    SeededNoiseWarning,
)
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.units import ScaledColumns
from dpci.inference.wald import WaldTest
from dpci.ledger.ledger import Ledger
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from dpci.model.fit import fit
from dpci.model.result import PrivateFit
from dpci.sources.chunks import Chunks
from dpci.sources.whole import read
from dpci.unit import Persons, Weights

__all__ = [
    "GDP",
    "ZCDP",
    "AddRemove",
    "ApproxDP",
    "Budget",
    "BudgetExceeded",
    "Chunks",
    "CommonLevelWarning",
    "ConfidenceIntervals",
    "CurvatureWarning",
    "DpciError",
    "DpciWarning",
    "FarRowsWarning",
    "InvalidInput",
    "Ledger",
    "LedgerError",
    "MissingExtra",
    "MomentNoiseWarning",
    "NotConverged",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Persons",
    "PrivacyLeakWarning",
    "PrivateFit",
    "PureDP",
    "RegularizationTooSmall",
    "ReleaseFailed",
    "RowNormViolation",
    "ScaledColumns",
    "SeededNoiseWarning",
    "WaldTest",
    "Weights",
    "errors",
    "fit",
    "losses",
    "read",
    "rows",
    "threads",
]

# Errors keep the name of their own module, which is public too.
name_publicly("dpci", set(__all__) - set(errors.__all__), home=__name__)
