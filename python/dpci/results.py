"""The result of a private fit: released parameters and matrices, and everything that follows from them without data."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpci import _core
from dpci._linear_model import LinearModel
from dpci._seal import seal_cost, seal_facts
from dpci.accounting import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.arrays import as_numbers, check_finite
from dpci.budgets import Budget, budget_from_parameters
from dpci.domain import refusal
from dpci.errors import InvalidInput
from dpci.intervals import ConfidenceIntervals
from dpci.labels import Classes
from dpci.plotting import forest_plot
from dpci.record import FitRecord
from dpci.summary import summary_text
from dpci.validation import check_choice, check_count, check_fraction, check_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrivateFit"]

# Steps add up to the budget except for rounding.
_ROUNDING = 1e-9


class PrivateFit(LinearModel):
    """A released model. Holds released and public values only; made by :func:`dpci.fit`, never changed.

    Attributes are read-only; arrays are read-only too. k is the number of parameters, the intercept included.
    """

    __slots__ = ("_record",)

    def __init__(self, record: FitRecord) -> None:
        self._record = record

    @property
    def _facts(self) -> FitRecord:
        return self._record

    # What was released.

    @property
    def hessian(self) -> NDArray[np.float64] | None:
        """Released and projected Hessian of the mean objective, shape (k, k); None without moments."""
        return self._record.hessian

    @property
    def gradient_cov(self) -> NDArray[np.float64] | None:
        """Released and projected covariance of the gradient of one record, shape (k, k); None without moments."""
        return self._record.gradient_cov

    # What is public about it.

    @property
    def budget(self) -> Budget:
        """The budget that was asked for."""
        return self._record.total_budget()

    @property
    def spent(self) -> Budget:
        """What the steps spent together, in the notion of the budget; never more than the budget."""
        record = self._record
        total = self.budget
        if record.notion == "approx":
            return total
        name, whole = next(iter(record.budget.items()))
        cost = sum(step.cost for step in record.steps) + seal_cost(record.seals, record.steps).get(name, 0.0)
        return total if cost >= whole * (1 - _ROUNDING) else budget_from_parameters(record.notion, {name: cost})

    @property
    def private(self) -> bool:
        """Whether the noise came from the operating system; False for seeded fits."""
        return self._record.private

    @property
    def n_samples(self) -> int:
        """The public number of samples: ``n_public`` under add/remove."""
        return self._record.n_samples

    @property
    def l2_strength(self) -> float:
        """The regularisation λ, which is part of the definition of the target."""
        return self._record.l2_strength

    @property
    def loss(self) -> dict[str, Any]:
        """Name, parameter and public bounds of the loss."""
        return deepcopy(self._record.loss)

    @property
    def mechanism(self) -> str:
        """Where the noise enters: "objective" or "output"."""
        return self._record.mechanism

    @property
    def classes(self) -> Classes | None:
        """(negative, positive) in the caller's labels; None for real targets."""
        return self._record.classes

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        return {
            "private": record.private,
            "relation": record.neighbors,
            "notion": record.notion,
            "budget": dict(record.budget),
            "spent": self.spent.parameters(),
            "cost_unit": record.cost_unit,
            "steps": [step.to_dict() for step in record.steps],
            "seal": seal_facts(record.seals),
            "mechanism": record.mechanism,
            "variant": record.variant,
            "project": record.project,
            "calibration": record.calibration,
            "moments": record.moments,
            "projection": record.projection,
            "constants": {
                "n_public": record.n_samples,
                "l2_strength": record.l2_strength,
                "radius": record.radius,
                "slope_bound": record.slope_bound,
                "curvature_bound": record.curvature_bound,
                "row_norm": record.row_norm,
                "intercept_scale": record.intercept_scale,
                "on_violation": record.on_violation,
                "loss": deepcopy(record.loss),
            },
            "conditions": conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for a seeded fit."""
        record = self._record
        facts = {name: getattr(record, name) for name in GUARANTEE_FACTS}
        return guarantee_of(self.budget, record.steps, record.seals, n_samples=record.n_samples, **facts)

    # What follows from it: post-processing, which costs nothing.

    @property
    def interval_refusal(self) -> str | None:
        """Why there are no intervals, standard errors and p-values; None where there are."""
        return refusal(self._record)

    @property
    def cov(self) -> NDArray[np.float64]:
        """Covariance of the error of the parameters, sampling and noise together, shape (k, k)."""
        hessian, gradient_cov = self._moments()
        record = self._record
        cov = _core.error_cov(
            hessian, gradient_cov, record.n_samples, record.mechanism, record.noise_law, record.noise_scale
        )
        cov[np.diag_indices_from(cov)] += self._seal_variance
        cov.flags.writeable = False
        return cov

    @property
    def std_errors(self) -> NDArray[np.float64]:
        """Standard deviation of the error of each parameter, shape (k,)."""
        errors = np.sqrt(np.diag(self.cov))
        errors.flags.writeable = False
        return errors

    @property
    def pvalues(self) -> NDArray[np.float64]:
        """Two-sided p-values of "the parameter of the regularised target is 0", shape (k,)."""
        v, a = self._error_components(np.eye(len(self.names)))
        record = self._record
        pvalues = _core.exact_pvalues(v, a, record.noise_law, record.noise_scale, len(self.names), self.params)
        pvalues.flags.writeable = False
        return pvalues

    def conf_int(
        self,
        *,
        level: float = 0.95,
        method: Literal["exact", "monte_carlo"] = "exact",
        contrast: ArrayLike | None = None,
        n_draws: int = 10_000,
        seed: int | None = None,
    ) -> ConfidenceIntervals:
        """Confidence intervals for parameters or contrasts of them, marginally.

        The target is the minimiser of the *population* regularised risk at this ``l2_strength``, coordinate by
        coordinate. Intervals account for sampling, for the noise of the coefficients and for that of their seal (as if
        it were normal), not for the noise in the released matrices.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        method : {"exact", "monte_carlo"}
            The quantile of the error's law by quadrature, or empirical quantiles of draws (Wang, Kifer & Lee,
            Algorithms 3 and 5), which converge to it.
        contrast : array-like of shape (k,) or (m, k), optional
            Coefficients of the linear combinations; None: each parameter.
        n_draws : int
            Draws of the Monte Carlo method.
        seed : int, optional
            Seed of the Monte Carlo method. The draws are no release, so a seed here costs no privacy.

        Returns
        -------
        ConfidenceIntervals
            One interval for each row of the contrast.

        Raises
        ------
        InvalidInput
            For a fit without intervals (see :attr:`interval_refusal`), or arguments out of range.
        """
        level = check_fraction("level", level)
        method = check_choice("method", method, ("exact", "monte_carlo"))
        n_draws = check_count("n_draws", n_draws)
        seed = check_seed(seed)
        contrasts, names = self._contrasts(contrast)
        v, a = self._error_components(contrasts)
        estimate = contrasts @ self.params
        law = (self._record.noise_law, self._record.noise_scale, len(self.names))
        if method == "exact":
            half_width = _core.exact_half_widths(v, a, *law, level)
            lower, upper = -half_width, half_width
        else:
            lower, upper = _core.monte_carlo_interval(v, a, *law, level, n_draws, seed)
        return ConfidenceIntervals(names, estimate, estimate + lower, estimate + upper, level, method)

    def summary(self, *, level: float = 0.95) -> str:
        """Table of estimates and intervals, and the facts that a reader needs to judge them."""
        return summary_text(self, level=level)

    def plot(self, *, level: float = 0.95, ax: "Axes | None" = None) -> "Axes":
        """Forest plot of the intervals; needs matplotlib."""
        return forest_plot(self.conf_int(level=level), private=self.private, ax=ax)

    def to_json(self) -> str:
        """Return the whole result as JSON: released and public values only, floats exactly."""
        return self._record.to_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> "PrivateFit":
        """Rebuild a result from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not a saved result, or of another schema version.
        """
        return cls(FitRecord.from_json(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return PrivateFit.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        seeded = "" if self.private else ", NOT PRIVATE (seeded)"
        return f"<PrivateFit: {len(self.names)} parameters, {self.mechanism} perturbation, {self.spent}{seeded}>"

    def _moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        reason = self.interval_refusal
        if reason is not None or self.hessian is None or self.gradient_cov is None:
            raise InvalidInput(f"{reason}")
        return self.hessian, self.gradient_cov

    def _error_components(self, contrasts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        hessian, gradient_cov = self._moments()
        v, a = _core.error_components(hessian, gradient_cov, self.n_samples, self.mechanism, contrasts)
        # Contrasts beyond the range of floats are refused with the variance that they make infinite.
        with np.errstate(over="ignore"):
            return v + self._seal_variance * (contrasts**2).sum(axis=1), a

    @property
    def _seal_variance(self) -> float:
        """Variance that the seal adds to a parameter."""
        return sum(seal.std_dev**2 for seal in self._record.seals if seal.release == "params")

    def _contrasts(self, contrast: ArrayLike | None) -> tuple[NDArray[np.float64], tuple[str, ...]]:
        k = len(self.names)
        if contrast is None:
            return np.eye(k), self.names
        try:
            with np.errstate(over="ignore"):  # a long double beyond the range becomes infinite, which is refused
                matrix = np.atleast_2d(as_numbers("contrast", contrast)).astype(np.float64)
        except InvalidInput as error:
            raise InvalidInput(f"contrast must be an array of numbers, got {contrast!r}") from error
        if matrix.ndim != 2 or matrix.shape[1] != k:
            raise InvalidInput(f"contrast must have shape ({k},) or (m, {k}), got shape {np.shape(contrast)}")
        return check_finite("contrast", matrix), tuple(f"contrast[{i}]" for i in range(len(matrix)))


def conditions(record: FitRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    rests_on = []
    if not record.private:
        rests_on.append("none: the noise is seeded, so whoever knows the seed can subtract it")
    if record.loss["name"] == "custom":
        rests_on.append("the declared bounds of the custom loss hold for every predictor and target")
    if record.on_violation == "error":
        rests_on.append("every possible record obeys the public bounds; errors are seen by the holder of the data only")
    if record.private:
        rests_on.append("the noise is as good as random: ChaCha20 seeded by the operating system")
    rests_on.append("elementary functions err by no more than docs/noise.md assumes")
    return rests_on
