"""Targets of fuzzing: all public functions, classes and methods, found by walking the package, with legal arguments."""

import functools
import inspect
import types
import typing
import warnings
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import scipy.sparse

import dpci
from dpci import baselines, losses, schema, utility
from dpci.budgets import ApproxDP, PureDP
from support.fuzz_documents import (
    command_line,
    ledger_at,
    mutated_command,
    mutated_document,
    mutated_place,
    read_document,
)
from support.keywords import assembled

N, D = 40, 2
_RNG = np.random.default_rng(20)
X = _RNG.uniform(-0.6, 0.6, size=(N, D))
THREE = np.arange(N) % 3
CLASSES = (X @ [3.0, -2.0] + _RNG.logistic(size=N) > 0).astype(int)
REALS = np.clip(X @ [0.9, -0.6] + 0.1 * _RNG.normal(size=N), -1.0, 1.0)
CURVE = (
    lambda u, _y: np.logaddexp(0.0, u),
    lambda u, _y: 0.5 + 0.5 * np.tanh(u / 2),
    lambda u, _y: 0.25 * (1.0 - np.tanh(u / 2) ** 2),
)


class Left:
    """Targets that are left out, each with its reason."""

    # Downloads, or reads files of the user's machine; their readers are fuzzed through the command line.
    FUNCTIONS = frozenset({
        "load_adult", "load_bank", "load_credit_default", "load_kddcup99", "load_table",
        "load", "load_layout", "read", "simulate_kddcup99",
    })  # fmt: skip
    # Made by the library alone; callers get them, and read them.
    RESULTS = frozenset({
        "AuditReport", "BaselineFit", "Comparison", "ConfidenceIntervals", "CoverageStudy", "Dataset", "Encoded",
        "ErrorBound", "Event", "ExPostLosses", "ExpectedUtility", "Finding", "Guarantee", "Layout", "LinearFit",
        "LinearTest", "LowerBound", "Minimum", "ModelInversion", "MomentMatrix", "MomentPlan", "MultinomialFit",
        "NewtonPlan", "OracleSearch", "Panel", "Plan", "PlanEntry", "PlanTable", "PrivateFit", "RecordLosses",
        "ReleasedSchema", "Report", "ScaledColumns", "SchemaCheck", "SchemaDescription", "SelectedFit",
        "StrataFit", "Survey", "TuneResult", "UtilityCurve", "VariabilityStudy", "WaldTest", "WorstCase",
    })  # fmt: skip
    # Draws with Matplotlib, which takes a second; or writes a file; or gives rows as they are, for the core to check;
    # or ends the sample; or is NaN by its documentation.
    METHODS = frozenset({
        "close", "encoded", "plot", "histogram", "plot_bound_against_truth_not_private", "shrinkage", "to_file",
    })  # fmt: skip
    # NaN by their documentation: standard errors of one run. An event that never happens has an infinite threshold.
    # The source of public bounds is any remark.
    ATTRIBUTES: typing.ClassVar = {
        "CoverageStudy": {"coverage_se"},
        "Event": {"threshold"},
        "OracleSearch": {"std_errors"},
        "CategoricalColumn": {"source"},
        "NumericColumn": {"source", "unit"},
        "NumericTarget": {"source", "unit"},
        "Schema": {"name", "title", "source", "licence"},
        "Power": {"column"},
        "Levels": {"column", "reference"},
        "Spline": {"column"},
    }
    # Keywords that choose where files are, which are no numbers.
    KEYWORDS = frozenset({"checkpoint", "parallel", "progress", "download", "ax", "path"})


@dataclass(frozen=True)
class Target:
    """A function with the names of its arguments, and what legal ones are."""

    name: str
    call: typing.Callable
    parameters: tuple
    required: frozenset = frozenset()
    weight: int = 2
    made: typing.Callable | None = None
    values: dict = field(default_factory=dict)

    def typical(self, rng):
        """Return legal arguments: the required ones, those of a scenario, and now and then others."""
        if self.made is not None:
            return self.made(rng)
        scenario = {**rng.choice(SCENARIOS), **self.values}
        chosen = {}
        for name in self.parameters:
            if name in self.required or (name in scenario and rng.random() < 0.9):
                chosen[name] = scenario[name] if name in scenario else rng.choice(TYPICAL.get(name, (None, "a", 1.0)))
            elif name in TYPICAL and (name in _SMALL or rng.random() < 0.1):
                chosen[name] = rng.choice(TYPICAL[name])
        return chosen


def _scenario(loss, budget, y=CLASSES, rows=X, **keywords):
    return {"X": rows, "y": y, "loss": loss, "budget": budget, "at": budget, "l2_strength": 0.5, **keywords}


