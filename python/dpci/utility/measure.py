"""Utility as a function of epsilon: how good a private model would be at other budgets, from one fit. Never private."""

import dataclasses
import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci.base.progress import progress_bar
from dpci.base.threads import check_threads
from dpci.base.validation import broken, check_count, check_flag, check_seed
from dpci.base.warn import warn
from dpci.budgets import ZCDP, AddRemove, ApproxDP, Budget, PureDP, planned_neighbors
from dpci.data.arrays import Table, as_vector
from dpci.data.rows import Source, read
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.mechanisms import ObjectivePerturbation, without_moments
from dpci.model.keywords import MODEL_KEYWORDS, check_keywords
from dpci.model.settings import ModelKeywords, Settings
from dpci.sources.described import check_unit_columns
from dpci.unit import Persons, Weights, given_unit
from dpci.utility.expected import BudgetPath
from dpci.utility.metrics import MetricLike, SmoothedAccuracy, check_metric, evaluator
from dpci.utility.result import UtilityCurve

__all__ = ["curve"]

_KEYWORDS = tuple(name for name in MODEL_KEYWORDS if name != "budget")


def curve(
    X: Table,
    y: ArrayLike,
    *,
    at: Budget,
    metric: MetricLike = "loss",
    n_draws: int = 1,
    seed: int = 0,
    n_steps: int = 2,
    params: ArrayLike | None = None,
    persons: ArrayLike | Persons | None = None,
    weights: Weights | None = None,
    progress: bool | None = None,
    n_threads: int | None = None,
    **keywords: Unpack[ModelKeywords],
) -> UtilityCurve:
    """Fit at one budget, the measuring point, and predict the utility at all others without fitting again.

    The noise is one draw u times a scale s(epsilon). For a fixed u, the private parameters are a smooth function of
    epsilon, which is followed by its derivative or by Newton steps (Li, Liu, Li, Wang & Liu, "Towards Practical
    Differential Privacy in Data Analysis: Understanding the Effect of Epsilon on Utility in Private ERM", with the
    corrections of docs/utility.md). The result is NOT PRIVATE: utilities are computed from the data.

    Parameters
    ----------
    X, y
        See :func:`dpci.fit`. The rows are copied, and equal rows are merged if this at least halves their number.
    at : PureDP, ZCDP or ApproxDP
        The measuring budget. Other budgets differ from it in their first number, epsilon, or rho under zCDP, and have
        the same delta.
    metric : {"loss", "smoothed_accuracy"} or object
        "loss" is the mean loss without the regulariser; otherwise :class:`SmoothedAccuracy` or :class:`Metric`. In the
        means of the first two each row counts as in the fit: by its share of its person, and by its weight.
    n_draws : int
        Number of draws of the noise, over which utilities are averaged. Each needs a fit.
    seed : int
        Seed of the noise: the first draw is that of :func:`dpci.fit` with this seed.
    n_steps : int
        Newton steps of a prediction. The second and later ones read the data.
    params : array-like of shape (k,), optional
        Parameters to start from instead of the fitted ones, at the budget ``at``. They need not be a minimiser: the
        residual of their gradient is subtracted, so that they minimise a convex model (section 5.1 of Li et al.). Only
        with one draw.
    persons : array-like of shape (n_samples,) or Persons, optional
        See :func:`dpci.fit`: the person to whom each row belongs, and how much the rows of a person count.
    weights : Weights, optional
        See :func:`dpci.fit`: how much each row counts, with the public bound and total.
    progress : bool, optional
        Whether a progress bar shows the fits of the draws, and later those of
        :meth:`UtilityCurve.epsilon_for`; it needs tqdm. None: on a terminal and in a notebook, where it is installed.
    n_threads : int, optional
        Threads; None: all cores. The result does not depend on it.
    **keywords
        Keywords of :func:`dpci.fit` that say what is fitted; ``l2_strength`` is required. Unless the mechanism says
        otherwise, no moments are released, so the coefficients get the whole budget; ``n_public`` is by default the
        number of records. Not supported are a ``radius``, losses that need one (squared, custom ones with
        ``predictor_bound``) and losses with a kink (hinge).

    Returns
    -------
    UtilityCurve
        Predictions, their mean over the noise, and the epsilon for a target utility.

    Raises
    ------
    InvalidInput, RowNormViolation, RegularizationTooSmall, NotConverged
        See :func:`dpci.fit`.

    Warns
    -----
    PrivacyLeakWarning
        Always.

    Notes
    -----
    With ``calibration="paper"``, an (epsilon, delta) budget and objective perturbation the mechanism is that of Kifer,
    Smith & Thakurta in the form of Li et al., Theorem 1: ``2tR²/(n epsilon)`` is added to ``l2_strength``.

    Examples
    --------
    >>> import warnings, numpy as np, dpci
    >>> warnings.simplefilter("ignore", dpci.PrivacyLeakWarning)
    >>> X = np.tile([[0.6, 0.0], [-0.6, 0.1], [0.2, 0.5]], (500, 1))
    >>> y = np.tile([1, -1, 1, 1, -1], 300)
    >>> curve = dpci.utility.curve(X, y, at=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.05)
    >>> bool(curve.predict_utility(2.0) < curve.predict_utility(0.5))
    True
    """
    unit, weighing, beside = given_unit(persons, weights)
    source = Source(X, y, beside)
    check_unit_columns(None, source)
    settings = _settings(at, keywords, unit, weighing)
    chosen = check_metric(metric)
    counts = {"n_draws": check_count("n_draws", n_draws), "n_steps": check_count("n_steps", n_steps)}
    number = check_seed(seed)
    if number is None:
        raise InvalidInput("seed must be an integer in [0, 2**64), got seed=None")
    n_threads = check_threads(n_threads)
    progress = None if progress is None else check_flag("progress", progress)

    def path_of(n_samples: int, n_columns: int) -> BudgetPath:
        # Nothing here is private, so the number of records may stand for the public one.
        counted = isinstance(keywords.get("neighbors"), str) and settings.n_public is not None
        chosen = dataclasses.replace(settings, n_public=n_samples) if counted else settings
        found = BudgetPath(settings=chosen, n_samples=n_samples, n_columns=n_columns)
        if found.spec(found.at).noise_law.startswith("shaped"):
            raise InvalidInput(
                "a utility curve requires noise with the same spread in every direction, got noise in the shape of "
                f"rows={chosen.rows!r}: pass mechanism=dpci.ObjectivePerturbation(noise='spherical_laplace'), or "
                "noise='gaussian' under ApproxDP"
            )
        return found

    rows, path = read(source, settings, path_of)
    if isinstance(chosen, SmoothedAccuracy) and not settings.two_classes:
        raise InvalidInput("metric='smoothed_accuracy' requires a loss of two classes, got one with real targets")
    given = None if params is None else _checked_params(params, len(rows.names), counts["n_draws"])
    spec = path.spec(path.at)
    utility = _core.Utility(spec, rows.records, on_violation=settings.on_violation, n_threads=n_threads)
    what = "its utilities at private and non-private parameters are computed from the data"
    warn(PrivacyLeakWarning(f"a utility curve is NOT PRIVATE: {what}"))
    anchors: list[_core.UtilityAnchor] = []
    with progress_bar(counts["n_draws"], "draws", wanted=progress) as advance:
        for draw in range(counts["n_draws"]):
            noise = _core.Utility.draw_noise(spec, number, draw)
            start = anchors[0].params if anchors else None
            anchors.append(utility.anchor(spec, noise, params=given, start=start))
            advance(1)
    return UtilityCurve(
        path=path,
        names=rows.names,
        seed=number,
        n_steps=counts["n_steps"],
        core=utility,
        evaluator=evaluator(chosen, utility),
        anchors=tuple(anchors),
        progress=progress,
    )


