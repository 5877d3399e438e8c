"""Losses with a flat part: what released values show of where their curvature changes, and what is said then."""

import math

import numpy as np
import pytest

import dpci
from dpci.losses import Custom, HuberHinge, Logistic, SmoothHinge, Squared
from support.fits import make_rows
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning")
LOUD = {"budget": dpci.PureDP(1e6), "l2_strength": 0.01, "classes": (-1, 1), "seed": 1, "n_threads": 1}
FLAT = [HuberHinge(0.5), HuberHinge(0.1), SmoothHinge(0.1)]


def classes(n_positive, n=2000):
    """Rows without any signal: the intercept alone."""
    return np.zeros((n, 1)), np.repeat([1, -1], [n_positive, n - n_positive])


def said(result):
    return " ".join(" ".join([result.summary(), result.to_html(), *result.privacy["interval_notes"]]).split())


@pytest.mark.parametrize("loss", FLAT, ids=repr)
def test_nearly_balanced_classes_are_warned_of_with_the_size(loss):
    """Equal numbers of positives and negatives up to chance push the intercept to where the curvature begins."""
    with pytest.warns(dpci.CurvatureWarning, match="standard errors of their predictors .* may be too short") as caught:
        result = dpci.fit(*classes(1012), loss=loss, **LOUD)
    (warning,) = [w for w in caught if w.category is dpci.CurvatureWarning]
    assert warning.filename == __file__
    assert result.curvature_room < 3.0
    room = math.floor(10 * result.curvature_room) / 10
    size = f"are {room:g} standard errors of their predictors from that point, which is less than 3."
    assert said(result).replace("\n", " ").count(size) == 4
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.curvature_room == result.curvature_room
    assert again.privacy == result.privacy


@pytest.mark.filterwarnings("error::dpci.CurvatureWarning")
@pytest.mark.parametrize("loss", FLAT, ids=repr)
def test_unbalanced_classes_have_room(loss):
    result = dpci.fit(*classes(1400), loss=loss, **LOUD)
    assert result.curvature_room > 3.0
    assert "on average" in said(result)


def test_the_room_of_one_predictor_is_its_distance_in_standard_errors():
    """With the intercept alone the rows that curve the risk are the positive ones, and all have one predictor."""
    result = dpci.fit(*classes(1200), loss=HuberHinge(0.4), intercept=0.5, **LOUD)
    predictor, error = 0.5 * result.params[-1], 0.5 * result.std_errors[-1]
    # The first column is 0 in every row, so its noise does not count but for that of the released matrices.
    assert result.curvature_room == pytest.approx((predictor - 0.6) / error, rel=1e-3)
    smooth = dpci.fit(*classes(1200), loss=SmoothHinge(0.2), intercept=0.5, **LOUD)
    assert smooth.curvature_room == pytest.approx(0.2 / (0.5 * smooth.std_errors[-1]), rel=1e-3)


def test_the_room_without_an_intercept_is_that_of_rows_on_the_bound():
    X, y = classes(1200)
    result = dpci.fit(X + 2.0, y, loss=HuberHinge(0.4), intercept=False, rows=2.0, **LOUD)
    expected = (2.0 * result.params[0] - 0.6) / (2.0 * result.std_errors[0])
    assert result.curvature_room == pytest.approx(expected, rel=1e-3)


@pytest.mark.filterwarnings("error::dpci.CurvatureWarning")
def test_where_no_row_curves_the_risk_there_is_no_room_to_speak_of():
    """A great l2_strength keeps all margins on the straight part, where the Hessian is exactly lambda."""
    result = dpci.fit(*classes(1000), loss=HuberHinge(0.1), **{**LOUD, "l2_strength": 1.0})
    assert result.curvature_room is None
    assert "shows no rows with curvature" in said(result)


def quadratic():
    functions = (lambda u, y: (u - y) ** 2, lambda u, y: 2.0 * (u - y), lambda u, _y: np.full_like(u, 2.0))
    return Custom(*functions, slope_bound=20.0, curvature_bound=2.0, predictor_bound=9.0)


@pytest.mark.filterwarnings("error::dpci.CurvatureWarning")
@pytest.mark.parametrize(
    "loss", [Logistic(), Squared(1.0), HuberHinge(1.0), SmoothHinge(0.5), quadratic()], ids=lambda loss: loss.name
)
def test_other_losses_are_left_alone(loss):
    X, y = make_rows()
    keywords = {**LOUD, "classes": None if loss.name == "squared" else (-1, 1), "radius": 6.0}
    result = dpci.fit(X, 2.0 * y - 1.0, **assembled(loss=loss, **keywords))
    assert result.interval_refusal is None
    assert result.curvature_room is None
    notes = [note for note in result.privacy["interval_notes"] if "released matrices" not in note]
    assert len(notes) == (loss.name == "custom")
    assert not notes or "Released values cannot show this" in notes[0]


@pytest.mark.filterwarnings("error::dpci.CurvatureWarning")
def test_a_fit_without_intervals_says_nothing_of_them():
    result = dpci.fit(*classes(1012), **assembled(loss="huber_hinge", moments="none", **LOUD))
    assert not any("curvature" in note for note in result.privacy["interval_notes"])
    with pytest.raises(dpci.InvalidInput, match="intervals require released moments"):
        _ = result.curvature_room


def test_rows_in_parts_and_tuned_fits_warn_too():
    X, y = classes(1012)
    keywords = {name: value for name, value in LOUD.items() if name != "n_threads"}
    parts = [(X[part::3], y[part::3]) for part in range(3)]
    with pytest.warns(dpci.CurvatureWarning):
        dpci.fit(dpci.Chunks(lambda: iter(parts)), loss="huber_hinge", **keywords)
    candidates = [{"loss": HuberHinge(h)} for h in (0.1, 0.5)]
    with pytest.warns(dpci.CurvatureWarning):
        tuned = dpci.tuning.tune(
            X, y, **assembled(candidates=candidates, radius=60.0, validation_loss="logistic", **keywords)
        )
    assert "from that point, which is less than 3." in " ".join(tuned.summary(full=True).split())


@pytest.mark.filterwarnings("ignore::dpci.CurvatureWarning")
@pytest.mark.parametrize("loss", [HuberHinge(0.1), HuberHinge(0.5)], ids=repr)
def test_intervals_cover_where_the_hessian_is_the_ridge_alone(loss):
    """Rows on the sphere with balanced classes have slopes and no curvature; their target is 0.

    The noise of the Hessian hides that. If sampling errors counted the mean of a positive hidden curvature, as for
    other losses, coverage would be .69 and .92 in place of .94.
    """
    rng, covered = np.random.default_rng(5), []
    for seed in range(150):
        X = rng.standard_normal((10_000, 10))
        X /= np.linalg.norm(X, axis=1, keepdims=True) * (1.0 + 1e-12)
        y = rng.choice([-1, 1], len(X))
        fitted = dpci.fit(X, y, loss=loss, intercept=False, **LOUD | {
            "budget": dpci.PureDP(1.0), "l2_strength": 0.015 if loss.h < 0.5 else 0.03, "seed": seed,
        })  # fmt: skip
        covered.append(np.abs(fitted.params) <= fitted.conf_int().length / 2.0)
    assert 0.93 < np.mean(covered) < 0.975
