"""Coverage on panel data, with persons= and with rows taken for people; the argument is the number of fits."""

import sys
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit

N_PERSONS, STRENGTH, LEVEL = 2000, 0.01, 0.95
BUDGETS = (dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6))
PANELS = {"10 rows each": {"n_rows": 10}, "1 to 20 rows": {"n_rows": (1, 20)}}


def target(panel: dict, *, by_person: bool) -> np.ndarray:
    """Return the minimiser of the population's risk, from a large sample of persons."""
    X, y, persons = dpci.datasets.simulate_panel(200_000, seed=10**6, **panel)
    Z = np.column_stack([X, np.ones(len(X))])
    weights = 1.0 / np.bincount(persons)[persons] if by_person else np.ones(len(X))
    weights /= weights.sum()
    params = np.zeros(Z.shape[1])
    for _ in range(30):
        odds = 1.0 / (1.0 + np.exp(-y * (Z @ params)))
        gradient = (weights * (odds - 1.0) * y) @ Z + STRENGTH * params
        hessian = (Z.T * (weights * odds * (1.0 - odds))) @ Z + STRENGTH * np.eye(len(params))
        params -= np.linalg.solve(hessian, gradient)
    return params


def coverage(n_fits: int, panel: dict, *, by_person: bool, **keywords: object) -> tuple[float, float, float]:
    """Return the share of covered parameters, that of the worst one, and the mean length."""
    truth = target(panel, by_person=by_person)
    covered, lengths = [], []
    for seed in range(n_fits):
        X, y, persons = dpci.datasets.simulate_panel(N_PERSONS, seed=seed, **panel)
        whose = {"persons": persons} if by_person else {}
        fit = dpci.fit(X, y, l2_strength=STRENGTH, classes=(-1, 1), seed=seed, **whose, **keywords)
        found = fit.conf_int(level=LEVEL)
        covered.append((found.lower <= truth) & (truth <= found.upper))
        lengths.append(np.mean(found.upper - found.lower))
    return float(np.mean(covered)), float(np.mean(covered, axis=0).min()), float(np.mean(lengths))


def main() -> None:
    """Print the table of docs/evidence/person_coverage.md."""
    n_fits = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    warnings.simplefilter("ignore")
    command = f"python benches/person_coverage.py {n_fits}"
    print(f"`{command}`, commit {commit()}, {now()}, {n_fits} fits a line, seeded noise.\n")
    print("| panel | budget | mechanism | persons cover | worst | length | rows as people cover | worst | length |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, panel in PANELS.items():
        for budget in BUDGETS:
            for mechanism in ("objective", "output"):
                cells = []
                for by_person in (True, False):
                    found = coverage(n_fits, panel, by_person=by_person, budget=budget, mechanism=mechanism)
                    cells += [f"{value:.3f}" for value in found]
                print("|", " | ".join([name, str(budget), mechanism, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
