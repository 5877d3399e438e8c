"""Facts of a released result: what is public about it, and what its guarantee is."""

from typing import Any, Generic, TypeVar

from dpci.accounting.guarantee import Guarantee
from dpci.budgets import GaussianBudget
from dpci.released.record import Record
from dpci.schema.table import Schema

# A regression from a moment matrix has its formula, loss and λ after the release, at no cost.
CHOSEN_OF_MATRIX = ("budget", "bounds", "categories", "columns")
CHOSEN = (*CHOSEN_OF_MATRIX, "classes", "formula", "loss", "mechanism", "λ", "radius", "split")
"""Choices that must not depend on the data, as pages and reports list it; a source is asked for each."""

AnyRecord = TypeVar("AnyRecord", bound=Record)
AnyBudget = TypeVar("AnyBudget", bound=GaussianBudget | None)


class PublicFacts(Generic[AnyRecord, AnyBudget]):
    """Public facts of a released model or matrix."""

    __slots__ = ()

    @property
    def _release(self) -> AnyRecord:
        """The record of the release behind it."""
        raise NotImplementedError

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._release.n_samples

    @property
    def private(self) -> bool:
        """Whether noise from the operating system protects the data: False for seeded noise and for none."""
        return self._release.private

    @property
    def schema(self) -> Schema | None:
        """The public schema by which the table was encoded; None if the caller passed encoded rows."""
        return self._release.table

    @property
    def budget(self) -> AnyBudget:
        """The budget that was asked for, such as :class:`dpci.PureDP`; None for a model that is not private."""
        return self._release.budget  # type: ignore[return-value]  # that of the kind

    @property
    def spent(self) -> AnyBudget:
        """Budget that the release spent, in the notion of the budget; never more than the budget."""
        return self._release.spent  # type: ignore[return-value]  # as above


class ReleaseFacts(PublicFacts[AnyRecord, AnyBudget]):
    """Public facts of a release with its guarantee."""

    __slots__ = ()

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        return self._release.privacy

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for seeded noise.

        Raises
        ------
        InvalidInput
            For a model that is not private.
        """
        return self._release.guarantee()
