"""Result of a tuning: the chosen candidate, its fit, and what the choice spent; released and public values only."""

import dataclasses
import json
from collections.abc import Mapping
from fractions import Fraction
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.seals import seal_facts
from dpci.approval.approvable import Approvable
from dpci.base.codec import read_saved, saved_text
from dpci.base.tables import number_format
from dpci.base.validation import broken
from dpci.budgets import Budget, budget_from_parameters
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL, describe
from dpci.model.result import PrivateFit
from dpci.multinomial.record import MultinomialRecord
from dpci.multinomial.result import MultinomialFit, fit_of, page_of_classes, summary_of_classes
from dpci.released.facts import conditions, constants
from dpci.released.fit_record import FitRecord
from dpci.released.model import Released, record_of
from dpci.released.saved import read_record
from dpci.report.summary import summary_of
from dpci.report.view import View
from dpci.shown.document import Document, Facts, Paragraph, Section, seeded, short_form
from dpci.shown.text import as_text
from dpci.tuning.candidates import FREE, params_text, plain_params
from dpci.tuning.selection import Method, Selection

if TYPE_CHECKING:
    from dpci.approval.statement import Statement

SCHEMA = "dpci.TuneResult"
SCHEMA_VERSION = 1
_NOT_FRESH = (
    "the noise of a model that was selected by its own score is not fresh, so it has no intervals (use "
    "selection_share < 1, which fits again at the chosen parameters)"
)
_TIME = (
    "the duration of the call is not published, because it depends on the number of runs, which is independent of "
    "the data, and on how hard their problems were, which is not"
)


