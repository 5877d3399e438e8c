"""Worst-case bounds on the error of output perturbation, from public numbers alone: no data are read."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, Unpack

import numpy as np
from scipy.special import chdtri, gammainccinv

from dpci.base.validation import check_choice, check_count, check_fraction, check_not_negative, check_reals
from dpci.budgets import planned_neighbors
from dpci.errors import InvalidInput
from dpci.mechanisms import OutputPerturbation, without_moments
from dpci.model.keywords import MODEL_KEYWORDS, UNIT_KEYWORDS, check_keywords
from dpci.model.settings import ModelKeywords, Settings
from dpci.shown.displayed import Displayed
from dpci.shown.document import Document, Facts
from dpci.shown.text import as_text
from dpci.unit import Persons, Weights

Risk: TypeAlias = Literal["training", "empirical", "regularized", "population"]

_RISKS: tuple[Risk, ...] = ("training", "empirical", "regularized", "population")
_WHAT: Final[Mapping[Risk, str]] = {
    "training": "regularised empirical risk",
    "empirical": "empirical risk",
    "regularized": "regularised population risk",
    "population": "population risk",
}
_THEOREMS: Final[Mapping[Risk, str]] = {
    "training": "Lemma 22",
    "empirical": "proof of Theorem 21, empirical part",
    "regularized": "Theorem 20",
    "population": "Theorem 21",
}
_IID = "{records} are independent draws from one population within the public bounds"
_ANY = "nothing about the data beyond the public bounds"
_OF_RELATION: Final[Mapping[str, tuple[str, ...]]] = {
    "replace_one": (),
    "add_remove": ("the number of {records} is n_public",),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class ErrorBound(Displayed):
    """A bound on an excess risk that holds with a stated probability, computed from public numbers alone.

    Attributes
    ----------
    value : float
        The excess risk is at most this, in the unit of the mean loss.
    of : str
        The bounded risk.
    radius : float or None
        The excess is over the least value on this ball, even if the ball excludes the best parameters; None: over the
        least value of all.
    failure_probability : float
        Probability over the noise and, for risks of the population, the sample, with which the bound may fail.
    noise_norm : float
        Bound on the norm of the noise: the quantile of its law at its share of the failure probability.
    slope_bound : float
        Bound on the slope of the loss at the released parameters, with the same probability.
    terms : mapping
        The addends of ``value``: "noise", "generalization", "regularization", if present.
    theorem : str
        Which theorem of Wu, Fredrikson, Wu, Jha & Naughton gives the bound; its constants are corrected.
    assumes : tuple of str
        The assumptions of the bound besides the public bounds.
    """

    value: float
    of: Risk
    radius: float | None
    failure_probability: float
    noise_norm: float
    slope_bound: float
    terms: Mapping[str, float]
    theorem: str
    assumes: tuple[str, ...]

    def summary(self) -> str:
        """Aligned lines of the bound, its parts and its assumptions."""
        return as_text(self._document())

    def _document(self) -> Document:
        facts = [
            ("at most", f"{self.value:.6g}"),
            *((f"  {name}", f"{term:.6g}") for name, term in self.terms.items()),
            ("fails with", f"probability {self.failure_probability:g}"),
            ("norm of the noise", f"{self.noise_norm:.6g}"),
            ("slope", f"{self.slope_bound:.6g}"),
            ("theorem", f"{self.theorem}, constants corrected"),
            *(("assumes", text) for text in self.assumes),
        ]
        where = "of all" if self.radius is None else f"on the ball of radius {self.radius:g}"
        title = f"Bound on the {_WHAT[self.of]} above its least value {where}"
        return Document(title=title, parts=[Facts(facts)])

    def __repr__(self) -> str:
        return self.summary()


class BoundKeywords(ModelKeywords, total=False):
    """Keywords of :func:`dpci.fit` that say what is fitted, and how much records count."""

    persons: Persons | None
    weights: Weights | None


def bound(
    *,
    n_samples: int,
    n_features: int,
    of: Risk = "population",
    failure_probability: float = 0.05,
    rate: tuple[float, float] | None = None,
    **keywords: Unpack[BoundKeywords],
) -> ErrorBound:
    """Bound the error of output perturbation before any data are seen.

    Theorems 18, 20 and 21 and Lemma 22 of Wu, Fredrikson, Wu, Jha & Naughton, "Revisiting differentially private
    regression", with corrected constants and the quantile of the actual noise. docs/bounds.md has the proofs, and
    compares the bounds with measured errors.

    Parameters
    ----------
    n_samples, n_features : int
        Public number of records, and of columns without the intercept. With ``persons``
        records are persons.
    of : {"training", "empirical", "regularized", "population"}
        The risk, in excess of its least value on the ball of ``radius``: the regularised mean loss over the sample, the
        mean loss over the sample, or the same two over the population. If the best parameters lie outside the ball, no
        bound covers the difference to them. Without a radius, the first and the third are in excess of the least value
        of all.
    failure_probability : float
        Probability that the bound fails. For risks of the population, it is divided between sample and noise so that
        the bound is least.
    rate : tuple of float, optional
        (excess, probability): a bound on the excess population risk of the minimiser without noise that fails with this
        probability, from elsewhere. Theorem 18 then adds the noise to it. Only with ``of="population"``.
    **keywords
        Keywords of :func:`dpci.fit` that say what is fitted; ``budget`` and ``l2_strength`` are required, and
        ``mechanism`` is output perturbation, by default without moments. A radius is
        required for the risks without the regulariser, and for the squared loss. Under ``neighbors="add_remove"``
        ``n_public`` is ``n_samples`` and may be left out. With ``persons=dpci.Persons()`` the mean loss is that over
        persons, with ``weights=dpci.Weights(bound=...)`` the weighted sum of losses over the total.

    Returns
    -------
    ErrorBound
        The bound and its parts. They are public, because they use no data.

    Raises
    ------
    InvalidInput
        For arguments out of range, and for objective perturbation, which the theorems do not cover.

    Examples
    --------
    >>> import dpci
    >>> bound = dpci.utility.bound(
    ...     n_samples=100_000, n_features=10, of="training", budget=dpci.PureDP(1.0), l2_strength=0.1
    ... )
    >>> round(bound.value, 6)
    3e-06
    """
    n_samples = check_count("n_samples", n_samples)
    n_features = check_count("n_features", n_features)
    of = check_choice("of", of, _RISKS)
    failure_probability = check_fraction("failure_probability", failure_probability)
    known = _checked_rate(rate, of, failure_probability)
    problem = _Problem(_settings(keywords, n_samples), n_samples, n_features, of)
    if of in {"training", "empirical"}:
        return problem.over_the_noise(failure_probability)
    if known is not None:
        return problem.with_rate(known[0], failure_probability - known[1], failure_probability)
    return problem.over_the_population(failure_probability)


def _settings(keywords: BoundKeywords, n_samples: int) -> Settings:
    check_keywords("bound", keywords, allowed=(*MODEL_KEYWORDS, *UNIT_KEYWORDS))
    mechanism = without_moments(keywords.get("mechanism", OutputPerturbation.name))
    complete: dict[str, Any] = {**keywords, "mechanism": mechanism}
    complete["neighbors"] = planned_neighbors(keywords.get("neighbors", "replace_one"), n_samples)
    settings = Settings.checked(**complete)
    if settings.mechanism.name != "output":
        raise InvalidInput("bounds require output perturbation, got mechanism='objective'")
    return settings


def _checked_rate(rate: object, of: Risk, failure_probability: float) -> tuple[float, float] | None:
    if rate is None:
        return None
    if of != "population":
        raise InvalidInput(f"rate must be None unless of='population', got rate={rate!r} with of={of!r}")
    excess, probability = check_reals("rate", rate, 2)
    excess = check_not_negative("rate[0]", excess)
    if not (0.0 <= probability < failure_probability):
        raise InvalidInput(
            f"rate[1] must be >= 0 and below failure_probability={failure_probability}, got rate[1]={probability}"
        )
    return excess, probability


class _Problem:
    """The constants of one fit, and the bounds that they give. Notation of docs/bounds.md."""

    def __init__(self, settings: Settings, n_samples: int, n_features: int, of: Risk) -> None:
        spec = settings.spec(n_samples, n_features)
        plan = spec.plan()
        self.of, self.n = of, settings.public_n(n_samples)
        self.dim, self.row_norm, self.tolerance = plan["n_params"], plan["row_norm"], plan["tolerance"]
        self.law, self.scale = spec.noise_law, spec.noise_scale
        self.loss, self.l2_strength, self.strong_convexity = settings.core_loss, spec.l2_strength, spec.strong_convexity
        self.radius, self.projected = settings.radius, settings.mechanism.project
        if self.radius is None and of in {"empirical", "population"}:
            raise InvalidInput(
                f"radius must be given with of={of!r}, because the comparison is with the best of a ball, got "
                "radius=None"
            )
        # What the records count together over what divides their sums: 1, but for weights.
        divisor = self.n if settings.weights is None else settings.weights.divisor(self.n)
        self.mass = self.n / divisor
        # Strong convexity bounds the minimiser by the gradient at zero.
        at_zero = spec.slope_bound * self.row_norm
        self.reach = self.mass * at_zero / self.strong_convexity if self.radius is None else self.radius
        limit = self.loss.predictor_bound
        if limit is not None and not self.projected:
            raise InvalidInput(
                f"a loss whose bounds hold up to predictors of {limit:g} requires "
                "dpci.OutputPerturbation(project=True), because noise leaves the ball, got project=False"
            )
        # How far the minimiser moves when one record is replaced; of most losses less than by the slope alone.
        self.stability = 2.0 * at_zero / (divisor * self.strong_convexity)
        if settings.neighbors == "replace_one":
            self.stability = min(self.stability, plan["steps"][0].sensitivity)
        self.records = "records" if settings.unit is None else "persons"
        self.facts = _OF_RELATION[settings.neighbors]

    def noise_norm(self, failure: float) -> float:
        """Quantile of the norm of the noise, and the distance that the solver is allowed."""
        if self.law == "gaussian":
            quantile = float(np.sqrt(chdtri(self.dim, failure)))
        else:
            quantile = float(gammainccinv(self.dim, failure))
        return self.scale * quantile + self.tolerance

    def slope(self, noise_norm: float) -> float:
        """Lipschitz constant of the loss in the predictor where the parameters are at most that far off."""
        farthest = self.reach + (0.0 if self.projected else noise_norm)
        return min(self.loss.slope_bound, self.loss.sup_slope(self.row_norm * farthest))

    def lipschitz(self, failure: float) -> float:
        """Return what the noise adds to a mean loss at most."""
        norm = self.noise_norm(failure)
        return self.mass * self.slope(norm) * self.row_norm * norm

    def regularised(self, failure: float) -> float:
        """Return the same for a mean loss with its regulariser."""
        norm = self.noise_norm(failure)
        second = 0.0 if self.projected else norm**2 / 2.0
        return self.lipschitz(failure) + self.l2_strength * (self.reach * norm + second)

    def smooth(self, failure: float) -> float:
        """Return the same over the sample where the gradient vanishes at the minimiser: half the largest curvature."""
        norm = self.noise_norm(failure)
        farthest = self.row_norm * (self.reach + norm)
        curvature = self.mass * self.loss.sup_curvature(farthest) * self.row_norm**2 + self.l2_strength
        return curvature * norm**2 / 2.0

    def over_the_noise(self, failure: float) -> ErrorBound:
        """Lemma 22, and the empirical part of Theorem 21."""
        if self.of == "empirical":
            terms = {"noise": self.lipschitz(failure), "regularization": self.l2_strength * self.reach**2 / 2.0}
        elif self.radius is None and not self.loss.kinked:
            terms = {"noise": min(self.smooth(failure), self.regularised(failure))}
        else:
            terms = {"noise": self.regularised(failure)}
        return self._bound(terms, failure, failure, (_ANY,))

    def over_the_population(self, failure: float) -> ErrorBound:
        """Theorems 20 and 21: the failure probability is shared so that the sum is least."""

        def terms(for_noise: float) -> dict[str, float]:
            # Of the minimiser, which lies in the ball: nothing of the noise enters.
            slope = min(self.loss.slope_bound, self.loss.sup_slope(self.row_norm * self.reach))
            generalization = self.mass * slope * self.row_norm * self.stability / (failure - for_noise)
            if self.of == "regularized":
                return {"noise": self.regularised(for_noise), "generalization": generalization}
            return {
                "noise": self.lipschitz(for_noise),
                "generalization": generalization,
                "regularization": self.l2_strength * self.reach**2 / 2.0,
            }

        from scipy.optimize import minimize_scalar  # noqa: PLC0415  # slow to import, and few bounds need it

        best = minimize_scalar(
            lambda share: sum(terms(failure * 10.0**-share).values()), bounds=(1e-3, 12.0), method="bounded"
        )
        for_noise = failure * 10.0 ** -float(best.x)
        return self._bound(terms(for_noise), for_noise, failure, (_IID,))

    def with_rate(self, excess: float, for_noise: float, failure: float) -> ErrorBound:
        """Theorem 18: a known rate of the minimiser, and what the noise adds."""
        terms = {"noise": self.lipschitz(for_noise), "generalization": excess}
        facts = (_IID, "the minimiser without noise has the excess risk that was given as rate")
        return self._bound(terms, for_noise, failure, facts, theorem="Theorem 18")

    def _bound(
        self,
        terms: Mapping[str, float],
        for_noise: float,
        failure: float,
        assumes: tuple[str, ...],
        *,
        theorem: str | None = None,
    ) -> ErrorBound:
        norm = self.noise_norm(for_noise)
        return ErrorBound(
            value=sum(terms.values()),
            of=self.of,
            radius=self.radius,
            failure_probability=failure,
            noise_norm=norm,
            slope_bound=self.slope(norm),
            terms=MappingProxyType(dict(terms)),
            theorem=theorem or _THEOREMS[self.of],
            assumes=tuple(text.format(records=self.records) for text in (*assumes, *self.facts)),
        )
