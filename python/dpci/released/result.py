"""``Result``: what every kind of released result does with its record, and ``Shown``, what commands do with it."""

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

from dpci.base.codec import Saved
from dpci.budgets import GaussianBudget
from dpci.data.arrays import NamedRows
from dpci.errors import InvalidInput
from dpci.schema.table import Schema
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, short_form

SavedRecord = TypeVar("SavedRecord", bound=Saved)


class Result(Displayed, Generic[SavedRecord]):
    """A released result: a record of released and public values, which is saved, read, pickled and shown.

    A kind names the class of its record, says how commands show it, and adds its own facts and methods.
    """

    __slots__ = ()

    _RECORD: ClassVar[type[Saved]]
    """Class of the record, whose ``KIND`` is the name of the kind in a saved file."""
    _SHOWN: ClassVar[type["Shown"]]
    """Class of a result as commands show it."""
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
    def summary(self) -> str:
        """Return a text that states the result and its cost."""

    def _statement(self) -> Any:  # noqa: ANN401  # of a room that is built on this one
        """Return what an approver must know of it."""
        raise refused("a release that can be approved", self)

    @abstractmethod
    def _short(self) -> tuple[str, ...]:
        """Return the facts of the short form."""

    def _document(self) -> Document:
        return Document(title=repr(self), parts=[])

    def to_json(self, path: "str | PathLike[str] | None" = None) -> str:
        """Return the whole result as JSON: released and public values only, floats exactly.

        Parameters
        ----------
        path : path, optional
            File to write the text to as well, in UTF-8; one that exists is replaced.

        Raises
        ------
        OSError
            If it cannot be written.
        """
        text = self._record.to_json()
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Rebuild a result from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not a saved result of this kind, of another schema version, or contradicts itself.
        """
        return cls(cls._RECORD.from_json(text))  # type: ignore[call-arg]  # every kind is made of its record

    @property
    def digest(self) -> str:
        """SHA-256 of all that :meth:`to_json` says, which is the checksum in it; the ledger that paid holds it too."""
        return self._record.digest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)

    def __repr__(self) -> str:
        return short_form(self, *self._short(), private=self.private or self.spent is None)


class Shown:
    """A released result as commands show it; a kind says what it has besides a summary, a page and a plot."""

    PREDICTS: ClassVar[bool] = False
    """Whether it is a model, which predicts and is compared."""
    result: Any

    def __init__(self, result: Any) -> None:  # noqa: ANN401  # of the kind
        self.result = result

    @property
    def what(self) -> str:
        """The kind, in words."""
        return what_of(self.result)

    @property
    def options(self) -> set[str]:
        """The names of what a summary may be given, such as a level; the same hold for a page and a plot."""
        return set(inspect.signature(self.result.summary).parameters) - {"full"}

    @property
    def hidden(self) -> str | None:
        """The reason if noise hides all estimates, so that there are no plot and no page; otherwise None."""
        return None

    def keywords(self, view: Any) -> dict[str, Any]:  # noqa: ANN401  # a View, of a room that is built on this one
        """Return the parts of a view that the kind has."""
        return {name: value for name, value in vars(view).items() if name in self.options}

    def text(self, view: Any, *, full: bool = False) -> str:  # noqa: ANN401  # as above
        """Return the summary, in full if that is asked for and the kind has more than its answer."""
        more = {"full": full} if "full" in inspect.signature(self.result.summary).parameters else {}
        return str(self.result.summary(**self.keywords(view), **more))

    def page(self, view: Any, title: str | None) -> str:  # noqa: ANN401  # as above
        """Return the page."""
        if (written := getattr(self.result, "to_html", None)) is None:
            raise refused("a result with a page", self.result)
        return str(written(**self.keywords(view), title=title))

    def document(self, view: Any, *, full: bool = False) -> Document:  # noqa: ANN401, ARG002  # as above
        """Return the summary of a model as a document."""
        raise refused("a model that predicts", self.result)

    def sheet(self, view: Any, **given: Any) -> Document:  # noqa: ANN401, ARG002  # as above
        """Return the page of a model as a document; ``given`` are its title, sections before, the hash of its file."""
        raise refused("a model with a page", self.result)

    def numbers(self, view: Any) -> dict[str, Any]:  # noqa: ANN401, ARG002  # as above
        """Return the facts of the summary for programs to read."""
        raise refused("estimates", self.result)

    def whole(self) -> "Shown":
        """Return what is shown of a file."""
        return self

    def model(self) -> "Shown":
        """Return the model in a file, which predicts and is compared."""
        if not self.PREDICTS:
            raise refused("a model that predicts", self.result)
        return self

    def earlier(self) -> "Result[Any]":
        """Return the release whose matrices a plan may be made with."""
        return cast("Result[Any]", self.model().result)

    def encoding(self, given: Schema | None) -> Schema:
        """Return the schema that encodes tables for the model; ``given`` is that of the caller for encoded rows."""
        if (known := self.result.schema or given) is None:
            raise InvalidInput("--schema must be given for a model that holds no schema, got none")
        return cast("Schema", known)

    @property
    def probabilities(self) -> tuple[str, ...]:
        """The names of the columns of probabilities."""
        return ("probability",)

    def predicted(self, rows: NamedRows, schema: Schema) -> list[Any]:  # noqa: ARG002  # of models of encoded rows
        """Return predictions as the table has its target: as labels, and in its units."""
        return list(self.result.predict(rows).tolist())

    def probable(self, rows: NamedRows) -> Sequence[list[float]]:
        """Return the columns of probabilities."""
        return cast("list[list[float]]", self.result.predict_proba(rows).T.tolist())


def what_of(result: "Result[Any] | type[Result[Any]]") -> str:
    """Return the kind of a result, in words."""
    return result._RECORD.WHAT  # noqa: SLF001  # of this module's own class


def name_of(kind: "type[Result[Any]]") -> str:
    """Return the name of a kind in a saved file."""
    return kind._RECORD.KIND  # noqa: SLF001  # as above


def shown_of(result: "Result[Any]") -> Shown:
    """Return a result as commands show it."""
    return result._SHOWN(result)  # noqa: SLF001  # as above


def refused(wanted: str, result: "Result[Any]") -> InvalidInput:
    """Return the error of a file that holds another kind than a command takes."""
    return InvalidInput(f"the file must hold {wanted}, got {what_of(result)}")
