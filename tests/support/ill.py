"""A table of made-up people whose columns have units, and the schema that describes it."""

import numpy as np
import pandas as pd

from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

SCHEMA = Schema(
    columns=(
        NumericColumn(name="age", lower=20, upper=60, unit="year"),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
        NumericColumn(name="dose", lower=0, upper=5, scale="unit"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes", "probably")),
)


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.integers(20, 61, n),
            "sex": rng.choice(["F", "M"], n),
            "dose": rng.uniform(0.0, 5.0, n),
            "other": "text",
        }
    )
    score = 0.05 * (table.age - 40) + 0.8 * (table.sex == "M") - 0.3 * table.dose
    ill = rng.uniform(size=n) < 1 / (1 + np.exp(-score))
    table["ill"] = np.where(ill, rng.choice(["yes", "probably"], n), "no")
    return table
