"""``Result``: what every kind of released result does with its record."""

from abc import abstractmethod
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from dpci.base.codec import Saved
from dpci.budgets import GaussianBudget
from dpci.shown.document import short_form

SavedRecord = TypeVar("SavedRecord", bound=Saved)


class Result(Generic[SavedRecord]):
    """A released result: a record of released and public values, which is saved, read, pickled and shown.

    A kind names the class of its record, and adds its own facts and methods.
    """

    __slots__ = ()

    _RECORD: ClassVar[type[Saved]]
    """Class of the record, whose ``KIND`` is the name of the kind in a saved file."""
    _record: SavedRecord

    @property
    @abstractmethod
    def private(self) -> bool:
        """Whether noise from the operating system protects the data: False for seeded noise and for none."""

    @property
    @abstractmethod
    def spent(self) -> GaussianBudget | None:
        """Budget that was spent; None for a model that is not private."""

    @abstractmethod
    def _short(self) -> tuple[str, ...]:
        """Return the facts of the short form."""

    @classmethod
    def _of(cls, record: SavedRecord) -> Self:
        """Return the result of a record that was read."""
        return cls(record)  # type: ignore[call-arg]  # every kind is made of its record

    def to_json(self) -> str:
        """Return the whole result as JSON: released and public values only, floats exactly."""
        return self._record.to_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild a result from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not a saved result of this kind, of another schema version, or contradicts itself.
        """
        return cls._of(cast("SavedRecord", cls._RECORD.from_json(text)))

    @property
    def digest(self) -> str:
        """SHA-256 of all that :meth:`to_json` says, which is the checksum in it; the ledger that paid holds it too."""
        return self._record.digest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return short_form(self, *self._short(), private=self.private or self.spent is None)
