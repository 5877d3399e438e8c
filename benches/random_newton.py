"""Coverage of Newton steps at random: losses, notions, relations, units, tables and schemas drawn at random.

As benches/random_cells.py, whose tables these are, with two more kinds of columns: groups of which one class is rare in
the first, and columns that nearly agree; and predictors with a standard deviation of up to 4. Intervals are judged
twice: by the target that docs/proofs/newton.md states, the minimiser over the whole table where rows weigh, or slopes
are held, as the released values of the fit say; and by the ordinary coefficients. The verdict is that by the target.
Not private. Prints Markdown; exit code 1 if a cell is below a limit and no warning names the parameter.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import dpci
from _cells import (
    LEVEL,
    MEAN,
    SPOKEN,
    WORST,
    Drawn,
    Numbers,
    Report,
    columns,
    heard,
    real_targets,
    record_weights,
    sample,
)
from _studies import markdown
from dpci.losses import Poisson
from dpci.released.model import record_of
from dpci.schema import ClassTarget, PartialSchema, UnboundedColumn

FITS, AGAIN = 100, 200
# Standard error in the whole table, of the predictor over the range of a column, beyond which a coefficient has no end.
ENDLESS = 5.0
# Fits without intervals after which a cell without any is left; least share of fits with an interval that counts.
FOR_NOTHING, GIVEN = 25, 0.1
FLAT = {"huber", "quantile"}
LOSSES = ("logistic", "logistic", "logistic", "probit", "cloglog", "poisson", "huber", "quantile")
COUNT_BOUND = 10.0
KINDS = ("uniform", "normal", "student", "lognormal", "rare", "correlated", "mixed", "groups", "collinear")
INTRODUCTION = f"""\
Each cell has {FITS} fits without `l2_strength` of records drawn from its table with replacement. *Target* is the
minimiser over the whole table with the weights, or the held slopes, of each fit ([the
target](../proofs/newton.md#the-target)); *ordinary* is the minimiser without them. A coefficient counts where it has an
end in the whole table: that of a group whose records are all of one class has none. Coverage is that of the intervals
that are given, by at least a tenth of the fits. A cell with a mean coverage of the target below {MEAN:g}, or a
parameter below {WORST:g}, is repeated with {AGAIN} new fits, whose coverage counts. It is *named* if half of its fits
give a warning, and half name each parameter covered below {WORST:g}; *warned* if half give one; and else *silent*.
"""


@dataclasses.dataclass(frozen=True)
class Cell(Drawn):
    """One way to fit one table."""

    loss: Any
    # Of a table whose bounds nobody knows.
    has_gaps: bool

    @property
    def mass(self) -> Numbers:
        """Weights of the rows of the table."""
        return record_weights(self.persons, self.weights, len(self.y))


def drawn_columns(rng: np.random.Generator, n: int, d: int) -> tuple[str, Numbers]:
    kind = str(rng.choice(KINDS))
    if kind == "groups":
        level = rng.choice(d + 1, n, p=rng.dirichlet(np.full(d + 1, 0.7)))
        return kind, (level[:, None] == np.arange(d)).astype(float)
    if kind == "collinear":
        X = columns_of(rng, "normal", n, d)
        X[:, -1] = np.clip(X[:, 0] + float(rng.choice([0.1, 0.02])) * rng.normal(size=n) / 3.0, -1.0, 1.0)
        return kind, X
    return kind, columns_of(rng, kind, n, d)


def columns_of(rng: np.random.Generator, kind: str, n: int, d: int) -> Numbers:
    while True:
        found, X = columns(rng, n, d)
        if found == kind:
            return X


def drawn_targets(rng: np.random.Generator, loss: str, signal: Numbers) -> tuple[str, Numbers]:
    n = len(signal)
    if loss in FLAT:
        return real_targets(rng, signal)
    if loss == "poisson":
        heavy = float(rng.choice([0.0, 0.5]))
        rates = np.exp(np.clip(0.5 * signal + rng.choice([-2.5, 0.0, 1.0]), -6.0, 2.0))
        made = rng.poisson(rates * (rng.gamma(1.0 / heavy, heavy, n) if heavy else 1.0))
        return f"mean {made.mean():.2f}{', gamma' * bool(heavy)}", np.minimum(made, COUNT_BOUND).astype(float)
    rate, spread = float(rng.choice([0.02, 0.2, 0.5])), float(rng.choice([0.5, 1.0, 2.0, 4.0]))
    noise = {
        "logistic": lambda: rng.logistic(size=n),
        "probit": lambda: rng.normal(size=n),
        "cloglog": lambda: -rng.gumbel(size=n),
    }[loss]()
    kind = str(rng.choice(["model", "model", "misspecified"]))
    scores = spread * (signal + (kind == "misspecified") * 0.5 * signal**2) + noise
    return f"{kind}, spread {spread:g}, {rate:.0%} positives", np.where(
        scores > np.quantile(scores, 1 - rate), 1.0, -1.0
    )


def loss_of(rng: np.random.Generator, name: str) -> Any:
    size = float(np.exp(rng.uniform(np.log(0.03), np.log(1.0))))
    return {
        "logistic": dpci.losses.Logistic(),
        "probit": dpci.losses.Probit(),
        "cloglog": dpci.losses.CLogLog(),
        "poisson": Poisson(COUNT_BOUND),
        "huber": dpci.losses.Huber(k=size),
        "quantile": dpci.losses.Quantile(quantile=float(rng.choice([0.1, 0.5, 0.75])), s=size),
    }[name]


def budget_of(rng: np.random.Generator, *, continued: bool) -> Any:
    epsilon = float(np.exp(rng.uniform(np.log(0.5), np.log(10.0))))
    notions = [dpci.ZCDP(epsilon**2 / 8.0), dpci.ApproxDP(epsilon, 1e-6), dpci.PureDP(epsilon)]
    return notions[rng.integers(2 if continued else 3)]


def cell(number: int) -> Cell:
    """The cell of a number."""
    rng = np.random.default_rng([20_261_129, number])
    name = LOSSES[number % len(LOSSES)]
    d, n = int(rng.integers(1, 9)), int(300.0 * (50_000 / 300) ** rng.random() ** 1.4)
    unit = str(rng.choice(["rows", "rows", "persons", "weights"]))
    counts = rng.choice([1, 2, 4], n) if unit == "persons" else None
    shape, X = drawn_columns(rng, n if counts is None else int(counts.sum()), d)
    signal = (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9) @ rng.normal(size=d) / d**0.5
    kind, y = drawn_targets(rng, name, signal)
    weights = rng.choice([0.25, 0.5, 1.0], n) if unit == "weights" else None
    has_gaps = unit == "rows" and name in {"logistic", "probit", "cloglog"} and rng.random() < 0.3
    neighbors = "replace_one" if has_gaps else str(rng.choice(["replace_one", "replace_one", "add_remove"]))
    loss = loss_of(rng, name)
    budget = budget_of(rng, continued=name in {"probit", "cloglog", "poisson"})
    keywords: dict[str, Any] = {"budget": budget, "neighbors": neighbors, "loss": loss}
    if not has_gaps:
        scale = d**-0.5
        X = X * scale
        keywords["rows"] = dpci.rows.Blocks([scale] * d) if rng.random() < 0.5 else 1.0
    known = "unknown bounds" if has_gaps else "known bounds"
    title = f"{loss}; {kind}; {shape} d={d}; {budget}; {known}; {neighbors}; {unit}"
    return Cell(number, title, X, y, counts, weights, n, keywords, loss, has_gaps)


def slopes(loss: Any, u: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Slope and curvature of a loss, continued as a straight line where Newton steps take it so."""
    low, high = np.full(len(u), -np.inf), np.full(len(u), np.inf)
    if loss.name == "probit":
        low, high = np.where(y < 0, low, -5.0), np.where(y < 0, 5.0, high)
    elif loss.name in {"cloglog", "poisson"}:
        high = np.full(len(u), 2.5 if loss.name == "cloglog" else 1.0 + math.log(COUNT_BOUND))
    _, slope, curvature = loss.to_core().evaluate(np.clip(u, low, high), y)
    return slope, np.where((u < low) | (u > high), 0.0, curvature)


def minimiser(made: Cell, rows: Numbers, mass: Numbers, most: Numbers | None, start: Numbers) -> Numbers:
    """The minimiser of the mean loss of rows of this mass, whose slopes are held; NaN where there is none."""
    found = steps_from(start, made, rows, mass, most)
    return found if np.isfinite(found).any() else steps_from(np.zeros_like(start), made, rows, mass, most)


def steps_from(params: Numbers, made: Cell, rows: Numbers, mass: Numbers, most: Numbers | None) -> Numbers:
    """The end of Newton's steps; NaN where there is none."""
    mass = mass / mass.sum()
    squares = (rows * mass[:, None]).T @ rows
    room = 1e-7 * np.sqrt(np.diag(squares)) * made.loss.to_core().slope_bound if made.loss.name in FLAT else math.inf
    for k in range(400 if made.loss.name in FLAT else 40):
        slope, curvature = slopes(made.loss, rows @ params, made.y)
        if most is not None:
            curvature = np.where(np.abs(slope) < most, curvature, 0.0)
            slope = np.clip(slope, -most, most)
        gradient = rows.T @ (mass * slope)
        hessian = (rows * (mass * curvature)[:, None]).T @ rows
        # Where a loss is flat for most rows, steps are held back once they do not end.
        curved = hessian + (k >= 40) * curvature.max() * 0.2 * squares
        step = np.linalg.pinv(curved, rcond=1e-13, hermitian=True) @ gradient
        longest = float(np.abs(rows @ step).max())
        params = params - step * min(1.0, 2.0 / max(longest, 1e-300))
        if longest < 1e-6 and (np.abs(gradient) <= room).all():
            errors = np.sqrt(np.diag(np.linalg.pinv(hessian, rcond=1e-13, hermitian=True)) / len(rows))
            hidden = np.diag(hessian) < 1e-9 * (rows**2).mean(axis=0)
            return np.where(hidden | (errors * np.ptp(rows, axis=0) > ENDLESS), np.nan, params)
    return np.full(len(params), np.nan)


def held(loss: Any, rows: Numbers, mass: Numbers, newton: Any) -> tuple[Numbers, Numbers | None]:
    """Mass of the rows at the last step of a fit, and the greatest slopes where they are held."""
    radial = np.minimum(1.0, float(newton.radii[-1]) / np.linalg.norm(rows @ newton.round_map, axis=1)) ** 2
    if newton.ridge > 0.0:
        return mass * radial, None
    z = rows @ newton.map
    lengths = np.linalg.norm(z, axis=1)
    gradient, hessian = newton.bounds[-1, :2]
    if loss.name != "logistic":
        return mass * radial, gradient / (radial * lengths)
    positive = 1.0 / (1.0 + np.exp(-(z @ newton.starts[-1])))
    steepest = np.maximum(positive, 1.0 - positive) * radial * lengths
    most_curved = np.maximum(positive * (1.0 - positive) * radial * lengths**2, 1e-300)
    return mass * radial * np.minimum(1.0, np.minimum(gradient / steepest, hessian / most_curved)), None


@dpci.threads(1)
def fit(made: Cell, run: int, known: dict[str, Numbers]) -> dict[str, Any] | None:
    """One fit of a cell; None without intervals. ``known`` keeps the ordinary coefficients of unchanged rows."""
    X, y, extra = sample(made, np.random.default_rng([made.number, run]))
    common = made.keywords | extra | {"seed": run}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if made.has_gaps:
                names = [f"x{j}" for j in range(X.shape[1])]
                target = ClassTarget(column="y", negative=("no",), positive=("yes",))
                schema = PartialSchema(columns=tuple(UnboundedColumn(name=name) for name in names), target=target)
                result = dpci.fit(table(X, y), schema=schema, **common)
            else:
                classes = {"classes": (-1.0, 1.0)} if made.loss.name in {"logistic", "probit", "cloglog"} else {}
                result = dpci.fit(X, y, **common, **classes)
        except dpci.DpciError:
            return None
        if result.interval_refusal is not None:
            return None
        # Targets are coefficients of the rows as the fit saw them.
        scaled = result.scaled if made.has_gaps else result
        found = scaled.conf_int(level=LEVEL)
    whole = made.X
    if made.has_gaps:
        whole = np.asarray(result.schema.transform(table(made.X, made.y)).X)
    rows = np.column_stack([whole, np.ones(len(whole))])
    if made.has_gaps or "ordinary" not in known:
        known["ordinary"] = minimiser(made, rows, made.mass, None, scaled.params)
    ordinary = known["ordinary"]
    mass, most = held(made.loss, rows, made.mass, record_of(result).newton)
    target = minimiser(made, rows, mass, most, scaled.params)
    said, named = heard(caught, result.names)
    middle, half = 0.5 * (found.lower + found.upper), 0.5 * (found.upper - found.lower)
    return {
        "target": (target - middle) / half,
        "ordinary": (ordinary - middle) / half,
        "said": said,
        "named": named,
    }


def table(X: Numbers, y: Numbers) -> dict[str, Any]:
    return {f"x{j}": column for j, column in enumerate(X.T)} | {"y": np.where(y > 0, "yes", "no")}


def of_fits(fits: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """Coverage of what is given, and the shares of fits that name each parameter."""
    row: dict[str, Any] = {"given": len(fits) / number}
    for name in ("target", "ordinary"):
        errors = np.array([one[name] for one in fits])
        given = np.isfinite(errors)
        often = given.sum(axis=0) >= GIVEN * number
        if not often.any():
            return row
        covered = (given & (np.abs(np.where(given, errors, 2.0)) <= 1.0)).sum(axis=0) / np.maximum(given.sum(axis=0), 1)
        mean = (covered * given.sum(axis=0))[often].sum() / given.sum(axis=0)[often].sum()
        row[name] = {"mean": float(mean), "worst": float(covered[often].min())}
        if name == "target":
            low = often & (covered < WORST)
            row["low"] = np.mean([one["named"] for one in fits], axis=0)[low].tolist()
    spoken = collections.Counter(name for one in fits for name in one["said"])
    return row | {"warnings": {name: count / len(fits) for name, count in spoken.items()}}


def repeated(made: Cell, number: int, first: int) -> dict[str, Any]:
    given: list[dict[str, Any]] = []
    known: dict[str, Numbers] = {}
    for run in range(number):
        if not given and run == FOR_NOTHING:
            return {"given": 0.0}
        one = fit(made, first + run, known)
        given += [] if one is None else [one]
    return of_fits(given, number) if given else {"given": 0.0}


def is_low(row: dict[str, Any]) -> bool:
    return "target" in row and (row["target"]["mean"] < MEAN or row["target"]["worst"] < WORST)


def study(number: int, *, again: bool = True) -> dict[str, Any]:
    """Coverage of a cell, as a JSON object."""
    made, begun = cell(number), time.process_time()
    row = repeated(made, FITS, 0)
    if again and is_low(row):
        row["again"] = repeated(made, AGAIN, FITS)
    name = made.loss.name
    return row | {
        "number": number,
        "title": f"{made.title}; n={made.n:,}",
        "loss": name,
        "seconds": time.process_time() - begun,
    }


def final_of(row: dict[str, Any]) -> dict[str, Any]:
    again = row.get("again") or {}
    return again if "target" in again else row


def shown_of(row: dict[str, Any], by: str) -> dict[str, float]:
    """Coverage of a cell, by a target that may have no end."""
    found: dict[str, float] = final_of(row).get(by, {"mean": math.nan, "worst": math.nan})
    return found


def verdict(row: dict[str, Any]) -> str:
    """ "holds", "named", "warned" or "silent"."""
    final = final_of(row)
    if not is_low(final):
        return "holds"
    if any(share >= SPOKEN for share in final["warnings"].values()):
        return "named" if all(share >= SPOKEN for share in final["low"]) else "warned"
    return "silent"


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    given = [row for row in rows if "target" in row]
    yield f"{len(rows):,} cells; {len(given):,} with intervals in a tenth of the fits.\n"
    summary = []
    groups = sorted({row["loss"] for row in given})
    for name in groups:
        of = [row for row in given if row["loss"] == name]
        tenth = sorted(final_of(row)["target"]["worst"] for row in of)[len(of) // 10]
        means = [f"{np.nanmean([shown_of(row, by)['mean'] for row in of]):.3f}" for by in ("target", "ordinary")]
        verdicts = collections.Counter(map(verdict, of))
        summary.append([name, len(of), f"{np.mean([row['given'] for row in of]):.2f}", *means, f"{tenth:.3f}",
                        *(verdicts[what] for what in ("named", "warned", "silent"))])  # fmt: skip
    head = "loss,cells,fits with intervals,mean coverage of the target,of ordinary,lowest tenth: worst parameter"
    yield from markdown([*head.split(","), "low and named", "low and warned", "low and silent"], summary)
    yield f"\n## Cells below {MEAN:g} on average or {WORST:g} in one parameter\n"
    found = []
    for row in given:
        final = final_of(row)
        if is_low(final):
            shown = [f"{shown_of(row, by)[key]:.3f}" for by in ("target", "ordinary") for key in ("mean", "worst")]
            said = ", ".join(f"{name} {share:.0%}" for name, share in final["warnings"].items()) or "none"
            found.append([row["number"], row["title"], f"{final['given']:.2f}", *shown, said, verdict(row)])
    head = "number,cell,given,target: mean,worst,ordinary: mean,worst,warnings,verdict"
    yield from markdown(head.split(","), found)


def main() -> int:
    told = Report(
        script="random_newton.py",
        title="Newton steps at random",
        introduction=INTRODUCTION,
        study=study,
        lines=lines,
        verdict=verdict,
        given="target",
    )
    return told.run(__doc__, cells=320)


if __name__ == "__main__":
    sys.exit(main())
