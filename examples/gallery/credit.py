"""A score for loans: probabilities of default with intervals, for customers who are not in the data."""

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import ClassTarget, NumericColumn, Schema

rng = np.random.default_rng(4)
n = 20_000
loan, income, late = rng.uniform(1, 50, n), rng.lognormal(3.5, 0.5, n), rng.poisson(0.4, n)
risk = -2.5 + 0.04 * loan - 0.02 * (income - 30) + 0.6 * late
defaults = np.where(rng.logistic(size=n) < risk, "default", "paid")

schema = Schema(
    columns=(
        NumericColumn(name="loan", lower=0, upper=50, unit="1,000 euros", source="the greatest loan"),
        NumericColumn(name="income", lower=0, upper=150, unit="1,000 euros", source="a choice; more counts as 150"),
        NumericColumn(name="late", lower=0, upper=6, unit="payment", source="a choice; more count as 6"),
    ),
    target=ClassTarget(column="outcome", negative=("paid",), positive=("default",)),
)
result = dpci.fit(
    {"loan": loan, "income": income, "late": late, "outcome": defaults}, schema=schema, budget=dpci.ZCDP(0.5)
)
print(result.summary())

late_payments = np.arange(7)
found = result.predict_conf_int({"loan": np.full(7, 20), "income": np.full(7, 40), "late": late_payments})
axes = plt.figure().subplots()
axes.errorbar(late_payments, found.estimate, [found.estimate - found.lower, found.upper - found.estimate], fmt="o")
axes.set(xlabel="late payments", ylabel="probability of default", title="A loan of 20,000 euros, an income of 40,000")
plt.savefig("credit.png", bbox_inches="tight")
