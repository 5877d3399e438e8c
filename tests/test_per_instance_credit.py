"""Reports on credit default, the public data of Redberg & Wang 2021: what the data-dependent report is for."""

import numpy as np
import pytest

import dpci
from dpci.datasets import _files
from dpci.datasets._catalogue import CATALOGUE
from support import per_instance as ours

FILES = CATALOGUE["credit_default"].files.values()
pytestmark = pytest.mark.skipif(
    any(_files.find(file) is None for file in FILES), reason="credit default is neither in DPCI_DATA nor in the cache"
)


def test_the_released_derivatives_sharpen_the_bounds():
    """At the same budget: no bound below the truth of 30,000 records, and nearer to it than by the ridge alone."""
    data = dpci.datasets.load_credit_default()
    keywords = {"l2_strength": 0.003, "n_public": 30_000, "classes": (-1, 1), "seed": 3, "fit_intercept": True}
    excess = {}
    for kind in ("data_independent", "data_dependent"):
        report = ours.report(data.X, data.y, kind=kind, **keywords)
        losses = report(data.X, data.y)
        truth = ours.exact_losses(report, data.X, data.y, data.X, data.y, member=True).absolute
        assert (losses.eps1 >= truth).all()
        excess[kind] = np.mean(losses.eps1 / truth.mean())
    assert excess["data_dependent"] < 0.8 * excess["data_independent"]
