"""Plans side by side: domains of rows, notions of privacy and mechanisms in one table, before any data are seen."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from dpci.base.validation import broken
from dpci.budgets import Budget, check_budget
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.mechanisms import Mechanism, MechanismLike, ObjectivePerturbation, check_mechanism
from dpci.model.keywords import KEYWORDS, UNIT_KEYWORDS, check_keywords, n_planned_columns, planned_unit
from dpci.model.plan import Plan, plan
from dpci.model.result import PrivateFit
from dpci.rows import Ball, Blocks, RowDomain, RowsLike, read_rows
from dpci.schema.table import Schema
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Facts, Table
from dpci.shown.text import as_text

__all__ = ["PlanEntry", "PlanTable", "plan_table"]

Domains: TypeAlias = RowsLike | Sequence[float | RowDomain]

_NAMED = ("budget", "mechanism", "rows", "l2_strength")


@dataclass(frozen=True)
class PlanEntry:
    """One combination of a :class:`PlanTable`, with its plan, or with the reason why there is none.

    Attributes
    ----------
    rows : Ball or Blocks of dpci.rows
        Domain of the rows.
    budget : PureDP, ZCDP or ApproxDP
        The budget.
    mechanism : ObjectivePerturbation or OutputPerturbation
        The mechanism.
    plan : Plan or None
        Plan of :func:`dpci.plan`.
    refusal : str or None
        Why a fit would be refused.
    """

    rows: RowDomain
    budget: Budget
    mechanism: Mechanism
    plan: Plan | None
    refusal: str | None


@dataclass(frozen=True, repr=False)
class PlanTable(Displayed):
    """Plans of one fit for several domains of rows, budgets and mechanisms; computed without data.

    Attributes
    ----------
    entries : tuple of PlanEntry
        All combinations, ordered by domain, then by budget, then by mechanism.
    title : str
        Settings that all entries have in common.
    """

    entries: tuple[PlanEntry, ...]
    title: str

    def summary(self) -> str:
        """Return the table: law and standard deviation of the coefficients' noise, and what it does to an interval."""
        return as_text(self._document())

    def _document(self) -> Document:
        domains = list(dict.fromkeys(entry.rows for entry in self.entries))
        lines = [[_name(entry.rows, domains), str(entry.budget), *_cells(entry)] for entry in self.entries]
        header = ["rows", "budget", "mechanism", "noise", "in the", "std dev", "95% length from noise"]
        if any(entry.plan is not None and entry.plan.interval_length is not None for entry in self.entries):
            header.append("expected length")
            lines = [[*line, _expected(entry)] for line, entry in zip(lines, self.entries, strict=True)]
        legend = [(_name(domain, domains), str(domain)) for domain in domains]
        refusals = dict.fromkeys(entry.refusal for entry in self.entries if entry.refusal is not None)
        refused = [("refused", reason) for reason in refusals]
        return Document(title=self.title, parts=[Table(header, lines), Facts([*legend, *refused])])

    def __repr__(self) -> str:
        return self.summary()


