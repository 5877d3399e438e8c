"""Six hospitals, one budget: the effect of a treatment in each, beside each other."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

rng = np.random.default_rng(10)
n = 30_000
names = ("Aachen", "Bonn", "Celle", "Dachau", "Erfurt", "Fulda")
site, age, treated = rng.integers(0, 6, n), rng.uniform(20, 90, n), rng.random(n) < 0.5
effect = np.array([0.2, 0.4, 0.6, 0.8, 1.0, 1.2])[site]
well = rng.logistic(size=n) < effect * treated - 0.02 * (age - 55)
table = {
    "site": np.array(names)[site],
    "age": age,
    "treated": np.where(treated, "yes", "no"),
    "well": np.where(well, "yes", "no"),
}

schema = Schema(
    columns=(
        CategoricalColumn(name="site", categories=names),
        NumericColumn(name="age", lower=18, upper=100, unit="year"),
        CategoricalColumn(name="treated", categories=("no", "yes"), reference="no"),
    ),
    target=ClassTarget(column="well", negative=("no",), positive=("yes",)),
)
# n_public: about the number of records of a site, from what is known without the data.
fits = dpci.fit_strata(table, by="site", schema=schema, budget=dpci.PureDP(2.0), l2_strength=0.005, n_public=5_000)
print(fits.summary("treated=yes"))
fits.plot("treated=yes")
plt.savefig("sites.png", bbox_inches="tight")
