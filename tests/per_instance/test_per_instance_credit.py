"""Reports on credit default, the public data of Redberg & Wang 2021: which kind of report is better at what."""

import functools
from typing import NamedTuple

import numpy as np
import pytest

import dpci
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from support import per_instance as ours

FILES = CATALOGUE["credit_default"].files.values()
pytestmark = pytest.mark.skipif(
    any(_files.find(file) is None for file in FILES), reason="credit default is neither in DPCI_DATA nor in the cache"
)


class Found(NamedTuple):
    """Means over the training records, and the median of eps1 over the exact loss."""

    exact: float
    eps1: float
    total: float
    excess: float


@pytest.fixture(scope="module")
def data():
    return dpci.datasets.load_credit_default()


@pytest.fixture(scope="module")
def found(data):
    """Findings of reports with some keywords, means over draws; no bound may be below the truth of any record."""

    def draw(seed, keywords):
        public = {"l2_strength": 0.01, "n_public": 30_000, "classes": (-1, 1), "seed": seed, "intercept": True}
        report = ours.report(data.X, data.y, **{**public, **keywords})
        losses = report(data.X, data.y)
        truth = ours.exact_losses(report, data.X, data.y, data.X, data.y, member=True).absolute
        assert (losses.eps1 >= truth).all()
        return truth.mean(), losses.eps1.mean(), losses.total.mean(), np.median(losses.eps1 / truth)

    @functools.cache
    def average(keywords):
        # One draw says little: the ratio of two excesses is .70 to .98.
        return Found(*np.mean([draw(seed, dict(keywords)) for seed in range(8)], axis=0).tolist())

    return lambda **keywords: average(tuple(sorted({"simultaneous": False, **keywords}.items())))


@pytest.mark.parametrize("simultaneous", [False, True])
def test_a_large_share_of_the_gradient_sharpens_eps1(found, simultaneous):
    """Nearer to the truth, of which the noisier model has less."""
    independent = found(kind="data_independent", simultaneous=simultaneous)
    dependent = found(simultaneous=simultaneous)
    assert dependent.excess < 0.85 * independent.excess
    assert dependent.exact < 0.6 * independent.exact
    assert found(shares=(0.05, 0.9, 0.05), simultaneous=simultaneous).excess < dependent.excess


@pytest.mark.parametrize("shares", [(0.8, 0.1, 0.1), (0.45, 0.45, 0.1)])
def test_other_shares_leave_eps1_less_sharp_and_the_total_greater(found, shares):
    for simultaneous in (False, True):
        independent = found(kind="data_independent", simultaneous=simultaneous)
        dependent = found(shares=shares, simultaneous=simultaneous)
        assert dependent.excess > 1.01 * independent.excess
        assert dependent.total > 1.1 * independent.total
        assert dependent.eps1 < independent.eps1


def test_in_total_a_data_dependent_report_is_better_only_simultaneously(found):
    for shares in ((0.2, 0.7, 0.1), (0.05, 0.9, 0.05)):
        assert found(shares=shares).total > 1.1 * found(kind="data_independent").total
        both = {"simultaneous": True}
        assert found(shares=shares, **both).total < 0.95 * found(kind="data_independent", **both).total
