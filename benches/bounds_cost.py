"""Cost of releasing bounds within a linear regression, beside bounds that are known and wider than needed. Not private.

Four normal columns and a target of which they explain half. Prints Markdown.
"""

import argparse
import datetime as dt
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _studies import markdown
from _timing import commit
from dpci.schema import NumericColumn, NumericTarget, PartialSchema, Schema, UnboundedColumn, UnboundedTarget

BUDGETS = {"ε = 1": dpci.PureDP(1.0), "ρ = .5": dpci.ZCDP(0.5), "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6)}
SIZES = (2_000, 5_000, 10_000, 30_000, 100_000, 300_000)
SHARES = (0.05, 0.1, 0.2, 0.4)
WIDTHS = (1.0, 1.5, 2.0, 3.0, 10.0)
NAMES = ("a", "b", "c", "d")
QUANTILE = 2.053749


def people(n: int, seed: int) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = 0.5 * X.sum(axis=1) + rng.normal(size=n)
    return {**dict(zip(NAMES, X.T, strict=True)), "y": y}


def known(width: float) -> Schema:
    """Return a schema with bounds that are so many times as wide as the 2% and 98% quantiles."""
    ends, of_target = width * QUANTILE, width * QUANTILE * math.sqrt(2.0)
    columns = tuple(NumericColumn(name=name, lower=-ends, upper=ends) for name in NAMES)
    return Schema(columns=columns, target=NumericTarget(column="y", lower=-of_target, upper=of_target))


def gaps(share: float | None) -> PartialSchema:
    columns = tuple(UnboundedColumn(name=name) for name in NAMES)
    return PartialSchema(columns=columns, target=UnboundedTarget(column="y"), bounds_share=share)


def length(schema: Any, budget: Any, n: int, seeds: range) -> float | None:
    """Return the mean length of the intervals of the slopes over those without privacy; None where there are none."""
    found = []
    for seed in seeds:
        table = people(n, seed)
        try:
            fit = dpci.fit(table, schema=schema, loss="squared", budget=budget, seed=seed)
            if fit.interval_refusal:
                return None
            found.append(np.asarray(fit.conf_int().length)[:4].mean())
        except dpci.DpciError:
            return None
    return float(np.median(found)) / (2.0 * 1.959964 / math.sqrt(n))


def shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def row(label: str, n: int, runs: int, seed: int) -> list[str]:
    budget, seeds = BUDGETS[label], range(seed, seed + runs)
    try:
        plan = dpci.plan(n_samples=n, schema=gaps(None), budget=budget, loss="squared").bounds
    except dpci.DpciError:
        plan = None
    rule = ["-"] * 3 if plan is None else [f"{100 * plan.share:.3g}%", f"{plan.left_out:.1%}", f"{plan.break_even:.2f}"]
    released = [length(gaps(share), budget, n, seeds) for share in (None, *SHARES)]
    wide = [length(known(width), budget, n, seeds) for width in WIDTHS]
    return [f"{n:,}", label, *rule, *map(shown, released), *map(shown, wide)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=20)
    options.add_argument("--seed", type=int, default=416_000)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print("# What released bounds cost and save\n")
    print(f"`benches/bounds_cost.py --runs {given.runs}`, commit {commit()}, {today}, seeds from {given.seed:,}.\n")
    print(
        "Linear regression of four normal columns, which explain half of the target; no bound is known. `share`: that "
        "of the default rule for the bounds; `left out`: values beyond a bound on either side, at most about; "
        "`break-even`: how wide known bounds may be, over those of the quantiles, by the plan. Then "
        "median lengths of intervals over those without privacy: with released bounds at the default share and at "
        "others, and with known bounds that are 1 to 10 times as wide as the 2% and 98% quantiles. A dash: refused, or "
        "hidden by the noise.\n"
    )
    of_shares = [f"{share:.0%}" for share in SHARES]
    header = (
        "n",
        "budget",
        "share",
        "left out",
        "break-even",
        "default",
        *of_shares,
        *(f"known × {width:g}" for width in WIDTHS),
    )
    cells = (row(label, n, given.runs, given.seed) for n in SIZES for label in BUDGETS)
    for line in markdown(header, cells):
        print(line, flush=True)


if __name__ == "__main__":
    main()
