"""Coverage and length of the default intervals, against those that know both matrices. Not private.

"Ideal" intervals know the true matrices and have the noise of the same fit; the "bound" has the whole budget on the
coefficients and knows the matrices. "Without noise" is a fit at ε = 10⁶, whose intervals are those of the textbook
sandwich: what they miss is due to columns with few rows, not to noise. Adult, KDD and one Beta-distributed column
served while the constants of the method were chosen; the held-out data did not.
Prints Markdown; exit code 1 if a rule is broken. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import dpci
from _studies import (
    BUDGETS,
    L2_STRENGTH,
    LOSSES,
    Rows,
    Run,
    adult,
    changed_options,
    kdd,
    load,
    markdown,
    parser,
    report,
    started,
)
from dpci import lowlevel
from dpci.mechanisms import check_mechanism

LOSSES = {**LOSSES, "squared": dpci.losses.Squared(1.0)}
RADIUS = 2.0
MEAN, WORST, IDEAL = (0.942, 0.968), 0.915, 1.25
MEDIAN = (0.945, 0.96)
HEADER = (
    "data,budget,mechanism,loss,λ,r_H/λ,coverage (s.e.),worst parameter,without noise: mean; worst,"
    "length,over ideal,over bound,longest"
)
WITHOUT_NOISE = dpci.PureDP(1e6)


@dataclass(frozen=True)
class Generated:
    """Generated rows; d counts the columns before the column of ones."""

    title: str
    d: int
    make: Callable[[], tuple[np.ndarray, np.ndarray]]

    def __str__(self) -> str:
        return f"{self.title}, d={self.d}"


@dataclass(frozen=True)
class Cell:
    """One setting of a fit; notion is that of the budget, ε that of pure DP."""

    rows: Rows | Generated
    notion: str
    mechanism: str
    epsilon: float = 1.0
    l2_strength: float = 0.002
    loss: str = "logistic"
    neighbors: str = "replace_one"

    def budget(self) -> dpci.PureDP | dpci.ZCDP | dpci.ApproxDP:
        return dpci.PureDP(self.epsilon) if self.notion == "pure" else BUDGETS[self.notion]


def unit(X: np.ndarray) -> np.ndarray:
    """Rows with a column of ones, scaled to the unit ball by their greatest norm."""
    X = np.column_stack([X, np.ones(len(X))])
    return X / np.linalg.norm(X, axis=1).max()


@functools.cache
def beta(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Awan & Wang's design: one Beta(1/2, 1/2) column."""
    rng = np.random.default_rng(1)
    x = rng.beta(0.5, 0.5, n)
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(0.5 - 1.5 * x)), 1.0, -1.0)
    return unit(2.0 * x[:, None] - 1.0), y


@functools.cache
def collinear() -> tuple[np.ndarray, np.ndarray]:
    """Twelve columns, of which eight are sums of the others with little of their own."""
    rng = np.random.default_rng(2)
    base = rng.uniform(-1, 1, (30_000, 4))
    rest = base @ rng.normal(size=(4, 8)) + 0.1 * rng.uniform(-1, 1, (30_000, 8))
    X = unit(np.column_stack([base, rest / 3.0]))
    return X, np.where(X[:, :4].sum(axis=1) * 6.0 + rng.logistic(size=len(X)) > 0.0, 1.0, -1.0)


@functools.cache
def heavy() -> tuple[np.ndarray, np.ndarray]:
    """Ten columns with heavy tails, clipped, and labels from a model with squares, interactions and heavy tails."""
    rng = np.random.default_rng(3)
    X = np.clip(rng.standard_t(2.5, (30_000, 10)), -6.0, 6.0)
    signal = X[:, 0] - 0.5 * X[:, 1] ** 2 + X[:, 2] * X[:, 3] + np.abs(X[:, 4]) + rng.standard_cauchy(len(X))
    return unit(X / 6.0), np.where(signal > 0.5, 1.0, -1.0)


