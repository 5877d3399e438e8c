"""Differentially private model fitting that releases confidence intervals with its parameters."""

from dpci.base import startup as _startup  # isort: skip  # noqa: F401  # first: Ctrl-C ends the imports quietly

import importlib
from typing import TYPE_CHECKING

from dpci.base.optional import MissingModule
from dpci.base.threads import lock_across_forks
from dpci.errors import MissingExtra

__all__ = [
    "GDP",
    "ZCDP",
    "AddRemove",
    "ApproxDP",
    "BoundsPlan",
    "Budget",
    "BudgetExceeded",
    "Chunks",
    "CommonLevelWarning",
    "Comparison",
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
    "NewtonPlan",
    "NotConverged",
    "ObjectivePerturbation",
    "OutputPerturbation",
    "Persons",
    "Plan",
    "PlanEntry",
    "PlanTable",
    "PrivacyLeakWarning",
    "PrivateFit",
    "PureDP",
    "RegularizationTooSmall",
    "ReleaseFailed",
    "ReleasedSchema",
    "RowNormViolation",
    "ScaledColumns",
    "SchemaDescription",
    "SeededNoiseWarning",
    "StrataFit",
    "WaldTest",
    "Weights",
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
    "load",
    "losses",
    "lowlevel",
    "multinomial",
    "per_instance",
    "plan",
    "plan_table",
    "read",
    "regression",
    "release_schema",
    "rows",
    "schema",
    "simulate",
    "threads",
    "tuning",
    "utility",
]

if TYPE_CHECKING:
    from dpci import (
        accounting,
        audit,
        baselines,
        datasets,
        lowlevel,
        multinomial,
        per_instance,
        regression,
        schema,
        simulate,
        tuning,
        utility,
    )
    from dpci import sklearn as sklearn  # in this form it is public
    from dpci._core import __version__
    from dpci.errors import *
    from dpci.further import *
    from dpci.public import *
else:
    # Loaded when first used: `dpci --version` does not wait for SciPy, nor a fit for studies and audits.
    _MODULES = {"accounting", "audit", "baselines", "datasets", "lowlevel", "per_instance", "schema"}
    _MODULES |= {"multinomial", "regression", "simulate", "sklearn", "tuning", "utility"}
    _FURTHER = {"BoundsPlan", "Comparison", "NewtonPlan", "Plan", "PlanEntry", "PlanTable", "ReleasedSchema"}
    _FURTHER |= {"SchemaDescription", "StrataFit"}
    _FURTHER |= {"compare", "fit_many", "fit_strata", "load", "plan", "plan_table", "release_schema"}
    # One thread at a time: one that imports a package and one that imports a file of it would wait for each other.
    _LOADING = lock_across_forks()

    def __getattr__(name: str) -> object:
        """Load a public module when it is asked for; functions and classes with those that are used together."""
        if name not in __all__ and name != "sklearn":
            from dpci.base.habits import FUNCTIONS, instead, unknown_name  # noqa: PLC0415  # for those who guess a name

            where = None if name.startswith("_") else _home(name)
            advice = instead(name, FUNCTIONS) if where is None else f": import it from {where}"
            raise unknown_name(__name__, name, advice)
        if name == "__version__":
            from dpci._core import __version__ as version  # noqa: PLC0415  # completion does without the core

            return version
        with _LOADING:
            try:
                if name in _MODULES:  # scikit-learn, which one of them needs, is optional
                    return importlib.import_module(f"dpci.{name}")
            except MissingExtra as error:
                raise MissingModule(str(error), **vars(error)) from error
            public = importlib.import_module("dpci.further" if name in _FURTHER else "dpci.public")
            globals().update({each: getattr(public, each) for each in public.__all__})
            return globals()[name]

    def _home(name: str) -> str | None:
        """Return the module that has a public name; None where none does."""
        for module in sorted({*_MODULES, "losses", "rows"}):
            try:
                if name in importlib.import_module(f"dpci.{module}").__all__:
                    return f"dpci.{module}"
            except MissingExtra:
                continue
        return None

    def __dir__() -> list[str]:
        """Name what is public; the module that needs an extra, which ``import *`` must not import, once it is there."""
        return sorted({*__all__, *({"sklearn"} & globals().keys())})
