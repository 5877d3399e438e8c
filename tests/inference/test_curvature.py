"""Flat losses, common levels and private numbers of records: what released values show of them, and what is said."""

import math
from statistics import NormalDist

import numpy as np
import pytest
from scipy import optimize, special, stats

import dpci
from dpci import lowlevel
from dpci.accounting.costs import noise_of
from dpci.inference.common_levels import COMMON as COMMON_SHARE
from dpci.inference.common_levels import LEAST_COVERAGE, SHOWN, TELLING, isometric_std_dev
from dpci.losses import Custom, HuberHinge, Logistic, SmoothHinge, Squared
from dpci.released.model import record_of
from support.fits import BOUND, LEVELS, SIZE, make_levels, make_rows
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")
LOUD = {"budget": dpci.PureDP(1e6), "l2_strength": 0.01, "classes": (-1, 1), "seed": 1}
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
    result = dpci.fit(*classes(1200), loss=HuberHinge(0.4), rows=dpci.rows.Within(intercept=0.5), **LOUD)
    predictor, error = 0.5 * result.params[-1], 0.5 * result.std_errors[-1]
    # The first column is 0 in every row, so its noise does not count but for that of the released matrices.
    assert result.curvature_room == pytest.approx((predictor - 0.6) / error, rel=1e-3)
    smooth = dpci.fit(*classes(1200), loss=SmoothHinge(0.2), rows=dpci.rows.Within(intercept=0.5), **LOUD)
    assert smooth.curvature_room == pytest.approx(0.2 / (0.5 * smooth.std_errors[-1]), rel=1e-3)


