"""Errors and warnings have codes and values for programs, and keep them when they are copied and pickled."""

import copy
import inspect
import math
import pickle
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci import _core
from dpci.base.optional import MissingModule, optional
from dpci.cli.output import NoCoefficients, NotDelivered
from dpci.datasets import DatasetUnavailable
from support.keywords import assembled

ROOT = Path(__file__).parents[2]
KINDS = [getattr(dpci.errors, name) for name in dpci.errors.__all__]
# Those that stay in their rooms.
FURTHER = [DatasetUnavailable, MissingModule, NoCoefficients, NotDelivered]

X = np.full((50, 2), 0.5)
Y = np.repeat([0, 1], 25)
FIT = {"budget": dpci.PureDP(1.0), "l2_strength": 1.0, "classes": (0, 1)}


def fit(**changed: object) -> object:
    return dpci.fit(**assembled(**{"X": X, "y": Y, **FIT, **changed}))


def spent() -> object:
    return fit(ledger=dpci.Ledger(dpci.PureDP(0.25)))


def kept(error: Warning | Exception) -> list[Warning | Exception]:
    """Return an exception with what becomes of it: copies, and what another process gets."""
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    return [error, copy.copy(error), copy.deepcopy(error), *pickled]


def check_values(error: Warning | Exception, kind: type, values: dict[str, object]) -> None:
    """Compare the attributes of an exception and of all its copies."""
    for found in kept(error):
        assert type(found) is kind
        assert str(found) == str(error)
        for name, value in values.items():
            got = getattr(found, name)
            assert got == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value), name


# By code, what each rule of the core raises and what its sample holds (rust/dpci-py/src/testing.rs).
INPUT, TOO_SMALL = dpci.InvalidInput, dpci.RegularizationTooSmall
CORE: dict[str, tuple[type, dict[str, object]]] = {
    "out_of_range": (INPUT, {"name": "epsilon", "value": -1.0, "rule": "finite and > 0"}),
    "wrong_length": (INPUT, {"name": "weights", "value": 2, "expected": 3}),
    "no_data": (INPUT, {"name": None, "shape": (0, 2)}),
    "row_not_finite": (INPUT, {"name": "X", "value": math.inf, "row": 1, "column": 2}),
    "target_not_allowed": (INPUT, {"name": "y", "value": 3.0, "row": 1, "rule": "-1 or 1"}),
    "weight_not_allowed": (INPUT, {"name": "weights", "value": 3.0, "row": 1, "bound": 2.0}),
    "row_norm_exceeded": (dpci.RowNormViolation, {"row": 1, "norm": 3.0, "bound": 2.0, "column": None, "size": None}),
    "row_block_exceeded": (dpci.RowNormViolation, {"row": 1, "norm": 3.0, "bound": 2.0, "column": 2, "size": 4}),
    "row_too_long": (INPUT, {"name": "X", "value": 1e200}),
    "row_too_short": (INPUT, {"name": "X", "value": 0.5}),
    "rows_changed": (INPUT, {"value": None}),
    "too_many_records": (INPUT, {"name": "n_public", "value": 10.0, "n_records": 200.0}),
    "too_many_rows": (INPUT, {"name": "X", "value": 11, "bound": 10}),
    "regularization_too_small": (TOO_SMALL, {"name": "l2_strength", "value": 0.25, "least": 0.5, "epsilon": 1.5}),
    "ridge_below_noise": (TOO_SMALL, {"value": 0.25, "least": 0.5, "epsilon": None}),
    "ill_conditioned": (TOO_SMALL, {"value": 0.25, "least": 0.5}),
    "too_few_digits": (TOO_SMALL, {"value": 0.25, "least": None, "tolerance": 1e-9, "certificate": 1e-7}),
    "unsupported": (INPUT, {}),
    "not_converged": (
        dpci.NotConverged,
        {"tolerance": 1e-9, "certificate": 1e-7, "iterations": 12, "reason": "no progress"},
    ),
    "invalid_loss": (INPUT, {}),
    "not_positive_definite": (dpci.DpciError, {"name": "the Hessian"}),
    "release_not_finite": (dpci.DpciError, {"name": "params", "value": math.inf}),
    "noise_tail": (dpci.DpciError, {}),
    "no_entropy": (dpci.DpciError, {}),
    "no_resources": (dpci.DpciError, {}),
}


