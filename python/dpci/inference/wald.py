"""Wald tests of linear hypotheses about the parameters, exact under the law of their errors."""

import math
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpci import _core
from dpci.base.tables import ERROR_DIGITS, format_pvalue, number_format
from dpci.base.validation import check_finite
from dpci.data.arrays import as_numbers
from dpci.errors import InvalidInput
from dpci.inference.contrasts import counted_labels, row_labels
from dpci.inference.quadratic_tail import chi2_sum_tail, mixing_nodes, ratio_nodes
from dpci.shown.displayed import Displayed
from dpci.shown.document import BANNER, Document, Facts, Table
from dpci.shown.text import as_text

__all__ = ["WaldTest"]

_F64 = NDArray[np.float64]

Method: TypeAlias = Literal["joint", "by_rows"]

# Rows, and estimates, are dependent where rounding alone would tell them apart.
_DEPENDENT = 1e-10
# Of the simulated p-values, and numbers that are held at once.
_DRAWS, _LEAST_DRAWS, _MOST_NUMBERS = 200_000, 10_000, 2 * 10**7


class ErrorLaw(Protocol):
    """The law of the errors of parameters, as tests ask for it."""

    @property
    def law(self) -> str:
        """Name of the law of the noise."""

    @property
    def dim(self) -> int:
        """Number of parameters."""

    @property
    def shape(self) -> float:
        """Shape of the gamma law of W."""

    @property
    def blocks(self) -> _core.RowDomain | None:
        """Blocks in whose shape the noise is; None for others."""

    def parts(self, contrasts: _F64, /) -> tuple[_F64, _F64]:
        """Return the covariances of contrasts without the noise, and of the noise."""

    def pvalues(self, contrasts: _F64, statistic: _F64, /) -> _F64:
        """Return the probability of errors at least this far from 0."""

    def draw(self, rng: np.random.Generator, contrasts: _F64, n: int, /) -> _F64:
        """Return draws of the errors, shape (n, m)."""


@dataclass(frozen=True, eq=False, repr=False)
class WaldTest(Displayed):
    """Wald test of the linear hypothesis ``R theta = value`` about the regularised target; made by ``wald_test``.

    Post-processing of a released model: it reads no data and uses no budget.

    Attributes
    ----------
    statistic : float
        ``(R params - value)' C^-1 (R params - value)`` with the covariance C of the error, sampling and noise together.
    df : int
        Number of rows of R.
    pvalue : float
        p-value of ``method``.
    method : str
        "joint" or "by_rows".
    pvalue_joint : float
        Probability of a statistic at least as great if the hypothesis is true, by the law of the errors.
    pvalue_by_rows : float
        p-value of the same hypothesis from the least of the rows' own p-values, by Šidák's inequality: less powerful,
        and much less sensitive to the noise in the released matrices. Equal to ``pvalue_joint`` with one row.
    hypothesis : tuple of str
        Each row in words.
    estimate, value : numpy.ndarray of shape (df,)
        ``R params`` and what the hypothesis says it is.
    std_errors : numpy.ndarray of shape (df,)
        Standard deviation of the error of each estimate.
    private : bool
        False for a fit with seeded noise.
    units : str
        Unit of the parameters of a fit with a schema, "scaled columns" or "units of the table"; otherwise empty.
    """

    statistic: float
    df: int
    method: Method
    pvalue_joint: float
    pvalue_by_rows: float
    hypothesis: tuple[str, ...]
    estimate: _F64
    value: _F64
    std_errors: _F64
    private: bool
    units: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        for array in (self.estimate, self.value, self.std_errors):
            array.flags.writeable = False

    @property
    def pvalue(self) -> float:
        """The p-value of the test, by :attr:`method`."""
        return self.pvalue_joint if self.method == "joint" else self.pvalue_by_rows

    def summary(self) -> str:
        """Return the rows of the hypothesis with their estimates, and the test."""
        return as_text(self._document())

    def _document(self) -> Document:
        shown = number_format(self.std_errors, self.estimate, digits=ERROR_DIGITS)
        rows = [
            [f"{what} = {value:g}", f"{estimate:{shown}}"]
            for what, value, estimate in zip(self.hypothesis, self.value, self.estimate, strict=True)
        ]
        facts = [
            *self._statistic_lines(),
            *self._pvalue_lines(),
        ]
        title = f"hypothesis{f', {self.units}' if self.units else ''}"
        parts = [Table([title, "estimate"], rows), Facts(facts)]
        return Document(parts=parts, banner=BANNER[self.private])

    def _statistic_lines(self) -> list[tuple[str, str]]:
        if self.method == "by_rows" and self.df > 1:  # the statistic belongs to the other p-value
            return []
        shown = f"{self.statistic:{number_format(self.statistic, self.statistic)}}"
        return [("Wald statistic", shown), ("degrees of freedom", str(self.df))]

    def _pvalue_lines(self) -> list[tuple[str, str]]:
        joint, by_rows = format_pvalue(self.pvalue_joint), format_pvalue(self.pvalue_by_rows)
        if self.df == 1:
            return [("p-value", joint)]
        if self.method == "joint":
            return [("p-value", f"{joint} (joint)"), ("p-value by rows", by_rows)]
        tests = f"{self.df} separate tests, one for each row"
        return [("p-value", f"{by_rows} (from the least p-value of {tests})")]

    def __repr__(self) -> str:
        return self.summary()


