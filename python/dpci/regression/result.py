"""``LinearFit``: a linear regression from a released moment matrix, with intervals and tests."""

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci.approval.approvable import Approvable
from dpci.base.codec import Saved
from dpci.base.habits import LINEAR, ROWS
from dpci.base.tables import printable
from dpci.base.validation import advised
from dpci.budgets import GaussianBudget
from dpci.data.arrays import Features, NamedRows, Table, as_features, as_matrix, check_columns, read_only
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.intervals import OF_TABLE, ConfidenceIntervals, Simultaneous
from dpci.inference.targets.prediction import without_rows
from dpci.inference.targets.units import Estimated, Hidden, ScaledColumns, UnitMap
from dpci.regression.choices.model import PRIVATE, Model
from dpci.regression.equations import Solution, attempt, check_covariance, r_squared
from dpci.regression.estimates import LinearEstimates, LinearTest
from dpci.regression.record import MomentRecord
from dpci.regression.shown.show import (
    drawn,
    drawn_label,
    in_target_units,
    page_of_regression,
    scaled_by,
    shown_estimates,
    summary_of_regression,
    summary_of_release,
    unit_map,
)
from dpci.released.model import ReleaseFacts, encoded_table
from dpci.released.result import Shown, refused
from dpci.report.commands import interval_rows, numbers_of
from dpci.report.plot import Order, forest_plot
from dpci.report.style import caption, facts_of_release
from dpci.report.summary import View, with_units
from dpci.schema.table import Schema, same_columns
from dpci.schema.table import Table as NamedTable
from dpci.shown.document import Document
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpci.approval.statement import Statement

__all__ = ["LinearFit"]

_F64 = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionRecord(Saved):
    """A regression as it is saved: its release, and which one it is."""

    KIND: ClassVar[str] = "dpci.LinearFit"
    WHAT: ClassVar[str] = "a saved regression"

    release: MomentRecord
    model: Model

    def __post_init__(self) -> None:
        model, columns = self.model, {*self.release.columns, self.release.target}
        once = len(set(model.features)) == len(model.features)
        if not (once and {model.target, *model.features} <= columns and model.names):
            raise InvalidInput(f"target and features must be columns of the release, each once, got {model}")
        if model.target in model.features:
            raise InvalidInput(f"features must be other columns than the target, got {model.features}")
        check_covariance(self.release, model)


