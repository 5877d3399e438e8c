"""Audits noise in the shape of blocks by the exact privacy losses of releases; the argument is the number of runs.

All records but one pull the last parameter far down, so that the slope of the one left is almost 1; all bounds of its
row are attained. Half the noise is that of a release with a greater budget. Prints
docs/evidence/shaped_audit.md.
"""

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from _environments import now
from _timing import commit
from dpci import _core

Array = NDArray[np.float64]

N, L2_STRENGTH, CLAIM, DELTA = 400, 0.05, 2.0, 0.02
BOUNDS = {"pure": (1.0, 2.0), "zcdp": (1.0, 2.0), "approx": (0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0)}
"""Bounds of the columns, each a block. A record that is replaced changes all of them but the last."""
CONFIDENCE = 1.0 - 1e-6


def domain_of(notion: str) -> _core.RowDomain:
    """Return the blocks of the columns."""
    return _core.RowDomain.blocks(list(BOUNDS[notion]), list(range(len(BOUNDS[notion]))))


def spec_of(notion: str, relation: str, size: float) -> _core.Spec:
    """Return a release of a notion; ``size`` is its ε, ρ or δ."""
    budgets = {
        "pure": _core.Budget.pure,
        "zcdp": _core.Budget.zcdp,
        "approx": lambda delta: _core.Budget.approx(CLAIM, delta),
    }
    return _core.Spec(
        _core.Terms(N, relation),
        n_columns=len(BOUNDS[notion]),
        intercept=None,
        row_norm=domain_of(notion),
        loss=_core.Loss("logistic"),
        l2_strength=L2_STRENGTH,
        radius=None,
        budget=budgets[notion](size),
        mechanism="objective",
        noise=None,
        variant="standard",
        project=False,
        split=None,
        moments="none",
        projection="floor",
        calibration="tight",
    )


def size_of(notion: str) -> float:
    """Return the size of the audited budget; that of zCDP is the least whose noise has the pure claim."""
    if notion == "approx":
        return DELTA
    if notion == "pure":
        return CLAIM
    return bisected(lambda rho: _core.zcdp_to_pure(rho, "tight") < CLAIM, 1e-3, CLAIM)


def bisected(below: Callable[[float], bool], low: float, high: float) -> float:
    """Return where a predicate turns false."""
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if below(middle) else (low, middle)
    return low


def half_of(notion: str, relation: str, spec: _core.Spec) -> _core.Spec:
    """Return the release with half the noise."""
    goal = 0.5 * spec.noise_scale
    size = bisected(
        lambda s: spec_of(notion, relation, s).noise_scale > goal, size_of(notion), {"approx": 0.9}.get(notion, 8.0)
    )
    return spec_of(notion, relation, size)


def sides_of(notion: str, relation: str) -> list[tuple[Array, Array]]:
    """Return two neighbouring data sets."""
    row = np.array(BOUNDS[notion])
    last = np.where(np.arange(len(row)) == len(row) - 1, row, 0.0)

    def others_and(record: Array) -> tuple[Array, Array]:
        x = np.vstack([record, np.tile(last, (n_others, 1))])
        return x, np.append(1.0, np.full(n_others, -1.0))

    if relation == "replace_one":
        n_others = N - 1
        return [others_and(row), others_and(2.0 * last - row)]
    # Where the record is not, its slope is greatest, and parameters far from it are the likelier ones.
    n_others = N
    with_one = others_and(row)
    return [(np.ascontiguousarray(with_one[0][1:]), with_one[1][1:]), with_one]


def log_densities(notion: str, spec: _core.Spec, side: tuple[Array, Array], params: Array) -> Array:
    """Return log densities of released parameters: that of their noise, and the determinant of its derivative."""
    x, first, counts = np.unique(side[0], axis=0, return_index=True, return_counts=True)
    y = side[1][first]
    u = params @ x.T
    slope = -counts * y / (1.0 + np.exp(y * u))
    curvature = counts * np.exp(-np.abs(u)) / (1.0 + np.exp(-np.abs(u))) ** 2
    noise = slope @ x + N * L2_STRENGTH * params
    hessian = np.einsum("ri,ij,ik->rjk", curvature, x, x) + N * L2_STRENGTH * np.eye(x.shape[1])
    if notion == "approx":
        exponent = (noise**2 / domain_of(notion).metric()).sum(axis=1) / (2.0 * spec.noise_scale**2)
    else:
        exponent = (np.abs(noise) / BOUNDS[notion]).max(axis=1) / spec.noise_scale
    return np.asarray(np.linalg.slogdet(hessian)[1] - exponent)


