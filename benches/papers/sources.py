"""The sources of the experiments' rows: the public data sets, and the user's extracts of IPUMS."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpci.datasets import Layout, load_layout, load_table
from dpci.errors import InvalidInput
from papers.files import Table
from papers.ipums import read_ipums
from papers.scaling import scale_by_the_data
from papers.wang.experiments import TITLES, Prepared

_EXTRACTS = ("us", "br")


@dataclass(frozen=True)
class Sources:
    """The data sets by name. Each is parsed once.

    Parameters
    ----------
    us, br : Path, optional
        Files of the user's extracts of IPUMS, see :func:`papers.ipums.read_ipums`.
    """

    us: Path | None = None
    br: Path | None = None
    _parsed: dict[str, tuple[Table, Layout]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def has(self, name: str) -> bool:
        """Whether a data set is public or was named by the user."""
        return name not in _EXTRACTS or self.file(name) is not None

    def file(self, name: str) -> Path | None:
        """Return the user's file of a data set; None if the data set is public or no file was named."""
        return {"us": self.us, "br": self.br}.get(name)

    def rows(self, wanted: Prepared) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows and targets of an experiment, scaled as in the paper; all rows of a user's file with fewer rows.

        Raises
        ------
        InvalidInput
            If no file was named for an extract, or if its file has a different layout or too few columns.
        DatasetUnavailable
            The file of a public data set is not available.
        """
        n = wanted.n if self.file(wanted.dataset) is None else min(wanted.n, self.n_rows(wanted.dataset))
        X, y, _ = self._scaled(wanted.dataset, n, wanted.d)
        return X, y

    def all_columns(self, name: str, n: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the first n rows with all columns, scaled as for :meth:`rows`, and the targets; errors as there."""
        X, y, _ = self._scaled(name, n, None)
        return X, y

    def n_rows(self, name: str) -> int:
        """Return the number of rows of a data set; errors as for :meth:`rows`."""
        table, layout = self.table(name)
        return len(table[layout.target])

    def columns(self, name: str, d: int) -> tuple[str, ...]:
        """Return the names of the first d columns, without the column of ones; errors as for :meth:`rows`."""
        _, _, names = self._scaled(name, 1, d)
        return names[:d]

    def table(self, name: str) -> tuple[Table, Layout]:
        """Columns of a data set before any scaling, complete rows only; errors as for :meth:`rows`."""
        if name not in self._parsed:
            self._parsed[name] = self._parse(name)
        return self._parsed[name]

    def _scaled(
        self, name: str, n: int, d: int | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], tuple[str, ...]]:
        table, layout = self.table(name)
        try:
            return scale_by_the_data(table, layout, n, d)
        except InvalidInput as error:
            path = self.file(name)
            if path is None:
                raise
            msg = f"{path} must give at least {d} columns, one for each number and each category: {error}"
            raise InvalidInput(msg) from error

    def _parse(self, name: str) -> tuple[Table, Layout]:
        if name not in _EXTRACTS:
            return load_table(name, drop_missing=True), load_layout(name)
        path = self.file(name)
        if path is None:
            msg = (
                f"{TITLES[name]} may not be redistributed: --{name} must name your extract, a CSV file with the "
                "target in the last column (docs/public_data.md); got none"
            )
            raise InvalidInput(msg)
        return read_ipums(path)
