"""Inference from a released model: standard errors, intervals and tests, post-processing that reads no data."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.base.habits import INTERVALS, ROWS
from dpci.base.validation import advised, check_choice, check_fraction
from dpci.base.warn import warn
from dpci.data.arrays import Features, Table, read_only
from dpci.errors import MomentNoiseWarning
from dpci.inference.common_levels import CommonLevels, common_levels
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.curvature import curvature_room
from dpci.inference.intervals import (
    OF_TABLE,
    ConfidenceIntervals,
    ErrorLaw,
    Estimates,
    Simultaneous,
    Target,
    estimates_of,
    law_of,
    refusal_of,
)
from dpci.inference.targets.prediction import check_predicted, marginal_effects, mean_intervals
from dpci.inference.targets.units import (
    Bare,
    Estimated,
    Hidden,
    ScaledColumns,
    estimates_to_show,
    odds_ratios,
    rate_ratios,
    slopes,
    unit_map,
)
from dpci.inference.validity import TRUSTED_NOISE, moment_noise
from dpci.inference.wald import Method, WaldTest
from dpci.released.model import FitFacts, FitModel, features_of
from dpci.schema.table import Schema
from dpci.schema.table import Table as NamedTable

if TYPE_CHECKING:
    import pandas as pd


class Inference(FitFacts, Estimated):
    """Statements about the population from released parameters and matrices; k is the number of parameters.

    With a schema all are in the units of the table, and :attr:`scaled` has those of the encoded columns.
    """

    __slots__ = ()

    @property
    def interval_refusal(self) -> str | None:
        """Why there are no intervals, standard errors and p-values; None where there are."""
        return refusal_of(self._release)

    @property
    def moment_noise(self) -> float:
        """Bound on the noise in the released matrices, over their least eigenvalues.

        The greater of two ratios: one for the Hessian, one for the covariance of the gradient's error. At most one
        release in twenty exceeds the bound. Infinite if a least eigenvalue vanishes or a matrix overflows. It is
        computed from released values alone. Intervals and p-values of single parameters count this noise, unless the
        projection is "floor" or "cautious". Above 1/2 a joint test of several parameters may reject true hypotheses too
        often (docs/inference.md).
        """
        return moment_noise(self._release, self._error_law().cov)

    @property
    def params(self) -> NDArray[np.float64]:
        """Coefficients, shape (k,), the intercept last; released, or an exact linear map of what was released.

        With a schema they are in the units of the table, such as per year, or for a category against its reference
        (docs/inference.md, "The units of the table"). NaN where the noise hides them.
        """
        record = self._release
        if self.interval_refusal is None or record.newton is not None:  # steps that the noise hides have no estimates
            return read_only(self._estimates().values(), self.names)
        if record.table is None:
            return read_only(record.params.copy(), self.names)
        matrix, shift, _, _ = unit_map(record)
        return read_only(matrix @ record.params + shift, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients; the intercept is called "intercept"."""
        record = self._release
        return record.names if record.table is None else unit_map(record)[2]

    @property
    def units(self) -> tuple[str, ...]:
        """Unit or reference of each coefficient, such as "per year" or "against F"; empty texts without a schema."""
        return super().units if self._release.table is None else unit_map(self._release)[3]

    @property
    def scaled(self) -> ScaledColumns:
        """Parameters of the columns as the fit saw them: encoded and divided by the schema."""
        return self._scaled()

    def _scaled(self, target: Target = "regularised") -> ScaledColumns:
        record, reason = self._release, self.interval_refusal
        if reason is not None:
            bare = record.params if record.newton is None else np.full(len(record.params), np.nan)
            found: Bare | Estimates = Bare(bare, reason)
            noisy = True
        else:
            found, noisy = estimates_of(record, target), self.moment_noise > TRUSTED_NOISE
        params = record.params if record.newton is None else found.values()
        method: Method = "by_rows" if noisy else "joint"
        return ScaledColumns(
            params, found, record.names, joint_method=method, private=self.private, interval_refusal=reason
        )

    @advised(INTERVALS)
    def odds_ratios(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        target: Target = "regularised",
    ) -> ConfidenceIntervals:
        """Odds ratios with intervals: exp of coefficients.

        Parameters
        ----------
        level, simultaneous, target
            See :meth:`conf_int`.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            Linear combinations of the coefficients, as in :meth:`conf_int`. None: each coefficient but the intercept.

        Raises
        ------
        InvalidInput
            For a fit whose choices leave no intervals, and losses that do not model log odds.
        """
        return odds_ratios(self._release, self._without_intercept(level, contrast, simultaneous, target))

    @advised(INTERVALS)
    def rate_ratios(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
    ) -> ConfidenceIntervals:
        """Rate ratios of counts with intervals: exp of coefficients.

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
            For a fit whose choices leave no intervals, and losses that do not model the log of a mean.
        """
        return rate_ratios(self._release, self._without_intercept(level, contrast, simultaneous, "regularised"))

    def _without_intercept(
        self, level: float, contrast: Contrast | None, simultaneous: Simultaneous | None, target: Target
    ) -> ConfidenceIntervals:
        """Return intervals of linear combinations, or of each coefficient but the intercept."""
        wanted = slopes(self._release, self.names) if contrast is None else contrast
        return self.conf_int(level=level, contrast=wanted, simultaneous=simultaneous, target=target)

    @advised(INTERVALS)
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

        For a number this is the derivative, with its powers, splines and products, times ``per`` of the schema: per
        unit of the table, or per so many. For a category it is the difference from the reference (from the first
        category, if the schema names no reference). Intervals are by the delta method; NaN, with the reason in
        ``refusals``, where the standard error of the log odds is above 1 at either value.

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
            For a fit whose choices leave no intervals or without a schema, losses that are neither logistic nor
            squared, and values that are missing or beyond their bounds.
        """
        estimates = estimates_to_show(self._release, target)
        return marginal_effects(self._release, estimates, at, level=level, simultaneous=simultaneous)

    def shrinkage(self) -> NDArray[np.float64]:
        """Return how far the ridge moved each parameter, shape (k,): the regularised target minus that without a ridge.

        An estimate from released values; NaN where they do not show it (:meth:`conf_int`, ``target="unregularised"``).

        Raises
        ------
        InvalidInput
            For a fit without intervals, and losses that are not likelihoods.
        """
        return self._estimates("regularised").values() - self._estimates("unregularised").values()

    @property
    def interval_stretch(self) -> NDArray[np.float64]:
        """By what factor the noise in the matrices lengthens each released parameter's 95% interval, shape (k,).

        The length of the interval over that which treats the first estimate of the matrices as exact. Below 1 if
        simulated releases show that the first estimate makes intervals too long; 1 with the projections "floor" and
        "cautious", whose intervals do not count that noise.
        """
        return read_only(self._error_law().stretch(np.eye(len(self._release.names)), 0.95))

    @property
    def curvature_room(self) -> float | None:
        """Distance of the rows with curvature from the point where the curvature of the loss changes.

        It is an average over these rows, in standard errors of their predictors, computed from released values only.
        Below 3, intervals may be too short, because the released Hessian may differ from the Hessian between the
        released parameters and their target (docs/proofs/intervals.md, "Losses with a flat part"). Below 0, the noise
        in the Hessian is greater than the contribution of its rows.

        It is defined for losses with a flat part: a Huber hinge with h below 1, or a smooth hinge with s below 0.5. For
        Huber's loss and the quantile loss it is the width k or s in standard errors of the predictors, with a warning
        below 1. It is None for other losses, and if the released matrices show no rows.
        """
        return curvature_room(self._release)

    @property
    def common_levels(self) -> CommonLevels | None:
        """Single intervals that the release does not support, as a level may be common; None if there are none.

        For noise in the shape of blocks, from released values only. Its ``parameters`` are levels that the released
        Hessian shows to be common, its ``columns`` those whose levels the noise hides, its ``coverage`` the least
        coverage of a 95% interval of these (docs/proofs/intervals.md, "Common levels").
        """
        self._error_law()  # refused without intervals
        return common_levels(self._release)

    @advised(INTERVALS)
    def conf_int(
        self,
        *,
        level: float = 0.95,
        method: Literal["exact", "monte_carlo"] = "exact",
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        target: Target = "regularised",
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Confidence intervals for parameters or contrasts of them, each by itself or all at once.

        The target is the minimiser of the *population* regularised risk at this ``l2_strength``, coordinate by
        coordinate, unless ``target`` asks for that of the risk without a ridge. Intervals account for sampling, for the
        noise of the coefficients and for that of their seal (as if it were normal); with ``projection="noise_aware"``
        also for the noise in the released matrices. Under add/remove the ridge of the target depends on the private
        number of records, and the intervals are conservative (docs/proofs/intervals.md, "The number of records").

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        method : {"exact", "monte_carlo"}
            The quantile of the error's law by quadrature, or empirical quantiles of draws (Wang, Kifer & Lee,
            Algorithms 3 and 5), which converge to it.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            Coefficients of the linear combinations; or the name of a parameter, a mapping from names to coefficients,
            or a list of these. ``{"age": 10}`` is ten times the coefficient of age: that of ten years, or of 100 years
            if the schema has ``per=10``; the unit of the row says it. Labels of a frame or a Series, if they are
            strings, say which parameters its numbers are for. None: each parameter.
        simultaneous : {"bonferroni", "max_z"}, optional
            None: each interval covers with probability ``level``. Otherwise all intervals asked for cover together
            with at least that probability: by the union bound, or by the quantile of the largest absolute z under
            the law of the errors, bounded from above, which is shorter (docs/inference.md).
        target : {"regularised", "unregularised"}
            "unregularised": one Newton step off the ridge, for the losses of likelihoods (docs/inference.md, "Without
            the ridge"). Rows for which the released values do not show that the step is accurate are NaN, and
            :attr:`ConfidenceIntervals.refusals` has the reasons.
        n_draws : int, optional
            Draws of the Monte Carlo method (None: 10,000) or behind "max_z" (None: 100,000, less for hundreds of rows).
        seed : int, optional
            Seed of these draws. They are not a release, so a seed here costs no privacy. None: entropy of the operating
            system for the Monte Carlo method, the seed 0 for "max_z", so that the same call gives the same intervals.
            Neither ``n_draws`` nor ``seed`` may be given if nothing is drawn.

        Returns
        -------
        ConfidenceIntervals
            One interval for each row of the contrast.

        Raises
        ------
        InvalidInput
            For a fit whose choices leave no intervals (see :attr:`interval_refusal`), or arguments out of range.
        """
        contrasts, names = contrast_rows(contrast, self.names)
        estimates = self._estimates(target).mapped(contrasts, np.zeros(len(contrasts)))
        found = estimates.conf_int(
            names, level=level, method=method, simultaneous=simultaneous, n_draws=n_draws, seed=seed
        )
        return self._with_units(found, contrasts)

    def wald_test(
        self,
        hypothesis: Contrast,
        value: ArrayLike = 0.0,
        *,
        method: Literal["auto", "joint", "by_rows"] = "auto",
        target: Target = "regularised",
    ) -> WaldTest:
        """Test a linear hypothesis about the target, ``R theta = value``.

        The statistic is ``(R params - value)' (R cov R')^-1 (R params - value)``. Its p-value, the joint one, is exact
        under the law of the errors on which intervals rest, to a relative error of 1e-8: chi-square with one degree of
        freedom for each row under Gaussian noise; under spherical Laplace noise a mixture of weighted sums of
        chi-squares, whose tail is computed by quadrature and a contour integral (docs/inference.md). Under noise in the
        shape of the rows it comes from 200,000 simulated errors, always the same. With one row it is that of
        :attr:`pvalues`. It accounts for the noise in the released matrices by one factor for all directions. A test of
        many rows depends on this factor far more than an interval, and rejects true hypotheses too often if the noise
        is large. The p-value by rows is computed from the least p-value of a single row, and depends on the factor much
        less (docs/inference.md).

        Parameters
        ----------
        hypothesis : array-like of shape (k,) or (m, k), or names
            The matrix R; or the name of a parameter, or of a column for all of its categories, a mapping from names to
            coefficients, or a list of these: ``"age"``, ``["age", "hours"]``, ``{"age": 1, "hours": -1}``.
        value : float or array-like of shape (m,)
            Values of the linear combinations under the hypothesis.
        method : {"auto", "joint", "by_rows"}
            Which p-value :attr:`WaldTest.pvalue` is. "auto": the joint one where :attr:`moment_noise` is at most 1/2,
            otherwise that by rows.
        target : {"regularised", "unregularised"}
            See :meth:`conf_int`; a row of the unregularised target that is not given is an error.

        Returns
        -------
        WaldTest
            Statistic, degrees of freedom and p-value; prints itself.

        Warns
        -----
        MomentNoiseWarning
            If :attr:`moment_noise` is above 1/2, for more than one row and any method but "by_rows".

        Raises
        ------
        InvalidInput
            For a fit without intervals, rows that are linearly dependent, or arguments out of range.
        """
        rows, labels = contrast_rows(hypothesis, self.names, what="hypothesis")
        method = check_choice("method", method, ("auto", "joint", "by_rows"))
        estimates = self._estimates(target).mapped(rows, np.zeros(len(rows)))
        ratio = self.moment_noise if len(rows) > 1 else 0.0
        noisy = ratio > TRUSTED_NOISE
        chosen: Method = ("by_rows" if noisy else "joint") if method == "auto" else method
        tested = estimates.wald_test(labels, value, method=chosen, private=self.private)
        if noisy and method != "by_rows":
            outcome = (
                "the p-value comes from separate tests of the rows (method='by_rows'), which depend less on the noise"
                if method == "auto"
                else "the joint test may reject true hypotheses too often; method='by_rows' depends less on the noise"
            )
            message = f"moment noise: the released matrices are too noisy for a joint test of several rows: {outcome}"
            warn(MomentNoiseWarning(message, ratio=ratio))
        return replace(tested, units=OF_TABLE) if self.schema is not None else tested

    def summary_frame(self, *, level: float = 0.95, target: Target = "regularised") -> "pd.DataFrame":
        """Return estimate, std_error, pvalue, lower and upper of each parameter as a pandas frame indexed by name.

        With a schema the first column is the unit of each.

        ``level`` and ``target`` as in :meth:`conf_int`; NaN for what the unregularised target does not give.

        Raises
        ------
        InvalidInput
            For a fit whose choices leave no intervals.
        DpciError
            If pandas is not installed.
        """
        return self._frame(self._estimates(target), level)

    def _estimates(self, target: Target = "regularised") -> Estimates | Hidden:
        record = self._release
        found = estimates_to_show(record, target)
        return found if record.table is None else found.mapped(*unit_map(record)[:2])

    def _error_law(self) -> ErrorLaw:
        return law_of(self._release)


