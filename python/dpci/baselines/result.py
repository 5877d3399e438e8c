"""The result of a baseline: parameters and predictions as those of a fit, without intervals, and what it cost."""

from typing import NoReturn

import numpy as np

from dpci.accounting.costs import describe_seals
from dpci.base.tables import change_text, number_format, positive_class
from dpci.baselines.record import NON_PRIVATE, BaselineRecord
from dpci.budgets import Budget
from dpci.errors import InvalidInput
from dpci.losses import describe
from dpci.released.model import Released, ReleaseFacts
from dpci.released.result import Result
from dpci.report.commands import ShownModel
from dpci.shown.document import NO_NOISE, NOT_PRIVATE, Document, Facts, Paragraph, Table, seeded
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


class BaselineFit(
    Released[BaselineRecord, Budget | None], ReleaseFacts[BaselineRecord, Budget | None], Result[BaselineRecord]
):
    """A model by another mechanism, for comparison. Made by the functions of :mod:`dpci.baselines`, never changed.

    Attributes are read-only; arrays are read-only too. k is the number of parameters, the intercept included.
    """

    __slots__ = ()

    _RECORD, _SHOWN = BaselineRecord, ShownModel

    @property
    def method(self) -> str:
        """The function that made it: "functional_mechanism", "projected_histogram" or "non_private"."""
        return self._record.method

    @property
    def interval_refusal(self) -> str:
        """Why there are no intervals, standard errors and p-values."""
        return f"{self.method} has no confidence intervals: {_NO_INTERVALS[self.method]}"

    def conf_int(self, **_keywords: object) -> NoReturn:
        """Raise ``InvalidInput``: no baseline has valid intervals; the message says why."""
        raise InvalidInput(self.interval_refusal)

    def summary(self) -> str:
        """Table of the parameters, and the facts that a reader needs to judge them."""
        shown = number_format(np.abs(self.params).max(), self.params)
        rows = [[name, f"{value:{shown}}"] for name, value in zip(self.names, self.params, strict=True)]
        note = Paragraph(f"A baseline without confidence intervals: {_NO_INTERVALS[self.method]}.")
        parts = [Table(["name", "estimate"], rows), Facts(self._public_facts()), note]
        banner = NO_NOISE if self.budget is None else seeded(private=self.private)
        return as_text(Document(parts=parts, banner=banner))

    def _short(self) -> tuple[str, ...]:
        cost = NOT_PRIVATE if self.budget is None else str(self.spent)
        return f"{len(self.names)} parameters", _TITLES[self.method], cost

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
