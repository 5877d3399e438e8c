"""Release noise lies within its stated distance of the ideal draw, computed in 50 digits from the same random words."""

import numpy as np
import pytest

from dpci import _core
from support.exact_noise import ELEMENTARY, LAWS, distances, worst_error

DIMS = (1, 2, 3, 6)


@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("name", LAWS)
def test_no_draw_is_further_from_the_ideal_one_than_its_bound(name, dim):
    n = {1: 600, 2: 300, 3: 150, 6: 50}[dim]
    found = distances(name, dim, n, seed=dim)
    assert found.shape == (n, 2)
    # The bound holds up to the tail; for its own size, too, no draw is beyond it, and the worst are not far below.
    assert found[:, 0].max() < 1.0
    assert 0.005 < found[:, 1].max() < 1.0


def test_the_bound_holds_where_a_dimension_is_great():
    assert distances("spherical_laplace", 2000, 1, seed=9).max() < 1.0


def test_bounds_do_not_grow_with_the_length_of_a_sum():
    """Relative to a tail bound of the order of the noise, ten million numbers cost no more digits than ten."""
    for name, power in [("gaussian", 0.5), ("spherical_laplace", 1.0)]:
        small, great = (_core.Testing.bounded_noise(name, 0, dim, 1.0, 1)[1] for dim in (10**4, 10**7))
        assert great < 1.05 * small * 1000.0**power


def test_bounds_follow_the_scale():
    for name in LAWS:
        bounds = [_core.Testing.bounded_noise(name, 0, 5, scale, 1)[1] for scale in (1.0, 1e-12, 1e12)]
        np.testing.assert_allclose(bounds[1:], [1e-12 * bounds[0], 1e12 * bounds[0]], rtol=1e-12)


@pytest.mark.parametrize("name", ["cos", "log", "log1p", "sin"])
def test_elementary_functions_err_by_less_than_assumed(name):
    assert worst_error(name, 26_000) < 0.75 * ELEMENTARY


@pytest.mark.parametrize("name", LAWS)
def test_impossible_laws_are_refused(name):
    for dim, scale in [(0, 1.0), (2, float("nan")), (2, 0.0), (2, -1.0)]:
        with pytest.raises(ValueError, match="must be"):
            _core.Testing.bounded_noise(name, 1, dim, scale, 1)


def test_discrete_draws_are_whole_and_of_both_signs():
    for name in ("laplace", "gaussian"):
        draws = _core.Testing.discrete_noise(name, 1000, 3, 1)
        assert {type(k) for k in draws} == {int}
        assert min(draws) < 0 < max(draws)
        with pytest.raises(ValueError, match="from 1 to"):
            _core.Testing.discrete_noise(name, 1, 0, 1)
    # Beyond 64 bits nothing is lost.
    assert max(_core.Testing.discrete_noise("laplace", 20_000, 2**60, 1)) > 2**63
