"""Three ways to work: the odds of car and train against the bus, by the distance and by children."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import CategoricalColumn, CategoricalTarget, NumericColumn, Schema

rng = np.random.default_rng(9)
n = 20_000
km, children = rng.uniform(0, 40, n), rng.random(n) < 0.4
scores = np.column_stack([np.zeros(n), 0.03 * km + 0.8 * children - 0.3, 0.08 * km - 1.8])
way = np.array(["bus", "car", "train"])[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
table = {"km": km, "children": np.where(children, "yes", "no"), "way": way}

schema = Schema(
    columns=(
        NumericColumn(name="km", lower=0, upper=40, unit="km"),
        CategoricalColumn(name="children", categories=("no", "yes"), reference="no"),
    ),
    target=CategoricalTarget(column="way", classes=(("bus",), ("car",), ("train",))),
)
result = dpci.multinomial.fit(table, schema=schema, budget=dpci.PureDP(2.0), l2_strength=0.005)
print(result.summary())
print(result.odds_ratios(contrast={"car:km": 10}))  # of the car against the bus, for 10 km
result.plot()
plt.savefig("transport.png", bbox_inches="tight")
