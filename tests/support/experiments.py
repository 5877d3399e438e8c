"""The experiments on regression, per-instance privacy and utility in small: few rows, few columns, made-up patients."""

import dataclasses

import numpy as np
import pytest

from dpci.datasets import Dataset
from dpci.datasets.tables import load_sample_table
from papers.finding import Repeats
from papers.li import experiments as utility
from papers.li import measure as utility_measure
from papers.redberg import experiments as per_instance
from papers.redberg import setup as per_instance_setup
from papers.rows import unit_rows
from papers.wu import experiments as regression
from papers.wu import methods as regression_methods
from papers.wu import setup as regression_setup
from papers.wu.warfarin import SCHEMA
from support.reproduced import use_the_sample

FEW = Repeats(n_repeats=2, n_threads=1)


def sample_rows(n=4_000):
    """Numeric columns of the packaged sample of Adult, rows of norm 1, classes -1 and 1."""
    table = load_sample_table()
    names = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    X = np.column_stack([table[name][:n] / table[name].max() for name in names])
    return unit_rows(X), np.where(table["income"][:n] == ">50K", 1.0, -1.0)


def made_up_patients(n=1_500, *, unknown_race="reference", largest_dose=144.0):
    """Rows of the columns of the warfarin data, with doses that depend on age, weight and VKORC1."""
    rng = np.random.default_rng(9)
    schema = SCHEMA
    race = next(column for column in schema.columns if column.name == "race")
    known = tuple(name for name in race.categories if name != "Unknown" or unknown_race == "level")
    columns = [dataclasses.replace(race, categories=known) if column is race else column for column in schema.columns]
    target = dataclasses.replace(schema.target, upper=largest_dose**0.5)
    schema = dataclasses.replace(schema, columns=tuple(columns), target=target)
    vkorc1 = rng.choice(["A/A", "A/G", "G/G"], size=n, p=[0.35, 0.35, 0.3])
    table = {
        "age": rng.integers(1, 10, size=n),
        "height": rng.normal(170, 10, size=n),
        "weight": rng.normal(80, 15, size=n),
        "race": rng.choice(["White", "Asian", "Unknown"], size=n),
        "enzyme_inducer": rng.choice(["no", "yes"], size=n, p=[0.95, 0.05]),
        "amiodarone": rng.choice(["no", "yes"], size=n, p=[0.9, 0.1]),
        "vkorc1": vkorc1,
        "cyp2c9": rng.choice(["*1/*1", "*1/*3"], size=n, p=[0.8, 0.2]),
    }
    effects = np.select([vkorc1 == "A/A", vkorc1 == "A/G"], [-1.8, -0.8], 0.0)
    dose = 7.0 + effects - 0.25 * table["age"] + 0.01 * (table["weight"] - 80) + rng.normal(scale=1.0, size=n)
    X, y, names = schema.transform({**table, "sqrt_dose": np.maximum(dose, 0.0)})
    return Dataset(X=X, y=y, names=names, schema=schema, licence="made up")


def shrink_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    """Made-up patients, fewer budgets, candidates of the oracle, rates and scales."""
    monkeypatch.setattr(regression_setup, "load_warfarin", made_up_patients)
    monkeypatch.setattr(regression, "EPSILONS", (1.0, 10.0))
    monkeypatch.setattr(regression_methods, "ORACLE_STRENGTHS", (0.02, 0.08, 0.24))
    monkeypatch.setattr(regression, "RATES", (0.1, 0.9))
    monkeypatch.setattr(regression, "SCALINGS", regression.SCALINGS[1:3])
    monkeypatch.setattr(regression, "SCALING_EPSILONS", (0.2, 1.0))


def shrink_per_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few soft labels, the sample in the place of the credit data, three strengths of regularisation."""
    for name, value in {"n": 3_000, "d": 4}.items():
        monkeypatch.setitem(per_instance_setup.SOFT, name, value)
    monkeypatch.setattr(per_instance_setup, "credit_default", lambda _: sample_rows())
    monkeypatch.setattr(per_instance, "N_RIDGES", 3)


def shrink_utility(monkeypatch: pytest.MonkeyPatch, *, n: int = 300) -> None:
    """The sample in the place of Adult and KDD, few wide rows, every eighth epsilon, two sizes."""
    use_the_sample(monkeypatch)
    monkeypatch.setattr(utility_measure, "N_ROWS", n)
    monkeypatch.setattr(utility, "SIZES", (n // 2, n))
    for name, value in {"n": 120, "d": 40}.items():
        monkeypatch.setitem(utility_measure.WIDE, name, value)
    for name, span in utility_measure.SPANS.items():
        monkeypatch.setitem(utility_measure.SPANS, name, span.every(8))
