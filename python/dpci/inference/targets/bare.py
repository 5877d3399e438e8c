"""Estimates of a release that says nothing about their errors: values, and the reason why there is no more."""

from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dpci.errors import InvalidInput

_F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bare:
    """Released values and linear functions of them, without the law of their errors."""

    params: _F64
    reason: str
    """Why there are no intervals."""

    def values(self) -> _F64:
        """Return the estimates."""
        return self.params.copy()

    def mapped(self, matrix: _F64, shift: _F64) -> "Bare":
        """Return those of linear functions of these."""
        return Bare(np.asarray(matrix @ self.params + shift), self.reason)

    def std_errors(self) -> NoReturn:
        """Raise ``InvalidInput`` with the reason."""
        raise InvalidInput(self.reason)

    cov = pvalues = std_errors

    def conf_int(self, *_names: object, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput`` with the reason."""
        raise InvalidInput(self.reason)

    wald_test = conf_int
