"""The process of one contestant: loads the rows, then runs a fit for every line of JSON that it reads.

``python worker.py LIBRARY SOLVER FOLDER TERMS``. A line ``{"tolerance": 1e-6, "threads": 2}`` is answered by the
seconds of the fit, what it found, and the peak of resident memory since the rows were loaded. Run by run.py.
"""

import contextlib
import importlib
import json
import os
import sys
import time
import warnings
from pathlib import Path

from problem import Problem, Terms, load_rows
from threadpoolctl import threadpool_limits

CORES = sorted(os.sched_getaffinity(0))


def pin(n_cores: int) -> None:
    """Keep all threads of this process, those of BLAS included, on the first cores."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a thread of the last fit that has just ended
            os.sched_setaffinity(int(thread.name), CORES[:n_cores])


def memory(field: str) -> int:
    """Resident memory in bytes: "VmRSS" now, "VmHWM" at its peak."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def main() -> None:
    # Answers go to the pipe alone; what libraries print goes to the error stream.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")

    def answer(**fields: object) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    library, solver, folder, terms = sys.argv[1:]
    try:
        problem = Problem(*load_rows(Path(folder), "train"), Terms(**json.loads(terms)))
        fit = importlib.import_module(f"with_{library}").contestant(problem, solver)
    except Exception as error:  # noqa: BLE001 - whatever a library raises is its result
        answer(error=describe(error))
        return
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts from here
    loaded = memory("VmRSS")
    answer(loaded=loaded)
    for line in sys.stdin:
        order = json.loads(line)
        pin(order["threads"])
        try:
            with threadpool_limits(order["threads"]):
                began = time.perf_counter()
                found = fit(order["tolerance"], order["threads"])
                seconds = time.perf_counter() - began
        except Exception as error:  # noqa: BLE001 - likewise
            answer(error=describe(error))
            continue
        values = {name: [float(v) for v in value] for name, value in found.items()}
        answer(seconds=seconds, peak=memory("VmHWM"), **values)


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:140]}"


if __name__ == "__main__":
    main()
