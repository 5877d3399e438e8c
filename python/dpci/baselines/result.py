"""The result of a baseline: parameters and predictions as those of a fit, without intervals, and what it cost."""

from typing import Any, NoReturn

import numpy as np

from dpci.accounting.guarantee import Guarantee, seal_totals
from dpci.accounting.seals import describe_seals, seal_facts
from dpci.base.tables import change_text, number_format, positive_class
from dpci.baselines.record import NON_PRIVATE, BaselineRecord
from dpci.budgets import ApproxDP, Budget
from dpci.data.labels import CLASSES_READ_OFF
from dpci.errors import InvalidInput
from dpci.losses import describe
from dpci.released.model import Released
from dpci.shown.document import NO_NOISE, NOT_PRIVATE, Document, Facts, Paragraph, Table, seeded, short_form
from dpci.shown.text import as_text

__all__ = ["BaselineFit"]

_TITLES = {
    "functional_mechanism": "functional mechanism",
    "projected_histogram": "regression on a noisy histogram",
    NON_PRIVATE: "minimiser without noise",
}
_NO_INTERVALS = {
    "functional_mechanism": "the law of the error is unknown after directions are dropped and a ridge is added",
    "projected_histogram": "rounding noisy counts at zero causes a bias that no interval accounts for",
    NON_PRIVATE: "this model is for comparison only (dpci.fit releases intervals)",
}


class BaselineFit(Released[BaselineRecord]):
    """A model by another mechanism, for comparison. Made by the functions of :mod:`dpci.baselines`, never changed.

    Attributes are read-only; arrays are read-only too. k is the number of parameters, the intercept included.
    """

    __slots__ = ()

    @property
    def method(self) -> str:
        """The function that made it: "functional_mechanism", "projected_histogram" or "non_private"."""
        return self._record.method

    @property
    def budget(self) -> Budget | None:
        """Budget that was spent; None for a model that is not private."""
        return self._record.budget

    @property
    def spent(self) -> Budget | None:
        """Budget that was spent: the whole one."""
        return self.budget

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version."""
        record = self._record
        budget = None if record.budget is None else record.budget.parameters()
        return {
            "private": record.private,
            "classes_inferred": record.classes_inferred,
            "unit": "row" if record.persons is None else "person",
            "relation": record.neighbors,
            "notion": record.notion,
            "budget": budget,
            "spent": budget,
            "cost_unit": {None: None, "pure": "epsilon", "zcdp": "rho", "approx": "mu_squared"}[record.notion],
            "steps": [step.to_dict() for step in record.steps],
            "seal": seal_facts(record.seals),
            "mechanism": record.method,
            "calibration": record.calibration,
            "constants": {
                "n_public": record.n_samples,
                "l2_strength": record.l2_strength,
                "row_norm": record.row_norm,
                "intercept_scale": record.intercept_scale,
                "radius": record.radius,
                "n_cells": record.n_cells,
                "on_violation": record.on_violation,
                "loss": self.loss,
                "persons": None if record.persons is None else record.persons.to_dict(),
                "weights": None if record.weights is None else record.weights.to_dict(),
            },
            "conditions": _conditions(record),
            "version": record.version,
        }

    @property
    def guarantee(self) -> Guarantee:
        """The (epsilon, delta) profile and the Renyi curve; void for seeded noise.

        Raises
        ------
        InvalidInput
            For a model that is not private.
        """
        budget = self.budget
        if budget is None:
            raise InvalidInput(f"a guarantee requires a private model, got method={self.method!r}")
        if not isinstance(budget, ApproxDP):
            return Guarantee(budget, None, 0.0, 0.0)
        (step,) = self._record.steps
        return Guarantee(budget, None, 0.0, step.sensitivity / step.scale, seal_totals(self._record.seals, ()))

    def conf_int(self, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput``: no baseline has valid intervals; the message says why."""
        raise InvalidInput(f"{self.method} has no confidence intervals: {_NO_INTERVALS[self.method]}")

    def summary(self) -> str:
        """Table of the parameters, and the facts that a reader needs to judge them."""
        shown = number_format(np.abs(self.params).max(), self.params)
        rows = [[name, f"{value:{shown}}"] for name, value in zip(self.names, self.params, strict=True)]
        note = Paragraph(f"A baseline without confidence intervals: {_NO_INTERVALS[self.method]}.")
        parts = [Table(["name", "estimate"], rows), Facts(self._public_facts()), note]
        banner = NO_NOISE if self.budget is None else seeded(private=self.private)
        return as_text(Document(parts=parts, banner=banner))

    def to_json(self) -> str:
        """Return the whole result as JSON, floats exactly."""
        return self._record.to_json()

    @classmethod
    def from_json(cls, text: str | bytes) -> "BaselineFit":
        """Rebuild a result from :meth:`to_json`.

        Raises
        ------
        InvalidInput
            If the text is not a saved baseline, or of another schema version.
        """
        return cls(BaselineRecord.from_json(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return BaselineFit.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        cost = NOT_PRIVATE if self.budget is None else str(self.spent)
        facts = (f"{len(self.names)} parameters", _TITLES[self.method], cost)
        return short_form(self, *facts, private=self.private or self.budget is None)

    def _public_facts(self) -> list[tuple[str, str]]:
        record = self._record
        calibration = "" if record.calibration in (None, "tight") else f", calibration {record.calibration}"
        unit = "record" if record.persons is None else "person"
        facts = [
            ("method", f"{_TITLES[record.method]}{calibration}"),
            ("loss", describe(record.loss) + positive_class(record.classes, inferred=record.classes_inferred)),
            ("budget spent", "nothing is protected" if self.spent is None else str(self.spent)),
            *((f"  {step.step}", f"{step.noise} noise of scale {step.scale:.4g}") for step in record.steps),
            *([("  rounding seal", describe_seals(record.seals))] if record.seals else []),
            ("neighbours", "none" if record.neighbors is None else change_text(record.neighbors, unit)),
            *([] if record.persons is None else [("persons", str(record.persons))]),
            *([] if record.weights is None else [("weights", str(record.weights))]),
            ("n (public)" if record.neighbors == "add_remove" else "n", f"{record.n_samples:,}"),
            ("lambda", f"{record.l2_strength:g}"),
        ]
        if record.n_cells is not None:
            facts.append(("cells", f"{record.n_cells:,}"))
        if record.radius is not None:
            facts.append(("radius", f"{record.radius:g}"))
        return facts


def _conditions(record: BaselineRecord) -> list[str]:
    """Return what the guarantee rests on besides the theorem."""
    if record.method == NON_PRIVATE:
        return ["none: the parameters are the minimiser on the data, without noise"]
    rests_on = []
    if not record.private:
        rests_on.append("none: the noise is seeded, so whoever knows the seed can subtract it")
    if record.classes_inferred:
        rests_on.append(CLASSES_READ_OFF)
    if record.on_violation == "error":
        rests_on.append("every possible record obeys the public bounds; only the data holder sees errors")
    if record.private:
        rests_on.append("the noise is indistinguishable from random: ChaCha20 seeded by the operating system")
    rests_on.append(
        'logarithms and other elementary functions err by at most two units in the last place (the page "Noise")'
    )
    return rests_on
