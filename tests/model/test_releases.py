"""Releases around the noise: projections, rows at the bound, what add/remove hides, and that every combination fits."""

import itertools

import numpy as np
import pytest

import dpci
from dpci import _core, lowlevel
from dpci.accounting.costs import seals_from, steps_from
from dpci.losses import HuberHinge, Logistic, SmoothHinge, SoftLogistic
from dpci.model.settings import Settings
from support import custom_losses
from support.keywords import assembled

DIM, N = 3, 12
PURE, ZCDP, APPROX = dpci.PureDP(3.0), dpci.ZCDP(0.5), dpci.ApproxDP(2.0, 1e-5)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(35)
    X = rng.standard_normal((N, DIM))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(rng.uniform(size=N) < 0.5, 1.0, -1.0)


def make_spec(n=N, dim=DIM, **keywords):
    return Settings.checked(**assembled(**{"budget": PURE, "l2_strength": 0.3, "intercept": False, **keywords})).spec(
        n, dim
    )


def raw_release(spec, rows, seed):
    """Params, and noisy data parts of Hessian and gradient covariance before projection."""
    values = _core.simulate(spec, _core.Records(*rows), n_runs=1, seed=seed, n_threads=1)[0]
    matrices = np.zeros((2, DIM, DIM))
    lower = np.tril_indices(DIM)
    for matrix, triangle in zip(matrices, values[DIM:].reshape(2, -1), strict=True):
        matrix[lower] = matrix.T[lower] = triangle
    return values[:DIM], *matrices


def floored(matrix, floor):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.maximum(values, floor) @ vectors.T


# Projections.


@pytest.mark.parametrize("projection", ["floor", "cautious"])
@pytest.mark.parametrize("budget", [PURE, ZCDP], ids=repr)
def test_projections(rows, budget, projection):
    """Eigenvalues that noise made too small are raised to the bound; cautiously, those that noise may have made too."""
    l2_strength, touched = 0.1, 0
    for seed in range(50):
        keywords = {"budget": budget, "mechanism": "output", "projection": projection, "l2_strength": l2_strength}
        spec = make_spec(**keywords)
        params, hessian, cov = raw_release(spec, rows, seed)
        fit = _core.release(spec, _core.Records(*rows), on_violation="error", n_threads=1, seed=seed)
        assert fit["projection"] == projection
        believed = l2_strength + (fit["noise_spectral_radius"] if projection == "cautious" else 0.0)
        values, vectors = np.linalg.eigh(hessian + l2_strength * np.eye(DIM))
        touched += (values < believed).any()
        expected = vectors * np.where(values < believed, l2_strength, values) @ vectors.T
        np.testing.assert_allclose(fit["hessian"], expected, rtol=0, atol=1e-9 * np.abs(values).max())
        raw = cov - l2_strength**2 * np.outer(params, params)
        np.testing.assert_allclose(fit["gradient_cov"], floored(raw, 0.0), rtol=0, atol=1e-9 * np.abs(raw).max())
        for matrix, floor in ((fit["hessian"], l2_strength), (fit["gradient_cov"], 0.0)):
            np.testing.assert_array_equal(matrix, matrix.T)
            assert np.linalg.eigvalsh(matrix).min() >= floor - 1e-12 * np.abs(matrix).max()
    assert touched > 10


def test_paper_projects_both_matrices_at_the_regulariser(rows):
    for seed in range(20):
        fit = _core.release(
            make_spec(calibration="paper"), _core.Records(*rows), on_violation="error", n_threads=1, seed=seed
        )
        for name in ("hessian", "gradient_cov"):
            assert np.linalg.eigvalsh(fit[name]).min() >= 0.3 - 1e-12 * np.abs(fit[name]).max()


def test_the_spectral_radius_of_the_noise():
    plan = make_spec(1000, DIM, mechanism="output", l2_strength=0.01, budget=dpci.PureDP(0.2)).plan()
    assert plan["projection"] == "noise_aware"
    assert plan["noise_ratio"] == pytest.approx(plan["noise_spectral_radius"] / 0.01)
    # The spectrum of a symmetric matrix with entries of standard deviation s ends at 2 sqrt(d) s.
    scale = plan["steps"][1].hessian_scale
    assert plan["noise_spectral_radius"] == pytest.approx(2.0 * np.sqrt(DIM) * np.sqrt((DIM + 1) / 2.0) * scale)


# Rows at and above the bound.


@pytest.mark.parametrize("excess", [0.0, 1e-16, 1e-12])
@pytest.mark.parametrize("bounds", [None, "clip"])
def test_rows_that_rounding_put_above_the_bound_are_taken(rows, excess, bounds):
    X = rows[0] / np.linalg.norm(rows[0], axis=1, keepdims=True) * (1.0 + excess)
    keywords = {"budget": PURE, "l2_strength": 0.3, "seed": 1, "projection": "floor"}
    within = dpci.fit(X * (1.0 - 1e-11), rows[1], **assembled(**keywords))
    result = dpci.fit(X, rows[1], **assembled(rows=bounds, **keywords))
    np.testing.assert_allclose(result.params, within.params, rtol=0, atol=1e-5)


