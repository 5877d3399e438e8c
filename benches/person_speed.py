"""Times fits of persons with ten rows each beside fits of the same rows without persons."""

import sys
import time
from functools import partial

import numpy as np

import dpci
from _environments import now
from _timing import commit, print_machine
from dpci.data.persons import numbered

ASKED = 1.3
SIZES = ((100_000, 5), (100_000, 20), (1_000_000, 10), (200_000, 50))


def least_seconds(repeats: int, functions: list, clock=time.perf_counter) -> list[float]:
    """Return the least time of each function; they take turns."""
    least = [np.inf] * len(functions)
    for _ in range(repeats):
        for k, function in enumerate(functions):
            start = clock()
            function()
            least[k] = min(least[k], clock() - start)
    return least


def main() -> None:
    """Print the table of docs/evidence/person_speed.md."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    print("# Speed of persons\n")
    print(f"`python benches/person_speed.py {repeats}`, commit {commit()}, {now()}, least of {repeats}.\n")
    print_machine()
    print("\n| rows | columns | rows, s | persons together, s | ratio | persons anywhere, s | ratio | of it ids, s |")
    print("|---|---|---|---|---|---|---|---|")
    rng = np.random.default_rng(0)
    ratios = []
    for n, d in SIZES:
        X = rng.normal(size=(n, d))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) * (1 + 1e-9))
        y = np.where(3.0 * X[:, 0] + rng.logistic(size=n) > 0, 1.0, -1.0)
        together = np.repeat(np.arange(n // 10), 10)
        anywhere = rng.permutation(together)
        keywords = {"budget": dpci.ZCDP(0.5), "l2_strength": 0.001, "classes": (-1, 1)}
        rows, first, second, ids = least_seconds(
            repeats,
            [
                partial(dpci.fit, X, y, **keywords),
                partial(dpci.fit, X, y, persons=together, **keywords),
                partial(dpci.fit, X, y, persons=anywhere, **keywords),
                partial(numbered, anywhere, n),
            ],
        )
        cells = [f"{n:,}", d, f"{rows:.3f}", f"{first:.3f}", f"{first / rows:.2f}"]
        cells += [f"{second:.3f}", f"{second / rows:.2f}", f"{ids:.3f}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)
        ratios += [first / rows, second / rows]
    met = sum(ratio <= ASKED for ratio in ratios)
    print(
        '\nTen rows a person. "Together": the rows of a person follow each other; "anywhere": in random order.\n'
        f"Asked was a ratio of at most {ASKED}: {met} of {len(ratios)} meet it; the greatest is {max(ratios):.2f}.\n"
        "The functions take turns. The last column is the time in which ids become numbers."
    )


if __name__ == "__main__":
    main()
