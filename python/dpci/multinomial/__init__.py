"""Multinomial logistic regression: three or more public classes, with intervals."""

from dpci.base.naming import name_publicly
from dpci.multinomial.planning import plan
from dpci.multinomial.release import fit
from dpci.multinomial.result import MultinomialFit

__all__ = ["MultinomialFit", "fit", "plan"]

name_publicly(__name__, __all__)
