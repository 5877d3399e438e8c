"""Defects that were found by fuzzing, each with the input that showed it."""

import json
from typing import Any

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.schema.columns import NumericColumn
from support import custom_losses
from support.keywords import assembled
from support.saved import rewritten

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(400, 3))
Y = X[:, 0] > 0
PSEUDO_HUBER = custom_losses.pseudo_huber(target_bounds=(-1.0, 1.0))


def fit(y: Any = Y, X: Any = X, **keywords: Any) -> dpci.PrivateFit:
    return dpci.fit(X, y, **assembled(**{"budget": dpci.PureDP(1.0), "l2_strength": 0.05, **keywords}))


@pytest.mark.parametrize(
    ("keywords", "rule"),
    [
        ({"mechanism": np.array(["objective", "output"])}, "mechanism must be"),
        ({"split": [[1], [2, 3], 4]}, "split must be a sequence"),
        ({"classes": (0.0, float("inf")), "y": np.where(Y == 1, np.inf, 0.0)}, "classes must be"),
        ({"y": np.array([np.ones(2), np.zeros(3)] * 200, dtype=object)}, "y must hold"),
        ({"y": np.array([np.ones(2), np.zeros(3)] * 200, dtype=object), "classes": (0, 1)}, "y must hold"),
        ({"X": [np.ma.array(row, mask=[1, 0, 0]) for row in X]}, "X must have no masked"),
        ({"y": np.ma.array(X[:, 0], mask=Y == 1), "loss": PSEUDO_HUBER}, "y must have no masked"),
    ],
)
def test_odd_arguments_of_fit_get_their_own_error(keywords: dict[str, Any], rule: str) -> None:
    with pytest.raises(dpci.InvalidInput, match=rule):
        fit(**keywords)


@pytest.mark.parametrize(
    "contrast", [np.array([1j, 0, 0, 0]), ["1", "2", "3", "4"], np.ma.array(np.ones(4), mask=True)]
)
def test_contrasts_are_not_silently_converted(contrast: Any) -> None:
    with pytest.raises(dpci.InvalidInput, match="contrast must"):
        fit().conf_int(contrast=contrast)


@pytest.mark.parametrize("classes", [(0, "ill"), ("healthy", 1), (-1, 10**30)])
def test_predictions_are_the_callers_labels_also_when_their_types_differ(classes: tuple[Any, Any]) -> None:
    y = np.array([classes[int(label)] for label in Y], dtype=object)
    predicted = fit(y, classes=classes).predict(X)
    assert {type(label) for label in predicted} <= {type(label) for label in classes}
    assert set(predicted) <= set(classes)


def test_a_level_near_one_is_not_called_100_percent() -> None:
    result = fit()
    assert result.summary(level=0.999999999).startswith("99.9999999% confidence")
    assert result.summary().startswith("95% confidence")


@pytest.mark.parametrize(
    ("field", "junk"),
    [("private", "false"), ("private", None), ("n_samples", -1), ("params", [float("nan")] * 4), ("steps", [])],
)
def test_a_saved_fit_cannot_claim_nonsense(field: str, junk: Any) -> None:
    saved = json.loads(fit().to_json())
    with pytest.raises(dpci.InvalidInput):
        dpci.PrivateFit.from_json(rewritten({**saved, field: junk}))


def test_bounds_with_hundreds_of_digits_are_refused() -> None:
    with pytest.raises(dpci.InvalidInput, match="finite"):
        NumericColumn(name="age", lower=0, upper=10**400)


@pytest.mark.parametrize(
    "output",
    [["--plot", "x.xyz"], ["--plot", "x"], ["--output", "nowhere/x.json"], ["--plot", "x.png", "--moments", "none"]],
)
def test_outputs_that_cannot_be_written_are_refused_before_the_fit(
    output: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpci.model.fit.fit", None)  # must not be reached
    # Neither file exists: the outputs are looked at first.
    code = main(["fit", "table.csv", "--schema", "adult_demo", "--l2-strength", "0.1", "--epsilon", "1", *output])
    assert code == 2
    assert "plot" in (message := capsys.readouterr().err) or "--output" in message


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_tolerance_is_a_millionth_of_the_noise(mechanism: Any) -> None:
    n, dim, l2_strength = 1000, 2, 0.05
    plan = dpci.plan(
        n_samples=n, n_features=dim, rows=dpci.rows.Within(intercept=False), budget=dpci.PureDP(1.0),
        l2_strength=l2_strength, mechanism=mechanism,
    )  # fmt: skip
    gain = {"objective": 1 / (n * (l2_strength + 0.25)), "output": 1.0}[mechanism]
    noise = plan.steps[0].scale * np.sqrt(dim + 1) * gain
    assert plan.tolerance <= max(1e-9, 1e-6 * noise) * (1 + 1e-9)


def test_real_targets_are_clipped_into_their_bounds() -> None:
    keywords = {"loss": PSEUDO_HUBER, "rows": "clip", "moments": "none", "seed": 3}
    far, near = 50 * X[:, 0], np.clip(50 * X[:, 0], -1, 1)
    with pytest.warns(dpci.SeededNoiseWarning):
        np.testing.assert_array_equal(fit(far, **keywords).params, fit(near, **keywords).params)
    with pytest.raises(dpci.InvalidInput, match="target_bounds"):
        fit(far, loss=PSEUDO_HUBER, moments="none")


def test_matrices_that_could_exhaust_memory_are_refused():
    X, y = np.zeros((2, 20_000)), np.array([0, 1])
    with pytest.raises(dpci.InvalidInput, match="at most 16384"):
        dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=10.0)
    assert len(fit(y, X, l2_strength=10.0, moments="none", seed=0).params) == 20_001
    with pytest.raises(dpci.InvalidInput, match="at most 16384"):
        dpci.lowlevel.weighted_gram(X, np.ones(2))
    for sampler in (dpci.lowlevel.symmetric_gaussian, dpci.lowlevel.symmetric_matrix_laplace):
        with pytest.raises(dpci.InvalidInput, match="at most 16384"):
            sampler(1, 2**32, 1.0, 0)


def test_custom_losses_may_return_any_float_array():
    def strided(values):
        return np.repeat(values, 2)[::2]

    loss = dpci.losses.Custom(
        value=lambda u, y: strided(np.logaddexp(0, -y * u)),
        slope=lambda u, y: -y / (1 + np.exp(np.minimum(y * u, 700))),
        curvature=lambda u, _y: (0.25 / np.cosh(np.clip(u / 2, -300, 300)) ** 2).astype(np.float32),
        slope_bound=1.0,
        curvature_bound=0.25,
    )
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (500, 2))
    result, reference = fit(X[:, 0] > 0, X, loss=loss, seed=1), fit(X[:, 0] > 0, X, seed=1)
    np.testing.assert_allclose(result.params, reference.params, atol=1e-6)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda **keywords: dpci.plan(n_samples=9, n_features=1, **keywords), "plan"),
        (lambda **keywords: dpci.utility.bound(n_samples=9, n_features=1, **keywords), "bound"),
        (lambda budget, **keywords: dpci.utility.curve(X, np.arange(len(X)) % 2, at=budget, **keywords), "curve"),
    ],
    ids=["plan", "bound", "curve"],
)
def test_functions_that_pass_keywords_on_complain_in_their_own_name(call: Any, name: str) -> None:
    known: dict[str, Any] = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected keyword argument 'foo'$"):
        call(**known, foo=1)
    missing = "budget" if name == "plan" else "l2_strength"  # a plan without a λ is one at the λ that it recommends
    del known[missing]
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing required keyword-only argument: '{missing}'"):
        call(**known)
