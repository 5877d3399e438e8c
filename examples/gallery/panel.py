"""Persons with up to twelve rows each: what is protected is a person, and intervals count the dependence."""

import matplotlib.pyplot as plt

import dpci

panel = dpci.datasets.simulate_panel(5_000, n_rows=(1, 12), seed=0)
ledger = dpci.Ledger(dpci.ZCDP(1.0))  # of persons: all releases from one ledger protect the same unit
budget, classes, three = dpci.ZCDP(0.5), (-1, 1), dpci.Persons(panel.persons, max_rows=3)
of_all = dpci.fit(
    panel.X, panel.y, persons=panel.persons, budget=budget, l2_strength=0.005, classes=classes, ledger=ledger
)
of_three = dpci.fit(panel.X, panel.y, persons=three, budget=budget, l2_strength=0.005, classes=classes, ledger=ledger)
print(of_all.summary())
print(ledger.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), sharex=True)
of_all.plot(ax=left).set_title("all rows of each person")
of_three.plot(ax=right).set_title("at most three rows")
figure.savefig("panel.png", bbox_inches="tight")
