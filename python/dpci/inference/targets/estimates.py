"""Estimates of linear functions of a target with the law of their errors: intervals, standard errors, p-values."""

from dataclasses import dataclass, replace
from itertools import compress
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.validation import check_choice, check_count, check_fraction, check_seed
from dpci.errors import InvalidInput
from dpci.inference.error_law import ErrorLaw
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.simultaneous import bonferroni_level, joint_level
from dpci.inference.targets.unregularised import REASONS, without_ridge
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
    step : NewtonStep, optional
        The step off the ridge that made ``params``, which says which estimates are given; None: all are.
    """

    law: ErrorLaw
    params: _F64
    map: _F64
    shift: _F64
    step: _core.NewtonStep | None = None

    @classmethod
    def of_parameters(cls, law: ErrorLaw, params: _F64) -> "Estimates":
        """Return those of the parameters themselves."""
        k = len(params)
        return cls(law, params, np.eye(k), np.zeros(k))

    @classmethod
    def off_ridge(cls, law: ErrorLaw, params: _F64, step: _core.NewtonStep) -> "Estimates":
        """Return those of the unregularised parameters, from the law of the regularised ones."""
        return replace(cls.of_parameters(without_ridge(law, step), step.map @ params), step=step)

    def refusals(self) -> tuple[str | None, ...]:
        """Return why an estimate is not given, None for each that is."""
        if self.step is None:
            return (None,) * len(self.map)
        found = self.step.obstacles(np.ascontiguousarray(self.map), self._all_std_errors())
        return tuple(None if obstacle is None else REASONS[obstacle] for obstacle in found)

    def given(self) -> NDArray[np.bool_]:
        """Return which estimates are given."""
        return np.array([refusal is None for refusal in self.refusals()], dtype=bool)

    def check_given(self, labels: tuple[str, ...]) -> None:
        """Refuse estimates that are not given."""
        for label, reason in zip(labels, self.refusals(), strict=True):
            if reason is not None:
                raise InvalidInput(f"the unregularised target must be given for {label!r}, got none: {reason}")

    def mapped(self, matrix: _F64, shift: _F64) -> "Estimates":
        """Return those of linear functions of these."""
        return replace(self, map=matrix @ self.map, shift=matrix @ self.shift + shift)

    def values(self) -> _F64:
        """Return the estimates, shape (m,); NaN where one is not given."""
        return self._shown(self._all_values())

    def std_errors(self) -> _F64:
        """Return the standard deviation of the error of each estimate, shape (m,); NaN where one is not given."""
        return self._shown(self._all_std_errors())

    def _shown(self, numbers: _F64) -> _F64:
        return numbers if self.step is None else np.where(self.given(), numbers, np.nan)

    def _all_values(self) -> _F64:
        return np.asarray(self.map @ self.params + self.shift)

    def _all_std_errors(self) -> _F64:
        variance, _ = self.law.components(self.map)
        return np.asarray(np.sqrt(variance + self.law.noise_variance(self.map)))

    def cov(self) -> _F64:
        """Return the covariance of the errors, shape (m, m); NaN where an estimate is not given."""
        fixed, mixed = self.law.parts(self.map)
        if self.step is None:
            return fixed + mixed
        given = self.given()
        return np.where(np.outer(given, given), fixed + mixed, np.nan)

    def pvalues(self) -> _F64:
        """Return two-sided p-values of "its target is 0", shape (m,); NaN where an estimate is not given."""
        found = self.law.pvalues(self.map, self._all_values())
        # What public bounds alone decide is no estimate, and nothing is tested about it.
        return self._shown(np.where(self._all_std_errors() > 0.0, found, np.nan))

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
                raise InvalidInput(f"simultaneous intervals require method='exact', got method={method!r}")
        n_draws = None if n_draws is None else check_count("n_draws", n_draws)
        seed = check_seed(seed)
        if method == "exact" and simultaneous != "max_z":
            for name, given in (("n_draws", n_draws), ("seed", seed)):
                if given is not None:
                    raise InvalidInput(
                        f"{name} must be None unless method='monte_carlo' or simultaneous='max_z', which use random "
                        f"draws, got {name}={given}"
                    )
        shown = self.given()
        if not shown.all():
            # Of those that are given, each by itself or all together.
            kept = replace(self, map=self.map[shown], shift=self.shift[shown])
            some = kept.conf_int(
                tuple(compress(names, shown)),
                level=level,
                method=method,
                simultaneous=simultaneous,
                n_draws=n_draws,
                seed=seed,
            )
            columns = np.full((3, len(names)), np.nan)
            columns[:, shown] = some.estimate, some.lower, some.upper
            estimate, lower, upper = columns
            return replace(some, names=names, estimate=estimate, lower=lower, upper=upper, refusals=self.refusals())
        law, contrasts, estimate = self.law, self.map, self._all_values()
        if method == "monte_carlo":
            draws = _MONTE_CARLO_DRAWS if n_draws is None else n_draws
            parts = law.components(contrasts)
            lower, upper = _core.monte_carlo_interval(
                *parts, law.law, law.scale, law.dim, level, draws, seed, law.shape, law.blocks
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
        self.check_given(labels)
        values = hypothesis_values(value, labels)
        tested = wald_test(self.law, self.params, self.map, labels, values - self.shift, method=method, private=private)
        return replace(tested, estimate=self.values(), value=values) if self.shift.any() else tested