def wald_test(
    law: ErrorLaw,
    params: _F64,
    rows: _F64,
    labels: tuple[str, ...],
    value: ArrayLike,
    *,
    method: Method,
    private: bool,
) -> WaldTest:
    """Test ``rows @ theta = value``; see :meth:`dpci.PrivateFit.wald_test`."""
    values = hypothesis_values(value, labels)
    tested = Hypothesis.of(rows, params, values)
    unit, distance = tested.rows, tested.distance
    if np.linalg.matrix_rank(unit / np.linalg.norm(unit, axis=1)[:, None], tol=_DEPENDENT) < len(rows):
        raise InvalidInput(f"the rows of a hypothesis must be linearly independent, got {len(rows)} rows that are not")
    fixed, mixed = law.parts(unit)
    std_errors = errors_of(np.diag(fixed + mixed))
    scale = np.outer(std_errors, std_errors)
    correlation = (fixed + mixed) / scale
    eigenvalues, vectors = np.linalg.eigh(0.5 * (correlation + correlation.T))
    if eigenvalues[0] <= _DEPENDENT * eigenvalues[-1]:
        raise InvalidInput(
            "the covariance of the estimates of a hypothesis must be regular, got one that is singular up to "
            f"rounding (least eigenvalue {eigenvalues[0]:.3g} of the correlations)"
        )
    root = vectors / np.sqrt(eigenvalues)
    with np.errstate(over="ignore"):
        statistic = float(((distance / std_errors @ root) ** 2).sum())
    # In the coordinates in which the mean covariance is I, the noise has this share of the variance along its axes.
    shares = np.clip(np.linalg.eigvalsh(root.T @ (mixed / scale) @ root), 0.0, 1.0)
    by_rows = law.pvalues(unit, distance)
    least = float(by_rows.min())
    sidak = least if len(rows) == 1 or least == 1.0 else -math.expm1(len(rows) * math.log1p(-least))
    if len(rows) == 1:
        joint = least
    elif law.blocks is not None:
        joint = _simulated_tail(statistic, law, unit, root / std_errors[:, None])
    else:
        joint = statistic_tail(statistic, shares, law)
    scaled = tested.scaled(std_errors, statistic)
    return WaldTest(statistic, len(rows), method, joint, sidak, labels, tested.estimate, values, scaled, private)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """Rows of a hypothesis divided by their greatest coefficients, so that no square of them overflows or vanishes."""

    rows: _F64
    size: _F64
    """Greatest coefficients."""
    estimate: _F64
    """Estimate of each row, before it is divided."""
    value: _F64
    distance: _F64
    """Estimates less values, divided."""

    @classmethod
    def of(cls, rows: _F64, params: _F64, value: _F64) -> "Hypothesis":
        """Return the hypothesis that ``rows @ theta`` is ``value``, checked."""
        size = np.abs(rows).max(axis=1, initial=0.0)
        if not rows.size or not size.all():
            raise InvalidInput(
                "a hypothesis must have at least one row, and a coefficient other than 0 in every row, got shape "
                f"{rows.shape}"
            )
        unit = rows / size[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            found = cls(unit, size, rows @ params, value, unit @ params - value / size)
        return found._within(np.isfinite(found.distance) & np.isfinite(found.estimate))

    def scaled(self, std_errors: _F64, statistic: float) -> _F64:
        """Return the standard errors of the rows from those of the divided ones, and refuse an infinite statistic."""
        with np.errstate(over="ignore"):
            scaled = std_errors * self.size
        far = np.abs(self.distance)
        self._within(np.isfinite(scaled) & (math.isfinite(statistic) | (far < far.max())))
        return scaled

    def _within(self, valid: NDArray[np.bool_]) -> "Hypothesis":
        if not valid.all():
            i = int(np.argmin(valid))
            raise InvalidInput(
                "a hypothesis, its estimate, standard error and statistic, and its value divided by its greatest "
                f"coefficient must be within the range of floats, got value={self.value[i]:g} for a row whose greatest "
                f"coefficient is {self.size[i]:g}"
            )
        return self


def errors_of(variances: _F64) -> _F64:
    """Return the standard errors of a hypothesis, and refuse one that is 0, of which there is nothing to test."""
    if not variances.all():
        raise InvalidInput("the standard errors of a hypothesis must be > 0, got one that is 0")
    return np.asarray(np.sqrt(variances))


def statistic_tail(statistic: float, shares: _F64, law: ErrorLaw) -> float:
    """Return the probability that a statistic is at least this great under its hypothesis.

    Given ``Omega = w E Omega`` and W it is W times a sum of chi-squares of one degree of freedom with weights
    ``1 - share + w share``: one for each axis along which noise has that share of the variance.
    """
    if statistic == 0.0:
        return 1.0
    ratios, weights = ratio_nodes(law.shape)
    return min(1.0, float(weights @ [_tail_given_ratio(statistic / ratio, shares, law) for ratio in ratios]))


def _simulated_tail(statistic: float, law: ErrorLaw, rows: _F64, root: _F64) -> float:
    """Return the same by simulation, always with the same draws: no ellipse describes noise in the shape of blocks."""
    n_draws = max(_LEAST_DRAWS, min(_DRAWS, _MOST_NUMBERS // len(rows)))
    errors = law.draw(np.random.default_rng(0), rows, n_draws) @ root
    # The statistic itself counts as a draw, so that the p-value is never too small on average.
    return float((1 + np.count_nonzero((errors**2).sum(axis=1) >= statistic)) / (1 + n_draws))


def _tail_given_ratio(statistic: float, shares: _F64, law: ErrorLaw) -> float:
    if law.law == "gaussian" or not shares.any():
        return float(special.chdtrc(len(shares), statistic))
    nodes, probabilities = mixing_nodes(law.law, law.dim)
    tails = chi2_sum_tail((1.0 - shares) + nodes[:, None] * shares, statistic)
    return float(probabilities @ tails)


def hypothesis_values(value: ArrayLike, labels: tuple[str, ...]) -> _F64:
    """Return what the rows of a hypothesis say that their combinations are, shape (m,)."""
    n_rows, given = len(labels), row_labels(value)
    # Rows of numbers have no names that labels could contradict.
    if given is not None and given != labels and labels != counted_labels(n_rows, "hypothesis"):
        raise InvalidInput(
            f"the labels of value must be those of the hypothesis ({', '.join(labels)}), got {', '.join(given)} "
            "(use to_numpy() to pass the numbers by position)"
        )
    values = as_numbers("value", value).astype(np.float64)
    if values.shape not in {(), (n_rows,)}:
        raise InvalidInput(f"value must be a number or have shape ({n_rows},), got shape {values.shape}")
    return np.array(np.broadcast_to(check_finite("value", np.atleast_1d(values)), (n_rows,)))
