"""With lambda to 0 and a huge budget a fit prints what statsmodels prints with robust standard errors (HC0)."""

import os

import pytest

import dpci

pytest.importorskip("statsmodels", reason="statsmodels is what is compared with")
import statsmodels_limit as limit  # needs it

# Within one percent in every number of every parameter.
LIMIT = 0.01


@pytest.fixture(
    scope="module",
    params=[
        "sample",
        pytest.param(
            "all rows",
            marks=pytest.mark.skipif(
                "DPCI_DATA" not in os.environ, reason="DPCI_DATA does not name the folder of data"
            ),
        ),
    ],
)
def adult(request):
    data = dpci.datasets.load_adult_sample("adult") if request.param == "sample" else dpci.datasets.load_adult()
    X, names = limit.full_rank(data, data.y)
    return X, data.y, names, limit.logit(X, data.y)


def test_logistic_regression(adult):
    X, y, _, reference = adult
    distances = [
        limit.distance(limit.fit(X, y, epsilon=epsilon, l2_strength=strength, seed=1), reference)
        for epsilon, strength in ((1e4, 1e-6), (1e6, 1e-8), (1e8, 1e-9))
    ]
    assert distances[0].greatest() > 10 * LIMIT  # so the distance is of what is asked for
    assert distances[1].greatest() < distances[0].greatest() / 5
    assert distances[2].greatest() < min(LIMIT, distances[1].greatest() / 5)


def test_lambda_alone_acts_without_noise(adult):
    # The bias is proportional to lambda, to first order.
    X, y, _, reference = adult
    far, near = (
        limit.distance(limit.without_noise(X, y, l2_strength=strength), reference) for strength in (1e-8, 1e-9)
    )
    assert near.params_in_errors == pytest.approx(far.params_in_errors / 10, rel=0.1)
    assert near.greatest() < LIMIT


def test_linear_regression(adult):
    X, _, names, _ = adult
    rows, hours = limit.linear(X, names)
    found = limit.fit(rows, hours, epsilon=1e9, l2_strength=1e-10, seed=1, **limit.LINEAR)
    assert limit.distance(found, limit.ols(rows, hours)).greatest() < LIMIT


def test_a_real_release_is_as_near(adult):
    # Sealed, from the operating system's noise, which is far below what is asked for, so that no draw can miss it.
    X, y, _, reference = adult
    found = limit.fit(X, y, epsilon=1e8, l2_strength=1e-9)
    assert limit.distance(found, reference).greatest() < LIMIT
