"""Hundreds of faults: little memory, interrupts, kills of checkpointed studies, a disk that is really full."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpci
from support import faults
from support.studies import complete

pytestmark = [pytest.mark.prove, pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")]

N_CASES = 300
N_KILLS = 100
TESTS = Path(faults.__file__).parents[1]


def run_cases(kind):
    command = [sys.executable, faults.__file__, kind, "1000", str(N_CASES)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "RUST_BACKTRACE": "0", "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    found = json.loads(done.stdout)
    print(kind, found)  # noqa: T201  # the log of `make prove` is the evidence
    return found


def test_little_memory():
    """A few MB: an allocation that fails where no error can be made of it aborts the process, and releases nothing."""
    found = run_cases("memory")
    assert [story for story in found["bad"] if "crash (-6)" not in story] == []
    assert len(found["bad"]) <= 0.05 * N_CASES


def test_interrupts():
    assert run_cases("interrupt")["bad"] == []


STUDY = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
from simulate import test_study_faults as tests
from dpci import simulate
from dpci.simulate import replicates as _replicates

_replicates.CHECKPOINT_SECONDS, _replicates.BATCH_SECONDS = 0.0, 1e-3
warnings.simplefilter("ignore")
simulate.coverage(*tests.make_rows(), checkpoint=sys.argv[2], **{**tests.STUDY, "n_replicates": 10**7})
"""


def test_kills_at_any_time(tmp_path):
    """One checkpoint through all kills: whole after each, never shorter than before, the right bits in the end."""
    sys.path.insert(0, str(TESTS))
    from simulate import test_study_faults as tests  # noqa: PLC0415  # importlib mode has no packages of tests

    path, rng, before = tmp_path / "study.npz", random.Random(1), 0
    for _ in range(N_KILLS):
        with subprocess.Popen([sys.executable, "-c", STUDY, str(TESTS), str(path)]) as process:
            start, deadline = complete(path), time.monotonic() + 60
            while complete(path) == start and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(rng.expovariate(10.0))
            process.send_signal(signal.SIGKILL)
        assert complete(path) >= before
        before = complete(path)
    study = {**tests.STUDY, "n_replicates": before + 8}
    found = dpci.simulate.coverage(*tests.make_rows(), checkpoint=path, **study)
    again = dpci.simulate.coverage(*tests.make_rows(), **study)
    np.testing.assert_array_equal(tests.bits(found), tests.bits(again))
    print(f"{N_KILLS} kills, {before} replicates")  # noqa: T201


FULL = """
set -eu
mount -t tmpfs -o size=60k none "$1"
"$2" -c '
import sys, warnings
sys.path.insert(0, sys.argv[1])
from simulate import test_study_faults as tests
from dpci import simulate
from dpci.simulate import replicates as _replicates
from dpci.errors import InvalidInput
_replicates.CHECKPOINT_SECONDS, _replicates.BATCH_SECONDS = 0.0, 1e-3
warnings.simplefilter("ignore")
path = sys.argv[2] + "/study.npz"
try:
    simulate.coverage(*tests.make_rows(), checkpoint=path, **{**tests.STUDY, "n_replicates": 10**7})
except InvalidInput as error:
    print(error)
print(tests.complete(tests.Path(path)))
' "$3" "$1"
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="mounts a small disk in a namespace of its own")
def test_a_full_disk(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    shell = ["sh", "-c", FULL, "sh", str(folder), sys.executable, str(TESTS)]
    done = subprocess.run(["unshare", "-rm", *shell], capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no small disk may be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    message, kept = done.stdout.strip().split("\n")
    assert "No space left on device" in message
    assert int(kept) > 0
