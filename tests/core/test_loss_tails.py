"""The tails of the smooth hinge against numbers of fifty digits."""

import mpmath
import numpy as np
import pytest

import dpci

UNIT = 2.0**-53


@pytest.mark.parametrize("s", [0.3, 0.02, 2e-3, 1.4e-3, 1e-3])
@pytest.mark.parametrize("radius", [0.0, 0.1, 0.9])
def test_tails_err_by_what_the_seal_allows(s, radius):
    """All margins are below 1: the greatest curvature is at the end of a tail. Beyond t = 660 it is the allowance.

    A release limits what is computed to the supremum.
    """
    core = dpci.losses.SmoothHinge(s=s).to_core()
    u = np.linspace(-radius, radius, 201)
    _, slopes, curvatures = core.evaluate(u, np.ones(len(u)))
    supremum = core.sup_curvature(radius)
    least_t = (1.0 - radius) / s
    allowed = 1.0 if least_t > 660.0 else (256.0 + 4.0 * least_t) * UNIT
    with mpmath.workdps(50):
        for x, slope, curvature in zip(u, slopes, curvatures, strict=True):
            tail = mpmath.exp((mpmath.mpf(float(x)) - 1) / mpmath.mpf(s))
            exact = tail / (1 + tail) ** 2 / mpmath.mpf(s)
            assert exact <= supremum
            assert abs(mpmath.mpf(min(float(curvature), supremum)) - exact) <= allowed * supremum
            assert abs(mpmath.mpf(float(slope)) + 1 / (1 + tail)) <= 20.0 * UNIT
