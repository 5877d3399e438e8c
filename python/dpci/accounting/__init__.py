"""Guarantees of a release beyond its budget: the (epsilon, delta) profile and the Renyi curve, for composition."""

from dpci.accounting.guarantee import Guarantee
from dpci.base.naming import name_publicly

__all__ = ["Guarantee"]

name_publicly(__name__, __all__)
