"""Coverage of the intervals of random fits: losses, mechanisms, notions, relations, units and tables drawn at random.

A cell is one way to fit one table. The table is the population: a fit takes as many records as it has, drawn with
replacement, and the target is the minimiser of the whole table. Where no interval can be refused, a bootstrap study
repeats the fit, and some further fits show which warnings it gives. Elsewhere the fits themselves are repeated. A cell
that covers below a limit is repeated with new draws, and the verdict is that of the repetition. A cell follows from its
number alone. Two constants of the intervals were chosen with a look at four of them (docs/proofs/intervals.md, "Rare
columns"). Not private. Prints Markdown; exit code 1 if a cell is below a limit and warnings do not name the parameter,
or neither warnings nor summaries of its fits say so.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
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
    extra_of,
    heard,
    real_targets,
    record_weights,
    sample,
)
from _studies import markdown
from dpci.mechanisms import check_mechanism

FITS, AGAIN = 200, 1_000
# Further fits of a study that show its warnings; those of a repetition.
FOR_WARNINGS, FOR_VERDICT = 10, 100
# Fits without intervals after which a cell without any is left.
FOR_NOTHING = 30
GREATEST_RIDGE = 1.0
WITHOUT_NOISE = dpci.PureDP(1e6)
NOTE = "note"
# Verdicts on cells below a limit.
LOW = ("named", "warned", "noted", "silent")
CLASSES = ("logistic", "huber_hinge", "smooth_hinge", "probit", "cloglog")
REALS = ("huber", "quantile", "squared", "moments")
COUNTS = ("poisson", "negative_binomial")
INTRODUCTION = f"""\
A cell is one way to fit one table, both drawn at random. Each has {FITS} fits of records drawn from the table
with replacement; the target is the minimiser of the whole table. Losses, their parameters, columns, targets,
budgets, mechanisms, domains of rows, relations, units and ridges are drawn; numbers of records are from 300 to
50,000, most of them small. A cell with a mean coverage below {MEAN:g} or a parameter below {WORST:g} is
repeated with {AGAIN:,} new fits, whose coverage counts. It is *named* if at least half of its fits give a warning
on their intervals, and at least half name each parameter that is covered below {WORST:g}; *warned* if they give one
without the name. It is *noted* if its summary says how much too short an interval of a single parameter can be, or
that the classical covariance assumes errors of equal variance and they are not. Else it is *silent*.
"""
LOSSES = (*CLASSES, "soft_logistic", *REALS, *COUNTS)
# Losses without a public bound on their slope or their curvature off a ball.
ON_A_BALL = ("squared", "probit", "cloglog", "poisson")


@dataclasses.dataclass(frozen=True)
class Cell(Drawn):
    """One way to fit one table, with the minimiser over the whole of it."""

    target: Numbers


def class_targets(rng: np.random.Generator, signal: Numbers) -> tuple[str, Numbers]:
    """Labels -1 and 1: a logistic model with some share of positives, or another model."""
    kind = str(rng.choice(["logistic", "logistic", "misspecified", "independent"]))
    rate = float(rng.choice([0.03, 0.2, 0.5]))
    scores = {
        "logistic": lambda: float(rng.choice([1.0, 3.0])) * signal + rng.logistic(size=len(signal)),
        "misspecified": lambda: signal + signal**2 + rng.standard_t(2.0, len(signal)),
        "independent": lambda: rng.logistic(size=len(signal)),
    }[kind]()
    return f"{kind}, {rate:.0%} positives", np.where(scores > np.quantile(scores, 1.0 - rate), 1.0, -1.0)


def targets(rng: np.random.Generator, loss: str, signal: Numbers) -> tuple[str, Numbers]:
    if loss in CLASSES:
        return class_targets(rng, signal)
    if loss == "soft_logistic":
        scores = signal + rng.normal(size=len(signal))
        return "shares", 1.0 / (1.0 + np.exp(-scores))
    if loss in COUNTS:
        rates = np.exp(np.clip(0.5 * signal + rng.choice([-2.0, 0.0, 1.0]), -5.0, 2.0))
        heavy = rng.gamma(1.0, 1.0, len(signal)) if rng.random() < 0.5 else 1.0
        return "counts", np.minimum(rng.poisson(rates * heavy), 10).astype(float)
    return real_targets(rng, signal)


def loss_of(rng: np.random.Generator, name: str) -> Any:
    """The loss, with a parameter at which its curvature is anything from a small to the whole part of its bound."""
    size = float(np.exp(rng.uniform(np.log(0.02), np.log(1.0))))
    made = {
        "huber_hinge": lambda: dpci.losses.HuberHinge(h=max(size, 0.05)),
        "smooth_hinge": lambda: dpci.losses.SmoothHinge(s=max(size, 0.05)),
        "huber": lambda: dpci.losses.Huber(k=size),
        "quantile": lambda: dpci.losses.Quantile(quantile=float(rng.choice([0.1, 0.5, 0.75])), s=size),
    }
    return made[name]() if name in made else name


def budget_of(rng: np.random.Generator) -> Any:
    epsilon = float(np.exp(rng.uniform(np.log(0.5), np.log(10.0))))
    notions = [dpci.PureDP(epsilon), dpci.ZCDP(epsilon**2 / 8.0), dpci.ApproxDP(epsilon, 1e-6)]
    return notions[rng.integers(3)]


def cell(number: int) -> Cell | None:
    """The cell of a number; None if its settings are refused."""
    rng = np.random.default_rng([20_261_128, number])
    name = LOSSES[number % len(LOSSES)]
    d = int(rng.integers(1, 11))
    n = int(300.0 * (50_000 / 300) ** rng.random() ** 1.7)
    unit = str(rng.choice(["rows", "rows", "persons", "weights"]))
    counts = rng.choice([1, 2, 4], n) if unit == "persons" else None
    shape, X = columns(rng, n if counts is None else int(counts.sum()), d)
    spread = X.std(axis=0) + 1e-9
    signal = (X - X.mean(axis=0)) / spread @ rng.normal(size=d) / d**0.5
    kind, y = targets(rng, name, signal)
    budget = budget_of(rng)
    weights = rng.choice([0.25, 0.5, 1.0], n) if unit == "weights" else None
    neighbors = str(rng.choice(["replace_one", "replace_one", "add_remove"]))
    blocks = name == "moments" or rng.random() < 0.4
    scale = 1.0 if name == "moments" else d**-0.5
    keywords: dict[str, Any] = {"budget": budget, "neighbors": neighbors}
    if name == "moments":
        robust, refine = unit != "rows" or bool(rng.integers(2)), unit == "rows" and bool(rng.integers(2))
        keywords |= {"bounds": (-1.0, 1.0), "robust": robust or None, "refine": refine or None}
        target, mechanism = least_squares(X, y, counts, weights), f"robust={robust} refine={refine}"
    else:
        mechanism = str(rng.choice(["objective", "output"]))
        keywords |= {"loss": loss_of(rng, name), "mechanism": check_mechanism(mechanism)}
        keywords |= {"rows": dpci.rows.Blocks([scale] * d)} if blocks else {"rows": 1.0}
        keywords["l2_strength"] = float(np.exp(rng.uniform(np.log(3e-4), np.log(0.05))))
        mechanism = f"{mechanism}, {'blocks' if blocks else 'ball'}"
        target = None
    title = f"{name}; {kind}; {shape} d={d}; {budget}; {mechanism}; {neighbors}; {unit}"
    made = Cell(number, title, X * scale, y, counts, weights, n, keywords, np.empty(0) if target is None else target)
    return made if target is not None else with_strength(made, rng)


def least_squares(X: Numbers, y: Numbers, counts: Numbers | None, weights: Numbers | None) -> Numbers:
    design = np.column_stack([X, np.ones(len(X))])
    root = np.sqrt(record_weights(counts, weights, len(X)))
    return np.linalg.lstsq(design * root[:, None], y * root, rcond=None)[0]


def with_strength(made: Cell, rng: np.random.Generator) -> Cell | None:
    """The cell with a ridge that its mechanism allows, a radius where its loss needs one, and its target."""
    keywords = dict(made.keywords)
    multiple, room = float(np.exp(rng.uniform(np.log(1.2), np.log(8.0)))), float(rng.choice([1.5, 3.0, 6.0]))
    # Weights of 1, 1/2 and 1/4, as rows that occur four times, twice and once.
    copies = np.rint(4.0 * record_weights(made.persons, made.weights, len(made.y))).astype(int)
    X, y = np.repeat(made.X, copies, axis=0), np.repeat(made.y, copies)
    loss = keywords["loss"]
    for _ in range(4):
        common = {"l2_strength": keywords["l2_strength"], "loss": loss, "intercept": 1.0}
        try:
            if made.keywords["loss"] in ON_A_BALL:
                wide = {"radius": 20.0} if loss in ON_A_BALL else {}
                found = dpci.lowlevel.minimize_erm(X, y, **common, **wide, n_threads=1).params
                radius = max(0.1, room * float(np.linalg.norm(found)))
                keywords["mechanism"] = dataclasses.replace(keywords["mechanism"], radius=radius)
                target = dpci.lowlevel.minimize_erm(X, y, **common, radius=radius, n_threads=1).params
            else:
                target = dpci.lowlevel.minimize_erm(X, y, **common, n_threads=1).params
            fit(dataclasses.replace(made, keywords=keywords), 0)
        except dpci.RegularizationTooSmall as error:
            # Such a ridge leaves nothing to estimate.
            if error.least is None or error.least > GREATEST_RIDGE:
                return None
            keywords["l2_strength"] = multiple * error.least
        except dpci.DpciError:
            return None
        else:
            return dataclasses.replace(made, keywords=keywords, target=np.asarray(target))
    return None


@dataclasses.dataclass(frozen=True)
class Fit:
    """Intervals and warnings of one fit."""

    # Whether each interval covers, and their lengths; None without intervals, or without a target.
    covers: Numbers | None
    lengths: Numbers | None
    # Names of the warnings, and of the note of the summary.
    said: set[str]
    # Whether a warning names each parameter.
    named: Numbers | None


@dpci.threads(1)
def fit(made: Cell, run: int) -> Fit:
    """One fit of a cell to records drawn from its table."""
    rng = np.random.default_rng([made.number, run])
    X, y, extra = sample(made, rng)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        common = made.keywords | extra | {"seed": run}
        if "loss" in common:
            result = dpci.fit(X, y, **common)
            refused = result.interval_refusal is not None
        else:
            result = dpci.regression.release(X, y, **common).fit()
            refused = result.interval_refusal is not None
        found = None if refused else result.conf_int(level=LEVEL)
        noted = not refused and is_noted(made, result)
    said, named = heard(caught, result.names)
    said |= {NOTE} if noted else set()
    if found is None:
        return Fit(None, None, said, None)
    if not len(made.target):
        return Fit(None, found.length, said, None)
    return Fit((found.lower <= made.target) & (made.target <= found.upper), found.length, said, named)


def is_noted(made: Cell, result: Any) -> bool:
    """Whether the summary says that this cell's intervals can be too short."""
    if "loss" in made.keywords:
        return any("single parameters differ" in note for note in result.privacy["interval_notes"])
    return result.covariance == "classical" and "; uneven" in made.title


