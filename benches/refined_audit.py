"""Audits the gradients of refined regressions by the privacy losses of releases, as benches/moment_audit.py does.

The argument is the number of runs. .9 of the budget is for the gradient, under pure DP .99. The noise in the matrix
hides every direction, so that residuals are targets and the cap is their bound. Prints docs/evidence/refined_audit.md.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from _environments import now
from _timing import commit
from dpci import _core
from moment_audit import CLAIMS, NAMES, Array, Case, N, Side

REGRESSORS = [0, 1, 2]


@dataclass(frozen=True)
class GradientCase(Case):
    """Two neighbouring data sets, and a release with a gradient of either."""

    @cached_property
    def spec(self) -> _core.MomentMatrixSpec:
        """All public choices, calibrated."""
        pure, approx = _core.Budget.pure(CLAIMS["pure"]), _core.Budget.approx(1.0, CLAIMS["approx"])
        return _core.MomentMatrixSpec(
            n_samples=N,
            n_columns=2,
            row_norm=1.0,
            target_bound=3.0,
            residuals=[],
            residual_share=0.1,
            refined=[(REGRESSORS, [0.0] * 9, [0.0, 0.0, 0.0, 1.0])],
            refined_share=0.99 if self.notion == "pure" else 0.9,
            budget={"pure": pure, "approx": approx}.get(self.notion),
            mu=CLAIMS["gdp"] if self.notion == "gdp" else None,
            neighbors=self.neighbors,
        )

    @cached_property
    def sides(self) -> list[Side]:
        """The data sets: rows of 0, and one record at its bounds, whose residual changes its sign."""
        zeros = np.zeros(N - 1)
        found = [(np.vstack([[0.6, 0.8], np.zeros((N - 1, 2))]), np.append(y, zeros)) for y in (3.0, -3.0)]
        return found if self.neighbors == "replace_one" else [found[0], (np.zeros((N - 1, 2)), zeros)]

    @cached_property
    def scales(self) -> list[float]:
        """Of the noise; in each run the same."""
        scales = []
        for side in self.sides:
            for seed in range(50):
                found = _core.release_moment_matrix(self.spec, *side, clip=False, n_threads=1, seed=seed)
                point, _, cap, _ = found["refined"][0]
                assert not point.any()
                assert abs(cap - 3.0) < 1e-9
                scales.append([step.scale for step in found["steps"]])
        assert all(np.allclose(scale, scales[0], rtol=1e-12) for scale in scales)
        return scales[0]

    def values(self, side: Side) -> list[Array]:
        """The matrix and the gradient without noise."""
        x, y = side
        z = np.column_stack([x, np.full(len(x), self.spec.intercept), self.spec.target_weight * y])
        weight = 0.25 * np.hypot(1.0, self.spec.intercept)
        gradient = np.append(y @ z[:, :3], weight * (y @ y) / 3.0)
        return [z.T @ z / N, gradient / N]

    def released(self, side: Side, n_runs: int, seed: int) -> list[Array]:
        """The matrix and the gradient of so many runs."""
        out = _core.simulate(self.spec, *side, n_runs=n_runs, seed=seed, n_threads=1)
        full = np.zeros((n_runs, 4, 4))
        at = np.tril_indices(4)
        full[:, at[0], at[1]] = full[:, at[1], at[0]] = out[:, :10]
        return [full, out[:, 13:]]

    def losses(self, side: Side, released: list[Array], noise: float) -> Array:
        """The privacy loss of each run, with its noise multiplied by a factor."""
        total = np.zeros(len(released[0]))
        own, first, second = (self.values(s) for s in (side, *self.sides))
        for i, scale in enumerate(self.scales):
            seen = own[i] + noise * (released[i] - own[i])
            axes = tuple(range(1, seen.ndim))
            # Noise has the density exp(-‖·‖²/(2s²)) or exp(-‖·‖/s): of a matrix the nuclear norm.
            if self.notion != "pure":
                norms = [((seen - value[i]) ** 2).sum(axis=axes) / (2.0 * scale**2) for value in (first, second)]
            elif i == 0:
                norms = [np.abs(np.linalg.eigvalsh(seen - value[i])).sum(axis=1) / scale for value in (first, second)]
            else:
                norms = [np.linalg.norm(seen - value[i], axis=1) / scale for value in (first, second)]
            total += (norms[1] - norms[0]) / noise ** (1 if self.notion == "pure" else 2)
        return total


def cases() -> list[GradientCase]:
    """Return all cases, in the order of the table."""
    return [
        GradientCase(notion, neighbors, rows="ball", residuals=False)
        for notion in CLAIMS
        for neighbors in ("replace_one", "add_remove")
    ]


def main() -> None:
    """Print docs/evidence/refined_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of refined regressions\n")
    print(f"`python benches/refined_audit.py {n_runs}`, commit {commit()}, {now()}, seeds 0 and 1.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring data sets of {N} records with two\n"
        "columns. The lower bounds have confidence 1 - 1e-6 and come from a threshold on the privacy loss of a\n"
        "release. The gradient has .9 of the budget (.99 under pure DP). The claims are ε = 4, μ = 1 (Gaussian\n"
        "DP) and δ = .05 at ε = 1.\n"
    )
    print("| notion | neighbours | claim | at least | with half the noise at least |")
    print("|---|---|---|---|---|")
    for case in cases():
        found, half = case.audited(n_runs)
        claim = CLAIMS[case.notion]
        name = f"{NAMES[case.notion]} = {claim:g}"
        cells = (case.notion, case.neighbors, name, f"{found:.3g}", f"{half:.3g}")
        print(f"| {' | '.join(cells)} |", flush=True)
        if not found <= claim < half:
            sys.exit(f"{case}: the audit found {found} at the claim {claim}, and {half} with half the noise")


if __name__ == "__main__":
    main()