def _settings(at: object, keywords: ModelKeywords, unit: Persons | None, weights: Weights | None) -> Settings:
    check_keywords("curve", keywords, allowed=_KEYWORDS, required=("l2_strength",))
    if not isinstance(at, PureDP | ZCDP | ApproxDP):
        raise broken("at", "dpci.PureDP, dpci.ZCDP or dpci.ApproxDP", at)
    mechanism = without_moments(keywords.get("mechanism", ObjectivePerturbation.name))
    complete: dict[str, Any] = {**keywords, "mechanism": mechanism, "persons": unit, "weights": weights, "budget": at}
    # 1 stands for the number of records, which is not known yet.
    given = keywords.get("neighbors", "replace_one")
    complete["neighbors"] = planned_neighbors(given, given.n_public if isinstance(given, AddRemove) else 1)
    settings = Settings.checked(**complete)
    core = settings.core_loss
    if core.kinked or core.predictor_bound is not None or math.isinf(core.slope_bound):
        raise InvalidInput(
            "a utility curve requires a loss without a kink whose slope is bounded for all parameters, got "
            f"loss={settings.loss.name!r}"
        )
    if settings.radius is not None:
        raise InvalidInput(
            "radius must be None for a utility curve, because it follows the unconstrained minimiser, got "
            f"radius={settings.radius}"
        )
    if settings.mechanism.variant != "standard":
        raise InvalidInput("a utility curve requires variant='standard', got variant='cms11'")
    return settings


def _checked_params(params: ArrayLike, dim: int, n_draws: int) -> NDArray[np.float64]:
    if n_draws != 1:
        raise InvalidInput(
            f"n_draws must be 1 if params are given, because they belong to one draw, got n_draws={n_draws}"
        )
    vector = as_vector("params", params)
    if len(vector) != dim or not np.isfinite(vector).all():
        raise InvalidInput(f"params must hold {dim} finite numbers, the intercept last, got {params!r}")
    return vector
