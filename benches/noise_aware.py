"""Intervals that count the noise in the matrices against those of projected ones, and against matrices without noise.

Adult and KDD served while the constants of the method were chosen; the bank and credit files did not. Not private.
Prints Markdown; exit code 1 if a rule is broken. Needs the full data files (DPCI_DATA).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dpci
from _studies import BUDGETS, LOSSES, Rows, Run, adult, changed_options, kdd, load, markdown, parser, report, started

# Rows, notion, epsilon of pure DP, mechanism, loss, λ, share of the moments.
Cell = tuple[Rows, str, float, str, str, float, float]
BANK, CREDIT = (lambda d: Rows("Bank", "bank", None, d)), (lambda d: Rows("Credit", "credit_default", None, d))
TUNED: list[Cell] = [
    (adult(10), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (adult(10), "pure", 0.3, "objective", "logistic", 0.002, 0.1),
    (adult(10), "pure", 1.0, "output", "logistic", 0.002, 0.1),
    (adult(10), "pure", 1.0, "objective", "Huber", 0.002, 0.1),
    (adult(10), "zCDP", 0.0, "output", "logistic", 0.002, 0.05),
    (adult(10), "(ε,δ)", 0.0, "objective", "logistic", 0.002, 0.05),
    (adult(30), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (adult(50), "pure", 1.0, "objective", "logistic", 0.002, 0.2),
    (adult(50), "zCDP", 0.0, "output", "logistic", 0.002, 0.05),
    (adult(104), "zCDP", 0.0, "output", "logistic", 0.002, 0.05),
    (kdd(50_000, 10), "pure", 0.1, "objective", "logistic", 0.002, 0.2),
]
HELD_OUT: list[Cell] = [
    (BANK(10), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (BANK(30), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (BANK(30), "zCDP", 0.0, "output", "logistic", 0.002, 0.05),
    (BANK(10), "pure", 0.3, "output", "Huber", 0.01, 0.1),
    (CREDIT(10), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (CREDIT(20), "pure", 1.0, "objective", "logistic", 0.002, 0.1),
    (CREDIT(20), "(ε,δ)", 0.0, "objective", "logistic", 0.0005, 0.05),
]


def cells(run: Run, chosen: list[Cell], title: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield (
        "Share: that of the moments. Length: mean length of the noise-aware intervals, over that of "
        '`projection="auto"` at the same share, and over that of `auto` with the default shares.\n'
    )
    table = []
    for rows, notion, epsilon, mechanism, loss, l2_strength, share in chosen:
        if run.quick and rows.d > 10:
            continue
        budget = dpci.PureDP(epsilon) if notion == "pure" else BUDGETS[notion]
        split = {"split": (1 - share, share / 2, share / 2)}
        common: dict[str, Any] = {"budget": budget, "mechanism": mechanism, "loss": LOSSES[loss]}
        configs = [
            common | split | {"projection": "noise_aware"},
            common | split | {"projection": "auto"},
            common | {"projection": "auto"},
        ]
        X, y = load(rows)
        aware, same, default = dpci.simulate.coverage(
            X,
            y,
            configs=configs,
            n_replicates=run.counts(rows)[0],
            l2_strength=l2_strength,
            fit_intercept=False,
            seed=run.seed,
            n_threads=run.threads,
        )
        ratio = dpci.plan(
            n_samples=X.shape[0], n_features=X.shape[1], l2_strength=l2_strength, fit_intercept=False, **common | split
        ).noise_ratio
        what = f"{rows}, {budget}, {mechanism}, {loss}, λ={l2_strength:g}"
        inside = 0.942 - 3 * aware.coverage_se <= aware.coverage <= 0.968 + 3 * aware.coverage_se
        rule = f"coverage must be in [.942, .968] but for 3 standard errors, got {aware.coverage:.4f}"
        run.check(what, [(inside, rule)] if ratio <= 10 else [])
        table.append(
            [
                rows,
                budget,
                mechanism,
                loss,
                f"{l2_strength:g}",
                f"{share:g}",
                f"{ratio:.1f}",
                f"{aware.coverage:.4f} ({aware.coverage_se:.4f})",
                f"{same.coverage:.4f}",
                f"{default.coverage:.4f}",
                f"{aware.mean_length:.4g}",
                f"{aware.mean_length / same.mean_length:.3f}",
                f"{aware.mean_length / default.mean_length:.3f}",
            ]
        )
    header = (
        "data,budget,mechanism,loss,λ,share,r_H/λ,coverage (s.e.),of auto,of auto with its shares,length,"
        "over auto,over auto with its shares"
    )
    yield from markdown(header.split(","), table)


def main() -> None:
    sections = {
        "tuned": lambda run: cells(run, TUNED, "Data that the constants were chosen on"),
        "held-out": lambda run: cells(run, HELD_OUT, "Held-out data"),
    }
    options = parser(__doc__.splitlines()[0], list(sections))
    arguments = options.parse_args()
    report(
        "Intervals that count the noise in the matrices",
        started(arguments),
        changed_options(options, arguments),
        sections,
        arguments.only,
        model="Huber h=1",
    )


if __name__ == "__main__":
    main()
