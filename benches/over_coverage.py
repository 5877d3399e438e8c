"""Where the length of intervals that cover too often comes from: claimed, actual and ideal errors. Not private.

"Claimed" is the median half length of a coefficient's 95% intervals, "ideal" that of the law with the true matrices
and the same noise, "sampling" its part without noise, "actual" the .95 quantile of the absolute errors: geometric
means over the coefficients, with the factor by which claimed / ideal differs between them. The root mean square is
over all intervals and coefficients. Prints Markdown; needs the full data files (DPCI_DATA).
"""

import sys
import warnings
from typing import Any

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci import lowlevel
from unregularised import Case, Population, cases

SHARES = None, (0.8, 0.1, 0.1), (0.7, 0.15, 0.15)


def studied(population: Population, n: int, keywords: dict[str, Any], n_fits: int) -> list[float]:
    """Return coverage, its worst coefficient, and ratios of lengths to those of the ideal law."""
    rng = np.random.default_rng(0)
    strength = keywords["l2_strength"]
    target = population.regularised(strength)
    estimates, lower, upper, stretch = [], [], [], []
    for seed in range(n_fits):
        X, y = population.sample(rng, n)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpci.DpciWarning)
            result = dpci.fit(X, y, classes=(-1, 1), seed=seed, **keywords)
        interval = result.conf_int()
        estimates.append(result.params)
        lower.append(interval.lower)
        upper.append(interval.upper)
        stretch.append(np.mean(result.interval_stretch))
    design = np.column_stack([population.X, np.ones(len(population.X))])
    margin = design @ target
    p = 1.0 / (1.0 + np.exp(-margin))
    labels = np.asarray(population.y) > 0
    hessian = (design * (p * (1.0 - p))[:, None]).T @ design / len(design) + strength * np.eye(design.shape[1])
    slopes = design * (p - labels)[:, None]
    covariance = np.cov(slopes.T, bias=True)
    parts = lowlevel.error_components(hessian, covariance, n, np.eye(len(target)), mechanism="objective")
    plan = dpci.plan(n_samples=n, n_features=population.n_columns, **keywords)
    step = plan.steps[0]
    ideal = lowlevel.exact_half_widths(*parts, noise_law=step.noise, noise_scale=step.scale, dim=len(target))
    lengths = np.array(upper) - np.array(lower)
    error = np.array(estimates) - target
    inside = (np.array(lower) <= target) & (target <= np.array(upper))
    actual = np.quantile(np.abs(error), 0.95, axis=0)
    noiseless = 1.96 * np.sqrt(parts[0])
    return [
        plan.noise_ratio,
        inside.mean(),
        inside.mean(axis=0).min(),
        np.exp(np.mean(np.log(np.median(lengths, axis=0) / (2.0 * ideal)))),
        np.exp(np.mean(np.log(actual / ideal))),
        np.exp(np.mean(np.log(noiseless / ideal))),
        float(np.mean(stretch)),
        np.exp(np.mean(np.log(2.0 * ideal))),
        np.exp(np.std(np.log(np.median(lengths, axis=0) / (2.0 * ideal)))),
        np.sqrt(np.mean(lengths**2) / np.mean((2.0 * ideal) ** 2)),
    ]


def main(n_fits: int) -> None:
    """Print one line for each case and share of the matrices."""
    print(f"commit {commit()}, {now()}, {n_fits} fits for each line\n")
    print(
        "| population | budget | λ | shares | r_H/λ | covers | worst | claimed / ideal | actual / ideal "
        "| sampling / ideal | stretch | ideal length | spread of claimed / ideal | claimed / ideal, root mean square |"
    )
    print("|---" * 14 + "|")
    for case in cases():
        if case.name == "Awan & Wang" or case.strength != 4.0 or case.split or case.n > 100_000:
            continue
        for split in SHARES:
            # The same λ for all shares, one that all of them offer.
            greatest = Case(case.name, case.population, case.n, case.budget, 4.0, SHARES[-1]).l2_strength()
            keywords = {
                "budget": case.budget,
                "l2_strength": greatest,
                "mechanism": dpci.ObjectivePerturbation(split=split),
            }
            found = studied(case.population, case.n, keywords, n_fits)
            numbers = " | ".join(f"{x:.3g}" for x in found)
            print(f"| {case.name} | {case.budget} | {greatest:.2g} | {split or 'default'} | {numbers} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
