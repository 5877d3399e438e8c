"""How a candidate was chosen and what that cost: public values only, and their JSON form."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dpci import _core
from dpci.accounting.costs import Seal, seals_from
from dpci.base.codec import Rule
from dpci.base.validation import broken, check_choice, check_count, check_not_negative, check_positive
from dpci.budgets import Budget, read_budget, saved_budget
from dpci.errors import InvalidInput
from dpci.losses import SEVERAL, Loss, declaration, from_declaration
from dpci.multinomial.record import check_declared

Method: TypeAlias = Literal["repeat", "chunks", "public_rule"]
METHODS: tuple[Method, ...] = ("repeat", "chunks", "public_rule")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_COMPOSITION = {"chunks": "parallel parts", "repeat": "best of a random number of runs"}


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
    candidates: tuple[dict[str, Any], ...]
    """The public list, each candidate as it was given."""

    @property
    def place(self) -> str:
        """The place of the chosen candidate in the list, in words."""
        many = f"{self.n_candidates} candidates"
        if self.n_candidates == 1:
            return "the only candidate"
        return (
            f"the {_ORDINALS[self.index]} of {many}"
            if self.index < len(_ORDINALS)
            else f"number {self.index + 1} of {many}"
        )

    @classmethod
    def from_facts(
        cls,
        facts: "_core.TuningFacts",
        *,
        method: Method,
        index: int,
        candidates: Sequence[dict[str, Any]],
        budget: Budget,
        loss: Loss,
    ) -> "Selection":
        """Build the record from what the core calibrated, leaving out what the method does not have."""
        known: dict[str, Any] = {name: value for name, value in facts.items() if value is not None}
        known["score_seal"] = [seal.to_dict() for seal in seals_from(facts["score_seal"])]
        declared, listed = declaration(loss, loss.to_core()), tuple(candidates)
        return cls(method, index, len(listed), budget, declared, known, listed)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "index": self.index,
            "n_candidates": self.n_candidates,
            "candidates": copy.deepcopy(list(self.candidates)),
            "budget": self.budget.parameters(),
            "composition": _COMPOSITION[self.method],
            "validation_loss": copy.deepcopy(self.loss),
            **copy.deepcopy(self.facts),
        }

    def to_saved(self) -> dict[str, Any]:
        """Return the record as a file holds it: with the method, and the notion of the budget."""
        return {"method": self.method, **self.to_dict(), "budget": saved_budget(self.budget)}

    @classmethod
    def from_saved(cls, name: str, values: Mapping[str, Any]) -> "Selection":
        """Rebuild the record from :meth:`to_saved`, refusing what no selection leaves behind."""
        chosen: Method = check_choice("method", values["method"], ("repeat", "chunks"))
        n_candidates = check_count("n_candidates", values["n_candidates"])
        index = check_count("index", values["index"], least=0)
        if index >= n_candidates:
            raise InvalidInput(f"index must be below n_candidates={n_candidates}, got index={index}")
        declared = values["validation_loss"]
        if declared["name"] == SEVERAL:
            check_declared("loss", declared)
        else:
            loss = from_declaration(declared)
            if loss is None or declaration(loss, loss.to_core()) != declared:
                raise InvalidInput(f"validation_loss must be that of a built-in loss, got {declared!r}")
        rules = {**_RULES, **_RULES_OF[chosen]}
        facts = {name: rule(name, values[name]) for name, rule in rules.items()}
        n_parts = len(facts.get("chunk_sizes", ())) or n_candidates + 1
        if len(facts["radii"]) != n_candidates or n_parts != n_candidates + 1:
            raise InvalidInput(f"radii and chunk_sizes must fit n_candidates={n_candidates}, got {facts!r}")
        if [seal["release"] for seal in facts["score_seal"]] != ["score"] * (chosen == "repeat"):
            raise InvalidInput(f"score_seal must seal the scores of repeated runs alone, got {facts['score_seal']!r}")
        budget = read_budget("budget", values["budget"])
        listed = _check_candidates(values["candidates"], n_candidates)
        found = cls(chosen, index, n_candidates, budget, dict(declared), facts, listed)
        if found.to_saved() != values:
            raise InvalidInput(f"{name} must say the same in all its fields, got a contradiction or a field too many")
        return found


def _check_candidates(value: object, n_candidates: int) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or any(not isinstance(one, dict) for one in value):
        raise broken("candidates", "a list of objects", value)
    if len(value) != n_candidates:
        raise InvalidInput(f"candidates must be as many as n_candidates={n_candidates}, got {len(value)}")
    return tuple(value)


def _check_budget(name: str, value: object) -> dict[str, float]:
    if not isinstance(value, dict) or set(value) not in ({"epsilon"}, {"rho"}, {"epsilon", "delta"}):
        raise InvalidInput(f"{name} must hold the numbers of a budget, got {name}={value!r}")
    return {key: check_positive(f"{name}.{key}", number) for key, number in value.items()}


def _check_noise(name: str, value: object) -> str:
    return check_choice(name, value, ("gumbel", "laplace", "gaussian"))


def _list_of(rule: Rule) -> Rule:
    def check(name: str, value: object) -> list[Any]:
        if not isinstance(value, list):
            raise broken(name, "a list", value)
        return [rule(name, entry) for entry in value]

    return check


_check_seal = _list_of(lambda _, seal: Seal.from_dict(seal).to_dict())
_RULES: dict[str, Rule] = {
    "model_budget": _check_budget,
    "score_budget": _check_budget,
    "radii": _list_of(check_positive),
    "score_noise": _check_noise,
    "score_scale": check_positive,
    "score_sensitivity": check_positive,
}
_RULES_OF: dict[Method, dict[str, Rule]] = {
    "chunks": {"chunk_sizes": _list_of(check_count), "score_seal": _check_seal},
    "repeat": {
        "score_seal": _check_seal,
        "expected_runs": check_positive,
        "greatest_runs": check_count,
        "shape": check_not_negative,
    },
}