class SelectedFit(Released[FitRecord]):
    """The model that won a selection: parameters and predictions, but no intervals, because its noise is not fresh.

    It lies in the ball in which it was compared, whose radius its record holds. Its cost and its guarantee are known
    for the whole tuning only: :attr:`TuneResult.spent` and :attr:`TuneResult.privacy`.
    """

    __slots__ = ()

    @property
    def budget(self) -> Budget:
        """The budget of the tuning."""
        return self._record.budget

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
        return as_text(_summary_of(self, View()))

    def __getstate__(self) -> str:
        return self._record.to_json()

    def __setstate__(self, record: str) -> None:
        self._record = read_record(record, selected=True)

    def __repr__(self) -> str:
        facts = (f"{len(self.names)} parameters", f"{self.mechanism} perturbation", "no intervals")
        return short_form(self, *facts, private=self.private)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class TuneResult(Approvable):
    """A tuned model: which candidate was chosen, its fit, and what both spent. Made by :func:`dpci.tuning.tune`.

    Print :meth:`summary`: the summary of ``result`` covers the fit alone.

    Attributes
    ----------
    params : mapping
        The chosen candidate, as it was given (or what the public rule says); read-only.
    result : PrivateFit, MultinomialFit or SelectedFit
        The fit at the chosen parameters, with the rest of the budget and fresh noise: a MultinomialFit for three or
        more classes. With ``selection_share=1`` the model that was chosen, which has no intervals.
    budget : PureDP, ZCDP or ApproxDP
        Budget that was asked for, choice and fit together.
    """

    params: Mapping[str, Any]
    result: PrivateFit | MultinomialFit | SelectedFit
    budget: Budget
    selection: Selection | None
    """How the candidate was chosen; None for the public rule, which spends nothing on it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))

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
    def digest(self) -> str:
        """SHA-256 of all that :meth:`to_json` says, which is the checksum in it; the ledger that paid holds it too."""
        return str(json.loads(self.to_json())["checksum"])

    @property
    def private(self) -> bool:
        """Whether all noise came from the operating system; False for seeded tunings."""
        return self.result.private

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, what the choice and the fit spent, conditions.

        "fit" is that of the fit; "model" are the facts of a selected model, which is not fitted again.
        """
        fit = self.result
        selected = isinstance(fit, SelectedFit)
        facts = _facts_of_model(record_of(fit)) if isinstance(fit, SelectedFit) else fit.privacy
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

    def summary(self, *, level: float = 0.95) -> str:
        """Return what was chosen and how, and the summary of the fit."""
        fit = _summary_of(self.result, View(level=level))
        return as_text(dataclasses.replace(fit, parts=[Facts(self._facts()), *fit.parts]))

    def _facts(self) -> list[tuple[str, str]]:
        """Return what was chosen, how, and at what cost."""
        facts = [("chosen", params_text(plain_params(self.params)))]
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

        Parameters
        ----------
        path : path, optional
            File to write the page to as well; one that exists is replaced.
        level : float
            Level of each interval.
        title : str, optional
            Heading of the page.

        Raises
        ------
        InvalidInput
            For arguments out of range, and for a model that was selected by its own score (``selection_share=1``).
        OSError
            If the file cannot be written.
        """
        from dpci.report.page import page_of  # noqa: PLC0415  # most programs write no page
        from dpci.shown.html import check_title, write_html  # noqa: PLC0415

        check_title(title)
        if isinstance(self.result, SelectedFit):
            raise InvalidInput(f"a page requires a fit with fresh noise, got a selected model: {_NOT_FRESH}")
        facts = self._facts()
        if self.selection is not None:
            facts[1:1] = [("candidates", "; ".join(map(params_text, self.selection.candidates)))]
        choice = Section("choice", "The choice", [Facts(facts, "How the settings were chosen")])
        view, digest = View(level=level), self.digest
        if isinstance(self.result, MultinomialFit):
            page = page_of_classes(self.result, view, title=title, digest=digest, before=[choice])
        else:
            page = page_of(self.result, view, title=title, digest=digest, before=[choice])
        return write_html(page, path)

    def _statement(self) -> "Statement":
        from dpci.multinomial.approval import with_classes  # noqa: PLC0415  # most programs write no document
        from dpci.tuning.approval import approval_of_tuning  # noqa: PLC0415

        fit, alone = self.result, self.selection is None and self.private
        found = approval_of_tuning(
            _record_of(fit),
            self.digest,
            params=plain_params(self.params),
            budget=self.budget,
            choice=self.selection,
            refusal=fit.interval_refusal,
            guarantee=fit.guarantee if alone and isinstance(fit, PrivateFit) else None,
            conditions=self.privacy["conditions"],
            again=not isinstance(fit, SelectedFit),
        )
        return with_classes(found, fit.classes) if isinstance(fit, MultinomialFit) else found

    def to_json(self) -> str:
        """Return the whole result as JSON: released and public values only, floats exactly.

        Losses and mechanisms among ``params`` are saved as their descriptions.
        """
        fit = self.result
        selected = isinstance(fit, SelectedFit)
        # A selected model has no JSON of its own.
        record = json.loads(record_of(fit).to_json() if isinstance(fit, SelectedFit) else fit.to_json())
        values = {
            "params": plain_params(self.params),
            "privacy": self.privacy,
            "fit": None if selected else record,
            "model": record if selected else None,
            "names": list(fit.names),
            "coefficients": fit.params.tolist(),
        }
        return saved_text(values, schema=SCHEMA, version=SCHEMA_VERSION)

    @classmethod
    def from_json(cls, text: str | bytes) -> "TuneResult":
        """Rebuild a result from :meth:`to_json`; losses and mechanisms among ``params`` stay descriptions.

        Raises
        ------
        InvalidInput
            If the text is not a saved tuning, of another schema version, or contradicts itself.
        """
        values = read_saved(text, what="a saved tuning", schema=SCHEMA, version=SCHEMA_VERSION)
        try:
            found = _from_values(cls, values)
            same = read_saved(found.to_json(), what="a saved tuning", schema=SCHEMA, version=SCHEMA_VERSION) == values
        except InvalidInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise InvalidInput(f"a saved tuning must hold every field of its schema, got {error!r}") from error
        if not same:
            raise InvalidInput("a saved tuning must say the same in all its fields, got a contradiction")
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"params": dict(self.params), "saved": self.to_json()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        params = MappingProxyType(state["params"])  # as they were given; saved are descriptions
        vars(self).update(vars(TuneResult.from_json(state["saved"])) | {"params": params})

    def __repr__(self) -> str:
        return short_form(self, f"{plain_params(self.params)} by {self.method}", str(self.spent), private=self.private)


def _summary_of(fit: PrivateFit | MultinomialFit | SelectedFit, view: View) -> Document:
    """Return the summary of a model that was tuned."""
    if isinstance(fit, PrivateFit):
        return summary_of(fit, view)
    if isinstance(fit, MultinomialFit):
        return summary_of_classes(fit, view)
    shown = number_format(np.abs(fit.params).max(), fit.params)
    facts = Facts([(name, f"{value:{shown}}") for name, value in zip(fit.names, fit.params, strict=True)])
    return Document(parts=[facts, Paragraph(f"No intervals: {_NOT_FRESH}.")], banner=seeded(private=fit.private))


def _record_of(fit: PrivateFit | MultinomialFit | SelectedFit) -> FitRecord:
    return record_of(fit_of(fit) if isinstance(fit, MultinomialFit) else fit)


def _facts_of_model(record: FitRecord) -> dict[str, Any]:
    """Return what is public about a selected model, without a claim."""
    (noise,) = record.steps
    return {
        "relation": record.neighbors,
        "mechanism": record.mechanism,
        "variant": record.variant,
        "project": record.project,
        "calibration": record.calibration,
        "constants": constants(record),
        "conditions": conditions(record),
        "version": record.version,
        "noise": noise.noise,
        "noise_scale": noise.scale,
        "noise_sensitivity": noise.sensitivity,
        "seal": seal_facts(record.seals),
    }


def _from_values(kind: type[TuneResult], values: dict[str, Any]) -> TuneResult:
    privacy = values["privacy"]
    budget = budget_from_parameters(privacy["notion"], privacy["budget"])
    saved = privacy["selection"]
    selection = None if saved is None else Selection.from_dict(saved, method=privacy["method"], notion=budget.notion)
    selected = values["model"] is not None
    text = json.dumps(values["model"] if selected else values["fit"])
    is_several = not selected and values["fit"].get("schema") == MultinomialRecord.KIND
    reader: type[PrivateFit | MultinomialFit] = MultinomialFit if is_several else PrivateFit
    fit = SelectedFit(read_record(text, selected=True)) if selected else reader.from_json(text)
    parts = [fit.budget] if selection is None or selected else [selection.budget, fit.budget]
    for name, whole in budget.parameters().items():
        total = sum(Fraction(part.parameters().get(name, 0.0)) for part in parts)
        if any(part.notion != budget.notion for part in parts) or total > Fraction(whole):
            raise InvalidInput(f"choice and fit must spend no more than {budget}, got {' and '.join(map(str, parts))}")
    if selected and (selection is None or selection.budget != budget or fit.budget != budget):
        raise InvalidInput(f"a selected model must have the budget of its tuning, {budget}, got {fit.budget}")
    own = _record_of(fit).loss
    if selection is not None and SEVERAL in {selection.loss["name"], own["name"]} and selection.loss != own:
        raise InvalidInput(f"validation_loss must be the loss of the model, got {selection.loss!r} with {own!r}")
    params = values["params"]
    if not isinstance(params, dict):
        raise broken("params", "an object", params)
    _check_params(params, _record_of(fit))
    listed = params if selection is None else selection.candidates[selection.index]
    if listed != params:
        raise InvalidInput(f"params must be the chosen candidate of the list, {listed}, got {params}")
    return kind(params=params, result=fit, budget=budget, selection=selection)


def _check_params(params: Mapping[str, Any], record: FitRecord) -> None:
    """Refuse a chosen candidate that is not that of the model.

    Raises
    ------
    InvalidInput
        For names that no candidate has, and another λ, loss or mechanism than those of the model.
    """
    if others := sorted(params.keys() - set(FREE)):
        raise InvalidInput(f"params must name keywords that candidates have, got {others[0]!r}")
    strength, loss, mechanism = (params.get(name) for name in ("l2_strength", "loss", "mechanism"))
    used = mechanism.get("name") if isinstance(mechanism, dict) else mechanism
    raised = record.variant == "cms11"
    for name, value, same in (
        ("l2_strength", strength, raised or strength == record.l2_strength),
        ("loss", loss, loss in (record.loss["name"], describe(record.loss))),
        ("mechanism", mechanism, used == record.mechanism),
    ):
        if name in params and not same:
            raise InvalidInput(f"params must be those of the model, got {name}={value!r}")


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
