"""Losses whose curvature is a small part of its bound: coverage where noise hides it, and what a fit then says."""

import warnings

import numpy as np
import pytest

import dpci
from dpci.inference.curvature import TRUSTED_PULL, curvature_noise, pulled_errors
from dpci.losses import Huber, Quantile
from dpci.released.model import record_of

N = 1000
LOUD = {"budget": dpci.PureDP(4.0), "l2_strength": 0.02, "seed": 0}
pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.PrivacyLeakWarning")


def sample():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (N, 3)) / np.sqrt(3.0)
    return X, np.clip(X @ [0.5, -0.3, 0.2] + 0.5 * rng.normal(size=N), -3.0, 3.0)


def caught_in(loss, **keywords):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dpci.fit(*sample(), loss=loss, **{**LOUD, **keywords})
    return result, {type(warning.message): warning.message for warning in caught}


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_intervals_cover_where_noise_hides_the_curvature(mechanism):
    """Each of 600 intervals of a parameter covers .94 or more. The mean is below .91 with a probability below 1e-6."""
    keywords = {key: value for key, value in LOUD.items() if key != "seed"}
    loss = Huber(target_bound=3.0, k=0.05)
    study = dpci.simulate.coverage(
        *sample(), loss=loss, mechanism=mechanism, n_replicates=600, n_variability=0, n_threads=1, **keywords
    )
    inside = (study.lower <= study.target) & (study.target <= study.upper)
    # The intervals of one fit are dependent; were all equal, 600 would miss .91 with that probability for .95.
    assert inside.mean() >= 0.91
    assert inside.mean(axis=0).min() >= 0.90


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_a_fit_says_that_noise_hides_the_curvature(mechanism):
    result, caught = caught_in(Huber(target_bound=3.0, k=0.05), mechanism=mechanism)
    warning = caught[dpci.MomentNoiseWarning]
    assert "times the mean curvature that it shows" in str(warning)
    released = np.linalg.eigvalsh(result.hessian).mean()
    expected = result._record.noise_spectral_radius / max(released, 0.02)
    assert warning.ratio == pytest.approx(expected)
    assert warning.ratio == curvature_noise(result._record) > 2.0


@pytest.mark.filterwarnings("always:the noise in the released matrices leaves:dpci.MomentNoiseWarning")
def test_a_fit_says_that_noise_leaves_single_variances_open():
    result, caught = caught_in(Huber(target_bound=3.0, k=0.5))
    warning = caught[dpci.MomentNoiseWarning]
    spread = result._error_law().spread
    assert warning.ratio == spread > 0.4
    assert f"uncertain by about {spread:.0%}" in str(warning)
    # Three times the budget leaves less open.
    result, caught = caught_in(Huber(target_bound=3.0, k=0.5), budget=dpci.PureDP(12.0))
    assert result._error_law().spread < 0.4
    assert dpci.MomentNoiseWarning not in caught


@pytest.mark.parametrize("loss", [Huber(target_bound=3.0, k=0.5), "logistic"], ids=["huber", "logistic"])
def test_other_fits_say_nothing_of_it(loss):
    X, y = sample()
    keywords = {"classes": (-1, 1)} if loss == "logistic" else {"budget": dpci.PureDP(40.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpci.MomentNoiseWarning)
        warnings.simplefilter("error", dpci.CurvatureWarning)
        result = dpci.fit(X, np.where(y > 0.0, 1, -1) if loss == "logistic" else y, loss=loss, **{**LOUD, **keywords})
    assert (curvature_noise(result._record) is None) == (loss == "logistic")


@pytest.mark.parametrize(("loss", "width"), [(Huber(target_bound=3.0, k=0.01), 0.01), (Quantile(0.5, 3.0, 0.01), 0.01)])
def test_a_narrow_width_is_warned_of_in_standard_errors(loss, width):
    result, caught = caught_in(loss)
    warning = caught[dpci.CurvatureWarning]
    assert f"={width:g} at which the {loss.name} loss has curvature must be at least 1 standard errors" in str(warning)
    # Rows weighted by their squared slopes, which the constant alone tells.
    weight = result.gradient_cov[-1, -1]
    error = np.sqrt((result.gradient_cov * result.cov).sum() / weight)
    assert warning.room == result.curvature_room == pytest.approx(width / error)
    assert "standard errors of the predictors" in " ".join(result.privacy["interval_notes"])


@pytest.mark.parametrize(("slope", "rho", "named"), [(1.3, 8.0, True), (0.0, 8.0, False), (1.3, 8000.0, False)])
def test_a_rare_column_that_the_ridge_pulls_is_named_where_noise_hides_its_error(slope, rho, named):
    rng, n = np.random.default_rng(1), 7000
    X = 0.7 * np.column_stack([rng.random(n) < 0.03, rng.random(n) < 0.5])
    y = np.clip(slope * X[:, 0] + 0.05 * rng.normal(size=n), -1.0, 1.0)
    keywords = {"loss": "squared", "radius": 1.0, "row_norm": 1.0, "l2_strength": 0.04, "seed": 1}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dpci.fit(X, y, budget=dpci.ZCDP(rho), **keywords)
    found = [w.message for w in caught if w.category is dpci.MomentNoiseWarning]
    assert len(found) == named
    if named:
        assert str(found[0]).startswith("the ridge pulls x0 so far")
        assert found[0].ratio == pulled_errors(record_of(result), result.std_errors).max() > TRUSTED_PULL
