"""Utility curves with odd or bad input, and what they tell: summary, frame, plot."""

import numpy as np
import pytest

import dpci
from dpci.errors import InvalidInput, PrivacyLeakWarning
from dpci.utility.search import tabulate
from support.keywords import assembled
from support.utility import APPROX, KIFER, ROWS, curve

X, Y = ROWS
NAN, INF = float("nan"), float("inf")


def refused(match, error=InvalidInput, rows=ROWS, **keywords):
    with pytest.raises(error, match=match):
        dpci.utility.curve(*rows, **assembled(**{"at": APPROX, "l2_strength": 0.02, **keywords}))


@pytest.mark.parametrize(
    ("keywords", "match"),
    [
        ({"at": 1.0}, "at must be dpci.PureDP, dpci.ZCDP or dpci.ApproxDP, got at=1.0"),
        ({"at": None}, "at must be"),
        ({"l2_strength": 0.0}, "l2_strength must be finite and > 0"),
        ({"l2_strength": NAN}, "l2_strength must be finite and > 0"),
        ({"metric": "accuracy"}, "metric must be 'loss', 'smoothed_accuracy'"),
        ({"metric": len}, "metric must be 'loss', 'smoothed_accuracy'"),
        ({"n_draws": 0}, "n_draws must be at least 1"),
        ({"n_draws": 2.0}, "n_draws must be an integer"),
        ({"n_steps": 0}, "n_steps must be at least 1"),
        ({"seed": None}, "seed must be an integer"),
        ({"seed": -1}, "seed must be None or an integer"),
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"progress": 1}, "progress must be True or False"),
        ({"params": [0.0]}, "params must hold 9 finite numbers"),
        ({"params": [NAN] * 9}, "params must hold 9 finite numbers"),
        ({"params": np.zeros(9), "n_draws": 2}, "n_draws must be 1 if params are given"),
        ({"calibration": "paper"}, "neighbors=\"add_remove\" or calibration=\"tight\""),
        ({"moments": "none", "split": (0.8, 0.1, 0.1)}, "split must be None"),
        ({"mechanism": "gradient"}, "mechanism must be"),
        ({"loss": dpci.losses.SoftLogistic(), "metric": "smoothed_accuracy"}, "requires a loss of two classes"),
        ({"neighbors": "swap"}, "neighbors must be"),
    ],
)  # fmt: skip
def test_arguments_are_refused(keywords, match):
    refused(match, **keywords)


def test_keywords_are_those_of_a_fit():
    refused("unexpected keyword argument 'budget'", TypeError, budget=APPROX)
    refused("unexpected keyword argument 'lamda'", TypeError, lamda=1.0)
    with pytest.raises(TypeError, match="missing required keyword-only argument: 'l2_strength'"):
        dpci.utility.curve(X, Y, at=APPROX)


def test_data_are_checked_as_in_a_fit():
    refused("every row of X must have Euclidean norm", dpci.RowNormViolation, rows=(2.0 * X, Y))
    refused("X must be finite", rows=(np.where(X[7, 3] == X, NAN, X), Y))
    refused("y must have one entry for each row", rows=(X, Y[:-1]))
    refused("at least one row", rows=(X[:0], Y[:0]), classes=(0, 1))


@pytest.mark.parametrize("bad", [0.0, -1.0, NAN, INF, "x", [1.0, NAN], None, [[1.0], [2.0, 3.0]], True, "1.0", 1j])
def test_budgets_are_refused(bad):
    found = curve(at=APPROX)
    for ask in (found.predict_utility, found.predict_draws, found.expected_utility, found.worst_case, found.to_frame):
        if not (ask == found.to_frame and bad is None):
            with pytest.raises(InvalidInput, match=r"eps .*must"):
                ask(bad)


def test_empty_and_scalar_budgets():
    found = curve(at=APPROX)
    assert found.predict_utility([]).shape == (0,)
    assert found.expected_utility([]).mean.shape == (0,)
    assert found.worst_case(np.empty((2, 0))).shape == (2, 0)
    assert isinstance(found.predict_utility(1), float)
    assert found.predict_utility(np.full(40, 2.0)).shape == (40,)


@pytest.mark.parametrize("target", [NAN, INF, "x", None, True])
def test_targets_are_refused(target):
    with pytest.raises(InvalidInput, match="target must be"):
        curve(at=APPROX).epsilon_for(target)


