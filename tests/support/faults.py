"""Bad luck on purpose: calls in forked processes that run out of memory, are interrupted, or are killed.

Run as a script (``faults.py memory|interrupt first_seed n_cases``) it prints how the cases ended; its forks are then
those of a process without threads.
"""

import json
import os
import random
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse

import dpci
from support.keywords import assembled

N, D = 60_000, 16
SECONDS = 120.0
# How a child says what came of it; any other status is a crash.
ENDINGS = {0: "result", 10: "MemoryError", 11: "DpciError", 12: "KeyboardInterrupt"}


def make_calls():
    """Calls that read a table of 8 MB, or make one."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.25, 0.25, size=(N, D))
    y = rng.integers(0, 2, N) == 1
    some = rng.integers(0, 50, N)
    sparse = scipy.sparse.csr_array(np.where(abs(X) > 0.15, X, 0.0))
    pure = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    study = {**pure, "n_threads": 2, "n_replicates": 8, "n_variability": 8}
    grid = {"candidates": [{"l2_strength": 0.1}, {"l2_strength": 0.2}], "validation_radius": 2.0}
    axes = [dpci.baselines.Bins(i, 4 if i < 8 else 1) for i in range(D)]
    return {
        "fit": lambda: dpci.fit(X, y, **pure),
        "fit of repeated rows": lambda: dpci.fit(X[some], y[some], **pure),
        "fit with clipping": lambda: dpci.fit(X, y, rows=dpci.rows.Clipped(0.3), **pure),
        "sparse fit": lambda: dpci.fit(sparse, y, **pure),
        "hinge": lambda: dpci.fit(X, y, **assembled(loss="hinge", mechanism="output", moments="none", **pure)),
        "coverage": lambda: dpci.simulate.coverage(X, y, **study),
        "many replicates": lambda: dpci.simulate.coverage(X[:50], y[:50], **{**study, "n_replicates": 20_000}),
        "curve": lambda: dpci.utility.curve(X, y, at=dpci.PureDP(1.0), l2_strength=0.1, n_threads=2),
        "report": lambda: dpci.per_instance.report(X, y, budget=dpci.ApproxDP(1.0, 1e-5), l2_strength=0.1, n_public=N)(
            X, y
        ),
        "repeat": lambda: dpci.tuning.tune(X, y, budget=dpci.PureDP(4.0), expected_runs=2.0, **grid),
        "chunks": lambda: dpci.tuning.tune(X, y, budget=dpci.PureDP(4.0), method="chunks", **grid),
        "histogram": lambda: dpci.baselines.projected_histogram(
            X, 2.0 * y - 1.0, budget=dpci.PureDP(1.0), l2_strength=0.1, axes=axes
        ),
        "moment matrix": lambda: dpci.regression.release(
            X, 2.0 * y - 1.0, budget=dpci.PureDP(1.0), bounds=(-1, 1), robust=True
        ),
        "draws": lambda: dpci.lowlevel.spherical_laplace(400_000, 10, 1.0, 1),
        "simulated interval": lambda: dpci.lowlevel.monte_carlo_interval(
            np.ones(40), np.ones(40), noise_law="gaussian", noise_scale=1.0, dim=2, n_draws=400_000, level=0.5, seed=1
        ),
    }


def _address_space():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def _child(call, room, write):
    """Run the call in this process, which then ends; the first byte written says that it has begun."""
    status = 1
    try:
        if room is not None:
            limit = _address_space() + room
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        os.write(write, b".")
        call()
        status = 0
    except MemoryError:
        status = 10
    except dpci.DpciError as error:
        status = 1 if "internal error" in str(error) else 11
    except KeyboardInterrupt:
        status = 12
    finally:
        os._exit(status)


def ending(call, *, room=None, interrupt_after=None):
    """Run a call in a fork with so many bytes of room, or interrupted after so many seconds; return how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        _child(call, room, write)
    os.read(read, 1)
    os.close(read)
    os.close(write)
    end = time.monotonic() + SECONDS
    if interrupt_after is not None:
        time.sleep(interrupt_after)
        os.kill(child, signal.SIGINT)
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return ENDINGS.get(code, f"crash ({code})")
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hang"


def main(kind, first, count):
    warnings.simplefilter("ignore")
    calls, found, bad = make_calls(), Counter(), []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        name = rng.choice(sorted(calls))
        if kind == "memory":
            how = {"room": int(2 ** rng.uniform(21.6, 26.5))}
        else:
            how = {"interrupt_after": rng.expovariate(5.0)}
        came = ending(calls[name], **how)
        found[came] += 1
        if came.startswith(("crash", "hang")):
            bad.append(f"seed {seed}: {name} with {how}: {came}")
    print(json.dumps({"endings": found, "bad": bad}))  # noqa: T201  # read by its parent


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
