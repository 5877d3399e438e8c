"""Findings of a study: coverage and lengths, by parameter and on average. Never private."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci.base.tables import new_frame
from dpci.budgets import Budget
from dpci.shown.displayed import Displayed
from dpci.shown.document import NOT_PRIVATE, Document, Facts, Paragraph, Table
from dpci.shown.text import as_text
from dpci.simulate.plot import Averages, plot_coverage

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["CoverageStudy", "VariabilityStudy"]

_F64 = NDArray[np.float64]


def _mean(values: _F64, axis: int | None = None) -> _F64:
    """Return the mean of the values that are not NaN; NaN without any."""
    given = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(given, values, 0.0).sum(axis=axis) / given.sum(axis=axis))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Study(Displayed):
    """Facts of both kinds of study; their columns by parameter as a table, a frame and plain values."""

    private: ClassVar[bool] = False
    names: tuple[str, ...]
    target: _F64
    params: _F64
    level: float
    seed: int
    n_samples: int
    n_distinct: int

    def _columns(self) -> dict[str, _F64]:
        raise NotImplementedError

    def _facts(self) -> dict[str, float | int | None]:
        raise NotImplementedError

    def _notes(self) -> list[str]:
        return []

    def to_frame(self) -> "pd.DataFrame":
        """One row for each parameter, indexed by its name; needs pandas."""
        return new_frame(self._columns(), self.names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold: the averages, and lists by parameter."""
        columns = {name: values.tolist() for name, values in self._columns().items()}
        facts = {name: None if value != value else value for name, value in self._facts().items()}  # noqa: PLR0124  # NaN
        return {"private": False, **facts, "by_param": {"name": list(self.names), **columns}}

    def summary(self) -> str:
        """Table by parameter, then the averages."""
        return as_text(self._document())

    def _document(self) -> Document:
        columns = self._columns()
        rows = [[name, *(f"{c[i]:.4g}" for c in columns.values())] for i, name in enumerate(self.names)]
        facts = [
            (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.4g}")
            for name, value in self._facts().items()
            if value is not None
        ]
        table = Table(["", *(name.replace("_", " ") for name in columns)], rows)
        notes = map(Paragraph, [*self._notes(), f"{NOT_PRIVATE}: the target of a study is computed from the data."])
        return Document(parts=[table, Facts(facts), *notes])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class VariabilityStudy(_Study):
    """Variation of the released parameters from sample to sample: a yardstick for the length of intervals.

    Attributes
    ----------
    names : tuple of str
        Parameters.
    target : numpy.ndarray of shape (k,)
        Minimiser on the full data, which is the population of the samples.
    params : numpy.ndarray of shape (n_variability, k)
        Released parameters of each replicate.
    level : float
        Share of the replicates within a variability interval.
    seed : int
        Seed of the replicates.
    n_samples : int
        Records of the data set and of each sample: rows, or persons.
    n_distinct : int
        Records that differ; persons and weighted rows count as such.
    private : bool
        False, always.
    """

    @property
    def n_variability(self) -> int:
        """Number of replicates."""
        return len(self.params)

    @property
    def variability_length_by_param(self) -> _F64:
        """Length of the span of the central share ``level`` of the released parameters, shape (k,)."""
        tail = (1.0 - self.level) / 2.0
        lower, upper = np.quantile(self.params, [tail, 1.0 - tail], axis=0)
        return np.asarray(upper - lower)

    @property
    def variability_length(self) -> float:
        """Mean of these lengths over the parameters."""
        return float(self.variability_length_by_param.mean())

    def __repr__(self) -> str:
        return f"<VariabilityStudy: {self.n_variability} replicates, variability length {self.variability_length:.4g}>"

    def _columns(self) -> dict[str, _F64]:
        return {"target": self.target, "variability_length": self.variability_length_by_param}

    def _facts(self) -> dict[str, float | int | None]:
        return {
            "variability_length": self.variability_length,
            "level": self.level,
            "n_variability": self.n_variability,
            "n_samples": self.n_samples,
            "n_distinct": self.n_distinct,
            "seed": self.seed,
        }


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoverageStudy(_Study):
    """Coverage and length of intervals in a study.

    Attributes
    ----------
    names, target, seed, n_samples, n_distinct
        See :class:`VariabilityStudy`.
    params, lower, upper : numpy.ndarray of shape (n_replicates, k)
        Released parameters and bounds of the intervals of each replicate.
    variability : VariabilityStudy or None
        The replicates behind the variability lengths.
    level : float
        Nominal level.
    radius : float or None
        Radius of the ball of parameters. The intervals of all replicates are included, even those that a fit would
        refuse because its released values do not show that the ball does not bind.
    budget : PureDP, ZCDP or ApproxDP, or None
        Budget of the repeated fits.
    std_errors : numpy.ndarray of shape (k,), or None
        Standard errors of the target without privacy, by the sandwich formula on the full data: of fits by Newton
        steps, whose target has no ridge. None for other fits.
    private : bool
        False, always.

    Notes
    -----
    A fit by Newton steps may refuse intervals. Bounds are then NaN, and coverage and lengths are those of the intervals
    that are given.
    """

    lower: _F64
    upper: _F64
    variability: VariabilityStudy | None
    radius: float | None = None
    budget: Budget | None = None
    std_errors: _F64 | None = None

    @property
    def n_replicates(self) -> int:
        """Number of replicates with intervals."""
        return len(self.params)

    @property
    def coverage(self) -> float:
        """Share of the intervals, over replicates and parameters, that cover their target; NaN without any."""
        return float(_mean(self._covered))

    @property
    def coverage_se(self) -> float:
        """Standard error of ``coverage``, from the spread of the replicates' means, because parameters are dependent.

        NaN for one replicate.
        """
        means = _mean(self._covered[self._given.any(axis=1)], axis=1)
        return float("nan") if len(means) < 2 else float(means.std(ddof=1) / np.sqrt(len(means)))  # a spread

    @property
    def coverage_by_param(self) -> _F64:
        """Share of the intervals of each parameter that cover its target, shape (k,)."""
        return _mean(self._covered, axis=0)

    @property
    def refused(self) -> float:
        """Share of the intervals, over replicates and parameters, that fits refuse."""
        return float((~self._given).mean())

    @property
    def refused_by_param(self) -> _F64:
        """Share of the replicates that refuse the interval of each parameter, shape (k,)."""
        return np.asarray((~self._given).mean(axis=0))

    @property
    def mean_length(self) -> float:
        """Mean length of the intervals over replicates and parameters."""
        return float(self.mean_length_by_param.mean())

    @property
    def mean_length_by_param(self) -> _F64:
        """Mean length of the intervals of each parameter, shape (k,)."""
        return _mean(self.upper - self.lower, axis=0)

    @property
    def nonprivate_length_by_param(self) -> _F64 | None:
        """Length of the interval of each parameter without privacy, shape (k,); None without ``std_errors``."""
        if self.std_errors is None:
            return None
        return np.asarray(2.0 * special.ndtri(0.5 + 0.5 * self.level) * self.std_errors)

    @property
    def nonprivate_ratio(self) -> float | None:
        """Mean length over that without privacy, as a geometric mean over the parameters; None without the latter."""
        without = self.nonprivate_length_by_param
        if without is None:
            return None
        ratios = self.mean_length_by_param / without
        return float(np.exp(_mean(np.log(ratios))))

    @property
    def length_std_by_param(self) -> _F64:
        """Standard deviation of the length over the replicates, shape (k,); 0 for one replicate."""
        lengths = self.upper - self.lower
        return np.sqrt(_mean((lengths - _mean(lengths, axis=0)) ** 2, axis=0))

    @property
    def n_variability(self) -> int:
        """Number of replicates behind the variability lengths."""
        return 0 if self.variability is None else self.variability.n_variability

    @property
    def variability_length(self) -> float | None:
        """Mean length of the variability intervals over the parameters; None with ``n_variability=0``."""
        return None if self.variability is None else self.variability.variability_length

    @property
    def variability_length_by_param(self) -> _F64 | None:
        """Length of the variability interval of each parameter, shape (k,); None with ``n_variability=0``."""
        return None if self.variability is None else self.variability.variability_length_by_param

    @property
    def length_ratio(self) -> float | None:
        """``mean_length`` divided by ``variability_length``; near 1 is ideal. None if the latter is missing or 0."""
        length = self.variability_length
        return None if not length else self.mean_length / length

    def plot(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the coverage of each parameter with two standard errors, and below it the lengths; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes for the coverage alone; None: a new figure with a second panel for the lengths.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the coverage.

        Raises
        ------
        DpciError
            If matplotlib is not installed.
        """
        budget = "" if self.budget is None else str(self.budget)
        averages = Averages(self.level, self.coverage, self.coverage_se, self.n_replicates, budget, self.n_samples)
        return plot_coverage(self.names, self._columns(), averages, ax)

    def __repr__(self) -> str:
        ratio = "" if self.length_ratio is None else f", length ratio {self.length_ratio:.3f}"
        return (
            f"<CoverageStudy: {self.n_replicates} replicates, coverage {self.coverage:.4f} "
            f"(s.e. {self.coverage_se:.4f}) at level {self.level:g}{ratio}>"
        )

    @property
    def _given(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.lower)

    @property
    def _covered(self) -> _F64:
        covered = (self.lower <= self.target) & (self.target <= self.upper)
        return np.where(self._given, covered.astype(float), np.nan)

    def _columns(self) -> dict[str, _F64]:
        coverage, given = self.coverage_by_param, self._given.sum(axis=0)
        columns = {
            "target": self.target,
            "coverage": coverage,
            "coverage_se": np.sqrt(coverage * (1.0 - coverage) / np.maximum(given, 1)),
            "mean_length": self.mean_length_by_param,
            "length_std": self.length_std_by_param,
        }
        if self.variability is not None:
            columns["variability_length"] = self.variability.variability_length_by_param
            with np.errstate(divide="ignore", invalid="ignore"):  # equal replicates, or a level next to 0
                columns["length_ratio"] = columns["mean_length"] / columns["variability_length"]
        without = self.nonprivate_length_by_param
        if without is not None:
            columns |= {"nonprivate_ratio": columns["mean_length"] / without, "refused": self.refused_by_param}
        return columns

    def _facts(self) -> dict[str, float | int | None]:
        return {
            "coverage": self.coverage,
            "coverage_se": self.coverage_se,
            "mean_length": self.mean_length,
            "variability_length": self.variability_length,
            "length_ratio": self.length_ratio,
            **({} if self.std_errors is None else {"nonprivate_ratio": self.nonprivate_ratio, "refused": self.refused}),
            "level": self.level,
            "n_replicates": self.n_replicates,
            "n_variability": self.n_variability,
            "n_samples": self.n_samples,
            "n_distinct": self.n_distinct,
            "radius": self.radius,
            "seed": self.seed,
        }

    def _notes(self) -> list[str]:
        if self.std_errors is not None and self.refused > 0.0:
            return ["Coverage and lengths are those of the intervals that fits give."]
        if self.radius is None:
            return []
        return [f"Includes intervals that a fit with radius={self.radius:g} would refuse, because the radius may bind."]
