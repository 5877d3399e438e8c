"""Per-instance privacy: a model released together with a function that bounds what it costs each record.

The method of Redberg & Wang 2021, "Privately publishable per-instance privacy", Algorithm 2, with the corrections of
docs/per_instance.md.
"""

from dpci.base.naming import name_publicly
from dpci.per_instance.bounds import Report, ex_post_losses_not_private
from dpci.per_instance.records import ExPostLosses, RecordLosses
from dpci.per_instance.release import report

__all__ = ["ExPostLosses", "RecordLosses", "Report", "ex_post_losses_not_private", "report"]

name_publicly(__name__, __all__)
