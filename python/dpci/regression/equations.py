"""One regression among the columns of a released moment matrix: its equations, and when they are refused."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci import _core
from dpci.accounting.costs import Seal, Step
from dpci.errors import DpciError, InvalidInput
from dpci.regression.choices.model import PRIVATE, Model, combinations
from dpci.regression.choices.planned import Regression
from dpci.regression.law import ErrorParts, Noise, hidden, positive_part
from dpci.regression.record import MomentRecord
from dpci.regression.residuals import Refinement
from dpci.schema.cells import MARK

_F64 = NDArray[np.float64]

# Rounding does not lower a private ridge to what is refused.
_ABOVE = 1.0 + 1e-9
# Probability beforehand that a sampling variance that noise may hide is that of a group of records.
_OF_A_GROUP = 0.1
# Standard deviations of noise above which residuals beyond their cap are seen.
_CLEAR = 1.5
# Part of their mean square below which the noise of squared residuals is small.
_SMALL = 0.2
# Share of the squared residuals that count at least, whatever noise says.
_LEAST_CAPPED = 0.1
# Regressors with at least this part of the greatest in the direction that does not are named.
_NAMED = 0.3


@dataclass(frozen=True)
class GradientNoise:
    """The noise of a released gradient, the mean squared residual that comes with it, and what its cap may cut off."""

    std_dev: float
    """Standard deviation of the noise in each coordinate, the seal's included."""
    degrees: float
    """Shape of the gamma variable that makes it normal; infinite for normal noise."""
    square: float
    """The mean squared residual at the start, with noise."""
    square_std_dev: float
    """Standard deviation of that noise."""
    cap: float
    """The largest residual that counts."""
    seen: float
    """The share of the records above which a level of the residuals is seen in its noise."""
    seen_together: float
    """The share above which four adjacent levels are."""
    cut_off: float
    """The mean of what the cap may cut off unseen, 0 if it is the largest residual that the bounds allow."""

    @classmethod
    def of(cls, refined: Refinement, levels: Step, step: Step, seal: Seal) -> "GradientNoise":
        """Return that of a released gradient, whose cap follows from levels with the noise of another step.

        Of density exp(-‖b‖/s) in p dimensions a coordinate has the characteristic function (1 + s²t²)^(-(p + 1)/2).
        """
        size, std_dev, degrees = len(refined.gradient), step.scale, math.inf
        if step.noise != "gaussian":
            std_dev, degrees = step.scale * math.sqrt(size + 1), 0.5 * (size + 1)
        std_dev = math.hypot(std_dev, seal.std_dev)
        unit = refined.cap / refined.square_weight
        _, seen, together, unseen = _core.level_cap(refined.levels, noise=levels.noise, scale=levels.scale)
        square = unit * float(refined.gradient[-1])
        return cls(std_dev, degrees, square, unit * std_dev, refined.cap, seen, together, unseen * refined.cap)

    def times(self, part: float) -> "GradientNoise":
        """Return that of a part of the step; the mean squared residual is still that of the start."""
        return replace(self, std_dev=part * self.std_dev, cut_off=part * self.cut_off)