def plan_table(
    *,
    n_samples: int,
    n_features: int | None = None,
    schema: Schema | None = None,
    l2_strength: float | Literal["auto"] = "auto",
    budgets: Budget | Sequence[Budget],
    rows: Domains | None = None,
    mechanisms: MechanismLike | Sequence[MechanismLike] = ("objective", "output"),
    like: PrivateFit | None = None,
    **keywords: Any,  # noqa: ANN401  # those of plan, which checks them
) -> PlanTable:
    """Compare what a fit would cost with several domains of rows, notions of privacy and mechanisms, without data.

    Everything follows from public values, so a choice that is made on the table costs nothing.

    Parameters
    ----------
    n_samples, n_features, schema, l2_strength
        See :func:`dpci.plan`.
    budgets : budget or sequence of budgets
        For example ``(dpci.PureDP(1.0), dpci.ZCDP(0.1), dpci.ApproxDP(1.0, 1e-6))``. Notions are not ranked: they
        promise different things.
    rows : domain or sequence of domains of dpci.rows, optional
        Blocks alone are compared with the ball around them; None: those of the schema, or else the ball of norm 1.
    mechanisms : mechanism or sequence of mechanisms
        Names, or objects that also name the noise.
    like : PrivateFit, optional
        See :func:`dpci.plan`: an earlier fit of similar data, whose matrices predict the lengths of the intervals.
    **keywords
        Keywords of :func:`dpci.plan` that all entries have in common.

    Returns
    -------
    PlanTable
        An entry for each combination; one that a fit would refuse has the reason in place of a plan.

    Raises
    ------
    InvalidInput
        For arguments out of range, and where every combination is refused.

    Examples
    --------
    >>> import dpci
    >>> rows = dpci.rows.Blocks([1.0, 1.0], groups=[(range(2, 6), 1.0)])
    >>> budgets = (dpci.PureDP(1.0), dpci.ZCDP(0.1))
    >>> table = dpci.plan_table(n_samples=4000, n_features=6, budgets=budgets, rows=rows, l2_strength=0.05)
    >>> len(table.entries)
    8
    """
    allowed = [name for name in (*KEYWORDS, *UNIT_KEYWORDS) if name not in _NAMED]
    check_keywords("plan_table", keywords, allowed=allowed, required=())
    common: dict[str, Any] = dict(keywords)
    common["persons"] = planned_unit(schema, common.get("persons"))
    n_features = n_planned_columns(n_features, schema)
    domains = _domains(schema.rows if schema is not None and rows is None else rows)
    one_budget = [check_budget(budget) for budget in _several("budgets", budgets)]
    kinds = [check_mechanism(mechanism) for mechanism in _several("mechanisms", mechanisms)]
    for domain in domains:
        domain.check_columns(n_features)
    entries = []
    for domain in domains:
        for budget in one_budget:
            for mechanism in kinds:
                found, refusal = None, None
                try:
                    found = plan(
                        n_samples=n_samples,
                        n_features=n_features,
                        l2_strength=l2_strength,
                        like=like,
                        **common,
                        budget=budget,
                        mechanism=mechanism,
                        rows=domain,
                    )
                except (InvalidInput, RegularizationTooSmall) as error:
                    refusal = str(error)
                entries.append(PlanEntry(domain, budget, mechanism, found, refusal))
    if all(entry.plan is None for entry in entries):
        raise InvalidInput(f"a plan table must have a combination that is offered, got none: {entries[0].refusal}")
    unit = "" if all(entry.plan is None or entry.plan.persons is None for entry in entries) else " persons"
    strength = "recommended lambdas" if isinstance(l2_strength, str) else f"lambda={l2_strength:g}"
    title = f"Plans: n={n_samples:,}{unit}, {n_features} columns, {strength}"
    return PlanTable(tuple(entries), title)


def _several(name: str, value: Any) -> list[Any]:  # noqa: ANN401  # one object, or several
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [value]
    several = list(value)
    if not several:
        raise InvalidInput(f"{name} must hold at least one, got none")
    return several


def _domains(rows: Domains | None) -> list[RowDomain]:
    given = [read_rows(domain) for domain in _several("rows", rows)]
    if any(each.on_violation == "weight" for each in given):
        raise broken("rows", "domains of a plan table, without weights (dpci.plan takes these)", rows)
    domain, *others = domains = [each.domain or Ball() for each in given]
    return [domain, Ball(domain.norm)] if isinstance(domain, Blocks) and not others else domains


def _name(domain: RowDomain, domains: Sequence[RowDomain]) -> str:
    """Return a short name: the kind, with a number where there are several of it."""
    kind = "ball" if isinstance(domain, Ball) else "blocks"
    alike = [other for other in domains if isinstance(other, type(domain))]
    return kind if len(alike) == 1 else f"{kind} {alike.index(domain) + 1}"


def _cells(entry: PlanEntry) -> list[str]:
    mechanism: str = entry.mechanism.name
    if isinstance(entry.mechanism, ObjectivePerturbation) and entry.mechanism.variant != "standard":
        mechanism += f" {entry.mechanism.variant}"
    if entry.plan is None:
        return [mechanism, "refused", "", "", ""]
    found = entry.plan
    place = "gradient" if entry.mechanism.name == "objective" else "parameters"
    law = found.steps[0].noise.replace("_", " ")
    return [mechanism, law, place, _range(found.noise_std_devs), _range(found.privacy_length)]


def _expected(entry: PlanEntry) -> str:
    length = None if entry.plan is None else entry.plan.interval_length
    return "" if length is None else f"{length:.3g}"


def _range(values: Sequence[float]) -> str:
    """Return one number where all are the same, otherwise the smallest and the largest."""
    least, greatest = min(values), max(values)
    if math.isclose(least, greatest, rel_tol=1e-9):
        return f"{least:.3g}"
    return f"{least:.3g} to {greatest:.3g}"
