"""How good the intervals at an (ε,δ) budget are, and which mechanism gives the shortest.

Bootstrap studies as in interval_quality.py, on the same data sets. Not private: the noise is seeded and the target is
read off the data. Prints Markdown; exit code 1 if a rule is broken. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dpci
from _studies import (
    BUDGETS,
    LOSSES,
    Rows,
    Run,
    Setting,
    adult,
    changed_options,
    kdd,
    load,
    markdown,
    parser,
    quality,
    report,
    started,
)

BUDGET = BUDGETS["(ε,δ)"]
ZCDP_WITHIN = BUDGET.zcdp_within()
LEAST_COVERAGE = 0.93
SMALL_CELLS = (adult(10), kdd(50_000, 10), kdd(450_000, 10))


# Coverage and length at the published shares.


def coverage(run: Run) -> Iterator[str]:
    """Both mechanisms and both losses at the published shares."""
    yield "## Coverage at the shares (.5, .25, .25)\n"
    yield (
        f"{BUDGET}, one record replaced. A cell holds if coverage is in [.945, .97] but for 3.5 standard errors, and "
        "the length ratio (mean length over the span of the released parameters) is at most 1.12.\n"
    )
    table = []
    parts = list(itertools.product(("objective", "output"), LOSSES))
    for rows in run.kept(SMALL_CELLS):
        configs = [Setting("(ε,δ)", *part, "tight").keywords() for part in parts]
        for part, study in zip(parts, run.coverage(rows, configs), strict=True):
            verdict = run.check(f"coverage, {rows}, {', '.join(part)}", coverage_rules(study))
            table.append([rows, *part, *quality(study), verdict])
    header = "data,mechanism,loss,coverage,s.e.,mean length,length ratio,verdict"
    yield from markdown(header.split(","), table)


def coverage_rules(study: dpci.simulate.CoverageStudy) -> Iterator[tuple[bool, str]]:
    covered, se, ratio = study.coverage, study.coverage_se, study.length_ratio
    inside = 0.945 - 3.5 * se <= covered <= 0.97 + 3.5 * se
    yield inside, f"coverage must be in [.945, .97] but for 3.5 standard errors, got {covered:.4f} (s.e. {se:.4f})"
    yield ratio is not None and ratio <= 1.12, f"the length ratio must be at most 1.12, got {ratio:.3f}"


# Objective against output perturbation.


def lengths(run: Run) -> Iterator[str]:
    """Objective and output perturbation with all defaults, which spend the same."""
    yield "## Objective against output perturbation\n"
    yield (
        f"{BUDGET}, one record replaced, default shares (.95, .025, .025). The first ratio is the mean length of the "
        "intervals with objective perturbation over that with output perturbation. The second is that of the spans of "
        "the released parameters, which the noise in the moments does not touch. A cell holds if neither is above "
        f"1.05 and both coverages are at least {LEAST_COVERAGE}.\n"
    )
    table = []
    larger = [*map(adult, (50, 104)), *(kdd(n, d) for n in (50_000, 450_000) for d in (50, 90))]
    for rows in run.kept([*SMALL_CELLS, *larger]):
        settings = [Setting("(ε,δ)", mechanism, loss) for loss in LOSSES for mechanism in ("objective", "output")]
        found = run.coverage(rows, [setting.keywords() for setting in settings])
        for setting, ours, output in zip(settings[::2], found[::2], found[1::2], strict=True):
            ratios = {
                "mean lengths": ours.mean_length / output.mean_length,
                "spans": ours.variability_length / output.variability_length,
            }
            rules = [(r <= 1.05, f"the ratio of {of} must be at most 1.05, got {r:.3f}") for of, r in ratios.items()]
            rules += [
                (
                    study.coverage >= LEAST_COVERAGE,
                    f"coverage must be at least {LEAST_COVERAGE}, got {study.coverage:.4f}",
                )
                for study in (ours, output)
            ]
            table.append(
                [
                    rows,
                    setting.loss,
                    *(f"{study.mean_length:.4g}" for study in (ours, output)),
                    *(f"{ratio:.3f}" for ratio in ratios.values()),
                    *(f"{study.coverage:.4f} ({study.coverage_se:.4f})" for study in (ours, output)),
                    run.check(f"objective against output, {rows}, {setting.loss}", rules),
                ]
            )
    header = (
        "data,loss,objective's length,output's length,ratio of lengths,ratio of spans,"
        "objective's coverage (s.e.),output's coverage (s.e.),verdict"
    )
    yield from markdown(header.split(","), table)


# All mechanisms.


@dataclass(frozen=True)
class Way:
    """One way to stay within the (ε,δ) budget."""

    name: str
    budget: dpci.budgets.Budget
    mechanism: str | dpci.ObjectivePerturbation
    neighbors: str

    def keywords(self, rows: Rows) -> dict[str, Any]:
        relation = dpci.AddRemove(len(load(rows)[1])) if self.neighbors == "add_remove" else self.neighbors
        return {"budget": self.budget, "mechanism": self.mechanism, "neighbors": relation}


REPLACE, ADD = "replace_one", "add_remove"
PAPER = dpci.ObjectivePerturbation(calibration="paper")
GAUSSIAN_OBJECTIVE = {relation: Way("Gaussian objective", BUDGET, "objective", relation) for relation in (REPLACE, ADD)}
WAYS = (
    GAUSSIAN_OBJECTIVE[REPLACE],
    Way("Gaussian output", BUDGET, "output", REPLACE),
    Way("spherical-Laplace objective, zCDP", ZCDP_WITHIN, "objective", REPLACE),
    Way("Gaussian output, zCDP", ZCDP_WITHIN, "output", REPLACE),
    Way("spherical-Laplace objective, pure DP", dpci.PureDP(BUDGET.epsilon), "objective", REPLACE),
    Way("spherical-Laplace output, pure DP", dpci.PureDP(BUDGET.epsilon), "output", REPLACE),
    GAUSSIAN_OBJECTIVE[ADD],
    Way("Gaussian output", BUDGET, "output", ADD),
    Way("Gaussian objective, Kifer et al.", BUDGET, PAPER, ADD),
)


def mechanisms(run: Run) -> Iterator[str]:
    """Every mechanism that stays within the budget."""
    yield "## All mechanisms within one budget\n"
    yield (
        f"{BUDGET}, logistic loss; every way below satisfies it. zCDP: the greatest zCDP budget within it, "
        f"{ZCDP_WITHIN}. Pure DP: {dpci.PureDP(BUDGET.epsilon)}, a stronger promise. Kifer et al.: the published noise "
        '(`calibration="paper"`), shares (.5, .25, .25), separate moments and their floor λ; the others have all '
        "defaults. Under add/remove `n_public` is the number of rows. The relative length is the mean length over that "
        "of Gaussian objective perturbation under the same relation. The rule is that it is not below 1 for any other "
        "way with δ > 0. The two relations do not promise the same: replacing a record is two steps of add/remove.\n"
    )
    table = []
    cells = [*map(adult, (10, 50, 104)), *(kdd(450_000, d) for d in (10, 90))]
    for rows in run.kept(cells):
        found = dict(zip(WAYS, run.coverage(rows, [way.keywords(rows) for way in WAYS]), strict=True))
        for way, study in found.items():
            relative = study.mean_length / found[GAUSSIAN_OBJECTIVE[way.neighbors]].mean_length
            if not isinstance(way.budget, dpci.PureDP):
                rule = f"intervals must not be shorter than with Gaussian objective perturbation, got {relative:.3f}"
                run.check(f"all mechanisms, {rows}, {way.name}, {way.neighbors}", [(relative >= 1, rule)])
            table.append([rows, way.neighbors.replace("_", "-"), way.name, *quality(study), f"{relative:.3f}"])
    header = "data,neighbours,mechanism,coverage,s.e.,mean length,length ratio,relative length"
    yield from markdown(header.split(","), table)


# Other ε.


def epsilons(run: Run) -> Iterator[str]:
    """The two main mechanisms at other ε."""
    yield "## Other ε\n"
    yield (
        f"Logistic loss, d=10, δ={BUDGET.delta:g}, one record replaced, all defaults. The relative length is the mean "
        "length over that of objective perturbation. At ε = 1000 there is next to no noise.\n"
    )
    table, low = [], []
    for rows in run.kept(SMALL_CELLS):
        parts = list(itertools.product((0.1, 1.0, 4.0, 1000.0), ("objective", "output")))
        configs = [{"budget": dpci.ApproxDP(eps, BUDGET.delta), "mechanism": mechanism} for eps, mechanism in parts]
        found = dict(zip(parts, run.coverage(rows, configs), strict=True))
        for (eps, mechanism), study in found.items():
            relative = study.mean_length / found[eps, "objective"].mean_length
            table.append([rows, f"{eps:g}", mechanism, *quality(study), f"{relative:.3f}"])
            if study.coverage < LEAST_COVERAGE:
                low.append(f"{rows}, ε={eps:g}, {mechanism} ({study.coverage:.4f})")
    header = "data,ε,mechanism,coverage,s.e.,mean length,length ratio,relative length"
    yield from markdown(header.split(","), table)
    yield f"\nCoverage below {LEAST_COVERAGE}: {'; '.join(low) or 'nowhere'}."


def main() -> None:
    sections = {
        "coverage": coverage,
        "lengths": lengths,
        "mechanisms": mechanisms,
        "epsilons": epsilons,
    }
    options = parser(__doc__.splitlines()[0], tuple(sections))
    arguments = options.parse_args()
    changed = changed_options(options, arguments)
    report("Quality of the intervals at an (ε,δ) budget", started(arguments), changed, sections, arguments.only)


if __name__ == "__main__":
    main()
