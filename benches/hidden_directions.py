"""Limits of knowledge about single coefficients whose Hessian the noise hides: bounds on better intervals. Not private.

Errors and released matrices follow the linear law with the true matrices, so that coverage is exact but for the draws
of the matrices. "Equal lengths": one length for all coefficients but the intercept, chosen with the truth. "True
spectrum": intervals that know all eigenvalues of the Hessian, and of its eigenvectors only the first. "Posterior":
Hamiltonian Monte Carlo for the Hessian given its noisy release, with positive eigenvalues, columns of unequal scales
and weak correlations, and the mixture of the error's laws over the draws. Prints Markdown; needs the full data files
(DPCI_DATA).
"""

import json
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dpci
from _environments import now
from _timing import commit
from dpci.lowlevel.blocks import gaussian, spherical_laplace, symmetric_gaussian, symmetric_matrix_laplace
from unregularised import Case, cases

_F64 = NDArray[np.float64]
LEVEL, N_ERRORS, N_ITERATIONS, N_WARM, N_LEAPS = 0.95, 40_000, 600, 250, 12


@dataclass(frozen=True)
class Truth:
    """True matrices, and the noise of a fit; `noise` is that of an isometric coordinate of the Hessian."""

    hessian: _F64
    l2_strength: float
    n: int
    variance: float
    """Variance of a coordinate of the noise of the coefficients."""
    noise: float
    pure: bool
    errors: _F64
    """Sorted absolute errors, one column for each coefficient."""

    @property
    def dim(self) -> int:
        """Number of coefficients with the intercept, which is the last."""
        return len(self.hessian)

    @property
    def ideal(self) -> _F64:
        """Half lengths of intervals that know the matrices."""
        return self.errors[int(LEVEL * N_ERRORS)]

    def coverage(self, lengths: _F64) -> _F64:
        """Return the coverage of each coefficient by its half lengths, one row for each release."""
        columns = [np.searchsorted(self.errors[:, j], lengths[:, j]) for j in range(self.dim)]
        return np.mean(columns, axis=1) / N_ERRORS

    def half_lengths(self, variances: _F64) -> _F64:
        """Return quantiles of errors that have one of these variances, equally likely, along the first axis."""
        units = np.sort((self.errors / np.sqrt(np.mean(self.errors**2, axis=0))).ravel())
        grid = np.linspace(0.0, 8.0, 801)
        cdf = np.searchsorted(units, grid) / units.size
        scales = np.sqrt(variances)
        low, high = np.zeros(scales.shape[1:]), 8.0 * scales.max(axis=0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            below = np.interp(middle / scales, grid, cdf).mean(axis=0) < LEVEL
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return high

    def variances(self, data_parts: _F64) -> _F64:
        """Return the variances of errors if the Hessian's data part is this, and the covariance of slopes too."""
        inverse = np.linalg.inv(data_parts + self.l2_strength * np.eye(self.dim))
        sampling = np.einsum("...ij,...jk,...ik->...i", inverse, data_parts, inverse) / self.n
        return sampling + (inverse**2).sum(axis=-1) * self.variance / self.n**2

    def releases(self, count: int) -> _F64:
        """Return noisy data parts of the Hessian."""
        if self.pure:
            noise = symmetric_matrix_laplace(count, self.dim, self.noise / np.sqrt(self.dim + 1.0), 3)
        else:
            noise = symmetric_gaussian(count, self.dim, self.noise, 3)
        return self.hessian - self.l2_strength * np.eye(self.dim) + noise


def truth_of(case: Case) -> Truth:
    """Return the matrices of a population, with the noise of one fit to it."""
    strength = case.l2_strength()
    X, y = case.population.X, case.population.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.DpciWarning)
        fit = dpci.fit(X, y, budget=case.budget, l2_strength=strength, classes=(-1, 1), seed=0)
    coefficients, moments = json.loads(fit.to_json())["steps"]
    design = np.column_stack([X, np.ones(len(X))])
    p = 1.0 / (1.0 + np.exp(-design @ case.population.regularised(strength)))
    dim = design.shape[1]
    hessian = (design * (p * (1.0 - p))[:, None]).T @ design / len(design) + strength * np.eye(dim)
    slopes = design * (p - (np.asarray(y) > 0.0))[:, None]
    root = np.linalg.cholesky(np.cov(slopes.T, bias=True) + 1e-15 * np.eye(dim))
    pure = coefficients["noise"] == "spherical_laplace"
    draw = spherical_laplace if pure else gaussian
    noise = draw(N_ERRORS, dim, coefficients["scale"], 1)
    sampling = gaussian(N_ERRORS, dim, 1.0, 2) @ root.T
    errors = (sampling / np.sqrt(case.n) + noise / case.n) @ np.linalg.inv(hessian)
    return Truth(
        hessian,
        strength,
        case.n,
        coefficients["scale"] ** 2 * (dim + 1.0 if pure else 1.0),
        moments["hessian_scale"] * (np.sqrt(dim + 1.0) if pure else 1.0),
        pure,
        np.sort(np.abs(errors), axis=0),
    )


