"""The per-instance report: a function from records to bounds on their privacy losses, which may be published."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.tables import change_text
from dpci.base.threads import check_threads
from dpci.base.validation import broken, in_short
from dpci.base.warn import warn
from dpci.data.arrays import Table, as_features, check_columns
from dpci.data.frames import check_same_index
from dpci.data.labels import encode
from dpci.data.persons import by_appearance, numbered
from dpci.data.weights import weight_values
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.losses import Loss, check_loss, declaration, describe, from_declaration
from dpci.model.result import PrivateFit
from dpci.per_instance.plot import draw_against_truth, draw_histogram
from dpci.per_instance.record import ReportRecord
from dpci.per_instance.records import Beside, Encoded, ExPostLosses, RecordLosses, check_member, ex_post_losses
from dpci.per_instance.saved import SavedReport
from dpci.report.style import facts_of_release
from dpci.shown.document import BANNER, Document, Facts, Paragraph
from dpci.shown.document import Table as Steps
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_F64 = NDArray[np.float64]


class Report(SavedReport):
    """A released model with bounds on what it costs a given record; made by :func:`dpci.per_instance.report`.

    Call it with records. It holds released and public values only, so it may be published. Its values at private
    records may not be published: they read these records, and a list or a plot of them over the training data is a
    new release, without any noise. See docs/per_instance.md.
    """

    __slots__ = ("_bounds", "_loss")

    def __init__(self, record: ReportRecord, loss: Loss) -> None:
        super().__init__(record)
        self._loss = loss
        self._bounds = record.core_bounds(loss)

    def __call__(
        self,
        X: Table,
        y: ArrayLike,
        *,
        persons: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        n_threads: int | None = None,
    ) -> RecordLosses:
        """Bound the privacy losses of records, in the training data or not.

        Not private: the values are as private as the records that are given.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Records as for the fit: the same columns, the same bounds, clipped alike. May have no rows.
        y : array-like of shape (n_rows,)
            Their targets, classes as in the fit.
        persons : array-like of shape (n_rows,), optional
            For a report of persons, and only there: the person to whom each row belongs. A bound is for all rows of
            one.
        weights : array-like of shape (n_rows,), optional
            For a report of weighted rows, and only there: their weights.
        n_threads : int, optional
            Threads; None: all cores. The result does not depend on it.

        Returns
        -------
        RecordLosses
            (eps1, eps2, eps3, delta), each of shape (n_records,). ``eps1`` is below the truth with probability at most
            ``failure_probability``: for each record fixed before the release, or for all records at once in a
            simultaneous report.

        Raises
        ------
        InvalidInput
            For malformed records, other columns, NaN, or unknown labels.
        RowNormViolation
            For a record beyond its bounds that is not clipped.
        """
        n_threads = check_threads(n_threads)
        given = self.encoded(X, y, persons=persons, weights=weights)
        delta = np.full(given.n_records, self._record.fit.budget.parameters()["delta"])
        if given.n_records == 0:
            return RecordLosses(np.empty(0), np.empty(0), np.empty(0), delta)
        eps1, eps2, eps3 = self._bounds.evaluate(given.for_core, n_threads=n_threads)
        return RecordLosses(eps1, eps2, eps3, delta)

    def encoded(
        self, X: Table, y: ArrayLike, *, persons: ArrayLike | None = None, weights: ArrayLike | None = None
    ) -> Encoded:
        """Return records as the core takes them. Not private; raises as a call does."""
        fit = self._record.fit
        for name, rule, given in (("persons", fit.persons, persons), ("weights", fit.weights, weights)):
            if (rule is None) != (given is None):
                wanted, got = ("None", type(given).__name__) if rule is None else ("given", "None")
                raise InvalidInput(f"{name} must be {wanted} as they were for the report, got {name} of type {got}")
        features = check_columns(as_features(X), fit.columns, named=fit.named_columns)
        two_classes = fit.classes is not None
        check_same_index(X, y)
        n_rows = features.shape[0]
        return Encoded(
            features.values,
            encode(y, n_rows, two_classes=two_classes, classes=fit.classes).values,
            None if persons is None else by_appearance(numbered(persons, n_rows, X)),
            None if weights is None else weight_values(weights, n_rows, X),
        )

    @property
    def result(self) -> PrivateFit:
        """The released model; its steps list every release of the report."""
        return PrivateFit(self._record.fit)

    @property
    def shares(self) -> tuple[float, ...] | None:
        """Shares of (coefficients, gradient, Hessian); None for a data-independent report."""
        return self._record.shares

    @property
    def simultaneous(self) -> bool:
        """Whether ``failure_probability`` is for all records at once, also those chosen after seeing the report."""
        return self._record.simultaneous

    @property
    def failure_probability(self) -> float:
        """Probability that a bound is below the truth, at most. Of correctness, not of privacy."""
        return self._record.failure_probability

    @property
    def bound(self) -> str:
        """How the released Hessian is used: "interpolated" or "paper"."""
        return self._record.bound

    @property
    def gradient(self) -> _F64 | None:
        """Released gradient of the sum objective at the parameters, shape (k,); None for a data-independent report."""
        return self._record.gradient

    @property
    def hessian(self) -> _F64 | None:
        """Released Hessian of the sum objective at the parameters, shape (k, k); None for a data-independent report."""
        return self._record.hessian

    @property
    def gradient_std_dev(self) -> float | None:
        """Standard deviation of the gradient's noise; None for a data-independent report."""
        return self._record.step("report_gradient").scale if self._record.data_dependent else None

    @property
    def hessian_std_dev(self) -> float | None:
        """Standard deviation of the Hessian's noise off the diagonal; sqrt(2) times it on the diagonal."""
        return self._record.step("report_hessian").scale / math.sqrt(2.0) if self._record.data_dependent else None

    @property
    def hessian_radius(self) -> float | None:
        """Bound on the Hessian noise's largest eigenvalue, exceeded with at most half the failure probability."""
        return self._bounds.hessian_radius

    def summary(self) -> str:
        """Text of what was released, what it cost, and what is claimed about the bounds."""
        return as_text(self._document())

    def _document(self) -> Document:
        unit = self._record.fit.cost_unit.replace("_", " ")
        rows = [
            [step.step.removeprefix("report_"), f"{step.cost:.4g}", f"{step.sensitivity:.4g}", f"{step.scale:.4g}"]
            for step in self._record.fit.steps
        ]
        fit = self._record.fit
        record = "record" if fit.persons is None else "person"
        whom = f"all {record}s at once" if self.simultaneous else f"each {record} fixed beforehand"
        facts = [
            ("kind", self.kind.replace("_", " ")),
            ("budget", str(self.budget)),
            ("neighbours", change_text("add_remove", record)),
            *((name, str(rule)) for name, rule in (("persons", fit.persons), ("weights", fit.weights)) if rule),
            ("n (public), lambda", f"{fit.n_samples:,}, {fit.l2_strength:g}"),
            ("loss", describe(fit.loss)),
            ("bounds", f"eps1 fails with probability at most {self.failure_probability:g} for {whom}"),
        ]
        if self.hessian_radius is not None:
            n = fit.n_samples if fit.weights is None else fit.weights.divisor(fit.n_samples)
            ridge = n * fit.l2_strength
            facts.append(("Hessian", f"{self.bound}, noise radius {self.hessian_radius:.4g}, ridge {ridge:.4g}"))
        parts = [
            Steps(["release", unit, "sensitivity", "std dev"], rows),
            Facts(facts),
            Paragraph(
                "The report may be published. Its values at private records must be protected like these records."
            ),
        ]
        return Document(parts=parts, banner=BANNER[self.private])

    def histogram(self, X: Table, y: ArrayLike, *, ax: "Axes | None" = None, **beside: Unpack[Beside]) -> "Axes":
        """Histogram of the bounds over given records; needs matplotlib. Not private: it reads the records.

        Parameters
        ----------
        X, y
            The records, as for a call.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None: a new figure.
        **beside
            ``persons`` and ``weights`` of the records, as for a call.

        Warns
        -----
        PrivacyLeakWarning
            Always.
        """
        losses = self(X, y, **beside)
        message = "a histogram of privacy losses is NOT PRIVATE: it depends on the records without noise"
        warn(PrivacyLeakWarning(message))
        total = losses.total if self._record.data_dependent else None
        return draw_histogram(losses.eps1, total, self._facts(len(losses.eps1)), ax=ax)

    def plot_bound_against_truth_not_private(
        self, X: Table, y: ArrayLike, *, ax: "Axes | None" = None, **beside: Unpack[Beside]
    ) -> "Axes":
        """Scatter of eps1 against the exact loss over the training data; needs matplotlib. Not private.

        Parameters
        ----------
        X, y
            The training data.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None: a new figure.
        **beside
            ``persons`` and ``weights`` of the training data, as for a call.

        Warns
        -----
        PrivacyLeakWarning
            Always.

        Raises
        ------
        InvalidInput
            For fewer records than half of ``n_public``: without the others the exact losses belong to another model.
        """
        bounds = self(X, y, **beside).eps1
        n_public = self._record.fit.n_samples
        if 2 * len(bounds) < n_public:
            msg = (
                "X must hold all training data, because exact losses on a subset belong to a different model, got "
                f"{len(bounds):,} {'rows' if self._record.fit.persons is None else 'persons'} for n_public={n_public:,}"
            )
            raise InvalidInput(msg)
        of_records: dict[str, Any] = {f"record_{name}": values for name, values in beside.items()}
        truth = ex_post_losses_not_private(self, X, y, X, y, member=True, **beside, **of_records)
        return draw_against_truth(truth.absolute, bounds, self._facts(len(bounds)), ax=ax)

    def _facts(self, n_records: int) -> list[str]:
        """Return what belongs below a plot of records: the release, and how many of the records are shown."""
        fit = self._record.fit
        few = "" if 2 * n_records >= fit.n_samples else ": a subset, which may differ from the other records"
        spent, count = facts_of_release(self.budget, fit.n_samples, neighbors=fit.neighbors, private=self.private)
        return [f"{spent}, {count}", f"{n_records:,} records{few}"]

    @classmethod
    def from_json(cls, text: str | bytes, *, loss: Loss | None = None) -> "Report":
        """Rebuild a report from :meth:`to_json`.

        Parameters
        ----------
        text : str or bytes
            Text that :meth:`to_json` returned.
        loss : dpci.losses.Custom, optional
            The loss of a report with a custom one, whose code JSON cannot hold.

        Raises
        ------
        InvalidInput
            If the text is not a saved report, or the loss is missing or differs.
        """
        record = ReportRecord.from_json(text)
        saved = from_declaration(record.fit.loss)
        if saved is not None:
            if loss is not None and loss != saved:
                raise broken("loss", f"the loss of the report, {saved!r}", loss)
            return cls(record, saved)
        if loss is None:
            raise InvalidInput("loss must be given for a report with a custom loss, got loss=None")
        loss = check_loss(loss)
        if declaration(loss, loss.to_core()) != (wanted := record.fit.loss):
            raise InvalidInput(f"loss must have the declaration of the report's loss, {wanted}, got loss={loss!r}")
        return cls(record, loss)

    def __reduce__(self) -> tuple[Any, ...]:
        custom = None if from_declaration(self._record.fit.loss) is not None else self._loss
        return partial(Report.from_json, loss=custom), (self.to_json(),)


