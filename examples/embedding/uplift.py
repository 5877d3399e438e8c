"""Uplift: what a treatment does to the odds of an outcome, with error bars and a privacy budget; built on dpci."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

import dpci
from dpci import lowlevel


@dataclass(frozen=True)
class Effect:
    """Log odds ratio of treated against untreated people with equal covariates; made of released values only."""

    estimate: float
    variance: float
    noise_share: float  # how much of the variance is the price of privacy

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Confidence interval; the noise is Gaussian, so the normal quantile is exact."""
        (half_width,) = lowlevel.exact_half_widths(
            [self.variance], [0.0], noise_law="gaussian", noise_scale=1.0, dim=1, level=level
        )
        return self.estimate - float(half_width), self.estimate + float(half_width)


def treatment_effect(
    covariates: ArrayLike,
    treated: ArrayLike,
    outcome: ArrayLike,
    *,
    budget: dpci.ApproxDP,
    ledger: dpci.Ledger,
    l2_strength: float = 1e-3,
) -> Effect:
    """Effect of a treatment (n,) on an outcome (n,), both 0 or 1, given covariates (n, m); long rows are clipped to 1.

    The ledger of the data set pays, or raises ``dpci.BudgetExceeded`` before anything is computed.
    """
    rows = lowlevel.checked_rows(covariates, rows=dpci.rows.Clipped(1.0))
    arm = np.asarray(treated, dtype=float) - 0.5  # with another coding the rows are too long, and refused
    result = dpci.fit(
        np.column_stack([rows, arm]),
        outcome,
        classes=(0, 1),
        budget=budget,
        mechanism=dpci.ObjectivePerturbation(noise="gaussian"),  # what the interval assumes
        l2_strength=l2_strength,
        rows=float(np.hypot(1.0, 0.5)),
        ledger=ledger,
    )
    contrast = np.eye(len(result.names))[-2]  # the parameter of the arm; the intercept is last
    assert result.hessian is not None  # it is None with moments="none" alone
    assert result.gradient_cov is not None
    ((sampling,), _) = lowlevel.error_components(
        result.hessian, result.gradient_cov, result.n_samples, [contrast], mechanism="objective"
    )
    variance = float(contrast @ result.cov @ contrast)
    return Effect(float(contrast @ result.params), variance, 1.0 - float(sampling) / variance)


def pool(effects: Sequence[Effect]) -> Effect:
    """Pool sites by inverse variance. Sites send their effects, never their rows."""
    weights = np.array([1.0 / effect.variance for effect in effects])
    estimate = float(np.average([effect.estimate for effect in effects], weights=weights))
    noise_share = float(np.average([effect.noise_share for effect in effects], weights=weights))
    return Effect(estimate, float(1.0 / weights.sum()), noise_share)
