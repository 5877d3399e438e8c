"""How much faster two threads sum over chunks than one: of a list, of slices, and of rows made in each pass.

Prints docs/evidence/chunk_threads.md (``python benches/chunk_threads.py``, five minutes).
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import dpci
from _environments import now
from _timing import REPETITIONS, OthersWatch, Timed, commit, interleaved, minimum, print_machine
from scale import BLOCK_ROWS, Made, classes, fill, fit

ASKED = 1.7
SHAPES = ((2_000_000, 10), (2_000_000, 30), (1_000_000, 60))


def sources(n: int, d: int) -> Iterator[tuple[str, object]]:
    """Return the same rows as three kinds of source."""
    X = np.empty((n, d))
    fill(0, X)
    y = classes(0, X)
    cut = [(X[k : k + BLOCK_ROWS], y[k : k + BLOCK_ROWS]) for k in range(0, n, BLOCK_ROWS)]
    yield "list", cut
    yield "function, slices of an array", lambda: iter(cut)
    yield "function, rows made in each pass", Made(n, d)


def read(source: Callable[[], object] | list[object]) -> None:
    """Read the chunks and do nothing with them."""
    for _ in source() if callable(source) else source:
        pass


def main() -> None:
    """Print the page."""
    warnings.simplefilter("ignore", dpci.errors.SeededNoiseWarning)
    print("# Two threads for chunks\n")
    print(f"`python benches/chunk_threads.py`, commit {commit()}, {now()}, least of {REPETITIONS} rounds.\n")
    print_machine()
    print(
        f"\nA logistic fit under ZCDP(0.5), `l2_strength=0.01`, chunks of {BLOCK_ROWS:,} rows. *Reading* is the time "
        "of as many passes that only read or make the chunks, on one core, as a share of the fit on one thread.\n"
    )
    print("| rows | source | 1 thread, s | 2 threads, s | ratio | reading |")
    print("|---|---|---|---|---|---|")
    watch, reached = OthersWatch(), []
    for n, d in SHAPES:
        for name, source in sources(n, d):
            passes = Passes(source)
            fit(passes, None, "zcdp", 1)
            runs = {cores: Timed(partial(fit, dpci.Chunks(source), None, "zcdp", cores), cores) for cores in (1, 2)}
            seconds = interleaved(runs, REPETITIONS)
            share = passes.number * minimum(partial(read, source), 3) / seconds[1]
            ratio = seconds[1] / seconds[2]
            reached.append(ratio >= ASKED)
            print(
                f"| {n:,} × {d} | {name} | {seconds[1]:.2f} | {seconds[2]:.2f} | {ratio:.2f} | {share:.0%} |",
                flush=True,
            )
    watch.refuse_if_busy("during the benchmark")
    print(f"\nAsked: at least {ASKED} where arithmetic dominates. Reached in {sum(reached)} of {len(reached)} lines.")


class Passes(dpci.Chunks):
    """Chunks that count how often they are read."""

    number = 0

    def reduce(self, work: object) -> object:
        """Count a pass."""
        self.number += 1
        return super().reduce(work)


if __name__ == "__main__":
    main()
