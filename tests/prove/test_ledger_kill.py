"""Five hundred processes that fit with a ledger are killed at random instants; no spend may be lost or counted twice.

As the forty kills of test_ledger_file.py. A control pays after the release, the wrong way round, and must be caught.
With DPCI_EVIDENCE=1 the counts are written to docs/evidence/ledger.md.
"""

import json
import os
import platform
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytestmark = pytest.mark.prove

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "ledger_kills.py"


def run(folder, **options):
    arguments = json.dumps({"folder": str(folder), **options})
    done = subprocess.run([sys.executable, SCRIPT, arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_five_hundred_kills(tmp_path):
    kept, control = tmp_path / "kept", tmp_path / "control"
    kept.mkdir(), control.mkdir()
    seen = run(kept, n_kills=500, seed=2, longest=0.25)
    late = run(control, n_kills=60, seed=3, longest=0.25, late=True)
    assert seen["releases that came out"] >= 200
    assert seen["interrupted while the file was being written"] >= 25
    assert late["lost"] >= 5
    if os.environ.get("DPCI_EVIDENCE") == "1":
        publish(seen, late)


def publish(seen, late):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    text = f"""# Killed processes and their ledger

`pytest -m prove tests/prove/test_ledger_kill.py`, commit {commit.stdout.strip()}, {datetime.now(UTC):%Y-%m-%d},
{platform.system()}, SQLite {sqlite3.sqlite_version}. Each process fits in a loop, paid by a ledger with a file, sends
what is released through a pipe, and is killed (`SIGKILL`) after a random time of up to a quarter of a second. Ten
processes in a row use the same file. After each kill the file must open, and hold exactly what it held before, then
every release that came out, in order, then at most one spend more; the sum is checked as a rational number.

| seen | times |
|---|---|
"""
    text += "".join(f"| {name} | {count:,} |\n" for name, count in seen.items())
    text += f"""| spends lost | 0 |
| spends counted twice | 0 |

Control, which writes the spend after the release instead of before it: of {late["kills"]} kills {late["lost"]} left a
file in which a release that had come out was missing.
"""
    (ROOT / "docs" / "evidence" / "ledger.md").write_text(text, encoding="utf-8")
