"""Bad luck in small: little memory, interrupts at random times, a worker that is killed; more in `tests/prove`."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci import _core
from support import faults

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


def run_cases(kind, first, count):
    command = [sys.executable, faults.__file__, kind, str(first), str(count)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(Path(faults.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert "panicked" not in done.stderr, done.stderr[-4000:]
    return json.loads(done.stdout)


def test_little_memory():
    found = run_cases("memory", 0, 12)
    # It depends on the machine which allocation fails; one of which no error can be made aborts, which is rare. Where
    # it is one of the dynamic loader, which resolves symbols at their first call, the process ends with 127.
    aborted = sum(found["endings"].pop(f"crash ({code})", 0) for code in (-6, 127))
    assert len(found["bad"]) == aborted <= 4
    assert set(found["endings"]) <= {"result", "MemoryError", "DpciError"}
    assert found["endings"]["result"] > 0
    assert found["endings"].get("DpciError", 0) > 0


def test_interrupts():
    found = run_cases("interrupt", 0, 12)
    assert found["bad"] == []
    assert set(found["endings"]) <= {"result", "KeyboardInterrupt"}
    assert found["endings"]["KeyboardInterrupt"] > 0


def test_the_harness_sees_a_crash():
    assert faults.ending(lambda: os.kill(os.getpid(), signal.SIGKILL)) == "crash (-9)"
    assert faults.ending(lambda: None) == "result"


# A worker process.

KILLED = """
import os, signal, sys, threading, time, warnings
from pathlib import Path
import joblib, numpy as np
import dpci
from dpci.simulate import replicates as _replicates

_replicates.CHECKPOINT_SECONDS, _replicates.JOBLIB_BATCH_SECONDS = 0.0, 0.2
warnings.simplefilter("ignore")

def children():
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"loky" in (stat.parent / "cmdline").read_bytes():
            found.append(int(stat.parent.name))
    return found

def complete(path):
    if not path.exists():
        return 0
    with np.load(path) as archive:
        return len(archive["coverage_0_params"])

def kill():
    while complete(Path(sys.argv[1])) == 0:
        time.sleep(0.02)
    for child in children():
        os.kill(child, signal.SIGKILL)

threading.Thread(target=kill, daemon=True).start()
X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(200, 3))
with joblib.parallel_config("loky", n_jobs=2):
    try:
        dpci.simulate.coverage(
            X, X[:, 0] > 0, budget=dpci.PureDP(2.0), l2_strength=0.2, n_replicates=10**6, n_variability=0,
            n_threads=1, parallel="joblib", checkpoint=sys.argv[1],
        )
    except Exception as error:
        print(type(error).__name__)
        sys.exit(7)
"""


@pytest.mark.slow
def test_a_killed_worker_is_an_error_and_the_study_goes_on(tmp_path):
    """Replicates that were complete are kept, and the study that goes on gives the same bits."""
    path = tmp_path / "study.npz"
    command = [sys.executable, "-c", KILLED, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 7, done.stderr[-2000:]
    X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(200, 3))
    with np.load(path) as archive:
        complete = len(archive["coverage_0_params"])
    assert 0 < complete < 10**6
    study = {"budget": dpci.PureDP(2.0), "l2_strength": 0.2, "n_replicates": complete + 16, "n_variability": 0}
    found = dpci.simulate.coverage(X, X[:, 0] > 0, checkpoint=path, **study)
    again = dpci.simulate.coverage(X, X[:, 0] > 0, **study)
    for name in ("params", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))


def test_an_interrupt_of_many_draws_is_soon_heard():
    """The core looks for signals while it draws, whatever the number."""
    main = threading.get_ident()
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.process_time()
    draws = {"dim": 1, "scale": 1.0, "seed": 1}
    _core.draw_noise("laplace", n=10**6, **draws)
    for_a_million = time.process_time() - began
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        _core.draw_noise("laplace", n=10**8, **draws)
    # All draws would take a hundred times as long, and the interrupt would be raised after them.
    assert time.process_time() - began < 50 * for_a_million
