"""Loads public data sets as rows bounded by their public schemas."""

from dataclasses import dataclass, field
from importlib import resources
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dpci.datasets._catalogue import CATALOGUE, KDDCUP99
from dpci.datasets._tables import Table, load_sample_table, load_table, without_missing
from dpci.errors import InvalidInput
from dpci.schema import Schema


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows ready for `dpci.fit`, and what is public about them.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Float64, C-contiguous, every row of norm at most 1.
    y : ndarray of shape (n,)
        -1 and 1.
    names : tuple of str
        Names of the columns of X.
    schema : Schema or None
        The public description by which the rows were made; None where they were scaled by the data themselves.
    licence : str
        Terms of use and attribution.
    """

    X: NDArray[np.float64] = field(repr=False)
    y: NDArray[np.float64] = field(repr=False)
    names: tuple[str, ...]
    schema: Schema | None = field(repr=False)
    licence: str


def schema_names() -> tuple[str, ...]:
    """Names of the packaged schemas."""
    folder = resources.files(__package__).joinpath("schemas")
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


def load_schema(name: str) -> Schema:
    """Return a packaged public schema: "adult", "adult_demo", "bank", "credit_default" or "kddcup99"."""
    if name not in schema_names():
        msg = f"a packaged schema must be one of {list(schema_names())}, got {name!r}"
        raise InvalidInput(msg)
    with resources.as_file(resources.files(__package__).joinpath("schemas", f"{name}.toml")) as path:
        return Schema.from_file(path)


def load_adult(
    split: Literal["train", "test", "all"] = "train", *, drop_missing: bool = True, download: bool = True
) -> Dataset:
    """Adult census extract; positive: an income above 50,000 dollars.

    Parameters
    ----------
    split : {"train", "test", "all"}
        The published halves of 32,561 and 16,281 rows, or both.
    drop_missing : bool
        Leave out rows with a missing value, which leaves 30,162 and 15,060. Otherwise a missing value gives zeros. The
        rule looks at one row at a time, but the number of rows that are left is a fact about the data, here published.
    download : bool
        Whether a file that is not here may be fetched.

    Returns
    -------
    Dataset

    Raises
    ------
    DatasetUnavailable
        The file is not here and cannot be fetched, or is not the published one.
    """
    table = load_table("adult", split, download=download)
    return _dataset("adult", without_missing(table) if drop_missing else table)


def load_adult_sample(schema: str = "adult_demo") -> Dataset:
    """4,000 complete rows of Adult that come with the package; ``schema`` is "adult_demo" (6 columns) or "adult"."""
    return _dataset("adult", load_sample_table(), schema)


def load_bank(*, download: bool = True) -> Dataset:
    """Bank Marketing, 45,211 rows by date; positive: the client subscribed. Errors as in `load_adult`."""
    return _dataset("bank", load_table("bank", download=download))


def load_credit_default(*, download: bool = True) -> Dataset:
    """Default of Credit Card Clients, 30,000 rows; positive: default next month. Errors as in `load_adult`."""
    return _dataset("credit_default", load_table("credit_default", download=download))


def load_kddcup99(*, percent10: bool = True, download: bool = True) -> Dataset:
    """KDD Cup 1999, the 10% file of 494,021 rows by time (482 MB as rows); positive: a normal connection.

    The full file (``percent10=False``) is not supported: no checksum of its content is at hand. Errors as in
    `load_adult`.
    """
    if not percent10:
        msg = "percent10 must be True: only the 10% file is in the catalogue, got percent10=False"
        raise InvalidInput(msg)
    return _dataset(KDDCUP99.name, load_table(KDDCUP99.name, download=download))


def _dataset(name: str, table: Table, schema_name: str | None = None) -> Dataset:
    schema = load_schema(schema_name or name)
    X, y, names = schema.transform(table)
    source = CATALOGUE[name]
    return Dataset(X=X, y=y, names=names, schema=schema, licence=f"{source.licence}: {source.citation}")