@dataclass(frozen=True, eq=False)
class CutOff:
    """Greatest bias that a cap on residuals may cause: their mean excess times the greatest influence of a row."""

    excess: float
    """Mean of what the cap may cut off unseen."""
    influence: _F64
    """Influence of a row on each coefficient, shape (number of coefficients, k + 2)."""
    record: MomentRecord

    def __call__(self, contrasts: _F64) -> _F64:
        """Return that of contrasts, one a row."""
        return self.excess * self.greatest(contrasts)

    def greatest(self, contrasts: _F64) -> _F64:
        """Return the greatest influence of a row on contrasts."""
        return greatest_influence(self.record, contrasts @ self.influence)


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients and the forms of their errors, in the units of the caller's columns."""

    params: _F64
    gain: _F64
    cross: _F64
    error_norm2: float
    sampling: _F64
    """Sampling covariance with the variance of the residuals as it was estimated."""
    relative: float
    """Variance of that estimate over its square, from the number of records and the noise; 0 if it is robust."""
    classical: _F64
    """Sampling covariance under equal variances."""
    cut_off: CutOff
    """Greatest bias of contrasts that the cap on the residuals of a gradient may cause."""
    residual_noise: float
    """With a robust covariance: standard deviation of a sampling variance over its ``gain``."""
    residual_variance: float
    matrix_noise: float
    degrees: float
    gradient: "GradientNoise | None"
    """The noise of the gradient that refined the coefficients; None where they solve the equations of the matrix."""
    l2_strength: float
    """λ of the ridge; of a private one on coefficients in units of the bounds."""

    def parts(self, rows: _F64) -> ErrorParts:
        """Return the parts of the errors of contrasts, one a row."""
        sampling = np.einsum("ij,jk,ik->i", rows, self.sampling, rows)
        gain = np.einsum("ij,jk,ik->i", rows, self.gain, rows)
        cross = rows @ self.cross
        if self.residual_noise > 0.0:
            # What noise hides is taken from the variance under equal variances.
            usual = np.einsum("ij,jk,ik->i", rows, self.classical, rows)
            # Beside the noise of a gradient, which is small, a group may have all of the variance unseen.
            chance = _OF_A_GROUP if self.gradient is None else 1.0
            std_dev = self.residual_noise * gain
            sampling, spread = hidden(sampling, std_dev, usual, self._of_a_group(rows, usual), chance)
        else:
            spread = np.zeros_like(sampling)
        root = np.sqrt(np.maximum(gain, 0.0))
        length = root * np.sqrt(self.error_norm2)
        half = 0.5 * self.matrix_noise
        noises = [Noise(half * (cross + length), half * (cross - length), self.degrees)]
        if self.gradient is not None:
            noises.append(Noise(self.gradient.std_dev * root, np.zeros_like(root), self.gradient.degrees))
            noises.append(Noise(self.cut_off(rows), np.zeros_like(root), math.inf))
        return ErrorParts(
            sampling=sampling,
            sampling_variance=spread + self.relative * sampling**2,
            noises=tuple(noises),
        )

    def _of_a_group(self, rows: _F64, usual: _F64) -> _F64:
        """Return the sampling variance of contrasts if a group has all of the residuals' square and most influence."""
        greatest = self.cut_off.greatest(rows) ** 2 * self.residual_variance / self.cut_off.record.divisor
        return np.maximum(usual, greatest)

    def draw(self, rng: np.random.Generator, rows: _F64, n_draws: int) -> _F64:
        """Return joint errors of contrasts under normal noise, each in units of its estimated standard deviation.

        Their variances are estimated; one level of a chi-square serves all of them.
        """
        values, vectors = np.linalg.eigh(rows @ self.covariance() @ rows.T)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        errors = rng.standard_normal((n_draws, len(rows))) @ root.T
        df = np.minimum(self.parts(rows).df, 1e10)
        return np.asarray(errors / np.sqrt(special.chdtri(df, rng.uniform(size=(n_draws, 1))) / df))

    def covariance(self) -> _F64:
        """Return the covariance of the errors of all coefficients, sampling and noise together."""
        noise = 0.5 * self.matrix_noise**2 * (self.gain * self.error_norm2 + np.outer(self.cross, self.cross))
        if self.gradient is not None:
            noise += self.gradient.std_dev**2 * self.gain + self._joint_cut_off()
        return np.asarray(self._joint_sampling() + noise)

    def _joint_cut_off(self) -> _F64:
        """Return the mean squares of that bias: of each coefficient its own, joint as under equal variances."""
        root = np.sqrt(np.diagonal(self.classical))
        scaled = self.cut_off(np.eye(len(root))) / np.where(root > 0.0, root, 1.0)
        return np.asarray(scaled[:, None] * self.classical * scaled)

    def _joint_sampling(self) -> _F64:
        """Return the sampling covariance; what noise hides of a robust one is that under equal variances.

        In the units of the latter one weight serves all directions, and none has less than no variance. Each
        coefficient has its own variance.
        """
        if self.residual_noise == 0.0:
            return self.sampling
        root = np.linalg.cholesky(self.classical)
        inverse = np.linalg.inv(root)
        spread = self.residual_noise * np.linalg.eigvalsh(inverse @ self.gain @ inverse.T)[-1]
        weight = 1.0 / (1.0 + spread**2)
        values, vectors = np.linalg.eigh(weight * inverse @ self.sampling @ inverse.T)
        values = np.maximum(values + (1.0 - weight), 0.0)
        half = root @ vectors
        found = np.asarray((half * values) @ half.T)
        scale = np.sqrt(self.parts(np.eye(len(found))).sampling / np.diagonal(found))
        return np.asarray(scale[:, None] * found * scale)


