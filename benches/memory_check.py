"""Calls every function of the compiled module, on legal and on odd rows: what Valgrind watches (docs/fuzzing.md)."""

import random
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import fuzz_targets, fuzzing

# Valgrind is some fifty times slower.
fuzzing.SECONDS, fuzzing.SECONDS_OF_HUGE = 3600.0, 30.0


def main(cases_per_target: int) -> None:
    warnings.simplefilter("ignore")
    targets = fuzz_targets.targets()
    legal = 0
    for number, target in enumerate(targets):
        for seed in range(cases_per_target):
            rng = random.Random(1000 * number + seed)
            # The first case of each is legal, the others are odd.
            outcome = fuzzing.run_case(rng, target) if seed else fuzzing.judge(target, target.typical(rng))
            legal += outcome == "result"
    print(f"{len(targets)} targets, {cases_per_target * len(targets)} cases, {legal} gave results")


if __name__ == "__main__":
    main(int(sys.argv[1]))
