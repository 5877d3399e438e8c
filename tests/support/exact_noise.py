"""Release noise in 50 digits from the same random words: what the core would return without rounding."""

import math
import random

import numpy as np
from mpmath import mp, mpf

from dpci import _core

# Two units in the last place: what the bounds assume of the elementary functions.
ELEMENTARY = 2.0**-51
WORD = 64
# A tail is left with probability exp(-694) < 2**-1001.
TAIL = 694.0


class Words:
    """Reads what the samplers read: words, long uniforms, exponential and normal numbers.

    The bits of a uniform number after its first 128 are nobody's in the core; here they are drawn apart.
    """

    def __init__(self, words):
        self.words = iter(words.tolist())
        self.rest = random.Random(1)

    def coin(self):
        return next(self.words) >> 63

    def uniform(self):
        exponent = 0
        while not (word := next(self.words)):
            exponent += WORD
        exponent += WORD - word.bit_length()
        bits = (next(self.words) << WORD | next(self.words)) | 1 << 127
        return mp.ldexp(bits + mpf(self.rest.random()), -128 - exponent)

    def exponential(self):
        near_one = self.coin()
        w = self.uniform() / 2
        return -mp.log1p(-w) if near_one else -mp.log(w)

    def normals(self, n):
        """n normal numbers, and half the sum of the squares of those drawn."""
        values, half_squares = [], mpf(0)
        while len(values) < n:
            half_square = self.exponential()
            angle = mp.pi / 4 * self.uniform()
            x, y = mp.sqrt(2 * half_square) * mp.cos(angle), mp.sqrt(2 * half_square) * mp.sin(angle)
            x, y = (-x if self.coin() else x), (-y if self.coin() else y)
            values += [x, y] if self.coin() else [y, x]
            half_squares += half_square
        return values[:n], half_squares


def norm(values):
    return mp.sqrt(mp.fsum(x * x for x in values))


def sum_tail(n):
    return n + math.sqrt(2.0 * n * TAIL) + TAIL


# Each law: the ideal draw, and its size over the size that it leaves with probability below 2**-1000.


def gaussian(words, dim, scale):
    values, half_square = words.normals(dim)
    tail = math.sqrt(dim + dim % 2) + math.sqrt(2.0 * TAIL)
    return [scale * x for x in values], mp.sqrt(2 * half_square) / tail


def laplace(words, dim, scale):
    values = []
    for _ in range(dim):
        size = words.exponential()
        values.append(-size if words.coin() else size)
    tail = min(sum_tail(dim), math.sqrt(dim) * math.log(dim) + 2.0 * (TAIL + 1.0))
    return [scale * x for x in values], norm(values) / tail


def spherical_laplace(words, dim, scale):
    radius = mp.fsum(words.exponential() for _ in range(dim))
    direction = [mpf(1 if words.coin() else -1)] if dim == 1 else words.normals(dim)[0]
    length = norm(direction)
    return [scale * radius * x / length for x in direction], radius / sum_tail(dim)


def square_laplace(words, dim, scale):
    values, share = spherical_laplace(words, dim * dim, scale)
    return [(values[e] + values[(e % dim) * dim + e // dim]) / 2 for e in range(dim * dim)], share


def matrix_laplace(words, dim, scale):
    total, half_traces = mp.zeros(dim), mpf(0)
    for sign in (1, -1):
        factor = mp.zeros(dim)
        for k in range(dim):
            degrees = dim + 1 - k
            half_square = mp.fsum(words.exponential() for _ in range(degrees // 2))
            values, half_squares = words.normals(dim - 1 - k + degrees % 2)
            half_traces += half_square + half_squares
            if degrees % 2:
                half_square += values.pop() ** 2 / 2
            factor[k, k] = mp.sqrt(2 * half_square)
            for i, x in enumerate(values):
                factor[k + 1 + i, k] = x
        total += sign * (factor * factor.T) / 2
    return [scale * total[e // dim, e % dim] for e in range(dim * dim)], half_traces / sum_tail(dim * (dim + 1))


LAWS = {
    "gaussian": gaussian,
    "laplace": laplace,
    "spherical_laplace": spherical_laplace,
    "square_laplace": square_laplace,
    "matrix_laplace": matrix_laplace,
}


def distances(name, dim, n, seed, scale=0.7):
    """Distances of n draws: distance to the ideal one over the bound, and over its share for that size; (n, 2)."""
    draws, bound = _core.Testing.bounded_noise(name, n, dim, scale, seed)
    width = draws.shape[1]
    words = Words(_core.Testing.simulation_bits(n * (40 + 20 * width), seed))
    found = []
    with mp.workdps(50):
        for draw in draws.tolist():
            ideal, share = LAWS[name](words, dim, mpf(scale))
            distance = norm([mpf(x) - y for x, y in zip(draw, ideal, strict=True)]) / bound
            found.append((float(distance), float(distance / share)))
    return np.array(found)


def arguments(n):
    """Arguments over the greatest that the samplers use: uniform, near one, and of all magnitudes."""
    rng = np.random.default_rng(5)
    m = n // 4
    uniform, near_one = rng.random(m), 1.0 - 0.5 ** rng.uniform(2, 53, m)
    small, tiny = (rng.uniform(0.5, 1.0, m) * 2.0 ** rng.integers(least, 0, m) for least in (-40, -1020))
    return np.concatenate([uniform, near_one, small, tiny])


def worst_error(name, n):
    """Greatest relative error of an elementary function of the core at n arguments."""
    x = arguments(n) * {"log": 0.5, "log1p": -0.5}.get(name, np.pi / 4.0)
    exact = getattr(mp, name)
    with mp.workdps(35):
        pairs = zip(_core.Testing.elementary(name, x).tolist(), x.tolist(), strict=True)
        return max(float(abs(mpf(y) / exact(mpf(z)) - 1)) for y, z in pairs)