def equal(truth: Truth, lengths: _F64) -> _F64:
    """Return these half lengths for all coefficients, one row for each, with the ideal one of the intercept."""
    rows = np.repeat(lengths[:, None], truth.dim, axis=1)
    rows[:, -1] = truth.ideal[-1]
    return rows


def frontier(truth: Truth) -> list[tuple[str, _F64]]:
    """Return equal lengths that cover each coefficient 90% of the time, and those that cover .97 on average."""
    rows = equal(truth, np.geomspace(truth.ideal.min(), 2.0 * truth.ideal.max(), 2_000))
    each = np.array([truth.coverage(row[None]) for row in rows])
    return [
        ("equal lengths, worst .90", rows[[np.argmax(each.min(axis=1) >= 0.9)]]),
        ("equal lengths, mean .97", rows[[np.argmax(each.mean(axis=1) >= 0.97)]]),
    ]


def of_spectrum(truth: Truth) -> _F64:
    """Return the half lengths for coefficients in random directions among all but the first."""
    values, vectors = np.linalg.eigh(truth.hessian - truth.l2_strength * np.eye(truth.dim))
    weights = np.random.default_rng(4).normal(size=(4_000, truth.dim - 1)) ** 2
    weights /= weights.sum(axis=1)[:, None]
    each = truth.variances(np.diag(values))
    known = vectors[:, -1] ** 2
    variances = weights @ each[:-1]
    return truth.half_lengths(variances[:, None] * (1.0 - known) + each[-1] * known)[None]


@dataclass(frozen=True)
class Posterior:
    """Posterior of the Hessian's data part given its releases, one chain for each.

    In units of the noise the data part has the row m of the intercept, its entry h, and the Schur complement
    `B W W' B / freedom` with normal W: a Wishart law around `B²`. The logarithms of its diagonal are normal with
    deviation 1 around a free level, plus `slope` times that of |m|: rare columns have little of both.
    """

    released: _F64
    pure: bool
    freedom: int
    slope: float

    def data_part(self, q: list[_F64]) -> tuple[_F64, _F64, _F64, _F64]:
        """Return it with its Schur complement, B and `B W`."""
        W, z, _, m, h = q
        k = m.shape[1]
        B = np.exp(0.5 * np.clip(z, -30.0, 30.0))
        V = B[:, :, None] * W / np.sqrt(self.freedom)
        schur = V @ V.transpose(0, 2, 1)
        D = np.empty_like(self.released)
        D[:, :k, :k] = schur + m[:, :, None] * m[:, None, :] / h[:, :, None]
        D[:, :k, k], D[:, k, :k], D[:, k, k] = m, m, h[:, 0]
        return D, schur, B, V

    def log_density(self, q: list[_F64]) -> tuple[_F64, list[_F64]]:
        """Return it and its gradient."""
        W, z, level, m, h = q
        k = m.shape[1]
        D, schur, B, V = self.data_part(q)
        error = self.released - D
        if self.pure:
            # The trace norm, rounded at 0 so that it has a gradient.
            rate = np.sqrt(k + 2.0)
            values, vectors = np.linalg.eigh(error)
            value = -rate * np.abs(values).sum(axis=1)
            G = rate * (vectors * np.tanh(values / 0.02)[:, None, :]) @ vectors.transpose(0, 2, 1)
        else:
            value, G = -0.5 * (error**2).sum(axis=(1, 2)), error
        off = z - level - self.slope * 0.5 * np.log(m**2 + 0.5)
        value = value - 0.5 * ((W**2).sum(axis=(1, 2)) + (off**2).sum(axis=1) + level[:, 0] ** 2 / 4.0)
        inner, Gm = G[:, :k, :k], (G[:, :k, :k] @ m[:, :, None])[:, :, 0]
        return value, [
            2.0 * B[:, :, None] * (inner @ V) / np.sqrt(self.freedom) - W,
            (inner * schur).sum(axis=2) - off,
            off.sum(axis=1)[:, None] - level / 4.0,
            2.0 * Gm / h + 2.0 * G[:, :k, k] + self.slope * off * m / (m**2 + 0.5),
            G[:, k, k, None] - (m * Gm).sum(axis=1)[:, None] / h**2,
        ]


