"""One process of a long fuzz run: cases until a time is up, and a tally of what came of them.

The seed of the case under way is in a file, from which its parent learns what crashed or hung. Run as a script:
``fuzz_shard.py first_seed seconds progress_file``.
"""

import faulthandler
import json
import mmap
import random
import resource
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import fuzzing

# Absurd allocations fail instead of being granted by an overcommitting system and never touched.
ADDRESS_SPACE = 6 << 30
HANG_SECONDS = 120
SHOWN = 20


def main(first, seconds, progress):
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    Path(progress).write_bytes(bytes(8))
    outcomes, violations, slowest, seed = Counter(), [], 0.0, first
    with Path(progress).open("r+b") as file, mmap.mmap(file.fileno(), 8) as at:
        end = time.monotonic() + seconds
        while (started := time.monotonic()) < end:
            if (seed - first) % 256 == 0:
                faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            at[:] = seed.to_bytes(8, "little")
            try:
                outcomes[fuzzing.run_case(random.Random(seed))] += 1
            except fuzzing.Violation as violation:
                outcomes["violation"] += 1
                violations.append(f"seed {seed}: {violation}")
            slowest = max(slowest, time.monotonic() - started)
            seed += 1
    faulthandler.cancel_dump_traceback_later()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shown = {"outcomes": outcomes, "violations": violations[:SHOWN], "slowest": slowest, "peak_kib": peak}
    print(json.dumps({"next": seed, **shown}))  # noqa: T201  # read by its parent


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
