"""``LinearFit``: a linear regression from a released moment matrix, with intervals and tests."""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpci.base.tables import format_facts, format_percent, format_pvalue, format_table, new_frame, number_format
from dpci.base.validation import check_choice, check_flag, check_fraction, check_not_negative
from dpci.budgets import Budget
from dpci.data.arrays import Table, as_features, as_numbers, check_columns, check_finite
from dpci.errors import InvalidInput
from dpci.inference.contrasts import Contrast, contrast_rows
from dpci.inference.intervals import ConfidenceIntervals
from dpci.regression.equations import Model, Solution, solve
from dpci.regression.record import MomentRecord
from dpci.released.rules import check_names, check_text, read_saved, saved_text

__all__ = ["LinearFit", "LinearTest"]

_F64 = NDArray[np.float64]

SCHEMA = "dpci.LinearFit"
SCHEMA_VERSION = 1

_WIDTH = 100
# Rows of a hypothesis are dependent where rounding alone would tell them apart.
_DEPENDENT = 1e-10


@dataclass(frozen=True, repr=False)
class LinearTest:
    """Test of the linear hypothesis ``R theta = value``; made by :meth:`LinearFit.wald_test`.

    Attributes
    ----------
    statistic : float
        The Wald statistic over its number of rows: an F statistic.
    df : int
        Number of rows of R.
    df_residual : float
        Degrees of freedom of the variances: the least of Satterthwaite's numbers of the rows.
    pvalue : float
        Probability of a statistic at least as great if the hypothesis is true. For several rows the noise is taken for
        normal.
    """

    statistic: float
    df: int
    df_residual: float
    pvalue: float

    def __repr__(self) -> str:
        return f"F({self.df}, {self.df_residual:.4g}) = {self.statistic:.4g}, p-value {format_pvalue(self.pvalue)}"


