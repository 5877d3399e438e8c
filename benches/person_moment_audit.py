"""Audits moment matrices of persons: one with ten rows is replaced or taken away, with persons= and as ten people.

The argument is the number of runs. The cases are those of benches/moment_audit.py for rows in a ball, with and without
the moments of residuals. Prints docs/evidence/person_moment_audit.md.
"""

import itertools
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from _environments import now
from _timing import commit
from dpci import _core
from moment_audit import CLAIMS, NAMES, Array, Case, N, Side

N_ROWS = 10


@dataclass(frozen=True)
class PersonCase(Case):
    """The same neighbours, where the equal rows are one person's."""

    is_of_persons: ClassVar[bool] = True

    def owned(self, side: Side) -> dict[str, NDArray[np.int64]]:
        """The rows of the record have the first number; every other row has one of its own."""
        own = int((side[1] != 0.0).sum())
        others = np.arange(len(side[1]) - own) + min(own, 1)
        return {"persons": np.append(np.zeros(own, dtype=np.int64), others)}

    def values(self, side: Side) -> list[Array]:
        """A person's equal rows count as one of them."""
        x, y = side
        kept = np.unique(self.owned(side)["persons"], return_index=True)[1]
        return super().values((x[kept], y[kept]))

    def released(self, side: Side, n_runs: int, seed: int) -> list[Array]:
        """Each matrix of so many runs: simulations take no persons."""
        found: list[list[Array]] = [[] for _ in range(1 + self.residuals)]
        keywords = self.owned(side)
        for run in range(seed * n_runs, (seed + 1) * n_runs):
            one = _core.release(
                self.spec, _core.Records(*side, **keywords), on_violation="error", n_threads=1, seed=run
            )
            matrices = [one["matrix"], *(moments for _, moments in one["residuals"])]
            for into, matrix in zip(found, matrices, strict=True):
                into.append(matrix)
        return [np.array(runs) for runs in found]


def main() -> None:
    """Print docs/evidence/person_moment_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of moment matrices of persons\n")
    print(f"`python benches/person_moment_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 0.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring data sets. {N - 1} persons have a row\n"
        f"of 0 each, and one person has {N_ROWS} equal rows at their bounds. That person is replaced by another\n"
        "whose rows are at right angles, or is removed. The lower bounds have confidence 1 - 1e-6 and come from a\n"
        "threshold on the privacy loss of a release, with `persons=` and with the rows taken for people. In lines\n"
        "with residuals, .9 of the budget (.99 under pure DP) is for the moments of the persons' mean residual\n"
        "gradients. The claims are ε = 4, μ = 1 (Gaussian DP) and δ = .05 at ε = 1.\n"
    )
    columns = "with half the noise at least | rows as people: at least"
    print(f"| notion | neighbours | residuals | claim | persons: at least | {columns} |")
    print("|---|---|---|---|---|---|---|")
    for notion, neighbors, residuals in itertools.product(CLAIMS, ("replace_one", "add_remove"), (False, True)):
        person = PersonCase(notion, neighbors, "ball", residuals, N_ROWS)
        found, half = person.audited(n_runs)
        rows = Case(notion, neighbors, "ball", residuals, N_ROWS).audited(n_runs)[0]
        claim = CLAIMS[notion]
        name = f"{NAMES[notion]} = {claim:g}"
        cells = (notion, neighbors, "yes" if residuals else "no", name, *(f"{v:.3g}" for v in (found, half, rows)))
        print(f"| {' | '.join(cells)} |", flush=True)
        if not found <= claim < min(half, rows):
            sys.exit(
                f"{person}: the audit found {found} at the claim {claim}, {half} with half the noise, {rows} of rows"
            )


if __name__ == "__main__":
    main()
