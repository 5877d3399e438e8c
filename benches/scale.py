"""How the time of a fit grows with its rows: passes over rows that are made on the fly, on one machine and on Dask.

A run appends one line to a log, which a later one of the same size leaves alone, so that a series that was stopped goes
on where it was. ``--report`` prints the table, the fitted cost model and what it says of sizes beyond (docs/scale.md).

    python benches/scale.py --rows 1e6 1e7 --columns 10 30 --threads 1 2 [--notion pure]
    python benches/scale.py --rows 1e8 --columns 10 --workers 2 --part-rows 1048576
    python benches/scale.py --overhead [--workers 2]
    python benches/scale.py --report
"""

import argparse
import json
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _scale_report import report
from _timing import commit, machine

LOG = Path(__file__).parents[1] / "docs" / "evidence" / "scale.jsonl"
SEED = 7
BLOCK_ROWS = 2**16
"""Rows that are made together: they do not depend on how many of these blocks a part has."""
BUDGETS = {"zcdp": dpci.ZCDP(0.5), "pure": dpci.PureDP(1.0)}
L2_STRENGTH = 0.01


def fill(first: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Write blocks of rows from the one of this number on; none is longer than 1."""
    d = rows.shape[1]
    for number, block in blocks(first, rows):
        np.random.Generator(np.random.SFC64(np.random.SeedSequence([SEED, number, d]))).random(out=block)
    rows -= 0.5
    rows *= 2.0 / np.sqrt(d)
    return rows


def classes(first: int, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Make the targets of blocks of rows, which depend on three columns."""
    targets = np.empty(len(rows), dtype=bool)
    for (number, block), (_, out) in zip(blocks(first, rows), blocks(first, targets), strict=True):
        noise = np.random.Generator(np.random.SFC64(np.random.SeedSequence([SEED, number]))).random(len(block))
        np.greater(block[:, 0] - block[:, 1] + 0.5 * block[:, 2] + 0.6, noise, out=out)
    return targets


def blocks(first: int, rows: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Cut rows into blocks and number these."""
    return ((first + k // BLOCK_ROWS, rows[k : k + BLOCK_ROWS]) for k in range(0, len(rows), BLOCK_ROWS))


def parts(n: int, part_rows: int) -> Iterator[tuple[int, int]]:
    """Return the first block and the rows of every part."""
    return ((k // BLOCK_ROWS, min(part_rows, n - k)) for k in range(0, n, part_rows))


class Made:
    """A source of chunks that stores none of them."""

    def __init__(self, n: int, d: int, part_rows: int = BLOCK_ROWS) -> None:
        self.n, self.d, self.part_rows = n, d, part_rows

    def __call__(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Make the rows anew, in memory of one chunk."""
        rows = np.empty((min(self.part_rows, self.n), self.d))
        for first, n_rows in parts(self.n, self.part_rows):
            made = fill(first, rows[:n_rows])
            yield made, classes(first, made)


Seconds = list[float]
"""Wall time, and processor time of this process and of its children that have ended."""


@contextmanager
def timed(into: Callable[[Seconds], object]) -> Iterator[None]:
    """Time a block."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    into([time.perf_counter() - wall, time.process_time() - cpu])


class TimedChunks(dpci.Chunks):
    """Chunks that say how long each pass took."""

    def __init__(self, source: Made) -> None:
        super().__init__(source)
        self.passes: list[tuple[str, Seconds]] = []

    def reduce(self, work: Any) -> Any:  # as the protocol
        """Time a pass."""
        name = work.request.name if hasattr(work, "request") else "describe"
        with timed(lambda seconds: self.passes.append((name, seconds))):
            return super().reduce(work)


def fit(X: object, y: object, notion: str, threads: int) -> dpci.PrivateFit:
    """Fit and forget: what is timed."""
    with dpci.threads(threads):
        return dpci.fit(X, y, budget=BUDGETS[notion], l2_strength=L2_STRENGTH, classes=(False, True), seed=SEED)


def run_chunks(n: int, d: int, part_rows: int, notion: str, threads: int) -> dict[str, Any]:
    """Time a fit of chunks on this machine, and a pass that makes its rows and does nothing with them."""
    found: dict[str, Any] = {}
    with timed(lambda seconds: found.update(generation=seconds)):
        for _ in Made(n, d, part_rows)():
            pass
    chunks = TimedChunks(Made(n, d, part_rows))
    with timed(lambda seconds: found.update(fit=seconds)):
        result = fit(chunks, None, notion, threads)
    return {**found, "passes": chunks.passes, "first": float(result.params[0])}


def run_dask(n: int, d: int, part_rows: int, notion: str, workers: int) -> dict[str, Any]:
    """Time a fit on local worker processes whose partitions are made anew in every pass, and a pass that makes them."""
    import dask.array as da  # noqa: PLC0415  # optional
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415

    def number(block_info: Any) -> int:  # Dask's own
        return int(block_info[None]["chunk-location"][0]) * (part_rows // BLOCK_ROWS)

    sizes = tuple(n_rows for _, n_rows in parts(n, part_rows))
    X = da.map_blocks(
        lambda block_info=None: fill(number(block_info), np.empty(block_info[None]["chunk-shape"])),
        chunks=(sizes, (d,)),
        dtype=float,
    )
    y = da.map_blocks(lambda rows, block_info=None: classes(number(block_info), rows), X, drop_axis=1, dtype=bool)
    found: dict[str, Any] = {}

    def cpu(client: Client) -> float:
        return float(sum(client.run(time.process_time).values()))

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for name, task in {
            "generation": lambda: y.map_blocks(lambda part: part[:1]).sum().compute(),
            "fit": lambda: found.update(first=float(fit(X, y, notion, 1).params[0])),
        }.items():
            wall, used = time.perf_counter(), cpu(client)
            task()
            found[name] = [time.perf_counter() - wall, cpu(client) - used]
    return found


def run_overhead(workers: int) -> dict[str, Any]:
    """Time passes over few rows in many parts: what a part costs whatever its rows; 0 workers: chunks."""
    n, d, many, few = 2000, 10, 1000, 10
    rows = fill(0, np.empty((n, d)))
    targets = classes(0, rows)
    found = {}
    if workers == 0:
        for count in (few, many):
            step = n // count
            cut = [(rows[k : k + step], targets[k : k + step]) for k in range(0, n, step)]
            with timed(lambda seconds, count=count: found.update({count: seconds})):
                fit(dpci.Chunks(cut), None, "zcdp", 1)
    else:
        import dask.array as da  # noqa: PLC0415  # optional
        from dask.distributed import Client, LocalCluster  # noqa: PLC0415

        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster),
        ):
            for count in (few, many):
                X, y = da.from_array(rows, chunks=(n // count, d)), da.from_array(targets, chunks=n // count)
                X, y = X.persist(), y.persist()
                fit(X, y, "zcdp", 1)
                with timed(lambda seconds, count=count: found.update({count: seconds})):
                    fit(X, y, "zcdp", 1)
    chunks = TimedChunks(Made(n, d))
    fit(chunks, None, "zcdp", 1)
    passes = len(chunks.passes)
    each = (found[many][0] - found[few][0]) / (many - few) / passes
    return {"few": found[few], "many": found[many], "parts": [few, many], "passes": passes, "seconds_per_part": each}


def append(log: Path, what: dict[str, Any], run: Callable[[], dict[str, Any]]) -> None:
    """Run what the log does not have yet."""
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if any(what.items() <= line.items() for line in done):
        print("already there:", what, flush=True)
        return
    head = {"commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "machine": machine(), "seed": SEED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.errors.DpciWarning)
        found = run()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = {**what, **found, "peak_mib": peak, **head}
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, nargs="*", default=[])
    parser.add_argument("--columns", type=int, nargs="*", default=[10])
    parser.add_argument("--threads", type=int, nargs="*", default=[1])
    parser.add_argument("--notion", choices=BUDGETS, default="zcdp")
    parser.add_argument("--workers", type=int, default=0, help="worker processes of a Dask cluster; 0: chunks, no Dask")
    parser.add_argument("--part-rows", type=int, default=BLOCK_ROWS, help=f"a multiple of {BLOCK_ROWS}")
    parser.add_argument("--overhead", action="store_true", help="time many small parts")
    parser.add_argument("--report", action="store_true", help="print the report of the log")
    parser.add_argument("--log", type=Path, default=LOG)
    arguments = parser.parse_args()
    workers = arguments.workers
    if arguments.overhead:
        append(arguments.log, {"what": "overhead", "workers": workers}, lambda: run_overhead(workers))
    part_rows = arguments.part_rows
    if part_rows < BLOCK_ROWS or part_rows % BLOCK_ROWS:
        parser.error(f"--part-rows must be a multiple of {BLOCK_ROWS}, got {part_rows}")
    for n, d, threads in product(map(int, arguments.rows), arguments.columns, arguments.threads):
        what = {"what": "fit", "n": n, "d": d, "part_rows": part_rows, "threads": threads, "notion": arguments.notion}
        rows = (n, d, part_rows, arguments.notion)
        append(
            arguments.log,
            {**what, "workers": workers},
            lambda rows=rows, threads=threads: run_dask(*rows, workers) if workers else run_chunks(*rows, threads),
        )
    if arguments.report:
        print("\n".join(report([json.loads(line) for line in arguments.log.read_text().splitlines()])))


if __name__ == "__main__":
    main()
