"""Odds ratios of an illness, from patients whose greatest age and pressure nobody knows."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, PartialSchema, UnboundedColumn

rng = np.random.default_rng(1)
n = 8_000
age, pressure, smokes = rng.normal(55, 15, n), rng.normal(130, 18, n), rng.random(n) < 0.3
risk = -4.0 + 0.04 * (age - 55) + 0.02 * (pressure - 130) + 0.7 * smokes + 2.5
patients = {
    "age": age,
    "pressure": pressure,
    "smokes": np.where(smokes, "yes", "no"),
    "ill": np.where(rng.logistic(size=n) < risk, "yes", "no"),
}

schema = PartialSchema(  # public; the fit finds the bounds within its budget
    columns=(
        UnboundedColumn(name="age", unit="year"),
        UnboundedColumn(name="pressure", unit="mmHg"),
        CategoricalColumn(name="smokes", categories=("no", "yes"), reference="no"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)
result = dpci.fit(patients, schema=schema, budget=dpci.ZCDP(0.5))
print(result.summary())
print(result.odds_ratios(contrast={"age": 10}))  # of ten years
result.plot()
plt.savefig("health.png", bbox_inches="tight")
result.to_html("health.html")
