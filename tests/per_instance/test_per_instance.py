"""Reports from outside: what they cost and say, what they take and refuse."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import dpci
from dpci import InvalidInput, PrivacyLeakWarning, RegularizationTooSmall, RowNormViolation, SeededNoiseWarning, _core
from dpci.report.style import symbols
from support import per_instance as ours
from support import seal

N, D = 200, 3
X, Y = ours.make_rows(N, D)
NAN = float("nan")


def report(x=X, y=Y, **keywords):
    return ours.report(x, y, **keywords)


@pytest.fixture(scope="module")
def made():
    return report()


# Calibration.


def ratios(made):
    steps = made.result.privacy["steps"]
    return np.array([step["sensitivity"] / step["scale"] for step in steps])


def profile(made, *, one_signed=True):
    result = made.result
    return _core.ObjectiveProfile(
        n_samples=result.n_samples, row_norm=1.0, intercept=None, curvature_bound=result.loss["curvature_bound"],
        l2_strength=result.l2_strength, one_signed=one_signed, neighbors="add_remove",
    )  # fmt: skip


@pytest.mark.parametrize("loss", ours.LOSSES)
@pytest.mark.parametrize("shares", [(0.2, 0.7, 0.1), (0.6, 0.1, 0.3), (1 / 3, 1 / 3, 1 / 3)])
@pytest.mark.parametrize("budget", [dpci.ApproxDP(1.0, 1e-6), dpci.ApproxDP(0.3, 1e-3)], ids=str)
def test_all_releases_together_spend_the_budget(loss, shares, budget):
    """Tight: the squared ratios are in the proportion of the shares, and the composed delta just below the budget's."""
    soft = loss == "soft_logistic"
    rows, targets = ours.make_rows(N, D, soft=soft)
    made = report(rows, targets, loss=ours.LOSSES[loss], shares=shares, budget=budget, l2_strength=0.2)
    found = ratios(made)
    np.testing.assert_allclose(found**2 / (found**2).sum(), shares, rtol=1e-9)
    sealing = seal.total(made.result.privacy["seal"]["releases"])
    left = budget.epsilon - sealing["epsilon"]
    delta = profile(made, one_signed=not soft).delta(left, found[0], np.hypot(*found[1:])) + sealing["delta"]
    assert budget.delta * (1 - 1e-5) < delta <= budget.delta
    assert float(made.result.guarantee.delta(budget.epsilon)) == pytest.approx(delta, rel=1e-12)
    # Sensitivities of the sums under add/remove: LR, LR and tR².
    sensitivities = [step["sensitivity"] for step in made.result.privacy["steps"]]
    np.testing.assert_allclose(sensitivities, [1.0, 1.0, made.result.loss["curvature_bound"]], rtol=1e-14)


def test_paper_calibration_is_the_published_one():
    epsilon, delta, shares = 1.0, 3e-6, (0.2, 0.7, 0.1)
    made = report(budget=dpci.ApproxDP(epsilon, delta), calibration="paper", l2_strength=0.5)
    std_devs = [step["scale"] for step in made.result.privacy["steps"]]
    epsilon, delta = seal.left_of(epsilon), seal.left_of(delta)
    part = shares[0] * epsilon
    kifer = np.sqrt(8 * np.log(2 / (delta / 3)) + 4 * part) / part
    others = [_core.gaussian_mu(share * epsilon, delta / 3) for share in shares[1:]]
    np.testing.assert_allclose(std_devs, [kifer, 1 / others[0], 0.25 / others[1]], rtol=1e-9)
    assert sum(step["cost"] for step in made.result.privacy["steps"]) <= epsilon
    assert made.gradient_std_dev == pytest.approx(1 / others[0])
    assert made.hessian_std_dev == pytest.approx(0.25 / others[1] / np.sqrt(2))
    # Composed tightly, the same noise costs .71 of epsilon at the same delta when kappa is .01.
    at_kappa = _core.ObjectiveProfile(
        n_samples=25.0, row_norm=1.0, intercept=None, curvature_bound=0.25, l2_strength=1.0, one_signed=True,
        neighbors="add_remove",
    )  # fmt: skip
    ratio, mu = 1 / kifer, np.hypot(*others)
    grid = np.linspace(0.5, 1.0, 5001)
    assert next(e for e in grid if at_kappa.delta(e, ratio, mu) <= delta) == pytest.approx(0.706, abs=0.001)


