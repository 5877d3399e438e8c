"""Where the rows of an experiment come from: the public data sets, and the user's extracts of IPUMS."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpci.datasets import load_table
from dpci.datasets._catalogue import CATALOGUE, Layout
from dpci.datasets._paper import scale_by_the_data
from dpci.datasets._tables import Table, without_missing
from dpci.errors import InvalidInput
from dpci.reproduce.experiments import TITLES, Rows
from dpci.reproduce.ipums import LAYOUT, read_ipums


@dataclass(frozen=True)
class Sources:
    """The data sets by name; each is parsed once.

    Parameters
    ----------
    us, br : Path, optional
        The user's extracts of IPUMS, see :func:`dpci.reproduce.ipums.read_ipums`.
    """

    us: Path | None = None
    br: Path | None = None
    _parsed: dict[str, tuple[Table, Layout]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def has(self, name: str) -> bool:
        """Whether a data set is public or was named by the user."""
        return name in CATALOGUE or self._file(name) is not None

    def rows(self, wanted: Rows) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows and targets of an experiment, scaled as in the paper; a user's file with fewer rows gives all it has.

        Raises
        ------
        InvalidInput
            The data set is an extract that was not named, or its file has another layout or too few columns.
        DatasetUnavailable
            The file of a public data set is not to be had.
        """
        table, layout = self.table(wanted.dataset)
        path = self._file(wanted.dataset)
        if path is None:
            X, y, _ = scale_by_the_data(table, layout, wanted.n, wanted.d)
            return X, y
        n_rows = len(table[layout.target])
        try:
            X, y, _ = scale_by_the_data(table, layout, min(wanted.n, n_rows), wanted.d)
        except InvalidInput as error:
            msg = f"{path} must give at least {wanted.d} columns, one for each number and each category: {error}"
            raise InvalidInput(msg) from error
        return X, y

    def table(self, name: str) -> tuple[Table, Layout]:
        """Columns of a data set before any scaling, complete rows only; errors as for :meth:`rows`."""
        if name not in self._parsed:
            self._parsed[name] = self._parse(name)
        return self._parsed[name]

    def _parse(self, name: str) -> tuple[Table, Layout]:
        if name in CATALOGUE:
            return without_missing(load_table(name)), CATALOGUE[name].layout
        path = self._file(name)
        if path is None:
            msg = (
                f"{TITLES[name]} may not be redistributed: --{name} must name your extract, {LAYOUT} "
                "(docs/tables.md); got none"
            )
            raise InvalidInput(msg)
        return read_ipums(path)

    def _file(self, name: str) -> Path | None:
        return {"us": self.us, "br": self.br}.get(name)