SCENARIOS = (
    _scenario("logistic", PureDP(2.0)),
    _scenario("logistic", dpci.ZCDP(1.0), mechanism="output", moments="separate"),
    _scenario("logistic", ApproxDP(1.0, 1e-5), neighbors=dpci.AddRemove(N)),
    _scenario("logistic", ApproxDP(1.0, 1e-5), calibration="paper", neighbors=dpci.AddRemove(N), seed=3),
    _scenario("logistic", PureDP(2.0), calibration="paper", seed=4),
    _scenario("logistic", PureDP(2.0), moments="none", radius=2.0, seed=5, mechanism="output"),
    _scenario("logistic", PureDP(2.0), mechanism=dpci.ObjectivePerturbation(variant="cms11"), moments="none"),
    _scenario("huber_hinge", dpci.ZCDP(1.0), y=2 * CLASSES - 1, projection="cautious"),
    _scenario("smooth_hinge", PureDP(2.0), rows=dpci.rows.Clipped(0.3, intercept=False)),
    _scenario("hinge", PureDP(2.0), mechanism="output", moments="none"),
    _scenario("squared", dpci.ZCDP(1.0), y=REALS, radius=1.0),
    _scenario("squared", PureDP(2.0), y=REALS, radius=1.0, mechanism="output", seed=6),
    _scenario("soft_logistic", PureDP(2.0), y=(REALS + 1) / 2),
    _scenario(
        losses.Custom(*CURVE, slope_bound=1.0, curvature_bound=0.25, one_signed=True), dpci.ZCDP(1.0), l2_strength=1.0
    ),
    _scenario(
        "logistic", PureDP(2.0), y=CLASSES.astype(bool), rows=scipy.sparse.csr_array(np.where(abs(X) > 0.3, X, 0.0))
    ),
)

SMALL_SCHEMA = schema.Schema(
    columns=(
        schema.NumericColumn(name="a", lower=0.0, upper=2.0),
        schema.CategoricalColumn(name="b", categories=("u", "v"), reference="u"),
    ),
    target=schema.ClassTarget(column="c", negative=("no",), positive=("yes",)),
)
SMALL_TABLE = {"a": [0.5, 1.0, 2.0], "b": ["u", "v", "v"], "c": ["no", "yes", "no"]}

