"""Audits moment matrices of linear regression by the privacy losses of releases.

Arguments are the number of runs and, to audit one notion alone, its name. One record is replaced by another at right
angles, or taken away; both are at their bounds. Rows lie in a ball, or in blocks whose bounds differ. With residuals .9
of the budget is for the moments of residuals, of a regression on columns that the noise hides. Losses of two Laplace
matrices together are too far from their greatest value to be seen, so that under pure DP the part is .99. In a ball
both columns are regressors, so that their rows can be at right angles. Half the noise is the same releases with their
noise divided by two. Prints docs/evidence/moment_audit.md. benches/person_moment_audit.py has the same cases for
records of several equal rows, which are replaced or taken away together.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from _environments import now
from _timing import commit
from dpci import _core
from dpci.audit.bounds import Inversion, delta_at, epsilon_at, lower_bound

Array = NDArray[np.float64]
Side = tuple[Array, Array]

N, CONFIDENCE = 20, 1.0 - 1e-6
CLAIMS = {"pure": 4.0, "gdp": 1.0, "approx": 0.05}
"""ε; μ; δ at ε = 1. An ε below 4 is not seen in four dimensions: losses are far from their greatest value."""
NAMES = {"pure": "ε", "gdp": "μ", "approx": "δ"}


def mu_of(p: Array, q: Array) -> Array:
    """Return the μ of Gaussian DP that an event of probability p, and of q on the other data, refutes."""
    return np.asarray(special.ndtri(p) - special.ndtri(q))


INVERSIONS: dict[str, Inversion] = {"pure": epsilon_at(0.0), "gdp": mu_of, "approx": delta_at(1.0)}


@dataclass(frozen=True)
class Case:
    """Two neighbouring data sets, and a release of either."""

    notion: str
    neighbors: str
    rows: str
    residuals: bool
    n_equal: int = 1
    """Rows of the record that is replaced or taken away."""

    is_of_persons: ClassVar[bool] = False

    @property
    def n(self) -> int:
        """The public number of records."""
        return N if self.is_of_persons else N - 1 + self.n_equal

    @cached_property
    def spec(self) -> _core.MomentMatrixSpec:
        """All public choices, calibrated."""
        pure, approx = _core.Budget.pure(CLAIMS["pure"]), _core.Budget.approx(1.0, CLAIMS["approx"])
        # Least squares of y on these columns.
        plan = (self.regressors, [0.0] * len(self.regressors) ** 2, [0.0, 0.0, 0.0, 1.0])
        return _core.MomentMatrixSpec(
            _core.Terms(self.n, self.neighbors, persons=self.is_of_persons),
            n_columns=2,
            row_norm=1.0 if self.rows == "ball" else _core.RowDomain.blocks([1.0, 2.0], [0, 1]),
            target_bound=3.0,
            residuals=[plan] if self.residuals else [],
            residual_share=0.99 if self.notion == "pure" else 0.9,
            budget={"pure": pure, "approx": approx}.get(self.notion),
            mu=CLAIMS["gdp"] if self.notion == "gdp" else None,
        )

    @property
    def regressors(self) -> list[int]:
        """Regressors of the regression whose residuals are released, the constant among them."""
        return [0, 1, 2] if self.rows == "ball" else [0, 2]

    @cached_property
    def sides(self) -> list[Side]:
        """The data sets: rows of 0, and one at its bounds."""
        first = np.array([1.0, 0.0]) if self.rows == "ball" else np.array([1.0, 2.0])
        # At right angles to it, targets and constant included, as far as the bounds allow.
        constant, target = self.spec.intercept, 3.0 * self.spec.target_weight
        if len(self.regressors) == 3 and self.residuals:
            target = 0.0
        if self.rows == "ball":
            cosine = max(-1.0, -(constant**2 + target**2))
            second = np.array([cosine, np.sqrt(1.0 - cosine**2)])
        else:
            second = np.array([-1.0 if self.residuals else 1.0, -2.0])
        zeros = np.zeros(N - 1)
        with_record = [
            (np.vstack([*[row] * self.n_equal, np.zeros((N - 1, 2))]), np.append([3.0] * self.n_equal, zeros))
            for row in (first, second)
        ]
        if self.neighbors == "replace_one":
            return with_record
        return [with_record[0], (np.zeros((N - 1, 2)), zeros)]

    def owned(self, _side: Side) -> dict[str, NDArray[np.int64]]:
        """Keywords of a release of these rows: the person of each, if the records are persons."""
        return {}

    @cached_property
    def scales(self) -> list[float]:
        """Scales of the noise: in each run the same, as the noise hides every direction and residuals are targets."""
        scales = []
        for side in self.sides:
            found = _core.release(
                self.spec, _core.Records(*side, **self.owned(side)), on_violation="error", n_threads=1, seed=0
            )
            if self.residuals:
                assert not found["residuals"][0][0].any()
            scales.append([step.scale for step in found["steps"]])
        assert scales[0] == scales[1]
        return scales[0]

    def values(self, side: Side) -> list[Array]:
        """The matrices without noise."""
        x, y = side
        z = np.column_stack([x, np.full(len(x), self.spec.intercept), self.spec.target_weight * y])
        inner = z[:, self.regressors] * y[:, None]
        return [z.T @ z / self.n, inner.T @ inner / self.n][: 1 + self.residuals]

    def released(self, side: Side, n_runs: int, seed: int) -> list[Array]:
        """Each matrix of so many runs."""
        out = _core.simulate(self.spec, _core.Records(*side), n_runs=n_runs, seed=seed, n_threads=1)
        found, start = [], 0
        for i, value in enumerate(self.values(side)):
            if i:
                start += 3  # the coefficients at which residuals are taken
            dim = len(value)
            found.append(_full(out[:, start : start + dim * (dim + 1) // 2], dim))
            start += dim * (dim + 1) // 2
        return found

    def losses(self, side: Side, released: list[Array], noise: float) -> Array:
        """The privacy loss of each run, with its noise multiplied by a factor."""
        total = np.zeros(len(released[0]))
        own, first, second = (self.values(s) for s in (side, *self.sides))
        for i, scale in enumerate(self.scales):
            seen = own[i] + noise * (released[i] - own[i])
            # Noise has the density exp(-‖·‖²/(2s²)) or, of the nuclear norm, exp(-‖·‖/s).
            if self.notion == "pure":
                norms = [np.abs(np.linalg.eigvalsh(seen - value[i])).sum(axis=1) / scale for value in (first, second)]
            else:
                norms = [((seen - value[i]) ** 2).sum(axis=(1, 2)) / (2.0 * scale**2) for value in (first, second)]
            total += (norms[1] - norms[0]) / noise ** (1 if self.notion == "pure" else 2)
        return total

    def audited(self, n_runs: int, seed: int = 0) -> tuple[float, float]:
        """Lower bounds on the claim from releases as they are, and with half their noise."""
        released = [self.released(side, n_runs, seed + i) for i, side in enumerate(self.sides)]
        bounds = []
        for noise in (1.0, 0.5):
            found = [self.losses(side, runs, noise) for side, runs in zip(self.sides, released, strict=True)]
            bound = lower_bound(*found, INVERSIONS[self.notion], quantity="epsilon", at=0.0, confidence=CONFIDENCE)
            bounds.append(float(bound.value))
        return bounds[0], bounds[1]


def _full(triangles: Array, dim: int) -> Array:
    """Return symmetric matrices from lower triangles, one a row."""
    full = np.zeros((len(triangles), dim, dim))
    at = np.tril_indices(dim)
    full[:, at[0], at[1]] = triangles
    full[:, at[1], at[0]] = triangles
    return full


def cases() -> list[Case]:
    """Return all cases, in the order of the table."""
    return [
        Case(notion, neighbors, rows, residuals)
        for notion in CLAIMS
        for neighbors in ("replace_one", "add_remove")
        for rows in ("ball", "blocks")
        for residuals in (False, True)
    ]


def main() -> None:
    """Print docs/evidence/moment_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    notions = sys.argv[2:] or [*CLAIMS]
    print("# Audits of moment matrices\n")
    called = " ".join([str(n_runs), *sys.argv[2:]])
    print(f"`python benches/moment_audit.py {called}`, commit {commit()}, {now()}, seeds 0 and 1.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring data sets of {N} records with two\n"
        "columns. The lower bounds have confidence 1 - 1e-6 and come from a threshold on the privacy loss of a\n"
        "release. In lines with residuals, .9 of the budget (.99 under pure DP) is for the moments of residuals.\n"
        "The claims are ε = 4, μ = 1 (Gaussian DP) and δ = .05 at ε = 1.\n"
    )
    print("| notion | neighbours | rows | residuals | claim | at least | with half the noise at least |")
    print("|---|---|---|---|---|---|---|")
    for case in (case for case in cases() if case.notion in notions):
        found, half = case.audited(n_runs)
        claim = CLAIMS[case.notion]
        said = "yes" if case.residuals else "no"
        name = f"{NAMES[case.notion]} = {claim:g}"
        cells = (case.notion, case.neighbors, case.rows, said, name, f"{found:.3g}", f"{half:.3g}")
        print(f"| {' | '.join(cells)} |", flush=True)
        if not found <= claim < half:
            sys.exit(f"{case}: the audit found {found} at the claim {claim}, and {half} with half the noise")


if __name__ == "__main__":
    main()
