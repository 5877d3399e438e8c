"""The result of a multinomial fit: coefficients of each class, intervals, probabilities, and what was spent."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci.data.arrays import Table
from dpci.data.labels import Label, labels_at, labels_of
from dpci.model.result import PrivateFit, ShownInference
from dpci.multinomial.record import MultinomialRecord
from dpci.released.model import features_of
from dpci.released.result import Shown
from dpci.report.commands import ShownFit
from dpci.report.page import titled
from dpci.report.summary import View
from dpci.schema.table import Table as NamedTable
from dpci.shown.document import Document

if TYPE_CHECKING:
    from dpci.approval.statement import Statement


class ShownClasses(Shown):
    """A model of several classes as commands show it."""

    PREDICTS = True
    result: "MultinomialFit"

    @property
    def options(self) -> set[str]:
        """The names of what a summary may be given; the parameters have one target."""
        return super().options - {"target"}

    def document(self, view: View, *, full: bool = False) -> Document:
        """Return the summary as a document: that of the fit of all parameters, below what they are."""
        return replace(ShownFit(fit_of(self.result)).document(view, full=full), title=_words(self.result))

    def sheet(self, view: View, **given: Any) -> Document:  # noqa: ANN401  # keywords of page_of
        """Return the page as a document: that of the fit of all parameters, whose heading says what they are."""
        result = self.result
        if given["title"] is None:
            given["title"] = titled(_words(result), private=result.private)
        return ShownFit(fit_of(result)).sheet(view, **{"digest": result.digest, **given})

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read: those of the fit of all parameters."""
        result = self.result
        return {**ShownFit(fit_of(result)).numbers(view), "classes": result.classes, "privacy": result.privacy}

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The names of the columns of probabilities, one for each class."""
        return tuple(f"probability:{label}" for label in self.result.classes)


class MultinomialFit(ShownInference[MultinomialRecord]):
    """A released multinomial model, made by ``fit``. Contains only released and public values.

    Attributes are read-only; arrays are read-only too. K is the number of classes, d the number of parameters of one
    class with its intercept, and k = (K - 1) d the number of all parameters. Parameters are called "class:column" and
    "class:intercept", in the order of the classes; the reference has none. Inference is that of all parameters: the
    contrast ``{"b:age": 1, "c:age": -1}`` compares two classes, and its odds ratio is that of class b against class c.
    """

    __slots__ = ()
    _record: MultinomialRecord
    _RECORD, _SHOWN = MultinomialRecord, ShownClasses

    def __init__(self, record: MultinomialRecord) -> None:
        super().__init__(record, record.fit)

    @property
    def classes(self) -> tuple[Label, ...]:
        """The public classes, the reference first; integers if those of a schema are all whole numbers."""
        return labels_of(self._record.classes, self._record.fit.table)

    @property
    def coef(self) -> NDArray[np.float64]:
        """Coefficients of each class except the reference, shape (K - 1, number of columns): log odds per unit."""
        return self.params.reshape(len(self.classes) - 1, -1)[:, : len(self._record.fit.columns)]

    @property
    def intercept(self) -> NDArray[np.float64]:
        """Log odds of each class except the reference at the origin, shape (K - 1,); 0 without an intercept."""
        fit, blocks = self._record.fit, self.params.reshape(len(self.classes) - 1, -1)
        if blocks.shape[1] == len(fit.columns):
            return np.zeros(len(blocks))
        # In the units of a table it is the coefficient of 1.
        scale = 1.0 if fit.table is not None or fit.intercept_scale is None else fit.intercept_scale
        return scale * blocks[:, -1]

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee, as that of :class:`dpci.PrivateFit`, with the public classes."""
        return {**fit_of(self).privacy, "classes": list(self._record.classes)}

    def decision_function(self, X: Table | NamedTable | Path | str) -> NDArray[np.float64]:
        """Log odds of each class against the reference, shape (n, K); 0 for the reference.

        If the fit had a schema, it encodes frames, other tables with names, and files given by their path.
        """
        fit = self._record.fit
        features, blocks = features_of(fit, X), fit.params.reshape(-1, self._record.width)
        # A copy of each block, because products take contiguous vectors.
        products = [features.product(np.array(block[: len(fit.columns)])) for block in blocks]
        scores = np.column_stack([np.zeros(features.shape[0]), *products])
        if fit.intercept_scale is not None:
            scores[:, 1:] += fit.intercept_scale * blocks[:, -1]
        return scores if features.missing is None else np.where(features.missing[:, None], np.nan, scores)

    def predict_proba(self, X: Table | NamedTable | Path | str) -> NDArray[np.float64]:
        """Probability of each class, in the order of :attr:`classes`, shape (n, K)."""
        return np.asarray(special.softmax(self.decision_function(X), axis=1))

    def predict(self, X: Table | NamedTable | Path | str) -> NDArray[Any]:
        """Predict the most probable class of each row, in the caller's labels, shape (n,)."""
        scores = self.decision_function(X)
        return labels_at(self.classes, scores.argmax(axis=1), np.isnan(scores[:, 0]))

    def _summary(self, view: View, *, full: bool) -> Document:
        return ShownClasses(self).document(view, full=full)

    def _page(self, view: View, title: str | None) -> Document:
        return ShownClasses(self).sheet(view, title=title)

    def _statement(self) -> "Statement":
        from dpci.multinomial.approval import approval_of_classes  # noqa: PLC0415  # most programs write no document

        return approval_of_classes(fit_of(self), self._record.classes, self.digest)

    def _short(self) -> tuple[str, ...]:
        return f"{len(self.classes)} classes", f"{len(self._release.names)} parameters", str(self.spent)


def fit_of(result: MultinomialFit) -> PrivateFit:
    """Return the fit of all parameters, for the rooms that show it; its predictions are not those of classes."""
    return PrivateFit(result._release)  # noqa: SLF001  # of this module's own class


def _words(result: MultinomialFit) -> str:
    """Return what the model is, and its parameters."""
    outcome = "" if result.schema is None else f" of {result.schema.target.column}"
    others = ", ".join(map(repr, result.classes[1:]))
    return f"Multinomial logistic regression{outcome}: log odds of {others} against {result.classes[0]!r}"
