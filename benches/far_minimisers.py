"""How often minimisers far out are found: Newton's method alone, and with what stands behind it.

``python benches/far_minimisers.py [--count 60] > docs/evidence/far_minimisers.md`` (about an hour).
"""

import argparse
import datetime as dt
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from dpci import lowlevel  # noqa: E402
from dpci.errors import NotConverged  # noqa: E402
from support.extreme import far_out  # noqa: E402

CONDITIONS = (1e8, 1e9, 1e10, 5e10)
_HEAD = """# Minimisers far out

`python benches/far_minimisers.py --count {count}`, commit {commit}, {date}, seeds 0 to {last}.

These are the first {count} problems of `far_out` (`tests/support/extreme.py`). They have 20, 40 or 80 columns whose
sizes differ by up to 10⁶, 50 to 300 rows, and the linear term of objective perturbation at ρ from 1 to 400. The
condition is κ - 1 = tR²/λ, and the requested certificate is 10⁻⁸ of ‖b‖/(nλ). "alone" is Newton's method with
refinement in doubled precision; "automatic" adds the continuation in λ and the ellipsoid method. Seconds are those of
one thread of a machine that was doing other work.

| condition | loss | problems | failed alone | failed automatic | slowest alone | slowest automatic |
|---|---|---|---|---|---|---|"""


def run(solver: str, seed: int, condition: float) -> tuple[bool, float]:
    """Return whether the minimiser was certified, and the seconds."""
    X, y, keywords, tolerance = far_out(seed, condition)
    begin = time.perf_counter()
    try:
        lowlevel.minimize_erm(X, y, solver=solver, tolerance=tolerance, max_iterations=2000, n_threads=1, **keywords)
    except NotConverged:
        return False, time.perf_counter() - begin
    return True, time.perf_counter() - begin


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    count = parser.parse_args().count
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    today = dt.datetime.now(dt.UTC).date()
    print(_HEAD.format(count=count, last=count - 1, commit=commit.stdout.strip(), date=today))
    for condition in CONDITIONS:
        losses = [far_out(seed, condition)[2]["loss"].name for seed in range(count)]
        found = {solver: [run(solver, seed, condition) for seed in range(count)] for solver in ("newton", "auto")}
        for loss in sorted(set(losses)):
            of_loss = {
                solver: [result for result, name in zip(results, losses, strict=True) if name == loss]
                for solver, results in found.items()
            }
            failed = [sum(not certified for certified, _ in results) for results in of_loss.values()]
            slowest = [max(seconds for _, seconds in results) for results in of_loss.values()]
            cells = [f"{condition:.0e}", loss, losses.count(loss), *failed, *(f"{s:.1f} s" for s in slowest)]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
