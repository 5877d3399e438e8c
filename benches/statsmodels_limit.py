"""How far a fit is from statsmodels' sandwich (HC0) numbers as lambda goes to 0 and epsilon to infinity."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import statsmodels
import statsmodels.api as sm
from numpy.typing import NDArray
from scipy.special import ndtr

import dpci
from _environments import now
from _timing import commit

_F64 = NDArray[np.float64]
STRENGTHS = (1e-4, 1e-6, 1e-8, 1e-9)
EPSILONS = (1e2, 1e4, 1e6, 1e8)
NO_NOISE = "no noise"
# Levels of a factor with fewer rows than this of either outcome are joined to the reference level: without, there is no
# maximum of the likelihood to converge to.
LEAST_ROWS = 10
# Below this a p-value is a subnormal float, and statsmodels' soon 0.
LEAST_PVALUE = 1e-300


@dataclass(frozen=True)
class Numbers:
    """Numbers that both print about a model, the intercept last."""

    params: _F64
    std_errors: _F64
    pvalues: _F64
    lower: _F64
    upper: _F64


@dataclass(frozen=True)
class Distance:
    """The greatest differences over the parameters, as shares of what statsmodels says."""

    params: float  # of the estimate
    params_in_errors: float  # of its standard error
    std_errors: float
    log_pvalues: float  # of the logarithm, where neither is 0
    intervals: float  # of either end, of the length of the interval

    def greatest(self) -> float:
        """Return the worst of all shares."""
        return max(vars(self).values())


def distance(found: Numbers, reference: Numbers) -> Distance:
    """Compare two sets of numbers."""
    shown = np.minimum(found.pvalues, reference.pvalues) > LEAST_PVALUE
    logs, reference_logs = np.log(found.pvalues[shown]), np.log(reference.pvalues[shown])
    ends = np.stack([found.lower - reference.lower, found.upper - reference.upper])
    return Distance(
        params=float(np.max(np.abs(found.params / reference.params - 1))),
        params_in_errors=float(np.max(np.abs(found.params - reference.params) / reference.std_errors)),
        std_errors=float(np.max(np.abs(found.std_errors / reference.std_errors - 1))),
        log_pvalues=float(np.max(np.abs(logs / reference_logs - 1))),
        intervals=float(np.max(np.abs(ends) / (reference.upper - reference.lower))),
    )


def full_rank(data: Any, y: _F64) -> tuple[_F64, list[str]]:
    """Return columns without the commonest level of each factor, and without levels too rare for an estimate."""
    present = data.X != 0
    rows = np.minimum(present[y > 0].sum(axis=0), present[y <= 0].sum(axis=0))
    kept = []
    for _, group in groupby(range(data.X.shape[1]), key=lambda j: data.names[j].partition("=")[0]):
        levels = list(group)
        reference = max(levels, key=lambda j: present[:, j].sum()) if len(levels) > 1 else None
        kept += [j for j in levels if j != reference and rows[j] >= LEAST_ROWS]
    return np.ascontiguousarray(data.X[:, kept]), [data.names[j] for j in kept]


def logit(X: _F64, y: _F64) -> Numbers:
    """Return statsmodels' logistic regression."""
    fitted = sm.Logit((y > 0).astype(float), np.column_stack([X, np.ones(len(X))])).fit(
        method="newton", disp=0, tol=1e-14, maxiter=100, cov_type="HC0"
    )
    assert fitted.mle_retvals["converged"]
    return of_statsmodels(fitted)


def ols(X: _F64, y: _F64) -> Numbers:
    """Return statsmodels' linear regression, with the normal law as for the logistic one."""
    return of_statsmodels(sm.OLS(y, np.column_stack([X, np.ones(len(X))])).fit(cov_type="HC0"))


def of_statsmodels(fitted: Any) -> Numbers:
    """Read off a fitted model."""
    lower, upper = np.asarray(fitted.conf_int()).T
    return Numbers(*(np.asarray(values) for values in (fitted.params, fitted.bse, fitted.pvalues)), lower, upper)


def of_dpci(result: dpci.PrivateFit) -> Numbers:
    """Read off a released fit."""
    intervals = result.conf_int()
    return Numbers(result.params, result.std_errors, result.pvalues, intervals.lower, intervals.upper)


def fit(X: _F64, y: _F64, *, epsilon: float, l2_strength: float, **keywords: Any) -> Numbers:
    """Release a fit; the floor is the projection that adds nothing where the noise vanishes."""
    mechanism = dpci.ObjectivePerturbation(projection="floor", radius=keywords.pop("radius", None))
    if "loss" not in keywords:
        keywords["classes"] = (-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpci.MomentNoiseWarning)
        result = dpci.fit(X, y, budget=dpci.PureDP(epsilon), l2_strength=l2_strength, mechanism=mechanism, **keywords)
    return of_dpci(result)


def without_noise(X: _F64, y: _F64, *, l2_strength: float, loss: Any = "logistic") -> Numbers:
    """Return the regularised minimiser and its sandwich: the limit in epsilon alone."""
    keywords = {"l2_strength": l2_strength, "loss": loss, "intercept": 1.0}
    params = dpci.lowlevel.minimize_erm(X, y, tolerance=1e-7, **keywords).params
    hessian, gradient_cov = dpci.lowlevel.hessian_and_gradient_cov(X, y, params, **keywords)
    variance, _ = dpci.lowlevel.error_components(
        hessian, gradient_cov, len(X), np.eye(len(params)), mechanism="objective"
    )
    half_widths = dpci.lowlevel.exact_half_widths(
        variance, np.zeros_like(variance), noise_law="gaussian", noise_scale=1.0, dim=len(params)
    )
    errors = np.sqrt(variance)
    pvalues = 2 * ndtr(-np.abs(params) / errors)
    return Numbers(params, errors, pvalues, params - half_widths, params + half_widths)


