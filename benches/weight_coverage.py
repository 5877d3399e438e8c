"""Coverage on surveys, with weights= and without; the argument is the number of fits."""

import sys
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit

N_SAMPLES, STRENGTH, LEVEL = 5000, 0.01, 0.95
BUDGETS = (dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6))


def target() -> np.ndarray:
    """Return the minimiser of the risk of the population, from a large sample with its weights."""
    survey = dpci.datasets.simulate_survey(1_000_000, seed=10**6)
    Z = np.column_stack([survey.X, np.ones(len(survey.y))])
    weights = survey.weights / len(survey.y)
    params = np.zeros(Z.shape[1])
    for _ in range(30):
        odds = 1.0 / (1.0 + np.exp(-survey.y * (Z @ params)))
        gradient = (weights * (odds - 1.0) * survey.y) @ Z + STRENGTH * params
        hessian = (Z.T * (weights * odds * (1.0 - odds))) @ Z + STRENGTH * np.eye(len(params))
        params -= np.linalg.solve(hessian, gradient)
    return params


def coverage(n_fits: int, truth: np.ndarray, *, weighted: bool, **keywords: object) -> tuple[float, float, float]:
    """Return the share of covered parameters, that of the worst one, and the mean length."""
    covered, lengths = [], []
    for seed in range(n_fits):
        survey = dpci.datasets.simulate_survey(N_SAMPLES, seed=seed)
        more = {"weights": dpci.Weights(survey.weights, bound=survey.weight_bound)} if weighted else {}
        fit = dpci.fit(survey.X, survey.y, l2_strength=STRENGTH, classes=(-1, 1), seed=seed, **more, **keywords)
        found = fit.conf_int(level=LEVEL)
        covered.append((found.lower <= truth) & (truth <= found.upper))
        lengths.append(np.mean(found.upper - found.lower))
    return float(np.mean(covered)), float(np.mean(covered, axis=0).min()), float(np.mean(lengths))


def main() -> None:
    """Print the table of docs/evidence/weight_coverage.md."""
    n_fits = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    command = f"python benches/weight_coverage.py {n_fits}"
    print(f"`{command}`, commit {commit()}, {now()}, {n_fits} fits a line, seeded noise.\n")
    print("| budget | mechanism | weights cover | worst | length | without they cover | worst | length |")
    print("|---|---|---|---|---|---|---|---|")
    truth = target()
    for budget in BUDGETS:
        for mechanism in ("objective", "output"):
            cells = []
            for weighted in (True, False):
                found = coverage(n_fits, truth, weighted=weighted, budget=budget, mechanism=mechanism)
                cells += [f"{value:.3f}" for value in found]
            print("|", " | ".join([str(budget), mechanism, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
