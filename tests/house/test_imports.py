"""Imports: what only some programs need is loaded late, and all else works without optional packages."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import dpci
from dpci.base.optional import optional
from dpci.errors import DpciError, MissingExtra
from support.bare import run_bare

SLOW = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"]
OPTIONAL = [
    "dask", "distributed", "joblib", "matplotlib", "narwhals", "pandas", "polars", "pooch", "pyarrow", "sklearn",
    "tqdm", "typer",
]  # fmt: skip

FIT = """
import numpy as np
X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (500, 1))
ledger = dpci.Ledger(dpci.PureDP(10.0))
result = dpci.fit(X, X[:, 0] > 0, budget=dpci.PureDP(5.0), l2_strength=0.1, ledger=ledger)
result.summary(), result.conf_int(), result.pvalues, result.predict(X), dpci.PrivateFit.from_json(result.to_json())
"""


def loaded(script):
    """Names of the modules that are loaded after a script."""
    script = f"{script}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def after_import():
    # SciPy's special functions may load what they like.
    return loaded("import dpci; dpci.fit") - loaded("import numpy, scipy.special")


def test_optional_packages_are_not_imported(after_import):
    assert not {name.partition(".")[0] for name in after_import} & set(OPTIONAL)


def test_what_only_some_programs_need_is_not_imported(after_import):
    late = {
        "html", "sqlite3", "tomllib", "dpci.lowlevel", "dpci.report.page", "dpci.shown.html", "dpci.shown.notebook",
        "dpci.strata",
    }  # fmt: skip
    assert not after_import & late


@pytest.mark.parametrize("part", SLOW)
def test_slow_parts_of_scipy_are_not_imported(after_import, part):
    assert f"scipy.{part}" not in after_import


def test_a_fit_needs_no_slow_part_either():
    assert not {f"scipy.{part}" for part in ("stats", "optimize", "sparse")} & loaded(f"import dpci\n{FIT}")


def test_the_command_line_needs_no_slow_part_either():
    pytest.importorskip("typer")
    modules = loaded("import dpci.cli.commands.all")
    # Public data sets may be sparse.
    beyond = modules - loaded("import numpy, scipy.special, scipy.sparse, typer")
    assert not {f"scipy.{part}" for part in SLOW} & beyond
    # A count, because a time varies.
    assert len({name for name in beyond if not name.startswith("dpci")}) <= 25


def test_importing_dpci_loads_few_modules(after_import):
    """Modules of the standard library and of SciPy, besides what NumPy and scipy.special load anyway."""
    assert len({name for name in after_import if not name.startswith("dpci")}) <= 25


def test_the_version_needs_no_command():
    command = "from dpci.cli import main; assert main(['--version']) == 0"
    quiet = f"import io, sys\nsys.stdout = io.StringIO()\n{command}\nsys.stdout = sys.__stdout__"
    assert not {"typer", "dpci.cli.commands"} & loaded(quiet)


def test_completion_needs_neither_numpy_nor_the_commands():
    command = "os.environ |= {'_DPCI_COMPLETE': 'complete_bash', 'COMP_WORDS': 'dpci fi', 'COMP_CWORD': '1'}"
    script = (
        f"import io, os, sys\n{command}\nfrom dpci.cli import main\nsys.stdout = io.StringIO()\nassert main([]) == 0"
    )
    after = loaded(f"{script}\nassert sys.stdout.getvalue() == 'fit\\n'\nsys.stdout = sys.__stdout__")
    assert not {"numpy", "typer", "dpci._core", "dpci.cli.commands"} & after


def test_public_modules_load_when_they_are_used():
    later = ["audit", "baselines", "datasets", "per_instance", "regression", "simulate", "tuning", "utility"]
    assert not {f"dpci.{name}" for name in later} & loaded(f"import dpci\n{FIT}")
    assert {f"dpci.{name}" for name in later} <= loaded("from dpci import *")
    assert loaded("import dpci; dpci.tuning.tune") >= {"dpci.tuning"}
    # Not what the module holds besides; scikit-learn may be there.
    assert set(dir(dpci)) - {"sklearn"} == set(dpci.__all__)
    assert dpci.schema.Schema is not None
    plan = dpci.plan(n_samples=10, n_features=1, budget=dpci.PureDP(1.0), l2_strength=9.0)
    assert type(plan.guarantee) is dpci.accounting.Guarantee
    with pytest.raises(AttributeError, match="module 'dpci' has no attribute 'tunning'"):
        dpci.tunning  # noqa: B018  # the look-up is what is tested


ROOT = Path(__file__).parents[2]
PACKAGE = Path(dpci.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What is not a feature: unions of extras, and tools of those who work on dpci.
NO_FEATURES = {"all", "dev", "docs", "test"}
EXTRAS = {name: wanted for name, wanted in PROJECT["optional-dependencies"].items() if name not in NO_FEATURES}

WORKS = """
import contextlib, io, json
from pathlib import Path
import numpy as np
import dpci

