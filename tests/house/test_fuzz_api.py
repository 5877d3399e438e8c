"""Odd arguments for the whole public interface: a sound result or an error of the library, nothing else.

A few hundred cases for each run of the tests; `tests/prove/test_fuzz.py` runs millions.
"""

import fractions
import inspect
import random

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dpci
from dpci import InvalidInput, baselines, datasets, lowlevel, per_instance, schema, utility
from dpci.cli.saved import KINDS
from support import fuzz_targets, fuzzing
from support.fuzz_documents import read_document
from support.fuzz_targets import CLASSES, D, N, X

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


@given(st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
def test_odd_arguments(rng):
    fuzzing.run_case(rng)


def test_odd_arguments_of_every_target():
    # Seed 4 makes a panel of so many rows that it takes half a minute until it can be interrupted.
    seeds = (0, 1, 2, 3, 5, 6, 7)
    outcomes = {
        target.name: {fuzzing.run_case(random.Random(seed), target) for seed in seeds}
        for target in fuzz_targets.targets()
    }
    assert len(outcomes) > 100
    found = set().union(*outcomes.values())
    assert {"result", "InvalidInput"} <= found
    assert found <= {"result", "interrupted", *(name for name in dpci.__all__ if isinstance(getattr(dpci, name), type))}


def test_legal_arguments_give_results():
    """The legal arguments are indeed legal, else nothing behind the checks would be fuzzed."""
    rng = random.Random(5)
    fit = next(target for target in fuzz_targets.targets() if target.name == "dpci.fit")
    outcomes = [fuzzing.judge(fit, fit.typical(rng)) for _ in range(100)]
    assert outcomes.count("result") > 45


NEEDS_INTERVALS = ("conf_int", "wald_test", "predict_conf_int", "summary_frame", "tidy", "odds_ratios")
NO_RESULT = {
    **{
        f"{fit}.{name}": "no schema"
        for fit in ("pure", "other", "approx", "ball", "no moments", "three classes", "selected")
        for name in ("marginal_effects",)
    },
    **{
        f"{fit}.rate_ratios": "no loss of counts"
        for fit in ("pure", "other", "approx", "ball", "no moments", "three classes")
    },
    **{f"ball.{name}": "the radius binds" for name in ("wald_test", "predict_conf_int")},
    "ball.odds_ratios": "no log odds",
    **{f"{fit}.{name}": "intervals need moments" for fit in ("no moments", "selected") for name in NEEDS_INTERVALS},
    "selected.to_great_tables": "its page has no table",
    "moment matrix.to_great_tables": "its page has no table",
    "selected.to_html": "a page is that of the whole tuning",
    "functional.conf_int": "baselines have no intervals",
    "histogram.conf_int": "baselines have no intervals",
    "non-private.conf_int": "baselines have no intervals",
    "ball.predict_proba": "the squared loss has no probabilities",
    "functional.predict_proba": "the squared loss has no probabilities",
    "histogram.predict_proba": "the squared loss has no probabilities",
}


@pytest.mark.parametrize("target", fuzz_targets.targets(), ids=lambda target: target.name)
def test_every_target_has_a_legal_result(target):
    """Within some tries of its legal arguments; a target that is always refused at the door fuzzes nothing else."""
    outcomes = set()
    for seed in range(40):
        outcomes.add(fuzzing.judge(target, target.typical(random.Random(seed))))
        if "result" in outcomes:
            return
    assert target.name in NO_RESULT, outcomes


def test_every_public_function_is_a_target():
    fuzzed = {target.name for target in fuzz_targets.targets()}
    missing = set(fuzz_targets.public_callables()) - fuzzed
    assert missing <= {"datasets.load_schema"}


def judged(call, **arguments):
    parameters = tuple(inspect.signature(call).parameters)
    return fuzzing.judge(fuzz_targets.Target(call.__name__, call, parameters), arguments)


# The judge must be able to say no.


def panics():
    raise RuntimeError("no error of the library")


def warns_as_numpy():
    np.log(np.zeros(1))


def gives_infinity():
    return {"params": np.array([1.0, np.inf])}


def fails_after_a_release():
    dpci.fit(X, CLASSES, budget=dpci.PureDP(2.0), l2_strength=0.5, seed=1)
    raise InvalidInput("too late")


def stops_inside():
    raise dpci.DpciError("an internal error stopped the computation")


@pytest.mark.parametrize(
    ("call", "story"),
    [
        (panics, "raised RuntimeError"),
        (warns_as_numpy, "warned RuntimeWarning"),
        (gives_infinity, "holds"),
        (fails_after_a_release, "failed after a release"),
        (stops_inside, "panicked"),
    ],
)
def test_the_judge_finds_violations(call, story):
    with pytest.raises(fuzzing.Violation, match=story):
        judged(call)


def test_the_judge_finds_what_hangs(monkeypatch):
    monkeypatch.setattr(fuzzing, "SECONDS", 0.05)

    def hangs():
        while True:
            pass

    with pytest.raises(fuzzing.Violation, match="took longer"):
        judged(hangs)


# What fuzzing found.


class BytesPath:
    def __fspath__(self):
        return b"ledger.db"


FOUND = {
    "no schema": lambda: baselines.axes_of(schema="adult"),
    "no columns": lambda: schema.Schema(columns=1, target=schema.ClassTarget(column="c", negative="n", positive="p")),
    "no target": lambda: schema.Schema(columns=(schema.NumericColumn(name="a", lower=0, upper=1),), target=None),
    "no report": lambda: per_instance.ex_post_losses_not_private(0.5, X, CLASSES, X, CLASSES, member=True),
    "masked classes": lambda: dpci.plan(
        n_samples=N, n_features=D, budget=dpci.PureDP(1.0), l2_strength=0.5, classes=np.ma.masked
    ),
    "a frame for a choice": lambda: dpci.plan(
        n_samples=N, n_features=D, budget=dpci.PureDP(1.0), l2_strength=0.5, neighbors=pd.DataFrame({"a": [1.0]})
    ),
    "a missing n": lambda: dpci.plan(
        n_samples=N, n_features=D, budget=dpci.PureDP(1.0), l2_strength=0.5, neighbors=dpci.AddRemove(pd.NA)
    ),
    "a frame for a choice of a curve": lambda: utility.curve(
        X, CLASSES, at=dpci.PureDP(1.0), l2_strength=0.5, neighbors=np.array(["a", "b"])
    ),
    "a duration": lambda: dpci.ZCDP(np.timedelta64(1, "s")),
    "an array for a name": lambda: datasets.load_adult_sample(np.array(["a", None], dtype=object)),
    "infinite weights": lambda: lowlevel.weighted_gram(X, np.full(N, -np.inf)),
    "an infinite Gram matrix": lambda: lowlevel.weighted_gram(np.full((N, D), 1e300), np.ones(N)),
    "an infinite risk": lambda: lowlevel.erm_value_and_gradient(
        np.full((N, D), 1e308), np.zeros(N), np.full(D, 10.0), l2_strength=1.0, loss="squared"
    ),
    "no parameters": lambda: lowlevel.error_components(
        np.zeros((0, 0)), np.zeros((0, 0)), 10, np.zeros((1, 0)), mechanism="objective"
    ),
    "a linear term of another length": lambda: lowlevel.minimize_erm(
        X, 2 * CLASSES - 1, l2_strength=1.0, linear_term=np.zeros(D - 1)
    ),
    "endless runs": lambda: dpci.tuning.oracle_not_private(
        X, CLASSES, budget=dpci.PureDP(1.0), l2_strength=0.5, n_runs=2**62, candidates=[{"radius": 1.0}]
    ),
    "an infinite draw": lambda: lowlevel.spherical_laplace(30, 1, 1.7e308, 1),
    "endless bins of the target": lambda: baselines.projected_histogram(
        X, CLASSES, budget=dpci.PureDP(1.0), l2_strength=0.5, axes=fuzz_targets.TYPICAL["axes"][0], target_bins=2**31
    ),
    "no columns of an axis": lambda: baselines.OneHot(columns=np.array(0.5)),
    "ragged classes": lambda: baselines.non_private(X, CLASSES, loss="logistic", l2_strength=0.5, classes=[1, [2]]),
    "no list of candidates": lambda: dpci.tuning.tune(X, CLASSES, budget=dpci.PureDP(1.0), candidates=np.array(0.5)),
    "no list of configurations": lambda: dpci.simulate.coverage(X, CLASSES, configs=np.array(0.5)),
    "no list of audits": lambda: dpci.audit.report(n_runs=30, budgets=1),
    "a duration for a column": lambda: dpci.audit.model_inversion(
        fuzz_targets.samples()["ball"], X, CLASSES, column=np.timedelta64(1, "s"), prior={0: 1.0}, residual_variance=1.0
    ),
    "an infinite quantile": lambda: lowlevel.monte_carlo_interval(
        [1.0], [1e308], noise_law="gaussian", noise_scale=1.0, dim=1, n_draws=30, seed=1
    ),
    "endless bins": lambda: baselines.Bins(column=0, count=3, lower=-1e308, upper=1.0),
    "a ledger without a name": lambda: dpci.Ledger(dpci.PureDP(1.0), path="\ud800"),
    "a ledger with bytes for a name": lambda: dpci.Ledger(dpci.PureDP(1.0), path=BytesPath()),
    "a long double": lambda: fuzz_targets.samples()["curve"].columns(np.longdouble("1e4000")),
}


@pytest.mark.parametrize("case", FOUND)
def test_what_was_found_is_refused(case):
    with pytest.raises(dpci.DpciError, match=r"^(?!.*internal error)"):
        FOUND[case]()


def test_bounds_of_another_float():
    bins = baselines.Bins(column=0, count=2, lower=np.float32(0.5), upper=1e150)
    assert np.isfinite(bins.levels).all()


def test_a_level_next_to_zero():
    few = {"n_replicates": 4, "n_variability": 4, "budget": dpci.PureDP(1.0), "l2_strength": 0.5}
    study = dpci.simulate.coverage(X, CLASSES, level=5e-324, **few)
    assert study.variability_length == 0.0
    assert study.length_ratio is None
    assert "length_ratio" in study.to_frame()


def test_a_fraction_is_a_level():
    fit = fuzz_targets.samples()["pure"]
    assert fit.summary(level=fractions.Fraction(1, 2)) == fit.summary(level=0.5)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5, "9" * 5000, b"\xff\xfe", "\ufeff{}"])
def test_a_text_that_breaks_parsers(text):
    for kind in (*KINDS.values(), per_instance.Report):
        with pytest.raises(InvalidInput):
            read_document(kind, text)