@functools.cache
def wages() -> tuple[np.ndarray, np.ndarray]:
    """A bounded target for the squared loss."""
    rng = np.random.default_rng(4)
    X = unit(rng.uniform(-1, 1, (30_000, 8)))
    return X, np.clip(X @ np.linspace(-0.6, 0.9, 9) + 0.3 * rng.normal(size=len(X)), -1.0, 1.0)


BANK, CREDIT = (lambda d: Rows("Bank", "bank", None, d)), (lambda d: Rows("Credit", "credit_default", None, d))
A10 = adult(10)
TUNED = [
    Cell(A10, "pure", "objective", 0.1),
    Cell(A10, "pure", "objective", 0.3),
    Cell(A10, "pure", "objective"),
    Cell(A10, "pure", "objective", 3.0),
    Cell(A10, "zCDP", "objective"),
    Cell(A10, "(ε,δ)", "objective"),
    Cell(A10, "pure", "objective", l2_strength=2e-4),
    Cell(A10, "pure", "objective", 3.0, 2e-4),
    Cell(A10, "(ε,δ)", "objective", l2_strength=2e-4),
    Cell(A10, "pure", "objective", 0.1, 0.02),
    Cell(A10, "pure", "objective", l2_strength=0.02),
    Cell(A10, "pure", "output"),
    Cell(A10, "pure", "output", 0.3),
    Cell(A10, "zCDP", "output"),
    Cell(A10, "zCDP", "output", l2_strength=0.02),
    Cell(A10, "pure", "objective", loss="Huber"),
    Cell(A10, "zCDP", "output", loss="Huber"),
    Cell(A10, "pure", "objective", neighbors="add_remove"),
    Cell(kdd(50_000, 10), "pure", "objective", 0.1),
    Cell(kdd(50_000, 10), "pure", "objective", 0.3),
    Cell(kdd(50_000, 10), "pure", "objective"),
    Cell(adult(30), "pure", "objective"),
    Cell(adult(50), "pure", "objective"),
    Cell(adult(50), "zCDP", "output"),
    Cell(adult(50), "(ε,δ)", "objective"),
    Cell(adult(104), "pure", "objective"),
    Cell(adult(104), "zCDP", "output"),
    Cell(kdd(450_000, 10), "pure", "objective", loss="Huber"),
    Cell(kdd(450_000, 10), "pure", "objective", 4.0),
    Cell(kdd(450_000, 10), "(ε,δ)", "objective", neighbors="add_remove"),
]
HELD_OUT = [
    Cell(BANK(10), "pure", "objective"),
    Cell(BANK(10), "pure", "objective", 0.3),
    Cell(BANK(10), "pure", "output", 0.3, 0.01, "Huber"),
    Cell(BANK(30), "pure", "objective"),
    Cell(BANK(30), "zCDP", "output"),
    Cell(CREDIT(10), "pure", "objective"),
    Cell(CREDIT(10), "pure", "objective", neighbors="add_remove"),
    Cell(CREDIT(20), "pure", "objective"),
    Cell(CREDIT(20), "(ε,δ)", "objective", l2_strength=5e-4),
    Cell(Generated("Collinear", 12, collinear), "pure", "objective"),
    Cell(Generated("Collinear", 12, collinear), "zCDP", "output"),
    Cell(Generated("Heavy tails, misspecified", 10, heavy), "pure", "objective"),
    Cell(Generated("Heavy tails, misspecified", 10, heavy), "(ε,δ)", "objective"),
    Cell(Generated("Ridge on a ball", 8, wages), "pure", "objective", loss="squared", l2_strength=0.01),
    Cell(Generated("Ridge on a ball", 8, wages), "zCDP", "output", loss="squared", l2_strength=0.01),
]
FEW = [
    Cell(Generated(f"Beta n={n:,}", 1, functools.partial(beta, n)), "pure", "objective", epsilon, 0.0)
    for n, epsilon in ((100, 1.0), (100, 10.0), (500, 0.3), (500, 3.0), (2000, 0.1), (2000, 1.0), (2000, 10.0))
]


