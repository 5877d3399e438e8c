"""A survey whose weights are bounded by a public number, with and without the weights."""

import matplotlib.pyplot as plt

import dpci

survey = dpci.datasets.simulate_survey(20_000, seed=0)
weights = dpci.Weights(survey.weights, bound=survey.weight_bound)
budget, classes = dpci.ZCDP(1.0), (-1, 1)
weighted = dpci.fit(survey.X, survey.y, weights=weights, budget=budget, l2_strength=0.005, classes=classes)
plain = dpci.fit(survey.X, survey.y, budget=budget, l2_strength=0.005, classes=classes)
print(weighted.summary())

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3), sharex=True)
weighted.plot(ax=left).set_title("of the population")
plain.plot(ax=right).set_title("of those who answered")
figure.savefig("survey.png", bbox_inches="tight")