def test_searches_are_refused():
    found = curve(at=APPROX)
    for within in [(2.0, 1.0), (0.0, 1.0), (1.0, INF), (1.0,), 3.0]:
        with pytest.raises(InvalidInput, match="within"):
            found.epsilon_for(0.6, within=within)
    with pytest.raises(InvalidInput, match="method must be one of 'newton', 'first_order'"):
        found.epsilon_for(0.6, "secant")
    with pytest.raises(InvalidInput, match="method must be one of"):
        found.predict_utility(1.0, "secant")


def test_extreme_budgets_neither_hang_nor_break():
    for keywords in ({"at": APPROX}, KIFER, {"at": APPROX, "mechanism": "output"}):
        found = curve(**keywords)
        for value in (1e-6, 1e6):
            try:
                assert np.isfinite(found.predict_utility(value))
                assert np.isfinite(found.expected_utility(value)).all()
            except (InvalidInput, dpci.RegularizationTooSmall):
                assert value < 1.0


def answer(what):
    return lambda _params: what


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ((answer("x"), answer(np.zeros(9))), "value must return numbers"),
        ((answer(NAN), answer(np.zeros(9))), "value must return finite numbers"),
        ((answer([1.0]), answer(np.zeros(9))), r"value must return numbers of shape \(\), got shape \(1,\)"),
        ((answer(1.0), answer(np.zeros(3))), r"gradient must return numbers of shape \(9,\)"),
        ((answer(1.0), answer(np.zeros(9)), answer(np.zeros(9))), r"hessian must return numbers of shape \(9, 9\)"),
    ],
)
def test_answers_of_a_callers_metric_are_checked(parts, match):
    found = curve(at=APPROX, metric=dpci.utility.Metric(*parts))
    with pytest.raises(InvalidInput, match=match):
        assert found.utility + found.derivative + found.expected_utility(1.0).mean


def test_metrics_are_checked():
    with pytest.raises(InvalidInput, match="width must be finite and > 0"):
        dpci.utility.SmoothedAccuracy(0.0)
    with pytest.raises(InvalidInput, match=r"width must be at least 2\.2"):
        dpci.utility.SmoothedAccuracy(1e-310)
    with pytest.raises(InvalidInput, match="gradient must be callable"):
        dpci.utility.Metric(len, 3)
    with pytest.raises(InvalidInput, match="hessian must be None or callable"):
        dpci.utility.Metric(len, len, 3)
    with pytest.raises(InvalidInput, match="worst_case requires metric='loss', got metric='smoothed_accuracy'"):
        curve(at=APPROX, metric="smoothed_accuracy").worst_case(1.0)


def test_errors_of_a_callers_metric_come_through():
    def broken(_params):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        assert curve(at=APPROX, metric=dpci.utility.Metric(broken, broken)).utility


def test_warning_points_at_the_caller():
    with pytest.warns(PrivacyLeakWarning, match="NOT PRIVATE") as caught:
        dpci.utility.curve(X, Y, at=APPROX, l2_strength=0.02)
    assert caught[0].filename == __file__


def test_tabulation_settles_or_evaluates():
    points = np.linspace(-2.0, 3.0, 400)
    asked = []

    def of(function):
        def curve_of(x):
            asked.append(len(x))
            return function(x)

        asked.clear()
        return tabulate(curve_of, points), function(points)

    got, expected = of(lambda x: np.array([np.exp(x), 0.0 * x, x**2]))
    assert np.abs(got - expected).max() < 1e-4 * 20
    assert asked == [16]
    got, expected = of(lambda x: 1.0 / (0.3 + x**2))
    assert np.abs(got - expected).max() < 1e-4 * np.ptp(expected)
    assert 31 <= sum(asked) < 400
    got, expected = of(lambda x: np.sign(x - 0.3))  # no polynomial follows a jump
    np.testing.assert_array_equal(got, expected)
    # Small jumps, as of predictions from losses whose curvature jumps: few evaluations, and an error of their size.
    got, expected = of(lambda x: np.exp(-x) + 0.004 * np.sign(x - 0.3) + 0.004 * np.sign(x + 1.1))
    assert np.abs(got - expected).max() < 2e-3 * np.ptp(expected)
    assert sum(asked) <= 61
    got, expected = of(lambda x: np.full_like(x, 0.7))
    np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_summary_names_what_was_measured():
    found = curve(at=APPROX, n_draws=2)
    text = found.summary()
    for part in ("NOT PRIVATE", "epsilon=1, delta=1e-06", "worst case", "first order", "2 from seed 3", "newton se"):
        assert part in text
    assert repr(found) == f"<UtilityCurve: loss {found.utility:.6g} at {APPROX}, NOT PRIVATE>"
    assert "rho" in curve(at=dpci.ZCDP(0.1)).summary()
    assert "worst case" not in curve(at=APPROX, metric="smoothed_accuracy").summary()


