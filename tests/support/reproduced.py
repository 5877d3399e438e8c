"""Published tables and figures in small: the packaged sample in place of the data sets, and a made-up extract."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from dpci.datasets import load_layout
from dpci.datasets.tables import load_sample_table
from papers import sources
from papers.command import main
from papers.wang.experiments import FIGURES, N_ROWS, TABLES
from papers.wang.studies import Run

SHORT = ("--threads", "1", "--replicates", "12")
SMALL = Run(n_replicates=12, n_variability=30, n_threads=1)


def use_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The packaged sample of Adult in the place of Adult, Bank and KDD Cup 1999, and two values for each sweep."""
    monkeypatch.setattr(sources, "load_table", lambda _, **__: load_sample_table())
    monkeypatch.setattr(sources, "load_layout", lambda _: load_layout("adult"))
    for name in ("adult", "bank"):
        monkeypatch.setitem(N_ROWS, name, 4_000)
    ends = {"n": (2_000, 4_000), "d": (1, 3)}

    def short(sweep):
        return dataclasses.replace(sweep, values=ends.get(sweep.varied, sweep.values[-2:]))

    for number, sweep in TABLES.items():
        monkeypatch.setitem(TABLES, number, short(sweep))
    for number, plan in FIGURES.items():
        panels = tuple(panel._replace(sweep=short(panel.sweep)) for panel in plan.panels)
        monkeypatch.setitem(FIGURES, number, dataclasses.replace(plan, panels=panels))


def extract(path: Path, n: int) -> Path:
    """A file with the layout of an IPUMS extract: two numbers, a category, a target."""
    rng = np.random.default_rng(7)
    columns = (rng.integers(17, 90, n), rng.choice(list("abcdefgh"), n), rng.integers(0, 60, n), rng.integers(0, 2, n))
    lines = [",".join(map(str, line)) for line in zip(*columns, strict=True)]
    path.write_text("\n".join(["age,status,hours,income", *lines]), "utf-8")
    return path


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The reason why the command refuses to run."""
    try:
        code = main(argv)
    except SystemExit as ended:  # of argparse, which prints the usage before
        code = ended.code
    assert code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err
