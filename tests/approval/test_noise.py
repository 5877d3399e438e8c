"""Whether the noise of a file is that of its choices: of custom losses, seals and parts; and how budgets are shown."""

import itertools
import json

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.per_instance.record import ReportRecord
from support import custom_losses
from support.approved import REAL, N, X, Y, opened
from support.forged import changed, failures, is_found
from support.keywords import assembled
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


@pytest.mark.parametrize("kind", ["output", "bare", "counted_stratum", "chosen_fit"])
def test_no_part_of_the_noise_is_given_away(kind):
    _, values = opened(kind, "zcdp", "replace_one")
    step = values["steps"][0]
    less = {"noise_scale": step["scale"] * (1 - 1e-5)}
    step |= {"scale": less["noise_scale"], "sensitivity": step["sensitivity"] * (1 - 1e-5)}
    assert is_found(dpci.PrivateFit, {**values, **less})


def test_another_version_may_calibrate_otherwise():
    _, values = opened("fit", "pure", "replace_one")
    values["version"] = "0.0.1"
    older = dpci.PrivateFit.from_json(rewritten(values))
    assert "noise scale was recomputed from the public choices" in older.officer_report()
    values["noise_scale"] *= 2.0
    forged = dpci.PrivateFit.from_json(rewritten(values))
    assert failures(forged) == []
    assert "- **Return.** Not checked: the noise: the file says that dpci 0.0.1 made it" in forged.officer_report()


CUSTOM = {
    "two classes": ({"slope_bound": 1.0, "curvature_bound": 0.25, "one_signed": True}, {}),
    "numbers": ({"slope_bound": 3.0, "curvature_bound": 3.0, "target_bounds": (-1.0, 1.0)}, {"classes": None}),
    "on a ball": (
        {"slope_bound": 9.0, "curvature_bound": 3.0, "target_bounds": (-1.0, 1.0), "predictor_bound": 2.0},
        {"classes": None, "radius": 1.0},
    ),
}


def custom(declared):
    if "target_bounds" not in declared:
        return dpci.losses.Custom(
            lambda u, y: np.logaddexp(0.0, -y * u),
            lambda u, y: -y / (1.0 + np.exp(np.clip(y * u, -700, 700))),
            lambda u, _: 0.25 / np.cosh(np.clip(u / 2.0, -350, 350)) ** 2,
            **declared,
        )
    return custom_losses.pseudo_huber(3.0, **declared)


@pytest.mark.parametrize("case", CUSTOM)
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_noise_of_a_custom_loss_follows_from_its_declaration(case, mechanism):
    declared, more = CUSTOM[case]
    targets = Y if "classes" not in more else REAL
    result = dpci.fit(
        X,
        targets,
        **assembled(
            loss=custom(declared),
            mechanism=mechanism,
            l2_strength=0.2,
            budget=dpci.PureDP(1.0),
            **{"classes": (False, True), **more},
        ),
    )
    assert failures(result) == []
    values = json.loads(result.to_json())
    for name in ("noise_scale", "slope_bound", "n_samples"):
        forged = {**values, name: type(values[name])(values[name] * 0.5)}
        assert is_found(dpci.PrivateFit, forged), name
    values["loss"]["slope_bound"] *= 2.0
    assert is_found(dpci.PrivateFit, values)


def test_the_noise_of_a_strongly_convex_loss_follows_from_its_declaration():
    """Without regularisation, for one parameter whose rows have one size."""
    loss = dpci.losses.Custom(
        lambda u, y: 0.5 * (u - y) ** 2, lambda u, y: u - y, lambda u, _: np.ones_like(u), slope_bound=3.0,
        curvature_bound=1.0, target_bounds=(-1.0, 1.0), predictor_bound=2.0, strong_convexity=1.0,
    )  # fmt: skip
    result = dpci.fit(
        np.ones((N, 1)), REAL, loss=loss, mechanism=dpci.OutputPerturbation(moments="none", radius=2.0),
        l2_strength=0.0, budget=dpci.PureDP(1.0), rows=dpci.rows.Within(intercept=False),
    )  # fmt: skip
    assert failures(result) == []
    values = json.loads(result.to_json())
    values["loss"]["strong_convexity"] = 2.0
    assert is_found(dpci.PrivateFit, values)


def test_the_noise_of_a_report_with_a_custom_loss_is_calibrated_again():
    loss = custom(CUSTOM["two classes"][0])
    report = dpci.per_instance.report(
        X, Y, loss=loss, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.2, n_public=N, classes=(False, True)
    )
    assert failures(report) == []
    values = json.loads(report.to_json())
    values["fit"]["steps"][1]["scale"] *= 0.5
    assert is_found(ReportRecord, values)


@pytest.mark.parametrize("case", [
    *itertools.product(("counted_stratum", "chosen_fit"), ("pure", "zcdp", "approx"), ("replace_one",)),
    ("counted_stratum", "zcdp", "add_remove"),
], ids="-".join)  # fmt: skip
def test_a_part_states_all_that_its_release_spent(case):
    """Counts and choices among it: without a ledger the file of one stratum could say that they cost nothing."""
    result, values = opened(*case)
    assert failures(result) == []
    assert dpci.PrivateFit.from_json(rewritten(values)).to_json() == result.to_json()
    for part in ("budget", "besides"):
        for name, number in values["whole"][part].items():
            if name == "notion":
                continue
            for factor in (0.5, 0.95, 0.999, 1.001, 2.0):
                forged = changed(values, ("whole", part, name), factor * number)
                assert is_found(dpci.PrivateFit, forged), (part, name, factor)
    without = {name: value for name, value in values["whole"].items() if name != "besides"}
    for whole in (
        without,
        {**without, "besides": {}},
        {**without, "besides": {"odd": 1.0}},
        {**without, "besides": 1.0},
    ):
        with pytest.raises(InvalidInput, match=r"whole|besides"):
            dpci.PrivateFit.from_json(rewritten({**values, "whole": whole}))


@pytest.mark.parametrize("kind", ["fit", "persons", "schema"])
@pytest.mark.parametrize("notion", ["pure", "zcdp", "approx"])
def test_the_seal_of_a_matrix_is_that_of_its_distance(kind, notion):
    _, values = opened(kind, notion, "replace_one")
    assert len(values["seals"]) == 3
    for k, factor in itertools.product((1, 2), (0.5, 0.7)):
        distance = values["seals"][k]["distance"]
        assert is_found(dpci.PrivateFit, changed(values, ("seals", k, "distance"), factor * distance)), (k, factor)


def test_no_budget_is_shown_as_a_smaller_one():
    for budget, shown in (
        (dpci.PureDP(1.0000004), "epsilon=1.00001 (pure DP)"),
        (dpci.ZCDP(0.1), "rho=0.1 (zCDP)"),
        (dpci.ApproxDP(0.30000000000000004, 1.0000001e-6), "epsilon=0.3, delta=1.00001e-06 (approximate DP)"),
        (dpci.GDP(2.0000001), "mu=2.00001 (Gaussian DP)"),
    ):
        assert str(budget) == shown
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    ledger.spend(dpci.PureDP(0.1234564), neighbors="replace_one", source="elsewhere")
    assert "spent      epsilon=0.123457" in ledger.summary()
    assert "remaining  epsilon=0.876543 (pure DP)" in ledger.summary()