def ex_post_losses_not_private(
    report: Report,
    X: Table,
    y: ArrayLike,
    records: Table,
    targets: ArrayLike,
    *,
    member: ArrayLike,
    persons: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    record_persons: ArrayLike | None = None,
    record_weights: ArrayLike | None = None,
    n_threads: int | None = None,
) -> ExPostLosses:
    """Compute the exact privacy losses of the released parameters for records. NOT PRIVATE: reads the training data.

    Parameters
    ----------
    report : Report
        Made from ``X`` and ``y`` by :func:`dpci.per_instance.report`.
    X, y
        The training data, as for the report.
    records : array-like of shape (n_rows, n_features)
        The rows of the records whose losses are wanted.
    targets : array-like of shape (n_rows,)
        Their targets.
    member : bool or array-like of bool of shape (n_records,)
        Whether each record is in the training data: it is then compared with being removed, otherwise with being added.
        Persons come in the order of their first rows.
    persons, weights : array-like of shape (n_samples,), optional
        Persons and weights of the training data, as for the report.
    record_persons, record_weights : array-like of shape (n_rows,), optional
        Persons and weights of the records.
    n_threads : int, optional
        Threads; None: all cores.

    Returns
    -------
    ExPostLosses
        ``signed`` and ``absolute``, each of shape (n_records,).

    Raises
    ------
    InvalidInput
        For malformed data, or a record taken for a member that the data cannot hold.

    Warns
    -----
    PrivacyLeakWarning
        Always.
    """
    # The compiled function behind the report is no part of its face.
    bounds = getattr(report, "_bounds", None)
    if not isinstance(bounds, _core.RecordBounds):
        raise InvalidInput(f"report must be a Report of dpci.per_instance, got {in_short(report)}")
    n_threads = check_threads(n_threads)
    data = report.encoded(X, y, persons=persons, weights=weights)
    encoded = report.encoded(records, targets, persons=record_persons, weights=record_weights)
    inside = check_member(member, encoded.n_records)
    message = "exact privacy losses are NOT PRIVATE: they depend on the training data without noise"
    warn(PrivacyLeakWarning(message))
    return ex_post_losses(bounds, data, encoded, inside, n_threads)
