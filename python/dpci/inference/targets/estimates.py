"""Estimates of linear functions of a target with the law of their errors: intervals, standard errors, p-values."""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import check_choice, check_count, check_fraction, check_seed
from dpci.errors import InvalidInput
from dpci.inference.error_law import ErrorLaw
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.simultaneous import bonferroni_level, joint_level
from dpci.inference.wald import Method, WaldTest, hypothesis_values, wald_test

_F64: TypeAlias = NDArray[np.float64]

Simultaneous: TypeAlias = Literal["bonferroni", "max_z"]

_MONTE_CARLO_DRAWS = 10_000


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates ``map @ params + shift``, and the law of the error of ``params``.

    Parameters
    ----------
    law : ErrorLaw
        Law of ``target - params``.
    params : ndarray of shape (k,)
        Released parameters, or what follows from them.
    map : ndarray of shape (m, k)
        Functions of the parameters that are estimated.
    shift : ndarray of shape (m,)
        Constants.
    """

    law: ErrorLaw
    params: _F64
    map: _F64
    shift: _F64

    @classmethod
    def of_parameters(cls, law: ErrorLaw, params: _F64) -> "Estimates":
        """Return those of the parameters themselves."""
        k = len(params)
        return cls(law, params, np.eye(k), np.zeros(k))

    def mapped(self, matrix: _F64, shift: _F64) -> "Estimates":
        """Return those of linear functions of these."""
        return replace(self, map=matrix @ self.map, shift=matrix @ self.shift + shift)

    def values(self) -> _F64:
        """Return the estimates, shape (m,)."""
        return np.asarray(self.map @ self.params + self.shift)

    def std_errors(self) -> _F64:
        """Return the standard deviation of the error of each estimate, shape (m,)."""
        variance, multiplier = self.law.components(self.map)
        return np.asarray(np.sqrt(variance + multiplier**2 * self.law.mean_omega))

    def cov(self) -> _F64:
        """Return the covariance of the errors, shape (m, m)."""
        fixed, mixed = self.law.parts(self.map)
        return fixed + mixed

    def pvalues(self) -> _F64:
        """Return two-sided p-values of "its target is 0", shape (m,)."""
        return self.law.pvalues(self.map, self.values())

    def conf_int(
        self,
        names: tuple[str, ...],
        *,
        level: float,
        method: Literal["exact", "monte_carlo"] = "exact",
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Return one interval for each estimate; see :meth:`dpci.PrivateFit.conf_int`."""
        level = check_fraction("level", level)
        method = check_choice("method", method, ("exact", "monte_carlo"))
        if simultaneous is not None:
            check_choice("simultaneous", simultaneous, ("bonferroni", "max_z"))
            if method != "exact":
                raise InvalidInput(f"simultaneous intervals need method='exact', got method={method!r}")
        n_draws = None if n_draws is None else check_count("n_draws", n_draws)
        seed = check_seed(seed)
        if method == "exact" and simultaneous != "max_z":
            for name, given in (("n_draws", n_draws), ("seed", seed)):
                if given is not None:
                    raise InvalidInput(
                        f"{name} must be None where nothing is drawn (method='monte_carlo' and simultaneous='max_z' "
                        f"draw), got {name}={given}"
                    )
        law, contrasts, estimate = self.law, self.map, self.values()
        if method == "monte_carlo":
            draws = _MONTE_CARLO_DRAWS if n_draws is None else n_draws
            parts = law.components(contrasts)
            lower, upper = _core.monte_carlo_interval(
                *parts, law.law, law.scale, law.dim, level, draws, seed, law.shape
            )
        else:
            each = level
            if simultaneous == "bonferroni":
                each = bonferroni_level(level, len(contrasts))
            elif simultaneous == "max_z":
                each = joint_level(law, contrasts, level, n_draws=n_draws, seed=seed)
            half_width = law.half_widths(contrasts, each)
            lower, upper = -half_width, half_width
        return ConfidenceIntervals(names, estimate, estimate + lower, estimate + upper, level, method, simultaneous)

    def wald_test(self, labels: tuple[str, ...], value: ArrayLike, *, method: Method, private: bool) -> WaldTest:
        """Test that the estimates' targets are these values."""
        values = hypothesis_values(value, labels)
        tested = wald_test(self.law, self.params, self.map, labels, values - self.shift, method=method, private=private)
        return replace(tested, estimate=self.values(), value=values) if self.shift.any() else tested
