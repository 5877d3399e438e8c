"""Fits of five public tables of which names and kinds of columns alone are known: intervals, and how well they predict.

Not private: the same tables are fitted without noise. Prints Markdown.
"""

import argparse
import datetime as dt
import math
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import dpci
from _studies import markdown
from _timing import commit
from dpci.schema import ClassTarget, PartialSchema, UnboundedColumn, UnboundedTarget, UnlistedColumn
from papers.files import read_bytes, read_csv
from papers.wu.warfarin import FILE

BUDGETS = {
    "ε = 1": dpci.PureDP(1.0),
    "ρ = .5": dpci.ZCDP(0.5),
    "(1, 1e-6)": dpci.ApproxDP(1.0, 1e-6),
    "(3, 1e-6)": dpci.ApproxDP(3.0, 1e-6),
}
WITHOUT_NOISE = dpci.ZCDP(1e6)
DOSE = "Therapeutic Dose of Warfarin"
OF_WARFARIN = {
    "Height (cm)": True,
    "Weight (kg)": True,
    **dict.fromkeys(("Gender", "Race", "Age", "VKORC1 -1639 consensus", "CYP2C9 consensus"), False),
}
"""Columns, and whether they are numbers."""


@dataclass(frozen=True)
class Raw:
    """A table as published, and what its file and documentation say of its columns: their kinds."""

    name: str
    table: dict[str, NDArray[Any]]
    numbers: tuple[str, ...]
    lists: tuple[str, ...]
    target: ClassTarget | UnboundedTarget
    zeros: frozenset[str] = frozenset()
    """Numbers that count something rare: most are 0."""
    ridge: float | None = None

    def schema(self, budget: object) -> PartialSchema:
        """Return the schema with gaps; lists need a δ."""
        numbers = [
            UnboundedColumn(name=name, zeros=name in self.zeros, missing="middle" if name in OF_WARFARIN else "error")
            for name in self.numbers
        ]
        lists = [UnlistedColumn(name=name) for name in self.lists if isinstance(budget, dpci.ApproxDP)]
        return PartialSchema(columns=(*numbers, *lists), target=self.target, beyond_share=0.02, counts_share=0.1)


def raw_tables() -> Iterator[Raw]:
    """Yield the tables."""
    rare = {
        "adult": "capital-gain capital-loss",
        "bank": "previous",
        "kddcup99": "duration land wrong_fragment urgent hot num_failed_logins num_compromised root_shell su_attempted "
        "num_root num_file_creations num_shells num_access_files num_outbound_cmds is_host_login is_guest_login",
    }
    for name in ("adult", "bank", "credit_default", "kddcup99"):
        layout, table = dpci.datasets.load_layout(name), dpci.datasets.load_table(name)
        numbers = tuple(each for each in layout.numeric if each != layout.target)
        lists = tuple(each for each in table if each not in {*numbers, *layout.ignored, layout.target})
        target = np.isin(table.pop(layout.target).astype(str), layout.positive)
        classes = ClassTarget(column="class", negative=(False,), positive=(True,))
        # Attacks can be told from other connections by some columns alone, so that ordinary coefficients have no end.
        ridge = 1e-3 if name == "kddcup99" else None
        zeros = frozenset(rare.get(name, "").split())
        yield Raw(name, {**table, "class": target}, numbers, lists, classes, zeros, ridge)
    names, lines = read_csv(FILE, read_bytes(Path(os.environ["DPCI_DATA"], f"{FILE}.gz")))
    rows = dict(zip(names, np.array(list(lines)).T, strict=True))
    doses = ~np.isin(rows[DOSE], ["", "NA"])
    cells = {name: rows[name][doses] for name in (*OF_WARFARIN, DOSE)}
    numeric = {
        name: np.array([math.nan if cell in {"", "NA"} else float(cell) for cell in cells[name]])
        for name in (*(name for name, number in OF_WARFARIN.items() if number), DOSE)
    }
    lists = tuple(name for name, number in OF_WARFARIN.items() if not number)
    yield Raw("warfarin", {**cells, **numeric}, ("Height (cm)", "Weight (kg)"), lists, UnboundedTarget(column=DOSE))


