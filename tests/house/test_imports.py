"""Importing dpci loads NumPy and the light parts of SciPy: nothing optional, and no part that is slow to load."""

import json
import subprocess
import sys

import pytest

import dpci

SLOW = ["fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse", "spatial", "stats"]
OPTIONAL = [
    "dask",
    "distributed",
    "joblib",
    "matplotlib",
    "narwhals",
    "pandas",
    "polars",
    "pooch",
    "pyarrow",
    "sklearn",
    "tqdm",
    "typer",
]

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
        "html",
        "sqlite3",
        "tomllib",
        "dpci.lowlevel",
        "dpci.report.page",
        "dpci.shown.html",
        "dpci.shown.notebook",
        "dpci.strata",
    }
    assert not after_import & late


@pytest.mark.parametrize("part", SLOW)
def test_slow_parts_of_scipy_are_not_imported(after_import, part):
    assert f"scipy.{part}" not in after_import


def test_a_fit_needs_no_slow_part_either():
    assert not {f"scipy.{part}" for part in ("stats", "optimize", "sparse")} & loaded(f"import dpci\n{FIT}")


def test_the_command_line_needs_no_slow_part_either():
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
