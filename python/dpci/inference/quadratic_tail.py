"""Tails of weighted sums of chi-squares, by a contour integral of their characteristic function.

For ``Q = sum_i l_i Z_i²`` with independent standard normal Z and weights in [0, 1], the largest of them 1, and
``M(p) = E exp(-pQ) = prod_i (1 + 2 p l_i)^(-1/2)``, which is analytic off the cut (-inf, -1/2],

    P(Q > q) = -1/(2 pi i) * integral of exp(pq) M(p) dp/p     over a contour that leaves the cut left and 0 right,
    P(Q <= q) = 1/(2 pi i) * integral of exp(pq) M(p) dp/p     over one that leaves both left.

The contour is the parabola ``p = -1/2 + x (1 + iu)²``, through the saddle point x of the integrand, or at some
distance from the pole 0 where the saddle point is too near to it (Rice 1980; Weideman & Trefethen 2007). Nothing
cancels, so that the tail keeps its relative accuracy however small it is. The trapezoid rule in u converges
geometrically; the steps are halved until two rules agree.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci.errors import DpciError, NotConverged

_F64 = NDArray[np.float64]

# Logarithms of what is left out of the mixing law on the left, where tails are least, and on the right, where they are
# greatest: nothing that a float can tell from 0.
_LEFT_CUT, _RIGHT_CUT = -38.0, -760.0
# Newton's next error is below rounding after such a step; bisection alone would need no more steps than these.
_LAST_STEP, _NEWTON_STEPS = 1e-9, 100

TOLERANCE = 1e-10
"""Two rules agree to this share of a tail, the second of which is then exact to rounding."""

# Where exp(-_DECAY) of the integrand is left, the contour ends.
_DECAY = 42.0
_FIRST_NODES, _MOST_NODES = 96, 6144
_BISECTIONS = 30
# Factors that are multiplied before a logarithm is taken: their product is far within the range of floats.
_FACTORS = 6
# A chi-square with one degree of freedom is below it with probability 3e-17, which rounding hides in a tail near 1.
_LEAST = 1e-33
# Floats below it have fewer digits than the tolerance.
_TINY = 1e-297
# Complex numbers that are held at once.
_BLOCK = 2**20


def chi2_sum_tail(weights: _F64, q: float) -> _F64:
    """Return P(sum_j weights[i, j] chi²_1 > q) for each row i; weights (n, m) at least 0, q > 0."""
    greatest = weights.max(axis=1)
    # A sum of no weight is 0, and one that is far below q never reaches it: exp(-745) is no float.
    tails = np.where(_LEAST * greatest > q, 1.0, 0.0)
    reachable = np.flatnonzero((greatest > q / 1e5) & (tails == 0.0))
    size = max(1, _BLOCK // (2 * _FIRST_NODES * weights.shape[1]))
    for start in range(0, len(reachable), size):
        rows = reachable[start : start + size]
        tails[rows] = _unit_tails(weights[rows] / greatest[rows, None], q / greatest[rows])
    return tails


def _unit_tails(weights: _F64, q: _F64) -> _F64:
    upper = q > weights.sum(axis=1)
    contour = _Contour(weights, q, _crossing(weights, q, upper))
    n_nodes = _FIRST_NODES
    total = contour.sums(np.arange(n_nodes + 1) / n_nodes)
    before = total / n_nodes
    while n_nodes < _MOST_NODES:
        # Twice the nodes: those of before, and the ones between.
        total = total + contour.sums((np.arange(n_nodes) + 0.5) / n_nodes)
        n_nodes *= 2
        after = total / n_nodes
        if np.all(np.abs(after - before) <= TOLERANCE * np.maximum(np.abs(after), _TINY)):
            return np.asarray(np.clip(np.where(upper, -after, 1.0 - after), 0.0, 1.0))
        before = after
    message = f"the tail of a quadratic form must converge within {_MOST_NODES} nodes, got one that does not"
    raise DpciError(message, code=NotConverged.code)


def _crossing(weights: _F64, q: _F64, upper: NDArray[np.bool_]) -> _F64:
    """Return where the contour crosses the real line, as the distance x from the end of the cut."""
    # At the saddle point sum_i l_i / (1 - l_i + 2 x l_i) = q; the greatest weight alone, and m of them, bracket it.
    low, high = np.log(0.5 / q), np.log(0.5 * weights.shape[1] / q)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        slope = (weights / (1.0 - weights + 2.0 * np.exp(middle)[:, None] * weights)).sum(axis=1)
        low, high = np.where(slope > q, middle, low), np.where(slope > q, high, middle)
    saddle = np.exp(0.5 * (low + high))
    # The pole is at 1/2; within a standard deviation of it the integrand changes little.
    room = np.minimum(0.25, 1.0 / np.sqrt(2.0 * (weights**2).sum(axis=1)))
    return np.asarray(np.where(upper, np.minimum(saddle, 0.5 - room), np.maximum(saddle, 0.5 + room)))


class _Contour:
    """The integrand along the contours of several quadratic forms, whose weights are the rows of ``weights``."""

    def __init__(self, weights: _F64, q: _F64, x: _F64) -> None:
        self.weights, self.q, self.x = weights, q, x
        self.end = np.sqrt(_DECAY / (q * x))

    def sums(self, at: _F64) -> _F64:
        """Return the sum of the integrand at these shares of the way to the end, the crossing at 0 for a half."""
        x, q = self.x[:, None], self.q[:, None]
        ray = 1.0 + 1j * (self.end[:, None] * at)
        shift = x * ray * ray  # p + 1/2
        log_value = (shift - 0.5) * q
        for first in range(0, self.weights.shape[1], _FACTORS):
            log_value -= 0.5 * _log_product(self.weights[:, first : first + _FACTORS], shift)
        with np.errstate(under="ignore"):
            values = (np.exp(log_value) * ray / (shift - 0.5)).real
        values[:, at == 0.0] *= 0.5
        return np.asarray(values.sum(axis=1) * self.end * (2.0 * self.x / math.pi))


def _log_product(weights: _F64, shift: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return the sum of the logarithms of 1 - l + 2 l shift over the columns l of ``weights``.

    One logarithm of the product is far quicker. The factors are in the upper half plane, so the argument of the
    product grows by less than pi with each, and passes pi where the product leaves the upper half plane.
    """
    product = np.ones_like(shift)
    turns = np.zeros(shift.shape)
    for column in weights.T:
        above = product.imag >= 0.0
        product *= (1.0 - column)[:, None] + 2.0 * column[:, None] * shift
        turns += above & (product.imag < 0.0)
    return np.asarray(np.log(product) + 2j * math.pi * turns)


