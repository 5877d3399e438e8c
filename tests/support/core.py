"""Specifications of the core from flat keywords: those of their terms among them, and the plainest choices."""

from dpci import _core

# Of each kind what a test need not name that is about something else.
PLAIN = {
    _core.Spec: {
        "intercept": None, "row_norm": 1.0, "l2_strength": 1.0, "radius": None, "mechanism": "output",
        "noise": None, "variant": "standard", "project": False, "split": None, "moments": "none",
        "projection": "auto", "calibration": "tight",
    },
    _core.FunctionalSpec: {"intercept": None, "row_norm": 1.0, "target_bound": 1.0, "calibration": "tight"},
    _core.HistogramSpec: {"intercept": None, "l2_strength": 1.0},
    _core.RecordBounds: {"intercept": None, "row_norm": 1.0, "on_violation": "error", "bound": "interpolated"},
}  # fmt: skip


def specified(
    kind, *, n_samples=0, neighbors="replace_one", persons=False, max_rows=None, weight_bound=None, weight_total=None,
    **keywords,
):  # fmt: skip
    """A specification of this kind; a histogram, whose counts are released, and levels need no number of records."""
    weights = None if weight_bound is None else (weight_bound, weight_total)
    terms = _core.Terms(n_samples, neighbors, persons=persons, max_rows=max_rows, weights=weights)
    return kind(terms, **{**PLAIN.get(kind, {}), **keywords})
