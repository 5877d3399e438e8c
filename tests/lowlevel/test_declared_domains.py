"""Building blocks keep losses within what is declared of them: no predictor beyond the bound, no Hessian at a kink."""

import numpy as np
import pytest
from scipy import sparse

from dpci import lowlevel
from dpci.errors import InvalidInput
from dpci.losses import Custom

rng = np.random.default_rng(3)
X = rng.uniform(-1.0, 1.0, (40, 2))
Y = np.clip(X @ [0.4, -0.2] + 0.1 * rng.standard_normal(40), -1.0, 1.0)
# A radius of .6835 keeps the predictors within 1.
LONGEST = np.linalg.norm(np.column_stack([X, np.full(40, 0.5)]), axis=1).max()
by_storage = pytest.mark.parametrize("rows", [X, sparse.csr_array(X)], ids=["dense", "sparse"])


def bounded(seen=None):
    """The squared loss, declared for |u| <= 1 only; ``seen`` takes the predictors that it was shown."""

    def shown(f):
        def g(u, y):
            if seen is not None:
                seen.append(np.abs(u).max())
            return f(u, y)

        return g

    return Custom(
        shown(lambda u, y: (u - y) ** 2), shown(lambda u, y: 2.0 * (u - y)), shown(lambda u, _y: np.full_like(u, 2.0)),
        slope_bound=4.0, curvature_bound=2.0, target_bounds=(-1.0, 1.0), predictor_bound=1.0,
    )  # fmt: skip


@by_storage
@pytest.mark.parametrize("function", [lowlevel.erm_value_and_gradient, lowlevel.hessian_and_gradient_cov])
def test_points_beyond_the_bound_are_refused(function, rows):
    seen = []
    loss = bounded(seen)
    keywords = {"l2_strength": 0.1, "intercept": 0.5}
    inside = function(rows, Y, np.array([0.4, 0.4, 0.1]), loss=loss, **keywords)
    np.testing.assert_allclose(
        inside[1], function(rows, Y, np.array([0.4, 0.4, 0.1]), loss="squared", **keywords)[1], rtol=1e-12
    )
    with pytest.raises(InvalidInput, match=r"linear predictor must be at most predictor_bound=1 .* got -?[1-9]"):
        function(rows, Y, np.array([4.0, 4.0, 0.0]), loss=loss, **keywords)
    assert max(seen) <= 1.0


@by_storage
@pytest.mark.parametrize("radius", [None, 10.0, 0.6845])
def test_domains_beyond_the_bound_are_refused(rows, radius):
    seen = []
    given = "None" if radius is None else f"{radius:g}"
    message = rf"predictor_bound=1 requires a radius of at most {1.0 / LONGEST:.6f}.* got radius={given}"
    with pytest.raises(InvalidInput, match=message):
        lowlevel.minimize_erm(rows, Y, l2_strength=0.1, loss=bounded(seen), radius=radius, intercept=0.5)
    assert max(seen) <= 1.0


@by_storage
def test_a_domain_that_just_reaches_the_bound_is_not(rows):
    radius = 1.0 / LONGEST
    keywords = {"l2_strength": 1e-3, "radius": radius, "intercept": 0.5}
    # The slopes of a custom loss may err by 64 units in the last place of their bound, which the certificate counts.
    found = lowlevel.minimize_erm(rows, Y, loss=bounded(), tolerance=1e-9, **keywords)
    peer = lowlevel.minimize_erm(rows, Y, loss="squared", **keywords)
    np.testing.assert_allclose(found.params, peer.params, atol=1e-9)


def test_the_hinge_has_no_hessian():
    with pytest.raises(InvalidInput, match="moments require a loss with a second derivative, got the hinge loss"):
        lowlevel.hessian_and_gradient_cov(X, np.sign(Y), np.zeros(2), l2_strength=0.1, loss="hinge")


@pytest.mark.parametrize("radius", [1e-100, 1e-200, 1e-300])
def test_balls_too_small_for_floats_are_refused_in_numbers(radius):
    with pytest.raises(InvalidInput, match="radius must be between 1e-60 and 1e60 with the hinge, got radius="):
        lowlevel.minimize_erm(X, np.sign(Y), l2_strength=0.1, loss="hinge", radius=radius)


def test_a_solver_without_a_ball_is_refused_in_the_callers_words():
    with pytest.raises(InvalidInput, match=r'got solver="newton" and radius=0\.1$'):
        lowlevel.minimize_erm(X, np.sign(Y), l2_strength=0.1, radius=0.1, solver="newton")
    with pytest.raises(InvalidInput, match=r'got solver="ball" and radius=None$'):
        lowlevel.minimize_erm(X, np.sign(Y), l2_strength=0.1, solver="ball")