def bootstrap(made: Cell, fits: int, first: int) -> dict[str, Any]:
    """Coverage by a bootstrap study; a few fits for the warnings."""
    common = made.keywords | extra_of(made, made.weights, made.persons)
    found = dpci.simulate.coverage(
        made.X, made.y, **common, n_replicates=fits, n_variability=0, level=LEVEL, seed=first, n_threads=1
    )
    share = found.coverage_by_param
    runs = FOR_WARNINGS if first == 0 else FOR_VERDICT
    few = [fit(made, run) for run in range(first, first + runs)]
    return {"length": float(found.mean_length), "refused": 0} | of_fits(few, share)


def of_fits(fits: list[Fit], share: Numbers | None = None) -> dict[str, Any]:
    """Warnings of fits, coverage of the parameters, and the shares of fits that name them."""
    spoken = collections.Counter(name for one in fits for name in one.said)
    covered, named = (np.array([getattr(one, what) for one in fits]) for what in ("covers", "named"))
    share = covered.mean(axis=0) if share is None else share
    row: dict[str, Any] = {"coverage": share.tolist(), "named": named.mean(axis=0).tolist()}
    row["warnings"] = {name: count / len(fits) for name, count in spoken.items()}
    return row | {"mean": float(share.mean()), "worst": float(share.min())}