def study(X: _F64, y: _F64, reference: Numbers, **keywords: Any) -> dict[tuple[str, float], Distance | None]:
    """Return the distances at all settings; None where there are no intervals, "no noise" where lambda alone acts."""
    found: dict[tuple[str, float], Distance | None] = {}
    for strength in STRENGTHS:
        for epsilon in EPSILONS:
            try:
                numbers = fit(X, y, epsilon=epsilon, l2_strength=strength, **keywords)
            except dpci.InvalidInput:
                found[f"{epsilon:g}", strength] = None
            else:
                found[f"{epsilon:g}", strength] = distance(numbers, reference)
        numbers = without_noise(X, y, l2_strength=strength, loss=keywords.get("loss", "logistic"))
        found[NO_NOISE, strength] = distance(numbers, reference)
    return found


def linear(X: _F64, names: Sequence[str]) -> tuple[_F64, _F64]:
    """Return the other columns and the hours of work a week as a numeric target within [0, 1]."""
    hours = names.index("hours-per-week")
    return np.delete(X, hours, axis=1), X[:, hours] / X[:, hours].max()


# The ball has to leave room for the test that it does not bind, which asks for the worst direction of the rows.
RADIUS = 100.0
LINEAR = {"loss": dpci.losses.Squared(target_bound=1.0), "radius": RADIUS}


def percent(share: float) -> str:
    """Two significant digits, without an exponent where it is large."""
    return f"{100 * share:,.0f}" if share > 0.1 else f"{100 * share:.2g}"


def print_table(found: Mapping[tuple[str, float], Distance | None]) -> None:
    """Print a Markdown table in percent."""
    print("| lambda | epsilon | estimate | of its std error | std error | log p-value | interval |")
    print("|---|---|---|---|---|---|---|")
    for (epsilon, strength), shares in found.items():
        cells = ["none"] * 5 if shares is None else [percent(share) for share in vars(shares).values()]
        print(f"| {strength:g} | {epsilon} | {' | '.join(cells)} |")


ABOUT = """# The limit: statsmodels' sandwich numbers

`python benches/statsmodels_limit.py`, commit {commit}, {date}, noise not seeded,
statsmodels {statsmodels}, numpy {numpy}.

As lambda goes to 0 and epsilon to infinity, the released values converge to what statsmodels prints with
`cov_type="HC0"`. The tables have the greatest difference over all parameters, in percent: of the estimate; of the
estimate, as a share of its standard error; of the standard error; of the logarithm of the p-value (down to 1e-300); of
the ends of the 95% intervals, as a share of their length. Each line is one release under pure DP with
`projection="floor"`. "no noise" is the minimiser at that lambda with its own sandwich, so that only lambda has an
effect.

## What stands between a fit and 1%

- **Lambda**, against the least eigenvalue of the Hessian: {least:.1e} in the logistic model below. It shrinks a
  parameter in that direction by about lambda over that eigenvalue, so 1% needs a lambda a hundred times smaller, and
  small parameters more. This is the regularisation that defines the target, not an error of the fit.
- **Noise in the Hessian**, against the same eigenvalue: the standard error in that direction is wrong by about the
  quotient. Below some epsilon a smaller lambda makes it worse, because lambda is also the floor of the projection.
- **Noise in the parameters** counts in the standard error, and is the smallest of the three here.
- **Output perturbation has no such limit**: its noise is proportional to 1/lambda. Objective perturbation divides by
  the Hessian instead.
- **A ball** (the squared loss needs one) has to be so large that released values show it does not bind, in the worst
  direction that the rows leave: about {radius:g} here, for parameters of norm {norm:.2g}.
"""


def main() -> None:
    data = dpci.datasets.load_adult()
    X, names = full_rank(data, data.y)
    rows, hours = linear(X, names)
    references = logit(X, data.y), ols(rows, hours)
    hessian, _ = dpci.lowlevel.hessian_and_gradient_cov(
        X, data.y, references[0].params, l2_strength=1e-12, intercept=1.0
    )
    print(
        ABOUT.format(
            commit=commit(),
            date=now(),
            statsmodels=statsmodels.__version__,
            numpy=np.__version__,
            least=np.linalg.eigvalsh(hessian)[0],
            radius=RADIUS,
            norm=np.linalg.norm(references[1].params),
        )
    )
    print("## Logistic regression: `Logit`\n")
    print(f"Adult, {len(X):,} rows, {X.shape[1]} columns of full rank and the intercept: the commonest level of each")
    print(f"factor is left out, and levels with fewer than {LEAST_ROWS} rows of either outcome are joined to it.\n")
    print_table(study(X, data.y, references[0]))
    print("\n## Linear regression: `OLS`\n")
    print(f"Hours of work a week on the other columns, squared loss on a ball of radius {RADIUS:g}.\n")
    print_table(study(rows, hours, references[1], **LINEAR))


if __name__ == "__main__":
    main()
