"""What a tuning returns: the chosen candidate, its fit, and what the choice spent; released and public values only."""

import json
import textwrap
from dataclasses import asdict, dataclass
from typing import Any, Literal, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting import Guarantee
from dpci.budgets import Budget
from dpci.errors import InvalidInput
from dpci.losses import Loss, declaration, describe
from dpci.mechanisms import Mechanism, ObjectivePerturbation, OutputPerturbation
from dpci.record import FitRecord, Step
from dpci.results import PrivateFit
from dpci.tables import format_facts

Method: TypeAlias = Literal["repeat", "chunks", "public_rule"]
_NOT_FRESH = (
    "the noise of a model that was selected by its own score is not fresh, so it has no intervals: tune with "
    "selection_share < 1, which fits again at the chosen parameters"
)
_TIME = (
    "the duration of the call is not published: it tells the number of runs, which is independent of the data, and how "
    "hard their problems were, which is not"
)


@dataclass(frozen=True, slots=True)
class Selection:
    """How a candidate was chosen, and what that cost; all public."""

    method: Method
    index: int
    n_candidates: int
    budget: Budget
    loss: dict[str, Any]
    """Declaration of the validation loss."""
    facts: dict[str, Any]
    """Budgets of a model and of a score, the score's noise and sensitivity, sizes of parts or the law of the runs."""

    @classmethod
    def from_facts(
        cls, facts: "_core.TuningFacts", *, method: Method, index: int, n_candidates: int, budget: Budget, loss: Loss
    ) -> "Selection":
        """Build the record from what the core calibrated, leaving out what the method does not have."""
        known = {name: value for name, value in facts.items() if value is not None}
        return cls(method, index, n_candidates, budget, declaration(loss, loss.to_core()), known)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "index": self.index,
            "n_candidates": self.n_candidates,
            "budget": self.budget.parameters(),
            "composition": {"chunks": "parallel parts", "repeat": "best of a random number of runs"}[self.method],
            "validation_loss": dict(self.loss),
            **self.facts,
        }


class SelectedFit(PrivateFit):
    """The model that won a selection: parameters and predictions, but no intervals, because its noise is not fresh."""

    __slots__ = ()

    @property
    def spent(self) -> Budget:
        """What the whole tuning spent: a model that was selected costs no less than its selection."""
        return self.budget

    @property
    def privacy(self) -> dict[str, Any]:
        """Not of the model alone; see :attr:`TuneResult.privacy`."""
        return _refuse("privacy")

    @property
    def guarantee(self) -> Guarantee:
        """Not of the model alone; see :attr:`TuneResult.privacy`."""
        return _refuse("guarantee")

    def summary(self, *, level: float = 0.95) -> str:  # noqa: ARG002  # of the same form as its base
        """Return a table of the parameters."""
        rows = [(name, f"{value:.4f}") for name, value in zip(self.names, self.params, strict=True)]
        banner = "" if self.private else "NOT PRIVATE (seeded)\n\n"
        return f"{banner}{format_facts(rows)}\n\n{textwrap.fill(f'No intervals: {_NOT_FRESH}.', 100)}"

    def to_json(self) -> str:
        """Not of the model alone; see :meth:`TuneResult.to_json`."""
        return _refuse("to_json")

    def __reduce__(self) -> tuple[Any, ...]:
        return SelectedFit, (self._record,)

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise InvalidInput(f"conf_int needs fresh noise, got a selected model: {_NOT_FRESH}")


def _refuse(name: str) -> NoReturn:
    raise InvalidInput(f"{name} must be that of the whole tuning (TuneResult.{name}), got that of a selected model")