def test_frame_has_a_row_for_each_budget():
    found = curve(at=dpci.ZCDP(0.1))
    frame = found.to_frame([0.05, 0.2])
    assert list(frame.columns) == ["rho", "newton", "first_order", "expected", "expected_std", "worst_case"]
    np.testing.assert_array_equal(frame["newton"], found.predict_utility([0.05, 0.2]))
    assert len(found.to_frame()) == 41
    # Where the mechanism offers no noise, the table starts later.
    assert curve(at=dpci.PureDP(0.05)).to_frame()["epsilon"].min() > 0.0124


def test_tables_keep_off_the_pole_of_the_noise():
    # Just above the least budget with noise on offer the noise, and with it the utility, grows without bound.
    for at in (dpci.PureDP(0.05), dpci.PureDP(0.1), APPROX, dpci.ZCDP(0.1)):
        found = curve(at=at)
        columns = found.columns()
        values = columns[found.path.number]
        scales = np.array([found.path.spec(value).noise_scale for value in values])
        assert scales.max() <= 20.000001 * found.path.spec(found.path.at).noise_scale
        assert values[0] < found.path.at
        assert values[-1] == pytest.approx(10.0 * found.path.at)
        for name in ("newton", "expected", "expected_std", "worst_case"):
            assert np.abs(columns[name]).max() < 1e5


def seen(line, axes):
    """Share of the points of a line within the view."""
    x, y = line.get_data()
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return np.mean((x >= left) & (x <= right) & (y >= low) & (y <= high))


def lines(axes, label):
    return [line for line in axes.lines if str(line.get_label()).startswith(label)]


@pytest.mark.parametrize(
    "keywords", [{"at": APPROX}, {"at": dpci.PureDP(0.05)}, {"at": APPROX, "l2_strength": 0.2}, {**KIFER, "n_draws": 3}]
)
def test_plot_shows_curve_and_bound(keywords, tmp_path):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    found = curve(**keywords)
    upper = found.plot()
    assert (upper.get_xscale(), upper.get_title()) == ("log", "NOT PRIVATE")
    upper.figure.savefig(tmp_path / "curve.png")
    lower = upper.figure.axes[1]
    assert seen(lines(lower, "bound on the mean")[0], lower) == 1.0
    assert seen(lines(lower, "mean")[0], lower) == 1.0
    assert seen(lines(upper, "predicted")[0], upper) >= 0.85
    assert seen(lines(upper, "measured")[0], upper) == 1.0
    figure, own = plt.subplots()
    assert found.plot(own) is own
    assert figure.axes == [own]
    assert seen(lines(own, "bound on the mean")[0], own) >= 0.5
    assert seen(lines(own, "measured")[0], own) == 1.0
    labels = own.get_legend_handles_labels()[1]
    assert ("± 1 standard error" in labels) == (found.n_draws > 1)
    assert len(curve(**{**keywords, "metric": "smoothed_accuracy"}).plot().figure.axes) == 1
    plt.close("all")


def test_standard_error_is_drawn():
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    found = curve(at=APPROX, n_draws=3)
    values = [0.5, 1.0, 2.0]
    ax = found.plot(eps=values)
    band = next(c for c in ax.collections if c.get_label() == "± 1 standard error")
    drawn = {round(y, 12) for y in band.get_paths()[0].vertices[:, 1]}
    for sign in (-1, 1):
        expected = found.predict_utility(values) + sign * found.standard_error(values)
        assert {round(y, 12) for y in expected} <= drawn
    plt.close("all")


def test_a_curve_cannot_be_changed_and_is_not_private():
    found = curve(at=APPROX)
    assert found.private is False
    with pytest.raises(AttributeError):
        found.seed = 4
    rows = X.copy(), Y.copy()
    found = curve(rows, at=APPROX)
    before = found.predict_utility(0.5)
    rows[0][:] = 0.0
    assert found.predict_utility(0.5) == before
    for array in (found.params, found.params_derivative):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0.0


def test_a_callers_metric_may_write_into_what_it_is_shown():
    def greedy(answer):
        def function(params):
            found = answer(params)
            params[:] = 0.0
            return found

        return function

    parts = (lambda p: float(p @ p), lambda p: 2.0 * p, lambda p: 2.0 * np.eye(len(p)))
    plain = curve(at=APPROX, metric=dpci.utility.Metric(*parts))
    found = curve(at=APPROX, metric=dpci.utility.Metric(*map(greedy, parts)))
    for ask in (lambda c: c.utility, lambda c: c.derivative, lambda c: c.expected_utility(0.5), lambda c: c.params):
        np.testing.assert_array_equal(ask(found), ask(plain))
