"""A custom loss that declares strong convexity: a fit of one parameter without regularisation, and what it refuses."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput
from dpci.losses import Custom
from support.keywords import assembled

N = 500
pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


def quartic(**declared):
    """(u - y)² + (u - y)⁴ / 4 for |u|, |y| <= 1: slope up to 4 + 8, curvature from 2 to 14."""
    keywords = {
        "slope_bound": 12.0,
        "curvature_bound": 14.0,
        "target_bounds": (-1.0, 1.0),
        "predictor_bound": 1.0,
        "strong_convexity": 2.0,
        **declared,
    }
    return Custom(
        lambda u, y: (u - y) ** 2 + (u - y) ** 4 / 4.0,
        lambda u, y: 2.0 * (u - y) + (u - y) ** 3,
        lambda u, y: 2.0 + 3.0 * (u - y) ** 2,
        **keywords,
    )


def fit(x, y, **keywords):
    keywords = {
        "budget": dpci.PureDP(1.0), "l2_strength": 0.0, "loss": quartic(), "mechanism": "output", "radius": 1.0,
        "intercept": False, "seed": 5, **keywords,
    }  # fmt: skip
    return dpci.fit(x, y, **assembled(**keywords))


@pytest.fixture(scope="module")
def y():
    return np.random.default_rng(6).uniform(-0.6, 1.0, N)


def test_sensitivity_is_that_of_the_declared_convexity(y):
    result = fit(np.ones((N, 1)), y)
    assert result.privacy["steps"][0]["sensitivity"] == pytest.approx(2.0 * 12.0 / (N * 2.0), rel=1e-6)
    assert result.l2_strength == 0.0
    assert np.isfinite(np.asarray(result.conf_int())).all()
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.summary() == result.summary()
    assert "strong_convexity=2" in " ".join(result.summary().split())


def test_the_minimiser_moves_less_than_that():
    """All neighbours that replace one target by an end of its range, by the exact minimiser."""
    nodes = np.linspace(-1.0, 1.0, 200_001)
    risk = lambda targets: (2.0 * (nodes[:, None] - targets) + (nodes[:, None] - targets) ** 3).sum(axis=1)  # noqa: E731
    small = np.array([1.0, 1.0, 0.9, 1.0])
    root = lambda targets: nodes[np.searchsorted(risk(targets), 0.0)]  # noqa: E731
    moved = max(abs(root(small) - root(np.append(small[1:], end))) for end in (-1.0, 1.0))
    assert 0.1 * 12.0 < moved * 4.0 <= 12.0
    assert moved <= 2.0 * 12.0 / (4 * 2.0)


def test_the_intercept_alone_qualifies(y):
    result = fit(np.empty((N, 0)), y, intercept=True, radius=0.7)
    assert result.names == ("intercept",)
    assert abs(result.params[0] - y.mean()) < 0.3


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"mechanism": "objective"}, 'strong_convexity requires mechanism="output"'),
        ({"neighbors": dpci.AddRemove(N)}, 'strong_convexity requires neighbors="replace_one"'),
        ({"radius": None}, "predictor_bound=1 requires a radius of at most 1"),
        ({"radius": 1.1}, "predictor_bound=1 requires a radius of at most 1"),
        ({"loss": "logistic"}, "l2_strength must be finite and > 0"),
        ({"loss": quartic(strong_convexity=0.0)}, "l2_strength must be finite and > 0"),
    ],
)
def test_what_is_refused(y, keywords, message):
    target = np.where(y > 0, 1, -1) if keywords.get("loss") == "logistic" else y
    with pytest.raises(InvalidInput, match=message):
        fit(np.ones((N, 1)), target, **keywords)


def test_more_parameters_are_refused(y):
    with pytest.raises(
        InvalidInput, match=r"one parameter, because a function of one linear predictor.*got 2 parameters"
    ):
        fit(np.full((N, 2), 0.5), y)
    with pytest.raises(InvalidInput, match="one parameter"):
        fit(np.ones((N, 1)), y, intercept=True, radius=0.5)


def test_short_rows_are_refused(y):
    """A row of norm .5 would let the risk curve by .5, not by 2."""
    x = np.ones((N, 1))
    x[17] = 0.5
    with pytest.raises(InvalidInput, match=r"every row of X must have Euclidean norm row_norm.*got 0\.5"):
        fit(x, y)
    with pytest.raises(InvalidInput, match="every row of X"):
        fit(x, y, rows="clip")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"strong_convexity": 2.5}, "below strong_convexity=2.5"),
        # The slack is that of the declared value, not of a bound that may be far greater.
        ({"strong_convexity": 2.1, "curvature_bound": 1e8}, "below strong_convexity=2.1"),
        ({"strong_convexity": -1.0}, "strong_convexity must be finite and >= 0"),
        ({"strong_convexity": 15.0}, "strong_convexity must be >= 0 and at most curvature_bound"),
        ({"predictor_bound": 2.0}, "above slope_bound=12"),
        ({"predictor_bound": 0.0}, "predictor_bound must be finite and > 0"),
        ({"predictor_bound": None}, "above slope_bound=12"),
    ],
)
def test_declarations_are_checked_on_the_grid(declared, message):
    with pytest.raises(InvalidInput, match=message):
        quartic(**declared)


def test_the_functions_are_never_called_beyond_their_bound(y):
    seen = []

    def value(u, targets):
        seen.append(np.abs(u).max(initial=0.0))
        return (u - targets) ** 2

    loss = Custom(
        value, lambda u, t: 2.0 * (u - t), lambda u, _t: np.full_like(u, 2.0), slope_bound=4.0, curvature_bound=2.0,
        target_bounds=(-1.0, 1.0), predictor_bound=0.25,
    )  # fmt: skip
    rng = np.random.default_rng(7)
    X = rng.standard_normal((N, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for mechanism in ("objective", "output"):
        dpci.fit(
            X,
            y,
            **assembled(
                budget=dpci.PureDP(1.0), l2_strength=0.01, loss=loss, mechanism=mechanism, radius=0.25, seed=8,
                intercept=False,
            ),
        )  # fmt: skip
    assert max(seen) <= 0.25 * (1.0 + 1e-9)
