"""The result of a private fit: released parameters and matrices, and everything that follows from them without data."""

from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpci.accounting.guarantee import GUARANTEE_FACTS, Guarantee, guarantee_of
from dpci.accounting.seals import seal_cost, seal_facts
from dpci.budgets import Budget, budget_from_parameters
from dpci.data.labels import CLASSES_READ_OFF, Classes
from dpci.errors import DpciError
from dpci.inference.contrasts import Contrast
from dpci.inference.curvature import validity_notes
from dpci.inference.methods import Inference
from dpci.released.record import FitRecord
from dpci.report.html.page import html_report
from dpci.report.plot import Order, forest_plot
from dpci.report.summary import summary_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["PrivateFit"]

# Steps add up to the budget except for rounding.
_ROUNDING = 1e-9


class PrivateFit(Inference):
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
        """Released and projected covariance of the gradient of one record, shape (k, k); None without moments.

        Under add/remove its second moment over ``n_samples``, from which no mean is subtracted.
        """
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
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version.

        "interval_notes" says what the intervals rest on, apart from large samples.
        """
        record = self._record
        return {
            "private": record.private,
            "classes_inferred": record.classes_inferred,
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
            "interval_notes": [] if self.interval_refusal else validity_notes(record, room_of(self)),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve of all steps together; void for a seeded fit."""
        record = self._record
        facts = {name: getattr(record, name) for name in GUARANTEE_FACTS}
        return guarantee_of(self.budget, record.steps, record.seals, n_samples=record.n_samples, **facts)

    # What follows from it: post-processing, which costs nothing. Tests and intervals are in `inference`.

    def summary(self, *, level: float = 0.95) -> str:
        """Table of estimates and intervals, and the facts that a reader needs to judge them."""
        return summary_text(self, level=level)

    def plot(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Literal["bonferroni", "max_z"] | None = None,
        order: Order = "given",
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Forest plot of intervals, those that leave out 0 with a filled point; needs matplotlib.

        Parameters
        ----------
        level, contrast, simultaneous
            As in :meth:`conf_int`; a list of names as ``contrast`` draws some of the parameters.
        order : {"given", "estimate"}
            Rows as they come, or the greatest estimate on top.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            ``ax.figure.savefig(...)`` keeps the plot.

        Raises
        ------
        InvalidInput
            For a fit without intervals, or arguments out of range.
        DpciError
            If matplotlib is not installed.
        """
        intervals = self.conf_int(level=level, contrast=contrast, simultaneous=simultaneous)
        return forest_plot(intervals, private=self.private, order=order, ax=ax)

    def to_html(
        self, path: "str | PathLike[str] | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> str:
        """Return the result as one self-contained HTML page: table, forest plot, budget, guarantee and caveats.

        The page needs no network, no script and no matplotlib. It holds what :meth:`to_json` holds and no more:
        released and public values. For a seeded fit it says on top that it is not private.

        Parameters
        ----------
        path : path, optional
            File to write the page to as well, in UTF-8; one that exists is replaced.
        level : float
            Of the intervals, strictly between 0 and 1.
        title : str, optional
            Heading of the page; None: the loss of the model.

        Returns
        -------
        str
            The page.

        Raises
        ------
        InvalidInput
            For arguments out of range.
        OSError
            If the file cannot be written.
        """
        page = html_report(self, level=level, title=title)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

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


def room_of(result: PrivateFit) -> float | None:
    """Return :attr:`PrivateFit.curvature_room`; None too where there are no intervals to speak of."""
    try:
        return None if result.interval_refusal is not None else result.curvature_room
    except DpciError:
        return None


def conditions(record: FitRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    rests_on = []
    if not record.private:
        rests_on.append("none: the noise is seeded, so whoever knows the seed can subtract it")
    if record.loss["name"] == "custom":
        rests_on.append("the declared bounds of the custom loss hold for every predictor and target")
    if record.classes_inferred:
        rests_on.append(CLASSES_READ_OFF)
    if record.on_violation == "error":
        rests_on.append("every possible record obeys the public bounds; errors are seen by the holder of the data only")
    if record.private:
        rests_on.append("the noise is as good as random: ChaCha20 seeded by the operating system")
    rests_on.append("elementary functions err by no more than docs/noise.md assumes")
    return rests_on
