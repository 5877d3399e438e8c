"""Estimates of linear functions of regression coefficients with the law of their errors: intervals and tests."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpci.base.tables import format_pvalue
from dpci.base.validation import check_choice, check_count, check_fraction, check_seed
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals, Simultaneous
from dpci.inference.simultaneous import bonferroni_level, joint_level
from dpci.inference.wald import Hypothesis, Method, WaldTest, errors_of, hypothesis_values
from dpci.regression.equations import Solution
from dpci.regression.law import ErrorParts

__all__ = ["LinearTest"]

_F64 = NDArray[np.float64]

# Rows of a hypothesis are dependent where rounding alone would tell them apart.
_DEPENDENT = 1e-10
# Of joint errors: each takes a quantile.
_DRAWS = 20_000


@dataclass(frozen=True, eq=False, repr=False)
class LinearTest(WaldTest):
    """Test of the linear hypothesis ``R theta = value`` by an F statistic; made by :meth:`LinearFit.wald_test`.

    Attributes
    ----------
    statistic : float
        The Wald statistic over its number of rows: an F statistic.
    df : int
        Number of rows of R.
    df_residual : float
        Degrees of freedom of the variances: the smallest of Satterthwaite's numbers of the rows.
    pvalue : float
        Probability of a statistic at least as great if the hypothesis is true. For several rows the noise is treated as
        normal.
    """

    df_residual: float

    def _statistic_lines(self) -> list[tuple[str, str]]:
        return [("F statistic", f"{self.statistic:.4g}"), ("degrees of freedom", f"{self.df}, {self.df_residual:.4g}")]

    def __repr__(self) -> str:
        return f"F({self.df}, {self.df_residual:.4g}) = {self.statistic:.4g}, p-value {format_pvalue(self.pvalue)}"


@dataclass(frozen=True, eq=False)
class _JointLaw:
    """The law of the errors of contrasts, as simultaneous intervals ask for it."""

    solution: Solution

    def draw(self, rng: np.random.Generator, rows: _F64, n_draws: int) -> _F64:
        return self.solution.draw(rng, rows, n_draws)

    def components(self, rows: _F64) -> ErrorParts:
        return self.solution.parts(rows)

    def half_widths_of(self, components: ErrorParts, level: float) -> _F64:
        return components.half_width(level)


@dataclass(frozen=True, eq=False)
class LinearEstimates:
    """Estimates ``map @ params + shift`` from a solution."""

    solution: Solution
    map: _F64
    shift: _F64

    @classmethod
    def of(cls, solution: Solution) -> "LinearEstimates":
        """Return those of the coefficients themselves."""
        k = len(solution.params)
        return cls(solution, np.eye(k), np.zeros(k))

    def mapped(self, matrix: _F64, shift: _F64) -> "LinearEstimates":
        """Return those of linear functions of these."""
        return replace(self, map=matrix @ self.map, shift=matrix @ self.shift + shift)

    def parts(self) -> ErrorParts:
        """Return the parts of the errors."""
        return self.solution.parts(self.map)

    def values(self) -> _F64:
        """Return the estimates, shape (m,)."""
        return np.asarray(self.map @ self.solution.params + self.shift)

    def std_errors(self) -> _F64:
        """Return the standard deviation of the error of each estimate, shape (m,)."""
        return np.asarray(np.sqrt(self.parts().variance))

    def cov(self) -> _F64:
        """Return the covariance of the errors, shape (m, m)."""
        return np.asarray(self.map @ self.solution.covariance() @ self.map.T)

    def pvalues(self) -> _F64:
        """Return two-sided p-values of "its target is 0", shape (m,)."""
        parts = self.parts()
        # A constant that follows from public bounds has no error, and nothing is tested about it.
        certain = parts.variance == 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(certain, np.nan, parts.tail(np.abs(self.values())))

    def conf_int(
        self,
        names: tuple[str, ...],
        *,
        level: float,
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Return one interval for each estimate; see :meth:`LinearFit.conf_int`."""
        level = check_fraction("level", level)
        n_draws = None if n_draws is None else check_count("n_draws", n_draws)
        seed = check_seed(seed)
        if simultaneous is not None:
            check_choice("simultaneous", simultaneous, ("bonferroni", "max_z"))
        if simultaneous != "max_z":
            for name, given in (("n_draws", n_draws), ("seed", seed)):
                if given is not None:
                    raise InvalidInput(
                        f"{name} must be None unless simultaneous='max_z', which uses random draws, got {name}={given}"
                    )
        each = level
        is_normal = np.isinf(self.solution.degrees)
        if simultaneous == "bonferroni" or (simultaneous == "max_z" and not is_normal):
            # Symmetric matrix Laplace noise has no joint law of contrasts in closed form: the union bound serves there.
            each = bonferroni_level(level, len(self.map))
        elif simultaneous == "max_z":
            draws = _DRAWS if n_draws is None else n_draws
            each = joint_level(_JointLaw(self.solution), self.map, level, n_draws=draws, seed=seed)
        estimate, half = self.values(), self.parts().half_width(each)
        return ConfidenceIntervals(names, estimate, estimate - half, estimate + half, level, "exact", simultaneous)

    def wald_test(
        self, labels: tuple[str, ...], value: ArrayLike, *, method: Method = "joint", private: bool
    ) -> LinearTest:
        """Test that the estimates' targets are these values."""
        values = hypothesis_values(value, labels)
        tested = Hypothesis.of(self.map, self.solution.params, values - self.shift)
        unit = replace(self, map=tested.rows)
        parts = unit.parts()
        std_errors = errors_of(parts.variance)
        gap, df, m = tested.distance, float(np.min(parts.df)), len(self.map)
        by_rows = parts.tail(np.abs(gap))
        least = float(by_rows.min())
        sidak = least if m == 1 or least == 1.0 else -np.expm1(m * np.log1p(-least))
        if m == 1:
            with np.errstate(over="ignore"):
                statistic, joint = float(gap[0] ** 2 / parts.variance[0]), least
        else:
            cov = unit.cov()
            size = np.sqrt(np.diag(cov))
            if not np.linalg.eigvalsh(cov / np.outer(size, size))[0] > _DEPENDENT:
                raise InvalidInput("the rows of hypothesis must be linearly independent, got dependent ones")
            with np.errstate(over="ignore"):
                statistic = float(gap @ np.linalg.solve(cov, gap)) / m
            joint = float(special.fdtrc(m, min(df, 1e10), statistic))
        scaled = tested.scaled(std_errors, statistic)
        return LinearTest(
            statistic, m, method, joint, float(sidak), labels, self.values(), values, scaled, private, df_residual=df
        )
