"""What the benchmarks share: timing, pinning to cores, the machine and who else is using it, a table."""

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


def over_threads(run: Callable[[], object], repetitions: int = REPETITIONS) -> dict[int, float]:
    """Least wall time with one and with two BLAS threads, pinned to as many cores; back on one core at the end."""
    times = {}
    for threads in (1, 2):
        pin(threads)
        with threadpool_limits(threads):
            times[threads] = minimum(run, repetitions)
    pin(1)
    return times


def multiply_rate() -> float:
    """Floating-point operations a second of a square matrix product on one core."""
    a = np.random.default_rng(0).standard_normal((1536, 1536))
    with threadpool_limits(1):
        return 2 * 1536**3 / minimum(lambda: a @ a)


def copy_rate() -> float:
    """Bytes a second read and written by copies too large for the cache, on one core (STREAM's copy)."""
    source = np.ones(2**27)
    target = np.zeros_like(source)
    return 2 * source.nbytes / minimum(lambda: np.copyto(target, source))


class OthersWatch:
    """The processor time that other processes, and the host, take while this one works."""

    def __init__(self) -> None:
        self._began, self._others = time.monotonic(), self._other_seconds()

    def share(self) -> float:
        """Others' processor time since the start, as a share of one core."""
        return max(0.0, self._other_seconds() - self._others) / (time.monotonic() - self._began)

    @staticmethod
    def _other_seconds() -> float:
        # user nice system idle iowait irq softirq steal: all but waiting, of all processes.
        with Path("/proc/stat").open() as stat:
            ticks = [int(word) for word in stat.readline().split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        # Processor time of this process and of its children that have ended.
        return busy - sum(os.times()[:4])


def machine() -> str:
    """Describe the processor and the load, which should be near 0."""
    with Path("/proc/cpuinfo").open() as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    return f"{model}, {len(_CORES)} cores, load {os.getloadavg()[0]:.2f}, numpy {np.__version__}"


def print_machine() -> None:
    """Print what :func:`machine` says."""
    print(machine())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table."""
    widths = [max(len(str(r[i])) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("  ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
