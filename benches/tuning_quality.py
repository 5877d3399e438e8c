"""How far the model of a private tuning is from the best candidate's: mean excess loss by method, on two data sets.

Excess: mean loss over the records at the released parameters, moved into their ball, less the least mean loss on the
greatest ball. The whole budget is spent by every method; "oracle" knows the best candidate and "at random" draws one,
both for free. Averages over seeds, with standard errors; simulated, so not private. Adult needs DPCI_DATA.
"""

import warnings

import numpy as np

import dpci
from _timing import commit, machine

EPSILONS = (0.1, 1.0, 10.0)
WIDE = dpci.OutputPerturbation(moments="none", radius=4.0)
GRID = [
    {"l2_strength": 0.001 * 4**i, "mechanism": dpci.OutputPerturbation(moments="none", radius=radius)}
    for radius in (0.5, 1.0, 2.0, 4.0)
    for i in range(6)
]
METHODS = {
    "repeat, refit": {"method": "repeat"},
    "repeat, winner": {"method": "repeat", "selection_share": 1.0},
    "repeat, η = 0, refit": {"method": "repeat", "shape": 0.0},
    "chunks, refit": {"method": "chunks"},
    "chunks, winner": {"method": "chunks", "selection_share": 1.0},
    "public rule": {"method": "public_rule", "mechanism": dpci.OutputPerturbation(moments="none")},
}


def regression() -> tuple[np.ndarray, np.ndarray, dict]:
    """n = 20,000 rows in the unit ball, d = 10; a tenth of the variance is noise."""
    generator = np.random.default_rng(0)
    X = generator.standard_normal((20_000, 10))
    X /= np.linalg.norm(X, axis=1, keepdims=True) * generator.uniform(1.0, 2.0, (20_000, 1)) * (1 + 1e-12)
    y = X @ (generator.standard_normal(10) * 0.8)
    y += generator.standard_normal(len(y)) * y.std() / 3
    return X, np.clip(y, -1.0, 1.0), {"loss": "squared"}


def adult() -> tuple[np.ndarray, np.ndarray, dict]:
    """The census records, all columns of the schema, clipped to the unit ball."""
    data = dpci.datasets.load_adult()
    return data.X, data.y, {"loss": "logistic", "rows": "clip"}


def in_ball(params, radius) -> np.ndarray:
    """Nearest point of the ball."""
    return params * min(1.0, radius / np.linalg.norm(params))


def mean_loss(X, y, params, loss) -> float:
    predictors = X @ params[:-1] + params[-1]
    if loss == "squared":
        return float(np.mean((predictors - y) ** 2))
    return float(np.mean(np.logaddexp(0.0, -np.where(y == np.max(y), 1.0, -1.0) * predictors)))


def rows_of_table(X, y, keywords, n_seeds) -> list[list[str]]:
    """One row per method, one cell per ε."""
    quiet = dpci.fit(X, y, budget=dpci.PureDP(1e9), l2_strength=1e-7, mechanism=WIDE, seed=0, **keywords)
    best = mean_loss(X, y, quiet.params, keywords["loss"])
    cells: dict[str, list[str]] = {name: [] for name in ("oracle", "at random", *METHODS)}
    for epsilon in EPSILONS:
        common = {"budget": dpci.PureDP(epsilon), **keywords}
        oracle = dpci.tuning.oracle_not_private(X, y, candidates=GRID, n_runs=n_seeds, **common)
        cells["oracle"].append(f"{oracle.losses[oracle.index] - best:.4f} ± {oracle.std_errors[oracle.index]:.4f}")
        cells["at random"].append(f"{oracle.losses.mean() - best:.4f}")
        for name, method in METHODS.items():
            grid = {} if method["method"] == "public_rule" else {"candidates": GRID}
            found = []
            for seed in range(n_seeds):
                tuned = dpci.tuning.tune(X, y, seed=seed, **common, **method, **grid)
                params = in_ball(tuned.result.params, tuned.params["mechanism"].radius)
                found.append(mean_loss(X, y, params, keywords["loss"]) - best)
            cells[name].append(f"{np.mean(found):.4f} ± {np.std(found) / np.sqrt(n_seeds - 1):.4f}")
    return [[name, *values] for name, values in cells.items()]


def main() -> None:
    warnings.simplefilter("ignore", dpci.DpciWarning)
    print("# Quality of private tuning\n")
    print(f"`benches/tuning_quality.py`, commit {commit()}, {machine()}; {len(GRID)} candidates.\n")
    for title, load, n_seeds in (("Synthetic regression", regression, 30), ("Adult", adult, 10)):
        try:
            X, y, keywords = load()
        except (OSError, dpci.DpciError) as error:
            print(f"{title} is left out: {error}\n")
            continue
        print(f"## {title}\n\nRows {X.shape[0]:,}, columns {X.shape[1]}, {keywords['loss']} loss, {n_seeds} seeds.\n")
        print("| method | " + " | ".join(f"ε = {epsilon:g}" for epsilon in EPSILONS) + " |")
        print("|---|" + "---|" * len(EPSILONS))
        for row in rows_of_table(np.asarray(X, dtype=float), np.asarray(y), keywords, n_seeds):
            print("| " + " | ".join(row) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
