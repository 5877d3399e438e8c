"""Base of the benchmarks: timing, pinning to cores, the machine and who else is using it, a table."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

REPETITIONS = 5
# Share of one core that other processes may use while something is timed.
OTHERS_ALLOWED = 0.1
# Idle BLAS threads of NumPy spin for some milliseconds after a call; whatever is timed next must not meet them.
_SPINNING_SECONDS = 0.2
_Key = TypeVar("_Key", bound=Hashable)


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
    if n_cores > len(_CORES):
        sys.exit(f"the process must have at least {n_cores} cores for this benchmark, got {len(_CORES)}")
    os.sched_setaffinity(0, set(sorted(_CORES)[:n_cores]))


def unpin() -> None:
    """Give this thread back all cores of the process, for what a child process inherits."""
    os.sched_setaffinity(0, _CORES)


@dataclass(frozen=True)
class Timed:
    """Something to time on so many cores; ``blas``: it leaves threads of NumPy spinning."""

    run: Callable[[], object]
    cores: int = 1
    blas: bool = False


def interleaved(contestants: Mapping[_Key, Timed], rounds: int, kept: Path | None = None) -> dict[_Key, float]:
    """Least wall time of each over several rounds, in each of which all of them run once: a slow spell hits all.

    A file ``kept`` holds the times of rounds: those that it has are not run again, and each further round that nobody
    disturbed is added. One that somebody disturbed is run again.
    """
    times: dict[_Key, list[float]] = {key: [] for key in contestants}
    if kept is not None and kept.exists():
        held = json.loads(kept.read_text())
        times = {key: held[str(key)] for key in contestants}
    while min(map(len, times.values())) < rounds:
        watch, found = OthersWatch(), {}
        for key, timed in contestants.items():
            pin(timed.cores)
            with threadpool_limits(timed.cores):
                found[key] = minimum(timed.run, 1)
            if timed.blas:
                time.sleep(_SPINNING_SECONDS)
        if kept is not None and watch.share() > OTHERS_ALLOWED:
            print(f"others used {watch.share():.0%} of a core: the round is run again", file=sys.stderr, flush=True)
            continue
        times = {key: [*values, found[key]] for key, values in times.items()}
        if kept is not None:
            kept.write_text(json.dumps({str(key): values for key, values in times.items()}))
    unpin()
    return {key: min(values) for key, values in times.items()}


def multiply_rate() -> float:
    """Floating-point operations a second of a square matrix product on one core."""
    a = np.random.default_rng(0).standard_normal((1536, 1536))
    with threadpool_limits(1):
        rate = 2 * 1536**3 / minimum(lambda: a @ a)
    time.sleep(_SPINNING_SECONDS)
    return rate


def copy_rate(n_threads: int = 1) -> float:
    """Bytes a second read and written by copies too large for the cache (STREAM's copy)."""
    source = np.ones(2**27)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, n_threads), np.array_split(source, n_threads), strict=True))
    with ThreadPoolExecutor(n_threads) as pool:  # copying leaves Python's lock to the others
        return 2 * source.nbytes / minimum(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))


class OthersWatch:
    """The processor time that other processes, and the host, take while this one works."""

    def __init__(self) -> None:
        self._began, self._others = time.monotonic(), self._other_seconds()

    def share(self) -> float:
        """Others' processor time since the start, as a share of one core."""
        return max(0.0, self._other_seconds() - self._others) / (time.monotonic() - self._began)

    def refuse_if_busy(self, when: str) -> None:
        """End the program if others used too much since the start."""
        share = self.share()
        if share > OTHERS_ALLOWED:
            sys.exit(f"others may use {OTHERS_ALLOWED:.0%} of a core, got {share:.0%} {when}; see --busy-ok")

    @staticmethod
    def _other_seconds() -> float:
        # user nice system idle iowait irq softirq steal: all but waiting, of all processes.
        with Path("/proc/stat").open() as stat:
            ticks = [int(word) for word in stat.readline().split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        # Processor time of this process and of its children that have ended.
        return busy - sum(os.times()[:4])


def machine(*, load: bool = True) -> str:
    """Describe the processor and, unless others are watched, the load, which should be near 0."""
    with Path("/proc/cpuinfo").open() as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    shown = f", load {os.getloadavg()[0]:.2f}" if load else ""
    return f"{model}, {len(_CORES)} cores{shown}, numpy {np.__version__}"


def commit(*paths: str) -> str:
    """Return the short name of the commit that is checked out, or of the last that changed paths, or "unknown"."""
    root = Path(__file__).parents[1]
    command = ["git", "log", "-1", "--format=%h", "--", *(str(root / path) for path in paths)]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def print_machine() -> None:
    """Print what :func:`machine` says."""
    print(machine())


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print an aligned table."""
    widths = [max(len(str(r[i])) for r in [header, *rows]) for i in range(len(header))]
    for row in [header, ["-" * w for w in widths], *rows]:
        print("  ".join(str(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