def test_every_rule_of_the_core_has_a_code_and_its_values() -> None:
    raised = {error.code: error for error in _core.Testing.errors()}
    source = (ROOT / "rust/dpci-core/src/error.rs").read_text(encoding="utf-8")
    assert set(re.findall(r'=> "(\w+)",$', source, re.MULTILINE)) == {*raised, "interrupted"}
    assert raised.keys() == CORE.keys()
    for code, (kind, values) in CORE.items():
        check_values(raised[code], kind, {"code": code, **values})


def no_hash() -> None:
    """Release with a ledger that cannot note the hash of the model."""
    ledger = dpci.Ledger(dpci.PureDP(2.0))
    ledger._store.keep_model = damaged  # type: ignore[method-assign]
    fit(ledger=ledger)


def damaged(*_: object) -> None:
    raise dpci.LedgerError("the disk is full")


def closed() -> None:
    with dpci.Ledger(dpci.PureDP(2.0)) as ledger:
        pass
    ledger.spend(dpci.PureDP(1.0), neighbors="replace_one")


def missing() -> None:
    with optional("nowhere", extra="frames", what="a frame as X"):
        import nowhere  # noqa: F401, PLC0415


def estimator() -> None:
    dpci.sklearn.PrivateLogisticRegression(epsilon=-1.0).fit(X, Y)


RAISED: list[tuple[Callable[[], object], type, dict[str, object]]] = [
    (
        lambda: fit(X=2.0 * X),
        dpci.RowNormViolation,
        {"code": "row_norm_exceeded", "row": 0, "norm": 2.0**0.5, "bound": 1.0, "column": None},
    ),
    (
        lambda: fit(X=4.0 * X, rows=dpci.rows.Blocks([1.0, 1.0])),
        dpci.RowNormViolation,
        {"code": "row_block_exceeded", "row": 0, "norm": 2.0, "bound": 1.0, "column": 0, "size": 1},
    ),
    (lambda: fit(l2_strength=1e-9), TOO_SMALL, {"code": "regularization_too_small", "value": 1e-9}),
    (lambda: fit(l2_strength=-1.0), INPUT, {"code": "invalid_input", "name": "l2_strength", "value": -1.0}),
    (lambda: fit(mechanism="both"), INPUT, {"code": "invalid_input", "name": "mechanism", "value": "both"}),
    (lambda: fit(projection="none"), INPUT, {"name": "projection", "value": "none"}),
    (lambda: fit(y=Y[1:]), INPUT, {"name": "y"}),
    (
        lambda: fit(X=np.where(np.arange(100).reshape(50, 2) == 7, np.inf, X)),
        INPUT,
        {"code": "row_not_finite", "name": "X", "row": 3, "column": 1, "value": np.inf},
    ),
    (
        spent,
        dpci.BudgetExceeded,
        {
            "code": "budget_exceeded",
            "requested": dpci.PureDP(1.0),
            "remaining": dpci.PureDP(0.25),
            "total": dpci.PureDP(0.25),
        },
    ),
    (closed, dpci.LedgerError, {"code": "ledger_closed", "path": None}),
    (lambda: dpci.Ledger.open(__file__), dpci.LedgerError, {"code": "ledger", "path": __file__}),
    (missing, dpci.MissingExtra, {"code": "missing_extra", "name": "nowhere", "extra": "frames"}),
    (
        lambda: dpci.datasets.load_adult(download=False),
        DatasetUnavailable,
        {"code": "dataset_unavailable", "file": "adult/adult.data"},
    ),
    (estimator, INPUT, {"name": "epsilon", "value": -1.0}),
    (no_hash, dpci.DpciWarning, {"code": "model_not_kept", "entry": 1}),
    (lambda: fit(seed=1), dpci.SeededNoiseWarning, {"code": "seeded_noise", "what": "result"}),
    (
        lambda: dpci.baselines.non_private(X, Y, loss="logistic", l2_strength=1.0),
        dpci.PrivacyLeakWarning,
        {"code": "privacy_leak"},
    ),
]


