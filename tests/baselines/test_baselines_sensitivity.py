"""How far one record moves what the functional mechanism perturbs: brute force against what it is calibrated to."""

import numpy as np
import pytest

import dpci
from dpci import baselines
from support.baselines import WEIGHTS, coefficient_distance, worst_pair

DIMS = [1, 2, 3, 5, 8, 14]


PURE, ZCDP = dpci.PureDP(1.0), dpci.ZCDP(0.5)


def sensitivity(d, loss, *, budget=PURE, neighbors="replace_one", calibration="tight"):
    """Sensitivity to which the mechanism says it was calibrated, in units of R² and RB."""
    rows = np.zeros((4, d))
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    relation = dpci.AddRemove(4) if neighbors == "add_remove" else neighbors
    keywords = {"neighbors": relation, "calibration": calibration, "budget": budget}
    result = baselines.functional_mechanism(
        rows, y, loss=loss, rows=dpci.rows.Within(intercept=False), seed=1, **keywords
    )
    return result.privacy["steps"][0]["sensitivity"]


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("d", DIMS)
def test_replace_one_is_nearly_attained_and_never_exceeded(d, loss):
    claim = sensitivity(d, loss)
    worst = worst_pair(d, loss)
    assert 0.95 * claim < worst <= claim * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("d", DIMS)
def test_add_remove_is_attained(d, loss):
    claim = sensitivity(d, loss, neighbors="add_remove")
    x = np.full(d, 1.0 / np.sqrt(d))
    q, k = WEIGHTS[loss]
    assert q * np.abs(np.outer(x, x)).sum() + k * np.abs(x).sum() == pytest.approx(claim, rel=1e-12)


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("d", DIMS)
def test_no_record_in_the_bounds_exceeds_either_sensitivity(d, loss):
    # Rows of any length up to 1 and targets inside their interval, one of the records often absent or a multiple.
    rng = np.random.default_rng(d)
    l1, l2 = sensitivity(d, loss), sensitivity(d, loss, budget=ZCDP)
    alone = [sensitivity(d, loss, neighbors="add_remove", budget=b) for b in (PURE, ZCDP)]
    x, z = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in rng.standard_normal((2, 3000, d)))
    x, z = (v * rng.uniform(size=(3000, 1)) ** (1.0 / d) for v in (x, z))
    z = np.choose(rng.integers(5, size=(3000, 1)), [z, x, -x, 0.3 * x, 0.0])
    y, w = rng.choice([-1.0, 1.0], (2, 3000, 1)) * (rng.uniform(size=(2, 3000, 1)) if loss == "squared" else 1.0)
    found = coefficient_distance(x, y, z, w, loss)
    assert found[0].max() <= l1
    assert found[1].max() <= l2
    found = coefficient_distance(x, y, 0.0 * x, 0.0, loss)
    assert found[0].max() <= alone[0]
    assert found[1].max() <= alone[1]


@pytest.mark.parametrize("d", [1, 2, 6])
def test_l2_sensitivities_are_attained(d):
    # Rows at 60 degrees with targets of opposite signs; the same row twice where there is but one direction.
    x, z = np.zeros(d), np.zeros(d)
    x[0] = 1.0
    z[:2] = [0.5, np.sqrt(0.75)] if d > 1 else 1.0
    worst = coefficient_distance(x, 1.0, z, -1.0, "squared")[1]
    assert worst == pytest.approx(sensitivity(d, "squared", budget=ZCDP), rel=1e-12)
    assert worst == pytest.approx(3.0 / np.sqrt(2.0) if d > 1 else 2.0)
    one = coefficient_distance(x, 1.0, np.zeros(d), 0.0, "squared")[1]
    assert one == pytest.approx(sensitivity(d, "squared", budget=ZCDP, neighbors="add_remove"), rel=1e-12)


@pytest.mark.parametrize("d", DIMS)
def test_printed_constants(d):
    paper = {loss: sensitivity(d, loss, calibration="paper") for loss in WEIGHTS}
    assert paper["squared"] == pytest.approx(2.0 * (d + 1) ** 2)
    assert paper["logistic"] == pytest.approx(d * d / 4.0 + 3.0 * d)
    for loss, printed in paper.items():
        assert printed > sensitivity(d, loss)
        halved = sensitivity(d, loss, calibration="paper", neighbors="add_remove")
        assert halved == pytest.approx(printed / 2.0)
        assert halved > sensitivity(d, loss, neighbors="add_remove")


def test_tight_is_below_the_bound_of_each_block_alone():
    for d in DIMS[1:]:
        assert sensitivity(d, "squared") < 4.0 * np.sqrt(d) + np.sqrt(2.0) * d
        assert sensitivity(d, "logistic") < np.sqrt(d) + np.sqrt(2.0) * d / 8.0
