"""Times fits and studies with noise in the shape of blocks beside those with the ball of the same rows.

With other noise the minimiser is another one, and Newton's method takes more or fewer steps. The tolerance is a share
of the least noise of a coefficient, which is less with blocks; below the rounding of a gradient a pass in doubled
precision certifies the minimiser. At an enormous budget both solve the same problem, and the tolerance alone differs.
"""

import sys
import time
import warnings
from functools import partial
from typing import Any

import dpci
from _environments import now
from _timing import commit, print_machine
from dpci.rows import Ball
from person_speed import least_seconds
from row_shapes import ALL, NUMBERS, SOME, encoded, schema_of

STRENGTHS = (0.002, 0.02)
REPLICATES = (20, 120)


@dpci.threads(1)
def fit(X: Any, y: Any, **keywords: Any) -> None:
    """Fit, with intervals."""
    dpci.fit(X, y, classes=(-1, 1), **keywords).conf_int()


def tolerance(X: Any, **keywords: Any) -> float:
    """Return the certified distance to the minimiser that a release needs."""
    return dpci.plan(n_samples=X.shape[0], n_features=X.shape[1], **keywords).tolerance


def seconds_of_replicate(X: Any, y: Any, **keywords: Any) -> float:
    """Return the time of one replicate of a study, without what a study costs once."""
    times = []
    for n_replicates in REPLICATES:
        start = time.process_time()
        dpci.simulate.coverage(
            X, y, classes=(-1, 1), n_replicates=n_replicates, n_variability=0, seed=0, n_threads=1, **keywords
        )
        times.append(time.process_time() - start)
    return (times[1] - times[0]) / (REPLICATES[1] - REPLICATES[0])


def main() -> None:
    """Print the table of docs/evidence/shape_speed.md."""
    warnings.simplefilter("ignore")
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print("# Speed with noise in the shape of the rows\n")
    print(f"`python benches/shape_speed.py {repeats}`, commit {commit()}, {now()}.\n")
    print(f"Processor time of one thread, least of {repeats}; pure DP, Adult.\n")
    print_machine()
    heads = ("parameters", "ε", "λ", "ball, ms", "blocks, ms", "ratio", "tolerance, ball", "blocks", "replicate, ratio")
    print(f"\n| {' | '.join(heads)} |")
    print("|---" * len(heads) + "|")
    for columns in (NUMBERS, SOME, ALL):
        X, y = encoded("adult", columns)
        domains = (Ball(1.0), schema_of("adult", columns).rows)
        for epsilon, strength in [(1.0, strength) for strength in STRENGTHS] + [(1e6, STRENGTHS[0])]:
            keywords = {"budget": dpci.PureDP(epsilon), "l2_strength": strength}
            fits = [partial(fit, X, y, rows=rows, **keywords) for rows in domains]
            ball, blocks = least_seconds(repeats, fits, time.process_time)
            of_study = [min(seconds_of_replicate(X, y, rows=rows, **keywords) for _ in range(3)) for rows in domains]
            cells = [X.shape[1] + 1, f"{epsilon:g}", strength, f"{1e3 * ball:.1f}", f"{1e3 * blocks:.1f}"]
            cells += [f"{blocks / ball:.2f}", *(f"{tolerance(X, rows=rows, **keywords):.1e}" for rows in domains)]
            cells += [f"{of_study[1] / of_study[0]:.2f}"]
            print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