def losses(notion: str, spec: _core.Spec, relation: str, n_runs: int, seed: int) -> list[Array]:
    """Return the privacy losses of releases from either data set."""
    sides, found = sides_of(notion, relation), []
    for i, (x, y) in enumerate(sides):
        params = _core.simulate(spec, _core.Records(x, y), n_runs=n_runs, seed=seed + i, n_threads=1)
        found.append(log_densities(notion, spec, sides[0], params) - log_densities(notion, spec, sides[1], params))
    return found


def lower_epsilon(both: list[Array]) -> float:
    """Return a lower bound on ε: the first half of the runs chooses a threshold of the loss, the second half counts."""
    half = len(both[0]) // 2
    threshold = max(np.linspace(0.0, 8.0, 161), key=lambda t: _bound(both, t, slice(None, half)))
    return _bound(both, threshold, slice(half, None))


def _bound(both: list[Array], threshold: float, part: slice) -> float:
    first, second = (int((loss[part] > threshold).sum()) for loss in both)
    n, tail = len(both[0][part]), 0.5 * (1.0 - CONFIDENCE)
    low = stats.beta.ppf(tail, first, n - first + 1) if first else 0.0
    return float(np.log(low / stats.beta.ppf(1.0 - tail, second + 1, n - second))) if low > 0.0 else 0.0


def lower_delta(both: list[Array]) -> float:
    """Return a lower bound on δ at the claimed ε: the mean of (1 - exp(ε - loss))+ (Maurer and Pontil 2009, Thm 4)."""
    terms = np.maximum(0.0, -np.expm1(CLAIM - both[0]))
    n, log = len(terms), np.log(2.0 / (1.0 - CONFIDENCE))
    return float(terms.mean() - np.sqrt(2.0 * terms.var(ddof=1) * log / n) - 7.0 * log / (3.0 * (n - 1)))


def audited(notion: str, relation: str, n_runs: int, seed: int = 40) -> tuple[float, float, float]:
    """Return the claim, and lower bounds from releases as they are and with half the noise."""
    spec = spec_of(notion, relation, size_of(notion))
    bound = lower_delta if notion == "approx" else lower_epsilon
    found = [bound(losses(notion, one, relation, n_runs, seed)) for one in (spec, half_of(notion, relation, spec))]
    return (DELTA if notion == "approx" else CLAIM), found[0], found[1]


def main() -> None:
    """Print the table of docs/evidence/shaped_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    print("# Audits of noise in the shape of rows\n")
    print(f"`python benches/shaped_audit.py {n_runs}`, commit {commit()}, {now()}, seeds 40 and 41.\n")
    print(
        f"This audit makes {n_runs:,} releases from each of two neighbouring data sets. Each column is a block, of two "
        "blocks or (under approximate DP) of eight. The lower bounds have confidence 1 - 1e-6 and come from the exact "
        "privacy loss of each release. A zCDP budget has the noise of a pure guarantee, and that guarantee is audited. "
        f"Under approximate DP, the bound is on δ at ε = {CLAIM:g}.\n"
    )
    print("| notion | neighbours | claim | at least | with half the noise at least |")
    print("|---|---|---|---|---|")
    for notion in ("pure", "zcdp", "approx"):
        for relation in ("replace_one", "add_remove"):
            claim, found, half = audited(notion, relation, n_runs)
            name = "δ" if notion == "approx" else "ε"
            print(f"| {notion} | {relation} | {name} = {claim:g} | {found:.3g} | {half:.3g} |", flush=True)
            if not found <= claim:
                sys.exit(f"{notion}, {relation}: the audit found more than the claim")


if __name__ == "__main__":
    main()
