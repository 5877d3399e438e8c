"""Reads the text of a public data file into named columns."""

import gzip
import io
from importlib import resources
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE, Entry, Layout
from dpci.errors import InvalidInput

Table: TypeAlias = dict[str, NDArray[Any]]

MISSING = "?"


def entry(name: str) -> Entry:
    """Entry of the catalogue by name."""
    if name not in tuple(CATALOGUE):
        raise InvalidInput(f"a data set must be one of {list(CATALOGUE)}, got {name!r}")
    return CATALOGUE[name]


def load_layout(name: str) -> Layout:
    """Return which columns :func:`load_table` gives of a data set, which are numeric, and what the target is.

    Examples
    --------
    >>> import dpci
    >>> layout = dpci.datasets.load_layout("bank")
    >>> layout.target, layout.positive
    ('y', ('yes',))
    """
    return entry(name).layout


def load_table(name: str, split: str | None = None, *, drop_missing: bool = False, download: bool = True) -> Table:
    """Columns of a public data set as published, before any schema.

    Parameters
    ----------
    name : {"adult", "bank", "credit_default", "kddcup99"}
        The data set.
    split : str, optional
        "train", "test" or "all" for adult; the others have one file only. Default: the first file.
    drop_missing : bool
        Leave out rows with a missing value; their number is a fact about the data, here published.
    download : bool
        Whether a file that is not here may be fetched from its public address.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        Float64 where the layout says numeric, text otherwise; missing values stay ``?``.

    Raises
    ------
    InvalidInput
        There is no such data set or split.
    DatasetUnavailable
        A file is not here and cannot be fetched, or is not the published one.
    """
    source = entry(name)
    splits = [part for part, file in source.files.items() if file.sha256_of == "content"]
    if split is not None and split not in [*splits, "all"]:
        raise InvalidInput(f"split of {name} must be one of {[*splits, 'all']}, got {split!r}")
    wanted = splits if split == "all" else [split or splits[0]]
    parts = [parse(_files.read(source.files[part], download=download), source.layout) for part in wanted]
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts[1:] else parts[0]
    return without_missing(table) if drop_missing else table


def load_sample_table() -> Table:
    """Return the columns of the packaged sample of Adult: 4,000 people, one array for each column.

    Examples
    --------
    >>> import dpci
    >>> people = dpci.datasets.load_sample_table()
    >>> len(people["age"]), str(people["sex"][0])
    (4000, 'Male')
    """
    packed = resources.files(__package__).joinpath("adult_sample.csv.gz").read_bytes()
    _, _, lines = gzip.decompress(packed).partition(b"\n")
    return parse(lines, CATALOGUE["adult"].layout)


def parse(content: bytes, layout: Layout) -> Table:
    """Columns of a delimited text, by NumPy's C reader: half a million lines in about two seconds."""
    types = [(name, np.float64 if name in layout.numeric else f"U{layout.width}") for name in layout.columns]
    # Adult separates by comma and space; the reader knows single characters only.
    text = content.decode("utf-8").replace(f"{layout.delimiter} ", layout.delimiter)
    lines = np.loadtxt(
        io.StringIO(text),
        dtype=np.dtype(types),
        delimiter=layout.delimiter,
        comments=layout.comment,
        skiprows=int(layout.has_header),
        quotechar='"',
        ndmin=1,
    )
    return {name: np.ascontiguousarray(lines[name]) for name in layout.columns}


def without_missing(table: Table) -> Table:
    """Rows without the mark ``?``: a rule about one row at a time, known before the data."""
    complete = np.ones(len(next(iter(table.values()))), dtype=np.bool_)
    for column in table.values():
        if column.dtype.kind == "U":
            complete &= column != MISSING
    return {name: column[complete] for name, column in table.items()}