done = []
assert dpci.datasets.load_adult_sample().X.shape[0] == 4000
rng = np.random.default_rng(1)
X = rng.uniform(-0.5, 0.5, size=(2000, 3))
y = (X @ [4.0, -2.0, 0.0] + rng.logistic(size=2000) > 0).astype(int)
ledger = dpci.Ledger(dpci.PureDP(50.0))
model = {"l2_strength": 0.02}
pure = {"budget": dpci.PureDP(2.0), **model}

result = dpci.fit(X, y, **pure, ledger=ledger)
assert np.isfinite(result.conf_int()).all() and np.isfinite(result.pvalues).all()
assert "intercept" in result.summary() and result.predict(X[:3]).shape == (3,)
assert dpci.PrivateFit.from_json(result.to_json()).summary() == result.summary()
assert ledger.spent == {"epsilon": 2.0} and "dpci.fit" in ledger.summary()
assert "epsilon" in str(dpci.plan(n_samples=2000, n_features=3, **pure))
done.append("fit")
study = dpci.simulate.coverage(X, y, **pure, n_replicates=8, n_variability=8)
assert 0 <= study.coverage <= 1 and study.summary()
done.append("simulate")
tuned = dpci.tuning.tune(X, y, budget=dpci.PureDP(2.0), candidates=[{"l2_strength": s} for s in (0.02, 0.2)],
                         validation_radius=4.0, ledger=ledger)
assert tuned.result.conf_int().lower.shape == (4,)
done.append("tuning")
curve = dpci.utility.curve(X, y, at=dpci.ApproxDP(1.0, 1e-6), **model)
assert np.isfinite(curve.predict_utility(np.geomspace(0.5, 2.0, 50))).all() and curve.expected_utility(2.0)
done.append("utility")
report = dpci.per_instance.report(X, y, budget=dpci.ApproxDP(1.0, 1e-6), n_public=2000, **model)
assert len(report(X[:3], y[:3])) == 4
done.append("per_instance")
assert dpci.baselines.functional_mechanism(X, y, budget=dpci.PureDP(2.0), l2_strength=0.02).params.shape == (4,)
done.append("baselines")
matrix = dpci.regression.release(X, y, budget=dpci.PureDP(20.0), rows=4.0, ledger=ledger)
assert matrix.fit().conf_int().lower.shape == (4,)
done.append("regression")
bound = dpci.audit.epsilon_lower_bound(lambda x: x + rng.laplace(), 0.0, 1.0, n_runs=4000, claim=dpci.PureDP(1.0))
assert 0 < bound.value < 2
done.append("audit")
"""

# For each extra, what needs it: statements that run after those above.
FEATURES = {
    "plot": [
        "result.plot()",
        "study.plot()",
        "curve.plot()",
        "report.plot_bound_against_truth_not_private(X, y)",
        "from dpci.report.plot import check_plot_file; check_plot_file(Path('model.png'))",
    ],
    "tables": ["result.to_great_tables()"],
    "pandas": ["study.to_frame()", "curve.to_frame()"],
    "parquet": ["from dpci.sources.files import read_batches; list(read_batches(Path('people.parquet'), n_rows=None))"],
    "office": ["dpci.read('people.xlsx')"],
    "progress": ["dpci.simulate.coverage(X, y, **pure, n_replicates=2, n_variability=0, progress=True)"],
    "parallel": ["dpci.simulate.coverage(X, y, **pure, n_replicates=2, n_variability=0, parallel='joblib')"],
    "cli": ["from dpci.cli import main; main(['--help'])"],
    "datasets": ["dpci.datasets.load_bank()"],
    "sklearn": ["import dpci.sklearn"],
    "arrow": ["dpci.fit(X, type('Column', (), {'__arrow_c_stream__': None})(), **pure)"],
    "frames": ["dpci.fit(type('Frame', (), {'columns': ['a', 'b', 'c']})(), y, **pure)"],
}

REFUSALS = """
import os
os.environ.pop("DPCI_DATA", None)
refusals = {}
for statement in STATEMENTS:
    shown = io.StringIO()
    try:
        with contextlib.redirect_stderr(shown):
            exec(statement)
        refusals[statement] = shown.getvalue()
    except dpci.DpciError as error:
        refusals[statement] = str(error)
