"""A table of one file, whole, as the readers of batches give it."""

from pathlib import Path

from dpci.sources.files import Columns, read_batches


def read_table(path: Path) -> Columns:
    """Columns of a file as one batch."""
    (table,) = read_batches(path, n_rows=None)
    return table
