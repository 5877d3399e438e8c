"""The experiments on per-instance privacy and on utility in small: few rows, few columns, the packaged sample."""

import numpy as np
import pytest

from dpci.datasets._tables import load_sample_table
from dpci.reproduce import per_instance, per_instance_setup, utility, utility_measure
from dpci.reproduce.finding import Repeats
from dpci.reproduce.rows import unit_rows
from support.reproduced import use_the_sample

FEW = Repeats(n_repeats=2, n_threads=1)


def sample_rows(n=4_000):
    """Numeric columns of the packaged sample of Adult, rows of norm 1, classes -1 and 1."""
    table = load_sample_table()
    names = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    X = np.column_stack([table[name][:n] / table[name].max() for name in names])
    return unit_rows(X), np.where(table["income"][:n] == ">50K", 1.0, -1.0)


def shrink_per_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few soft labels, the sample in the place of the credit data, three strengths of regularisation."""
    for name, value in {"n": 3_000, "d": 4}.items():
        monkeypatch.setitem(per_instance_setup.SOFT, name, value)
    monkeypatch.setattr(per_instance_setup, "credit_default", lambda _: sample_rows())
    monkeypatch.setattr(per_instance, "N_RIDGES", 3)


def shrink_utility(monkeypatch: pytest.MonkeyPatch, *, n: int = 600) -> None:
    """The sample in the place of Adult and KDD, few wide rows, every eighth epsilon, two sizes."""
    use_the_sample(monkeypatch)
    monkeypatch.setattr(utility_measure, "N_ROWS", n)
    monkeypatch.setattr(utility, "SIZES", (300, n))
    for name, value in {"n": 200, "d": 60}.items():
        monkeypatch.setitem(utility_measure.WIDE, name, value)
    for name, span in utility_measure.SPANS.items():
        monkeypatch.setitem(utility_measure.SPANS, name, span.every(8))