print(json.dumps([done, refusals]))
"""


@pytest.fixture(scope="module")
def bare():
    statements = [statement for each in FEATURES.values() for statement in each]
    return json.loads(run_bare(f"{WORKS}\nSTATEMENTS = {statements!r}\n{REFUSALS}"))


def test_all_else_works_without_extras(bare):
    assert bare[0] == ["fit", "simulate", "tuning", "utility", "per_instance", "baselines", "regression", "audit"]


@pytest.mark.parametrize(
    ("extra", "statement"), [(extra, statement) for extra, statements in FEATURES.items() for statement in statements]
)
def test_features_name_their_extra(bare, extra, statement):
    said = re.search(r"needs ([\w-]+)[^:]*: pip install 'dpci\[(\w+)\]'$", bare[1][statement].strip())
    package, named = said.groups()
    assert named == extra
    assert any(re.match(rf"{package}\b", wanted) for wanted in EXTRAS[extra])


# Extras that only bring a package which another one uses: narwhals reads frames of polars, joblib sends work to Dask.
BRINGS_ONLY = {"polars", "dask"}


def test_every_extra_has_a_feature():
    assert set(FEATURES) | BRINGS_ONLY == set(EXTRAS)


def test_the_dependencies():
    assert {re.match(r"\w+", wanted).group() for wanted in PROJECT["dependencies"]} == {"numpy", "scipy"}


def test_instructions_are_written_in_one_place():
    places = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "pip install" in path.read_text(encoding="utf-8")
    }
    # A data set that is not here can also be put into a folder, which its message says first.
    assert places == {"base/optional.py", "datasets/files.py"}


GUARDS = """
import inspect, json, pickle, pydoc
import dpci
caught = []
for statement in ("import dpci.sklearn", "from dpci import sklearn"):
    try:
        exec(statement)
    except ImportError as error:
        caught.append([type(error).__name__, error.name, str(error), pickle.loads(pickle.dumps(error)).name])
try:
    dpci.sklearn
except dpci.DpciError as error:
    caught.append([type(error).__name__, type(error.__cause__).__name__, str(error)])
names = [name for name, _ in inspect.getmembers(dpci)]
described = pydoc.plain(pydoc.render_doc(dpci))
from dpci import *
print(json.dumps([caught, hasattr(dpci, "sklearn"), getattr(dpci, "sklearn", None), names, described]))
"""


def test_what_is_missing_is_found_out_in_the_usual_ways():
    caught, has, got, names, described = json.loads(run_bare(GUARDS))
    message = "dpci.sklearn needs scikit-learn 1.6 or later: pip install 'dpci[sklearn]'"
    assert caught[:2] == [["MissingExtra", "sklearn", message, "sklearn"]] * 2
    assert caught[2:] == [["MissingModule", "MissingExtra", message]]
    assert (has, got) == (False, None)
    assert set(names) == set(dpci.__all__)
    assert "class PrivateFit" in described


def test_other_imports_that_fail_raise_their_own_error():
    with pytest.raises(ImportError, match="broken"), optional("json", extra="plot", what="a plot"):
        raise ImportError("broken", name="other")


@pytest.mark.parametrize("statement", ["import absent", "from json import of_a_later_version"])
def test_missing_and_old_packages(monkeypatch, statement):
    monkeypatch.setitem(sys.modules, "absent", None)
    package = statement.split()[1]
    message = rf"^a plot needs {package}: pip install 'dpci\[plot\]'$"
    with pytest.raises(MissingExtra, match=message) as caught, optional(package, extra="plot", what="a plot"):
        exec(statement)
    assert caught.value.name == package
    assert isinstance(caught.value, DpciError)
    assert isinstance(caught.value, ImportError)
    with pytest.raises(ImportError), optional("other", extra="plot", what="a plot"):
        exec(statement)