def solve(record: MomentRecord, model: Model) -> Solution:
    """Solve the equations of a model."""
    rows, response, back, shift = combinations(record.place, model)
    n = record.divisor
    robust = model.covariance == "robust"
    residuals = planned_residuals(record, model) if robust else None
    noise = record.noise()
    needed = _core.clear_of_noise(noise, n_regressors=len(rows))
    start, gradient = _start(record, model, rows)

    def solved(ridge: _F64) -> "_core.RegressionDict":
        return _core.moment_regression(
            record.matrix,
            np.ascontiguousarray(rows),
            response,
            ridge=ridge,
            residual_moments=None if residuals is None else residuals[0],
            start=start,
        )

    if model.l2_strength == PRIVATE:
        found = solved(np.zeros((len(rows), len(rows))))
        strength = 2.0 * max(0.0, needed - found["least_eigenvalue"]) * _ABOVE
        if strength > 0.0:
            # rows @ rows.T is the identity in orthonormal combinations of the columns, where the noise is isotropic.
            found = solved(0.5 * strength * rows @ rows.T)
    else:
        strength = float(model.l2_strength)
        found = solved(0.5 * strength * np.eye(len(rows)))
    _check_clear(model, found, needed)
    free = record.counted * n - found["degrees"]
    if model.l2_strength == PRIVATE:
        # It always has a solution: where there are hardly any records the intervals are as wide as can be.
        free = max(free, 1.0)
    if not free > 0.0:
        raise InvalidInput(f"a regression needs more records than coefficients, got {n:g} records")
    factor = n / free
    if gradient is None:
        square, error = found["residual_square"] + noise**2 * found["fitted_noise"], noise * found["residual_norm2"]
    else:
        # That of the start, which the step lowers; its noise makes the step too long.
        square = gradient.square - found["step_square"] + gradient.std_dev**2 * found["inverse_trace"]
        error = gradient.square_std_dev
    # The mean is over all that the records count.
    seen, spread = np.array([factor * square]), np.array([factor * error])
    (variance,), (uncertainty,) = positive_part(seen, spread)
    if not (0.0 <= variance < math.inf):
        raise InvalidInput(f"the residual variance must be within the range of floats, got {variance}")
    classical = back @ (variance * found["classical"] / n) @ back.T
    if residuals is not None:
        assert found["robust"] is not None  # noqa: S101  # for the type checker: moments were given
        # Normal quantiles, as is the custom with HC0; t is for one variance of normal errors.
        whole = 1.0 if record.needs_robust else _over_capped(residuals, record.constant, square, error)
        sampling, relative = back @ (whole * found["robust"] / n) @ back.T, 0.0
        residual_noise = whole * residuals[1] / n
    else:
        sampling, residual_noise = None, 0.0
        relative = 2.0 / free + (uncertainty / variance**2 if variance > 0.0 else 0.0)
    hessian = rows @ record.matrix @ rows.T + 0.5 * strength * np.eye(len(rows))
    influence = back @ np.linalg.solve(hessian, rows)
    params, cross, error_norm2 = found["params"], back @ found["cross"], found["error_norm2"]
    if start is not None and gradient is not None:
        before, after = (response - rows.T @ at for at in (start[0], params))
        part = _part_of_step(before, after, noise, gradient, CutOff(gradient.cut_off, influence, record))
        params, moved, gradient = start[0] + part * (params - start[0]), after - part * before, gradient.times(part)
        cross, error_norm2 = influence @ moved, float(moved @ moved)
    return Solution(
        params=back @ params + shift,
        gain=back @ found["gain"] @ back.T,
        cross=cross,
        error_norm2=error_norm2,
        sampling=classical if sampling is None else sampling,
        classical=classical,
        cut_off=CutOff(0.0 if gradient is None else gradient.cut_off, influence, record),
        relative=relative,
        residual_noise=residual_noise,
        residual_variance=float(variance),
        matrix_noise=noise,
        degrees=math.inf if record.is_gaussian else 0.5 * (len(record.columns) + 3),
        gradient=gradient,
        l2_strength=strength,
    )


