"""Times `dpci.fit` of a small table, and many of them in one call: run on an idle machine."""

import sys
import time
import warnings

import numpy as np

import dpci
from _timing import OthersWatch, machine

N_ROWS, N_COLUMNS, N_GROUPS, ROUNDS = 1000, 5, 1000, 5
LIMIT_MS = 0.4
KEYWORDS = {"budget": dpci.PureDP(4.0), "l2_strength": 0.1}


def least(work, rounds: int) -> float:
    """Least time of a call, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def main() -> int:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    groups = {}
    for key in range(N_GROUPS):
        X = rng.uniform(-0.4, 0.4, (N_ROWS, N_COLUMNS))
        groups[key] = (X, X[:, 0] + rng.logistic(size=N_ROWS) > 0)
    watch = OthersWatch()
    print(f"groups of {N_ROWS} x {N_COLUMNS} and the intercept, milliseconds for each")
    single = least(lambda: dpci.fit(*groups[0], **KEYWORDS), 500)
    print(f"  dpci.fit, least of 500 calls           {single:.3f} (at most {LIMIT_MS})")
    loop = least(lambda: [dpci.fit(*group, **KEYWORDS) for group in groups.values()], ROUNDS) / N_GROUPS
    print(f"  a loop of dpci.fit over {N_GROUPS} groups      {loop:.3f}")
    for n_threads in (1, 2):
        with dpci.threads(n_threads):
            many = least(lambda: dpci.fit_many(groups, **KEYWORDS), ROUNDS) / N_GROUPS
        print(f"  dpci.fit_many, {n_threads} threads               {many:.3f}")
    print(f"{machine()}; others took {watch.share():.0%} of a core")
    return int(single > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
