"""Small studies that the tests of studies share: their rows, their calls, and what makes two of them equal."""

import functools

import numpy as np
import pytest

import dpci
from dpci import simulate
from dpci.errors import PrivacyLeakWarning
from support import custom_losses
from support.keywords import assembled

N, D = 600, 3
SMALL = {"budget": dpci.PureDP(2.0), "l2_strength": 0.1, "n_replicates": 40, "n_variability": 24}


SOFT_LABELS = custom_losses.soft_labels()


def make_rows(n=N):
    rng = np.random.default_rng(8)
    X = rng.integers(-4, 5, size=(n, D)) / 8.0  # many duplicates
    y = (X @ [4.0, -2.0, 1.0] + rng.logistic(size=n) > 0).astype(int)
    return X, y


def quiet(function, *arguments, **keywords):
    """Call a study, which always warns."""
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        return function(*arguments, **assembled(**{**SMALL, **keywords}))


coverage = functools.partial(quiet, simulate.coverage)


def variability(X, y, **keywords):
    keywords.pop("n_replicates", None)
    kept = {k: v for k, v in SMALL.items() if k != "n_replicates"}
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE"):
        return simulate.variability(X, y, **assembled(**{**kept, **keywords}))


def replicates(study):
    """All random numbers of a study side by side."""
    spread = study.variability.params if study.variability else np.empty((0, study.params.shape[1]))
    return np.vstack([study.params, study.lower, study.upper, spread])


def bits(study):
    """Numbers of a study that are the same to the last bit or not."""
    return np.vstack([study.target, study.params, study.lower, study.upper, study.variability.params])


def assert_same_bits(ours, theirs):
    np.testing.assert_array_equal(replicates(ours), replicates(theirs))
    np.testing.assert_array_equal(ours.target, theirs.target)


def complete(path):
    """Replicates in a checkpoint, which is whole whenever one looks."""
    if not path.exists():
        return 0
    with np.load(path) as archive:
        return len(archive["coverage_0_params"])
