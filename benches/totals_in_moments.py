"""Share of a regression's noise that the totals of levels carry: the most that releasing them apart would gain.

A symmetric matrix N of noise moves a coefficient by u'Nw, with u a row of the inverse moments and w = (-coefficients,
1). The share of its variance in the entries of totals, those of levels on the diagonal and beside the constant, is the
most that exact totals at no cost would take away. Nothing is drawn, and nothing is private. Prints Markdown.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

import dpci
from _studies import markdown
from _timing import commit
from dpci.datasets.tables import load_table
from dpci.schema import CategoricalColumn

_F64 = NDArray[np.float64]
TARGETS = {"adult": "hours-per-week", "bank": "balance", "credit_default": "X1"}


def shares(moments: _F64, target: int, levels: NDArray[np.bool_]) -> _F64:
    """Share of the noise variance of each coefficient in the entries of totals; the constant is the last column."""
    others = np.delete(np.arange(len(moments)), target)
    inverse = np.linalg.pinv(moments[np.ix_(others, others)], hermitian=True)
    w = np.ones(len(moments))
    w[others] = -inverse @ moments[others, target]
    u = np.zeros((len(others), len(moments)))
    u[:, others] = inverse
    # Isometric coordinates of the noise have one variance, so that entries off the diagonal have half of it.
    whole = 0.5 * ((u**2).sum(axis=1) * (w @ w) + (u @ w) ** 2)
    diagonal = (u[:, levels] * w[levels]) ** 2
    beside = 0.5 * (u[:, levels] * w[-1] + u[:, [-1]] * w[levels]) ** 2
    return (diagonal + beside).sum(axis=1) / whole


def cells() -> Iterator[list[str]]:
    """Yield a row for each table."""
    for name, target in TARGETS.items():
        schema = dpci.datasets.load_schema(name)
        encoded = schema.transform(load_table(name))
        X = encoded.X.toarray() if issparse(encoded.X) else np.asarray(encoded.X)
        rows = np.column_stack([X, np.ones(len(X))])
        names = list(encoded.names)
        lists = {column.name for column in schema.columns if isinstance(column, CategoricalColumn)}
        levels = np.array([*("=" in each and each.split("=")[0] in lists for each in names), False])
        at = names.index(target)
        found = shares(rows.T @ rows / len(rows), at, levels)
        of_levels = found[np.delete(levels, at)]
        shorter = 1.0 - np.sqrt(1.0 - found.mean())
        shown = [of_levels.mean(), of_levels.max(), found[~np.delete(levels, at)].mean(), shorter]
        yield [name, target, str(levels.sum()), *(f"{each:.1%}" for each in shown)]


def main() -> None:
    print("# Totals of levels in moment matrices\n")
    print(f"`benches/totals_in_moments.py`, commit {commit()}.\n")
    print(
        "Share of the noise variance of coefficients that the totals of levels carry: of levels, mean and greatest, "
        "and of numbers. *Shorter*: by how much intervals would be shorter if totals were exact and cost nothing, and "
        "all of their length were noise.\n"
    )
    header = ["table", "target", "levels", "of levels", "greatest", "of numbers", "shorter"]
    print("\n".join(markdown(header, cells())))


if __name__ == "__main__":
    main()
