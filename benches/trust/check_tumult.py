"""Tests Tumult Core and Analytics by property, in the environment of requirements_tumult.txt (Spark needs Java)."""

import copy
import inspect
import os
import pickle
import pkgutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

import numpy as np
import tmlt.analytics
import tmlt.core
from _probe import after_kill, distinct_after_fork, in_processes, in_threads, outcome, report, support_attack, verdict
from tmlt.core.domains.numpy_domains import NumpyFloatDomain
from tmlt.core.measurements.interactive_measurements import PrivacyAccountant, SequentialComposition
from tmlt.core.measurements.noise_mechanisms import AddGaussianNoise, AddLaplaceNoise
from tmlt.core.measures import PureDP
from tmlt.core.metrics import AbsoluteDifference

FLOAT = NumpyFloatDomain()
ZERO, ONE = np.float64(0.0), np.float64(1.0)


def basic_noise() -> None:
    for name, mechanism in (
        ("Laplace", AddLaplaceNoise(scale=1, input_domain=FLOAT)),
        ("Gaussian", AddGaussianNoise(sigma_squared=23, input_domain=FLOAT)),
    ):
        counts = support_attack(lambda m=mechanism: m(ZERO), lambda m=mechanism: m(ONE), 10_000)
        report("low bits, basic noise", f"{name}: {verdict(counts)}", counts)
    laplace = AddLaplaceNoise(scale=1, input_domain=FLOAT)
    report("repeated noise", distinct_after_fork(lambda: laplace(np.float64(0.0))))


def shipped() -> None:
    names = [
        module.name
        for package in (tmlt.core, tmlt.analytics)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda _: None)
    ]
    report("audit tool", f"none ({sum('audit' in name for name in names)} of {len(names)} modules)")
    models = sum("regression" in name or "model" in name for name in names)
    report("low bits, regression", f"no regression ({models} of {len(names)} modules)")
    report("audit of its regression", "no regression")
    report("intervals", "none for models; the scale of the noise of a query can be asked for")


def seeds() -> None:
    makers = [
        f
        for f in (AddLaplaceNoise, AddGaussianNoise)
        if {"seed", "random_state"} & set(inspect.signature(f).parameters)
    ]
    report("seed policy", f"no seed exists: {len(makers)} of 2 noise mechanisms take one", len(makers))


def core_accountant() -> None:
    """The accountant of Core, without Spark."""
    laplace = AddLaplaceNoise(scale=1, input_domain=FLOAT)

    def account():
        composition = SequentialComposition(
            input_domain=FLOAT, input_metric=AbsoluteDifference(), output_measure=PureDP(), d_in=1, privacy_budget=1
        )
        return PrivacyAccountant.launch(composition, np.float64(0.0))

    accountant = account()
    accountant.measure(laplace)
    findings = {"Core: second measurement on a budget for one": outcome(lambda: accountant.measure(laplace))}
    accountant = account()
    twin = copy.deepcopy(accountant)
    findings["Core: copy.deepcopy, then the original"] = (
        f"{outcome(lambda: twin.measure(laplace))}, {outcome(lambda: accountant.measure(laplace))}"
    )
    accountant = account()
    findings["Core: 8 forked processes, budget for one measurement"] = (
        f"{in_processes(lambda: accountant.measure(laplace))} released"
    )
    accountant = account()
    findings["Core: 8 threads, budget for one measurement"] = (
        f"{in_threads(lambda: accountant.measure(laplace))} released"
    )
    accountant = account()
    findings["Core: kill -9"] = after_kill(lambda: accountant.measure(laplace))
    for name, found in findings.items():
        report("ledger", f"{name}: {found}", found)


def session() -> None:
    """The session of Analytics on local Spark: copies, a total that is spent, values beyond the bounds."""
    import pandas as pd  # noqa: PLC0415 - only this check needs it, and Spark
    from pyspark.sql import SparkSession  # noqa: PLC0415 - as above
    from tmlt.analytics import AddOneRow, PureDPBudget, QueryBuilder, Session  # noqa: PLC0415 - as above

    settings = {"spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    frame = spark.createDataFrame(pd.DataFrame({"x": [100.0] * 10}))
    session = Session.from_dataframe(PureDPBudget(1000), "data", frame, AddOneRow())
    query = QueryBuilder("data").sum("x", 0, 1)
    total = session.evaluate(query, PureDPBudget(1000)).collect()[0][0]
    report(
        "rows beyond the bound",
        f"clamped without a warning: the sum of ten 100s in [0, 1] is {total:.2f} at ε=1000",
        total,
    )
    for name, task in (
        ("a second measurement over the total", lambda: session.evaluate(query, PureDPBudget(1))),
        ("copy.deepcopy", lambda: copy.deepcopy(session)),
        ("pickle", lambda: pickle.dumps(session)),
    ):
        report("ledger", f"Analytics session, {name}: refused ({outcome(task)})")
    spark.stop()


if __name__ == "__main__":
    # Spark leaves its warehouse in the working directory.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for check in (basic_noise, shipped, seeds, core_accountant, session):
            check()
        os.chdir(Path(folder).parent)
