"""Replicates against all samples there can be: each is the fit of one of them, as often as chance says.

Statistical tests have a false-positive rate of 1e-6 each; their seeds were fixed once.
"""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

import dpci
from dpci import simulate

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")

ALPHA = 1e-6
DISTINCT = np.array([[0.5, 0.0], [-0.25, 0.5], [0.0, -0.75]])
LABELS = np.array([1, -1, 1])
# Divided by n: an epsilon so large that noise moves no parameter by more than 1e-7, and so small that minimisers can be
# certified to within the share of it that they may miss by.
EPSILON_TIMES_N = 2e10
L2_STRENGTH = 0.1


def samples(multiplicities):
    """Every sample by the counts of the distinct records, and its probability."""
    n = sum(multiplicities)
    law = stats.multinomial(n, np.array(multiplicities) / n)
    counts = np.array([c for c in product(range(n + 1), repeat=len(multiplicities)) if sum(c) == n])
    return counts, law.pmf(counts)


@pytest.mark.parametrize("multiplicities", [(1, 1), (3, 1, 1), (40, 3), (40, 35)], ids=str)  # merged, up to 40 alike
@pytest.mark.parametrize("storage", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "keywords",
    [
        {"loss": "logistic"},
        {"loss": "huber_hinge", "mechanism": "output"},
        {"loss": "smooth_hinge", "intercept": False},
    ],
    ids=lambda keywords: keywords["loss"],
)
def test_every_replicate_is_the_minimiser_of_a_sample(multiplicities, storage, keywords):
    records, labels = DISTINCT[: len(multiplicities)], LABELS[: len(multiplicities)]
    X, y = np.repeat(records, multiplicities, axis=0), np.repeat(labels, multiplicities)
    study = simulate.coverage(
        storage(X),
        y,
        budget=dpci.PureDP(EPSILON_TIMES_N / len(X)),
        l2_strength=L2_STRENGTH,
        classes=(-1, 1),
        n_replicates=150,
        n_variability=10_000,
        seed=3,
        n_threads=1,
        **keywords,
    )
    assert study.n_distinct == len(multiplicities)
    intercept = keywords.get("intercept", True)
    solve = partial(dpci.lowlevel.minimize_erm, l2_strength=L2_STRENGTH, loss=keywords["loss"], intercept=intercept)
    # Samples of one class alone and of one distinct row are among them.
    possible, probabilities = samples(multiplicities)
    minimisers = np.array(
        [solve(np.repeat(records, c, axis=0), np.repeat(labels, c).astype(float)).params for c in possible]
    )
    found = np.zeros(len(possible))
    for params in (study.params, study.variability.params):
        distances = np.abs(params[:, None] - minimisers).max(axis=2)
        assert distances.min(axis=1).max() < 1e-7
        found += np.bincount(distances.argmin(axis=1), minlength=len(possible))
    expected = probabilities * found.sum()
    # The test needs 5 expected in each cell: rare samples join the rarest of the others.
    rare = expected < 5
    cell = np.where(rare, np.argmin(np.where(rare, np.inf, expected)), np.arange(len(expected)))
    cells = [np.bincount(cell, weights=x, minlength=len(cell))[~rare] for x in (found, expected)]
    assert stats.chisquare(*cells).pvalue > ALPHA


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(31)
    X = rng.integers(-2, 3, size=(300, 3)) / 4.0  # many duplicates
    return X, (X @ [3.0, -2.0, 1.0] + rng.logistic(size=300) > 0).astype(int)


def in_another_order(X, y):
    order = np.random.default_rng(32).permutation(len(X))
    return X[order], y[order]


def not_merged(X, y):
    """The same records, so little apart that the answers cannot tell, but no two with the same bits."""
    return X * (1.0 - 1e-12 * np.arange(len(X)))[:, None], y


def sparse(X, y):
    return scipy.sparse.csr_array(X), y


@pytest.mark.parametrize("change", [in_another_order, not_merged, sparse])
def test_the_same_data_give_the_same_distribution(rows, change):
    run = partial(simulate.coverage, budget=dpci.PureDP(4.0), l2_strength=0.05, n_replicates=400, n_variability=1500)
    study, other = run(*rows, seed=4), run(*change(*rows), seed=5)
    np.testing.assert_allclose(other.target, study.target, rtol=0, atol=1e-8)
    pairs = [
        (study.params, other.params),
        (study.upper - study.lower, other.upper - other.lower),
        (study.variability.params, other.variability.params),
    ]
    for ours, theirs in pairs:
        for j in range(ours.shape[1]):
            assert stats.ks_2samp(ours[:, j], theirs[:, j], method="asymp").pvalue > ALPHA / (3 * ours.shape[1])
    covered = [((s.lower <= s.target) & (s.target <= s.upper)).mean(axis=1) for s in (study, other)]
    error = math.hypot(*(share.std(ddof=1) / math.sqrt(len(share)) for share in covered))
    assert abs(study.coverage - other.coverage) <= stats.norm.isf(ALPHA / 2) * error
