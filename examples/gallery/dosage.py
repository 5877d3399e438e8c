"""A dose and its response as a curve: splines with public knots, and the odds at each dose with intervals."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import ClassTarget, NumericColumn, Schema

rng = np.random.default_rng(6)
n = 20_000
dose = rng.uniform(0, 100, n)
responds = rng.logistic(size=n) < 2.0 * np.sin(dose / 32.0) - 0.5
table = {"dose": dose, "responds": np.where(responds, "yes", "no")}

base = Schema(
    columns=(NumericColumn(name="dose", lower=0, upper=100, unit="mg"),),
    target=ClassTarget(column="responds", negative=("no",), positive=("yes",)),
)
schema = Schema.from_formula("responds ~ bs(dose, knots=[33, 66])", base)
result = dpci.fit(table, schema=schema, budget=dpci.ZCDP(1.0))
print(result.summary())

doses = np.linspace(0, 100, 41)
found = result.predict_conf_int({"dose": doses})
axes = plt.figure().subplots()
axes.fill_between(doses, found.lower, found.upper, alpha=0.3)
axes.plot(doses, found.estimate)
axes.plot(doses, 1.0 / (1.0 + np.exp(0.5 - 2.0 * np.sin(doses / 32.0))), "k--", label="the truth of this simulation")
axes.set(xlabel="dose in mg", ylabel="probability of a response")
axes.legend()
plt.savefig("dosage.png", bbox_inches="tight")
