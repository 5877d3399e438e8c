"""The coefficients of a released model: scaled or in the units of its table, with the ridge or without it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpci.base.validation import check_choice
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.error_law import ErrorLaw, error_law
from dpci.inference.intervals import ConfidenceIntervals
from dpci.inference.targets.bare import Bare
from dpci.inference.targets.effects import marginal_effects
from dpci.inference.targets.estimates import Estimates, Simultaneous
from dpci.inference.targets.units import TableUnits, full_range_map, odds_ratios, rate_ratios, unit_map
from dpci.inference.targets.unregularised import TARGETS, Target, newton_step
from dpci.inference.validity import TRUSTED_NOISE, moment_noise, refusal
from dpci.inference.wald import Method
from dpci.released.model import FitFacts, record_of


class Coefficients(FitFacts):
    """Coefficients that released parameters estimate; k is the number of parameters."""

    __slots__ = ()

    @property
    def interval_refusal(self) -> str | None:
        """Why there are no intervals, standard errors and p-values; None where there are."""
        return refusal(self._record)

    @property
    def moment_noise(self) -> float:
        """Bound on the noise in the released matrices, over their least eigenvalues.

        The greater of two ratios: one for the Hessian, one for the covariance of the gradient's error. At most one
        release in twenty exceeds the bound. Infinite if a least eigenvalue vanishes or a matrix overflows. It is
        computed from released values alone. Intervals and p-values of single parameters count this noise, unless the
        projection is "floor" or "cautious". Above 1/2 a joint test of several parameters may reject true hypotheses too
        often (docs/inference.md).
        """
        return moment_noise(self._record, self._moments()[0], self._estimates().cov())

    def in_units(self, *, target: Target = "regularised") -> TableUnits:
        """Return the coefficients in the units of the table: per year, of a category against its reference.

        Estimates, intervals, tests and covariance are exact linear maps of the released ones (docs/inference.md, "The
        units of the table").

        Parameters
        ----------
        target : {"regularised", "unregularised"}
            See :meth:`conf_int`.

        Raises
        ------
        InvalidInput
            For a fit without a schema, and for ``target="unregularised"`` of a fit without intervals. The regularised
            estimates of such a fit are given, and :attr:`TableUnits.interval_refusal` says why there is no more.
        """
        matrix, shift, names, units = unit_map(self._record)
        reason = self.interval_refusal
        if reason is not None and check_choice("target", target, TARGETS) == "regularised":
            bare = Bare(self.params, reason).mapped(matrix, shift)
            return TableUnits(bare, names, units, joint_method="by_rows", private=self.private, interval_refusal=reason)
        joint: Method = "joint" if self.moment_noise <= TRUSTED_NOISE else "by_rows"
        estimates = self._estimates(target).mapped(matrix, shift)
        return TableUnits(estimates, names, units, joint_method=joint, private=self.private)

    def odds_ratios(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        target: Target = "regularised",
    ) -> ConfidenceIntervals:
        """Odds ratios with intervals: exp of coefficients, in the units of the table where there is a schema.

        Parameters
        ----------
        level, simultaneous, target
            See :meth:`conf_int`.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            Linear combinations of the coefficients, as in :meth:`conf_int`: ``{"age": 10}`` is for ten years. None:
            each coefficient but the intercept.

        Raises
        ------
        InvalidInput
            For a fit without intervals, and losses that do not model log odds.
        """
        return odds_ratios(self._record, self._without_intercept(level, contrast, simultaneous, target))

    def rate_ratios(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
    ) -> ConfidenceIntervals:
        """Rate ratios of counts with intervals: exp of coefficients, in the units of the table where there is a schema.

        A rate ratio is the factor by which one more unit multiplies the mean count.

        Parameters
        ----------
        level, simultaneous
            See :meth:`conf_int`.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            See :meth:`odds_ratios`. None: each coefficient but the intercept.

        Raises
        ------
        InvalidInput
            For a fit without intervals, and losses that do not model the log of a mean.
        """
        return rate_ratios(self._record, self._without_intercept(level, contrast, simultaneous, "regularised"))

    def _without_intercept(
        self, level: float, contrast: Contrast | None, simultaneous: Simultaneous | None, target: Target
    ) -> ConfidenceIntervals:
        """Return intervals of linear combinations, or of each coefficient but the intercept."""
        record = self._record
        wanted = record.by_predictor(record.columns) if contrast is None else contrast
        if self.schema is not None:
            return self.in_units(target=target).conf_int(level=level, contrast=wanted, simultaneous=simultaneous)
        rows, names = contrast_rows(wanted, self.names)
        estimates = self._estimates(target).mapped(rows, np.zeros(len(rows)))
        return estimates.conf_int(names, level=level, simultaneous=simultaneous)

    def marginal_effects(
        self,
        at: Mapping[str, Any],
        *,
        level: float = 0.95,
        simultaneous: Simultaneous | None = None,
        target: Target = "regularised",
    ) -> ConfidenceIntervals:
        """Marginal effects at public values: how the predicted probability, or number, changes with each column.

        For the logistic losses and the squared loss.

        For a number this is the derivative per unit of the table, with its powers, splines and products. For a category
        it is the difference from the reference (from the first category, if the schema names no reference). Intervals
        are by the delta method.

        Parameters
        ----------
        at : mapping
            One value for each column of the schema, such as ``{"age": 40, "sex": "F"}``. The values must be public;
            means of the data are not.
        level, simultaneous, target
            See :meth:`conf_int`.

        Raises
        ------
        InvalidInput
            For a fit without intervals or without a schema, losses that are neither logistic nor squared, and values
            that are missing or beyond their bounds.
        """
        names, effects = marginal_effects(self._record, self._estimates(target), at)
        return effects.conf_int(names, level=level, simultaneous=simultaneous)

    def shrinkage(self) -> NDArray[np.float64]:
        """Return how far the ridge moved each parameter, shape (k,): the regularised target minus that without a ridge.

        An estimate from released values; NaN where they do not show it (:meth:`conf_int`, ``target="unregularised"``).

        Raises
        ------
        InvalidInput
            For a fit without intervals, and losses that are not likelihoods.
        """
        return self._estimates("regularised").values() - self._estimates("unregularised").values()

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        reason = self.interval_refusal
        record = self._record
        if reason is not None or record.hessian is None or record.gradient_cov is None:
            raise InvalidInput(f"{reason}")
        return record.hessian, record.gradient_cov

    def _estimates(self, target: Target = "regularised") -> Estimates:
        check_choice("target", target, TARGETS)
        law = self._error_law()
        if target == "regularised":
            return Estimates.of_parameters(law, self.params)
        return Estimates.off_ridge(law, self.params, newton_step(self._record))

    def _error_law(self) -> ErrorLaw:
        self._moments()
        return error_law(self._record, self._seal_variance)

    @property
    def _seal_variance(self) -> float:
        """Variance that the seal adds to a parameter."""
        return sum(seal.std_dev**2 for seal in self._record.seals if seal.release == "params")


def parameter_estimates(result: Coefficients, target: Target) -> Estimates:
    """Return the parameters of a result with the law of their errors.

    Raises
    ------
    InvalidInput
        For a result without intervals, and for a target that its loss does not have.
    """
    return result._estimates(target)  # noqa: SLF001  # of this module's own class


def estimates_of(result: Coefficients, target: Target) -> tuple[tuple[str, ...], Estimates]:
    """Return the coefficients of a result and their names, in the units of its table where it has a schema.

    Raises
    ------
    InvalidInput
        For a result without intervals.
    """
    estimates = parameter_estimates(result, target)
    if result.schema is None:
        return result.names, estimates
    matrix, shift, names, _ = unit_map(record_of(result))
    return names, estimates.mapped(matrix, shift)


def full_range_of(result: Coefficients, target: Target) -> tuple[tuple[str, ...], Estimates]:
    """Return the coefficients of a result over the full range of each column of its schema, and their names.

    Raises
    ------
    InvalidInput
        For a result without intervals or without a schema.
    """
    matrix, shift, names = full_range_map(record_of(result))
    return names, parameter_estimates(result, target).mapped(matrix, shift)


class UnitMap(NamedTuple):
    """The linear map from parameters to coefficients in the units of a table."""

    matrix: NDArray[np.float64]
    shift: NDArray[np.float64]
    names: tuple[str, ...]


def common_units(result: object, other: object) -> UnitMap | None:
    """Return the map to the units of the table of two results, if both had a schema that gives the same one."""
    maps = []
    for each in (result, other):
        if not isinstance(each, Coefficients) or each.schema is None:
            return None
        maps.append(UnitMap(*unit_map(record_of(each))[:3]))
    same = np.array_equal(maps[0].matrix, maps[1].matrix) and np.array_equal(maps[0].shift, maps[1].shift)
    return maps[0] if same else None
