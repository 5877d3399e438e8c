"""Hours of work by age and education, by ordinary least squares, and a further regression at no further cost."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import dpci

people = dpci.datasets.load_sample_table()  # 4,000 people of the US Current Population Survey of 1994
columns = pd.DataFrame({name: np.asarray(people[name], dtype=float) for name in ("age", "education-num")})
hours = pd.Series(np.asarray(people["hours-per-week"], dtype=float), name="hours")

matrix = dpci.regression.release(
    columns,
    hours,
    bounds=([17, 1], [90, 16]),
    target_bound=99.0,
    rows="clip",
    budget=dpci.ZCDP(0.5),
)
both = matrix.fit()
print(both.summary())
print(matrix.fit(features=["age"]).conf_int())  # of age alone
print(matrix.means())
both.plot(contrast=["age", "education-num"])
plt.savefig("wages.png", bbox_inches="tight")