class FitInference(Inference, FitModel):
    """Statements from a model of one linear predictor: predictions, too, have intervals.

    Predictions of rows that need what the noise hides are refused.
    """

    __slots__ = ()

    @advised(ROWS)
    def predict_conf_int(
        self,
        X: Table | NamedTable | Path | str,
        *,
        level: float = 0.95,
        schema: Schema | None = None,
        target: Target = "regularised",
    ) -> ConfidenceIntervals:
        """Confidence intervals of what the model predicts for rows: probability of the positive class, or mean target.

        An interval for ``x' theta``, theta the target, at each row x by itself; for the logistic losses
        mapped to the probability that the model gives to the positive class, for the squared loss in the unit of the
        schema's target. It is not an interval for the outcome of one person, and its target is the model's probability,
        not the true one. Post-processing: it reads the rows given here and none of those of the fit. If X is private,
        so is what this returns.

        Parameters
        ----------
        X : table of shape (n, n_columns)
            Rows as those of the fit: arrays, frames or sparse matrices; of a fit with a schema, a table of its columns
            or the path of a file.
        level : float
            Strictly between 0 and 1.
        schema : dpci.schema.Schema, optional
            See :meth:`decision_function`.
        target : {"regularised", "unregularised"}
            See :meth:`conf_int`; rows that are not given are NaN.

        Returns
        -------
        ConfidenceIntervals
            One interval for each row; of the linear predictor for losses that model no mean.

        Raises
        ------
        InvalidInput
            For a fit without intervals, other columns, or arguments out of range.
        """
        level = check_fraction("level", level)
        features = features_of(self._record, X, schema=schema)
        return mean_intervals(self._record, estimates_of(self._record, target), features, level)

    def _check_predicted(self, features: Features) -> None:
        check_predicted(self._record, features)
