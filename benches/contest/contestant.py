"""A contestant as the contest sees it: a process that fits when told to, and what has been found out about it."""

import json
import os
import select
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Seconds in which a process must have loaded its libraries and rows.
START_LIMIT = 120.0


class Failed(Exception):
    """The contestant raised, ended, or took longer than it may."""


class Process:
    """The worker of one library and solver; it waits for orders, and costs nothing while it waits."""

    def __init__(self, interpreter: Path, library: str, solver: str, folder: Path, terms: str) -> None:
        # As many threads as there are cores; the worker limits them for each fit.
        cores = str(len(os.sched_getaffinity(0)))
        settings = dict(os.environ, OPENBLAS_NUM_THREADS=cores, OMP_NUM_THREADS=cores, PYTHONDONTWRITEBYTECODE="1")
        command = [interpreter, HERE / "worker.py", library, solver, folder, terms]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._child = subprocess.Popen(command, env=settings, bufsize=0, **pipes)
        self._buffer = b""

    def answer(self, limit: float) -> dict[str, Any]:
        """The next line of the process, within so many seconds."""
        while b"\n" not in self._buffer:
            if not select.select([self._child.stdout], [], [], limit)[0]:
                self.close()
                raise Failed(f"stopped after {limit:.0f} s")
            read = os.read(self._child.stdout.fileno(), 1 << 16)
            if not read:
                self.close()
                raise Failed(f"its process ended with code {self._child.returncode}")
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def fit(self, tolerance: float | None, threads: int, limit: float) -> dict[str, Any]:
        self._child.stdin.write(json.dumps({"tolerance": tolerance, "threads": threads}).encode() + b"\n")
        return self.answer(limit)

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        self._child.stdin.close()
        self._child.stdout.close()


@dataclass(frozen=True)
class Entry:
    """A library with a solver, and the tolerances of its own that it may be given, loosest first."""

    library: str
    solver: str
    tolerances: tuple[float | None, ...] = (None,)


@dataclass
class Contestant:
    """An entry of a cell: its process, and what it did."""

    entry: Entry
    process: Process
    loaded: int = 0
    peak: int = 0
    tolerance: float | None = None
    # Seconds by number of threads; the first ones are those of the trial.
    trial: dict[int, float] = field(default_factory=dict)
    seconds: dict[int, list[float]] = field(default_factory=dict)
    found: list[dict[str, Any]] = field(default_factory=list)
    failure: str = ""
    # Whether all of its tolerances leave it too far from the minimiser.
    missed: bool = False
    # Whether it goes on after the trial.
    kept: bool = False

    def fit(self, threads: int, limit: float) -> float | None:
        """Seconds of one fit, what it found being kept; None if it failed, which ends its part."""
        try:
            answer = self.process.fit(self.tolerance, threads, limit)
        except Failed as error:
            self.failure = str(error)
            self.process.close()
            return None
        self.peak = max(self.peak, answer.pop("peak"))
        seconds = answer.pop("seconds")
        self.found.append(answer)
        return seconds

    @property
    def best(self) -> tuple[float, int]:
        """Least seconds, and with how many threads; of the trial where that was all."""
        timed = {threads: min(values) for threads, values in self.seconds.items() if values} or self.trial
        return min((seconds, threads) for threads, seconds in timed.items())