# Legal values of parameters that mean something else elsewhere, by the name of the function or its full name.
OWN = {
    "Chunks": {"source": [(X[:20], CLASSES[:20]), (X[20:], CLASSES[20:])]},
    "Levels": {"columns": (0, 1), "points": [[0.5, 0.0], [-0.5, 0.5]]},
    "OneHot": {"columns": (0, 1)},
    "Custom": dict(zip(("value", "slope", "curvature"), CURVE, strict=True)),
    "ClassTarget": {"column": "c", "negative": ("no",), "positive": ("yes",)},
    "CategoricalTarget": {"column": "c", "classes": ("no", "yes", "both")},
    "NumericTarget": {"column": "c", "lower": 0.0, "upper": 1.0},
    "UnboundedTarget": {"column": "c", "lower": 0.0, "upper": 1.0},
    "Term": {"factors": (schema.Power(column="a"),)},
    "Spline": {"column": "a", "knots": (0.5, 1.0)},
    "Schema": {"columns": SMALL_SCHEMA.columns, "target": SMALL_SCHEMA.target},
    "PartialSchema": {
        "columns": (schema.UnboundedColumn(name="a", lower=0.0, upper=5.0), *SMALL_SCHEMA.columns[1:]),
        "target": SMALL_SCHEMA.target,
    },
    # Their rows are encoded.
    **{name: {"schema": None} for name in ("fit", "predict", "predict_proba", "decision_function", "predict_conf_int")},
    "tune": {"candidates": [{"l2_strength": 0.5}, {"l2_strength": 1.0}], "schema": None},
    **{
        f"multinomial.{name}": {
            "y": THREE,
            "classes": (0, 1, 2),
            "schema": None,
            "mechanism": "objective",
            "neighbors": "replace_one",
            "budget": PureDP(20.0),
            "l2_strength": 0.5,
            "n_features": 2,
        }
        for name in ("fit", "plan")
    },
    "three classes.wald_test": {"hypothesis": np.eye(6)[:2]},
    "Weights": {"bound": 4.0},
    "weighted_gram": {"weights": np.linspace(0.0, 1.0, N)},
    "release_schema": {
        "table": {"a": np.linspace(0.1, 2.0, N), "b": ["u", "v"] * (N // 2), "c": ["no", "yes"] * (N // 2)},
        "schema": schema.PartialSchema(
            columns=(schema.UnboundedColumn(name="a", lower=0.0, upper=5.0),), target=SMALL_SCHEMA.target
        ),
    },
    "bound": {"n_samples": N, "of": "training"},
    "fit_strata": {"by": "b", "n_public": 100_000, "strata": None},
    "fit_many": {"groups": {"a": (X, CLASSES), "b": (X, CLASSES)}, "classes": (0, 1)},
    "model_inversion": {"X": np.column_stack([np.sign(X[:, 0]) / 2, X[:, 1]]), "y": REALS, "column": 0},
}

# Legal values by the name of the parameter, whatever function it belongs to.
TYPICAL = {
    **{name: (np.eye(3)[:2], np.ones((1, 3)), "x0", {"x0": 1.0, "x1": -1.0}) for name in ("contrast", "hypothesis")},
    **{name: (np.array([[1.0, 0.2], [0.2, 2.0]]), np.eye(3), np.eye(1)) for name in ("hessian", "gradient_cov")},
    **{name: (np.array([1.0, 0.5]), np.array([0.0, 0.1])) for name in ("variance", "multiplier")},
    **dict.fromkeys(
        ("epsilon", "rho", "scale", "std_dev", "mu", "h", "s", "target_bound", "width", "noise_scale"), (1.0, 0.3)
    ),
    **dict.fromkeys(("level", "selection_share", "failure_probability", "statistic"), (0.9, 0.5)),
    **dict.fromkeys(("delta", "tolerance"), (1e-06, 0.1)),
    **dict.fromkeys(("n", "n_draws", "n_replicates", "n_variability", "n_runs"), (1, 5, 30)),
    **dict.fromkeys(("dim", "n_features", "n_params", "n_steps", "target_bins", "count"), (1, 2, 3)),
    **dict.fromkeys(("n_samples", "n_public"), (100, N)),
    **{name: (lambda *u: u[0], np.tanh) for name in ("value", "slope", "curvature", "gradient")},
    **dict.fromkeys(("column", "columns"), (0, 1)),
    "X": (X,),
    "y": (CLASSES, REALS),
    "records": (X[:3],),
    "targets": (CLASSES[:3],),
    "member": (np.array([True, True, True]),),
    "weights": (*[None] * 11, dpci.Weights(np.linspace(0.0, 1.0, N), bound=1.0)),
    "params": (np.zeros(3), np.zeros(2)),
    "linear_term": (np.full(3, 0.1), np.full(2, 0.1)),
    "start": (np.zeros(3), np.ones(2)),
    "budget": (PureDP(1.0), dpci.ZCDP(1.0), ApproxDP(1.0, 1e-6)),
    "at": (PureDP(1.0), dpci.ZCDP(1.0), ApproxDP(1.0, 1e-6)),
    "total": (PureDP(10.0), dpci.ZCDP(10.0), ApproxDP(10.0, 1e-3)),
    "ledger": (None, dpci.Ledger(dpci.PureDP(1e6)), dpci.Ledger(dpci.ZCDP(1.0)), dpci.Ledger(ApproxDP(10.0, 0.1))),
    "l2_strength": (0.5, 2.0),
    "loss": ("logistic", "squared", "huber_hinge"),
    "validation_loss": ("logistic", "huber_hinge"),
    "mechanism": ("objective", "output"),
    "split": ((0.6, 0.2, 0.2), None),
    "shares": ((0.2, 0.7, 0.1),),
    "moments": ("joint", "separate", "none"),
    "projection": ("auto", "floor", "cautious", "noise_aware"),
    "calibration": ("tight", "paper"),
    "radius": (1.0, 3.0),
    "validation_radius": (1.0,),
    "classes": ((0, 1),),
    "rows": (
        None,
        1.0,
        "clip",
        dpci.rows.Clipped(2.0, intercept=0.5),
        dpci.rows.Within(intercept=False),
        dpci.rows.Ball(1.5),
        dpci.rows.Blocks([], groups=[([0, 1], 2.0)]),
    ),
    "bounds": ([1.0, 0.5], (-1.0, 1.0), None),
    "groups": ((), [(range(1, 3), 1.0)]),
    "neighbors": ("replace_one", "add_remove", dpci.AddRemove(100)),
    "n_threads": (1, 2),
    "seed": (0, 1),
    "metric": ("loss", "smoothed_accuracy", utility.SmoothedAccuracy(width=0.3)),
    "eps": (1.5, np.array([0.5, 3.0])),
    "target": (0.6, 0.9),
    "noise_law": ("spherical_laplace", "gaussian"),
    "noise": (None, "gaussian", "spherical_laplace"),
    "method": ("exact", "monte_carlo", "newton", "repeat", "chunks", "public_rule"),
    "simultaneous": (None, "bonferroni", "max_z"),
    "features": (["x0"], None),
    "feature_sets": ([["x0"], []],),
    "covariance": ("classical", "robust"),
    "robust": (True, False),
    "kind": ("data_dependent", "data_independent"),
    "bound": ("interpolated", "paper"),
    "solver": ("auto", "newton", "lbfgs", "ball"),
    "max_iterations": (100,),
    "disjoint": (False, True),
    "candidates": ([{"l2_strength": 0.5}, {"l2_strength": 1.0}],),
    "configs": ([{"l2_strength": 0.5}, {"l2_strength": 1.0}], None),
    "axes": ([baselines.Bins(column=0, count=3), baselines.Bins(column=1, count=2)],),
    "points": ([0.0, 0.5],),
    "prior": ({-0.5: 0.5, 0.5: 0.5},),
    "residual_variance": (0.5,),
    "schema": (SMALL_SCHEMA,),
    "table": (SMALL_TABLE,),
    "slope_bound": (1.0,),
    "curvature_bound": (1.0,),
    "predictor_bound": (1.0,),
    "draw": (lambda data: _RNG.normal(float(isinstance(data, float))),),
    "D": (0.0,),
    "D2": (1.0,),
    "budgets": ((PureDP(1.0),), (dpci.ZCDP(0.5), ApproxDP(1.0, 1e-3))),
    "mechanisms": (("objective",), ("output", "functional_mechanism")),
    "confidence": (0.9, 0.999),
    "claim": (None, PureDP(1.0)),
    "rate": ((1.0, 0.5), None),
    "of": ("training", "empirical", "regularized", "population"),
    "lower": (-1.0, np.zeros(2)),
    "upper": (1.0, np.ones(2)),
    "names": (("a", "b"),),
    "n_persons": (5, 30),
    "n_rows": (3, (1, 4)),
    "persistence": (0.9, 0.0),
    "effect": (2.0, 0.0),
    "persons": (*[None] * 4, np.arange(N) // 2, [f"p{i}" for i in range(N)], dpci.Persons("who", max_rows=2)),
    "ids": (None, np.arange(N) // 2, "who"),
    "values": (None, np.linspace(0.0, 1.0, N)),
    "max_rows": (None, 2),
}
# A default would take seconds.
_SMALL = frozenset({"n_draws", "n_replicates", "n_variability", "n_runs"})
_REQUIRED_KEYWORDS = frozenset({"budget", "l2_strength"})
_MODULES = (dpci, *(value for name in sorted(dpci.__all__) if inspect.ismodule(value := getattr(dpci, name))))
_WEIGHTS = {
    "fit": 12, "plan": 4, "tune": 4, "coverage": 4, "variability": 4, "curve": 4, "report": 4, "minimize_erm": 4,
}  # fmt: skip


def parameters_of(function):
    """Return the names of what a function takes, and the required among them; typed ``**keywords`` are unpacked."""
    names, required = [], set()
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            unpacked = typing.get_args(parameter.annotation)
            extra = [*typing.get_type_hints(unpacked[0])] if unpacked else []
            taken = [name for name in extra if name not in names and not (name == "budget" and "at" in names)]
            names += taken
            required |= _REQUIRED_KEYWORDS.intersection(taken)
        elif parameter.kind is not parameter.VAR_POSITIONAL and parameter.name not in Left.KEYWORDS:
            names.append(parameter.name)
            if parameter.default is parameter.empty:
                required.add(parameter.name)
            elif parameter.name == "l2_strength" and function.__name__ == "fit":
                required.add(parameter.name)  # but for the squared loss without a radius
    return tuple(names), frozenset(required)


def _target(name, function, weight=2, **values):
    names, required = parameters_of(function)
    return Target(name, function, names, required, weight, values=values)


def public_callables():
    """Return what the modules export and can be called, by qualified name, left-outs and exceptions not included."""
    found = {}
    for module in _MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            is_error = isinstance(value, type) and issubclass(value, Exception | Warning)
            is_protocol = getattr(value, "_is_protocol", False)
            is_plain = isinstance(value, types.FunctionType | type)
            if is_plain and not is_error and not is_protocol and name not in Left.FUNCTIONS | Left.RESULTS:
                found[f"{module.__name__.removeprefix('dpci.')}.{name}"] = value
    return found


@functools.cache
def samples():
    """Results of each kind, whose methods are fuzzed and whose documents are mutated."""
    with warnings.catch_warnings(action="ignore"):
        settings = {"l2_strength": 0.5, "seed": 1}
        fits = {
            "pure": dpci.fit(X, CLASSES, budget=PureDP(2.0), **settings),
            "other": dpci.fit(X, CLASSES, budget=PureDP(1.0), l2_strength=0.5, seed=2),
            "approx": dpci.fit(X, CLASSES, budget=ApproxDP(1.0, 1e-5), neighbors=dpci.AddRemove(N), **settings),
            "ball": dpci.fit(X, REALS, **assembled(budget=dpci.ZCDP(1.0), loss="squared", radius=1.0, **settings)),
            "no moments": dpci.fit(X, CLASSES, **assembled(budget=PureDP(2.0), moments="none", **settings)),
        }
        grid = [{"l2_strength": 0.5}, {"l2_strength": 1.0}]
        tuned = dpci.tuning.tune(X, CLASSES, budget=PureDP(4.0), candidates=grid, validation_radius=2.0, seed=1)
        selected = dpci.tuning.tune(
            X, CLASSES, budget=PureDP(4.0), candidates=grid, validation_radius=2.0, seed=1, selection_share=1.0
        )
        few = {"n_replicates": 4, "n_variability": 4, "n_threads": 1}
        return {
            **fits,
            "test": fits["pure"].wald_test(np.eye(3)[:2]),
            "comparison": dpci.compare(fits["pure"], fits["other"]),
            "intervals": fits["pure"].conf_int(),
            "plan": dpci.plan(n_samples=100, n_features=2, budget=PureDP(1.0), l2_strength=0.5),
            "report": dpci.per_instance.report(X, CLASSES, budget=ApproxDP(1.0, 1e-5), n_public=N, **settings),
            "curve": utility.curve(X, CLASSES, at=PureDP(1.0), n_draws=2, **settings),
            "coverage": dpci.simulate.coverage(X, CLASSES, budget=PureDP(2.0), l2_strength=0.5, **few),
            "tuned": tuned,
            "selected": selected,
            "functional": baselines.functional_mechanism(X, REALS, budget=PureDP(2.0), **settings),
            "histogram": baselines.projected_histogram(
                X, REALS, budget=PureDP(2.0), axes=TYPICAL["axes"][0], **settings
            ),
            "three classes": dpci.multinomial.fit(X, THREE, classes=(0, 1, 2), budget=PureDP(20.0), **settings),
            "moment matrix": dpci.regression.release(X, REALS, budget=PureDP(1e3), bounds=(-1, 1), seed=1),
            "regression": dpci.regression.release(X, REALS, budget=PureDP(1e3), bounds=(-1, 1), seed=1).fit(),
            "non-private": baselines.non_private(X, CLASSES, loss="logistic", l2_strength=0.5),
            "schema": SMALL_SCHEMA,
            "ledger": dpci.Ledger(dpci.PureDP(1e6)),
        }


class _Methods(NamedTuple):
    name: str
    value: object

    def targets(self):
        for attribute in sorted(dir(type(self.value))):
            is_method = inspect.isfunction(getattr(type(self.value), attribute))  # documents have a target of their own
            if is_method and not attribute.startswith("_") and attribute not in Left.METHODS:
                name = f"{self.name}.{attribute}"
                yield _target(name, getattr(self.value, attribute), weight=1, **OWN.get(name, {}))


@functools.cache
def targets():
    """Return all targets."""
    found = []
    for name, function in public_callables().items():
        short = name.rpartition(".")[2]
        results = {"ex_post_losses_not_private": ("report", "report"), "model_inversion": ("result", "ball")}
        values = {**OWN.get(short, {}), **OWN.get(name, {})}
        if short == "compare":
            values = {"result_a": samples()["pure"], "result_b": samples()["other"]}
        if short in results:
            parameter, sample = results[short]
            values = {**values, parameter: samples()[sample]}
        if short in {"load_schema", "from_file"}:
            continue
        found.append(_target(name, function, _WEIGHTS.get(short, 2), **values))
    for name, value in samples().items():
        found.extend(_Methods(name, value).targets())
    report = samples()["report"]
    found.append(_target("report()", report.__call__))
    readable = [value for name, value in samples().items() if hasattr(value, "from_json") and name != "selected"]
    texts = [(type(value), value.to_json()) for value in readable]
    made = functools.partial(mutated_document, documents=texts)
    found.append(Target("document", read_document, ("text",), made=made, weight=20))
    found.append(Target("ledger file", ledger_at, ("path",), made=mutated_place, weight=2))
    found.append(Target("command line", command_line, (), made=mutated_command, weight=2))
    return tuple(found)
