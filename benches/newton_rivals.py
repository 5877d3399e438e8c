"""Intervals of a slope on the design of Awan and Wang (2024), beside those that they published. Not private.

One column x = 2 Beta(.5, .5) - 1, whose range is public, and log-odds .5 + 2x; pure DP. Published are 1,000 intervals a
cell of two methods, in the authors' repository of results
(github.com/Zhanyu-Wang/Simulation-based_Finite-sample_Inference_for_Privatized_Data, commit d606cb54,
linear_logistic/results/summary): repro samples on a noisy score, and the intervals of Wang, Kifer and Lee (2019) around
objective perturbation. Prints Markdown.
"""

import argparse
import datetime as dt
import warnings

import numpy as np

import dpci
from _studies import markdown
from _timing import commit

SLOPE, CONSTANT = 2.0, 0.5
HEADER = (
    "ε,records,repro samples: covered,length,Wang et al.: covered,length,dpci: covered,length,given,no privacy: length"
)
# ε, records: coverage and median length of repro samples, then of Wang, Kifer and Lee.
PUBLISHED = {
    (0.3, 500): (0.992, 10.349, 0.795, 2.623),
    (0.3, 1000): (0.994, 2.938, 0.767, 1.634),
    (0.3, 2000): (0.994, 1.248, 0.813, 1.000),
    (1.0, 200): (0.986, 8.938, 0.807, 2.310),
    (1.0, 500): (0.989, 1.680, 0.807, 1.211),
    (1.0, 1000): (0.994, 0.968, 0.824, 0.744),
    (1.0, 2000): (0.996, 0.618, 0.862, 0.460),
    (3.0, 200): (0.990, 2.000, 0.859, 1.296),
    (3.0, 500): (0.992, 1.125, 0.898, 0.750),
    (3.0, 1000): (0.990, 0.782, 0.924, 0.516),
    (3.0, 2000): (0.994, 0.545, 0.934, 0.357),
    (10.0, 100): (0.981, 2.909, 0.906, 1.513),
    (10.0, 200): (0.983, 1.750, 0.933, 1.074),
    (10.0, 500): (0.990, 1.063, 0.946, 0.690),
    (10.0, 1000): (0.991, 0.750, 0.947, 0.493),
    (10.0, 2000): (0.995, 0.539, 0.946, 0.349),
}


def draw(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    x = 2.0 * rng.beta(0.5, 0.5, n) - 1.0
    return x[:, None], rng.random(n) < 1.0 / (1.0 + np.exp(-(CONSTANT + SLOPE * x)))


def sampling_length(n: int) -> float:
    """Length of the interval without privacy, by the information of a large sample."""
    x, _ = draw(np.random.default_rng(0), 1_000_000)
    rows = np.column_stack([x, np.ones(len(x))])
    odds = rows @ [SLOPE, CONSTANT]
    weights = 1.0 / (2.0 + np.exp(odds) + np.exp(-odds))
    information = rows.T @ (rows * weights[:, None]) / len(x)
    return float(2.0 * 1.96 * np.sqrt(np.linalg.inv(information)[0, 0] / n))


@dpci.threads(1)
def interval(epsilon: float, n: int, seed: int) -> np.ndarray | None:
    """The interval of the slope; None where a fit has none."""
    X, y = draw(np.random.default_rng(seed), n)
    fit = dpci.fit(X, y, budget=dpci.PureDP(epsilon), rows=1.0, classes=(False, True), seed=seed)
    if fit.interval_refusal is not None:
        return None
    ends = np.asarray(fit.conf_int())[0]
    return ends if np.isfinite(ends).all() else None


def row(cell: tuple[float, int], runs: int) -> list[str]:
    epsilon, n = cell
    found = [ends for run in range(runs) if (ends := interval(epsilon, n, 50_000 + run)) is not None]
    lengths = [ends[1] - ends[0] for ends in found]
    covered = [ends[0] <= SLOPE <= ends[1] for ends in found]
    ours = (f"{np.mean(covered):.3f}", f"{np.median(lengths):.2f}") if found else ("", "")
    repro, repro_length, wang, wang_length = PUBLISHED[cell]
    return [
        *(f"{epsilon:g}", f"{n:,}"),
        *(f"{repro:.3f}", f"{repro_length:.2f}", f"{wang:.3f}", f"{wang_length:.2f}"),
        *(*ours, f"{len(found) / runs:.0%}", f"{sampling_length(n):.2f}"),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=int, default=1000)
    runs = options.parse_args().runs
    warnings.simplefilter("ignore")
    print("# The design of Awan and Wang")
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    print(f"\n`benches/newton_rivals.py --runs {runs}`, commit {commit()}, {today}, seeds from 50,000.\n")
    print(
        "Coverage and median length of 95% intervals of a slope of 2, one column whose range is public, pure DP. "
        "Published cells are 1,000 intervals each. `given`: the share of fits with an interval; coverage and length "
        "are of these. Repro samples are to cover at least .95, whatever the sample; intervals here .95 on average.\n"
    )
    for line in markdown(HEADER.split(","), (row(cell, runs) for cell in PUBLISHED)):
        print(line, flush=True)


if __name__ == "__main__":
    main()
