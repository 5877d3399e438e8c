"""Multinomial logistic regression: three or more public classes, with intervals."""

from dpci.base.naming import name_publicly
from dpci.multinomial.release import fit
from dpci.multinomial.result import MultinomialFit

__all__ = ["MultinomialFit", "fit"]

name_publicly(__name__, __all__)
