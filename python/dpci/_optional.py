"""The one way in which a package that dpci works without is imported: where it is used, or named with its extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from dpci.errors import DpciError


@contextmanager
def optional(package: str, *, extra: str, what: str) -> Iterator[None]:
    """Turn a missing package into an error that says what to install; import inside the ``with`` block.

    Parameters
    ----------
    package : str
        Name under which it is imported.
    extra : str
        The extra of dpci that installs it.
    what : str
        What needs it, as the beginning of a sentence in the singular.

    Raises
    ------
    DpciError
        If the package is not installed. An installed one that fails to import raises what it raises itself.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise DpciError(f"{what} needs {package}: pip install 'dpci[{extra}]'") from error