def repeated(made: Cell, fits: int, first: int) -> dict[str, Any]:
    """Coverage by fits, of those that have intervals."""
    given, refused = [], 0
    for run in range(first, first + fits):
        if not given and refused == FOR_NOTHING:
            break
        try:
            one = fit(made, run)
        except dpci.DpciError:
            one = Fit(None, None, set(), None)
        if one.covers is None:
            refused += 1
        else:
            given.append(one)
    row: dict[str, Any] = {"refused": refused, "warnings": {}}
    if given and len(given) >= fits // 10:
        row |= {"length": float(np.median([one.lengths for one in given]))} | of_fits(given)
    return row


def study(number: int, fits: int = FITS, first: int = 0, *, noise: bool = True) -> dict[str, Any] | None:
    """Coverage of a cell, as a JSON object; None if its settings are refused. Without noise at an enormous budget."""
    made = cell(number)
    if made is None:
        return None
    if not noise:
        made = dataclasses.replace(made, keywords=made.keywords | {"budget": WITHOUT_NOISE})
    begun = time.perf_counter()
    simulated = "loss" in made.keywords and made.keywords["mechanism"].radius is None
    row: dict[str, Any] = {"number": number, "title": f"{made.title}; n={made.n:,}", "fits": fits}
    row |= {"l2": made.keywords.get("l2_strength"), "loss": str(made.keywords.get("loss", "moments"))}
    row |= (bootstrap if simulated else repeated)(made, fits, first)
    row["seconds"] = time.perf_counter() - begun
    is_low = row.get("mean", 1.0) < MEAN or row.get("worst", 1.0) < WORST
    if is_low and first == 0:
        row["again"] = study(number, AGAIN, FITS)
        row["without noise"] = study(number, AGAIN, FITS, noise=False)
    return row