def measure(run: Run, cell: Cell) -> list[object]:
    X, y = cell.rows.make() if isinstance(cell.rows, Generated) else load(cell.rows)
    n, d = X.shape
    keywords: dict[str, Any] = {
        "budget": cell.budget(),
        "mechanism": replace(check_mechanism(cell.mechanism), radius=RADIUS if cell.loss == "squared" else None),
        "loss": LOSSES[cell.loss],
        "rows": dpci.rows.Within(intercept=False),
        "neighbors": dpci.AddRemove(n) if cell.neighbors == "add_remove" else cell.neighbors,
    }
    sizes = {"n_samples": n, "n_features": d, **keywords}
    # 0: twice the least λ.
    l2_strength = cell.l2_strength or 2.0 * dpci.plan(**sizes, l2_strength=1.0).least_l2_strength
    sizes["l2_strength"] = l2_strength
    plan = dpci.plan(**sizes)
    classes = {} if cell.loss == "squared" else {"classes": (-1, 1)}
    study, noiseless = dpci.simulate.coverage(
        X,
        y,
        n_replicates=run.counts(cell.rows)[0],
        n_variability=0,
        l2_strength=l2_strength,
        seed=run.seed,
        n_threads=run.threads,
        configs=[{}, {"budget": WITHOUT_NOISE}],
        **keywords,
        **classes,
    )
    ideal, bound = ideals(X, y, keywords | classes, sizes)
    by_parameter, limit = covered(study), covered(noiseless)
    length, longest = study.mean_length, float((study.upper - study.lower).max())
    what = f"{cell.rows}, {cell.budget()}, {cell.mechanism}, {cell.loss}, λ={l2_strength:g}"
    error = study.coverage_se
    without = f"without noise {limit.mean():.4f}, worst {limit.min():.3f}"
    rules = [
        (
            MEAN[0] - 2 * error <= study.coverage <= MEAN[1] + 2 * error,
            f"coverage must be in {MEAN} but for 2 standard errors, got {study.coverage:.4f}; {without}",
        )
    ]
    if plan.noise_ratio <= 10:
        slack = 2 * (WORST * (1 - WORST) / study.n_replicates) ** 0.5
        rules += [
            (
                by_parameter.min() >= WORST - slack,
                f"the worst parameter must be covered {WORST}, got {by_parameter.min():.3f}; {without}",
            ),
            (length / ideal <= IDEAL, f"the length over the ideal must be at most {IDEAL}, got {length / ideal:.3f}"),
        ]
    run.check(what, rules)
    row = [
        cell.rows,
        f"{cell.budget()}{', add/remove' if cell.neighbors != 'replace_one' else ''}",
        cell.mechanism,
        cell.loss,
    ]
    row += [
        f"{l2_strength:.2g}",
        f"{plan.noise_ratio:.1f}",
        f"{study.coverage:.4f} ({error:.4f})",
        f"{by_parameter.min():.3f}",
        f"{limit.mean():.4f}; {limit.min():.3f}",
    ]
    return [*row, f"{length:.4g}", f"{length / ideal:.3f}", f"{length / bound:.3f}", f"{longest:.3g}"]


def covered(study: dpci.simulate.CoverageStudy) -> np.ndarray:
    """The share of the replicates whose interval has the target, by parameter."""
    inside: np.ndarray = (study.lower <= study.target) & (study.target <= study.upper)
    return inside.mean(axis=0)


