"""The one way in which a package that dpci works without is imported: where it is used, or named with its extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from dpci.errors import DpciError, MissingExtra


class MissingModule(DpciError, AttributeError):
    """A module of dpci that needs such a package was asked for as an attribute, which ``hasattr`` has to understand."""

    code = MissingExtra.code
    extra: str | None = None


@contextmanager
def optional(package: str, *, extra: str, what: str, name: str | None = None) -> Iterator[None]:
    """Turn a package that is missing, or too old, into an error that says what to install; import inside the block.

    Any other import that fails raises its own error. ``what`` needs the package, as the beginning of a sentence in the
    singular, and ``name`` is what it calls it.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        message = f"{what} needs {name or package}: pip install 'dpci[{extra}]'"
        raise MissingExtra(message, name=package, extra=extra) from error