def final_of(row: dict[str, Any]) -> dict[str, Any]:
    """The repetition of a cell, if enough of its fits have intervals; otherwise the cell."""
    again = row.get("again") or {}
    return again if "mean" in again else row


def verdict(row: dict[str, Any]) -> str:
    """ "holds", "named", "warned", "noted" or "silent"."""
    final = final_of(row)
    if final.get("mean", 1.0) >= MEAN and final.get("worst", 1.0) >= WORST:
        return "holds"
    said = {name for name, share in final["warnings"].items() if share >= SPOKEN}
    if said - {NOTE}:
        return "named" if all(named >= SPOKEN for named in low_parameters(final)) else "warned"
    return "noted" if said else "silent"


def low_parameters(final: dict[str, Any]) -> list[float]:
    """The shares of the fits in which a warning names each parameter that is covered below the limit."""
    pairs = zip(final["coverage"], final["named"], strict=True)
    return [named for coverage, named in pairs if coverage < WORST]


def lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    given = [row for row in rows if "mean" in row]
    groups = collections.defaultdict(list)
    for row in given:
        groups[row["title"].split(";")[0]].append(row)
    yield f"{len(rows):,} cells with settings that are allowed; {len(given):,} with intervals in a tenth of the fits.\n"
    table = []
    for name, of in sorted(groups.items()):
        means = sorted(row["mean"] for row in of)
        worst = sorted(row["worst"] for row in of)
        found = collections.Counter(verdict(row) for row in of)
        tenth = [f"{means[len(means) // 10]:.3f}", f"{worst[len(worst) // 10]:.3f}"]
        verdicts = [found[name] for name in LOW]
        table.append([name, len(of), f"{statistics.mean(means):.3f}", *tenth, *verdicts])
    head = "loss,cells,mean coverage,lowest tenth: mean,lowest tenth: worst parameter," + ",".join(
        f"low and {name}" for name in LOW
    )
    yield from markdown(head.split(","), table)
    low = [row for row in given if verdict(row) != "holds"]
    low_head = "number,cell,loss,λ,mean,worst,without noise: mean,worst,warnings,low parameters named,verdict"
    yield f"\n## Cells below {MEAN} on average or {WORST} in one parameter\n"
    found = []
    for row in low:
        final = final_of(row)
        said = ", ".join(f"{name} {share:.0%}" for name, share in final["warnings"].items()) or "none"
        quiet = [f"{(row.get('without noise') or {}).get(key, math.nan):.3f}" for key in ("mean", "worst")]
        shown = [f"{row['l2'] or 0:.3g}", f"{final['mean']:.3f}", f"{final['worst']:.3f}", *quiet, said, verdict(row)]
        shares = ", ".join(f"{share:.0%}" for share in low_parameters(final)) or "none is low"
        found.append([row["number"], row["title"], row["loss"], *shown[:-1], shares, shown[-1]])
    yield from markdown(low_head.split(","), found)
    yield from precision(given)


def precision(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage of the parameters that warnings name, and of the others."""
    pairs = [pair for row in map(final_of, rows) for pair in zip(row["coverage"], row["named"], strict=True)]
    yield "\n## Parameters that warnings name\n"
    table = []
    for name, chosen in (("half of the fits or more", True), ("fewer", False)):
        of = [coverage for coverage, named in pairs if (named >= SPOKEN) == chosen]
        shares = [f"{sum(c < limit for c in of) / max(len(of), 1):.2%}" for limit in (MEAN, WORST)]
        table.append([name, f"{len(of):,}", f"{statistics.fmean(of) if of else math.nan:.3f}", *shares])
    head = f"named in,parameters,mean coverage,covered below {MEAN:g},below {WORST:g}"
    yield from markdown(head.split(","), table)


def main() -> int:
    told = Report(
        script="random_cells.py",
        title="Settings drawn at random",
        introduction=INTRODUCTION,
        study=study,
        lines=lines,
        verdict=verdict,
        given="mean",
    )
    return told.run(__doc__, cells=3_600)


if __name__ == "__main__":
    sys.exit(main())