def _over_capped(residuals: tuple[_F64, float], constant: float, square: float, error: float) -> float:
    """Return how many times as large squared residuals are as those that count in their released moments.

    ``square`` is their mean with noise of the standard deviation ``error``. Where it is above the mean of those held to
    the cap, which is the entry of the constant, by more than noise makes likely, the rest was cut off. It has the shape
    of what counts.
    """
    moments, noise = residuals
    capped, noise = moments[-1, -1] / constant**2, noise / constant**2
    cut_off = square - capped - _CLEAR * math.hypot(error, noise)
    # Noise that is not small would make a factor of its own.
    if not (cut_off > 0.0 and noise < _SMALL * square):
        return 1.0
    return float(square / max(square - cut_off, _LEAST_CAPPED * square))


def _part_of_step(before: _F64, after: _F64, noise: float, gradient: GradientNoise, cut_off: CutOff) -> float:
    """Return the part of a step that leaves the least variance beside that of the sample, on average of coefficients.

    ``before`` and ``after`` the whole step are the residual as a combination of the columns. The noise of the matrix,
    of this standard deviation, counts times ``after - part * before``; the step adds its own noise, and what its cap
    cuts off.
    """
    length = np.linalg.norm(cut_off.influence, axis=1)
    along = cut_off.influence / length[:, None]

    def covariance(one: _F64) -> _F64:
        return np.asarray(0.5 * noise**2 * (before @ one + (along @ before) * (along @ one)))

    added = gradient.std_dev**2 + (cut_off(np.eye(len(length))) / length) ** 2
    return float(np.clip(np.sum(covariance(after)) / np.sum(covariance(before) + added), 0.0, 1.0))


def greatest_influence(record: MomentRecord, weights: _F64) -> _F64:
    """Return the greatest product, in size, of each row of weights (m, k + 2) with a row that the bounds allow."""
    # Targets are no regressors.
    of_features = np.abs(weights[:, : len(record.features)])
    size = np.abs(weights[:, len(record.columns)]) * record.constant
    if record.row_norm is not None:
        return np.asarray(record.row_norm * np.linalg.norm(of_features, axis=1) + size)
    if record.blocks is None:
        return np.asarray(of_features.sum(axis=1) + size)
    members = np.array(record.blocks.members)
    bounds = np.array(record.blocks.block_bounds) if np.all(record.scale == 1.0) else np.ones(members.max() + 1)
    lengths = [np.linalg.norm(of_features[:, members == block], axis=1) for block in range(len(bounds))]
    return np.asarray(bounds @ np.array(lengths) + size)


def _start(record: MomentRecord, model: Model, rows: _F64) -> tuple[tuple[_F64, _F64] | None, GradientNoise | None]:
    """Return coefficients of the regressors and the gradient there, from which a step leads; None if not released."""
    wanted = plannable(record, model)
    found = None if wanted is None else record.refined_of(wanted)
    if found is None:
        return None, None
    one, levels, step, seal = found
    # The regressors are combinations of (scaled features, constant), of which the gradient is.
    used = [*(record.columns.index(name) for name in model.features), len(record.columns)]
    own = rows[:, used]
    params = np.asarray(np.linalg.solve(own.T, one.point[used]))
    return (params, own @ one.gradient[:-1]), GradientNoise.of(one, levels, step, seal)


