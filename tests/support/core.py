"""Specifications of the core from flat keywords, those of their terms among them."""

from dpci import _core


def specified(
    kind, *, n_samples=0, neighbors="replace_one", persons=False, max_rows=None, weight_bound=None, weight_total=None,
    **keywords,
):  # fmt: skip
    """A specification of this kind; a histogram, whose counts are released, and levels need no number of records."""
    weights = None if weight_bound is None else (weight_bound, weight_total)
    terms = _core.Terms(n_samples, neighbors, persons=persons, max_rows=max_rows, weights=weights)
    return kind(terms, **keywords)
