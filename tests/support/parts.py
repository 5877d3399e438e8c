"""Rows in parts for tests: data, partitions of it, and sources that count their passes or change between them."""

import itertools

import numpy as np

import dpci


def make_rows(n, d, seed=0):
    """Rows within the unit ball, boolean labels, and real targets in [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= (rng.uniform(0.2, 0.999, size=n) / np.linalg.norm(X, axis=1))[:, None]
    u = 4.0 * X @ rng.normal(size=d)
    return X, u + rng.logistic(size=n) > 0, np.clip(u / 6 + 0.1 * rng.normal(size=n), -1, 1)


def cut(X, y, n_parts):
    """Uneven parts, some of them empty."""
    n = len(y)
    ends = [0, *sorted(int(n * (k / n_parts) ** 2) for k in range(1, n_parts)), n]
    if n_parts > 2:
        ends = sorted([*ends, ends[2], n, 1])
    return [(X[a:b], y[a:b]) for a, b in itertools.pairwise(ends)]


class CountingChunks(dpci.Chunks):
    """Chunks that remember what each pass asked for."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.passes = []

    def reduce(self, work):
        self.passes.append(work.request.name if hasattr(work, "request") else "describe")
        return super().reduce(work)


def assert_same_fit(ours, theirs, tolerance=1e-10):
    assert ours.names == theirs.names
    assert ours.n_samples == theirs.n_samples
    for name in ("params", "hessian", "gradient_cov"):
        ours_values, theirs_values = getattr(ours, name), getattr(theirs, name)
        if theirs_values is not None:
            np.testing.assert_allclose(ours_values, theirs_values, rtol=0, atol=tolerance, err_msg=name)
