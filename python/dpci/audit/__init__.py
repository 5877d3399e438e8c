"""Attacks on mechanisms and models: lower bounds on what a mechanism leaks, and what a model tells. Never private."""

from dpci.audit.attacks import AuditReport, delta_lower_bound, epsilon_lower_bound, report, rho_lower_bound, worst_case
from dpci.audit.bounds import Event, LowerBound
from dpci.audit.cases import WorstCase
from dpci.audit.catalogue import MECHANISMS
from dpci.audit.inversion import ModelInversion, Regression, model_inversion
from dpci.base.naming import name_publicly

__all__ = [
    "MECHANISMS",
    "AuditReport",
    "Event",
    "LowerBound",
    "ModelInversion",
    "Regression",
    "WorstCase",
    "delta_lower_bound",
    "epsilon_lower_bound",
    "model_inversion",
    "report",
    "rho_lower_bound",
    "worst_case",
]

name_publicly(__name__, __all__)