def plannable(record: MomentRecord, model: Model) -> Regression | None:
    """Return a model as a release plans regressions; None where none can be planned."""
    if not model.fit_intercept or model.l2_strength == PRIVATE or set(record.targets) & set(model.features):
        return None
    return Regression(target=model.target, features=model.features, l2_strength=float(model.l2_strength))


def default_covariance(record: MomentRecord, model: Model) -> Literal["classical", "robust"]:
    """Return "robust" where its moments were paid for, and where records take no other."""
    wanted = plannable(record, model)
    planned = wanted is not None and record.residuals_of(wanted) is not None
    return "robust" if record.needs_robust or planned else "classical"


def check_covariance(record: MomentRecord, model: Model) -> None:
    """Refuse a covariance that the release has nothing for, and one that does not hold for its records."""
    if model.covariance == "robust":
        planned_residuals(record, model)
    elif record.needs_robust:
        raise InvalidInput(
            "covariance must be 'robust' for persons and for weights, because the classical one takes every row for an "
            "independent record, got covariance='classical'"
        )


def planned_residuals(record: MomentRecord, model: Model) -> tuple[_F64, float]:
    """Return the moments of the residuals of a model, and their noise."""
    if not record.residuals:
        raise InvalidInput(
            "covariance='robust' requires the moments of the residuals, which robust=True releases, got a "
            "matrix without them"
        )
    wanted = plannable(record, model)
    found = None if wanted is None else record.residuals_of(wanted)
    if found is None:
        planned = "; ".join(
            f"{entry.regression.target} on {', '.join(entry.regression.features or ('a constant',))} with "
            f"l2_strength={entry.regression.l2_strength:g}"
            for entry in record.residuals
        )
        raise InvalidInput(
            f"covariance='robust' requires a regression with an intercept that robust= planned ({planned}), got "
            f"{model.target} on {', '.join(model.names)} with l2_strength={model.l2_strength!r}"
        )
    return found


def attempt(record: MomentRecord, model: Model) -> Solution | InvalidInput:
    """Return the solution, or why there is none."""
    try:
        return solve(record, model)
    except InvalidInput as error:
        return error
    except DpciError as error:
        return InvalidInput(str(error))


def _check_clear(model: Model, found: "_core.RegressionDict", needed: float) -> None:
    least = found["least_eigenvalue"]
    if least > needed:
        return
    named = [name for name, part in zip(model.names, found["direction"], strict=True) if part >= _NAMED]
    listed = ", ".join(map(repr, named))
    what = "varies" if len(named) == 1 else "vary together"
    # Noise may make a variance negative.
    rule = f"the regressors must vary more than the noise in the matrix: {listed} {what} by {max(least, 0.0):.3g}"
    if gaps := [name.removesuffix(MARK) for name in named if name.endswith(MARK)]:
        rest = [name for name in model.features if name not in named or not name.endswith(MARK)]
        raise InvalidInput(
            f"too few rows have {' or '.join(map(repr, gaps))} missing for this budget: {rule} in the weakest "
            f"direction, but at least {needed:.3g} is needed (free of charge: "
            f"MomentMatrix.of(result).fit(features={rest}))"
        )
    raise InvalidInput(
        f"{rule} in the weakest direction, but at least {needed:.3g} is needed (leave out a column, use "
        "l2_strength='private', narrower bounds or a greater budget)"
    )


def r_squared(record: MomentRecord, model: Model, solution: Solution) -> float | InvalidInput:
    """Return the share of the variance of the target that a regression with an intercept explains, or why not."""
    constant = attempt(record, replace(model, features=(), l2_strength=0.0, covariance="classical"))
    if isinstance(constant, InvalidInput):
        return constant
    left, whole = solution.residual_variance, constant.residual_variance
    return min(max(1.0 - left / whole, 0.0), 1.0) if whole > 0.0 else 0.0
