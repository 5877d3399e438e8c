"""Coverage of the slopes of columns whose numbers beyond released bounds are clipped, or weigh less. Not private.

Four columns without any known bound: lognormal, normal, Student t with three degrees of freedom, uniform. Classes and
numbers follow the model of the columns as they are. Prints Markdown.
"""

import argparse
import datetime as dt
import warnings

import numpy as np

import dpci
from _studies import markdown
from _timing import commit
from dpci.schema import ClassTarget, NumericTarget, PartialSchema, UnboundedColumn, UnboundedTarget

SLOPES, CONSTANT = np.array([0.25, 0.5, 0.4, 1.0]), -0.8
NAMES = ("lognormal", "normal", "t3", "uniform")
BUDGETS = {"ρ = .5": dpci.ZCDP(0.5), "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6), "ε = 1": dpci.PureDP(1.0)}
TARGETS = {
    "classes": ClassTarget(column="y", negative=("no",), positive=("yes",)),
    "numbers": NumericTarget(column="z", lower=-10.0, upper=20.0),
    "numbers, bounds released": UnboundedTarget(column="z"),
}


def people(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = [rng.lognormal(0.0, 1.0, n), rng.normal(size=n), rng.standard_t(3, n), rng.uniform(0.0, 1.0, n)]
    odds = np.column_stack(columns) @ SLOPES + CONSTANT
    classes = rng.random(n) < 1.0 / (1.0 + np.exp(-odds))
    numbers = odds + rng.normal(size=n)
    return {**dict(zip(NAMES, columns, strict=True)), "y": np.where(classes, "yes", "no"), "z": numbers}


def fits(target: str, budget: str, outside: str, n: int, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Whether each slope is covered, and half the length of its interval; not a number where it has none."""
    columns = tuple(UnboundedColumn(name=name, outside=outside) for name in NAMES)
    schema = PartialSchema(columns=columns, target=TARGETS[target])
    rows = []
    for seed in seeds:
        fit = dpci.fit(people(n, seed), schema=schema, budget=BUDGETS[budget], seed=seed)
        ends = np.full((4, 2), np.nan) if fit.interval_refusal else np.asarray(fit.conf_int())[:4]
        rows.append(ends)
    ends = np.array(rows)
    covered = np.where(np.isnan(ends[:, :, 0]), np.nan, (ends[:, :, 0] <= SLOPES) & (ends[:, :, 1] >= SLOPES))
    return covered, (ends[:, :, 1] - ends[:, :, 0]) / 2.0


def row(target: str, budget: str, n: int, seeds: range) -> list[str]:
    found = {outside: fits(target, budget, outside, n, seeds) for outside in ("clip", "weight")}
    covered = {outside: np.nanmean(hits, axis=0) for outside, (hits, _) in found.items()}
    lengths = {outside: np.nanmedian(halves, axis=0) for outside, (_, halves) in found.items()}
    each = [" / ".join(f"{share:.2f}" for share in covered[outside]) for outside in ("clip", "weight")]
    ratio = np.exp(np.mean(np.log(lengths["weight"] / lengths["clip"])))
    given = np.mean(~np.isnan(found["weight"][0]))
    return [target, budget, *each, f"{ratio:.2f}", f"{given:.0%}"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--n", type=int, default=30_000)
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("--targets", nargs="*", choices=list(TARGETS), default=list(TARGETS))
    given = options.parse_args()
    warnings.simplefilter("ignore")
    seeds = range(80_000, 80_000 + given.runs)
    print("# Numbers beyond released bounds: clipped, or in rows that weigh less\n")
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print(f"`benches/far_rows.py --n {given.n} --runs {given.runs}`, commit {commit()}, {today}, seeds from 80,000.\n")
    print(
        "How often 95% intervals cover the slopes of the columns as they are: lognormal / normal / t₃ / uniform. "
        "`length`: with weights over that with clipping, geometric mean. `given`: the share of slopes with an "
        "interval.\n"
    )
    header = ("target", "budget", "clipped: covered", "weights: covered", "length", "given")
    cells = (row(target, budget, given.n, seeds) for target in given.targets for budget in BUDGETS)
    for line in markdown(header, cells):
        print(line, flush=True)


if __name__ == "__main__":
    main()
