"""Millions of odd calls of the public interface, in processes of their own: no crash, hang, leak, or other exception.

`DPCI_FUZZ_SECONDS` sets how long (1500 by default), `DPCI_FUZZ_SEED` where the seeds begin.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support import fuzz_shard, fuzz_targets

pytestmark = pytest.mark.prove

SECONDS = float(os.environ.get("DPCI_FUZZ_SECONDS", "1500"))
FIRST = int(os.environ.get("DPCI_FUZZ_SEED", "1000000"))
SHARD_SECONDS = 120.0
# A process that fuzzes for two minutes; a leak of 200 bytes a case would pass this.
GREATEST_PEAK_KIB = 1_500_000
ROOT = Path(__file__).parents[2]


def run_shard(first, seconds, progress):
    command = [sys.executable, fuzz_shard.__file__, str(first), str(seconds), str(progress)]
    # One thread of BLAS: the processes share the machine with others.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        seed = int.from_bytes(progress.read_bytes(), "little")
        pytest.fail(f"the process died with code {done.returncode} in the case of seed {seed}:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout), done.stderr


def test_odd_arguments(tmp_path):
    outcomes, violations, slowest, peak, processes = Counter(), [], 0.0, 0, 0
    seed, end = FIRST, time.monotonic() + SECONDS
    while (left := end - time.monotonic()) > 1.0:
        found, errors = run_shard(seed, min(left, SHARD_SECONDS), tmp_path / "seed")
        outcomes.update(found["outcomes"])
        violations += found["violations"]
        # Rust prints its panics, also those that a thread pool or the bindings catch.
        if "panicked" in errors:
            violations.append(errors[-4000:])
        slowest, peak = max(slowest, found["slowest"]), max(peak, found["peak_kib"])
        seed, processes = found["next"], processes + 1
    publish(outcomes, violations, slowest, peak, processes, seed)
    assert not violations, "\n\n".join(violations)
    assert peak < GREATEST_PEAK_KIB
    assert outcomes["result"] > 0.1 * outcomes.total()


def publish(outcomes, violations, slowest, peak, processes, seed):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    commit = commit.strip()
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    head = (
        f"`pytest -m prove tests/prove/test_fuzz.py`, commit {commit}, {date}, seeds {FIRST} to {seed - 1}, "
        f"{processes} processes of at most {SHARD_SECONDS:.0f} s, {len(fuzz_targets.targets())} targets."
    )
    foot = (
        f"Violations: {len(violations)}. Crashes: 0 (a crash ends the run). Slowest case {slowest:.1f} s, on a machine "
        f"shared with other work; greatest resident memory of a process {peak / 1024:.0f} MiB."
    )
    table = "\n".join(f"| {name} | {count:,} |" for name, count in [*outcomes.most_common(), ("all", outcomes.total())])
    text = f"# Fuzzing of the public interface\n\n{head}\n\n| outcome | cases |\n|---|---|\n{table}\n\n{foot}\n"
    print(text)  # noqa: T201  # the log of `make prove` is the evidence
    if os.environ.get("DPCI_EVIDENCE"):
        (ROOT / "docs/evidence/fuzz.md").write_text(text)
