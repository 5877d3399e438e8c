"""Hinge risks in exact arithmetic: a guess of the kinks gives a minimiser, the conditions of optimality prove it."""

from fractions import Fraction

import mpmath
import numpy as np

mpmath.mp.dps = 60


def solve(matrix, right):
    """Solution of a square system, by Gaussian elimination with pivots; None where it is singular."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        if rows[k][k] == 0:
            return None
        for i in range(n):
            if i != k and rows[i][k] != 0:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def dot(a, b):
    """Product of two vectors of exact numbers."""
    return sum((x * y for x, y in zip(a, b, strict=True)), start=a[0] * 0)


def exact_minimum(X, y, l2_strength, guess, *, radius=None, tolerance=1e-7):
    """The minimiser to 60 digits, or None where the guess does not lead to one.

    Rows whose margin is within the tolerance of 1 at the guess are put at their kink, all others on their side. The
    point that follows is returned only if it fulfils the conditions of optimality, which are sufficient; so it does
    not matter where the guess comes from.
    """
    number = Fraction if radius is None else mpmath.mpf
    rows = [[number(float(t)) * int(s) for t in x] for x, s in zip(X, y, strict=True)]
    d, ridge = len(rows[0]), number(float(l2_strength)) * len(rows)
    margins = np.asarray(y) * (np.asarray(X) @ guess)
    bent = [i for i in range(len(rows)) if abs(margins[i] - 1) <= tolerance]
    pull = [
        sum((rows[i][j] for i in range(len(rows)) if margins[i] < 1 - tolerance), start=number(0)) for j in range(d)
    ]
    gram = [[dot(rows[i], rows[k]) for k in bent] for i in bent]
    # Across the kinks the point is c/ridge, along them a: margins of 1 determine a, the pull determines c.
    along = solve(gram, [number(1)] * len(bent))
    taken = solve(gram, [dot(rows[i], pull) for i in bent])
    if along is None or taken is None:
        return None
    part = [sum((w * rows[i][j] for w, i in zip(along, bent, strict=True)), start=number(0)) for j in range(d)]
    across = [
        p - sum((w * rows[i][j] for w, i in zip(taken, bent, strict=True)), start=number(0)) for j, p in enumerate(pull)
    ]
    if radius is not None:
        norm = np.linalg.norm(guess)
        if norm > 0.999999 * radius:
            room = mpmath.mpf(float(radius)) ** 2 - dot(part, part)
            free, ridge = ridge, mpmath.sqrt(dot(across, across) / room) if room > 0 else number(0)
            if ridge < free:
                return None
    params = [a + c / ridge for a, c in zip(part, across, strict=True)]
    multipliers = [ridge * a - t for a, t in zip(along, taken, strict=True)]
    sides = all((dot(row, params) < 1) == (margins[i] < 1) for i, row in enumerate(rows) if i not in bent)
    inside = radius is None or dot(params, params) <= number(float(radius)) ** 2 * (1 + mpmath.mpf(10) ** -50)
    return params if sides and inside and all(0 <= b <= 1 for b in multipliers) else None


def distance(params, exact):
    """Euclidean distance of floating-point parameters to exact ones."""
    number = type(exact[0])
    gaps = [number(float(p)) - e for p, e in zip(params, exact, strict=True)]
    square = dot(gaps, gaps)
    return float(mpmath.sqrt(mpmath.mpf(square.numerator) / square.denominator if number is Fraction else square))
