"""Times the release of a moment matrix beside the one product that it cannot do without, NumPy's X'X.

Prints docs/evidence/moment_speed.md.
"""

import sys
import warnings

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import Timed, commit, interleaved, print_machine

SIZES = ((1_000_000, 5), (1_000_000, 20), (200_000, 100))
BUDGET = dpci.ZCDP(0.5)


def contestants(x: NDArray[np.float64], y: NDArray[np.float64]) -> dict[str, Timed]:
    """Return the release and the product, on one core and on two."""
    length = float(np.sqrt(x.shape[1]))

    def release(n_threads: int) -> object:
        with dpci.threads(n_threads):
            return dpci.regression.release(x, y, budget=BUDGET, rows=length)

    return {
        "release, one": Timed(lambda: release(1)),
        "release, two": Timed(lambda: release(2), cores=2),
        "product, one": Timed(lambda: x.T @ x, blas=True),
        "product, two": Timed(lambda: x.T @ x, cores=2, blas=True),
    }


def main() -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    print("# Speed of the moment matrix\n")
    print(f"`python benches/moment_speed.py {rounds}`, commit {commit()}, {now()}, least of {rounds}, ZCDP(0.5).\n")
    print_machine()
    print(
        "\nA release checks the norm of every row, multiplies rows and targets, and draws and seals the noise. The "
        "ratio is that of the faster of one and two threads on either side.\n"
    )
    print(
        "| rows | columns | release, one core, ms | two | NumPy's X'X, one core, ms | two | ratio | ratio on one core |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for n, d in SIZES:
        rng = np.random.default_rng(0)
        found = interleaved(contestants(rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)), rounds)
        times = [1e3 * seconds for seconds in found.values()]
        ratio = min(times[:2]) / min(times[2:])
        cells = [f"{n:,}", d, *(f"{t:.1f}" for t in times), f"{ratio:.2f}", f"{times[0] / times[2]:.2f}"]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
