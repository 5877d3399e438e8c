"""Visits to a doctor as counts: rate ratios by age and by a chronic illness."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import CategoricalColumn, NumericColumn, NumericTarget, Schema

rng = np.random.default_rng(8)
n = 20_000
age, chronic = rng.uniform(20, 80, n), rng.random(n) < 0.25
visits = np.minimum(rng.poisson(np.exp(0.015 * (age - 50) + 0.5 * chronic)), 10)
table = {"age": age, "chronic": np.where(chronic, "yes", "no"), "visits": visits}

schema = Schema(
    columns=(
        NumericColumn(name="age", lower=18, upper=90, unit="year"),
        CategoricalColumn(name="chronic", categories=("no", "yes"), reference="no"),
    ),
    # A count in units of its greatest public value.
    target=NumericTarget(column="visits", lower=0, upper=10, scale="unit", unit="visit"),
)
loss = dpci.losses.NegativeBinomial(dispersion=0.2)
result = dpci.fit(table, schema=schema, loss=loss, budget=dpci.ZCDP(0.5))
print(result.summary())
print(result.rate_ratios(contrast={"age": 10}))  # of ten years
result.plot()
plt.savefig("counts.png", bbox_inches="tight")