def test_the_room_without_an_intercept_is_that_of_rows_on_the_bound():
    X, y = classes(1200)
    result = dpci.fit(X + 2.0, y, loss=HuberHinge(0.4), rows=dpci.rows.Within(2.0, intercept=False), **LOUD)
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
    parts = [(X[part::3], y[part::3]) for part in range(3)]
    with pytest.warns(dpci.CurvatureWarning):
        dpci.fit(dpci.Chunks(lambda: iter(parts)), loss="huber_hinge", **LOUD)
    candidates = [{"loss": HuberHinge(h)} for h in (0.1, 0.5)]
    with pytest.warns(dpci.CurvatureWarning):
        tuned = dpci.tuning.tune(
            X, y, **assembled(candidates=candidates, radius=60.0, validation_loss="logistic", **LOUD)
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
        fitted = dpci.fit(X, y, loss=loss, rows=dpci.rows.Within(intercept=False), **LOUD | {
            "budget": dpci.PureDP(1.0), "l2_strength": 0.015 if loss.h < 0.5 else 0.03, "seed": seed,
        })  # fmt: skip
        covered.append(np.abs(fitted.params) <= fitted.conf_int().length / 2.0)
    assert 0.93 < np.mean(covered) < 0.975


STRENGTH = 0.02
ROWS = dpci.rows.Blocks([0.5], groups=[(range(1, 1 + LEVELS), BOUND)])
OPTIONS = {"rows": ROWS, "l2_strength": STRENGTH, "classes": (-1, 1)}
COMMON = "x3"


def fitted(epsilon, *, seed=1, common=0.9, **changed):
    return dpci.fit(*make_levels(common), **assembled(budget=dpci.PureDP(epsilon), seed=seed, **{**OPTIONS, **changed}))


def by_hand(result):
    """Standard error of a share, the shares, and what intervals cover at a share, from released and public numbers."""
    record, law, k = record_of(result), result._error_law(), LEVELS + 2
    deviation = isometric_std_dev(*noise_of(record.steps, "hessian"), k)
    score = (result.hessian[-1, -1] - STRENGTH) / deviation
    normal = NormalDist()
    curvature = min(0.25, deviation * (score + normal.pdf(score) / normal.cdf(score)))
    half = result.conf_int().length / 2.0
    shares = result.hessian[-1, 1:-1] / (BOUND * curvature)

    def covered(j, share):
        multiple = BOUND * share * curvature / (curvature + STRENGTH)
        inverse = min(law.noise[j, j], 1.0 / record.divisor / (STRENGTH + BOUND**2 * curvature * share * (1.0 - share)))
        multipliers = np.array(law.noise[j])
        multipliers[-1] = max(abs(multipliers[-1]), multiple * inverse)
        variance = sum(m * m * v for m, v in zip(multipliers, law.noise_variances, strict=True))
        return 2.0 * normal.cdf(half[j] / math.sqrt(variance)) - 1.0

    return deviation / math.sqrt(2.0) / (BOUND * curvature), shares, covered


@pytest.mark.filterwarnings("ignore::dpci.CommonLevelWarning")
@pytest.mark.parametrize("epsilon", [0.3, 0.6, 1.0, 20.0])
def test_what_is_named_follows_from_released_and_public_numbers(epsilon):
    """The criterion is written out once more, from the released Hessian and the law of the errors."""
    named = 0
    for seed in range(4):
        result = fitted(epsilon, seed=seed)
        error, shares, covered = by_hand(result)
        found = result.common_levels
        least = min(covered(1 + i, COMMON_SHARE) for i in range(LEVELS))
        if error > TELLING and least < LEAST_COVERAGE:
            assert found.columns == (f"x1 to x{LEVELS}",)
            assert found.parameters == ()
            assert found.coverage == pytest.approx(least, rel=1e-9)
            named += 1
            continue
        at = {f"x{1 + i}": covered(1 + i, min(max(s, 0.0), 1.0)) for i, s in enumerate(shares) if s > SHOWN * error}
        expected = {name: c for name, c in at.items() if c < LEAST_COVERAGE}
        if expected:
            assert (found.parameters, found.columns) == (tuple(expected), ())
            assert found.coverage == pytest.approx(min(expected.values()), rel=1e-9)
            named += 1
        else:
            assert found is None
    assert named == {0.3: 4, 20.0: 0}.get(epsilon, named)


def test_the_warning_the_summary_the_page_and_the_file_name_the_columns():
    with pytest.warns(dpci.CommonLevelWarning, match="hides which levels of x1 to x30 are common") as caught:
        result = fitted(0.3)
    (warning,) = [w for w in caught if w.category is dpci.CommonLevelWarning]
    assert warning.filename == __file__
    found = result.common_levels
    error = warning.message
    assert (error.code, error.parameters, error.columns, error.coverage) == (
        "common_level",
        found.parameters,
        found.columns,
        found.coverage,
    )
    assert said(result).count("hides which levels of x1 to x30 are common") == 4
    assert result.privacy["common_levels"] == {"parameters": (), "columns": ("x1 to x30",), "coverage": found.coverage}
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.common_levels == found


def test_a_level_that_the_released_hessian_shows_is_named_itself():
    with pytest.warns(dpci.CommonLevelWarning) as caught:
        results = [fitted(0.75, seed=seed) for seed in range(6)]
    told = [w.message.parameters for w in caught if w.category is dpci.CommonLevelWarning]
    assert told == [result.common_levels.parameters for result in results if result.common_levels]
    named = [name for parameters in told for name in parameters]
    for each in (w.message for w in caught if w.category is dpci.CommonLevelWarning):
        assert each.columns or f"By the released Hessian many records have {', '.join(each.parameters)}." in str(each)
    assert named.count(COMMON) >= 2
    # Of 29 rare levels one in 44 is two standard errors above 0 by chance.
    assert len(named) - named.count(COMMON) <= 12


@pytest.mark.filterwarnings("error::dpci.CommonLevelWarning")
@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 100.0},
        {"epsilon": 0.3, "rows": dpci.rows.Ball(1.0)},
        {"epsilon": 0.3, "intercept": False},
        {"epsilon": 0.3, "projection": "floor"},
        {"epsilon": 0.3, "moments": "none"},
        {"epsilon": 0.3, "rows": dpci.rows.Blocks([0.5] * (1 + LEVELS))},
        {"epsilon": 0.3, "rows": dpci.rows.Ball(1.0), "mechanism": "output"},
    ],
)
def test_nothing_is_said_without_blocks_an_intercept_or_much_noise(changed):
    result = fitted(**changed)
    if changed.get("moments") != "none":
        assert result.common_levels is None
    assert result.privacy["common_levels"] is None
    assert "levels" not in said(result)


