"""``KINDS``: the kinds of released results, and their files, read as whatever they hold."""

import contextlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, Final

from dpci.base.reading import open_at_once
from dpci.baselines.result import BaselineFit
from dpci.described.result import ReleasedSchema
from dpci.errors import InvalidInput
from dpci.model.result import PrivateFit
from dpci.multinomial.result import MultinomialFit
from dpci.per_instance.saved import SavedReport
from dpci.regression.matrix import MomentMatrix
from dpci.regression.result import LinearFit
from dpci.released.result import Result, Shown, name_of, shown_of
from dpci.strata.result import StrataFit
from dpci.tuning.result import TuneResult

KINDS: Final[dict[str, type[Result[Any]]]] = {
    name_of(kind): kind
    for kind in (
        PrivateFit,
        MultinomialFit,
        LinearFit,
        MomentMatrix,
        StrataFit,
        TuneResult,
        SavedReport,
        BaselineFit,
        ReleasedSchema,
    )
}
"""The kinds of released results by their names in a saved file."""
# The matrices of about 5,000 parameters.
_MOST: Final = 2**30


def load(path: "str | PathLike[str]") -> Result[Any]:
    """Load a saved result of any kind: what ``to_json(path)`` wrote.

    Parameters
    ----------
    path : path
        The file. One that names no other kind is read as a fit.

    Returns
    -------
    Result
        A result of the kind that was saved, such as :class:`dpci.PrivateFit`.

    Raises
    ------
    InvalidInput
        If the file cannot be read, is no saved result, or contradicts itself.

    Examples
    --------
    >>> import dpci
    >>> dpci.load("none.json")
    Traceback (most recent call last):
    ...
    dpci.errors.InvalidInput: a model must be a file that can be read, got 'none.json': No such file or directory
    """
    if not isinstance(path, str | PathLike):
        raise InvalidInput(f"path must name the file of a saved result, got {path!r}")
    path = Path(path)
    try:
        # A device has no end.
        with open_at_once(path) as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise InvalidInput(f"a model must be a file that can be read, got {str(path)!r}: {error.strerror}") from error
    if len(text) > _MOST:
        raise InvalidInput(f"a model must be a file of at most {_MOST:,} bytes, got {str(path)!r}")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # the reader says what is wrong
    kind = document.get("schema") if isinstance(document, dict) else None
    return (KINDS.get(kind, PrivateFit) if isinstance(kind, str) else PrivateFit).from_json(text)


def read_whole(path: Path) -> Shown:
    """Return what is shown of a file: of a moment matrix, the regression of its target on all columns."""
    found = shown_of(load(path))
    with _named(path):
        return found.whole()


def read_model(path: Path) -> Shown:
    """Return the model of a file, which predicts: of a tuning, that which was fitted with the choice."""
    found = shown_of(load(path))
    with _named(path):
        return found.model()


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what is refused of its kind."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{error}: {str(path)!r}") from error