def posterior(truth: Truth, released: _F64, freedom: int, slope: float) -> _F64:
    """Return half lengths from draws of the Hessian's data part given its noisy releases, all chains at once."""
    rng = np.random.default_rng(6)
    X = released / truth.noise
    chains, dim, _ = X.shape
    k = dim - 1
    law = Posterior(X, truth.pure, freedom, slope)

    def by_chain(values: _F64, like: _F64) -> _F64:
        return values.reshape((chains,) + (1,) * (like.ndim - 1))

    start = rng.normal(size=(chains, k, freedom)), np.full((chains, k), -0.5) + 0.3 * rng.normal(size=(chains, k))
    q = [*start, np.full((chains, 1), -0.5), X[:, :k, k].copy(), np.maximum(X[:, k, k], 1.0)[:, None]]
    value, slopes = law.log_density(q)
    step, draws = np.full(chains, 0.1), []
    for iteration in range(N_ITERATIONS):
        p = [rng.normal(size=part.shape) for part in q]
        before = value - 0.5 * sum((part.reshape(chains, -1) ** 2).sum(axis=1) for part in p)
        length = step * rng.uniform(0.6, 1.2, chains)
        moved, there, at = [part.copy() for part in q], value, slopes
        for _ in range(N_LEAPS):
            p = [a + 0.5 * by_chain(length, a) * b for a, b in zip(p, at, strict=True)]
            moved = [a + by_chain(length, a) * b for a, b in zip(moved, p, strict=True)]
            moved[4] = np.maximum(moved[4], 0.05)
            there, at = law.log_density(moved)
            p = [a + 0.5 * by_chain(length, a) * b for a, b in zip(p, at, strict=True)]
        after = there - 0.5 * sum((part.reshape(chains, -1) ** 2).sum(axis=1) for part in p)
        with np.errstate(invalid="ignore"):
            taken = np.log(rng.random(chains)) < after - before
        q = [np.where(by_chain(taken, a), b, a) for a, b in zip(q, moved, strict=True)]
        value = np.where(taken, there, value)
        slopes = [np.where(by_chain(taken, a), b, a) for a, b in zip(slopes, at, strict=True)]
        if iteration < N_WARM:
            step *= np.where(taken, 1.05, 0.88)
        elif iteration % 3 == 0:
            draws.append(truth.variances(law.data_part(q)[0] * truth.noise))
    return truth.half_lengths(np.array(draws))


def main(n_releases: int) -> None:
    """Print one line for each case and kind of interval."""
    print(f"commit {commit()}, {now()}, {n_releases} releases for each posterior\n")
    print(
        "| population | budget | λ | noise/λ | hidden eigenvalues/λ | intervals | covers | worst "
        "| mean length over ideal |"
    )
    print("|---" * 9 + "|")
    for case in cases():
        if case.name == "Awan & Wang" or case.strength != 4.0 or case.split or case.n > 100_000:
            continue
        truth = truth_of(case)
        released = truth.releases(n_releases)
        kinds = [*frontier(truth), ("true spectrum", of_spectrum(truth))]
        for freedom, slope in ((2, 0.0), (1, 0.0), (2, 0.7)):
            name = f"posterior, {freedom}d degrees of freedom" + (
                ", scales follow the intercept's row" if slope else ""
            )
            kinds.append((name, posterior(truth, released, freedom * truth.dim, slope)))
        values = np.linalg.eigvalsh(truth.hessian) / truth.l2_strength - 1.0
        for name, lengths in kinds:
            covers = truth.coverage(lengths)
            print(
                f"| {case.name} | {case.budget} | {truth.l2_strength:.2g} | {truth.noise / truth.l2_strength:.3g} "
                f"| {values[0]:.3g} to {values[-2]:.3g} | {name} | {covers.mean():.3f} | {covers.min():.3f} "
                f"| {lengths.mean() / truth.ideal.mean():.3g} |",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
