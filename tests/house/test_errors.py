"""Errors and warnings have codes and values for programs, and keep them when they are pickled."""

import pickle
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import dpci

X = np.full((50, 2), 0.5)
Y = np.repeat([0, 1], 25)
FIT = {"budget": dpci.PureDP(1.0), "l2_strength": 1.0, "classes": (0, 1)}


def fit(**changed: object) -> object:
    return dpci.fit(**{"X": X, "y": Y, **FIT, **changed})


def spent() -> object:
    return fit(ledger=dpci.Ledger(dpci.PureDP(0.25)))


@pytest.mark.parametrize(
    ("wrong", "kind", "values"),
    [
        (
            lambda: fit(X=2.0 * X),
            dpci.RowNormViolation,
            {"code": "row_norm_exceeded", "row": 0, "norm": 2.0**0.5, "bound": 1.0, "column": None},
        ),
        (
            lambda: fit(X=4.0 * X, rows=dpci.rows.Blocks([1.0, 1.0])),
            dpci.RowNormViolation,
            {"code": "row_block_exceeded", "row": 0, "norm": 2.0, "bound": 1.0, "column": 0},
        ),
        (
            lambda: fit(l2_strength=1e-9),
            dpci.RegularizationTooSmall,
            {"code": "regularization_too_small", "value": 1e-9},
        ),
        (lambda: fit(l2_strength=-1.0), dpci.InvalidInput, {"name": "l2_strength", "value": -1.0}),
        (lambda: fit(mechanism="both"), dpci.InvalidInput, {"code": "invalid_input"}),
        (
            lambda: fit(X=np.where(np.arange(100).reshape(50, 2) == 7, np.inf, X)),
            dpci.InvalidInput,
            {"code": "row_not_finite", "row": 3, "column": 1, "value": np.inf},
        ),
        (
            spent,
            dpci.BudgetExceeded,
            {"code": "budget_exceeded", "requested": dpci.PureDP(1.0), "remaining": dpci.PureDP(0.25)},
        ),
    ],
)
def test_errors_carry_what_broke_the_rule(
    wrong: Callable[[], object], kind: type[dpci.DpciError], values: dict[str, object]
) -> None:
    with pytest.raises(kind) as caught:
        wrong()
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert type(error) is kind
        assert str(error) == str(caught.value)
        for name, value in values.items():
            found = getattr(error, name)
            assert found == (pytest.approx(value, rel=1e-12) if isinstance(value, float) else value)


def test_the_least_ridge_of_an_error_is_enough() -> None:
    with pytest.raises(dpci.RegularizationTooSmall) as caught:
        fit(l2_strength=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.MomentNoiseWarning)
        fit(l2_strength=1.01 * caught.value.least)


def test_warnings_carry_their_magnitude() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(budget=dpci.PureDP(0.01), l2_strength=0.2, seed=0, mechanism="output")
        fit(budget=dpci.PureDP(0.1), l2_strength=0.2, seed=0)
    found = {warning.message.code: warning.message for warning in caught}
    assert found.keys() >= {"seeded_noise", "moment_noise"}
    assert found["moment_noise"].ratio > 1.0
    assert pickle.loads(pickle.dumps(found["moment_noise"])).ratio == found["moment_noise"].ratio


def test_each_kind_has_a_code_of_its_own() -> None:
    kinds = [getattr(dpci.errors, name) for name in dpci.errors.__all__]
    codes = [kind.code for kind in kinds]
    assert len(set(codes)) == len(codes)


def test_private_errors_have_no_values() -> None:
    ledger = dpci.Ledger(dpci.PureDP(2.0), errors="private")
    with pytest.raises(dpci.ReleaseFailed) as caught:
        fit(X=np.nan * X, ledger=ledger, on_violation="clip")
    assert vars(caught.value) == {}
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
