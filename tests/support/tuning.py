"""Private tuning of one parameter under the squared loss, written again in NumPy, and the rows that its tests share."""

import numpy as np

import dpci
from dpci import _core
from dpci.losses import HuberHinge, Squared
from dpci.settings import Settings
from support.fits import make_rows

X, Y = make_rows()
GRID = [{"l2_strength": strength} for strength in (0.02, 0.2, 2.0)]
BUDGET = dpci.PureDP(4.0)

BOUND = 1.0
# Of a repeated run, for its score.
SCORE_SHARE = 0.25


def tune(**keywords):
    """Tune on the rows of the tests of results."""
    return dpci.tuning.tune(X, Y, **{"budget": BUDGET, "candidates": GRID, "radius": 4.0, "seed": 3, **keywords})


def small_rows(n=60, seed=3):
    """One feature in [-1, 1] and targets in [-1, 1]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.clip(0.8 * x + 0.3 * rng.standard_normal(n), -1.0, 1.0)


def tuning_spec(n, candidates, budget, method, *, shape=1.0, expected_runs=6.0, n_columns=1, **keywords):
    """Return the specification of a tuning as ``dpci.tuning.tune`` makes it, without an intercept."""
    values = {"loss": Squared(), "mechanism": "output", "fit_intercept": False, "moments": "none", **keywords}
    settings = [Settings(budget=budget, **{**values, **candidate}) for candidate in candidates]
    numbers = {name: budget.parameters().get(name, 0.0) for name in ("epsilon", "rho", "delta")}
    return _core.TuningSpec(
        [s.spec(n, n_columns) for s in settings],
        loss=settings[0].core_loss,
        validation_radius=None,
        method=method,
        shape=shape,
        expected_runs=expected_runs,
        notion=budget.notion,
        **numbers,
    )


def simulate(spec, x, y, n_runs, seed):
    """Return indexes (n_runs,) and parameters (n_runs, k)."""
    X = np.ascontiguousarray(np.reshape(x, (len(y), -1)))
    rows = _core.simulate_tunings(spec, X, np.asarray(y, float), n_runs=n_runs, seed=seed, n_threads=None)
    return rows[:, 0].astype(int), rows[:, 1:]


def _model(x, y, candidate, scale, rng):
    """Output perturbation by Laplace noise, moved into the ball."""
    radius = candidate["radius"]
    params = np.clip(2 * np.mean(x * y) / (2 * np.mean(x * x) + candidate["l2_strength"]), -radius, radius)
    return np.clip(params + rng.laplace(scale=scale), -radius, radius)


def model_scales(spec, n_candidates, epsilon):
    """Scales of the models' noise: sensitivities, which other tests check, over the epsilon of a model."""
    return [spec.model_noise(index)[2] / epsilon for index in range(n_candidates)]


def chunks_again(x, y, candidates, epsilon, scales, rng):
    """Algorithm 5 of Wu et al. with projection: index and parameter."""
    parts = np.array_split(rng.permutation(len(y)), len(candidates) + 1)
    models = [
        _model(x[rows], y[rows], candidate, scale, rng)
        for candidate, scale, rows in zip(candidates, scales, parts[:-1], strict=True)
    ]
    last = parts[-1]
    losses = np.array([np.mean((x[last] * m - y[last]) ** 2) for m in models])
    sensitivity = (max(c["radius"] for c in candidates) + BOUND) ** 2 / len(last)
    weights = np.exp(-epsilon * (losses - losses.min()) / (2 * sensitivity))
    index = rng.choice(len(models), p=weights / weights.sum())
    return index, models[index]


def repeat_again(x, y, candidates, epsilon, scales, rng, *, expected_runs, score_share=SCORE_SHARE):
    """The best of a geometric number of runs: index and parameter."""
    run = epsilon / 3.0
    sensitivity = (max(c["radius"] for c in candidates) + BOUND) ** 2 / len(y)
    best = (np.inf, 0, 0.0)
    n_runs = 20 * expected_runs + 1
    while n_runs > 20 * expected_runs:
        n_runs = rng.geometric(1.0 / expected_runs)
    for _ in range(n_runs):
        index = rng.integers(len(candidates))
        params = _model(x, y, candidates[index], scales[index], rng)
        loss = np.mean((x * params - y) ** 2) + rng.laplace(scale=sensitivity / (score_share * run))
        best = min(best, (loss, index, params))
    return best[1:]


def antipodal_params(budget, method, *, n_runs, seed, mechanism="objective"):
    """Released parameters on neighbours that pull apart as far as the bounds allow: with this λ the loss is a line."""
    n = {"repeat": 1, "chunks": 2}[method]
    candidates = [{"l2_strength": 50.0, "radius": 0.1}]
    keywords = {"loss": HuberHinge(h=0.5), "mechanism": mechanism, "expected_runs": 3.0}
    spec = tuning_spec(n, candidates, budget, method, **keywords)
    x = np.eye(n)[0]
    return [simulate(spec, x, label * np.ones(n), n_runs, seed ^ (label > 0))[1][:, 0] for label in (1, -1)]
