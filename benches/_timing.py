"""What the benchmarks share: timing, pinning to cores, a description of the machine, a table."""

import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

REPETITIONS = 5


def minimum(run: Callable[[], object], repetitions: int = REPETITIONS) -> float:
    """Least wall time of several runs, in seconds."""
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


_CORES = os.sched_getaffinity(0)


def pin(n_cores: int) -> None:
    """Keep this thread, and those that it starts, on the first ``n_cores`` cores of the process."""
    os.sched_setaffinity(0, set(sorted(_CORES)[:n_cores]))


def multiply_rate() -> float:
    """Floating-point operations a second of a square matrix product on one core."""
    a = np.random.default_rng(0).standard_normal((1536, 1536))
    with threadpool_limits(1):
        return 2 * 1536**3 / minimum(lambda: a @ a)


def print_machine() -> None:
    """Print the processor and the load, which should be near 0."""
    with Path("/proc/cpuinfo").open() as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    print(f"{model}, {len(_CORES)} cores, load {os.getloadavg()[0]:.2f}, numpy {np.__version__}")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table."""
    widths = [max(len(str(r[i])) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("  ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
