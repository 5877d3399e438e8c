"""How much of the errors of a model is noise for privacy, and how far its ridge reaches, in words with numbers."""

import numpy as np

from dpci.base.tables import printable
from dpci.errors import DpciError
from dpci.inference.methods import Inference
from dpci.inference.targets.estimates import Estimates
from dpci.inference.targets.unregularised import TARGETS
from dpci.report.view import View


def noise_shares(estimates: Estimates) -> list[str]:
    """Return what share of the error variance the noise of the parameters has."""
    total = estimates.std_errors() ** 2
    noise = estimates.law.noise_variance(estimates.map)
    with np.errstate(all="ignore"):
        shares = noise / total
    shares = shares[np.isfinite(shares)]
    if not len(shares):
        return []
    low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
    span = low if low == high else f"{low} to {high}"
    return [f"The noise that was added to the parameters makes up {span} of the variance of their errors."]


def ridge_size(result: Inference, view: View) -> str:
    """Return the largest distance by which the ridge moves an estimate, in standard errors."""
    unknown = "How far the ridge moves the estimates is unknown: the released values do not show it."
    try:
        (names, regularised), (_, without) = (view.estimates(result, target) for target in TARGETS)
        moved = (regularised.values() - without.values()) / regularised.std_errors()
    except DpciError:
        return unknown
    known = np.isfinite(moved)
    if not known.any():
        return unknown
    most = int(np.nanargmax(np.abs(np.where(known, moved, np.nan))))
    text = f"The ridge moves the estimates by at most {abs(moved[most]):.2g} standard errors ({printable(names[most])})"
    hidden = int((~known).sum())
    return f"{text}; for {hidden} of {len(names)} the released values do not show it." if hidden else f"{text}."
