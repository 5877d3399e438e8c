"""Times `import dpci; dpci.fit` beyond NumPy and scipy.special, and says which of its modules take longest."""

import os
import re
import subprocess
import sys
import tempfile

from _timing import OthersWatch, machine

REPETITIONS = 15
LIMIT_MS = 60.0
DEPENDENCIES = "import numpy, scipy.special"
TIMED = f"""
{DEPENDENCIES}
import time
wall, cpu = time.perf_counter(), time.process_time()
import dpci
dpci.fit
print((time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3)
"""


def run(script: str, *options: str, cache: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter that keeps its bytecode, as an installed package does."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *options, "-c", script]
    return subprocess.run(
        command, check=True, capture_output=True, text=True, env={**environment, "PYTHONPYCACHEPREFIX": cache}
    )


def main() -> int:
    watch = OthersWatch()
    with tempfile.TemporaryDirectory() as cache:
        run(TIMED, cache=cache)
        times = [tuple(map(float, run(TIMED, cache=cache).stdout.split())) for _ in range(REPETITIONS)]
        profile = run(f"{DEPENDENCIES}; import dpci; dpci.fit", "-X", "importtime", cache=cache).stderr
    wall, cpu = (min(column) for column in zip(*times, strict=True))
    print(f"import dpci; dpci.fit beyond numpy and scipy.special, least of {REPETITIONS} interpreters: ", end="")
    print(f"{wall:.1f} ms of wall time, {cpu:.1f} ms of processor time (at most {LIMIT_MS:.0f})")
    own = re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(dpci\S*|scipy\.sparse\S*)$", profile, re.MULTILINE)
    for microseconds, name in sorted(((int(time), name) for time, name in own), reverse=True)[:10]:
        print(f"  {microseconds / 1e3:6.1f} ms  {name}")
    print(f"{machine()}; others took {watch.share():.0%} of a core")
    return int(cpu > LIMIT_MS)


if __name__ == "__main__":
    sys.exit(main())
