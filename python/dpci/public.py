"""The functions and classes that ``dpci`` exports; loaded together when the first of them is used."""

from dpci import errors, losses, lowlevel, rows
from dpci.base.naming import name_publicly
from dpci.budgets import GDP, ZCDP, ApproxDP, Budget, PureDP
from dpci.errors import (
    BudgetExceeded,
    CurvatureWarning,
    DpciDeprecationWarning,
    DpciError,
    DpciWarning,
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
from dpci.inference.comparison import Comparison, compare
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.units import TableUnits
from dpci.inference.wald import WaldTest
from dpci.ledger.ledger import Ledger
from dpci.mechanisms import ObjectivePerturbation, OutputPerturbation
from dpci.model.fit import fit
from dpci.model.fit_many import fit_many
from dpci.model.plan import Plan, plan
from dpci.model.plan_table import PlanEntry, PlanTable, plan_table
from dpci.model.result import PrivateFit
from dpci.sources.chunks import Chunks
from dpci.strata.fit import fit_strata
from dpci.strata.result import StrataFit

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Budget",
    "BudgetExceeded",
    "Chunks",
    "Comparison",
    "ConfidenceIntervals",
    "CurvatureWarning",
    "DpciDeprecationWarning",
    "DpciError",
    "DpciWarning",
    "InvalidInput",
    "Ledger",
    "LedgerError",
    "MissingExtra",
    "MomentNoiseWarning",
    "NotConverged",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Plan",
    "PlanEntry",
    "PlanTable",
    "PrivacyLeakWarning",
    "PrivateFit",
    "PureDP",
    "RegularizationTooSmall",
    "ReleaseFailed",
    "RowNormViolation",
    "SeededNoiseWarning",
    "StrataFit",
    "TableUnits",
    "WaldTest",
    "compare",
    "errors",
    "fit",
    "fit_many",
    "fit_strata",
    "losses",
    "lowlevel",
    "plan",
    "plan_table",
    "rows",
]

# Errors keep the name of their own module, which is public too.
name_publicly("dpci", set(__all__) - set(errors.__all__), home=__name__)
