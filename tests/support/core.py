"""Specifications of the core from flat keywords, those of their terms among them."""

from dpci import _core

TERMS = ("persons", "max_rows", "weight_bound", "weight_total")


def specified(kind, *, n_samples=0, neighbors="replace_one", **keywords):
    """A specification of this kind; a histogram, whose counts are released, and levels need no number of records."""
    others = {name: keywords.pop(name) for name in TERMS if name in keywords}
    return kind(_core.Terms(n_samples, neighbors, **others), **keywords)