def ideals(X: Any, y: np.ndarray, keywords: dict[str, Any], sizes: dict[str, Any]) -> tuple[float, float]:
    """Mean lengths with the true matrices and the noise of the fit, and of one that spends all on the coefficients."""
    n, d = X.shape
    loud = {key: value for key, value in keywords.items() if key != "neighbors"}
    mechanism = keywords["mechanism"]
    loud |= {
        "budget": dpci.PureDP(1e9),
        "mechanism": replace(mechanism, projection="floor"),
        "seed": 0,
        "l2_strength": sizes["l2_strength"],
    }
    exact = dpci.fit(X, y, **loud)
    parts = lowlevel.error_components(exact.hessian, exact.gradient_cov, n, np.eye(d), mechanism=mechanism.name)
    lengths = []
    for plan in (dpci.plan(**sizes), dpci.plan(**{**sizes, "mechanism": replace(mechanism, moments="none")})):
        law = {"noise_law": plan.steps[0].noise, "noise_scale": plan.steps[0].scale, "dim": d}
        lengths.append(2.0 * float(lowlevel.exact_half_widths(*parts, **law).mean()))
    return lengths[0], lengths[1]


def with_projection(projection: Any) -> dpci.ObjectivePerturbation:
    return dpci.ObjectivePerturbation(projection=projection)


def cells(run: Run, chosen: list[Cell], title: str) -> Iterator[str]:
    yield f"## {title}\n"
    table = [measure(run, cell) for cell in chosen if not run.quick or cell.rows.d <= 10]
    yield from markdown(HEADER.split(","), table)
    median = statistics.median(float(str(row[6]).split()[0]) for row in table)
    over = statistics.median(float(str(row[10])) for row in table)
    yield f"\nMedian cell: coverage {median:.4f}, length {over:.3f} of the ideal."
    if chosen is FEW:
        return
    rules = [
        (MEDIAN[0] <= median <= MEDIAN[1], f"coverage of the median cell must be in {MEDIAN}, got {median:.4f}"),
        (over <= 1.10, f"the length of the median cell over the ideal must be at most 1.10, got {over:.3f}"),
    ]
    run.check(title, rules)


def costs(run: Run) -> Iterator[str]:
    """Processor time of a fit's intervals, and of a replicate against one whose matrices are taken as exact."""
    yield "## Costs\n"
    table = []
    for rows in (adult(10),) if run.quick else (adult(10), adult(90)):
        X, y = load(rows)
        keywords: dict[str, Any] = {
            "budget": dpci.PureDP(1.0),
            "l2_strength": L2_STRENGTH,
            "rows": dpci.rows.Within(intercept=False),
        }
        saved = dpci.fit(X, y, classes=(-1, 1), seed=0, **keywords).to_json()
        law = seconds(intervals_of, saved) - seconds(dpci.PrivateFit.from_json, saved)
        study = functools.partial(dpci.simulate.coverage, X, y, n_variability=0, n_threads=1, **keywords)
        floor, aware = (
            (
                seconds(functools.partial(study, n_replicates=100, mechanism=mechanism))
                - seconds(functools.partial(study, n_replicates=20, mechanism=mechanism))
            )
            / 80
            for mechanism in map(with_projection, ("floor", "noise_aware"))
        )
        table.append([rows, f"{1e3 * law:.1f}", f"{1e3 * aware:.1f}", f"{aware / floor:.2f}"])
    header = "data,law and intervals of a saved fit (ms),replicate (ms),over one with the floor"
    yield from markdown(header.split(","), table)


def intervals_of(saved: str) -> object:
    return dpci.PrivateFit.from_json(saved).conf_int()


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """The least processor time of five runs."""
    times = []
    for _ in range(5):
        before = time.process_time()
        work(*arguments)
        times.append(time.process_time() - before)
    return min(times)


def main() -> None:
    sections = {
        "tuned": lambda run: cells(run, TUNED, "Data that the constants were chosen on"),
        "held-out": lambda run: cells(run, HELD_OUT, "Held-out data"),
        "few": lambda run: cells(
            run, FEW, "One Beta-distributed column and a constant, twice the least λ (Awan & Wang's design)"
        ),
        "costs": costs,
    }
    options = parser(__doc__.splitlines()[0], list(sections))
    arguments = options.parse_args()
    report(
        "Default intervals: coverage and length",
        started(arguments),
        changed_options(options, arguments),
        sections,
        arguments.only,
        model="Huber h=1, default shares",
    )


if __name__ == "__main__":
    main()
