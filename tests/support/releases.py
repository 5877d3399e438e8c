"""Every public function that releases, on a few rows: for what all of them must do alike."""

import numpy as np

import dpci
from support.keywords import assembled

_rng = np.random.default_rng(1)
X = _rng.uniform(-0.5, 0.5, (200, 2))
Y = X[:, 0] > 0.0
PARTS = dpci.Chunks([(X[:50], Y[:50]), (X[50:], Y[50:])])
PURE = dpci.PureDP(2.0)
CANDIDATES = [{"l2_strength": 0.1}, {"l2_strength": 0.3}]
# Loaded here: a module that is asked for later needs files, which a test may take away.
release_moments = dpci.regression.release
AXES = (dpci.baselines.Bins(0, 3, -1.0, 1.0), dpci.baselines.Bins(1, 3, -1.0, 1.0))


def _tune(**keywords):
    return dpci.tuning.tune(X, Y, **assembled(budget=PURE, candidates=CANDIDATES, radius=1.0, **keywords))


RELEASES = {
    "fit": lambda **keywords: dpci.fit(X, Y, budget=PURE, l2_strength=0.1, **keywords),
    "fit_in_parts": lambda **keywords: dpci.fit(PARTS, budget=PURE, l2_strength=0.1, **keywords),
    "report": lambda **keywords: dpci.per_instance.report(
        X, Y, budget=dpci.ApproxDP(2.0, 1e-6), l2_strength=0.1, n_public=200, **keywords
    ),
    "tune": _tune,
    "tune_chunks": lambda **keywords: _tune(method="chunks", **keywords),
    "functional_mechanism": lambda **keywords: dpci.baselines.functional_mechanism(X, Y, budget=PURE, **keywords),
    "moment_matrix": lambda **keywords: release_moments(X, 1.0 * Y, budget=PURE, **keywords),
    "moment_matrix_in_parts": lambda **keywords: release_moments(
        dpci.Chunks([(X[:50], 1.0 * Y[:50]), (X[50:], 1.0 * Y[50:])]), budget=PURE, robust=True, **keywords
    ),
    "projected_histogram": lambda **keywords: dpci.baselines.projected_histogram(
        X, Y, budget=PURE, axes=AXES, l2_strength=0.1, target_bins=2, **keywords
    ),
}