def selected_fit(selection: Selection, noise: tuple[str, float, float], public: dict[str, Any]) -> SelectedFit:
    """Wrap the parameters that a selection released, with the law, scale and sensitivity of their noise."""
    law, scale, sensitivity = noise
    cost = next(iter(selection.budget.parameters().values()))
    return SelectedFit(
        FitRecord(
            hessian=None,
            gradient_cov=None,
            projection="none",
            noise_law=law,
            noise_scale=scale,
            noise_spectral_radius=0.0,
            steps=(Step("coefficients", law, cost, scale, None, sensitivity),),
            version=_core.__version__,
            **public,
        )
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TuneResult:
    """A tuned model: which candidate was chosen, its fit, and what both spent. Made by :func:`dpci.tuning.tune`.

    Attributes
    ----------
    params : dict
        The chosen candidate, as it was given (or what the public rule says).
    result : PrivateFit
        The fit at the chosen parameters, with the rest of the budget and fresh noise; with ``selection_share=1`` the
        model that was chosen, which has no intervals.
    budget : PureDP, ZCDP or ApproxDP
        What was asked for, choice and fit together.
    """

    params: dict[str, Any]
    result: PrivateFit
    budget: Budget
    selection: Selection | None
    """How the candidate was chosen; None for the public rule, which spends nothing on it."""

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
        """What choice and fit spent together: the budget."""
        return self.budget

    @property
    def private(self) -> bool:
        """Whether all noise came from the operating system; False for seeded tunings."""
        return self.result.private

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, what the choice and the fit spent, conditions."""
        selected = isinstance(self.result, SelectedFit)
        refit = None if selected else self.result.privacy
        conditions = [] if refit is None else list(refit["conditions"])
        if not self.private and refit is None:
            conditions.append("none: the noise is seeded, so whoever knows the seed can subtract it")
        if self.selection is not None:
            conditions.append("the candidates were chosen without looking at the data")
        if self.method == "repeat":
            conditions.append(_TIME)
        return {
            "private": self.private,
            "relation": "replace_one" if refit is None else refit["relation"],
            "notion": self.budget.notion,
            "budget": self.budget.parameters(),
            "spent": self.spent.parameters(),
            "method": self.method,
            "selection": None if self.selection is None else self.selection.to_dict(),
            "fit": refit,
            "conditions": conditions,
            "version": _core.__version__,
        }

    def summary(self, *, level: float = 0.95) -> str:
        """Return what was chosen and how, and the summary of the fit."""
        facts = [("chosen", ", ".join(f"{name}={value}" for name, value in _plain(self.params).items()))]
        if self.selection is None:
            facts.append(("method", "public rule: nothing is spent on the choice"))
        else:
            chosen = self.selection
            facts += [
                ("method", f"{chosen.method}, candidate {chosen.index} of {chosen.n_candidates} (from 0)"),
                ("validation loss", describe(chosen.loss)),
                ("spent on the choice", str(chosen.budget)),
            ]
        facts.append(("spent together", str(self.spent)))
        return f"{format_facts(facts)}\n\n{self.result.summary(level=level)}"

    def to_json(self) -> str:
        """Return the whole result as JSON: released and public values only, floats exactly."""
        fit = self.result
        values = {
            "schema": "dpci.TuneResult",
            "schema_version": 1,
            "params": _plain(self.params),
            "privacy": self.privacy,
            "fit": None if isinstance(fit, SelectedFit) else json.loads(fit.to_json()),
            "names": list(fit.names),
            "coefficients": fit.params.tolist(),
        }
        return json.dumps(values, allow_nan=False)

    def __repr__(self) -> str:
        seeded = "" if self.private else ", NOT PRIVATE (seeded)"
        return f"<TuneResult: {_plain(self.params)} by {self.method}, {self.spent}{seeded}>"


@dataclass(frozen=True, kw_only=True, eq=False)
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
        Standard errors of these averages.
    """

    params: dict[str, Any]
    index: int
    losses: NDArray[np.float64]
    std_errors: NDArray[np.float64]
    private: Literal[False] = False


def _plain(params: dict[str, Any]) -> dict[str, Any]:
    return {name: _plain_value(value) for name, value in params.items()}


def _plain_value(value: object) -> object:
    if isinstance(value, ObjectivePerturbation | OutputPerturbation):
        return _mechanism(value)
    if isinstance(value, Loss):
        return describe(declaration(value, value.to_core()))
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def _mechanism(mechanism: Mechanism) -> dict[str, Any]:
    return {"name": mechanism.name, **asdict(mechanism)}
