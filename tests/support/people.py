"""A made-up table of people for tests of the command line: text, schema, and the released model of a fit."""

from pathlib import Path

import numpy as np

from dpci.cli.main import main

SCHEMA = """\
[target]
column = "ill"
negative = "no"
positive = ["yes", "probably"]
[[columns]]
kind = "numeric"
name = "age"
lower = 18
upper = 90
[[columns]]
kind = "categorical"
name = "ward"
categories = ["A", "B"]
reference = "A"
unknown = "zeros"
"""
DOSE = """\
[target]
column = "dose"
lower = 0
upper = 100
[[columns]]
kind = "numeric"
name = "age"
lower = 18
upper = 90
"""
AGES = '[target]\ncolumn = "age"\n' + SCHEMA[SCHEMA.index("lower") :]
GAPS = SCHEMA.replace('kind = "numeric"\nname = "age"\nlower = 18\nupper = 90', 'kind = "unbounded"\nname = "age"')


def columns(n: int = 2_000, *, seed: int = 1) -> dict[str, list[str]]:
    """Age, ward and illness of so many people, as text."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    ward = rng.choice(["A", "B"], n)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-(age - 55) / 10)), rng.choice(["yes", "probably"], n), "no")
    return {"age": [str(a) for a in age], "ward": ward.tolist(), "ill": ill.tolist()}


def as_csv(table: dict[str, list[str]]) -> str:
    """The same as CSV."""
    return "\n".join([",".join(table), *(",".join(row) for row in zip(*table.values(), strict=True))]) + "\n"


def make_people(folder: Path) -> None:
    """Write people.csv, the same in parts/*.csv, people.toml and model.json into a folder."""
    table = columns()
    (folder / "people.csv").write_text(as_csv(table), encoding="utf-8")
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")
    (folder / "parts").mkdir()
    for i, rows in enumerate((slice(0, 700), slice(700, 1_800), slice(1_800, None))):
        part = {name: values[rows] for name, values in table.items()}
        (folder / "parts" / f"{i}.csv").write_text(as_csv(part), encoding="utf-8")
    assert main([*fit_arguments(folder), "--output", str(folder / "model.json"), "--quiet"]) == 0


def fit_arguments(folder: Path, *more: str, table: str = "people.csv") -> list[str]:
    """A fit to the table."""
    shared = ["--schema", str(folder / "people.toml"), "--epsilon", "1", "--l2-strength", "0.01"]
    return ["fit", str(folder / table), *shared, *more]
