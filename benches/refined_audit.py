"""Audits refined regressions by the privacy losses of releases, as benches/moment_audit.py does.

The argument is the number of runs. .9 of the budget is for the refinement, under pure DP .99: .6 of it for the levels
of the residuals, under pure DP .45, the rest for the gradient. The noise in the matrix hides every direction, so that
residuals are targets. Prints docs/evidence/refined_audit.md.
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
BOUND = 3.0
LEVEL_PART, LEVEL_PART_PURE = 0.6, 0.45


@dataclass(frozen=True)
class GradientCase(Case):
    """Two neighbouring data sets, and a release with levels and a gradient of either."""

    levels_alone: bool = False
    """Whether the loss is that of the levels."""

    @property
    def share(self) -> float:
        """Share of the refinement."""
        return 0.99 if self.notion == "pure" else 0.9

    @property
    def claim(self) -> float:
        """ε, μ or δ that the release, or its levels, must keep."""
        if not self.levels_alone:
            return CLAIMS[self.notion]
        part = self.share * (LEVEL_PART_PURE if self.notion == "pure" else LEVEL_PART)
        return CLAIMS[self.notion] * (part if self.notion == "pure" else np.sqrt(part))

    @cached_property
    def spec(self) -> _core.MomentMatrixSpec:
        """All public choices, calibrated."""
        pure, approx = _core.Budget.pure(CLAIMS["pure"]), _core.Budget.approx(1.0, CLAIMS["approx"])
        return _core.MomentMatrixSpec(
            _core.Terms(N, self.neighbors),
            n_columns=2,
            row_norm=1.0,
            target_bound=BOUND,
            residuals=[],
            residual_share=0.1,
            refined=[(REGRESSORS, [0.0] * 9, [0.0, 0.0, 0.0, 1.0])],
            refined_share=self.share,
            budget={"pure": pure, "approx": approx}.get(self.notion),
            mu=CLAIMS["gdp"] if self.notion == "gdp" else None,
        )

    @cached_property
    def sides(self) -> list[Side]:
        """The data sets: rows of 0, and one record at its bounds, whose residual changes its sign and its level.

        The other residuals are at a quarter of the greatest, so that mostly the cap is √2 times as much.
        """
        rest = np.full(N - 1, 0.25 * BOUND)
        found = [(np.vstack([[0.6, 0.8], np.zeros((N - 1, 2))]), np.append(y, rest)) for y in (BOUND, -0.5 * BOUND)]
        return found if self.neighbors == "replace_one" else [found[0], (np.zeros((N - 1, 2)), rest)]

    @cached_property
    def scales(self) -> list[float]:
        """Noise of the gradient over the cap; in each run the same."""
        scales = []
        for side in self.sides:
            for seed in range(50):
                found = _core.release(self.spec, _core.Records(*side), on_violation="error", n_threads=1, seed=seed)
                point, _, _, cap, _ = found["refined"][0]
                assert not point.any()
                scales.append([step.scale for step in found["steps"]])
                scales[-1][2] /= cap
        assert all(np.allclose(scale, scales[0], rtol=1e-12) for scale in scales)
        return scales[0]

    def values(self, side: Side, caps: Array) -> list[Array]:
        """The matrix, the levels and for each run the gradient over its cap, without noise."""
        x, y = side
        z = np.column_stack([x, np.full(len(x), self.spec.intercept), self.spec.target_weight * y])
        weight = 0.25 * np.hypot(1.0, self.spec.intercept)
        levels = np.bincount(np.rint(-2.0 * np.log2(np.abs(y) / BOUND)).astype(int), minlength=_core.LEVELS)
        held = np.clip(y / caps[:, None], -1.0, 1.0)
        gradient = np.column_stack([held @ z[:, :3], weight * (held**2).sum(axis=1)])
        return [z.T @ z / N, levels / N, gradient / N]

    def released(self, side: Side, n_runs: int, seed: int) -> list[Array]:
        """The matrix, the levels, the gradient over the cap, and the cap, of so many runs."""
        out = _core.simulate(self.spec, _core.Records(*side), n_runs=n_runs, seed=seed, n_threads=1)
        full = np.zeros((n_runs, 4, 4))
        at = np.tril_indices(4)
        full[:, at[0], at[1]] = full[:, at[1], at[0]] = out[:, :10]
        levels, gradients = np.ascontiguousarray(out[:, 13 : 13 + _core.LEVELS]), out[:, 13 + _core.LEVELS :]
        step = _core.release(self.spec, _core.Records(*side), on_violation="error", n_threads=1, seed=0)["steps"][1]
        caps = BOUND * np.array([_core.level_cap(h, noise=step.noise, scale=step.scale)[0] for h in levels])
        return [full, levels, gradients / caps[:, None], caps]

    def losses(self, side: Side, released: list[Array], noise: float) -> Array:
        """The privacy loss of each run, with its noise multiplied by a factor."""
        total = np.zeros(len(released[0]))
        own, first, second = (self.values(s, released[3]) for s in (side, *self.sides))
        for i, scale in enumerate(self.scales):
            if self.levels_alone and i != 1:
                continue
            seen = own[i] + noise * (released[i] - own[i])
            axes = tuple(range(1, seen.ndim))
            # Noise has the density exp(-‖·‖²/(2s²)) or exp(-‖·‖/s): of a matrix the nuclear norm, of levels the L1.
            if self.notion != "pure":
                norms = [((seen - value[i]) ** 2).sum(axis=axes) / (2.0 * scale**2) for value in (first, second)]
            elif i == 0:
                norms = [np.abs(np.linalg.eigvalsh(seen - value[i])).sum(axis=1) / scale for value in (first, second)]
            else:
                order = 1 if i == 1 else 2
                norms = [np.linalg.norm(seen - value[i], axis=1, ord=order) / scale for value in (first, second)]
            total += (norms[1] - norms[0]) / noise ** (1 if self.notion == "pure" else 2)
        return total


def cases() -> list[GradientCase]:
    """Return all cases, in the order of the table."""
    return [
        GradientCase(notion, neighbors, rows="ball", residuals=False, levels_alone=alone)
        for alone, notions in ((False, tuple(CLAIMS)), (True, ("pure", "gdp")))
        for notion in notions
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
        "release. The refinement has .9 of the budget (.99 under pure DP), of which the levels have .6 (.45). The\n"
        "claims are ε = 4, μ = 1 (Gaussian DP) and δ = .05 at ε = 1, of the levels alone what their part gives.\n"
    )
    print("| released | notion | neighbours | claim | at least | with half the noise at least |")
    print("|---|---|---|---|---|---|")
    for case in cases():
        found, half = case.audited(n_runs)
        claim = case.claim
        name = f"{NAMES[case.notion]} = {claim:.3g}"
        cells = (
            "levels" if case.levels_alone else "all",
            case.notion,
            case.neighbors,
            name,
            f"{found:.3g}",
            f"{half:.3g}",
        )
        print(f"| {' | '.join(cells)} |", flush=True)
        if not found <= claim < half:
            sys.exit(f"{case}: the audit found {found} at the claim {claim}, and {half} with half the noise")


if __name__ == "__main__":
    main()
