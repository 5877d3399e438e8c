"""A library on public names alone: it is right, and runs in threads and processes; `make lint` checks its types."""

import ast
import importlib
import multiprocessing
import os
import pickle
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import dpci

EXAMPLE = Path(__file__).parents[2] / "examples" / "embedding"
BUDGET = dpci.ApproxDP(epsilon=4.0, delta=1e-6)
N_FITS = 8
EFFECT = 0.8


@pytest.fixture(scope="module")
def uplift():
    sys.path.insert(0, str(EXAMPLE))
    try:
        yield importlib.import_module("uplift")
    finally:
        sys.path.remove(str(EXAMPLE))


def patients(seed, n=20_000):
    rng = np.random.default_rng(seed)
    covariates = rng.uniform(-0.5, 0.5, size=(n, 3))
    treated = rng.random(n) < 0.5
    recovered = covariates @ [2.0, -1.0, 0.0] + EFFECT * treated + rng.logistic(size=n) > 0
    return covariates, treated, recovered


def test_it_subclasses_nothing_and_uses_public_names_only():
    tree = ast.parse((EXAMPLE / "uplift.py").read_text(encoding="utf-8"))
    public = {"dpci": dpci, "lowlevel": dpci.lowlevel}
    used = set()
    for node in ast.walk(tree):
        assert not (isinstance(node, ast.ClassDef) and node.bases)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpci"):
            assert node.module == "dpci"
            assert [alias.name for alias in node.names] == ["lowlevel"]
        if isinstance(node, ast.Attribute):
            assert not node.attr.startswith("_")
            if isinstance(node.value, ast.Name) and node.value.id in public:
                used.add((node.value.id, node.attr))
                assert node.attr in public[node.value.id].__all__
    assert {module for module, _ in used} == set(public)
    assert len((EXAMPLE / "uplift.py").read_text(encoding="utf-8").splitlines()) <= 70


def test_intervals_cover_the_effect_of_the_population(uplift):
    # The data are fixed and near the truth; noise beyond the interval has a probability far below 1e-6.
    effects = [
        uplift.treatment_effect(*patients(seed), budget=BUDGET, ledger=dpci.Ledger(BUDGET), l2_strength=1e-4)
        for seed in range(4)
    ]
    pooled = uplift.pool(effects)
    lower, upper = pooled.interval(level=1 - 1e-9)
    assert lower < EFFECT < upper
    assert upper - lower < 0.5
    assert all(pooled.variance < effect.variance for effect in effects)
    assert all(0 < effect.noise_share < 1 for effect in [*effects, pooled])


class Tensor:
    """DLPack, and nothing else."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **keywords):
        return self._values.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class Columns:
    """The Arrow C data interface, and nothing else."""

    def __init__(self, columns):
        self._columns = columns

    def __arrow_c_stream__(self, requested_schema=None):
        return self._columns.__arrow_c_stream__(requested_schema)


def test_it_takes_what_its_users_have(uplift):
    covariates, treated, recovered = patients(5)
    pa = pytest.importorskip("pyarrow")
    table = pa.table({f"x{j}": column for j, column in enumerate(covariates.T)})
    for X, y in (
        (Tensor(covariates), Tensor(recovered.astype(int))),
        (Columns(table), Columns(pa.chunked_array([recovered.astype(int)]))),
    ):
        effect = uplift.treatment_effect(X, treated, y, budget=BUDGET, ledger=dpci.Ledger(BUDGET), l2_strength=1e-4)
        lower, upper = effect.interval(level=1 - 1e-9)
        assert lower < EFFECT < upper


OTHER_CODINGS = {
    "outcomes -1 and 1": (lambda t, y: (t, 2 * y.astype(int) - 1), r"y must hold only classes=\(0, 1\), got -1"),
    "words": (lambda t, y: (np.where(t, "yes", "no"), y), "could not convert string to float"),
    "arms 1 and 2": (lambda t, y: (t + 1, y), "row_norm=1.118"),
    "arms -1 and 1": (lambda t, y: (2 * t.astype(int) - 1, y), "row_norm=1.118"),
    "an arm is not known": (lambda t, y: (np.where(np.arange(len(t)) == 5, np.nan, t), y), "X must be finite"),
}


@pytest.mark.parametrize("coding", OTHER_CODINGS)
def test_other_codings_are_refused(uplift, coding):
    covariates, treated, recovered = patients(3, 200)
    recode, message = OTHER_CODINGS[coding]
    with pytest.raises(ValueError, match=message):
        uplift.treatment_effect(covariates, *recode(treated, recovered), budget=BUDGET, ledger=dpci.Ledger(BUDGET))


def test_noise_of_another_law_is_refused(uplift):
    pure = dpci.PureDP(4.0)
    with pytest.raises(dpci.InvalidInput, match=r'got noise="gaussian": use ApproxDP'):
        uplift.treatment_effect(*patients(3, 200), budget=pure, ledger=dpci.Ledger(pure))


def test_threads_share_a_ledger(uplift):
    ledger = dpci.Ledger(dpci.ApproxDP(epsilon=1e3, delta=1e-3))
    job = partial(uplift.treatment_effect, *patients(1), budget=BUDGET, ledger=ledger)
    with ThreadPoolExecutor(N_FITS) as pool:
        effects = [future.result() for future in [pool.submit(job) for _ in range(N_FITS)]]
    assert len({effect.estimate for effect in effects}) == N_FITS
    assert len(ledger.history) == N_FITS
    with pytest.raises(dpci.BudgetExceeded):
        uplift.treatment_effect(*patients(1), budget=dpci.ApproxDP(1e3, 1e-6), ledger=ledger)


@pytest.mark.entropy
@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_processes_share_a_ledger(uplift, tmp_path, monkeypatch, start):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(EXAMPLE), *filter(None, [os.environ.get("PYTHONPATH")])]))
    ledger = dpci.Ledger(dpci.ApproxDP(epsilon=1e3, delta=1e-3), path=tmp_path / "hospital.ledger")
    job = partial(uplift.treatment_effect, *patients(2), budget=BUDGET, ledger=ledger)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(start)) as pool:
        effects = [future.result() for future in [pool.submit(job) for _ in range(4)]]
    assert len({effect.estimate for effect in effects}) == 4  # forked processes have noise of their own
    assert len(ledger.history) == 4
    assert pickle.loads(pickle.dumps(effects)) == effects
    ledger.close()


@pytest.mark.usefixtures("uplift")
def test_the_page_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", (EXAMPLE / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert re.search(
        r"log odds ratio \d\.\d\d, interval \(.*\)\nprivacy is \d+% of the variance", capsys.readouterr().out
    )


def test_typed_calls_run():
    run = subprocess.run(
        [sys.executable, "-W", "ignore", EXAMPLE / "typed.py"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("budget_exceeded ")


PYRIGHT = shutil.which("basedpyright") or shutil.which("pyright")


@pytest.mark.skipif(PYRIGHT is None, reason="needs basedpyright or pyright")
def test_the_examples_pass_pyright_strict():
    root = EXAMPLE.parents[1]
    run = subprocess.run(
        [PYRIGHT, "--pythonpath", sys.executable], cwd=root, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
