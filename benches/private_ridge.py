"""The ridge that a moment matrix chooses by itself: its predictions, and the coverage of its own target.

Five columns in [-1, 1] with unequal slopes, of which the last follows the fourth to the stated correlation; errors of
standard deviation .3, |y| ≤ 3. Each run draws new data, and noise from seeds: not private. Columns: the root mean
square over the population of (prediction - regression function), for ordinary least squares in the runs that give it
and as the noisy equations have it in all runs, for ``l2_strength="private"``, and for AdaSSP (Wang 2018, Algorithm 2,
Gaussian noise, a third of μ² for each of its releases) on the same columns; then the coverage of the 95% intervals of
the private ridge for the ridge target at the released λ. ``--runs`` is 400. Prints Markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import time
import warnings

import numpy as np

import dpci

D, SPREAD, Y_BOUND = 5, 0.3, 3.0
SLOPES = np.array([0.5, -0.3, 0.2, 0.4, 0.4])
CONSTANT = 0.5  # of the moment matrix: half the weight of a column


def mixing(correlation: float) -> float:
    """a of x5 = a x4 + (1 - a) u."""
    odds = correlation / np.sqrt(1.0 - correlation**2)
    return float(odds / (1.0 + odds))


def moments(correlation: float) -> np.ndarray:
    """Second moments of the five columns and 1 in the population."""
    a = mixing(correlation)
    root = np.eye(D)
    root[4, 3], root[4, 4] = a, 1.0 - a
    found = np.eye(D + 1)
    found[:D, :D] = root @ root.T / 3.0
    return found


def data(n: int, correlation: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, D))
    a = mixing(correlation)
    X[:, 4] = a * X[:, 3] + (1.0 - a) * X[:, 4]
    return X, np.clip(0.3 + X @ SLOPES + SPREAD * rng.standard_normal(n), -Y_BOUND, Y_BOUND)


def adassp(X: np.ndarray, y: np.ndarray, seed: int, mu: float) -> np.ndarray:
    """AdaSSP for replaced records, constant included: sensitivities √2 times those of one record more."""
    rng = np.random.default_rng([seed, 1])
    rows = np.column_stack([X, np.full(len(X), CONSTANT)])
    k, norm2 = D + 1, D + CONSTANT**2
    noise, chance = np.sqrt(2.0) * norm2 * np.sqrt(3.0) / mu, np.log(6.0 * len(X) ** 2)
    gram = rows.T @ rows
    least = max(np.linalg.eigvalsh(gram)[0] + noise / np.sqrt(2.0) * (rng.standard_normal() - np.sqrt(chance)), 0.0)
    ridge = max(0.0, np.sqrt(k * np.log(2.0 * k**2 / 0.05)) * noise - least)
    # Isometric coordinates: entries off the diagonal have 1/√2 of the standard deviation.
    upper = rng.standard_normal((k, k))
    gram = gram + noise * (upper + upper.T) / 2.0 + ridge * np.eye(k)
    cross = rows.T @ y + np.sqrt(2.0) * noise * Y_BOUND / np.sqrt(norm2) * rng.standard_normal(k)
    return np.linalg.solve(gram, cross) * np.append(np.ones(D), CONSTANT)


def cell(n: int, correlation: float, mu: float, runs: int) -> list[str]:
    truth, second = np.append(SLOPES, 0.3), moments(correlation)
    metric = np.append(np.ones(D), 1.0 / CONSTANT**2)
    errors: dict[str, list[float]] = {"least squares": [], "equations": [], "private": [], "adassp": []}
    covered, strengths, lengths = [], [], []

    def error(params: np.ndarray) -> float:
        return float((params - truth) @ second @ (params - truth))

    for seed in range(runs):
        X, y = data(n, correlation, seed)
        matrix = dpci.regression.release(X, y, budget=dpci.GDP(mu), bounds=(-1.0, 1.0), target_bound=Y_BOUND, seed=seed)
        noisy = matrix.moments
        errors["equations"].append(error(np.linalg.solve(noisy[: D + 1, : D + 1], noisy[: D + 1, D + 1])))
        with contextlib.suppress(dpci.InvalidInput):
            errors["least squares"].append(error(matrix.fit().params))
        fit = matrix.fit(l2_strength="private")
        errors["private"].append(error(fit.params))
        errors["adassp"].append(error(adassp(X, y, seed, mu)))
        target = np.linalg.solve(second + 0.5 * fit.l2_strength * np.diag(metric), second @ truth)
        intervals = fit.conf_int()
        covered.append((intervals.lower <= target) & (target <= intervals.upper))
        strengths.append(fit.l2_strength)
        lengths.append(intervals.length.mean())

    def shown(name: str) -> str:
        return f"{np.sqrt(np.mean(errors[name])):.3f}" if errors[name] else "-"

    given = len(errors["least squares"]) / runs
    by_run = np.mean(covered, axis=1)
    numbers = [f"{given:.2f}", *(shown(name) for name in errors), f"{np.mean(strengths):.3f}"]
    return [
        f"{n:,}", f"{correlation:g}", f"{mu:g}", *numbers,
        f"{by_run.mean():.3f}", f"{by_run.std() / np.sqrt(runs):.3f}", f"{np.mean(lengths):.3f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    start = time.monotonic()
    print(f"# The ridge that the noise needs\n\n- {runs} runs of a cell, seeds from 0\n")
    head = [
        "n", "correlation", "μ", "given", "least squares", "equations", "private ridge", "AdaSSP", "mean λ",
        "coverage", "s.e.", "mean length",
    ]  # fmt: skip
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for n in (2_000, 20_000):
        for correlation in (0.0, 0.9, 0.99):
            for mu in (0.3, 1.0, 3.0):
                print(f"| {' | '.join(cell(n, correlation, mu, runs))} |", flush=True)
    print(f"\nRun time: {time.monotonic() - start:.0f} s.")


if __name__ == "__main__":
    main()
