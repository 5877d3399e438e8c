"""The process of one contestant on coded rows: ``python coded_worker.py FILE KIND CORES ROUNDS``; run by coded.py."""

import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

import numpy as np

# What takes longer than so many seconds is timed once.
SLOW = 20.0


def worker(file: str, kind: str, n_cores: int, rounds: int) -> None:
    """Print the least seconds of some rounds, megabytes and where the parameters are."""
    data = dict(np.load(file))
    library, rest = kind.split(": ")
    fit, n_bytes = importlib.import_module(f"coded_{library}").contestant(data, rest, n_cores)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before, seconds = memory("VmRSS"), []
    while len(seconds) < rounds and sum(seconds) < SLOW:
        began = time.perf_counter()
        found = fit()
        seconds.append(time.perf_counter() - began)
    extra = memory("VmHWM") - before
    place = f"{file}.{os.getpid()}.npy"
    np.save(place, np.atleast_1d(found))
    print(json.dumps({"seconds": min(seconds), "rows": n_bytes / 1e6, "extra": extra / 1e6, "found": place}))


def memory(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    file, kind, cores, rounds = sys.argv[1:]
    worker(file, kind, int(cores), int(rounds))