def quality(raw: Raw, fit: Any) -> float:
    """Return the area under the curve, or the R², of a fit on the records themselves."""
    schema = fit.schema
    if isinstance(raw.target, UnboundedTarget):
        if fit.interval_refusal is not None:
            return math.nan
        y, residuals = raw.table[DOSE], raw.table[DOSE] - np.asarray(fit.predict(raw.table))
        return float(1.0 - np.mean(residuals**2) / np.var(y))
    rows, positive = schema.transform(raw.table).X, raw.table["class"]
    ranks = stats.rankdata(np.asarray(rows @ np.asarray(fit.scaled.params)[: rows.shape[1]]).ravel())
    n = positive.sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * (len(positive) - n)))


def row(raw: Raw, label: str, seeds: range) -> list[str]:
    """Return one row of the table."""
    budget = BUDGETS[label]
    schema = raw.schema(budget)
    loss: dict[str, Any] = {"loss": "squared"} if isinstance(raw.target, UnboundedTarget) else {}
    loss |= {} if raw.ridge is None else {"l2_strength": raw.ridge}
    found, seconds = [], []
    for seed in seeds:
        started = time.perf_counter()
        try:
            fit = dpci.fit(raw.table, schema=schema, budget=budget, seed=seed, **loss)
        except dpci.InvalidInput as refusal:
            return [raw.name, f"{len(raw.table[schema.target.column]):,}", label, f"refused: {refusal}"]
        seconds.append(time.perf_counter() - started)
        free = dpci.fit(raw.table, schema=fit.schema, budget=WITHOUT_NOISE, seed=seed, **loss)
        halves = [np.full(len(fit.names), np.nan) if each.interval_refusal
                  else np.subtract(*np.asarray(each.conf_int()).T[::-1]) for each in (fit, free)]  # fmt: skip
        with np.errstate(invalid="ignore"):
            ratio = np.nanmedian(halves[0] / halves[1])
        beyond = fit.privacy["released_bounds"]["beyond"] / fit.n_samples
        given = np.isfinite(halves[0]).mean()
        found.append((len(fit.names), beyond, given, ratio, quality(raw, fit), quality(raw, free)))
    k, beyond, given, ratio, own, free = np.nanmedian(np.array(found), axis=0)
    gaps = f"{len(schema.unbounded)} + {len(schema.unlisted)}"
    n = f"{len(raw.table[schema.target.column]):,}"
    length = "-" if math.isnan(ratio) else f"{ratio:.2f}"
    fits = ["-" if math.isnan(each) else f"{each:.3f}" for each in (own, free)]
    shown = [f"{k:.0f}", f"{beyond:.1%}", f"{given:.0%}", length, *fits]
    return [raw.name, n, label, gaps, *shown, f"{np.median(seconds):.1f}"]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--tables", nargs="*")
    options.add_argument("--budgets", nargs="*", default=list(BUDGETS))
    given = options.parse_args()
    warnings.simplefilter("ignore")
    print("# Five public tables of which kinds of columns alone are known\n")
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print(f"`benches/raw_tables.py --runs {given.runs}`, commit {commit()}, {today}, seeds from 417,000.\n")
    print(
        "One call of `dpci.fit` for each table as its file has it. No bound and no category is known; under ε-DP and "
        "zCDP the columns are numbers alone, because lists need a δ. `gaps`: numbers whose bounds, and categories "
        "whose lists, are released within the budget, with counts. `k`: parameters. `beyond`: records with a number "
        "beyond the released bounds, as released. `given`: coefficients with an interval; `length`: of these over "
        "those of a fit without noise at the same schema, median. `fits`: area under the curve, of warfarin R², on the "
        "records themselves; `no noise`: of the fit without noise. `kddcup99` has a ridge of 10⁻³. Medians.\n"
    )
    seeds = range(417_000, 417_000 + given.runs)
    tables = (raw for raw in raw_tables() if given.tables is None or raw.name in given.tables)
    cells = (row(raw, label, seeds) for raw in tables for label in given.budgets)
    header = ("table", "n", "budget", "gaps", "k", "beyond", "given", "length", "fits", "no noise", "seconds")
    for line in markdown(header, cells):
        print(line, flush=True)


if __name__ == "__main__":
    main()
