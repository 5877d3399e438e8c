"""Result of a tuning: the chosen candidate, its fit, and what the choice spent; released and public values only."""

import dataclasses
from collections.abc import Mapping
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpci.approval.approvable import Approvable
from dpci.base.tables import number_format
from dpci.base.validation import check_flag
from dpci.budgets import Budget
from dpci.errors import InvalidInput
from dpci.losses import describe
from dpci.model.result import PrivateFit
from dpci.multinomial.result import MultinomialFit, ShownClasses
from dpci.released.model import Released
from dpci.released.record import SelectedRecord
from dpci.released.result import Shown, shown_of
from dpci.report.commands import ShownFit, ShownModel
from dpci.report.summary import View
from dpci.shown.displayed import Displayed
from dpci.shown.document import BANNER, Document, Facts, Paragraph, Section, short_form
from dpci.shown.text import as_text
from dpci.tuning.candidates import params_text, plain_params
from dpci.tuning.record import TuneRecord
from dpci.tuning.selection import Method, Selection

if TYPE_CHECKING:
    from dpci.approval.statement import Statement

_NOT_FRESH = (
    "the noise of a model that was selected by its own score is not fresh, so it has no intervals (use "
    "selection_share < 1, which fits again at the chosen parameters)"
)
_TIME = (
    "the duration of the call is not published, because it depends on the number of runs, which is independent of "
    "the data, and on how hard their problems were, which is not"
)


