"""The result of a private fit: released parameters and matrices, and everything that follows from them without data."""

from dataclasses import asdict
from os import PathLike
from typing import TYPE_CHECKING, Any

from dpci.approval.approvable import Approvable
from dpci.base.habits import INTERVALS
from dpci.base.validation import advised, check_flag
from dpci.inference.common_levels import levels_of
from dpci.inference.contrasts import Contrast
from dpci.inference.intervals import Simultaneous, Target
from dpci.inference.methods import FitInference, Inference
from dpci.losses import COUNTS
from dpci.released.record import FitRecord
from dpci.released.result import SavedRecord
from dpci.report.commands import ShownFit
from dpci.report.plot import Order, forest_plot
from dpci.report.style import caption, facts_of_release
from dpci.report.summary import Numbers, Units, View, interval_notes, with_units
from dpci.shown.document import Document
from dpci.shown.text import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dpci.approval.statement import Statement

__all__ = ["PrivateFit"]


class ShownInference(Inference, Approvable[SavedRecord]):
    """Statements from a fit, and the texts, pages and plots that show them."""

    __slots__ = ()

    @advised(INTERVALS)
    def summary(
        self,
        *,
        level: float = 0.95,
        target: Target = "regularised",
        simultaneous: Simultaneous | None = None,
        units: Units = "table",
        full: bool = False,
    ) -> str:
        """Table of the intervals, with a sentence each on the target, the ridge and the noise.

        A fit with a ridge has the ordinary coefficients beside the regularised ones, where the released values show
        them (docs/inference.md, "Without the ridge"). docs/glossary.md explains every line.

        Parameters
        ----------
        level, target, simultaneous
            See :meth:`conf_int`.
        units : {"table", "scaled"}
            "table": in the units of the table if the fit had a schema.
        full : bool
            Whether to add all that a reader needs to judge the fit: every step of the budget, the column "ridge"
            (:meth:`shrinkage`), the scaled parameters, and what the intervals assume.
        """
        view = View(level=level, target=target, simultaneous=simultaneous, units=units)
        return as_text(self._summary(view, full=check_flag("full", full)))

    @advised(INTERVALS)
    def plot(
        self,
        *,
        level: float = 0.95,
        contrast: Contrast | None = None,
        simultaneous: Simultaneous | None = None,
        target: Target = "regularised",
        units: Units = "table",
        exponentiate: bool = False,
        order: Order = "given",
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Forest plot of intervals; a filled point marks those that do not contain 0. Needs matplotlib.

        Where the fit had a schema, coefficients are in the units of the table, which stand behind the names, and the
        intercept is left out. ``per=`` of a column makes one larger. Rows without an interval are left out, too.

        Parameters
        ----------
        level, contrast, simultaneous, target
            See :meth:`conf_int`; a list of names as ``contrast`` draws some of the parameters.
        units : {"table", "scaled"}
            "scaled": the parameters of the scaled columns.
        exponentiate : bool
            Whether to draw odds ratios or rate ratios, as :meth:`odds_ratios` and :meth:`rate_ratios` have them, on a
            logarithmic axis; a filled point then marks intervals that do not contain 1.
        order : {"given", "estimate"}
            Rows in the given order, or with the largest estimate on top.
        ax : matplotlib.axes.Axes, optional
            Where to draw; None: a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            ``ax.figure.savefig(...)`` keeps the plot.

        Raises
        ------
        InvalidInput
            For a fit whose choices leave no intervals, or arguments out of range.
        DpciError
            If matplotlib is not installed.
        """
        view, record = View(level=level, target=target, simultaneous=simultaneous, units=units), self._release
        what, ratios = record.loss_facts.scale, check_flag("exponentiate", exponentiate)
        asked: dict[str, Any] = {"level": level, "contrast": contrast, "simultaneous": simultaneous}
        if ratios and record.loss["name"] in COUNTS:
            intervals, what = with_units(self.rate_ratios(**asked)), "rate ratio"
        elif ratios:
            intervals, what = with_units(self.odds_ratios(**asked, target=target)), "odds ratio"
        elif contrast is None and self.interval_refusal is None:
            intervals = Numbers(record, view).drawn
        else:
            scaled = units == "scaled" and self.schema is not None
            found = self._scaled(target).conf_int(**asked) if scaled else self.conf_int(**asked, target=target)
            intervals = with_units(found)
        axes = forest_plot(intervals, private=self.private, order=order, what=what, ratios=ratios, ax=ax)
        spent, count = facts_of_release(self.spent, record.n_samples, neighbors=record.neighbors, private=self.private)
        return caption(axes, f"{record.loss_facts.words} loss, {count}", spent)

    def to_html(
        self,
        path: "str | PathLike[str] | None" = None,
        *,
        level: float = 0.95,
        title: str | None = None,
        target: Target = "regularised",
        simultaneous: Simultaneous | None = None,
        units: Units = "table",
    ) -> str:
        """Return the result as one self-contained HTML page: table, forest plot, budget, guarantee and caveats.

        The page needs no network, no script and no matplotlib. It holds what :meth:`to_json` holds and no more:
        released and public values. For a seeded fit it says on top that it is not private.

        Parameters
        ----------
        path : path, optional
            File to write the page to as well, in UTF-8; one that exists is replaced.
        level : float
            Level of the intervals, strictly between 0 and 1.
        title : str, optional
            Heading of the page; None: the outcome, if a schema names it, and the loss of the model.
        target, simultaneous
            See :meth:`conf_int`.
        units
            See :meth:`summary`.

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
        from dpci.shown.html import write_html  # noqa: PLC0415  # most programs write no page

        view = View(level=level, target=target, simultaneous=simultaneous, units=units)
        return write_html(self._page(view, title), path)

    def _summary(self, view: View, *, full: bool) -> Document:
        from dpci.report.page import summary_of  # noqa: PLC0415  # most programs show nothing

        return summary_of(self._release, view, full=full)

    def _page(self, view: View, title: str | None) -> Document:
        from dpci.report.page import page_of  # noqa: PLC0415  # most programs write no page

        return page_of(self._release, view, title=title)

    def _document(self) -> Document:
        return self._page(View(), None)


class PrivateFit(ShownInference[FitRecord], FitInference):
    """A released model, made by :func:`dpci.fit`. It holds released and public values only, and never changes.

    Attributes are read-only; arrays are read-only too. k is the number of parameters, the intercept included.
    """

    __slots__ = ()

    _RECORD, _SHOWN = FitRecord, ShownFit

    @property
    def privacy(self) -> dict[str, Any]:
        """Machine-readable record of the guarantee: relation, notion, spent by step, constants, conditions, version.

        "interval_notes" lists the assumptions of the intervals other than large samples, and "common_levels" names
        single intervals that the release does not support (:attr:`common_levels`).
        """
        record, found = self._record, levels_of(self._record)
        levels = None if found is None else asdict(found)
        return {**record.privacy, "interval_notes": interval_notes(record), "common_levels": levels}

    def _statement(self) -> "Statement":
        from dpci.approval.of_fit import approval_of_fit  # noqa: PLC0415  # most programs write no document

        return approval_of_fit(self)

    def _short(self) -> tuple[str, ...]:
        made_by = "Newton steps" if self.mechanism == "newton" else f"{self.mechanism} perturbation"
        return f"{len(self._release.names)} parameters", made_by, str(self.spent)
