"""Tests OpenDP by property; run with the interpreter of requirements_opendp.txt, one JSON line a finding."""

import copy
import inspect
import pickle
import pkgutil

import numpy as np
import opendp
import opendp.prelude as dp
from _probe import after_kill, distinct_after_fork, in_processes, in_threads, outcome, report, support_attack, verdict

dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")

SCALAR = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def basic_noise() -> None:
    for name, mechanism in (
        ("Laplace", dp.m.make_laplace(*SCALAR, scale=1.0)),
        ("Gaussian", dp.m.make_gaussian(*SCALAR, scale=4.8)),
    ):
        counts = support_attack(lambda m=mechanism: m(0.0), lambda m=mechanism: m(1.0), 20_000)
        report("low bits, basic noise", f"{name}: {verdict(counts)}", counts)
    laplace = dp.m.make_laplace(*SCALAR, scale=1.0)
    report("repeated noise", distinct_after_fork(lambda: laplace(0.0)))


def regression() -> None:
    """Theil-Sen regression picks two quantiles from public candidates, so every model comes from a public set."""
    candidates = np.linspace(0.0, 1.0, 10)

    def fit(y):
        keywords = {"x_bounds": [(0.0, 1.0)], "y_bounds": (0.0, 1.0), "scale": 1.0, "candidates_count": len(candidates)}
        model = dp.sklearn.linear_model.LinearRegression(dp.max_divergence(), **keywords)
        return model.fit(X=np.linspace(0.0, 1.0, 20)[:, None], y=y)

    cuts = np.array([0.25, 0.75])
    inverse = np.linalg.inv(np.vstack([cuts, np.ones(2)]).T)
    public = {tuple(inverse @ np.array([a, b])) for a in candidates for b in candidates}
    low = np.linspace(0.0, 1.0, 20)
    high = low.copy()
    high[7] = 1.0
    outside = sum((f.coef_[0], f.intercept_) not in public for y in (low, high) for f in (fit(y) for _ in range(1_000)))
    report(
        "low bits, regression",
        f"LinearRegression (Theil-Sen, one feature): {outside} of 2,000 models not in the public set of {len(public)}",
        outside,
    )
    report("solver error", "no optimiser: Theil-Sen selects from public candidates, so there is no distance to cover")


def sums() -> None:
    """Float sums: the stability map counts the rounding of the sum."""
    transformation = dp.t.make_sum(
        dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=1_000), dp.symmetric_distance()
    )
    excess = transformation.map(2) - 1.0
    report(
        "solver error",
        f"float sum of 1,000 values in [0, 1]: its map adds {excess:.1e} to the sensitivity for rounding",
        excess,
    )


def seeds() -> None:
    makers = [f for module in (dp.m, dp.c, dp.t) for name, f in inspect.getmembers(module) if name.startswith("make_")]
    seeded = [f for f in makers if {"seed", "random_state"} & set(inspect.signature(f).parameters)]
    report("seed policy", f"no seed exists: {len(seeded)} of {len(makers)} constructors take one", len(seeded))


def accountant() -> None:
    laplace = dp.m.make_laplace(*SCALAR, scale=1.0)

    def account():
        composition = dp.c.make_adaptive_composition(
            input_domain=SCALAR[0], input_metric=SCALAR[1], output_measure=dp.max_divergence(), d_in=1.0, d_mids=[1.0]
        )
        return composition(0.0)

    queryable = account()
    queryable(laplace)
    findings = {"second query on a budget for one": outcome(lambda: queryable(laplace))}
    for name, duplicate in (("copy.deepcopy", copy.deepcopy), ("pickle", pickle.dumps)):
        findings[name] = f"refused ({outcome(lambda d=duplicate: d(account()))})"
    queryable = account()
    shallow = copy.copy(queryable)
    shallow(laplace)
    findings["copy.copy, then the original"] = outcome(lambda: queryable(laplace))
    queryable = account()
    findings["8 forked processes, budget for one query"] = f"{in_processes(lambda: queryable(laplace))} released"
    queryable = account()
    findings["8 threads, budget for one query"] = f"{in_threads(lambda: queryable(laplace))} released"
    queryable = account()
    findings["kill -9"] = after_kill(lambda: queryable(laplace))
    for name, found in findings.items():
        report("ledger", f"{name}: {found}", found)


def rows() -> None:
    vector = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3)
    unbounded = outcome(lambda: dp.t.make_sum(vector, dp.symmetric_distance()))
    bounded = dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0), nan=False), size=3)
    total = dp.t.make_sum(bounded, dp.symmetric_distance())
    beyond = outcome(lambda: total([5.0, 5.0, 5.0]))
    clamped = (vector, dp.symmetric_distance()) >> dp.t.then_clamp((0.0, 1.0)) >> dp.t.then_sum()
    report(
        "rows beyond the bound",
        f"a sum of unbounded values: {unbounded}; clamped sum of three 5s in [0, 1]: {clamped([5.0] * 3):g}; "
        f"values outside of the declared domain: {beyond}",
    )


def shipped() -> None:
    names = [m.name for m in pkgutil.walk_packages(opendp.__path__, "opendp.", onerror=lambda _: None)]
    report("audit tool", f"none ({sum('audit' in name for name in names)} of {len(names)} modules)")
    accuracy = dp.laplacian_scale_to_accuracy(scale=1.0, alpha=0.05)
    report(
        "intervals",
        f"width of the noise alone (Laplace of scale 1: {accuracy:.3f} at 95%), and an interval for a proportion "
        "(opendp.extras.numpy.canonical); none for its regression",
    )


if __name__ == "__main__":
    for check in (basic_noise, regression, sums, seeds, accountant, rows, shipped):
        check()
