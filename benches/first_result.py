"""Draw the figure of the README: its first result at two budgets beside the odds ratios without privacy.

Writes docs/first_result.svg. The noise is real, so every run draws other intervals. With ``--count`` it prints instead
how many of 200 such fits, with seeds, lack intervals.
"""

import sys
import warnings
from pathlib import Path

import numpy as np
import statsmodels.api as sm
from matplotlib.figure import Figure

import dpci
from _panels import save
from dpci.cli.commands.fit import demo_schema
from dpci.report.plot import name_rows
from dpci.report.style import BLUE, GREY, LETTERS, ORANGE, WIDTH, facts_of_release, log_numbers

FILE = Path(__file__).parents[1] / "docs" / "first_result.svg"
BUDGETS = dpci.PureDP(epsilon=1.0), dpci.ZCDP(rho=0.5)
# Units of which the odds ratios share an axis.
SHOWN = {
    "10 years of age": ("age", 10.0),
    "1 level of education": ("education-num", 1.0),
    "10 hours of work a week": ("hours-per-week", 10.0),
    "men against women": ("sex=Male", 1.0),
}


def count(budget: dpci.PureDP | dpci.ZCDP, n_fits: int = 200) -> str:
    """Return how many fits have no interval, and how many lack that of a coefficient."""
    people, schema = dpci.datasets.load_sample_table(), demo_schema()
    warnings.simplefilter("ignore", dpci.DpciWarning)
    fits = [dpci.fit(people, schema=schema, budget=budget, seed=seed) for seed in range(n_fits)]
    hidden = np.array([np.isnan(fit.params) for fit in fits])
    none, some = hidden.all(axis=1).sum(), (hidden.any(axis=1) & ~hidden.all(axis=1)).sum()
    return f"{budget}: of {n_fits} fits {none} have no interval, and {some} others lack one or more"


def main() -> None:
    """Fit the sample as the README does, and by statsmodels, and draw both."""
    people = dpci.datasets.load_sample_table()
    results = [dpci.fit(people, schema=demo_schema(), budget=budget) for budget in BUDGETS]
    columns = [people["age"], people["education-num"], people["hours-per-week"], np.asarray(people["sex"]) == "Male"]
    X = sm.add_constant(np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]), prepend=False)
    y = (np.asarray(people["income"]) == ">50K").astype(np.float64)
    plain = sm.Logit(y, X).fit(disp=0, cov_type="HC0")
    units = np.array([unit for _, unit in SHOWN.values()])[:, None]
    limits = np.column_stack([plain.params, plain.conf_int()])[: len(SHOWN)]
    without = np.exp(units * limits)

    ax = (figure := Figure(figsize=(WIDTH, 3.4), layout="constrained")).add_subplot()
    rows = np.arange(len(SHOWN))
    for row in rows[1::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="0.96", linewidth=0, zorder=-2)
    ax.axvline(1.0, color="0.55", linewidth=1, zorder=-1)
    drawn = [(without, 0.24, GREY, "without privacy")]
    for result, shift, colour in zip(results, (-0.24, 0.0), (ORANGE, BLUE), strict=True):
        found = [result.odds_ratios(contrast={name: unit}) for name, unit in SHOWN.values()]
        ratios = np.array([[ratio.estimate[0], ratio.lower[0], ratio.upper[0]] for ratio in found])
        given = {"neighbors": "replace_one", "private": result.private}
        budget, count = facts_of_release(result.spent, result.n_samples, **given)
        drawn.append((ratios, shift, colour, budget))
    for ratios, shift, colour, name in drawn:
        ax.hlines(rows + shift, ratios[:, 1], ratios[:, 2], color=colour, linewidth=1.8)
        ax.scatter(ratios[:, 0], rows + shift, s=26, color=colour, zorder=3, label=name)
    ax.set_xscale("log")
    log_numbers(ax, "x", subs=(1.0, 1.5, 2.0, 3.0, 4.0, 5.0))
    name_rows(ax, list(SHOWN))
    ax.set_xlabel(f"odds ratio of a high income\nwith 95% interval, {count}", fontsize=LETTERS)
    ax.tick_params(axis="x", labelsize=LETTERS)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=LETTERS)
    save(figure, FILE)


if __name__ == "__main__":
    if "--count" in sys.argv:
        print("\n".join(map(count, BUDGETS)))
    else:
        main()
