"""Exact minimisers of risks by 50 digits or exact arithmetic, and how far a point is from being optimal."""

import math
from dataclasses import dataclass
from fractions import Fraction

import mpmath
import numpy as np
from scipy import optimize

import dpci
from dpci import losses, lowlevel


def unoptimality(X, y, l2_strength, params, radius=np.inf):
    """Least ||g + nu params|| / l2_strength over subgradients g and nu >= 0, by SciPy's bounded least squares.

    Rows within 1e-9 of their kink take any multiplier: a bound on the distance to the minimiser up to that.
    """
    signed = X * y[:, None]
    z = signed @ params
    at_kink = np.abs(z - 1.0) <= 1e-9
    rows, counts = np.unique(signed[at_kink], axis=0, return_counts=True)
    gradient = l2_strength * params - signed[z < 1.0 - 1e-9].sum(axis=0) / len(y)
    columns, upper = rows.T * counts / len(y), np.ones(len(rows))
    if np.linalg.norm(params) > radius * (1.0 - 1e-12):
        columns, upper = np.column_stack([columns, -params]), np.append(upper, np.inf)
    if not len(upper):
        return np.linalg.norm(gradient) / l2_strength
    found = optimize.lsq_linear(columns, gradient, (0.0, upper), method="bvls", tol=1e-15)
    return np.linalg.norm(columns @ found.x - gradient) / l2_strength


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


DIGITS = 55


@dataclass
class Problem:
    """Distinct rows with the number of records that each stands for, and the rest of an objective."""

    rows: np.ndarray
    targets: np.ndarray
    counts: np.ndarray
    loss: object
    l2_strength: float
    linear_term: np.ndarray
    radius: float | None = None
    solver: str = "auto"
    note: str = ""

    def minimize(self, tolerance):
        """The library's minimiser."""
        return lowlevel.minimize_erm(
            np.repeat(self.rows, self.counts, axis=0), np.repeat(self.targets, self.counts), loss=self.loss,
            l2_strength=self.l2_strength, linear_term=self.linear_term, radius=self.radius, solver=self.solver,
            tolerance=tolerance,
        )  # fmt: skip


def sigmoid(t):
    return 1 / (1 + mpmath.exp(-t))


def negative_binomial(loss, u, y):
    # The core takes the logarithm of k for the f64 number nearest to it.
    size = 1.0 / loss.dispersion
    p = sigmoid(u - mpmath.mpf(math.log(size)))
    return (y + size) * p - y, (y + size) * p * (1 - p)


def probit(_, u, y):
    m = mpmath.npdf(y * u) / mpmath.ncdf(y * u)
    return -y * m, m * (m + y * u)


def cloglog(_, u, y):
    s = mpmath.exp(u)
    a = s / mpmath.expm1(s)
    return (s, s) if y < 0 else (-a, a * (s + a - 1))


def huber(loss, u, y):
    k = mpmath.mpf(loss.k)
    return max(min(u - y, k), -k), mpmath.mpf(abs(u - y) <= k)


def quantile(loss, u, y):
    p = sigmoid((u - y) / mpmath.mpf(loss.s))
    return p - mpmath.mpf(loss.quantile), p * (1 - p) / mpmath.mpf(loss.s)


FAMILIES = {
    losses.Poisson: lambda _, u, y: (mpmath.exp(u) - y, mpmath.exp(u)), losses.NegativeBinomial: negative_binomial,
    losses.Probit: probit, losses.CLogLog: cloglog, losses.Huber: huber, losses.Quantile: quantile,
}  # fmt: skip


def derivatives(loss, u, y):
    """First and second derivative of a loss in the linear predictor, in the precision of mpmath."""
    match loss:
        case losses.Logistic():
            p = sigmoid(-y * u)
            return -y * p, p * (1 - p)
        case losses.SmoothHinge(s):
            p = sigmoid((1 - y * u) / mpmath.mpf(s))
            return -y * p, p * (1 - p) / mpmath.mpf(s)
        case losses.HuberHinge(h):
            h = mpmath.mpf(h)
            depth = (1 + h - y * u) / (2 * h)
            inside = 0 <= depth <= 1
            return -y * min(max(depth, 0), 1), (1 / (2 * h) if inside else mpmath.mpf(0))
        case losses.Squared():
            return 2 * (u - y), mpmath.mpf(2)
    if type(loss) in FAMILIES:
        return FAMILIES[type(loss)](loss, u, y)
    # The soft logistic loss, whose name is its only public form.
    p = sigmoid(u)
    return p - y, p * (1 - p)


