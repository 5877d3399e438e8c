"""The models of all strata of a table: shown side by side as text, plot and page, compared, saved and read."""

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from dpci.approval.approvable import Approvable
from dpci.base.tables import (
    ERROR_DIGITS,
    change_text,
    estimates_as_text,
    format_percent,
    number_format,
    row_of_text,
)
from dpci.base.validation import as_name, check_choice, check_fraction
from dpci.budgets import Budget, Neighbors
from dpci.inference.comparison import Comparison, compare
from dpci.inference.intervals import ConfidenceIntervals
from dpci.losses import describe, scale_of
from dpci.mechanisms import NewtonSteps
from dpci.model.result import PrivateFit
from dpci.released.model import record_of
from dpci.released.result import Shown, shown_of
from dpci.released.whole import counted_strata
from dpci.report.plot import Order, forest_plot
from dpci.report.style import caption, symbols
from dpci.report.summary import View
from dpci.shown.document import BANNER, Document, Facts, Paragraph, Section, Table
from dpci.shown.text import as_text
from dpci.strata.counts import CountNoise
from dpci.strata.record import StrataRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpci.approval.statement import Statement

__all__ = ["StrataFit"]

_HEADER = ["estimate", "lower", "upper", "std error", "p-value"]


class ShownStrata(Shown):
    """The models of all strata as commands show them."""

    result: "StrataFit"

    def numbers(self, view: View) -> dict[str, Any]:
        """Return the facts of the summary for programs to read: those of each model."""
        result = self.result
        return {
            "private": result.private,
            "by": result.by,
            "neighbors": result.neighbors,
            "charged": result.charged.parameters(),
            "strata": {name: shown_of(fit).numbers(view) for name, fit in result.items()},
        }


