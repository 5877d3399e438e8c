"""Coverage and length of the intervals on Adult, in the settings of Wang, Kifer and Lee.

Bootstrap replicates of the prepared data set stand for samples of a population with known parameters: the minimiser
on the full data. A variability interval is the span of the released parameters themselves over many replicates; no
interval of the same coverage can be shorter. Not private: the noise is seeded and the target is read off the data.

Run with DPCI_DATA set: ``python benches/coverage_adult.py`` (about ten minutes on two cores).
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci

L2_STRENGTH = 0.002
EPSILON, RHO = 1.0, 0.1875  # totals of (.5, .25, .25) and (.125, .03125, .03125)
LOSSES = {"logistic": dpci.losses.Logistic(), "Huber": dpci.losses.HuberHinge(h=1.0)}
# Coverage and length ratio of an independent implementation, 200 replicates: the paper's method, then the tight one.
REFERENCE = {
    ("pure", "objective", "logistic"): (0.967, 1.26, 0.947, 1.05),
    ("pure", "objective", "Huber"): (0.968, 1.29, 0.945, 1.05),
    ("zCDP", "output", "logistic"): (0.985, 1.31, 0.947, 1.00),
}


@dataclass(frozen=True)
class Cell:
    """One column of the paper's table."""

    notion: str
    mechanism: str
    loss: str

    def budget(self, share: float = 1.0) -> dpci.PureDP | dpci.ZCDP:
        return dpci.PureDP(EPSILON * share) if self.notion == "pure" else dpci.ZCDP(RHO * share)


def fit(cell: Cell, X: NDArray[np.float64], y: NDArray[np.float64], seed: int, share: float, **options: Any) -> Any:
    """A seeded fit of one replicate; replicate ``seed`` draws its rows from its own stream."""
    rows = np.random.default_rng([7, seed]).integers(len(y), size=len(y))
    return dpci.fit(
        X[rows],
        y[rows],
        budget=cell.budget(share),
        l2_strength=L2_STRENGTH,
        loss=LOSSES[cell.loss],
        mechanism=cell.mechanism,
        fit_intercept=False,
        n_threads=1,
        seed=seed,
        **options,
    )


def study(
    cell: Cell, data: tuple[NDArray[np.float64], NDArray[np.float64]], options: dict[str, Any], counts: tuple[int, int]
) -> tuple[float, float, float, float]:
    """Coverage, its standard error, mean length, and length over variability length."""
    X, y = data
    loss = LOSSES[cell.loss]
    target = dpci.lowlevel.minimize_erm(X, y, loss=loss, l2_strength=L2_STRENGTH).params
    coefficient_share = options["split"][0] if options.get("split") else (0.8 if cell.notion == "pure" else 0.9)

    def replicate(seed: int) -> NDArray[np.float64]:
        intervals = fit(cell, X, y, seed, 1.0, **options).conf_int(level=0.95)
        return np.stack([(intervals.lower <= target) & (target <= intervals.upper), intervals.upper - intervals.lower])

    def parameters(seed: int) -> NDArray[np.float64]:
        return np.asarray(
            fit(cell, X, y, 10**6 + seed, coefficient_share, moments="none", calibration=options["calibration"]).params
        )

    with ThreadPoolExecutor(2) as pool:
        replicates = np.array(list(pool.map(replicate, range(counts[0]))))
        spread = np.array(list(pool.map(parameters, range(counts[1]))))
    covered, lengths = replicates[:, 0], replicates[:, 1]
    variability = np.diff(np.quantile(spread, [0.025, 0.975], axis=0), axis=0)[0].mean()
    per_replicate = covered.mean(axis=1)
    return (
        float(covered.mean()),
        float(per_replicate.std(ddof=1) / np.sqrt(counts[0])),
        float(lengths.mean()),
        float(lengths.mean() / variability),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=300)
    parser.add_argument("--variability", type=int, default=1000)
    parser.add_argument("--dims", type=int, nargs="*", default=[10, 50, 104])
    parser.add_argument("--skip-paper-split", action="store_true")
    arguments = parser.parse_args()
    counts = (arguments.replicates, arguments.variability)
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    cells = [Cell(*c) for c in itertools.product(("pure", "zCDP"), ("objective", "output"), LOSSES)]
    shares = (0.5, 0.25, 0.25)
    settings: list[tuple[str, int, dict[str, Any]]] = []
    if not arguments.skip_paper_split:
        settings += [
            ("paper", 10, {"calibration": "paper", "split": shares}),
            ("tight", 10, {"calibration": "tight", "split": shares, "projection": "floor"}),
        ]
    settings += [("default split", d, {"calibration": "tight"}) for d in arguments.dims]
    print(
        f"Adult, n=30,162, lambda={L2_STRENGTH}, epsilon={EPSILON} or rho={RHO} in all, level .95, "
        f"{counts[0]} replicates, {counts[1]} for the variability interval\n"
    )
    print(
        "| setting | d | notion | mechanism | loss | coverage | s.e. | mean length | length / variability | reference |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    started = time.perf_counter()
    for name, d, options in settings:
        data = dpci.datasets.load_with_data_dependent_scaling("adult", d=d)
        for cell in cells:
            coverage, error, length, ratio = study(cell, (data.X, data.y), options, counts)
            known = REFERENCE.get((cell.notion, cell.mechanism, cell.loss))
            reference = ""
            if known and name in ("paper", "tight"):
                pair = known[:2] if name == "paper" else known[2:]
                reference = f"{pair[0]:.3f} / {pair[1]:.2f}"
            print(
                f"| {name} | {d} | {cell.notion} | {cell.mechanism} | {cell.loss} | {coverage:.4f} | {error:.4f} "
                f"| {length:.4g} | {ratio:.3f} | {reference} |",
                flush=True,
            )
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
