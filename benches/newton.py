"""Length and coverage of the ordinary coefficients of Newton steps, on real tables with bounds that are released.

Prints Markdown. Each replicate draws the records of a table with replacement, releases bounds and fits at them, and
compares with the coefficients of the whole table at these bounds. Tables on which constants were chosen come first.
"""

import argparse
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

import dpci
from _environments import now
from _timing import commit
from dpci.datasets.tables import load_table
from dpci.inference.methods import unit_map
from dpci.released.model import record_of
from dpci.released.newton import Newton
from dpci.schema import CategoricalColumn, ClassTarget, PartialSchema, UnboundedColumn

_F64 = NDArray[np.float64]
BUDGETS: dict[str, dpci.PureDP | dpci.ZCDP | dpci.ApproxDP] = {
    "ε=.5": dpci.PureDP(0.5),
    "ε=1": dpci.PureDP(1.0),
    "ε=3": dpci.PureDP(3.0),
    "ρ=.1": dpci.ZCDP(0.1),
    "ρ=.5": dpci.ZCDP(0.5),
    "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6),
    "(3, 1e-6)": dpci.ApproxDP(3.0, 1e-6),
}
Z = 1.959963984540054
SHIFTS = 20
"""Replicates of which the shift is computed."""
SEEN = (
    "Bank",
    "Credit default",
    "Heavy tails",
    "Collinear",
    "Adult",
    "Adult, 3 categories",
    "One positive in a hundred",
)
"""Tables on which constants were chosen, or that were looked at meanwhile."""
UNKNOWN = "?"
REGIONS = {
    "America": "Puerto-Rico Canada Outlying-US(Guam-USVI-etc) Cuba Honduras Jamaica Dominican-Republic Ecuador Haiti "
    "Columbia Guatemala Nicaragua El-Salvador Trinadad&Tobago Peru",
    "Europe": "England Germany Greece Italy Poland Portugal Ireland France Hungary Scotland Yugoslavia "
    "Holand-Netherlands",
    "Asia": "Cambodia India Japan South China Iran Philippines Vietnam Laos Taiwan Thailand Hong",
}
MERGED = {
    "Never-worked": UNKNOWN,
    "Without-pay": UNKNOWN,
    "Married-AF-spouse": "Married-civ-spouse",
    "Armed-Forces": "Protective-serv",
    "Priv-house-serv": "Other-service",
    **{country: region for region, countries in REGIONS.items() for country in countries.split()},
}
"""Levels of Adult that who knows the survey merges, whatever the records: nobody without pay earns much."""


