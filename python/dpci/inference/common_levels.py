"""Single intervals that rest on how common a level is, where the released Hessian shows it common or cannot tell.

Noise in the shape of blocks gives the intercept the loudest coordinate and the levels of a category quiet ones. The
indicator of a level that most records have is nearly a multiple of the constant, so the noise of the intercept reaches
its coefficient. What the intervals count of that is too little (docs/proofs/intervals.md, "Common levels"). The check
uses released and public values only, so it is post-processing.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpci.accounting.costs import levels_scale, noise_of
from dpci.errors import DpciError
from dpci.inference.intervals import ErrorLaw, law_of, refusal_of
from dpci.released.record import NOISE_AWARE, FitRecord
from dpci.rows import Blocks, RowDomain, core_blocks

_LEVEL = 0.95
LEAST_COVERAGE = 0.90
"""A 95% interval that would cover less, if its level is as common as stated, is not supported."""
SHOWN = 2.0
"""Standard errors by which the released share of a level must be above 0 to name the level itself."""
TELLING = 0.25
"""Greatest standard error of a share with which a release tells a level that half of the records have from a rare one.

Half is then two standard errors.
"""
COMMON = 0.9
"""Share of a common level, for which the interval of a level that the noise hides is judged."""

_F64 = NDArray[np.float64]


@dataclass(frozen=True)
class CommonLevels:
    """Intervals that the release does not support, as a level may be common.

    Attributes
    ----------
    parameters : tuple of str
        Levels that the released Hessian shows to be common.
    columns : tuple of str
        Groups of columns whose levels the noise in the Hessian hides: any of them may be common.
    coverage : float
        Least coverage of a 95% interval of these: of the parameters at their released share, of a level of the columns
        that nine in ten records have.
    """

    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    coverage: float


def common_levels(record: FitRecord) -> CommonLevels | None:
    """Return the parameters and columns whose single intervals a fit does not support; None if there are none.

    There is none without noise in the shape of blocks, an intercept and matrices with their noise, or with level
    totals, which the intervals count.
    """
    names = record.names
    noise, scale, hessian = noise_of(record.steps, "hessian"), record.intercept_scale, record.hessian
    blocks = core_blocks(record.rows, scale)
    if (
        record.projection != NOISE_AWARE
        or not record.noise_law.startswith("shaped")
        or levels_scale(record.steps) is not None
        or noise is None
        or scale is None
        or hessian is None
        or blocks is None
        or len(blocks.members) != len(hessian)
    ):
        return None
    law, bounds = law_of(record), np.array(blocks.bounds)[blocks.members]
    greatest = math.inf if record.curvature_bound is None else record.curvature_bound * scale**2
    deviation = isometric_std_dev(*noise, len(hessian))
    # Saved records may hold any numbers; those beyond the range of floats show nothing.
    with np.errstate(all="ignore"):
        constant = min(_mean_of_positive(float(hessian[-1, -1]) - record.l2_strength, deviation), greatest)
        unit = bounds * constant / scale
        shares, errors = hessian[-1] / unit, deviation / math.sqrt(2.0) / unit

        def covered(share: _F64 | float) -> _F64:
            own = bounds**2 * constant / scale**2 * share * (1.0 - share)
            multiple = bounds / scale * share * constant / (constant + record.l2_strength)
            return coverage_if(law, multiple / (record.l2_strength + own) / record.divisor, multiple)

        now, most = covered(np.clip(shares, 0.0, 1.0)), covered(COMMON)
    groups = _groups(record.rows)
    hidden = [group for group in groups if errors[group[0]] > TELLING and most[list(group)].min() < LEAST_COVERAGE]
    known = {j for group in groups for j in group} - {j for group in hidden for j in group}
    shown = [j for j in sorted(known) if shares[j] > SHOWN * errors[j] and now[j] < LEAST_COVERAGE]
    if not hidden and not shown:
        return None
    least = [*(float(now[j]) for j in shown), *(float(most[list(group)].min()) for group in hidden)]
    return CommonLevels(
        tuple(names[j] for j in shown), tuple(group_name([names[j] for j in group]) for group in hidden), min(least)
    )


def levels_of(record: FitRecord) -> CommonLevels | None:
    """Return :func:`common_levels`, or None if there are no intervals."""
    try:
        return None if refusal_of(record) is not None else common_levels(record)
    except DpciError:
        return None


def coverage_if(law: ErrorLaw, most: _F64, multiple: _F64) -> _F64:
    """Return what 95% intervals cover of an error that is noise alone, if columns are about multiples of the constant.

    The intercept is last. Its noise then enters parameter j by ``multiple[j]`` times the parameter's own multiplier,
    and by ``most[j]`` at most.
    """
    identity = np.eye(law.dim)
    of_constant = np.broadcast_to(law.noise_variances, law.dim)[-1]
    reach = np.minimum(np.diag(law.noise) * multiple, most)
    more = np.maximum(reach**2 - law.noise[-1] ** 2, 0.0) * of_constant
    more[-1] = 0.0
    deviation = np.sqrt(law.noise_variance(identity) + more)
    return np.asarray(2.0 * special.ndtr(law.half_widths(identity, _LEVEL) / deviation) - 1.0)


def hidden_in_advance(
    rows: RowDomain,
    *,
    intercept: float | None,
    l2_strength: float,
    curvature_bound: float,
    noise: tuple[str, float],
    noise_std_devs: _F64,
) -> tuple[tuple[int, ...], ...]:
    """Return the groups of columns whose levels a release will not tell, whatever the data are.

    The standard error of a share is least at the greatest curvature (docs/proofs/intervals.md, "Common levels").
    ``noise`` is that in the Hessian, by name and scale, and ``noise_std_devs`` are those of the coefficients.
    """
    if intercept is None or not isinstance(rows, Blocks):
        return ()
    error = isometric_std_dev(*noise, rows.n_columns + 1) / math.sqrt(2.0) / (intercept * curvature_bound)
    constant = curvature_bound * intercept**2
    found = []
    for columns, bound in rows.groups:
        own = l2_strength / (l2_strength + COMMON * (1.0 - COMMON) * bound**2 * curvature_bound)
        reach = COMMON * own * bound / intercept * constant / (constant + l2_strength)
        ratio = reach * noise_std_devs[-1] / noise_std_devs[columns[0]]
        least = 2.0 * float(special.ndtr(special.ndtri(0.5 + 0.5 * _LEVEL) / math.hypot(1.0, ratio))) - 1.0
        if error > TELLING * bound and least < LEAST_COVERAGE:
            found.append(columns)
    return tuple(found)


def isometric_std_dev(name: str, scale: float, dim: int) -> float:
    """Return the standard deviation of a diagonal entry of the noise of a matrix, and √2 times that of another."""
    return scale * math.sqrt(dim + 1.0) if name == "matrix_laplace" else scale


def group_name(names: Sequence[str]) -> str:
    """Return the column of the table that a group of columns came from, or its first and last name."""
    tables = {name.partition("=")[0] for name in names}
    return tables.pop() if len(tables) == 1 and all("=" in name for name in names) else f"{names[0]} to {names[-1]}"


def note(found: CommonLevels) -> str:
    """Return what the intervals of a fit do not count, as sentences."""
    parts = []
    if found.parameters:
        parts.append(
            f"By the released Hessian many records have {_listed(found.parameters)}. If so, the intervals of these "
            "levels are too short, as the noise of the intercept reaches them."
        )
    if found.columns:
        parts.append(
            f"The noise hides which levels of {_listed(found.columns)} are common. The interval of a level that most "
            "records have is too short, as the noise of the intercept reaches it."
        )
    return " ".join([*parts, f"Such a 95% interval can have a coverage of {found.coverage:.2f} or less."])


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first names, and how many follow."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _groups(rows: RowDomain) -> list[tuple[int, ...]]:
    return [columns for columns, _ in rows.groups] if isinstance(rows, Blocks) else []


def _mean_of_positive(found: float, noise: float) -> float:
    """Return the mean of a normal law around ``found`` that is cut off at 0."""
    score = found / noise
    return found + noise * math.exp(-0.5 * score * score - float(special.log_ndtr(score))) / math.sqrt(2.0 * math.pi)
