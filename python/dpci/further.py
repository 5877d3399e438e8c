"""Functions and classes of ``dpci`` that only some programs need; loaded when the first of them is used."""

from dpci.base.naming import name_publicly
from dpci.cli.saved import load
from dpci.described.description import SchemaDescription
from dpci.described.plan import BoundsPlan
from dpci.described.release import release_schema
from dpci.described.result import ReleasedSchema
from dpci.inference.comparison import Comparison, compare
from dpci.model.fit_many import fit_many
from dpci.model.newton import NewtonPlan
from dpci.model.plan import Plan, plan
from dpci.model.plan_table import PlanEntry, PlanTable, plan_table
from dpci.strata.fit import fit_strata
from dpci.strata.result import StrataFit

__all__ = [
    "BoundsPlan",
    "Comparison",
    "NewtonPlan",
    "Plan",
    "PlanEntry",
    "PlanTable",
    "ReleasedSchema",
    "SchemaDescription",
    "StrataFit",
    "compare",
    "fit_many",
    "fit_strata",
    "load",
    "plan",
    "plan_table",
    "release_schema",
]

name_publicly("dpci", __all__, home=__name__)
