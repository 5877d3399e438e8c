"""Coverage in every stratum of tables with private strata; arguments: the number of tables, and the first seed."""

import sys
import warnings

import numpy as np

import dpci
from _environments import now
from _timing import commit
from dpci.schema import ClassTarget, NumericColumn, Schema

N_RECORDS, STRENGTH, LEVEL = 9000, 0.01, 0.95
STRATA = {"half": 0.5, "third": 0.3, "fifth": 0.2}
PUBLIC = {name: round(N_RECORDS * share) for name, share in STRATA.items()}
SLOPES = {"half": 1.0, "third": 3.0, "fifth": -2.0}
SCHEMA = Schema(
    columns=(NumericColumn(name="x0", lower=-1, upper=1), NumericColumn(name="x1", lower=-1, upper=1)),
    target=ClassTarget(column="y", negative=("no",), positive=("yes",)),
)
BUDGETS = (dpci.PureDP(4.0), dpci.ZCDP(1.0), dpci.ApproxDP(4.0, 1e-6))


def simulate(n: int, seed: int, stratum: str | None = None) -> dict[str, np.ndarray]:
    """Return a table; of one stratum where it is named."""
    rng = np.random.default_rng(seed)
    whose = np.full(n, stratum) if stratum else rng.choice(list(STRATA), n, p=list(STRATA.values()))
    x0, x1 = rng.uniform(-1, 1, (2, n))
    slope = np.select([whose == name for name in SLOPES], list(SLOPES.values()))
    y = np.where(slope * x0 + 0.5 * x1 + rng.logistic(size=n) > 0, "yes", "no")
    return {"x0": x0, "x1": x1, "where": whose, "y": y}


def target(stratum: str) -> np.ndarray:
    """Return the minimiser of the risk of a stratum's population, in the scale of the models."""
    X, y, _ = SCHEMA.transform(simulate(1_000_000, 10**6, stratum))
    Z = np.column_stack([X, np.ones(len(y))])
    params = np.zeros(Z.shape[1])
    for _ in range(30):
        odds = 1.0 / (1.0 + np.exp(-y * (Z @ params)))
        gradient = ((odds - 1.0) * y) @ Z / len(y) + STRENGTH * params
        hessian = (Z.T * (odds * (1.0 - odds))) @ Z / len(y) + STRENGTH * np.eye(len(params))
        params -= np.linalg.solve(hessian, gradient)
    return params


def main() -> None:
    """Print the table of docs/evidence/strata_coverage.md."""
    n_tables = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    warnings.simplefilter("ignore")
    command = f"python benches/strata_coverage.py {n_tables} {first}"
    print(f"`{command}`, commit {commit()}, {now()}, {n_tables} tables a line, seeded noise.\n")
    print("| budget of all strata | mechanism | " + " | ".join(f"{name}: covered | length" for name in STRATA) + " |")
    print("|---|---|" + "---|---|" * len(STRATA))
    truth = {name: target(name) for name in STRATA}
    for budget in BUDGETS:
        for mechanism in ("objective", "output"):
            covered, lengths = ({name: [] for name in STRATA} for _ in range(2))
            for seed in range(first, first + n_tables):
                fits = dpci.fit_strata(
                    simulate(N_RECORDS, seed), by="where", strata=tuple(STRATA), schema=SCHEMA, n_public=PUBLIC,
                    budget=budget, mechanism=mechanism, l2_strength=STRENGTH, seed=seed,
                )  # fmt: skip
                for name, fit in fits.items():
                    found = fit.scaled.conf_int(level=LEVEL)
                    covered[name].append((found.lower <= truth[name]) & (truth[name] <= found.upper))
                    lengths[name].append(found.length)
            cells = [f"{np.mean(covered[name]):.3f} | {np.mean(lengths[name]):.3f}" for name in STRATA]
            print(f"| {budget} | {mechanism} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