class StrataFit(Approvable[StrataRecord], Mapping[str, PrivateFit]):
    """The models of all strata, by the name of the category. Contains only released and public values."""

    __slots__ = ("_counted", "_fits", "_record")

    _RECORD, _SHOWN = StrataRecord, ShownStrata

    def __init__(self, record: StrataRecord) -> None:
        self._record = record
        self._counted = record.count_noise
        self._fits = {name: PrivateFit(fit) for name, fit in record.strata.items()}

    @property
    def by(self) -> str:
        """The column of strata."""
        return self._record.by

    @property
    def budget(self) -> Budget:
        """Budget of each fit, including the counts if there are any."""
        return self._record.budget

    @property
    def counted(self) -> CountNoise | None:
        """Cost of the counts of records or persons, and the noise on each; None if their numbers are public."""
        return self._counted

    @property
    def neighbors(self) -> Neighbors:
        """The relation for which all strata together were charged."""
        return self._record.neighbors

    @property
    def charged(self) -> Budget:
        """Cost of all strata together. Under "add_remove" this is the budget, once."""
        return self._record.charged

    @property
    def spent(self) -> Budget:
        """Budget that all strata spent together: :attr:`charged`."""
        return self.charged

    def __getitem__(self, stratum: str) -> PrivateFit:
        """Return the model of a stratum."""
        return self._fits[as_name(stratum)]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the strata in the order of the categories."""
        return iter(self._fits)

    def __len__(self) -> int:
        """Return the number of strata."""
        return len(self._fits)

    def __eq__(self, other: object) -> bool:
        """Whether both say the same."""
        return isinstance(other, StrataFit) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        """Hash what it says."""
        return hash(self.to_json())

    @property
    def private(self) -> bool:
        """Whether the noise was not seeded."""
        return all(fit.private for fit in self.values())

    @property
    def interval_refusal(self) -> str | None:
        """The reason if at least one of the models has no intervals; otherwise None."""
        return next((fit.interval_refusal for fit in self.values() if fit.interval_refusal is not None), None)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the estimated coefficients, in the units of the table."""
        return self._first.names

    def conf_int(self, parameter: str, *, level: float = 0.95) -> ConfidenceIntervals:
        """Return the intervals of one parameter, a row for each stratum.

        Parameters
        ----------
        parameter : str
            One of :attr:`parameters`.
        level : float
            Level of each interval by itself.

        Raises
        ------
        InvalidInput
            For another name, a level out of range, or fits without intervals.
        """
        index = self._index(parameter)
        level = check_fraction("level", level)
        found = [fit.conf_int(level=level) for fit in self.values()]
        estimate, lower, upper = (
            np.array([getattr(each, name)[index] for each in found]) for name in ("estimate", "lower", "upper")
        )
        refusals = tuple(each.refusals[index] for each in found)
        return ConfidenceIntervals(tuple(self), estimate, lower, upper, level, found[0].method, refusals=refusals)

    def compare(self, first: str, second: str, **keywords: Any) -> Comparison:  # noqa: ANN401  # those of ``compare``
        """Return the differences between the models of two strata, which share no record; see :func:`dpci.compare`.

        Raises
        ------
        InvalidInput
            For an unknown stratum, and as :func:`dpci.compare`.
        """
        for argument, name in (("first", first), ("second", second)):
            check_choice(argument, name, tuple(self))
        return compare(self[first], self[second], **keywords)

    def summary(self, parameter: str | None = None, *, level: float = 0.95) -> str:
        """Return a table of one parameter in all strata, or of all parameters, and the cost of all strata together."""
        names = self.parameters if parameter is None else (self.parameters[self._index(parameter)],)
        what = f"{format_percent(check_fraction('level', level))} confidence intervals"
        what = "estimates" if self.interval_refusal else what
        tables = [Table(self._header, self._rows(name, level), f"{name}: {what} by {self.by}") for name in names]
        return as_text(Document(parts=[*tables, Facts(self._facts())], banner=BANNER[self.private]))

    def plot(self, parameter: str, *, level: float = 0.95, order: Order = "given", ax: "Axes | None" = None) -> "Axes":
        """Forest plot of one parameter, a row for each stratum; needs matplotlib.

        Parameters
        ----------
        parameter, level
            See :meth:`conf_int`.
        order : {"given", "estimate"}
            Strata in the given order, or with the largest estimate on top.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: a new figure.

        Raises
        ------
        InvalidInput
            See :meth:`conf_int`.
        DpciError
            If matplotlib is not installed.
        """
        scale = scale_of(self._first.loss["name"]).replace("estimate", "")
        what = f"{parameter} ({f'{scale} {self._unit(parameter)}'.strip()})"
        axes = forest_plot(self.conf_int(parameter, level=level), private=self.private, order=order, what=what, ax=ax)
        axes.set_ylabel(self.by)
        return caption(axes, f"{describe(self._first.loss)} loss", symbols(str(self.charged)) if self.private else "")

    def to_html(
        self, path: "str | PathLike[str] | None" = None, *, level: float = 0.95, title: str | None = None
    ) -> str:
        """Return one self-contained page: for each parameter a forest plot by stratum and a table, and the cost.

        Parameters are those of :meth:`dpci.PrivateFit.to_html`.
        """
        from dpci.shown.html import write_html  # noqa: PLC0415  # most programs write no page

        return write_html(self._page(level, title), path)

    def _document(self) -> Document:
        return self._page(0.95, None)

    def _page(self, level: float, title: str | None) -> Document:
        from dpci.report.meaning import attacker_section  # noqa: PLC0415  # most programs write no page
        from dpci.report.page import SHARED, budget_section, caveats, forest_of, provenance  # noqa: PLC0415

        record = record_of(self._first)
        scale = record.loss_facts.scale
        parameters = []
        for i, name in enumerate(self.parameters):
            figures = [] if self.interval_refusal else [forest_of(self.conf_int(name, level=level), scale)]
            table = Table(self._header, self._rows(name, level), f"{name}, {self._unit(name)}, by {self.by}")
            parameters.append(Section(f"parameter-{i}", name, [*figures, table]))
        models = counted_strata(len(self))
        lead = f"Models of {models}, with noise as for {self.budget} each."
        if self.private:
            lead = f"Models of {models} under differential privacy, {self.charged} in total. {SHARED}"
        parts = [
            Paragraph(lead, "lead"),
            *parameters,
            budget_section(self._facts(), "What all models have in common"),
            *([attacker_section(record, self._first.guarantee, record.whole)] if self.private else []),
            *caveats(record, [self._target()]),
            provenance(record, self.digest),
        ]
        heading = f"Models with differential privacy by {self.by}" if title is None else title
        banner = BANNER[self.private]
        return Document(title=heading, parts=parts, banner=banner, version=record.version)

    def _statement(self) -> "Statement":
        from dpci.strata.approval import approval_of_strata  # noqa: PLC0415  # most programs write no document

        return approval_of_strata(self._record, refusal=self.interval_refusal)

    def _short(self) -> tuple[str, ...]:
        return f"{counted_strata(len(self))} of {self.by!r}", f"{self.charged} in total"

    @property
    def _first(self) -> PrivateFit:
        return next(iter(self._fits.values()))

    def _unit(self, parameter: str) -> str:
        return self._first.units[self._index(parameter)]

    def _index(self, parameter: str) -> int:
        return self.parameters.index(check_choice("parameter", parameter, self.parameters))

    def _rows(self, parameter: str, level: float) -> list[list[str]]:
        """Return a row of text for each stratum, all with the digits of the least error; dashes without intervals."""
        index = self._index(parameter)
        found = list(self.values())
        numbers = [f"{fit.n_samples:,}" for fit in self.values()]
        if self.interval_refusal is not None:
            texts = [[estimates_as_text(each.params)[index], *["-"] * 4] for each in found]
            return [[name, *text, number] for name, text, number in zip(self, texts, numbers, strict=True)]
        intervals = self.conf_int(parameter, level=level)
        errors, pvalues = (
            np.array([getattr(each, name)[index] for each in found]) for name in ("std_errors", "pvalues")
        )
        shown = number_format(errors, intervals.estimate, digits=ERROR_DIGITS)
        columns = zip(self, intervals.estimate, errors, pvalues, intervals.lower, intervals.upper, numbers, strict=True)
        rows = []
        for name, *values, number in columns:
            estimate, error, pvalue, lower, upper = row_of_text(*values, shown=shown)
            rows.append([name, estimate, lower, upper, error, pvalue, number])
        return rows

    def _target(self) -> str:
        if self._first.mechanism == NewtonSteps.name:
            return (
                "Target of each stratum: the coefficients that minimise its population's mean loss, without a ridge. "
                "The few rows that are farthest out weigh less."
            )
        return (
            "Target of each stratum: the minimiser of its population's regularised risk, at lambda times "
            f"{self._header[-1]} / (number of its {self._protected}s, which is private); it is not the unregularised "
            "coefficient."
        )

    @property
    def _header(self) -> list[str]:
        return ["stratum", *_HEADER, "n (public)" if self.counted is None else "n (released)"]

    def _strengths(self) -> str:
        """Return λ, or its range where it depends on the number of records."""
        found = sorted(fit.l2_strength for fit in self.values())
        ends = dict.fromkeys(f"{strength:.4g}" for strength in (found[0], found[-1]))
        return " to ".join(ends) + ", recommended by public values" * record_of(self._first).l2_recommended

    @property
    def _protected(self) -> str:
        return "record" if self._first.privacy["unit"] == "row" else "person"

    def _facts(self) -> list[tuple[str, str]]:
        first, unit = self._first, self._protected
        steps = first.mechanism == NewtonSteps.name
        moves = ", possibly by one of another stratum" * (self.neighbors == "replace_one")
        return [
            ("strata", f"{len(self)} {'category' if len(self) == 1 else 'categories'} of {self.by}"),
            *([] if self.counted is None else [(f"counts of {unit}s", f"{self.counted.budget}, {self.counted}")]),
            ("budget of each fit", str(first.budget)),
            ("all together", str(self.charged)),
            ("neighbours", change_text(self.neighbors, unit) + moves),
            ("mechanism", "Newton steps with noisy gradients" if steps else f"{first.mechanism} perturbation"),
            *([] if steps else [("lambda", self._strengths())]),
            *([] if self.interval_refusal is None else [("no intervals", self.interval_refusal)]),
        ]