@dataclass(frozen=True)
class Table:
    """Columns of a table, of which the names and kinds are known, and lists of categories."""

    name: str
    columns: Mapping[str, NDArray[Any]]
    target: NDArray[np.bool_]
    zeros: frozenset[str] = frozenset()
    """Numbers of which most are 0."""
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: Literal["error", "zeros"] = "error"
    """How values in no list of categories count."""

    def schema(self) -> PartialSchema:
        """Return what is public of the table."""
        columns = (
            CategoricalColumn(name=name, categories=each, reference=each[0], unknown=self.unknown)
            if (each := self.categories.get(name))
            else UnboundedColumn(name=name, zeros=name in self.zeros)
            for name in self.columns
        )
        target = ClassTarget(column="y", negative=(False,), positive=(True,))
        return PartialSchema(columns=tuple(columns), target=target)

    def n_columns(self) -> int:
        """Return how many columns the rows have."""
        return len(self.columns) + sum(len(each) - 2 for each in self.categories.values())

    def one_class(self) -> frozenset[str]:
        """Return the categories whose records are all of one class: their coefficients have no end."""
        levels = (
            (name, level, self.columns[name] == level) for name, each in self.categories.items() for level in each
        )
        return frozenset(f"{name}={level}" for name, level, rows in levels if len(np.unique(self.target[rows])) < 2)

    def sizes(self) -> tuple[int, ...]:
        """Return how many records are drawn: as many as there are, and a tenth."""
        n = len(self.target)
        return (n,) if n < 10_000 else (n, n // 10)

    def sample(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return a table of these rows, with its target."""
        return {**{name: values[rows] for name, values in self.columns.items()}, "y": self.target[rows]}


def table(name: str, source: str, numbers: str, positive: Callable[[Any], NDArray[np.bool_]], **others: Any) -> Table:
    """Return columns of a packaged or downloaded table; rows without a number are left out."""
    data = load_table(source, others.pop("split", None))
    categories, merged = others.pop("categories", {}), others.pop("merged", {})
    columns = {each: np.asarray(data[each], dtype=np.float64) for each in numbers.split()}
    columns |= {each: np.array([merged.get(level, str(level)) for level in data[each]]) for each in categories}
    return Table(name, columns, positive(data), categories=categories, **others)


def tables() -> Iterator[Table]:
    """Yield the tables."""
    rich = lambda data: np.char.startswith(np.asarray(data["income"], dtype=str), ">50K")  # noqa: E731
    numbers, zeros = "age education-num capital-gain capital-loss hours-per-week", {"capital-gain", "capital-loss"}
    yield table("Adult", "adult", numbers, rich, zeros=frozenset(zeros))
    three = {name: levels(load_table("adult")[name]) for name in ("marital-status", "sex", "race")}
    yield table("Adult, 3 categories", "adult", numbers, rich, zeros=frozenset(zeros), categories=three)
    codebook = {
        column.name: column.categories
        for column in dpci.datasets.load_schema("adult").columns
        if isinstance(column, CategoricalColumn)
    }
    everything: dict[str, Any] = {"zeros": frozenset(zeros), "unknown": "zeros"}
    kept = {name: tuple(dict.fromkeys(MERGED.get(each, each) for each in listed)) for name, listed in codebook.items()}
    kept = {name: tuple(each for each in listed if each != UNKNOWN) for name, listed in kept.items()}
    yield table("Adult, all columns", "adult", numbers, rich, categories=kept, merged=MERGED, **everything)
    yield table("Adult, all levels", "adult", numbers, rich, categories=codebook, **everything)
    yes = lambda data: np.asarray(data["y"], dtype=str) == "yes"  # noqa: E731
    yield table("Bank", "bank", "age balance day duration campaign previous", yes, zeros=frozenset({"previous"}))
    two = {name: levels(load_table("bank")[name]) for name in ("marital", "education")}
    yield table("Bank, 2 categories", "bank", "age balance day duration campaign", yes, categories=two)
    late = lambda data: np.asarray(data["Y"], dtype=np.float64) > 0  # noqa: E731
    yield table("Credit default", "credit_default", "X1 X5 X6 X7 X12 X13 X14 X18 X19 X20", late)
    sample = dpci.datasets.load_sample_table()
    people = {each: np.asarray(sample[each], dtype=np.float64) for each in ("age", "education-num", "hours-per-week")}
    people["sex"] = np.asarray(sample["sex"], dtype=str)
    yield Table("Adult, sample", people, rich(sample), categories={"sex": ("Female", "Male")})
    rng, n = np.random.default_rng(11), 20_000
    heavy = np.column_stack([rng.standard_t(3, (n, 3)), rng.lognormal(0.0, 1.2, (n, 3)), rng.exponential(1.0, (n, 2))])
    scaled = (heavy - np.median(heavy, axis=0)) / heavy.std(axis=0)
    yield drawn("Heavy tails", heavy, -1.0 + scaled @ [0.8, -0.5, 0.3, 0.6, -0.4, 0.2, 0.5, 0.0], rng)
    factors = rng.normal(size=(n, 2))
    noise = rng.normal(size=(n, 8))
    near = factors[:, [0, 0, 0, 1, 1]] + noise[:, :5] * [0.1, 0.1, 0.3, 0.1, 0.2]
    collinear = np.column_stack([near, noise[:, 5:7], factors @ [0.6, 0.6] + 0.3 * noise[:, 7]])
    yield drawn("Collinear", collinear, -0.5 + collinear @ [0.5, -0.3, 0.3, 0.4, 0.0, 0.5, -0.5, 0.2], rng)
    rare = rng.uniform(-1.0, 1.0, (2 * n, 4))
    yield drawn("One positive in a hundred", rare, -5.2 + rare @ [1.5, -1.0, 0.5, 0.0], rng)
    yield drawn("Uniform", uniform := rng.uniform(-1.0, 1.0, (n, 8)), uniform @ np.linspace(-1.0, 1.0, 8), rng)
    yield table("Adult, test records", "adult", numbers, rich, zeros=frozenset(zeros), split="test")
    four = {name: levels(load_table("bank")[name]) for name in ("marital", "housing", "loan", "contact")}
    yield table("Bank, 4 categories", "bank", "age balance duration campaign", yes, categories=four)
    yield table("Credit default, other numbers", "credit_default", "X1 X5 X8 X9 X15 X16 X17 X21 X22 X23", late)
    counts = np.column_stack([rng.poisson([0.3, 2.0], (n, 2)), rng.random((n, 2)) < 0.03]).astype(float)
    skewed = np.column_stack([counts, rng.gamma(0.5, 1.0, (n, 2)), rng.normal(size=n) ** 3])
    beyond = np.abs(skewed[:, 4]) ** 0.5 + np.log1p(skewed[:, 1])
    yield drawn("Skewed, misspecified", skewed, -2.0 + beyond + skewed @ [0.5, 0.0, 1.0, -1.0, 0.0, 0.3, 0.1], rng)


def levels(values: Any) -> tuple[str, ...]:
    """Return the categories, the most common first."""
    found, counts = np.unique(np.asarray(values, dtype=str), return_counts=True)
    return tuple(str(each) for each in found[np.argsort(-counts)])


def drawn(name: str, numbers: _F64, log_odds: _F64, rng: np.random.Generator) -> Table:
    """Return a table whose target follows the model."""
    target = rng.random(len(numbers)) < 1.0 / (1.0 + np.exp(-log_odds))
    return Table(name, {f"x{j}": column for j, column in enumerate(numbers.T)}, target)


def ordinary(rows: _F64, y: NDArray[np.bool_], params: _F64, weights: _F64 | float = 1.0) -> tuple[_F64, _F64]:
    """Return the coefficients of rows with their constant, and n times the covariance of their sampling error."""
    for _ in range(100):
        positive = 1.0 / (1.0 + np.exp(-(rows @ params)))
        curvature = weights * positive * (1.0 - positive)
        inverse = np.linalg.pinv((rows * curvature[:, None]).T @ rows / len(rows))
        scores = rows * (weights * (positive - y))[:, None]
        step = inverse @ scores.mean(axis=0)
        longest = np.abs(rows @ step).max()
        params = params - step * min(1.0, 4.0 / longest)
        if longest < 1e-8:
            return params, inverse @ (scores.T @ scores / len(rows)) @ inverse
    raise RuntimeError("Newton's method must converge")


def weighted(rows: _F64, y: NDArray[np.bool_], truth: _F64, newton: Newton) -> _F64:
    """Return the coefficients where rows weigh what they do at the last step, whose start is near the ordinary ones."""
    weights = np.minimum(1.0, float(newton.radii[-1]) / np.linalg.norm(rows @ newton.round_map, axis=1)) ** 2
    lengths = np.linalg.norm(rows @ newton.map, axis=1)
    gradient, hessian = newton.bounds[-1, :2]
    positive = 1.0 / (1.0 + np.exp(-(rows @ newton.map @ newton.starts[-1])))
    steepest = np.maximum(positive, 1.0 - positive) * weights * lengths
    most_curved = positive * (1.0 - positive) * weights * lengths**2
    if newton.ridge == 0.0:
        weights *= np.minimum(1.0, np.minimum(gradient / steepest, hessian / np.maximum(most_curved, 1e-300)))
    try:
        return ordinary(rows, y, truth, weights)[0]
    except (RuntimeError, np.linalg.LinAlgError):  # the rows that count can be separated
        return np.full(len(truth), np.nan)


class Tally:
    """Outcomes of the replicates of one cell."""

    def __init__(self) -> None:
        self.runs: list[tuple[_F64, _F64, _F64]] = []
        self.failed = 0

    def add(self, hit: _F64, ratio: _F64, shift: _F64) -> None:
        """Add coverage, length over that without privacy, and the shift of the target by weights, by coefficient."""
        self.runs.append((hit, ratio, shift))

    def row(self) -> list[str]:
        """Return what a row of the table shows."""
        if not self.runs:
            return ["", "", "", "0.0%", "100.0%"]
        hit, ratio, shift = (np.array(values) for values in zip(*self.runs, strict=True))
        given = np.isfinite(ratio)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            covered = np.nanmean(np.where(given, hit, np.nan), axis=0)
            each = np.nanmedian(ratio, axis=0)
            moved = np.nanmax(np.abs(np.nanmedian(shift, axis=0)))
        often = given.mean(axis=0) >= 0.05
        return [
            f"{math.exp(np.nanmean(np.log(each))):.2f} / {np.nanmax(each):.2f}",
            f"{hit[given].mean():.3f} / {np.nanmin(covered[often]) if often.any() else math.nan:.3f}",
            f"{moved:.2f}",
            f"{given.mean():.1%}",
            f"{self.failed / (len(self.runs) + self.failed):.1%}",
        ]


def replicate(data: Table, n: int, budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP, seed: int, tally: Tally) -> None:
    """Release bounds and a fit of records that are drawn with replacement, and compare with the whole table."""
    rng = np.random.default_rng(seed)
    people = data.sample(rng.integers(0, len(data.target), n))
    try:
        fit = dpci.fit(people, schema=data.schema(), budget=budget, seed=seed)
    except dpci.DpciError:
        tally.failed += 1
        return
    schema = fit.schema
    assert schema is not None
    whole = schema.transform(data.sample(np.arange(len(data.target))))
    newton = record_of(fit).newton
    assert newton is not None
    X = whole.X.toarray() if issparse(whole.X) else np.asarray(whole.X)
    rows, y = np.column_stack([X, np.ones(len(data.target))]), np.asarray(whole.y) > 0
    try:
        truth, variance = ordinary(rows, y, np.zeros(rows.shape[1]))
    except (RuntimeError, np.linalg.LinAlgError):  # at these bounds the classes of the whole table can be separated
        return
    # The shift hardly varies: some replicates show it.
    is_shown = len(tally.runs) < SHIFTS
    target = weighted(rows, y, truth, newton) if is_shown else np.full(len(truth), np.nan)
    units, shift, _, _ = unit_map(record_of(fit))
    with np.errstate(invalid="ignore"):  # of a coefficient without an end
        errors = np.sqrt(np.diag(units @ variance @ units.T) / n)
    if fit.interval_refusal is not None:
        tally.failed += 1
        return
    interval = fit.conf_int()
    half = 0.5 * (interval.upper - interval.lower)
    exact = units @ truth + shift
    endless = data.one_class()
    ends = np.array([name not in endless for name in fit.names])
    with np.errstate(invalid="ignore", divide="ignore"):
        hit = (np.abs(interval.estimate - exact) <= half).astype(float)
        found = hit, half / (Z * errors), units @ (target - truth) / half
    tally.add(*(each[ends] for each in found))


def cell(name: str, n: int, label: str, seeds: range) -> str:
    """Return the row of one cell."""
    warnings.simplefilter("ignore", dpci.DpciWarning)
    data = next(each for each in tables() if each.name == name)
    tally = Tally()
    for seed in seeds:
        replicate(data, n, BUDGETS[label], seed, tally)
    return f"| {' | '.join([name, f'{n:,}', str(data.n_columns()), label, *tally.row()])} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("replicates", type=int, nargs="?", default=400)
    options.add_argument("--tables", help="names, with semicolons between them")
    options.add_argument("--budgets", help="names, with semicolons between them", default=";".join(BUDGETS))
    options.add_argument("--seed", type=int, default=0, help="that of the first replicate")
    options.add_argument("--workers", type=int, default=2)
    chosen = options.parse_args()
    names = None if chosen.tables is None else chosen.tables.split(";")
    seeds = range(chosen.seed, chosen.seed + chosen.replicates)
    cells = [
        (data.name, n, label, seeds)
        for data in tables()
        if names is None or data.name in names
        for n in data.sizes()
        for label in chosen.budgets.split(";")
    ]
    print("# Newton steps: length and coverage\n")
    print(f"`benches/newton.py {chosen.replicates} --seed {chosen.seed}` at {commit()}, {now()}.\n")
    print(
        "No bound of a number is known: the fit releases bounds first, within its budget. *Length*: half length of the "
        "95% interval over that without privacy, geometric mean and worst coefficient. *Coverage* of the ordinary "
        "coefficient at the released bounds, mean and worst. *Shift*: how far the weights of far-out rows move a "
        "coefficient, in half lengths, worst. *Given*: share of coefficients with an interval. *Refused*: share of "
        "fits without any.\n"
    )
    print(f"Constants were chosen on {', '.join(SEEN)}, or after a look at them; the other tables are held out.\n")
    print("| table | n | columns | budget | length | coverage | shift | given | refused |")
    print("|---|---|---|---|---|---|---|---|---|")
    with ProcessPoolExecutor(chosen.workers) as pool:
        for row in pool.map(cell, *zip(*cells, strict=True)):
            print(row, flush=True)


if __name__ == "__main__":
    main()