class ExactRisk:
    """A problem in mpmath numbers."""

    def __init__(self, problem):
        number = mpmath.mpf
        self.loss = problem.loss
        self.rows = [[number(float(x)) for x in row] for row in problem.rows]
        self.targets = [number(float(y)) for y in problem.targets]
        self.counts = [int(c) for c in problem.counts]
        self.linear = [number(float(a)) for a in problem.linear_term]
        self.strength = number(float(problem.l2_strength))
        self.radius = None if problem.radius is None else number(float(problem.radius))
        self.dim = len(self.linear)

    def gradient_and_hessian(self, point):
        n, dim = sum(self.counts), range(self.dim)
        gradient = [self.strength * t + a for t, a in zip(point, self.linear, strict=True)]
        hessian = [[self.strength * (i == j) for j in dim] for i in dim]
        for row, y, count in zip(self.rows, self.targets, self.counts, strict=True):
            slope, curvature = derivatives(self.loss, mpmath.fdot(row, point), y)
            slope, curvature = count * slope / n, count * curvature / n
            for i in dim:
                gradient[i] += slope * row[i]
                for j in dim:
                    hessian[i][j] += curvature * row[i] * row[j]
        return gradient, hessian

    def multiplier(self, point, gradient):
        """Multiplier of the sphere; 0 where the point lies inside or is not pressed against it."""
        if self.radius is None or length(point) < self.radius * (1 - mpmath.mpf(10) ** -30):
            return mpmath.mpf(0)
        return max(-mpmath.fdot(gradient, point) / self.radius**2, mpmath.mpf(0))

    def residual(self, point):
        gradient, hessian = self.gradient_and_hessian(point)
        nu = self.multiplier(point, gradient)
        return [g + nu * t for g, t in zip(gradient, point, strict=True)], hessian, nu

    def on_sphere(self, point):
        scale = self.radius / length(point)
        return [t * scale for t in point]

    def minimum(self, guess):
        """The minimiser from a guess near it, and a bound on its error."""
        point = [mpmath.mpf(float(t)) for t in guess]
        if self.radius is not None and length(point) > self.radius * (1 - mpmath.mpf(10) ** -9):
            point = self.on_sphere(point)
        residual, hessian, nu = self.residual(point)
        for _ in range(80):
            error = length(residual) / self.strength
            if error < mpmath.mpf(10) ** -38 * (1 + length(point)):
                break
            matrix = mpmath.matrix(hessian)
            for i in range(self.dim):
                matrix[i, i] += nu
            step = list(mpmath.lu_solve(matrix, mpmath.matrix([-r for r in residual])))
            if nu > 0:
                across = list(mpmath.lu_solve(matrix, mpmath.matrix(point)))
                share = mpmath.fdot(point, step) / mpmath.fdot(point, across)
                step = [s - share * a for s, a in zip(step, across, strict=True)]
            scale = mpmath.mpf(1)
            for _ in range(60):
                moved = [t + scale * s for t, s in zip(point, step, strict=True)]
                if self.radius is not None and (nu > 0 or length(moved) > self.radius):
                    moved = self.on_sphere(moved)
                found = self.residual(moved)
                if length(found[0]) < length(residual):
                    break
                scale /= 2
            point, (residual, hessian, nu) = moved, found
        return point, length(residual) / self.strength


def length(vector):
    return mpmath.sqrt(mpmath.fdot(vector, vector))


LOSSES = [
    losses.Logistic(),
    losses.HuberHinge(h=0.5),
    losses.HuberHinge(h=1e-3),
    losses.SmoothHinge(s=0.1),
    losses.SmoothHinge(s=1e-2),
    losses.Squared(target_bound=1.0),
    "soft_logistic",
    losses.Hinge(),
]


def random_problem(rng):
    """An ordinary problem, or one that is hard in a few ways at once."""
    dim = int(rng.integers(1, 5))
    n = int(rng.integers(2, 13))
    rows = rng.standard_normal((n, dim))
    notes = []
    if rng.random() < 0.4:
        # Rows that differ by little in all but one direction.
        rows = rows * 10.0 ** rng.uniform(-9, 0, dim)
        notes.append("ill-conditioned")
    if rng.random() < 0.7:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    loss = LOSSES[rng.integers(len(LOSSES))]
    hinge = isinstance(loss, losses.Hinge)
    if isinstance(loss, losses.Squared):
        targets = rng.uniform(-1, 1, n)
    elif loss == "soft_logistic":
        targets = rng.uniform(0, 1, n)
    else:
        targets = rng.choice([-1.0, 1.0], n)
    counts = np.ones(n, dtype=int)
    draw = rng.random()
    if hinge:
        # Its exact solution is found for single records without a linear term.
        draw = 1.0
    elif draw < 0.02:
        counts = rng.integers(1, 20_000, n)
        notes.append("many records")
    if 0.02 <= draw < 0.5:
        counts = rng.integers(1, 30, n)
    strength = 10.0 ** rng.uniform(-10 if rng.random() < 0.3 else -3, 1)
    if strength < 1e-6:
        notes.append("tiny λ")
    linear = np.zeros(dim)
    draw = rng.random()
    if not hinge and draw < 0.6:
        linear = rng.standard_normal(dim) * 10.0 ** rng.uniform(-6, 3 if draw < 0.1 else 0)
    radius = float(10.0 ** rng.uniform(-2, 1)) if rng.random() < 0.35 else None
    solver = "auto" if radius is not None or hinge else SOLVERS[rng.integers(len(SOLVERS))]
    return Problem(rows, targets, counts, loss, strength, linear, radius, solver, ", ".join(notes))


SOLVERS = ["auto", "newton", "preconditioned", "lbfgs"]


def distance_to_minimum(problem, found):
    """The distance of a point to the minimiser, rounded up; None where the minimiser is not known to 38 digits."""
    if isinstance(problem.loss, losses.Hinge):
        data = problem.rows, problem.targets, problem.l2_strength
        exact = exact_minimum(*data, found.params, radius=problem.radius)
        return None if exact is None else distance(found.params, exact) * (1 + 1e-15)
    with mpmath.workdps(DIGITS):
        exact, error = ExactRisk(problem).minimum(found.params)
        gap = length([mpmath.mpf(float(p)) - e for p, e in zip(found.params, exact, strict=True)])
        if error > mpmath.mpf(10) ** -37 * (1 + length(exact)):
            return None
        return float(gap + error) * (1 + 1e-15)


def certified(problem, rng):
    """The library's answer at a tolerance that it meets, from a random one on upwards; and how many it missed."""
    missed = 0
    for exponent in np.arange(rng.choice([-15.0, -13.0, -11.0, -8.0, -4.0]), 20.0):
        try:
            return problem.minimize(10.0**exponent), missed
        except dpci.NotConverged:
            missed += 1
    raise AssertionError(f"no tolerance was met: {problem}")