class SelectedFit(Displayed, Released[SelectedRecord, Budget]):
    """The model that won a selection: parameters and predictions, but no intervals, because its noise is not fresh.

    It lies in the ball in which it was compared, whose radius its record holds. Its cost and its guarantee are known
    for the whole tuning only: :attr:`TuneResult.spent` and :attr:`TuneResult.privacy`.
    """

    __slots__ = ()

    @property
    def spent(self) -> Budget:
        """Budget that the whole tuning spent: a model that was selected costs no less than its selection."""
        return self.budget

    @property
    def mechanism(self) -> str:
        """Where the noise enters: "objective" or "output"."""
        return self._record.mechanism

    @property
    def interval_refusal(self) -> str:
        """Why there are no intervals, standard errors and p-values."""
        return f"intervals require fresh noise, got a selected model: {_NOT_FRESH}"

    def conf_int(self, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput``: a selected model has no valid intervals; the message says why."""
        raise InvalidInput(self.interval_refusal)

    def summary(self, *, level: float = 0.95) -> str:  # noqa: ARG002  # of the same form as that of a fit
        """Return a table of the parameters."""
        return as_text(self._document())

    def _document(self) -> Document:
        return ShownSelected(self).document(View())

    def __getstate__(self) -> str:
        return self._record.to_json()

    def __setstate__(self, record: str) -> None:
        super().__init__(SelectedRecord.from_json(record))

    def __repr__(self) -> str:
        facts = (f"{len(self.names)} parameters", f"{self.mechanism} perturbation", "no intervals")
        return short_form(self, *facts, private=self.private)


class ShownSelected(ShownModel):
    """The model that won a selection as a tuning shows it."""

    result: SelectedFit

    def model(self) -> Shown:
        """Raise ``InvalidInput``: a tuning is used with the model that was fitted again."""
        raise InvalidInput("the file must hold a model that predicts, got one that was selected by its own score")

    def document(self, view: View, *, full: bool = False) -> Document:  # noqa: ARG002  # as for other models
        """Return the summary as a document."""
        fit = self.result
        shown = number_format(np.abs(fit.params).max(), fit.params)
        facts = Facts([(name, f"{value:{shown}}") for name, value in zip(fit.names, fit.params, strict=True)])
        return Document(parts=[facts, Paragraph(f"No intervals: {_NOT_FRESH}.")], banner=BANNER[fit.private])

    def sheet(self, view: View, **given: object) -> Document:  # noqa: ARG002  # as above
        """Raise ``InvalidInput``: such a model has no page."""
        raise InvalidInput(f"a page requires a fit with fresh noise, got a selected model: {_NOT_FRESH}")


class ShownTuning(Shown):
    """A tuning as commands show it."""

    result: "TuneResult"

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read: those of the fit, and what was chosen at what cost."""
        tuned = self.result
        # What the whole tuning spent stands in the place of what its fit did.
        chosen = {"chosen": plain_params(tuned.params), "method": tuned.method, "privacy": tuned.privacy}
        return {**_shown_model(tuned).numbers(view), **chosen}

    def model(self) -> Shown:
        """Return the fit with the choice."""
        return _shown_model(self.result).model()


class TuneResult(Approvable[TuneRecord]):
    """A tuned model: which candidate was chosen, its fit, and what both spent. Made by :func:`dpci.tuning.tune`.

    Print :meth:`summary`: the summary of ``result`` covers the fit alone. In a file :attr:`params` have descriptions of
    losses and mechanisms.
    """

    __slots__ = ("_model", "_params", "_record")

    _RECORD, _SHOWN = TuneRecord, ShownTuning

    def __init__(self, record: TuneRecord, params: Mapping[str, Any] | None = None) -> None:
        self._record = record
        self._params = MappingProxyType(dict(record.params if params is None else params))
        self._model = _model_of(record)

    @property
    def params(self) -> Mapping[str, Any]:
        """The chosen candidate, as it was given (or what the public rule says); read-only."""
        return self._params

    @property
    def result(self) -> PrivateFit | MultinomialFit | SelectedFit:
        """The fit at the chosen parameters, with the rest of the budget and fresh noise.

        A MultinomialFit for three or more classes. With ``selection_share=1`` the model that was chosen, which has no
        intervals.
        """
        fit: PrivateFit | MultinomialFit | SelectedFit = self._model.result
        return fit

    @property
    def budget(self) -> Budget:
        """Budget that was asked for, choice and fit together."""
        return self._record.budget

    @property
    def selection(self) -> Selection | None:
        """How the candidate was chosen; None for the public rule, which spends nothing on it."""
        return self._record.selection

    @property
    def index(self) -> int | None:
        """Position of the chosen candidate; None for the public rule."""
        return None if self.selection is None else self.selection.index

    @property
    def method(self) -> Method:
        """How the candidate was chosen."""
        return "public_rule" if self.selection is None else self.selection.method

    @property
    def spent(self) -> Budget:
        """Budget that choice and fit spent together: the whole one."""
        return self.budget

    @property
    def private(self) -> bool:
        """Whether all noise came from the operating system; False for seeded tunings."""
        return self.result.private

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, what the choice and the fit spent, conditions.

        "fit" is that of the fit; "model" are the facts of a selected model, which is not fitted again.
        """
        selected = self._record.model is not None
        facts = self._model.result.privacy if self._record.model is None else _facts_of_model(self._record.model)
        conditions = list(facts["conditions"])
        if self.selection is not None:
            conditions.append("the candidates were chosen without looking at the data")
        if self.method == "repeat":
            conditions.append(_TIME)
        return {
            "private": self.private,
            "relation": facts["relation"],
            "notion": self.budget.notion,
            "budget": self.budget.parameters(),
            "spent": self.spent.parameters(),
            "method": self.method,
            "selection": None if self.selection is None else self.selection.to_dict(),
            "fit": None if selected else facts,
            "model": facts if selected else None,
            "conditions": conditions,
            "version": facts["version"],
        }

    def summary(self, *, level: float = 0.95, full: bool = False) -> str:
        """Return what was chosen and how, and the summary of the fit, in full if that is asked for."""
        return as_text(self._text(View(level=level), full=check_flag("full", full)))

    def _text(self, view: View, *, full: bool = False) -> Document:
        fit = self._model.document(view, full=full)
        return dataclasses.replace(fit, parts=[Facts(self._facts()), *fit.parts])

    def _facts(self) -> list[tuple[str, str]]:
        """Return what was chosen, how, and at what cost."""
        facts = [("chosen", params_text(self._record.params))]
        if self.selection is None:
            facts.append(("method", "public rule: the choice spends nothing"))
        else:
            chosen = self.selection
            facts += [
                ("method", f"{chosen.method}, {chosen.place}"),
                ("validation loss", describe(chosen.loss)),
                ("spent on the choice", str(chosen.budget)),
            ]
        return [*facts, ("spent in total", str(self.spent))]

    def to_html(
        self, path: "str | PathLike[str] | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> str:
        """Return the page of the fit, with what was chosen, from which candidates, and what was spent in total.

        Parameters are those of :meth:`dpci.PrivateFit.to_html`. A model that was selected by its own score
        (``selection_share=1``) has no page.
        """
        from dpci.shown.html import write_html  # noqa: PLC0415  # most programs write no page

        return write_html(self._page(View(level=level), title), path)

    def _document(self) -> Document:
        has_page = isinstance(self._model, ShownFit | ShownClasses)
        return self._page(View(), None) if has_page else self._text(View())

    def _page(self, view: View, title: str | None) -> Document:
        facts = self._facts()
        if self.selection is not None:
            facts[1:1] = [("candidates", "; ".join(map(params_text, self.selection.candidates)))]
        choice = Section("choice", "The choice", [Facts(facts, "How the settings were chosen")])
        return self._model.sheet(view, title=title, digest=self.digest, before=[choice])

    def _statement(self) -> "Statement":
        from dpci.tuning.approval import approval_of_tuning  # noqa: PLC0415  # most programs write no document

        # By the public rule the fit alone costs something.
        guarantee = self._model.result.guarantee if self.selection is None and self.private else None
        refusal, conditions = self.result.interval_refusal, self.privacy["conditions"]
        return approval_of_tuning(self._record, refusal=refusal, guarantee=guarantee, conditions=conditions)

    def __reduce__(self) -> tuple[Any, ...]:
        return (*super().__reduce__(), dict(self._params))

    def __setstate__(self, params: dict[str, Any]) -> None:
        # As they were given: saved are descriptions.
        self._params = MappingProxyType(params)

    def _short(self) -> tuple[str, ...]:
        return f"{self._record.params} by {self.method}", str(self.spent)


def _facts_of_model(record: SelectedRecord) -> dict[str, Any]:
    """Return what is public about a selected model, without a claim."""
    (noise,) = record.steps
    names = ("relation", "mechanism", "variant", "project", "calibration", "constants", "conditions", "version", "seal")
    facts = {name: record.privacy[name] for name in names}
    return {**facts, "noise": noise.noise, "noise_scale": noise.scale, "noise_sensitivity": noise.sensitivity}


def _model_of(record: TuneRecord) -> Shown:
    """Return the model of a tuning."""
    if record.model is not None:
        return ShownSelected(SelectedFit(record.model))
    return shown_of(PrivateFit(record.of_model) if record.several is None else MultinomialFit(record.several))


def _shown_model(tuned: TuneResult) -> Shown:
    """Return the model of a tuning as commands show it."""
    return tuned._model  # noqa: SLF001  # of this module's own class


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class OracleSearch:
    """The outcome of an exhaustive search that reads the data. NOT PRIVATE: for comparison only.

    Attributes
    ----------
    params : dict
        The candidate of least mean loss.
    index : int
        Its position.
    losses : ndarray of shape (n_candidates,)
        Mean loss over the records, averaged over simulated models.
    std_errors : ndarray of shape (n_candidates,)
        Standard errors of these averages; NaN for one run.
    """

    params: dict[str, Any]
    index: int
    losses: NDArray[np.float64]
    std_errors: NDArray[np.float64]
    private: Literal[False] = False
