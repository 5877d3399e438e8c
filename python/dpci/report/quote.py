"""Sentences that belong beside the numbers of a model wherever they are quoted."""

from dpci.base.tables import format_percent
from dpci.inference.methods import Inference
from dpci.losses import LOG_ODDS, describe
from dpci.released.model import record_of
from dpci.report.view import View

_CHANGES = {
    ("replace_one", "record"): "the replacement of one record",
    ("replace_one", "person"): "the replacement of one person with all rows",
    ("add_remove", "record"): "the addition or removal of one record",
    ("add_remove", "person"): "the addition or removal of one person with all rows",
}


def sentences_to_quote(result: Inference, view: View) -> list[str]:
    """Return the guarantee, the ridge and what the intervals are for, a sentence each; none of a seeded fit."""
    if not result.private:
        return []
    record = record_of(result)
    spent, neighbors = result.spent, record.neighbors
    if record.whole is not None:
        spent, neighbors = record.whole.budget, record.whole.neighbors
    change = _CHANGES[neighbors, "record" if record.persons is None else "person"]
    found = [f"The model was fitted with differential privacy, {spent}, for {change}."]
    if view.target == "regularised" and result.l2_strength > 0.0:
        kind = "log odds ratios" if record.loss["name"] in LOG_ODDS else "those"
        found.append(
            f"Coefficients are {kind} of a regularised model ({describe(record.loss)} loss, "
            f"lambda={result.l2_strength:g}): the penalty shrinks them together, possibly several-fold, and an "
            "interval that leaves out 0 is no evidence of an adjusted effect."
        )
    if result.interval_refusal is None:
        which = "one coefficient at a time" if view.simultaneous is None else "all coefficients together"
        found.append(
            f"{format_percent(view.level)} intervals are for {which}. They count sampling error and privacy noise, and "
            "rest on a large-sample approximation."
        )
    return found