def test_paper_calibration_needs_its_ridge():
    # n λ ≥ 2tR²/ε with the coefficients' own part of ε.
    least = 2 * 0.25 / (0.2 * seal.left_of(1.0)) / N
    with pytest.raises(RegularizationTooSmall, match="l2_strength must be greater than"):
        report(calibration="paper", l2_strength=least * 0.999)
    report(calibration="paper", l2_strength=least * 1.001)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_data_independent_reports_spend_everything_on_the_model(calibration):
    made = report(kind="data_independent", calibration=calibration)
    (step,) = made.result.privacy["steps"]
    whole = dpci.plan(
        n_samples=N, n_features=D, neighbors=dpci.AddRemove(N), budget=ours.BUDGET, l2_strength=0.1,
        mechanism=dpci.ObjectivePerturbation(moments="none", calibration=calibration),
        rows=dpci.rows.Within(intercept=False),
    )  # fmt: skip
    assert step["scale"] == whole.steps[0].scale
    losses = made(X, Y)
    assert not losses.eps2.any()
    assert not losses.eps3.any()
    assert made.gradient is made.hessian is made.gradient_std_dev is made.hessian_std_dev is made.shares is None
    assert made.hessian_radius is None


def test_the_paper_bound_names_the_least_ridge():
    keywords = {"bound": "paper", "budget": dpci.ApproxDP(2.0, 1e-5)}
    with pytest.raises(RegularizationTooSmall, match='bound="interpolated" has no such limit') as caught:
        report(l2_strength=0.05, **keywords)
    least = float(str(caught.value).split("at least ")[2].split(",")[0])
    made = report(l2_strength=least, **keywords)
    # The message rounds up to four digits.
    assert 2 * made.hessian_radius <= N * least <= 2 * made.hessian_radius * 1.005
    with pytest.raises(RegularizationTooSmall):
        report(l2_strength=least * (1 - 2e-3), **keywords)
    # At that ridge and above, the interpolated bound is at least as good.
    losses, interpolated = made(X, Y), report(l2_strength=least, budget=keywords["budget"])(X, Y)
    assert (interpolated.eps1 <= losses.eps1 * (1 + 1e-8)).all()


# What a call takes and gives.


def test_one_record_or_many_or_none(made):
    whole = made(X, Y)
    for i in (0, 7):
        single = made(X[i : i + 1], Y[i : i + 1])
        # Rows are multiplied four at a time, which rounds otherwise.
        np.testing.assert_allclose([part[0] for part in single], [part[i] for part in whole], rtol=1e-12)
    nothing = made(np.empty((0, D)), [])
    assert [part.shape for part in nothing] == [(0,)] * 4
    assert nothing.total.shape == (0,)
    assert ours.exact_losses(made, X, Y, np.empty((0, D)), [], member=True).absolute.shape == (0,)


def test_threads_storage_and_container_change_nothing(made):
    rng = np.random.default_rng(0)
    many = rng.uniform(-0.5, 0.5, (20_000, D)) * (rng.uniform(size=(20_000, D)) < 0.3)
    labels = np.where(rng.uniform(size=20_000) < 0.5, 1, -1)
    dense = made(many, labels, n_threads=1)
    for rows in (many, np.asfortranarray(many), pd.DataFrame(many), many.tolist()):
        for got, expected in zip(made(rows, labels, n_threads=2), dense, strict=True):
            np.testing.assert_array_equal(got, expected)
    for got, expected in zip(made(scipy.sparse.csr_array(many), labels), dense, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9)


def test_intercept_is_part_of_every_record():
    """A fit with an intercept of 1 is a fit of rows with a 1 behind them."""
    with_intercept = report(intercept=True)
    rows = np.column_stack([X, np.ones(N)])
    by_hand = report(rows, Y, rows=np.sqrt(2.0) * (1 + 1e-12))
    np.testing.assert_allclose(with_intercept(X, Y).eps1, by_hand(rows, Y).eps1, rtol=1e-6)
    np.testing.assert_allclose(with_intercept(X, Y).eps2, by_hand(rows, Y).eps2, rtol=1e-3)


def test_records_are_clipped_as_the_data_were():
    long = X * 1.9
    made = report(long, Y, rows="clip")
    clipped = long / np.maximum(1.0, np.linalg.norm(long, axis=1, keepdims=True))
    np.testing.assert_allclose(made(long, Y).eps1, made(clipped, Y).eps1, rtol=1e-9)
    exact = [ours.exact_losses(made, rows, Y, rows, Y, member=True).signed for rows in (long, clipped)]
    np.testing.assert_allclose(*exact, rtol=1e-6)


def test_labels_are_the_callers(made):
    words = np.where(Y > 0, "yes", "no")
    named = report(X, words, classes=("no", "yes"))
    np.testing.assert_array_equal(named(X, words).eps1, made(X, Y).eps1)
    with pytest.raises(InvalidInput, match=r"y must hold only classes=\('no', 'yes'\), got 'perhaps'"):
        named(X[:1], ["perhaps"])


