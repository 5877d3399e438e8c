"""Differentially private model fitting that releases confidence intervals with its parameters."""

from dpci.base import startup as _startup  # isort: skip  # noqa: F401  # first: Ctrl-C ends the imports quietly

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from dpci import errors, losses, lowlevel, rows
from dpci._core import __version__
from dpci.base.naming import name_publicly
from dpci.base.optional import MissingModule
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
    "__version__",
    "accounting",
    "audit",
    "baselines",
    "compare",
    "datasets",
    "errors",
    "fit",
    "fit_many",
    "fit_strata",
    "losses",
    "lowlevel",
    "papers",
    "per_instance",
    "plan",
    "plan_table",
    "regression",
    "rows",
    "schema",
    "simulate",
    "tuning",
    "utility",
]

# Errors keep the name of their own module, which is public too.
name_publicly(__name__, set(__all__) - set(errors.__all__))

if TYPE_CHECKING:
    from dpci import (
        accounting,
        audit,
        baselines,
        datasets,
        papers,
        per_instance,
        regression,
        schema,
        simulate,
        tuning,
        utility,
    )
    from dpci import sklearn as sklearn  # in this form it is public
else:
    # Loaded when first used: a program that only fits does not wait for studies and audits.
    _LATER = {"accounting", "audit", "baselines", "datasets", "papers", "per_instance", "schema", "simulate"}
    _LATER |= {"regression", "sklearn", "tuning", "utility"}

    def __getattr__(name: str) -> ModuleType:
        """Import a public module when it is first asked for; scikit-learn, which one of them needs, is optional."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            return importlib.import_module(f"dpci.{name}")
        except MissingExtra as error:
            raise MissingModule(str(error)) from error

    def __dir__() -> list[str]:
        """Name what is public; the module that needs an extra, which ``import *`` must not import, once it is there."""
        return sorted({*__all__, *({"sklearn"} & globals().keys())})
