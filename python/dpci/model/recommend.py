"""Recommendations from public values alone: the regularisation λ, and the domain of rows with less noise."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from dpci import _core
from dpci.accounting.costs import Step, noise_of
from dpci.base.validation import check_choice
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.inference.common_levels import group_name, hidden_in_advance
from dpci.inference.intervals import TARGETS, Target
from dpci.inference.remarks import TRUSTED_RATIO
from dpci.model.settings import FitKeywords, Settings
from dpci.released.record import NOISE_AWARE
from dpci.rows import Ball, RowDomain, core_blocks, read_rows
from dpci.schema.table import Schema

# The ridge moves little there, so that counting what one step off it may leave out lengthens intervals by little
# (docs/evidence/unregularised.md). Whether the Hessian is clear of its noise hardly depends on λ.
_MULTIPLE_WITHOUT_RIDGE = 4.0
# Just above the least λ, objective perturbation needs much more noise.
_MULTIPLE_OF_LEAST = 2.0
# Of a limit that the released norm may raise by rounding.
_ROOM = 1.01


def recommended_l2_strength(
    settings: Settings, n_samples: int, n_columns: int, *, target: Target = "regularised"
) -> float:
    """Return the λ that public values recommend; that of the settings does not matter.

    "regularised", for predictions: λ at which the ridge draws a parameter of size 1/R as strongly as the noise of the
    gradient moves it: R times the standard deviation of that noise, where R bounds the rows. At least twice the least
    λ, R²/n (scikit-learn's default for rows of norm 1), and, where objective perturbation releases matrices, a tenth of
    the noise in the Hessian, up to which intervals are trusted.

    "unregularised": four times the least λ of objective perturbation. More ridge leaves more to be taken away, and less
    needs more noise.
    """
    check_choice("target", target, TARGETS)
    spec, strength = any_spec(settings, n_samples, n_columns)
    scale = _scale(settings)
    least = spec.plan()["least_l2_strength"]
    if target == "unregularised":
        if least <= 0.0:
            raise InvalidInput(
                "a recommendation for target='unregularised' needs objective perturbation, whose least l2_strength it "
                f"is a multiple of, got {settings.mechanism.name} perturbation"
            )
        return _MULTIPLE_WITHOUT_RIDGE * float(least)
    n_params, n_public = spec.plan()["n_params"], settings.public_n(n_samples)
    for _ in range(3):  # the noise hardly depends on λ
        found = settings.row_norm * _gradient_noise(settings, spec, n_params)
        trusted = _ROOM * spec.plan()["noise_spectral_radius"] / TRUSTED_RATIO
        trusted = 0.0 if settings.mechanism.name == "output" else trusted
        strength = max(found, trusted, scale / n_public, _MULTIPLE_OF_LEAST * least)
        spec = settings.spec(n_samples, n_columns, l2_strength=strength)
    return float(strength)


def strength_of(settings: Settings, n_samples: int, n_columns: int) -> float:
    """Return λ of a fit of a table of this size: that of its settings, or the one that public values recommend."""
    return recommended_l2_strength(settings, n_samples, n_columns) if settings.is_auto else settings.strength


def noise_std_devs(settings: Settings, spec: _core.Spec, n_params: int) -> NDArray[np.float64]:
    """Return the standard deviations of the coefficients' noise, in the mean gradient or in the parameters."""
    # Objective perturbation adds its draw to the sum of the gradients.
    scale = spec.noise_scale / (spec.divisor if settings.mechanism.name == "objective" else 1)
    if spec.noise_law == "gaussian":
        return np.full(n_params, scale)
    shape = core_blocks(settings.rows, settings.intercept)
    if shape is None or spec.noise_law == "spherical_laplace":
        return np.full(n_params, scale * math.sqrt(n_params + 1.0))
    if spec.noise_law == "shaped_gaussian":
        return np.asarray(scale * np.sqrt(shape.metric()))
    # A radius of Gamma(D + 1) times a uniform point of the blocks.
    return np.asarray(scale * np.sqrt((n_params + 1.0) * (n_params + 2.0) * shape.variances()))


def _gradient_noise(settings: Settings, spec: _core.Spec, n_params: int) -> float:
    """Return the standard deviation of the noise in a coordinate of the gradient, or what stands for it."""
    squares = np.square(noise_std_devs(settings, spec, n_params))
    size = math.sqrt(float(np.mean(squares)))
    return size if settings.mechanism.name == "objective" else size * spec.l2_strength


def _scale(settings: Settings) -> float:
    """Return the square of the row norm, the scale of λ."""
    scale = settings.row_norm * settings.row_norm or 1.0
    if math.isinf(scale):
        raise InvalidInput(
            "a recommended l2_strength needs a row_norm whose square is within double precision, "
            f"got row_norm={settings.row_norm}"
        )
    return scale


def any_spec(settings: Settings, n_samples: int, n_columns: int) -> tuple[_core.Spec, float]:
    """Return a specification at a λ that is great enough, whatever the settings have, and that λ."""
    refusal: RegularizationTooSmall | None = None
    for strength in (_scale(settings) * 10.0**power for power in range(0, 40, 2)):
        try:
            return settings.spec(n_samples, n_columns, l2_strength=strength), strength
        except RegularizationTooSmall as error:
            refusal = error
    assert refusal is not None  # noqa: S101  # for the type checker
    raise refusal


def column_length(settings: Settings, greatest: float, std_devs: NDArray[np.float64]) -> float:
    """Return the largest length from the noise of the coefficients of a parameter other than the intercept."""
    *others, last = std_devs
    if not (settings.has_constant and others) or greatest >= 2.0 * (settings.radius or math.inf):
        return greatest
    # In proportion to the standard deviations, up to the seal and the shape of groups.
    return float(greatest * min(1.0, max(others) / last))


def hidden_columns(
    settings: Settings, spec: _core.Spec, steps: Sequence[Step], std_devs: NDArray[np.float64]
) -> tuple[str, ...]:
    """Return the columns whose levels the noise will hide, by name; without a schema by position."""
    noise = noise_of(steps, "hessian")
    if (
        settings.moments == "levels"
        or noise is None
        or spec.plan()["projection"] != NOISE_AWARE
        or not steps[0].noise.startswith("shaped")
    ):
        return ()
    groups = hidden_in_advance(
        settings.rows,
        intercept=settings.intercept,
        l2_strength=spec.l2_strength,
        curvature_bound=spec.curvature_bound,
        noise=noise,
        noise_std_devs=std_devs,
    )
    n_columns = len(std_devs) - 1
    names = [f"x{j}" for j in range(n_columns)] if settings.schema is None else settings.schema.names
    return tuple(group_name([names[j] for j in columns]) for columns in groups)


def default_rows(schema: Schema, **keywords: Unpack[FitKeywords]) -> RowDomain:
    """Return the domain of the rows of a schema for a fit with these keywords, as :func:`with_default_rows` does."""
    return with_default_rows(Settings.checked(schema=schema, **keywords)).rows


def with_default_rows(settings: Settings) -> Settings:
    """Return the settings with the domain of their schema that has less noise: its unit ball, or the blocks within.

    Less is a smaller geometric mean of the standard deviations of the coefficients' noise. Both domains have the same
    norm, so neither n, ε, λ nor weights decide, but the schema, the notion, the mechanism and the radius. The ball
    stays where there is no noise in the shape of blocks.
    """
    schema = settings.schema
    if schema is None or not isinstance(settings.rows, Ball):
        return settings
    shaped = replace(settings, rows=schema.rows)
    try:
        ball, blocks = (_log_noise(one, len(schema.names)) for one in (settings, shaped))
    except InvalidInput:  # one of the two is not offered: what the ball lacks, the fit refuses
        return settings
    # Laws of one shape on either domain differ by rounding.
    return shaped if blocks < ball - 1e-6 else settings


def with_common_rows(settings: Sequence[Settings]) -> list[Settings]:
    """Return the settings of several fits with one domain of rows: the blocks where each fit would take them."""
    shaped = [with_default_rows(one) for one in settings]
    return list(settings) if any(isinstance(one.rows, Ball) for one in shaped) else shaped


def are_rows_given(rows: object) -> bool:
    """Return whether ``rows`` of a caller names their domain, so that the schema does not choose it."""
    return read_rows(rows).domain is not None


def _log_noise(settings: Settings, n_columns: int) -> float:
    # Weights multiply the noise on both domains by the same number, and their bound can be above the total at n = 1.
    spec, _ = any_spec(replace(settings, weights=None), settings.n_public or 1, n_columns)
    return float(np.log(noise_std_devs(settings, spec, n_columns + settings.has_constant)).mean())