def test_columns_are_those_of_the_fit():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    made = report(frame, Y)
    with pytest.raises(InvalidInput, match="column 0 must be 'a', got 'c'"):
        made(frame[["c", "b", "a"]], Y)


CALLS = {
    "columns": (X[:, :2], Y, InvalidInput, "X must have the 3 columns of the fit, got 2"),
    "length": (X, Y[1:], InvalidInput, "y must have one entry for each row of X"),
    "nan": (np.where(np.arange(D) == 1, NAN, X), Y, InvalidInput, "X must be finite, got NaN in row 0, column 1"),
    "long row": (X * 3, Y, RowNormViolation, "every row of X must have Euclidean norm at most row_norm=1"),
    "label": (X, Y * 2, InvalidInput, "y must hold only classes"),
    "missing label": (X, Y * NAN, InvalidInput, "y must have no missing values"),
    "vector": (X[0], Y, InvalidInput, "X must be two-dimensional"),
    "text": (X.astype(str), Y, InvalidInput, "X must hold booleans, integers or floats"),
    "empty list": ([], [], InvalidInput, "X must be two-dimensional"),
}


@pytest.mark.parametrize("case", CALLS)
def test_refused_records(made, case):
    rows, labels, error, message = CALLS[case]
    for ask in (made, lambda x, y: ours.exact_losses(made, X, Y, x, y, member=True), report):
        if case not in {"columns", "label", "empty list"} or ask is not report:
            with pytest.raises(error, match=message):
                ask(rows, labels)


SHARES = "each share must be finite and at least 1e-12, got"
PROBABILITY = "failure_probability must be at least 1e-300 and < 1"
KEYWORDS = {
    "pure": ({"budget": dpci.PureDP(1.0)}, "budget must be dpci.ApproxDP for a per-instance report"),
    "zcdp": ({"budget": dpci.ZCDP(1.0)}, "budget must be dpci.ApproxDP for a per-instance report"),
    "no n": ({"n_public": None}, "n_public must be an integer"),
    "n": ({"n_public": 0}, "n_public must be at least 1"),
    "kind": ({"kind": "both"}, "kind must be one of 'data_dependent', 'data_independent'"),
    "bound": ({"bound": "best"}, "bound must be one of 'interpolated', 'paper'"),
    "two shares": ({"shares": (0.5, 0.5)}, "shares must be a sequence of 3 numbers"),
    "no share": ({"shares": (0.5, 0.5, 0.0)}, SHARES),
    "nan share": ({"shares": (0.5, 0.5, NAN)}, SHARES),
    "infinite share": ({"shares": (0.5, 0.5, np.inf)}, SHARES),
    "tiny share of the Hessian": ({"shares": (0.5, 0.5, 1e-17)}, SHARES),
    "tiny share of the model": ({"shares": (1e-17, 0.5, 0.5)}, SHARES),
    "sum": ({"shares": (0.5, 0.5, 0.5)}, "sum of shares must be 1, got 1.5"),
    "unused shares": ({"shares": (0.0, 0.5, 0.5), "kind": "data_independent"}, SHARES),
    "unused sum": ({"shares": (0.1, 0.1, 0.1), "kind": "data_independent"}, "sum of shares must be 1, got"),
    "certain": ({"failure_probability": 0.0}, PROBABILITY),
    "one": ({"failure_probability": 1.0}, PROBABILITY),
    "underflow": ({"failure_probability": 5e-324}, f"{PROBABILITY}, got failure_probability=5e-324"),
    "nan probability": ({"failure_probability": NAN}, PROBABILITY),
    "text probability": ({"failure_probability": "0.1"}, "failure_probability must be a real number"),
    "flag": ({"simultaneous": 1}, "simultaneous must be True or False"),
    "loss": ({"loss": "cauchit"}, "loss must be one of"),
    "unbounded loss": ({"loss": "squared"}, "loss must have a bounded slope and a second derivative"),
    "kinked loss": ({"loss": "hinge"}, "loss must have a bounded slope and a second derivative"),
    "tiny rows": ({"rows": dpci.rows.Clipped(1e-120)}, "row_norm must be at least 1e-60"),
    "seed": ({"seed": -1}, "seed must be None or an integer"),
}


@pytest.mark.parametrize("case", KEYWORDS)
def test_refused_keywords(case):
    keywords, message = KEYWORDS[case]
    with pytest.raises(InvalidInput, match=message):
        report(**keywords)