class ShownRegression(Shown):
    """A linear regression as commands show it."""

    PREDICTS = True
    result: "LinearFit"

    @property
    def hidden(self) -> str | None:
        """The reason if noise hides the regression; otherwise None."""
        return self.result.interval_refusal

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read."""
        result, level = self.result, view.level
        if self.hidden is not None:
            return numbers_of(result, view, parameters=[])
        scaled = result.scaled
        parameters = interval_rows(scaled.conf_int(level=level), scaled.std_errors, scaled.pvalues)
        if result.schema is None:
            return numbers_of(result, view, parameters=parameters)
        rows = interval_rows(result.conf_int(level=level), result.std_errors, result.pvalues, units=result.units)
        return numbers_of(result, view, parameters=parameters, in_units=rows)

    def encoding(self, given: Schema | None) -> Schema:
        """Return the schema of the regression, which must explain the target of that schema."""
        fitted = self.result
        if fitted.schema is None or fitted.target != record_of(fitted).target:
            got = "without a schema" if fitted.schema is None else f"of {fitted.target}"
            raise InvalidInput(
                "predictions for a table require a regression of the target of its schema, got a regression "
                f"{got} (LinearFit.predict in Python takes the regressors)"
            )
        if self.hidden is not None:
            raise InvalidInput(self.hidden)
        return super().encoding(given)

    @property
    def probabilities(self) -> tuple[str, ...]:
        """Raise ``InvalidInput``: a regression predicts no probabilities."""
        raise refused("a model of classes, as a regression predicts no probabilities", self.result)


class LinearFit(ReleaseFacts[MomentRecord, GaussianBudget], Estimated, Approvable[RegressionRecord]):
    """A linear regression from a released moment matrix, made by :func:`dpci.fit` or :meth:`MomentMatrix.fit`.

    Everything is post-processing of the release: it reads no data and uses no budget. Arrays are read-only.
    """

    __slots__ = ("_solution",)
    _record: RegressionRecord
    _RECORD, _SHOWN = RegressionRecord, ShownRegression

    def __init__(self, record: RegressionRecord, solution: Solution | None = None) -> None:
        super().__init__(record, record.release)
        self._solution = attempt(record.release, record.model) if solution is None else solution

    @property
    def _model(self) -> Model:
        return self._record.model

    @property
    def interval_refusal(self) -> str | None:
        """The reason if there are no coefficients and no intervals, with the columns; otherwise None."""
        return str(self._solution) if isinstance(self._solution, InvalidInput) else None

    @property
    def params(self) -> _F64:
        """Coefficients, shape (k,), the intercept last, in the units of the table or of the caller's columns."""
        return read_only(self._estimates().values(), self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients; the intercept is called "intercept"."""
        return self._model.names if self._map is None else self._map.names

    @property
    def units(self) -> tuple[str, ...]:
        """Unit or reference of each coefficient, such as "per year" or "against F"; empty texts without a schema."""
        return super().units if self._map is None else self._map.units

    @property
    def scaled(self) -> ScaledColumns:
        """Coefficients of the columns as the matrix has them: encoded and divided by the schema.

        A regression of another column than the target of the schema has no units of the table: ``params``, intervals
        and tests are refused, and those of ``scaled`` are given.
        """
        names, hidden = self._model.names, self.interval_refusal
        found = LinearEstimates.of(solution_of(self)) if hidden is None else Hidden.by_noise(len(names), hidden)
        return ScaledColumns(
            found.values(), found, names, joint_method="joint", private=self.private, interval_refusal=hidden
        )

    @property
    def target(self) -> str:
        """Name of the explained column: :attr:`MomentMatrix.target`, or one of the columns of X."""
        return self._model.target

    @property
    def l2_strength(self) -> float:
        """λ of the ridge, which is part of the definition of the target of the intervals.

        A private λ (:attr:`l2_rule`) acts on coefficients in units of the bounds; see :meth:`MomentMatrix.fit`.
        """
        return solution_of(self).l2_strength if self._model.l2_strength == PRIVATE else float(self._model.l2_strength)

    @property
    def l2_rule(self) -> str:
        """How λ was chosen: "given" by the caller, or "private", from the released matrix."""
        return PRIVATE if self._model.l2_strength == PRIVATE else "given"

    @property
    def covariance(self) -> str:
        """How the sampling variance was estimated: "classical" or "robust"."""
        return self._model.covariance

    @property
    def cov(self) -> _F64:
        """Covariance of the errors of the coefficients, sampling and noise together, shape (k, k).

        Use it for joint tests. A robust covariance has noise; each of :attr:`std_errors` is then estimated by itself
        and differs from the square root of the diagonal.
        """
        return read_only(self._estimates().cov())

    @property
    def noise_shares(self) -> _F64:
        """Share of each coefficient's error variance that is due to noise, from 0 to 1, shape (k,)."""
        parts = shown_estimates(*self._parts())[0].parts()
        with np.errstate(invalid="ignore"):  # a constant that follows from public bounds has no error
            return read_only(1.0 - parts.sampling / parts.variance)

    @property
    def df(self) -> _F64:
        """Degrees of freedom of each coefficient's t distribution, shape (k,)."""
        return read_only(shown_estimates(*self._parts())[0].parts().df)

    @property
    def residual_variance(self) -> float:
        """Estimate of the variance of the errors, at least 0, which accounts for the noise in the matrix.

        With a schema it is in the square of the target's unit.
        """
        return solution_of(self).residual_variance / scaled_by(self._release, self._model) ** 2

    @property
    def rsquared(self) -> float:
        """R squared, adjusted: the estimated share of the target's variance that the regression explains, 0 to 1.

        One minus the variance of the errors over that of the target, both from the released matrix. It has no interval.

        Raises
        ------
        InvalidInput
            For a regression without an intercept, and one that the noise hides.
        """
        if not self._model.fit_intercept:
            raise InvalidInput("R squared requires a regression with an intercept, got one without")
        found = r_squared(self._release, self._model, solution_of(self))
        if isinstance(found, InvalidInput):
            raise InvalidInput(str(found))
        return found

    @advised(LINEAR)
    def conf_int(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        n_draws: int | None = None,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Confidence intervals of the coefficients or of contrasts of them, each by itself or all at once.

        They account for the sampling of the records and the noise in the matrix. The target is the coefficient in the
        population: that of ordinary least squares, or of the ridge regression at this :attr:`l2_strength`, which is
        treated as fixed even if it is private.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            See :meth:`dpci.PrivateFit.conf_int`. None: each coefficient.
        simultaneous : {"bonferroni", "max_z"}, optional
            See :meth:`dpci.PrivateFit.conf_int`. Under pure DP "max_z" is the union bound, as "bonferroni" is.
        n_draws, seed : int, optional
            Draws behind "max_z" (None: 20,000) and their seed (None: 0). They are not a release and cost no privacy.
        """
        rows, names = contrast_rows(contrast, self.names)
        estimates = self._estimates().mapped(rows, np.zeros(len(rows)))
        found = estimates.conf_int(names, level=level, simultaneous=simultaneous, n_draws=n_draws, seed=seed)
        return self._with_units(found, rows)

    @advised(ROWS)
    def predict(self, X: Table | NamedTable | Path | str, *, schema: Schema | None = None) -> _F64:
        """Predicted target of each row, shape (n,).

        Parameters
        ----------
        X : table
            The features of this regression, in their order. If the release had a schema, also a table with its columns,
            or the path of a file; predictions of the schema's target are in its unit.
        schema : dpci.schema.Schema, optional
            A schema with the same columns as that of the release.
        """
        features = self._features(X, schema)
        params = solution_of(self).params
        intercept = params[-1] if self._model.fit_intercept else 0.0
        return in_target_units(self._release, self._model, features.product(params[: features.shape[1]]) + intercept)

    @advised(ROWS)
    def predict_conf_int(
        self, X: Table | NamedTable | Path | str, *, level: float = 0.95, schema: Schema | None = None
    ) -> ConfidenceIntervals:
        """Confidence intervals of the mean of the target at each row, each by itself; not for single outcomes."""
        features = self._features(X, schema)
        blocks = [block if isinstance(block, np.ndarray) else block.toarray() for _, block in features.blocks()]
        rows = np.concatenate([np.empty((0, features.shape[1])), *blocks])
        if self._model.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        estimates = LinearEstimates.of(solution_of(self)).mapped(rows, np.zeros(len(rows)))
        intervals = estimates.conf_int(tuple(f"row[{i}]" for i in range(len(rows))), level=level)
        columns = (intervals.estimate, intervals.lower, intervals.upper)
        estimate, lower, upper = (in_target_units(self._release, self._model, column) for column in columns)
        return without_rows(replace(intervals, estimate=estimate, lower=lower, upper=upper), features.missing)

    def wald_test(self, hypothesis: Contrast, value: ArrayLike = 0.0) -> LinearTest:
        """Test a linear hypothesis, ``R theta = value``.

        Parameters
        ----------
        hypothesis : array-like of shape (k,) or (m, k), or names
            R, as the ``contrast`` of :meth:`conf_int`; its rows must be independent.
        value : float or array-like of shape (m,)
            Values of the contrasts under the hypothesis.

        Raises
        ------
        InvalidInput
            For rows that depend on each other, and values of another number.
        """
        rows, labels = contrast_rows(hypothesis, self.names, what="hypothesis")
        found = self._estimates().mapped(rows, np.zeros(len(rows))).wald_test(labels, value, private=self.private)
        return found if self.schema is None else replace(found, units=OF_TABLE)

    @advised(LINEAR)
    def plot(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        order: Order = "given",
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Forest plot of intervals; a filled point marks those that do not contain 0. Needs matplotlib.

        Parameters are those of :meth:`dpci.PrivateFit.plot`.
        """
        if contrast is None and simultaneous is None and self.interval_refusal is None:
            intervals, what = drawn(*self._parts(), level), drawn_label(self._release, self._model)
        else:
            intervals = with_units(self.conf_int(level=level, contrast=contrast, simultaneous=simultaneous))
            what = "estimate"
        axes = forest_plot(intervals, private=self.private, order=order, what=what, ax=ax)
        record = self._release
        spent, count = facts_of_release(self.spent, record.n_samples, neighbors=record.neighbors, private=self.private)
        return caption(axes, f"linear regression, {count}", spent)

    def to_html(
        self, path: "str | PathLike[str] | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> str:
        """Return the result as one self-contained HTML page, as :meth:`dpci.PrivateFit.to_html` does."""
        from dpci.shown.html import write_html  # noqa: PLC0415  # most programs write no page

        if self.interval_refusal is not None:
            page = replace(self._document(), title=title or f"Linear regression of {self.target} without results")
            return write_html(page, path)
        page = page_of_regression(*self._parts(), level=level, title=title, digest=self.digest)
        return write_html(page, path)

    def _document(self) -> Document:
        if self.interval_refusal is not None:
            return summary_of_release(self._release, self.interval_refusal)
        return page_of_regression(*self._parts(), level=0.95, title=None, digest=self.digest)

    @advised(LINEAR)
    def summary(self, *, level: float = 0.95) -> str:
        """Table of the coefficients, in the units of the table if there is a schema, and facts for judging them."""
        if self.interval_refusal is not None:
            return as_text(summary_of_release(self._release, self.interval_refusal))
        return as_text(summary_of_regression(*self._parts(), level))

    def _statement(self) -> "Statement":
        from dpci.regression.shown.approval import approval_of_regression  # noqa: PLC0415  # most programs write no document

        refusal = self.interval_refusal
        ridge = refusal is None and self.l2_strength > 0.0
        refined = isinstance(self._solution, Solution) and self._solution.gradient is not None
        of, model = self._release, self._model
        return approval_of_regression(of, model, self.digest, refusal=refusal, ridge=ridge, refined=refined)

    @property
    def digest(self) -> str:
        """SHA-256 of the content of :meth:`to_json`. The paying ledger has that of the release, a moment matrix."""
        return self._record.digest

    def _short(self) -> tuple[str, ...]:
        return f"{printable(self.target)} on {len(self._model.names)} regressors", str(self.spent)

    def _parts(self) -> tuple[MomentRecord, Model, Solution]:
        return self._release, self._model, solution_of(self)

    def _estimates(self) -> LinearEstimates | Hidden:
        if self.schema is not None and self._map is None:
            release, model = self._release, self._model
            raise InvalidInput(
                f"units of the table are those of regressions of {release.target!r} on other columns, got "
                f"{model.target!r} on {', '.join(model.names)} (scaled has its coefficients)"
            )
        hidden = self.interval_refusal
        return shown_estimates(*self._parts())[0] if hidden is None else Hidden.by_noise(len(self.names), hidden)

    @property
    def _map(self) -> UnitMap | None:
        return unit_map(self._release, self._model)

    def _features(self, X: Table | NamedTable | Path | str, schema: Schema | None) -> Features:
        record, wanted = self._release, self._model.features
        known = record.table
        if schema is not None and (known is None or not same_columns(known, schema)):
            raise InvalidInput("schema must be that of the release, or one of equal columns, got another one")
        if isinstance(X, NamedRows) and set(wanted) <= set(X.names):
            X = NamedRows(
                np.ascontiguousarray(as_matrix(X).values[:, [X.names.index(name) for name in wanted]]), wanted
            )
        in_schema = known is not None and set(wanted) <= set(known.names)
        encoded = encoded_table(known if in_schema else None, X)
        if known is not None and encoded is not None:
            at = [known.names.index(name) for name in wanted]
            matrix = as_matrix(encoded).values
            return as_features(NamedRows(np.ascontiguousarray(matrix[:, at]), wanted, missing=encoded.missing))
        return check_columns(as_features(cast("Table", X)), wanted, named=record.named_columns)


def record_of(fit: ReleaseFacts[MomentRecord, GaussianBudget]) -> MomentRecord:
    """Return the record of a release, or of that which a regression comes from."""
    return fit._release  # noqa: SLF001  # of this room's own classes


def model_of(fit: LinearFit) -> Model:
    """Return which regression a result is."""
    return fit._model  # noqa: SLF001  # as above


def solution_of(fit: LinearFit) -> Solution:
    """Return the coefficients of a result and the forms of their errors."""
    solution = fit._solution  # noqa: SLF001  # as above
    if isinstance(solution, InvalidInput):
        raise InvalidInput(str(solution))
    return solution