@pytest.mark.parametrize("excess", [1e-6, 1e-3, 4.0])
def test_rows_above_the_bound_are_refused_or_clipped(rows, excess):
    X = rows[0].copy()
    X[5] *= (1.0 + excess) / np.linalg.norm(X[5])
    clipped = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    keywords = {"budget": dpci.PureDP(1e6), "mechanism": "output", "l2_strength": 0.3, "seed": 1, "projection": "floor"}
    with pytest.raises(dpci.RowNormViolation, match="row 5"):
        dpci.fit(X, rows[1], **assembled(**keywords))
    result, expected = (dpci.fit(x, rows[1], **assembled(rows="clip", **keywords)) for x in (X, clipped))
    np.testing.assert_allclose(result.params, expected.params, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.hessian, expected.hessian, rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.gradient_cov, expected.gradient_cov, rtol=0, atol=1e-8)


# Add/remove: nothing depends on the number of rows.


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_add_remove_divides_by_the_public_number(rows, mechanism):
    """With next to no noise the released values are the exact ones with ``n_public`` for n."""
    n_public, l2_strength = 30, 0.3
    keywords = {"budget": dpci.PureDP(1e9), "mechanism": mechanism, "l2_strength": l2_strength, "intercept": False}
    result = dpci.fit(*rows, **assembled(neighbors=dpci.AddRemove(n_public), projection="floor", seed=1, **keywords))
    exact = lowlevel.minimize_erm(*rows, l2_strength=l2_strength * n_public / N, tolerance=1e-13).params
    np.testing.assert_allclose(result.params, exact, rtol=0, atol=1e-7)
    hessian, cov = lowlevel.hessian_and_gradient_cov(*rows, exact, l2_strength=1e-30)
    np.testing.assert_allclose(result.hessian, hessian * N / n_public + l2_strength * np.eye(DIM), rtol=0, atol=1e-6)
    # No mean is subtracted: how much of its square to take needs the number of rows.
    np.testing.assert_allclose(result.gradient_cov, floored(cov * N / n_public, 0.0), rtol=0, atol=1e-6)


@pytest.mark.parametrize("moments", ["joint", "separate", "none"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_add_remove_does_not_reveal_the_number_of_rows(rows, mechanism, moments):
    """Rows of zeros change no sum, so they change nothing at all but len(X)."""
    X, y = rows
    longer = np.vstack([X, np.zeros((17, DIM))]), np.append(y, np.ones(17))
    spec = make_spec(29, neighbors=dpci.AddRemove(40), mechanism=mechanism, moments=moments)
    first, second = (
        _core.release(spec, _core.Records(*data), on_violation="error", n_threads=1, seed=1) for data in (rows, longer)
    )
    assert first.keys() == second.keys()
    first["seals"], second["seals"] = (seals_from(fit["seals"]) for fit in (first, second))
    for key, value in first.items():
        if key == "steps":
            for one, other in zip(
                *([s.to_dict() for s in steps_from(steps)] for steps in (value, second[key])), strict=True
            ):
                assert {k: v for k, v in one.items() if isinstance(v, str)}.items() <= other.items()
                numbers = [[v for v in step.values() if isinstance(v, float)] for step in (one, other)]
                np.testing.assert_allclose(*numbers, rtol=1e-6)
        elif isinstance(value, np.ndarray):
            np.testing.assert_allclose(value, second[key], rtol=0, atol=1e-6)
        else:
            assert value == pytest.approx(second[key], rel=1e-6) if isinstance(value, float) else value == second[key]


# Every combination.

SOFT_HINGE = custom_losses.pseudo_huber()


COMBINATIONS = {
    "budget": (PURE, ZCDP, APPROX),
    "mechanism": ("objective", "output"),
    "moments": ("joint", "separate", "none"),
    "calibration": ("tight", "paper"),
    "projection": ("auto", "floor", "cautious", "noise_aware"),
    "neighbors": ("replace_one", "add_remove"),
}


@pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
@pytest.mark.parametrize(
    "loss", [Logistic(), HuberHinge(), SmoothHinge(s=0.5), SoftLogistic(), SOFT_HINGE], ids=lambda loss: loss.name
)
def test_every_combination_fits(rows, loss):
    X, y = np.tile(np.hstack([rows[0], 0.0 * rows[0]]), (20, 1)), np.tile(rows[1], 20)
    if loss.name == "soft_logistic":
        y = np.linspace(0.0, 1.0, len(y))
    for choices in itertools.product(*COMBINATIONS.values()):
        keywords = dict(zip(COMBINATIONS, choices, strict=True), loss=loss, l2_strength=0.3, seed=2)
        if keywords["neighbors"] == "add_remove":
            keywords["neighbors"] = dpci.AddRemove(250)
        # The paper's Gaussian objective perturbation is no guarantee for a replaced record.
        only_removed = (keywords["mechanism"], keywords["neighbors"]) == ("objective", "replace_one")
        only_removed &= keywords["budget"] is APPROX
        other = keywords["projection"] in {"cautious", "noise_aware"}
        if keywords["calibration"] == "paper" and (only_removed or other):
            with pytest.raises(dpci.InvalidInput, match="paper"):
                dpci.fit(X, y, **assembled(**keywords))
            continue
        result = dpci.fit(X, y, **assembled(**keywords))
        assert result.spent == keywords["budget"]
        assert np.isfinite(result.params).all()
        if keywords["moments"] != "none":
            assert np.isfinite(np.asarray(result.conf_int())).all()
            assert (result.std_errors > 0.0).all()
