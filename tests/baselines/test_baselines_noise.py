"""The noise of the functional mechanism, recovered from models of one seed, and what it makes of the polynomial."""

import numpy as np
import pytest

import dpci
from dpci import _core, baselines
from support.baselines import BUDGET, WEIGHTS, D, N, make_rows, minimize_polynomial, recover_noise, varied_rows
from support.seal import left_of, unsealed

X, Y, LABELS = make_rows()
TARGETS = {"squared": Y, "logistic": LABELS}


def functional(x=X, y=Y, **keywords):
    return baselines.functional_mechanism(x, y, **{"budget": BUDGET, "seed": 5, **keywords})


def with_constant(x, s=1.0):
    return np.hstack([x, np.full((len(x), 1), s)])


# Against NumPy. The law of the noise is in statistical/test_baselines_law.py.


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
@pytest.mark.parametrize("epsilon", [0.1, 3.0, 300.0])
def test_laplace_noise_on_the_coefficients(loss, calibration, neighbors, epsilon):
    n_public = None if neighbors == "replace_one" else 350
    l2_strength, s, bound = 0.01, 0.5, 1.5 if loss == "squared" else 1.0
    keywords = {
        "loss": loss,
        "budget": dpci.PureDP(epsilon),
        "calibration": calibration,
        "neighbors": "replace_one" if n_public is None else dpci.AddRemove(n_public),
        "l2_strength": l2_strength,
        "intercept": s,
        "target_bound": bound,
    }
    result = functional(y=TARGETS[loss], **keywords)
    (step,) = result.privacy["steps"]
    assert step["noise"] == "laplace"
    assert step["scale"] == pytest.approx(step["sensitivity"] / left_of(epsilon), rel=1e-12)
    facts = {"loss": loss, "std_dev": np.sqrt(2.0) * step["scale"], "row_norm": np.hypot(1.0, s), "target_bound": bound}
    ridge = (n_public or N) * l2_strength / 2.0
    models = [(with_constant(x, s), y, ridge, functional(x, y, **keywords).params) for x, y in varied_rows(D, loss)]
    quadratic, linear, unexplained = recover_noise(models, **facts)
    assert unexplained < 1e-9
    rows = with_constant(X, s)
    expected = minimize_polynomial(
        rows, TARGETS[loss], quadratic_noise=quadratic, linear_noise=linear, ridge=ridge, **facts
    )
    np.testing.assert_allclose(result.params, expected, rtol=1e-8)


@pytest.mark.parametrize("loss", WEIGHTS)
@pytest.mark.parametrize("budget", [dpci.ZCDP(0.2), dpci.ApproxDP(1.0, 1e-6)])
def test_gaussian_noise_on_the_sums(loss, budget):
    keywords = {"loss": loss, "budget": budget, "intercept": False}
    result = functional(y=TARGETS[loss], **keywords)
    (step,) = result.privacy["steps"]
    rest = unsealed(budget)
    mu = np.sqrt(2.0 * rest.rho) if budget.notion == "zcdp" else _core.gaussian_mu(rest.epsilon, rest.delta)
    assert step["noise"] == "gaussian"
    assert step["scale"] == pytest.approx(3.0 / np.sqrt(2.0) / mu, rel=1e-12)
    facts = {"loss": loss, "std_dev": WEIGHTS[loss][0] * step["scale"]}
    models = [(x, y, 0.0, functional(x, y, **keywords).params) for x, y in varied_rows(D, loss)]
    quadratic, linear, unexplained = recover_noise(models, **facts)
    assert unexplained < 1e-9
    expected = minimize_polynomial(X, TARGETS[loss], quadratic_noise=quadratic, linear_noise=linear, **facts)
    np.testing.assert_allclose(result.params, expected, rtol=1e-8)


def drowned(x, seed, **keywords):
    """A model that noise drowns, and the eigenvalues and vectors of its quadratic part in units of the noise.

    Ridges that save all directions show the noise of the seed; the data are 10⁻⁵ of it and turn its vectors by no more.
    """
    keywords |= {"budget": dpci.PureDP(1e-6), "seed": seed, "intercept": False}
    result = functional(x, **keywords)
    scale = result.privacy["steps"][0]["scale"]
    models = []
    for times in np.geomspace(20.0, 200.0, 6):
        strength = 2.0 * times * scale / N
        models.append((x, Y, times * scale, functional(x, **keywords, l2_strength=strength).params))
    noise, _, unexplained = recover_noise(
        models, loss="squared", std_dev=np.sqrt(2.0) * scale, row_norm=keywords.get("rows", 1.0)
    )
    assert unexplained < 1e-9
    values, vectors = np.linalg.eigh(noise / scale)
    return result, values + 4.0 * np.sqrt(2.0), vectors


def test_directions_that_are_not_positive_are_dropped():
    # At this budget the noise drowns the data: the ridge saves some directions, rarely all and rarely none.
    dropped = set()
    for seed in range(250):
        result, values, vectors = drowned(with_constant(X), seed, calibration="paper", rows=np.sqrt(2.0))
        gone = vectors[:, values < 0.0]
        dropped.add(gone.shape[1])
        assert np.linalg.norm(gone.T @ result.params) < 1e-4 * np.linalg.norm(result.params)
    assert {0, 1} <= dropped


def test_parameters_are_zero_where_no_direction_is_left():
    def model(seed):
        return functional(X[:, :1], intercept=False, budget=dpci.PureDP(1e-6), seed=seed)

    gone = [seed for seed in range(3000) if model(seed).params.tolist() == [0.0]]
    assert 0 < len(gone) < 30
    for seed in gone:
        assert drowned(X[:, :1], seed)[1] < 1e-4
        assert (model(seed).predict(X[:, :1]) == 0.0).all()
    for seed in set(range(100)) - set(gone):
        assert drowned(X[:, :1], seed)[1] > -1e-4
