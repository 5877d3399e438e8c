"""How joint tests and simultaneous intervals do in real fits: the table of docs/inference.md.

python benches/joint_inference.py takes about two minutes on one free core.
"""

import warnings

import numpy as np

import dpci
from dpci.inference.validity import gradient_noise, hessian_noise

POPULATION, N_SAMPLES, L2_STRENGTH = 100_000, 5000, 0.02
CASES = (
    (5, dpci.PureDP(1.0), 200),
    (5, dpci.PureDP(10.0), 200),
    (5, dpci.ApproxDP(3.0, 1e-6), 200),
    (20, dpci.PureDP(1.0), 150),
    (20, dpci.PureDP(10.0), 150),
    (20, dpci.PureDP(100.0), 150),
    (20, dpci.PureDP(3000.0), 150),
    (20, dpci.ApproxDP(1.0, 1e-6), 150),
    (20, dpci.ApproxDP(3.0, 1e-6), 150),
    (20, dpci.ApproxDP(1e4, 1e-6), 150),
)


def covers(intervals, target):
    return (intervals.lower <= target) & (target <= intervals.upper)


def run(rng, d, budget, n_replicates):
    X = rng.uniform(-1, 1, (POPULATION, d)) / np.sqrt(d)
    y = (X @ (2.0 * rng.normal(size=d)) + rng.logistic(size=POPULATION) > 0).astype(int)
    keywords = {"l2_strength": L2_STRENGTH, "seed": 0}
    # With so great a budget the noise is far below the other errors: the minimiser on the population.
    target = dpci.fit(
        X, y, budget=dpci.ApproxDP(1e8, 1e-6), mechanism=dpci.ObjectivePerturbation(moments="none"), **keywords
    ).params
    found = []
    for i in range(n_replicates):
        rows = rng.integers(0, POPULATION, N_SAMPLES)
        result = dpci.fit(X[rows], y[rows], budget=budget, l2_strength=L2_STRENGTH, seed=i)
        test = result.wald_test(np.eye(d + 1), target)
        together = result.conf_int(simultaneous="bonferroni")
        found.append((
            covers(result.conf_int(), target).mean(),
            test.pvalue_joint < 0.05,
            test.pvalue_by_rows < 0.05,
            test.pvalue < 0.05,
            covers(together, target).all(),
            hessian_noise(result._record, result.hessian),  # noqa: SLF001  # what moment_noise reads
            gradient_noise(result._record, result.hessian, result.cov),  # noqa: SLF001  # likewise
        ))  # fmt: skip
    *means, _, _ = np.mean(found, axis=0)
    return *means, *np.median(found, axis=0)[-2:]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    print("| k | budget | samples | marginal | joint | by rows | auto | Bonferroni | r_H | r_M |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for d, budget, n_replicates in CASES:
        cells = " | ".join(f"{number:.3g}" for number in run(rng, d, budget, n_replicates))
        print(f"| {d + 1} | {budget} | {n_replicates} | {cells} |", flush=True)
