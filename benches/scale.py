"""How the time of a fit grows with its rows: passes over rows that are made on the fly, on one machine and on Dask.

A run appends one line to a log, which a later one of the same size leaves alone, so that a series that was stopped goes
on where it was. ``--report`` prints the table, the fitted cost model and what it says of sizes beyond (docs/scale.md).

    python benches/scale.py --rows 1e6 1e7 --columns 10 30 --threads 1 2 [--notion pure] [--workers 2]
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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpci
from _scale_report import CHUNK_ROWS, report
from _timing import commit, machine

LOG = Path(__file__).parents[1] / "docs" / "evidence" / "scale.jsonl"
SEED = 7
BUDGETS = {"zcdp": dpci.ZCDP(0.5), "pure": dpci.PureDP(1.0)}
L2_STRENGTH = 0.01


def fill(part: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Write the rows of one part, a function of its number alone; none is longer than 1."""
    d = rows.shape[1]
    np.random.Generator(np.random.SFC64(np.random.SeedSequence([SEED, part, d]))).random(out=rows)
    rows -= 0.5
    rows *= 2.0 / np.sqrt(d)
    return rows


def classes(part: int, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Make the targets of one part, which depend on three columns."""
    noise = np.random.Generator(np.random.SFC64(np.random.SeedSequence([SEED, part]))).random(len(rows))
    return np.asarray(rows[:, 0] - rows[:, 1] + 0.5 * rows[:, 2] + 0.6 > noise)


def parts(n: int) -> Iterator[tuple[int, int]]:
    """Return number and rows of every part."""
    return ((k, min(CHUNK_ROWS, n - k * CHUNK_ROWS)) for k in range(-(-n // CHUNK_ROWS)))


class Made:
    """A source of chunks that stores none of them."""

    def __init__(self, n: int, d: int) -> None:
        self.n, self.d = n, d

    def __call__(self) -> Iterator[tuple[NDArray[np.float64], NDArray[np.bool_]]]:
        """Make the rows anew, in memory of one chunk."""
        rows = np.empty((CHUNK_ROWS, self.d))
        for part, n_rows in parts(self.n):
            made = fill(part, rows[:n_rows])
            yield made, classes(part, made)


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
    return dpci.fit(
        X, y, budget=BUDGETS[notion], l2_strength=L2_STRENGTH, classes=(False, True), n_threads=threads, seed=SEED
    )


def run_chunks(n: int, d: int, notion: str, threads: int) -> dict[str, Any]:
    """Time a fit of chunks on this machine, and a pass that makes its rows and does nothing with them."""
    found: dict[str, Any] = {}
    with timed(lambda seconds: found.update(generation=seconds)):
        for _ in Made(n, d)():
            pass
    chunks = TimedChunks(Made(n, d))
    with timed(lambda seconds: found.update(fit=seconds)):
        result = fit(chunks, None, notion, threads)
    return {**found, "passes": chunks.passes, "first": float(result.params[0])}


def run_dask(n: int, d: int, notion: str, threads: int, workers: int) -> dict[str, Any]:
    """Time a fit on local worker processes whose partitions are made anew in every pass, and a pass that makes them."""
    import dask.array as da  # noqa: PLC0415  # optional
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415

    def number(block_info: Any) -> int:  # Dask's own
        return int(block_info[None]["chunk-location"][0])

    sizes = tuple(n_rows for _, n_rows in parts(n))
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
            "fit": lambda: found.update(first=float(fit(X, y, notion, threads).params[0])),
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
    parser.add_argument("--overhead", action="store_true", help="time many small parts")
    parser.add_argument("--report", action="store_true", help="print the report of the log")
    parser.add_argument("--log", type=Path, default=LOG)
    arguments = parser.parse_args()
    workers = arguments.workers
    if arguments.overhead:
        append(arguments.log, {"what": "overhead", "workers": workers}, lambda: run_overhead(workers))
    for n in map(int, arguments.rows):
        for d in arguments.columns:
            for threads in arguments.threads:
                what = {"what": "fit", "n": n, "d": d, "threads": threads, "notion": arguments.notion}
                append(
                    arguments.log,
                    {**what, "workers": workers},
                    lambda n=n, d=d, threads=threads: (
                        run_dask(n, d, arguments.notion, threads, workers)
                        if workers
                        else run_chunks(n, d, arguments.notion, threads)
                    ),
                )
    if arguments.report:
        print("\n".join(report([json.loads(line) for line in arguments.log.read_text().splitlines()])))


if __name__ == "__main__":
    main()
