"""Private tuning of one parameter under the squared loss, written again in NumPy, and the rows that its tests share."""

import numpy as np
from scipy import stats

import dpci
from dpci import _core
from dpci.budgets import core_budget
from dpci.losses import Custom, HuberHinge, Squared
from dpci.model.settings import Settings
from support.fits import make_rows
from support.keywords import assembled

X, Y = make_rows()
GRID = [{"l2_strength": strength} for strength in (0.02, 0.2, 2.0)]
BUDGET = dpci.PureDP(4.0)

BOUND = 1.0
# Of a repeated run, for its score.
SCORE_SHARE = 0.25


def tune(**keywords):
    """Tune on the rows of the tests of results."""
    return dpci.tuning.tune(
        X, Y == 1, **assembled(**{"budget": BUDGET, "candidates": GRID, "radius": 4.0, "seed": 3, **keywords})
    )


def small_rows(n=60, seed=3):
    """One feature in [-1, 1] and targets in [-1, 1]."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, n)
    return x, np.clip(0.8 * x + 0.3 * rng.standard_normal(n), -1.0, 1.0)


def tuning_spec(
    n, candidates, budget, method, *, shape=1.0, expected_runs=6.0, n_columns=1, validation=None, **keywords
):
    """Return the specification of a tuning as ``dpci.tuning.tune`` makes it, without an intercept."""
    values = {"loss": Squared(), "mechanism": "output", "intercept": False, "moments": "none", **keywords}
    settings = [Settings.checked(**assembled(budget=budget, **{**values, **candidate})) for candidate in candidates]
    return _core.TuningSpec(
        [s.spec(n, n_columns) for s in settings], loss=(validation or settings[0].loss).to_core(),
        validation_radius=None, method=method, shape=shape, expected_runs=expected_runs, budget=core_budget(budget),
    )  # fmt: skip


def simulate(spec, x, y, n_runs, seed):
    """Return indexes (n_runs,) and parameters (n_runs, k)."""
    X = np.ascontiguousarray(np.reshape(x, (len(y), -1)))
    rows = _core.simulate(spec, _core.Records(X, np.asarray(y, float)), n_runs=n_runs, seed=seed, n_threads=None)
    return rows[:, 0].astype(int), rows[:, 1:]


def _model(x, y, candidate, scale, rng):
    """Output perturbation by Laplace noise, moved into the ball."""
    radius = candidate["radius"]
    params = np.clip(2 * np.mean(x * y) / (2 * np.mean(x * x) + candidate["l2_strength"]), -radius, radius)
    return np.clip(params + rng.laplace(scale=scale), -radius, radius)


def model_scales(spec, n_candidates, epsilon):
    """Scales of the models' noise: sensitivities, which other tests check, over the epsilon of a model."""
    return [spec.model(index).sensitivity / epsilon for index in range(n_candidates)]


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


class TwoCandidates:
    """Neighbours and two candidates on which repeated runs spend most of what they may: a record of y = 1 or -1.

    The other records want a greater parameter, by the validation loss alone. The first candidate is the better one, on
    a greater ball; the record pulls it and the second apart, so that good runs get rarer where those of the second get
    likelier. Laws are exact, from the calibration of the library.
    """

    n, radii, shifts, expected_runs = 1000, (0.5, 0.25), (0.15, 0.07), 300.0
    targets = 0.5

    def __init__(self, budget):
        self.candidates = [
            {"loss": self.pull(sign), "radius": radius, "l2_strength": 1.0 / (self.n * shift)}
            for sign, radius, shift in zip((1.0, -1.0), self.radii, self.shifts, strict=True)
        ]
        keywords = {"validation": Squared(), "expected_runs": self.expected_runs}
        self.spec = tuning_spec(self.n, self.candidates, budget, "repeat", **keywords)

    @staticmethod
    def pull(sign):
        """A loss that pulls the parameter by the records of y = 1 or -1, and is the same everywhere for the others."""

        def strength(y):
            return np.where(np.abs(y) == 1.0, sign * y, 0.0)

        return Custom(
            lambda u, y: 2.0 - strength(y) * u, lambda u, y: -strength(y) + 0.0 * u, lambda u, y: 0.0 * (u + y),
            slope_bound=1.0, curvature_bound=1e-9, target_bounds=(-1.0, 1.0),
        )  # fmt: skip

    def minimiser(self, number, y):
        """Minimiser of a candidate without noise."""
        return (1.0, -1.0)[number] * y * self.shifts[number]

    def law(self, y):
        """Return the probabilities that the second is chosen, and that it is with its greatest parameter."""
        facts = self.spec.facts()
        points, weights, second = [], [], []
        for number, radius in enumerate(self.radii):
            scale = self.spec.model(number).noise_scale
            edges = np.linspace(-radius, radius, 41)
            above = stats.laplace.sf(edges - self.minimiser(number, y), scale=scale)
            points.append(np.r_[-radius, (edges[1:] + edges[:-1]) / 2, radius])
            weights.append(0.5 * np.r_[1.0 - above[0], above[:-1] - above[1:], above[-1]])
            second.append(np.full(len(edges) + 1, number == 1))
        points, weights, second = map(np.concatenate, (points, weights, second))
        losses = ((self.n - 1) * (points - self.targets) ** 2 + (points - y) ** 2) / self.n
        width = facts["score_scale"]
        scores = np.linspace(losses.min() - 40 * width, losses.max() + 40 * width, 4001)
        distances = scores - losses[:, None]
        worse = weights @ stats.laplace.sf(distances, scale=width)
        # The best of K runs has this score: the sum over k of k P(K = k) P(a run is worse)^(k - 1).
        counts = _core.Testing.run_count(1.0, self.expected_runs).probabilities()
        best = np.polynomial.polynomial.polyval(worse, counts * np.arange(1, len(counts) + 1))
        released = weights * np.trapezoid(stats.laplace.pdf(distances, scale=width) * best, scores, axis=1)
        assert abs(released.sum() - 1.0) < 1e-3
        return released[second].sum(), released[second & (points == self.radii[1])].sum()
