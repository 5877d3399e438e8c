"""The result of a multinomial fit: coefficients of each class, intervals, probabilities, and what was spent."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from dpci.approval.approvable import Approvable
from dpci.base.validation import check_flag
from dpci.budgets import Budget
from dpci.data.arrays import Table
from dpci.data.labels import Label, label_array
from dpci.inference.contrasts import Contrast
from dpci.inference.intervals import ConfidenceIntervals, Simultaneous
from dpci.inference.targets.units import TableUnits
from dpci.inference.wald import WaldTest
from dpci.model.result import PrivateFit
from dpci.multinomial.record import MultinomialRecord
from dpci.released.model import ReleaseFacts, features_of
from dpci.released.record import FitRecord
from dpci.released.result import Shown
from dpci.report.commands import ShownFit
from dpci.report.plot import Order
from dpci.report.summary import Units, View
from dpci.schema.table import Table as NamedTable
from dpci.shown.document import Document
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpci.approval.statement import Statement


class ShownClasses(Shown):
    """A model of several classes as commands show it."""

    PREDICTS = True
    result: "MultinomialFit"

    def document(self, view: View, *, full: bool = False) -> Document:
        """Return the summary as a document: that of the fit of all parameters, below what they are."""
        title = f"Multinomial logistic regression: {_log_odds(self.result)}"
        return replace(ShownFit(fit_of(self.result)).document(view, full=full), title=title)

    def sheet(self, view: View, **given: Any) -> Document:  # noqa: ANN401  # keywords of page_of
        """Return the page as a document: that of the fit of all parameters, whose heading says what they are."""
        result = self.result
        kind = "A model with differential privacy" if result.private else "A model with seeded noise"
        outcome = "" if result.schema is None else f" of {result.schema.target.column}"
        if given["title"] is None:
            given["title"] = f"{kind}{outcome}: {_log_odds(result)}"
        return ShownFit(fit_of(result)).sheet(view, **{"digest": result.digest, **given})

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read: those of the fit of all parameters."""
        result = self.result
        return {**ShownFit(fit_of(result)).numbers(view), "classes": result.classes, "privacy": result.privacy}

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The names of the columns of probabilities, one for each class."""
        return tuple(f"probability:{label}" for label in self.result.classes)


class MultinomialFit(ReleaseFacts[FitRecord, Budget], Approvable[MultinomialRecord]):
    """A released multinomial model, made by ``fit``. Contains only released and public values.

    Attributes are read-only; arrays are read-only too. K is the number of classes, d the number of parameters of one
    class with its intercept, and k = (K - 1) d the number of all parameters. Parameters are in the order of the
    classes; the reference has none.
    """

    __slots__ = ("_fit",)
    _record: MultinomialRecord
    _RECORD, _SHOWN = MultinomialRecord, ShownClasses

    def __init__(self, record: MultinomialRecord) -> None:
        super().__init__(record)
        # All inference is that of the parameters of one fit; its predictions are not those of classes.
        self._fit = PrivateFit(record.fit)

    @property
    def _release(self) -> FitRecord:
        return self._record.fit

    @property
    def classes(self) -> tuple[Label, ...]:
        """The public classes, the reference first."""
        return self._record.classes

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters, "class:column" and "class:intercept"."""
        return self._fit.names

    @property
    def params(self) -> NDArray[np.float64]:
        """Released parameters, shape (k,)."""
        return self._fit.params

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients of each class except the reference, shape (K - 1, number of columns): log odds per unit."""
        return self._blocks()[:, : len(self._record.fit.columns)]

    @property
    def intercept(self) -> NDArray[np.float64]:
        """Log odds of each class except the reference at the origin, shape (K - 1,); 0 without an intercept."""
        scale = self._record.fit.intercept_scale
        blocks = self._blocks()
        return np.zeros(len(blocks)) if scale is None else scale * blocks[:, -1]

    @property
    def std_errors(self) -> NDArray[np.float64]:
        """Standard deviation of the error of each parameter, sampling and noise together, shape (k,)."""
        return self._fit.std_errors

    @property
    def cov(self) -> NDArray[np.float64]:
        """Covariance of the error of the parameters, shape (k, k)."""
        return self._fit.cov

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """Two-sided p-values of "the parameter of the regularised target is 0", shape (k,)."""
        return self._fit.pvalues

    @property
    def hessian(self) -> NDArray[np.float64] | None:
        """Released Hessian of the mean objective, shape (k, k), with its noise; None without moments."""
        return self._fit.hessian

    @property
    def gradient_cov(self) -> NDArray[np.float64] | None:
        """Released covariance of the gradient of one record, shape (k, k), with its noise; None without moments."""
        return self._fit.gradient_cov

    @property
    def interval_refusal(self) -> str | None:
        """The reason if there are no intervals, standard errors and p-values; otherwise None."""
        return self._fit.interval_refusal

    @property
    def l2_strength(self) -> float:
        """The regularisation λ, which is part of the definition of the target."""
        return self._fit.l2_strength

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee, as that of :class:`dpci.PrivateFit`, with the public classes."""
        return {**self._fit.privacy, "classes": list(self.classes)}

    def conf_int(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
    ) -> ConfidenceIntervals:
        """Confidence intervals for parameters or contrasts of them, such as the difference between two classes.

        The target is the minimiser of the population's regularised risk at this ``l2_strength``. The intervals account
        for the sampling, the noise of the parameters and the noise of the matrices.

        Parameters
        ----------
        level, contrast, simultaneous
            See :meth:`dpci.PrivateFit.conf_int`; ``{"b:age": 1, "c:age": -1}`` compares two classes.
        """
        return self._fit.conf_int(level=level, contrast=contrast, simultaneous=simultaneous)

    def wald_test(self, hypothesis: Contrast, value: ArrayLike = 0.0) -> WaldTest:
        """Test that linear combinations of parameters have these values, as :meth:`dpci.PrivateFit.wald_test` does."""
        return self._fit.wald_test(hypothesis, value)

    def in_units(self) -> TableUnits:
        """Return the coefficients of each class in the units of the table, as :meth:`dpci.PrivateFit.in_units` does."""
        return self._fit.in_units()

    def odds_ratios(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
    ) -> ConfidenceIntervals:
        """Odds ratios of each class against the reference, the first of :attr:`classes`, with intervals.

        They are exp of the coefficients, in the units of the table if there is a schema. The contrast
        ``{"b:age": 1, "c:age": -1}`` is the odds ratio of class b against class c.

        Parameters
        ----------
        level, contrast, simultaneous
            See :meth:`dpci.PrivateFit.odds_ratios`.
        """
        return self._fit.odds_ratios(level=level, contrast=contrast, simultaneous=simultaneous)

    def decision_function(self, X: Table | NamedTable | Path | str) -> NDArray[np.float64]:
        """Log odds of each class against the reference, shape (n, K); 0 for the reference.

        If the fit had a schema, it encodes frames, other tables with names, and files given by their path.
        """
        features = features_of(self._record.fit, X)
        # A copy of each block, because products take contiguous vectors.
        products = [features.product(np.array(coef)) for coef in self.coef]
        scores = np.column_stack([np.zeros(features.shape[0]), *products])
        scores[:, 1:] += self.intercept
        return scores

    def predict_proba(self, X: Table | NamedTable | Path | str) -> NDArray[np.float64]:
        """Probability of each class, in the order of :attr:`classes`, shape (n, K)."""
        return np.asarray(special.softmax(self.decision_function(X), axis=1))

    def predict(self, X: Table | NamedTable | Path | str) -> NDArray[Any]:
        """Predict the most probable class of each row, in the caller's labels, shape (n,)."""
        chosen = self.decision_function(X).argmax(axis=1)
        return np.asarray(label_array(self.classes)[chosen])

    def summary(
        self,
        *,
        level: float = 0.95,
        simultaneous: Simultaneous | None = None,
        units: Units = "table",
        full: bool = False,
    ) -> str:
        """Table of estimates and intervals, and a sentence each on the target and the noise.

        Parameters
        ----------
        level, simultaneous
            See :meth:`conf_int`.
        units, full
            See :meth:`dpci.PrivateFit.summary`.
        """
        view = View(level=level, simultaneous=simultaneous, units=units)
        return as_text(ShownClasses(self).document(view, full=check_flag("full", full)))

    def plot(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        units: Units = "table",
        order: Order = "given",
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Forest plot of intervals, one class after another, as :meth:`dpci.PrivateFit.plot` draws it.

        Parameters
        ----------
        level, contrast, simultaneous
            See :meth:`conf_int`.
        units, order, ax
            See :meth:`dpci.PrivateFit.plot`.
        """
        return self._fit.plot(
            level=level, contrast=contrast, simultaneous=simultaneous, units=units, order=order, ax=ax
        )

    def to_html(
        self,
        path: "str | PathLike[str] | None" = None,
        *,
        level: float = 0.95,
        title: str | None = None,
        simultaneous: Simultaneous | None = None,
        units: Units = "table",
    ) -> str:
        """Return the result as one self-contained HTML page, as :meth:`dpci.PrivateFit.to_html` does.

        Parameters
        ----------
        path, units
            See :meth:`dpci.PrivateFit.to_html`.
        level, simultaneous
            See :meth:`conf_int`.
        title : str, optional
            Heading of the page; None: the classes, and which is the reference.
        """
        from dpci.shown.html import write_html  # noqa: PLC0415  # most programs write no page

        view = View(level=level, simultaneous=simultaneous, units=units)
        return write_html(ShownClasses(self).sheet(view, title=title), path)

    def _document(self) -> Document:
        return ShownClasses(self).sheet(View(), title=None)

    def _statement(self) -> "Statement":
        from dpci.multinomial.approval import approval_of_classes  # noqa: PLC0415  # as above

        return approval_of_classes(self._fit, self.classes, self.digest)

    def _short(self) -> tuple[str, ...]:
        return f"{len(self.classes)} classes", f"{len(self.names)} parameters", str(self.spent)

    def _blocks(self) -> NDArray[np.float64]:
        """Parameters by class, a view of those that are read-only."""
        return self.params.reshape(-1, self._record.width)


def fit_of(result: MultinomialFit) -> PrivateFit:
    """Return the fit of all parameters, for the rooms that show it; its predictions are not those of classes."""
    return result._fit  # noqa: SLF001  # of this module's own class


def _log_odds(result: MultinomialFit) -> str:
    """Return what the parameters are."""
    return f"log odds of {', '.join(map(repr, result.classes[1:]))} against {result.classes[0]!r}"