def test_a_plan_names_what_the_fit_will_hide_before_it_is_paid():
    keywords = {"n_samples": SIZE, "n_features": 1 + LEVELS, "rows": ROWS, "l2_strength": STRENGTH}
    plan = dpci.plan(budget=dpci.PureDP(0.3), **keywords)
    assert plan.hidden_columns == ("x1 to x30",)
    assert "which levels are common in x1 to x30" in " ".join(plan.summary().split())
    for seed in range(5):
        with pytest.warns(dpci.CommonLevelWarning):
            assert fitted(0.3, seed=seed).common_levels.columns == plan.hidden_columns
    assert dpci.plan(budget=dpci.PureDP(10.0), **keywords).hidden_columns == ()
    for changed in ({"rows": dpci.rows.Ball(1.0)}, {"intercept": False}, {"moments": "none"}):
        assert dpci.plan(**assembled(budget=dpci.PureDP(0.3), **{**keywords, **changed})).hidden_columns == ()


@pytest.mark.filterwarnings("ignore::dpci.PrivacyLeakWarning")
@pytest.mark.parametrize("common", [0.9, 0.05])
def test_the_level_that_is_warned_of_is_covered_less_if_it_is_common(common):
    """300 simulated fits: a coverage of .90 gives less than .8, and .95 less than .86, with probability below 1e-6."""
    study = dpci.simulate.coverage(
        *make_levels(common), budget=dpci.PureDP(0.3), n_replicates=300, n_variability=0, seed=4, **OPTIONS
    )
    covered = np.asarray(study.coverage_by_param)[1 + 2]
    assert covered < 0.8 if common == 0.9 else covered > 0.86


NOISY = dpci.PureDP(1e5)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_mean_gradient_stays_in_the_covariance_under_add_remove(mechanism, calibration):
    """Next to no noise: the matrices are sums over the rows that ``lowlevel`` has too, divided by the public number."""
    X, y = make_rows()
    strength, n_public = 0.3, 1200
    keywords = {"budget": NOISY, "l2_strength": strength, "mechanism": mechanism, "calibration": calibration, "seed": 2}
    for relation, n in ((None, len(X)), ("add_remove", n_public)):
        added = {} if relation is None else {"neighbors": dpci.AddRemove(n_public)}
        result = dpci.fit(X, y, **assembled(classes=(0, 1), projection="floor", **keywords, **added))
        hessian, centred = lowlevel.hessian_and_gradient_cov(
            X, 2.0 * y - 1.0, result.params, loss="logistic", l2_strength=strength, intercept=1.0
        )
        mean_gradient = strength * result.params
        data = (centred + np.outer(mean_gradient, mean_gradient)) * len(X) / n
        expected = data if relation else data - np.outer(mean_gradient, mean_gradient)
        if calibration == "paper":
            values, vectors = np.linalg.eigh(expected)
            expected = (vectors * np.maximum(values, strength)) @ vectors.T
        # With any rows, more than twenty times the tolerance is at stake.
        assert np.outer(mean_gradient, mean_gradient).max() > 0.002
        np.testing.assert_allclose(result.gradient_cov, expected, atol=1e-4)
        identity = np.eye(len(hessian))
        expected = (hessian - strength * identity) * len(X) / n + strength * identity
        np.testing.assert_allclose(result.hessian, expected, atol=1e-4)


def test_a_rare_class_is_covered_with_more_records_than_n_public():
    """One positive in a hundred and half as many records again: the intercept's share of misses, at a rate of 1e-6."""
    runs, n_public, share, strength, level = 120, 2000, 0.01, 0.1, 0.95
    n_records = 3 * n_public // 2

    def slope(intercept):
        return special.expit(intercept) - share + strength * n_public / n_records * intercept

    target = optimize.brentq(slope, -10.0, 0.0)
    rng = np.random.default_rng(4)
    X, hits = np.zeros((n_records, 1)), 0
    for seed in range(runs):
        y = np.where(rng.uniform(size=n_records) < share, 1, -1)
        result = dpci.fit(
            X, y, budget=NOISY, l2_strength=strength, classes=(-1, 1), neighbors=dpci.AddRemove(n_public),
            seed=seed,
        )  # fmt: skip
        intervals = result.conf_int(level=level)
        hits += intervals.lower[-1] <= target <= intervals.upper[-1]
    assert hits >= stats.binom.ppf(1e-6, runs, level)
    assert "do not use the number of records" in " ".join(result.summary(full=True).split())
