"""``MomentMatrix``: a released moment matrix, and every regression among its columns."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dpci.approval.approvable import Approvable
from dpci.base.habits import REGRESSIONS
from dpci.base.tables import printable
from dpci.base.validation import advised, broken, check_choice, check_flag, check_fraction, in_short, place_of
from dpci.budgets import GaussianBudget
from dpci.errors import InvalidInput
from dpci.inference.intervals import ConfidenceIntervals
from dpci.regression.choices.model import Model, Ridge, check_ridge
from dpci.regression.columns import Columns, in_table_units
from dpci.regression.equations import check_covariance, default_covariance, solve
from dpci.regression.record import MomentRecord
from dpci.regression.result import LinearFit, RegressionRecord, record_of
from dpci.regression.shown.show import has_units, summary_of_release
from dpci.released.model import ReleaseFacts
from dpci.released.result import Shown, shown_of
from dpci.shown.document import Document
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from dpci.approval.statement import Statement

__all__ = ["MomentMatrix"]


class ShownMatrix(Shown):
    """A moment matrix as commands show it: by the regression of its target on all columns."""

    result: "MomentMatrix"

    def whole(self) -> Shown:
        """Return the regression of the only target on all columns."""
        targets = self.result.targets
        if len(targets) > 1:
            raise InvalidInput(
                f"the command line shows moment matrices of one target, got {', '.join(targets)} "
                "(in Python: dpci.regression.MomentMatrix.from_json(text).fit(target))"
            )
        return shown_of(whole_regression(self.result, fit_intercept=True, l2_strength=0.0))

    model = whole

    def earlier(self) -> "MomentMatrix":
        """Return the matrix itself."""
        return self.result


class MomentMatrix(ReleaseFacts[MomentRecord, GaussianBudget], Approvable[MomentRecord]):
    """The noisy second moments of the columns of X, a constant and y. Made by :func:`release`, never changed.

    Everything that its methods return is post-processing: it reads no data and uses no budget.
    """

    __slots__ = ()
    _record: MomentRecord
    _RECORD, _SHOWN = MomentRecord, ShownMatrix

    @classmethod
    def of(cls, fit: LinearFit) -> "MomentMatrix":
        """Return the release behind a regression, from which other regressions among the same columns follow."""
        return cls(record_of(fit))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of X."""
        return self._record.features

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the targets."""
        return self._record.targets

    @property
    def target(self) -> str:
        """Name of the only target, from the schema or the caller, or "y"; see :attr:`targets` for several."""
        return _only_target(self._record)

    @property
    def moments(self) -> NDArray[np.float64]:
        """Noisy means of the products of the columns, of 1 and of y, in this order; shape (k + 2, k + 2).

        Each of several targets has a row. The units are the caller's. Because of the noise, the matrix need not be
        positive definite.
        """
        record = self._record
        k = len(record.columns)
        units = record.place.units
        moments = units @ record.matrix @ units.T
        features = len(record.features)
        order = [*range(features), k, *range(features, k), k + 1]
        moments = moments[np.ix_(order, order)]
        moments.flags.writeable = False
        return np.asarray(moments)

    @advised(REGRESSIONS)
    def fit(
        self,
        target: str | None = None,
        features: Sequence[str] | None = None,
        *,
        intercept: bool = True,
        l2_strength: Ridge = 0.0,
        covariance: Literal["classical", "robust"] | None = None,
    ) -> LinearFit:
        """Regress a column on other columns. This is post-processing and costs nothing.

        Parameters
        ----------
        target : str, optional
            Name of a column, or one of :attr:`targets`. None: the only target; if there are several, name one.
        features : sequence of str, optional
            Names of the regressors. None: all columns of X except the target. An empty sequence: the mean of the
            target.
        intercept : bool
            Whether a constant is among the regressors.
        l2_strength : float or "private"
            Ridge λ ≥ 0, which is part of the target: the minimiser of the mean of (y - xθ)² plus (λ/2)‖θ‖², where θ
            includes the intercept, as for ``dpci.fit(loss="squared")``. 0: ordinary least squares. "private": the least
            λ, computed from the released matrix, that lifts every direction of the regressors above the noise; 0 if
            they vary enough without it. There is then always a solution. This λ acts on coefficients in units of the
            bounds: of each column less the middle of its bounds, divided by half their width. The result has it as
            ``l2_strength``.
        covariance : {"classical", "robust"}, optional
            "classical": all errors are assumed to have one variance. "robust": their variances may differ (HC0), and
            errors of one person may be correlated; only for regressions that ``robust`` of :func:`release` planned.
            None: "robust" where the release planned it, and for persons and weights, which take no other; "classical"
            otherwise.

        Returns
        -------
        LinearFit
            Coefficients with intervals that account for the sampling and the noise.

        Raises
        ------
        InvalidInput
            For unknown names, and if the regressors vary no more than the noise. The message then names the columns.
        """
        model = self._model(target, features, intercept, l2_strength, covariance)
        table = self._record.table
        if table is not None and table.has_constant and not model.fit_intercept and has_units(self._record, model):
            raise InvalidInput(
                "intercept must be True with a schema, which moves columns to the middle of their bounds, got False: "
                "release the matrix of a formula without an intercept, such as 'y ~ 0 + age'"
            )
        return LinearFit(RegressionRecord(release=self._record, model=model), solve(self._record, model))

    def submodels(
        self,
        feature_sets: Iterable[Sequence[str]],
        target: str | None = None,
        *,
        intercept: bool = True,
        l2_strength: Ridge = 0.0,
        covariance: Literal["classical", "robust"] | None = None,
    ) -> tuple[LinearFit, ...]:
        """Fit one regression for each set of features, as :meth:`fit` does.

        The intervals are not corrected for the number of regressions.
        """
        if isinstance(feature_sets, str) or not isinstance(feature_sets, Iterable):
            raise InvalidInput(f"feature_sets must be a collection of sequences of names, got {in_short(feature_sets)}")
        common = {"intercept": intercept, "l2_strength": l2_strength, "covariance": covariance}
        return tuple(self.fit(target, features, **common) for features in feature_sets)  # type: ignore[arg-type]  # keywords of fit, passed on

    def means(self, columns: Sequence[str] | None = None, *, level: float = 0.95) -> ConfidenceIntervals:
        """Means of columns in the population, each with an interval. This is post-processing and costs nothing.

        Parameters
        ----------
        columns : sequence of str, optional
            Names of columns of X and of :attr:`targets`. None: all of them.
        level : float
            Strictly between 0 and 1. Each interval holds by itself.

        Returns
        -------
        ConfidenceIntervals
            Intervals in the caller's units; with a schema, in those of the table, a category as its share of the
            records. Products, powers and splines are "scaled": as the schema encodes them. They account for the
            sampling and the noise.

        Raises
        ------
        InvalidInput
            For names that are not columns, and if the noise hides the number of records.
        """
        found = Columns(self._record).means(self._names(columns), check_fraction("level", level))
        return in_table_units(found, self._record.table)

    def variances(
        self,
        columns: Sequence[str] | None = None,
        *,
        level: float = 0.95,
        assume: Literal["bounded", "normal"] = "bounded",
    ) -> ConfidenceIntervals:
        """Variances of columns in the population, each with an interval, in the squares of the units of :meth:`means`.

        Their sampling error depends on fourth moments, which are not released.

        Parameters
        ----------
        columns, level
            See :meth:`means`.
        assume : {"bounded", "normal"}
            "bounded": the largest sampling error that the bounds of the columns allow; the intervals hold for every
            distribution and may be far too long. "normal": the sampling error of a normal column; the intervals are too
            short for heavier tails.
        """
        normal = check_choice("assume", assume, ("bounded", "normal")) == "normal"
        found = Columns(self._record).variances(self._names(columns), check_fraction("level", level), normal=normal)
        return in_table_units(found, self._record.table, power=2)

    def correlations(self, columns: Sequence[str] | None = None, *, level: float = 0.95) -> ConfidenceIntervals:
        """Correlations of all pairs of columns in the population, each with an interval, as :meth:`means`.

        The sampling error is that of jointly normal columns, because fourth moments are not released. It is right for
        independent columns of any distribution, and too small for strongly correlated columns with heavy tails.

        Parameters
        ----------
        columns, level
            See :meth:`means`.

        Returns
        -------
        ConfidenceIntervals
            One for each pair, "x0:x1". NaN if a column varies no more than the noise; ``refusals`` has the reason. An
            estimate may lie beyond ±1.
        """
        names = self._names(columns)
        if len(names) < 2:
            raise InvalidInput(f"correlations need at least two columns, got {names}")
        return Columns(self._record).correlations(names, check_fraction("level", level))

    def _names(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        known = (*self._record.columns, self._record.target)
        if columns is None:
            return known
        names = _chosen("columns", columns, known)
        if not names or len(set(names)) < len(names):
            raise InvalidInput(f"columns must differ from each other, and be at least one, got {names}")
        return names

    def _model(
        self,
        target: str | None,
        features: Sequence[str] | None,
        fit_intercept: bool,  # noqa: FBT001  # private
        l2_strength: object,
        covariance: str | None,
    ) -> Model:
        record = self._record
        known = (*record.columns, record.target)
        target = _only_target(record) if target is None else _column("target", target, known)
        if features is None:
            chosen = tuple(name for name in record.features if name != target)
        else:
            chosen = _chosen("features", features, known)
        if len(set(chosen)) < len(chosen) or target in chosen:
            raise InvalidInput(f"features must differ from each other and from the target, got {chosen}")
        model = Model(
            target=target,
            features=chosen,
            fit_intercept=check_flag("intercept", fit_intercept),
            l2_strength=check_ridge("l2_strength", l2_strength),
            covariance=check_choice("covariance", covariance or "classical", ("classical", "robust")),
        )
        if covariance is None:
            model = dataclasses.replace(model, covariance=default_covariance(record, model))
        if not model.names:
            raise InvalidInput("a regression needs a feature or an intercept, got features=() and intercept=False")
        check_covariance(record, model)
        return model

    def summary(self) -> str:
        """Return a text that states the release and its cost."""
        return as_text(self._document())

    def _document(self) -> Document:
        return summary_of_release(self._record)

    def _statement(self) -> "Statement":
        from dpci.regression.shown.approval import approval_of_matrix  # noqa: PLC0415  # most programs write no document

        return approval_of_matrix(self._record, self.digest)

    def _short(self) -> tuple[str, ...]:
        return f"{len(self.columns)} columns and {printable(', '.join(self.targets))}", str(self.spent)


def whole_regression(
    matrix: MomentMatrix,
    target: str | None = None,
    *,
    fit_intercept: bool,
    l2_strength: Ridge,
    covariance: str | None = None,
) -> LinearFit:
    """Regress a target on all columns of X; what hides it is the result's :attr:`LinearFit.interval_refusal`."""
    record = matrix._record  # noqa: SLF001  # of this module's own class
    model = matrix._model(target, None, fit_intercept, l2_strength, covariance)  # noqa: SLF001  # as above
    return LinearFit(RegressionRecord(release=record, model=model))


def _only_target(record: MomentRecord) -> str:
    if record.further:
        raise InvalidInput(f"target must be named where there are several ({', '.join(record.targets)}), got none")
    return record.target


def _chosen(name: str, values: object, known: tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise broken(name, "a sequence of names", values)
    return tuple(_column(name, value, known) for value in values)


def _column(name: str, value: object, known: tuple[str, ...]) -> str:
    place = place_of(value, known)
    if place is None:
        raise InvalidInput(f"{name} must be of the columns {', '.join(known)}, got {in_short(value)}")
    return known[place]