@pytest.mark.parametrize(("wrong", "kind", "values"), RAISED)
def test_errors_and_warnings_carry_what_broke_the_rule(
    wrong: Callable[[], object],
    kind: type[dpci.DpciError],
    values: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("DPCI_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with warnings.catch_warnings(record=True, action="always") as caught:
        if issubclass(kind, Warning):
            wrong()
            (error,) = [warning.message for warning in caught if type(warning.message) is kind]
        else:
            with pytest.raises(kind) as refused:
                wrong()
            error = refused.value
    check_values(error, kind, values)


@pytest.mark.parametrize("kind", [*KINDS, *FURTHER])
def test_every_kind_declares_its_values_and_keeps_them(kind: type[dpci.DpciError]) -> None:
    """A program may ask for each of them; None where it does not apply."""
    names = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", {})} - {"code"}
    assert all(getattr(kind("x"), name) in {None, "l2_strength"} for name in names)
    given = {name: f"its {name}" for name in names}
    check_values(kind("the message", **given), kind, {"code": kind.code, **given})
    documented = "\n".join(inspect.cleandoc(base.__doc__ or "") for base in kind.__mro__[:2])
    for name in vars(kind).get("__annotations__", {}) if kind is not MissingModule else ():
        assert re.search(rf"^([\w, ]+, )?{name}(, \w+)*$", documented, re.MULTILINE), name


def test_a_worker_hands_its_error_over_whole() -> None:
    script = (
        "import pickle, sys, dpci\ntry: dpci.PureDP(-1.0)\n"
        "except dpci.InvalidInput as error: sys.stdout.buffer.write(pickle.dumps(error))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=True)
    check_values(pickle.loads(done.stdout), dpci.InvalidInput, {"name": "epsilon", "value": -1.0})


def test_codes_are_documented() -> None:
    """Each one stands in the reference: on the page, or in the docstring of its class, which the page shows."""
    known = "".join(kind.__doc__ or "" for kind in [*KINDS, *FURTHER])
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "python/dpci").rglob("*.py"))
    for code in {*CORE, *re.findall(r'\bcode ?= ?"(\w+)"', sources)} - {dpci.DpciError.code, dpci.DpciWarning.code}:
        assert f'"{code}"' in known or f"`{code}`" in page, code


def test_the_least_ridge_of_an_error_is_enough() -> None:
    with pytest.raises(dpci.RegularizationTooSmall) as caught:
        fit(l2_strength=1e-9)
    with warnings.catch_warnings(action="ignore", category=dpci.MomentNoiseWarning):
        fit(l2_strength=1.01 * caught.value.least)


def test_warnings_carry_their_magnitude() -> None:
    with warnings.catch_warnings(record=True, action="always") as caught:
        fit(budget=dpci.PureDP(0.01), l2_strength=0.2, seed=0, mechanism="output")
        fit(budget=dpci.PureDP(0.1), l2_strength=0.2, seed=0)
    found = {warning.message.code: warning.message for warning in caught}
    assert found.keys() >= {"seeded_noise", "moment_noise"}
    assert found["moment_noise"].ratio > 1.0
    assert pickle.loads(pickle.dumps(found["moment_noise"])).ratio == found["moment_noise"].ratio


def test_each_kind_has_a_code_of_its_own() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)


def test_private_errors_have_no_values() -> None:
    ledger = dpci.Ledger(dpci.PureDP(2.0), errors="private")
    with pytest.raises(dpci.ReleaseFailed) as caught:
        fit(X=np.nan * X, ledger=ledger, rows="clip")
    assert vars(caught.value) == {}
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