def mixture_tail(distance: _F64, std_devs: _F64, weights: _F64) -> _F64:
    """Return P(|e| >= distance) for centred mixtures of normal laws, one a row."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = distance[:, None] / (math.sqrt(2.0) * std_devs)
    # An error that is surely 0 is at 0.
    return np.asarray(special.erfc(np.where(np.isnan(scaled), 0.0, scaled)) @ weights)


def mixture_quantile(std_devs: _F64, weights: _F64, beyond: float) -> _F64:
    """Solve P(|error| >= q) = beyond by Newton's method in the logarithm of the tail, or bisection where it leaves."""
    unit = math.sqrt(2.0) * float(special.erfcinv(beyond))
    low, high = unit * std_devs.min(axis=1), unit * std_devs.max(axis=1)
    q = unit * np.sqrt(std_devs**2 @ weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_NEWTON_STEPS):
            tail = mixture_tail(q, std_devs, weights)
            low, high = np.where(tail > beyond, q, low), np.where(tail > beyond, high, q)
            density = np.exp(-0.5 * (q[:, None] / std_devs) ** 2) / std_devs @ weights * math.sqrt(2.0 / math.pi)
            newton = q + np.log(tail / beyond) * tail / density
            step = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high)) - q
            q = q + step
            if np.all(np.abs(step) <= _LAST_STEP * q):
                break
    return np.asarray(q)


def mixing_nodes(law: str, dim: int, *, far: float = 2.0) -> tuple[_F64, _F64]:
    """Return nodes and weights of Omega over its mean: one node for Gaussian noise.

    The trapezoid rule in log W, in which the density of W ~ Gamma(k, rate k), k = (dim + 1)/2, is analytic and the rule
    converges geometrically. Steps of ``1/far`` of those that give tails of 1e-12 to 1e-11; 2 is enough for any tail.
    """
    if law == "gaussian":
        return np.ones(1), np.ones(1)
    shape = 0.5 * (dim + 1)
    step = 0.55 / math.sqrt(1.2 * shape + 26.0) / far
    # Left of -(1 + cut/shape), and right of log(1 + cut/shape) + 2, the exponent is below the cuts.
    low = -1.0 + _LEFT_CUT / shape
    high = math.log1p(-_RIGHT_CUT / shape) + 2.0
    log_w = step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)
    log_weight = shape * (log_w - np.expm1(log_w))
    kept = log_weight > np.where(log_w < 0.0, _LEFT_CUT, _RIGHT_CUT)
    weights = np.exp(log_weight[kept])
    return np.exp(log_w[kept]), weights / weights.sum()


def ratio_nodes(shape: float, n_nodes: int = 8) -> tuple[_F64, _F64]:
    """Return nodes and weights of W: Gauss's rule for its gamma law, exact for polynomials up to degree 2n - 1.

    From the eigenvalues of the Jacobi matrix of the generalised Laguerre polynomials (Golub & Welsch 1969).
    """
    if math.isinf(shape):
        return np.ones(1), np.ones(1)
    i = np.arange(n_nodes)
    off = np.sqrt(i[1:] * (i[1:] + shape - 1.0))
    nodes, vectors = np.linalg.eigh(np.diag(2.0 * i + shape) + np.diag(off, 1) + np.diag(off, -1))
    return nodes / shape, vectors[0] ** 2
