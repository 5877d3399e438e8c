"""``SavedReport``: a per-instance report as it is saved, and as it is approved."""

from typing import TYPE_CHECKING

from dpci.approval.approvable import Approvable
from dpci.budgets import Budget
from dpci.per_instance.record import ReportRecord
from dpci.released.model import ReleaseFacts
from dpci.released.record import FitRecord
from dpci.released.result import Shown, refused

if TYPE_CHECKING:
    from dpci.approval.statement import Statement


class ShownReport(Shown):
    """A report as commands show it: it is approved and verified, and shown in Python, with the loss that it needs."""

    def whole(self) -> Shown:
        """Raise ``InvalidInput``: no command shows a report."""
        raise refused("a result that a command shows", self.result)


class SavedReport(ReleaseFacts[FitRecord, Budget], Approvable[ReportRecord]):
    """A report as it is saved, and as it is approved."""

    __slots__ = ()
    _record: ReportRecord
    _RECORD, _SHOWN = ReportRecord, ShownReport

    def __init__(self, record: ReportRecord) -> None:
        super().__init__(record, record.fit)

    @property
    def kind(self) -> str:
        """One of "data_dependent" and "data_independent"."""
        return self._record.kind

    def _short(self) -> tuple[str, ...]:
        return self.kind, f"{len(self._release.names)} parameters", str(self.budget)

    def _statement(self) -> "Statement":
        from dpci.per_instance.approval import approval_of_report  # noqa: PLC0415  # most programs write no document

        return approval_of_report(self._record)
