"""Attacks on the last digits of a released number: which data can have led to exactly this double."""

import math

# Uniforms of the textbook: multiples of 2^-53, as `random.random` gives them.
GRID = 2.0**53
# Integers that are tried around the one that the number points to.
REACH = 40


def textbook_laplace(value, scale, rng):
    """`value` plus Laplace noise by the inverse of its distribution function, all in double precision."""
    noise = -scale * math.log(rng.integers(1, 2**53, endpoint=True) / GRID)
    return value + (noise if rng.integers(2) else -noise)


def in_textbook_support(output, value, scale):
    """Whether some uniform of the grid takes `textbook_laplace` from the value to this output (Mironov 2012)."""
    noise = output - value
    sign = math.copysign(1.0, noise)
    center = round(GRID * math.exp(-abs(noise) / scale))
    # Integers whose noise rounds to the same output; where there are more, no output is left out.
    if center * math.ulp(output) / scale > REACH / 4:
        return True
    return any(
        value - sign * scale * math.log(k / GRID) == output
        for k in range(max(1, center - REACH), min(2**53, center + REACH) + 1)
    )


def excludes(output, value):
    """Whether no double added to `value` in double precision gives this output (Haney et al. 2022, precision attacks).

    For an output nearer to zero than half the value, the sum is exact, and the noise is no smaller than half the value:
    so the output is a multiple of the last digit that a double of half that size has.
    """
    if not 2.0 * abs(output) < abs(value):
        return False
    # math.remainder is exact.
    return math.remainder(output, math.ulp(value) / 2.0) != 0.0