class LinearFit:
    """A linear regression from a released moment matrix. Made by :meth:`MomentMatrix.fit`, never changed.

    Everything is post-processing of the release: it reads no data and costs no budget. Arrays are read-only.
    """

    __slots__ = ("_model", "_record", "_solution")

    def __init__(self, record: MomentRecord, model: Model, solution: Solution) -> None:
        self._record = record
        self._model = model
        self._solution = solution

    @property
    def params(self) -> _F64:
        """Coefficients, shape (k,), the intercept last, in the units of the caller's columns."""
        return _read_only(self._solution.params)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients; the intercept is called "intercept"."""
        return self._model.names

    @property
    def target(self) -> str:
        """The column that is explained."""
        return self._model.target

    @property
    def l2_strength(self) -> float:
        """λ of the ridge, which is part of the definition of the target of the intervals."""
        return self._model.l2_strength

    @property
    def covariance(self) -> str:
        """How the sampling variance was estimated: "classical" or "robust"."""
        return self._model.covariance

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._record.n_samples

    @property
    def private(self) -> bool:
        """Whether noise from the operating system protects the data: False for seeded noise."""
        return self._record.private

    @property
    def spent(self) -> Budget:
        """What the release of the matrix spent; this regression costs nothing."""
        return self._record.total_budget()

    @property
    def cov(self) -> _F64:
        """Covariance of the errors of the coefficients, sampling and noise together, shape (k, k).

        For joint tests. With a robust covariance and noise in it, each of :attr:`std_errors` is estimated by itself and
        differs from the root of the diagonal.
        """
        return _read_only(self._solution.covariance())

    @property
    def std_errors(self) -> _F64:
        """Standard deviation of the error of each coefficient, shape (k,)."""
        return _read_only(np.sqrt(self._solution.parts(np.eye(len(self.names))).variance))

    @property
    def noise_shares(self) -> _F64:
        """Part of each coefficient's error variance that the noise causes, from 0 to 1, shape (k,)."""
        parts = self._solution.parts(np.eye(len(self.names)))
        return _read_only(1.0 - parts.sampling / parts.variance)

    @property
    def df(self) -> _F64:
        """Degrees of freedom of each coefficient's t distribution, shape (k,)."""
        return _read_only(self._solution.parts(np.eye(len(self.names))).df)

    @property
    def residual_variance(self) -> float:
        """Estimate of the variance of the errors, at least 0; it counts the noise in the matrix."""
        return self._solution.residual_variance

    @property
    def pvalues(self) -> _F64:
        """Two-sided p-values of "the coefficient is 0", shape (k,)."""
        parts = self._solution.parts(np.eye(len(self.names)))
        return _read_only(parts.tail(np.abs(self.params)))

    def conf_int(self, *, level: float = 0.95, contrast: Contrast | None = None) -> ConfidenceIntervals:
        """Confidence intervals of the coefficients or of contrasts of them, each by itself.

        They count the sampling of the records and the noise in the matrix. The target is the coefficient in the
        population: of ordinary least squares, or of the ridge regression at this ``l2_strength``.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        contrast : array-like of shape (k,) or (m, k), or names, optional
            As of :meth:`dpci.PrivateFit.conf_int`. None: each coefficient.
        """
        level = check_fraction("level", level)
        rows, names = contrast_rows(contrast, self.names)
        return self._intervals(rows, names, level)

    def predict(self, X: Table) -> _F64:
        """Predicted target of each row, shape (n,); the columns are the features of this regression, in their order."""
        features = check_columns(as_features(X), self._model.features, named=self._record.named_columns)
        intercept = self.params[-1] if self._model.fit_intercept else 0.0
        return features.product(self.params[: len(self._model.features)]) + intercept

    def predict_conf_int(self, X: Table, *, level: float = 0.95) -> ConfidenceIntervals:
        """Confidence intervals of the mean of the target at each row, each by itself; not for single outcomes."""
        level = check_fraction("level", level)
        features = check_columns(as_features(X), self._model.features, named=self._record.named_columns)
        blocks = [block if isinstance(block, np.ndarray) else block.toarray() for _, block in features.blocks()]
        rows = np.concatenate([np.empty((0, features.shape[1])), *blocks])
        if self._model.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        return self._intervals(rows, tuple(f"row[{i}]" for i in range(len(rows))), level)

    def wald_test(self, hypothesis: Contrast, value: ArrayLike = 0.0) -> LinearTest:
        """Test a linear hypothesis, ``R theta = value``.

        Parameters
        ----------
        hypothesis : array-like of shape (k,) or (m, k), or names
            R, as the ``contrast`` of :meth:`conf_int`; its rows must be independent.
        value : float or array-like of shape (m,)
            What the contrasts are under the hypothesis.

        Raises
        ------
        InvalidInput
            For rows that depend on each other, and values of another number.
        """
        rows, _ = contrast_rows(hypothesis, self.names, what="hypothesis")
        if not rows.any(axis=1).all():
            raise InvalidInput("a hypothesis must have a coefficient other than 0 in every row, got a row of zeros")
        values = check_finite("value", as_numbers("value", value).astype(np.float64))
        if values.shape not in {(), (len(rows),)}:
            raise InvalidInput(f"value must be a number or have shape ({len(rows)},), got shape {values.shape}")
        gap = rows @ self.params - values
        parts = self._solution.parts(rows)
        df = float(np.min(parts.df))
        if len(rows) == 1:
            statistic = float(gap[0] ** 2 / parts.variance[0])
            return LinearTest(statistic, 1, df, float(parts.tail(np.abs(gap))[0]))
        cov = rows @ self._solution.covariance() @ rows.T
        size = np.sqrt(np.diag(cov))
        if not np.linalg.eigvalsh(cov / np.outer(size, size))[0] > _DEPENDENT:
            raise InvalidInput("the rows of hypothesis must be linearly independent, got dependent ones")
        statistic = float(gap @ np.linalg.solve(cov, gap)) / len(rows)
        return LinearTest(statistic, len(rows), df, float(special.fdtrc(len(rows), min(df, 1e10), statistic)))

    def summary(self, *, level: float = 0.95) -> str:
        """Table of the coefficients, and the facts that a reader needs to judge them."""
        intervals = self.conf_int(level=level)
        errors = self.std_errors
        shown = number_format(errors, self.params)
        columns = zip(
            self.params, errors, self.pvalues, intervals.lower, intervals.upper, self.noise_shares, strict=True
        )
        table = [
            [name, *(f"{v:{shown}}" for v in (b, e)), format_pvalue(p), f"{lo:{shown}}", f"{hi:{shown}}", f"{s:.0%}"]
            for name, (b, e, p, lo, hi, s) in zip(self.names, columns, strict=True)
        ]
        header = ["name", "estimate", "std error", "p-value", "lower", "upper", "noise"]
        record = self._record
        facts = [
            ("regression", f"of {self.target}, {self.covariance} covariance"),
            ("budget spent", f"{self.spent}, by the moment matrix"),
            ("n (public)" if record.neighbors == "add_remove" else "n", f"{self.n_samples:,}"),
            ("residual std dev", f"{np.sqrt(self.residual_variance):.4g}"),
            *([("lambda", f"{self.l2_strength:g}")] if self.l2_strength else []),
        ]
        note = "The intervals count the sampling and the noise; the column noise has its part of the error variance."
        banner = [] if self.private else ["NOT PRIVATE (seeded)"]
        title = f"{format_percent(level)} confidence intervals"
        body = [f"{title}\n{format_table(header, table)}", format_facts(facts), textwrap.fill(note, _WIDTH)]
        return "\n\n".join([*banner, *body, *banner])

    def summary_frame(self, *, level: float = 0.95) -> Any:  # noqa: ANN401  # pandas is optional
        """Return estimate, std_error, pvalue, lower and upper as a pandas frame indexed by name; needs pandas."""
        intervals = self.conf_int(level=level)
        columns = {
            "estimate": self.params,
            "std_error": self.std_errors,
            "pvalue": self.pvalues,
            "lower": intervals.lower,
            "upper": intervals.upper,
        }
        return new_frame(columns, self.names)

    def to_json(self) -> str:
        """Return the regression and the release it comes from as JSON, floats exactly."""
        values = {"release": self._record.to_json(), **asdict(self._model)}
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes) -> "LinearFit":
        """Rebuild a regression from :meth:`to_json`; its numbers are computed again from the release.

        Raises
        ------
        InvalidInput
            If the text is not a saved regression, or of another schema version.
        """
        values = read_saved(text, what="a saved regression", schema=SCHEMA, version=SCHEMA_VERSION)
        try:
            record = MomentRecord.from_json(check_text("release", values["release"]))
            known = {*record.columns, record.target}
            model = Model(
                target=check_choice("target", values["target"], tuple(known)),
                features=check_names("features", values["features"]),
                fit_intercept=check_flag("fit_intercept", values["fit_intercept"]),
                l2_strength=check_not_negative("l2_strength", values["l2_strength"]),
                covariance=check_choice("covariance", values["covariance"], ("classical", "robust")),
            )
        except KeyError as error:
            raise InvalidInput(f"a saved regression must hold every field of its schema, got {error!r}") from error
        if not set(model.features) <= known - {model.target} or not model.names:
            raise InvalidInput(f"features must be columns of the release, got {model.features}")
        if model.covariance == "robust" and record.residual_moments is None:
            raise InvalidInput("covariance='robust' needs the moments of the residuals, got a release without them")
        return cls(record, model, solve(record, model))

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearFit.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        seeded = "" if self.private else ", NOT PRIVATE (seeded)"
        return f"<LinearFit: {self.target} on {len(self.names)} regressors, {self.spent}{seeded}>"

    def _intervals(self, rows: _F64, names: tuple[str, ...], level: float) -> ConfidenceIntervals:
        estimate = rows @ self.params
        half = self._solution.parts(rows).half_width(level)
        return ConfidenceIntervals(names, estimate, estimate - half, estimate + half, level, "exact")


def _read_only(values: _F64) -> _F64:
    values = np.array(values)
    values.flags.writeable = False
    return values
