"""What a release guarantees beyond its budget: the (epsilon, delta) profile and the Renyi curve, for composition."""

from dpci.accounting.guarantee import Guarantee

__all__ = ["Guarantee"]
