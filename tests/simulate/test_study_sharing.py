"""Work that a study shares: minimisers of the same risk alone, and whole groups of replicates; bounds of rows."""

import numpy as np
import pytest
import scipy.sparse

import dpci
from dpci import _core, simulate
from dpci.errors import PrivacyLeakWarning
from dpci.model.settings import Settings
from dpci.simulate import replicates as _replicates

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


def lengths(configs):
    """Variability lengths and coverage on rows that come with both targets, so that every minimiser is zero."""
    half = np.random.default_rng(3).uniform(-0.5, 0.5, size=(300, 3))
    X, y = np.concatenate([half, half]), np.repeat([1.0, -1.0], len(half))
    with pytest.warns(PrivacyLeakWarning):
        found = simulate.coverage(
            X,
            y,
            budget=dpci.PureDP(1000.0),
            mechanism="output",
            intercept=False,
            l2_strength=1.0,
            classes=(-1, 1),
            n_replicates=32,
            n_variability=64,
            configs=configs,
        )
    assert all(np.abs(study.target).max() < 1e-9 for study in found)
    return [study.variability_length for study in found]


@pytest.mark.parametrize(
    "pair",
    [
        ({"l2_strength": 0.01}, {"l2_strength": 1.0}),
        ({"loss": dpci.losses.HuberHinge(h=0.3)}, {"loss": dpci.losses.HuberHinge(h=2.0)}),
        ({"loss": "logistic"}, {"loss": dpci.losses.SmoothHinge(s=0.5)}),
    ],
)
def test_another_risk_with_the_same_minimiser_has_replicates_of_its_own(pair):
    """The noise of a configuration depends on its place, but drowns in nothing here: lengths follow the risk alone."""
    alone = [lengths([config])[0] for config in pair]
    assert max(alone) > 1.2 * min(alone)
    np.testing.assert_allclose(lengths(list(pair)), alone, rtol=0.05)
    np.testing.assert_allclose(lengths(list(pair)[::-1]), alone[::-1], rtol=0.05)


def test_batches_are_whole_groups():
    assert _core.LANES == 16
    for n_threads in (1, 2, 5):
        assert _replicates.LocalRunner(None, 0, n_threads).width % _core.LANES == 0

    class Runner:
        n_jobs = 3

    ranges = _replicates._ranges(Runner, 0, 160)
    assert [stop - start for start, stop in ranges] == [64, 64, 32]


def test_rows_of_other_bounds_are_refused():
    """The core itself compares what rows were checked against with what the noise was calibrated for."""
    X, y = np.full((50, 2), 0.1), np.resize([1.0, -1.0], 50)
    settings = {"budget": dpci.PureDP(1.0), "l2_strength": 0.1}
    wide, narrow = (Settings.checked(**settings, rows=norm, intercept=False).spec(50, 2) for norm in (1.0, 0.01))
    with pytest.raises(dpci.DpciError, match=r"row_norm=0\.01, .* got row_norm=1,"):
        _core.Study([wide, narrow], _core.Records(X, y), clip=False, n_threads=1)


def test_rows_that_are_clipped_hard_keep_their_part_in_the_moments():
    """Dense and sparse sums agree where the scale of a row, squared, would underflow."""
    dense = np.zeros((64, 40))
    dense[np.arange(64), np.arange(64) % 40] = 0.99e150
    y = np.resize([1.0, -1.0, 1.0], 64)
    found = []
    for X in (dense, scipy.sparse.csr_array(dense)):
        with pytest.warns(dpci.errors.DpciWarning):
            result = dpci.fit(
                X,
                y,
                budget=dpci.PureDP(1e6),
                l2_strength=10.0,
                rows=dpci.rows.Clipped(3.14e-12),
                classes=(-1, 1),
                mechanism=dpci.ObjectivePerturbation(projection="floor"),
                seed=0,
            )
        found.append(result.hessian)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9, atol=1e-9)
