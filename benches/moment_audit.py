"""Audits the moment matrix of a regression, with a ball and with blocks; the argument is the number of runs.

Two neighbouring data sets differ in one record on the edge of its domain. The statistic is the released matrix in the
direction of the difference: under Gaussian noise it is the log-likelihood ratio; under matrix Laplace noise its tails
have the claimed ratio. Half the noise is that of a release with a greater budget. Prints docs/evidence/moment_audit.md.
"""

import itertools
import sys

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from _environments import now
from _timing import commit
from dpci import _core

Array = NDArray[np.float64]

N, TARGET_BOUND, EPSILON, MU, DELTA = 40, 1.5, 2.0, 1.0, 1e-3
DOMAINS = {"ball": _core.RowDomain.ball(1.0), "blocks": _core.RowDomain.blocks([1.0, 0.5, 1.0], [0, 1, 2])}
NOTIONS = ("pure", "zcdp", "approx", "gdp")
TAIL = 0.5e-6
"""Error of each of the two bounds that make one audit."""


def spec_of(notion: str, domain: str, relation: str, size: float = 1.0) -> _core.MomentMatrixSpec:
    """Return a release with ``size`` times less noise than that of the audited claim."""
    claim = claim_of(notion)[1]
    budget = {
        "pure": lambda: {"budget": _core.Budget.pure(claim * size)},
        "zcdp": lambda: {"budget": _core.Budget.zcdp(0.5 * (claim * size) ** 2)},
        "approx": lambda: {"budget": _core.Budget.approx(EPSILON, DELTA)} if size == 1.0 else {"mu": claim * size},
        "gdp": lambda: {"mu": claim * size},
    }
    return _core.MomentMatrixSpec(
        n_samples=N,
        n_columns=2 if domain == "ball" else 3,
        row_norm=DOMAINS[domain],
        target_bound=TARGET_BOUND,
        robust_share=None,
        neighbors=relation,
        **budget[notion](),
    )


def claim_of(notion: str) -> tuple[str, float]:
    """Return what is claimed: ε of pure DP; otherwise the μ of the Gaussian trade-off that the noise has."""
    if notion == "pure":
        return "ε", EPSILON
    return "μ", _core.gaussian_mu(EPSILON, DELTA) if notion == "approx" else MU


def records(domain: str, spec: _core.MomentMatrixSpec) -> tuple[Array, Array]:
    """Return two records z = (row, constant, weighted target) on the edge of the domain, whose zz' are far apart."""
    if domain == "ball":
        s, t = spec.intercept, spec.target_weight * TARGET_BOUND
        cosine = -(s**2 + t**2)  # the two records are at right angles
        rows = [np.array([1.0, 0.0]), np.array([cosine, np.sqrt(max(0.0, 1.0 - cosine**2))])]
    else:
        rows = [np.array(corner) * [1.0, 0.5, 1.0] for corner in itertools.product([1.0, -1.0, 0.5, -0.5], repeat=3)]
    found = [np.array([*row, sign * TARGET_BOUND]) for row, sign in itertools.product(rows, (1.0, -1.0))]
    first = found[0]
    return first, max(found, key=lambda other: np.linalg.norm(term(first, spec) - term(other, spec), "nuc"))


def term(record: Array, spec: _core.MomentMatrixSpec) -> Array:
    """Return zz' of a record (row, target)."""
    z = np.array([*record[:-1], spec.intercept, spec.target_weight * record[-1]])
    return np.outer(z, z) / N


def statistics(
    notion: str, domain: str, relation: str, n_runs: int, *, size: float = 1.0, seed: int = 60
) -> list[Array]:
    """Return the statistic of releases from either data set; ``size`` > 1: with so many times less noise."""
    spec = spec_of(notion, domain, relation, size)
    first, second = records(domain, spec)
    direction = term(first, spec) - (term(second, spec) if relation == "replace_one" else 0.0)
    if notion == "pure":  # the sign of the difference, in whose direction the traces of the Wishart parts are
        values, vectors = np.linalg.eigh(direction)
        values[np.abs(values) < 1e-12] = 0.0
        direction = (vectors * np.sign(values)) @ vectors.T
    others = np.zeros((N - 1, len(first)))
    sides = [np.vstack([others, first]), np.vstack([others, second]) if relation == "replace_one" else others]
    found = []
    for side, data in enumerate(sides):
        x, y = np.ascontiguousarray(data[:, :-1]), np.ascontiguousarray(data[:, -1])
        seeds = range(seed + side * n_runs, seed + (side + 1) * n_runs)
        found.append(
            np.array(
                [
                    np.vdot(
                        direction,
                        _core.release_moment_matrix(spec, x, y, clip=False, n_threads=1, seed=one)["matrix"],
                    )
                    for one in seeds
                ]
            )
        )
    return found


def lower(notion: str, both: list[Array]) -> float:
    """Return a lower bound on ε or μ: the first half of the runs chooses a threshold, the second half counts."""
    half = len(both[0]) // 2
    thresholds = np.quantile(np.concatenate([side[:half] for side in both]), np.linspace(0.001, 0.999, 400))
    best = max(thresholds, key=lambda t: _bound(notion, [side[:half] for side in both], t))
    return _bound(notion, [side[half:] for side in both], best)


def _bound(notion: str, both: list[Array], threshold: float) -> float:
    n = len(both[0])
    hits, alarms = (int((side > threshold).sum()) for side in both)
    if hits == 0 or alarms == n:
        return 0.0
    power, error = stats.beta.ppf(TAIL, hits, n - hits + 1), stats.beta.ppf(1.0 - TAIL, alarms + 1, n - alarms)
    if notion == "pure":
        return float(max(np.log(power / error), 0.0))
    return float(max(stats.norm.ppf(power) - stats.norm.ppf(error), 0.0))


def main() -> None:
    """Print the table of docs/evidence/moment_audit.md."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print("# Audits of the moment matrix\n")
    print(f"`python benches/moment_audit.py {n_runs}`, commit {commit()}, {now()}, seeds from 60.\n")
    print(
        f"{n_runs:,} releases from each of two data sets of {N} records that differ in one record. Bounds are lower "
        "bounds with an error of 1e-6: on ε under pure DP, otherwise on the μ of Gaussian DP that the noise has.\n"
    )
    print("| notion | rows | neighbours | claim | at least | with half the noise at least |")
    print("|---|---|---|---|---|---|")
    for notion, domain, relation in itertools.product(NOTIONS, DOMAINS, ("replace_one", "add_remove")):
        name, claim = claim_of(notion)
        found, half = (lower(notion, statistics(notion, domain, relation, n_runs, size=size)) for size in (1.0, 2.0))
        print(f"| {notion} | {domain} | {relation} | {name} = {claim:.3g} | {found:.3g} | {half:.3g} |", flush=True)
        if not found <= claim:
            sys.exit(f"{notion}, {domain}, {relation}: the audit found more than the claim")


if __name__ == "__main__":
    main()