@pytest.mark.parametrize("calibration", ["tight", "paper"])
@pytest.mark.parametrize("least", [0, 1, 2])
def test_the_least_share_works(calibration, least):
    shares = tuple(1e-12 if i == least else 0.5 - 5e-13 for i in range(3))
    made = report(shares=shares, calibration=calibration, l2_strength=1e13 if calibration == "paper" else 0.1)
    assert np.isfinite(made(X, Y).total).all()
    if calibration == "tight":
        found = ratios(made) ** 2
        np.testing.assert_allclose(found / found.sum(), shares, rtol=1e-3)


@pytest.mark.parametrize("epsilon", [1e-3, 700.0])
@pytest.mark.parametrize("delta", [1e-30, 0.5])
def test_extreme_budgets_give_finite_bounds(epsilon, delta):
    made = report(budget=dpci.ApproxDP(epsilon, delta), l2_strength=100.0, failure_probability=1e-300)
    for part in made(np.vstack([X, np.zeros((1, D))]), np.append(Y, 1.0)):
        assert np.isfinite(part).all()
        assert (part >= 0).all()


def test_a_record_of_zeros_costs_nothing(made):
    losses = made(np.zeros((1, D)), [1.0])
    assert float(losses.total[0]) == 0.0


@pytest.mark.parametrize("member", ["yes", 1, [True], np.ones((N, 1), dtype=bool), None])
def test_refused_membership(made, member):
    with pytest.raises(InvalidInput, match="member must be"):
        ours.exact_losses(made, X, Y, X, Y, member=member)


def test_who_cannot_be_a_member_is_refused():
    """A record whose curvature is more than that of all the data."""
    made = report(np.full((N, D), 1e-3), Y, l2_strength=1e-3, budget=dpci.ApproxDP(9.0, 1e-3))
    across = np.cross(made.result.params, [1.0, 0.0, 0.0])  # where the curvature is greatest
    across *= 0.99 / np.linalg.norm(across)
    with pytest.raises(InvalidInput, match="record 0, which is not"):
        ours.exact_losses(made, np.full((2, D), 1e-9), Y[:2], across[None], [1.0], member=True)


# Warnings and privacy.


def test_who_is_warned_of_what():
    with pytest.warns(SeededNoiseWarning, match="NOT PRIVATE"):
        seeded = report(seed=3)
    with warnings.catch_warnings(action="error"):
        made = report(seed=None, classes=(-1, 1))
        made(X, Y)
    assert made.private
    assert not seeded.private
    assert "NOT PRIVATE" in seeded.summary()
    assert "NOT PRIVATE" not in made.summary()
    with pytest.warns(PrivacyLeakWarning, match="exact privacy losses are NOT PRIVATE") as caught:
        dpci.per_instance.ex_post_losses_not_private(made, X, Y, X, Y, member=True)
    assert caught[0].filename == __file__
    again = report(seed=None, classes=(-1, 1))
    assert not (again.result.params == made.result.params).any()
    assert not (again.gradient == made.gradient).any()


def test_the_summary_says_what_was_spent(made):
    text = made.summary()
    for part in ("coefficients", "gradient", "hessian", "1e-06 for each record fixed beforehand", "noise radius"):
        assert part in text
    assert "all records at once" in report(simultaneous=True).summary()
    assert "the rest of the budget was spent on a report" in " ".join(made.result.summary().split())
    assert "report gradient" in made.result.summary(full=True)
    assert [step["step"] for step in made.result.privacy["steps"]] == [
        "coefficients",
        "report_gradient",
        "report_hessian",
    ]
    assert repr(made).startswith("<Report: data_dependent, 3 parameters")


def test_plots_say_that_they_are_not_private(made):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    with pytest.warns(PrivacyLeakWarning, match="histogram"):
        axes = made.histogram(X, Y)
    assert "NOT PRIVATE" in axes.get_title()
    with pytest.warns(PrivacyLeakWarning, match="exact privacy losses"):
        assert "NOT PRIVATE" in made.plot_bound_against_truth_not_private(X, Y, ax=axes).get_title()
    with pytest.warns(PrivacyLeakWarning):
        made.histogram(np.empty((0, D)), [], ax=axes)


def test_a_plot_of_a_part_says_so_or_is_refused(made):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    few, n_public = 20, made.result.n_samples
    with pytest.warns(PrivacyLeakWarning):
        shown = made.histogram(X[:few], Y[:few]).get_xlabel()
    assert f"{symbols(str(made.budget))}, n_public = {n_public:,}" in shown
    assert "20 records: a subset" in shown
    with pytest.warns(PrivacyLeakWarning):
        assert "a subset" not in made.histogram(X, Y).get_xlabel()
    # Exact losses on a part of the data belong to another model.
    with pytest.raises(InvalidInput, match=r"X must hold all training data.*got 20 rows"):
        made.plot_bound_against_truth_not_private(X[:few], Y[:few])
