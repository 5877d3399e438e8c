"""Regressions that public numbers show to be hopeless: refused before payment, and never one that has a chance."""

import re
import warnings

import numpy as np
import pytest

import dpci
from dpci import regression
from dpci.data.rows import Source
from dpci.regression.choices.clear import Case
from dpci.regression.choices.matrix import choices_of_fit, matrix_choices
from dpci.regression.choices.model import Model, combinations
from dpci.regression.choices.planned import planned_model
from dpci.regression.choices.targets import Targets
from dpci.regression.mechanism import release_matrix
from dpci.rows import Ball, Blocks


def whole_model(columns, target, **choices):
    """The regression of a target on all columns."""
    return Model(target=target, features=columns, covariance="classical", **choices)


RNG = np.random.default_rng(0)
X, Y = RNG.uniform(-1, 1, (59, 2)), RNG.uniform(-1, 1, 59)
KNOWN = {"bounds": (-1, 1)}
FIT = {"loss": "squared", "rows": Blocks([1.0, 1.0])}
SCHEMA = dpci.schema.Schema(
    columns=(
        dpci.schema.NumericColumn(name="age", lower=18, upper=80),
        dpci.schema.CategoricalColumn(name="ward", categories=("a", "b", "c", "d"), reference="a"),
    ),
    target=dpci.schema.NumericTarget(column="days", lower=0, upper=30),
)


BUDGET = dpci.ZCDP(0.5)


def choices(budget=BUDGET, **given):
    common = {"robust": (), "rows": "clip", "neighbors": "replace_one"}
    common |= {"n_threads": None, "seed": None}
    if "schema" in given or "loss" in given:
        del common["robust"]
        return choices_of_fit(**{**common, "loss": dpci.losses.Squared(), "budget": budget, **given})
    targets = Targets.checked(None, given.pop("target_bound", 1.0))
    return matrix_choices(targets, **{**common, "bounds": None, "budget": budget, **given})


CASES = {
    "bounds": (choices(bounds=([0, -2, 10], [5, 3, 11])), 3),
    "ball": (choices(rows=2.0), 3),
    "blocks": (choices(rows=Blocks([2.0], [((1, 2, 3), 0.5)])), 4),
    "equal blocks": (choices(rows=Blocks([1.0], [(range(1, 7), 1.0)])), 7),
    "schema": (choices(schema=SCHEMA), 4),
}


def drawn(made, n_columns, rng, n=40):
    """Records within the bounds as the core sees them: many at their bounds, which vary most."""
    domain = made.core_domain(n_columns)
    if isinstance(domain, Ball):
        rows = rng.normal(size=(n, n_columns))
        return rows * (domain.norm / np.linalg.norm(rows, axis=1))[:, None]
    rows = np.zeros((n, n_columns))
    lengths = rng.choice([0.0, 0.3, 1.0], size=(n, len(domain.block_bounds)), p=[0.1, 0.1, 0.8])
    for block, bound in enumerate(domain.block_bounds):
        used = np.flatnonzero(np.array(domain.members) == block)
        share = np.eye(len(used))[rng.integers(len(used), size=n)]
        if rng.random() < 0.3:
            share = rng.dirichlet(np.ones(len(used)), size=n)
        signs = rng.choice([-1.0, 1.0], size=(n, len(used)))
        if made.schema is not None and len(used) > 1:
            signs = 1.0
        rows[:, used] = share * signs * bound * lengths[:, [block]]
    return rows


def orthonormal_least(moments, rows, ridge):
    """The least eigenvalue of generalised equations, of F N F' plus ridge against F F'; the greatest of all N."""
    gram = np.linalg.cholesky(rows @ rows.T)
    inverse = np.linalg.inv(gram)
    return np.linalg.eigvalsh(inverse @ (rows @ moments @ rows.T + ridge) @ inverse.T)[:, 0].max()


def models(columns, target):
    for fit_intercept in (True, False):
        for strength in (0.0, 0.3):
            yield whole_model(columns, target, fit_intercept=fit_intercept, l2_strength=strength)
    for features in (columns[:1], columns[1:], columns[-2:]):
        named = regression.Regression(target=target, features=features, l2_strength=0.1)
        yield planned_model(named.among(columns, (target,)))


@pytest.mark.parametrize("name", CASES)
def test_no_table_within_the_bounds_varies_more(name):
    made, k = CASES[name]
    columns = tuple(f"x{i}" for i in range(k))
    case = Case(made, columns, 40, BUDGET)
    rng, spec = np.random.default_rng(1), case.spec
    tables = []
    for _ in range(300):
        x = drawn(made, k, rng)
        z = np.column_stack([x, np.full(len(x), spec.intercept), rng.uniform(-1, 1, len(x))])
        tables.append(z.T @ z / len(z))
    for model in models(columns, made.all_names(columns, len(columns))[1]):
        bound = case.greatest(model)
        rows = combinations(case.place, model)[0]
        ridge = 0.5 * model.l2_strength * np.eye(len(rows))
        most = orthonormal_least(np.array(tables), rows, ridge)
        assert most <= bound * (1 + 1e-9), (model, most, bound)
        # It is not far off either.
        assert bound <= 4 * most, (model, most, bound)


@pytest.mark.parametrize("rows", [Blocks([1.0, 1.0]), Blocks([1.0], [(range(1, 7), 1.0)]), Ball(3.0)], ids=str)
def test_the_bound_is_attained(rows):
    k = 2 if isinstance(rows, Ball) else rows.n_columns
    made, columns = choices(rows=rows), tuple(f"x{i}" for i in range(k))
    case = Case(made, columns, 4, BUDGET)
    for fit_intercept in (True, False):
        model = whole_model(columns, "y", fit_intercept=fit_intercept, l2_strength=0.0)
        # Equally many records at each corner.
        if isinstance(rows, Ball):
            moments = np.eye(k) * rows.norm**2 / k
        else:
            sizes = np.array([rows.members.count(block) for block in rows.members])
            moments = np.diag(1.0 / sizes)
        least = np.linalg.eigvalsh(moments)[0]
        least = min(least, case.spec.intercept**2) if fit_intercept else least
        assert case.greatest(model) == pytest.approx(least, rel=1e-12)


def test_a_group_of_indicators_varies_as_the_closed_form_says():
    # Of m categories beside the reference: s²/(1 + 4 s² m), which the best shares attain.
    made = choices(schema=SCHEMA)
    columns = SCHEMA.names
    case = Case(made, columns, 1000, BUDGET)
    model = whole_model(columns, "days", fit_intercept=True, l2_strength=0.0)
    bound = case.greatest(model)
    s, best = case.spec.intercept, 0.0
    for total in np.linspace(0, 1, 2001):
        share = total / 3
        moments = np.diag([share] * 3 + [s**2])
        moments[:3, 3] = moments[3, :3] = share * s
        best = max(best, np.linalg.eigvalsh(moments)[0])
    assert bound == pytest.approx(best, rel=1e-4)


def test_the_noise_before_a_release_is_that_of_its_record():
    for budget in (dpci.PureDP(9.0), dpci.ZCDP(3.0), dpci.ApproxDP(9.0, 1e-6), dpci.GDP(3.0)):
        for robust in (False, True):
            made = choices(budget=budget, robust=robust, **KNOWN)
            matrix = regression.release(X, Y, budget=budget, robust=robust, seed=1, **KNOWN)
            assert made.spec(59, 2, budget).noise_std_dev == matrix._record.noise()


def test_a_hopeless_regression_costs_nothing():
    ledger = dpci.Ledger(dpci.PureDP(100.0))
    with pytest.raises(
        dpci.InvalidInput, match=r"at most 0\.25 in the weakest direction.*n=59 and epsilon=0\.3"
    ) as caught:
        dpci.fit(X, Y, budget=dpci.PureDP(0.3), ledger=ledger, **FIT)
    assert ledger.history == ()
    assert "l2_strength='private'" in str(caught.value)
    n, epsilon = re.search(r"at least n=(\d+) or epsilon=([\d.]+)", str(caught.value)).groups()
    # What the message says is enough is, and hardly less is not.
    more = RNG.uniform(-1, 1, (int(n), 3))
    paid(more, 0.3, ledger)
    with pytest.raises(dpci.InvalidInput, match=f"n={int(n) - 1} "):
        paid(more[1:], 0.3, ledger)
    many = np.column_stack([X, Y])
    paid(many, float(epsilon), ledger)
    with pytest.raises(dpci.InvalidInput, match="n=59 "):
        paid(many, float(epsilon) * 0.985, ledger)
    assert len(ledger.history) == 2
    with warnings.catch_warnings(action="ignore", category=dpci.MomentNoiseWarning):
        assert dpci.fit(X, Y, budget=dpci.PureDP(0.3), l2_strength="private", **FIT).params.shape == (3,)


def paid(table, epsilon, ledger):
    """The noise may still hide it: only the refusal before payment is tested."""
    with warnings.catch_warnings(action="ignore", category=dpci.MomentNoiseWarning):
        return dpci.fit(table[:, :2], table[:, 2], budget=dpci.PureDP(epsilon), ledger=ledger, **FIT)


@pytest.mark.parametrize("budget", [dpci.ZCDP(1e-3), dpci.ApproxDP(0.1, 1e-6), dpci.GDP(0.05)], ids=str)
def test_every_notion_names_its_least_budget(budget):
    keywords = {"neighbors": dpci.AddRemove(50), "robust": True, **KNOWN}
    with pytest.raises(dpci.InvalidInput, match="n_public=50") as caught:
        regression.release(X, Y, budget=budget, **keywords)
    made = choices(budget=budget, robust=True, bounds=(-1, 1), neighbors=dpci.AddRemove(50))
    case = Case(made, ("x0", "x1"), 59, budget)
    least = case.least_budget(0.25, 3)
    assert str(least) in str(caught.value)
    name = next(iter(budget.parameters()))
    for factor, possible in ((1.0, True), (0.985, False)):
        again = type(budget)(**{**least.parameters(), name: least.parameters()[name] * factor})
        other = Case(
            choices(budget=again, robust=True, bounds=(-1, 1), neighbors=dpci.AddRemove(50)), ("x0", "x1"), 59, again
        )
        assert (other.needed(3) < 0.25) is possible


def test_planned_regressions_are_checked_and_other_releases_warned_of():
    ledger = dpci.Ledger(dpci.PureDP(1.0))
    planned = [regression.Regression(features=["x0"])]
    with pytest.raises(dpci.InvalidInput, match="but 2 coefficients need"):
        regression.release(X, Y, budget=dpci.PureDP(0.1), robust=planned, ledger=ledger, **KNOWN)
    with pytest.raises(dpci.InvalidInput, match="but 3 coefficients need"):
        regression.release(dpci.Chunks([(X, Y)]), budget=dpci.PureDP(0.1), robust=True, ledger=ledger, **KNOWN)
    # A warning that is made an error costs nothing either.
    with pytest.raises(dpci.MomentNoiseWarning, match="regressions with l2_strength='private' follow"):
        regression.release(X, Y, budget=dpci.PureDP(0.1), ledger=ledger, **KNOWN)
    assert ledger.history == ()
    with pytest.warns(dpci.MomentNoiseWarning) as caught:
        matrix = regression.release(X, Y, budget=dpci.PureDP(0.1), ledger=ledger, **KNOWN)
    assert caught[0].filename == __file__
    assert np.isfinite(matrix.fit(l2_strength="private").params).all()
    assert len(ledger.history) == 1


def test_with_private_errors_the_refusal_comes_before_the_payment():
    ledger = dpci.Ledger(dpci.PureDP(1.0), errors="private")
    keywords = {"budget": dpci.PureDP(0.1), "ledger": ledger, "rows": "clip"}
    with pytest.raises(dpci.InvalidInput, match="vary more than the noise"):
        dpci.fit(X, Y, **{**keywords, **FIT, "rows": dpci.rows.Clipped(FIT["rows"])})
    with pytest.raises(dpci.MomentNoiseWarning) as caught:
        regression.release(X, Y, **keywords, **KNOWN)
    assert ledger.history == ()
    with pytest.warns(dpci.MomentNoiseWarning) as caught:
        regression.release(X, Y, **keywords, **KNOWN)
    assert caught[0].filename == __file__
    # The number of rows in parts is not known in advance; what is paid for is released.
    with warnings.catch_warnings(action="ignore", category=dpci.MomentNoiseWarning):
        fit = dpci.fit(dpci.Chunks([(X, Y)]), **{**keywords, **FIT, "rows": dpci.rows.Clipped(FIT["rows"])})
    assert "vary more than the noise" in fit.interval_refusal


def test_too_few_records_cost_nothing():
    ledger = dpci.Ledger(dpci.PureDP(1e6))
    for n in (2, 3):
        with pytest.raises(dpci.InvalidInput, match=f"more records than coefficients, got n={n} and 3 coefficients"):
            dpci.fit(X[:n], Y[:n], budget=dpci.PureDP(1e6), ledger=ledger, **FIT)
    assert ledger.history == ()


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_what_is_refused_was_hidden(strength):
    # Tables at their bounds, which vary most: those of a refused regression are hidden in nearly all releases.
    made = choices(budget=dpci.GDP(1.0), bounds=(-1, 1))
    corners = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    found = {}
    for n in (16, 200):
        case = Case(made, ("x0", "x1"), n, dpci.GDP(1.0))
        model = whole_model(("x0", "x1"), "y", fit_intercept=True, l2_strength=strength)
        bound = case.greatest(model)
        hidden = 0
        for seed in range(40):
            x = np.repeat(corners, n // 4, axis=0)
            seeded = choices(budget=dpci.GDP(1.0), bounds=(-1, 1), seed=seed)
            payment = dpci.ledger.payment.Payment.due(
                "test", None, budget=seeded.charge, neighbors="replace_one", seed=seed
            )
            matrix = release_matrix(Source(x, np.zeros(n)), seeded, payment=payment)
            try:
                matrix.fit(l2_strength=strength)
            except dpci.InvalidInput:
                hidden += 1
        found[n] = bound > case.needed(3), hidden
    assert found[200][0]
    if strength == 0.0:
        assert found[16] == (False, 40)


@pytest.mark.parametrize("max_rows", [None, 2])
@pytest.mark.parametrize("total", [None, 60.0, 200.0])
def test_the_bound_holds_for_persons_weights_and_further_targets(max_rows, total):
    n, k, bound = 40, 2, 3.0
    rule = {"unit": dpci.Persons(max_rows=max_rows)}
    made = matrix_choices(
        Targets.checked(np.zeros((n, 3)), [(-1, 1), (0, 9), (-4, 4)]), bounds=([0, -2], [5, 3]), rows="clip",
        robust=True, neighbors="replace_one", n_threads=None, seed=None,
        budget=BUDGET, weights=dpci.Weights(bound=bound, total=total), **rule,
    )  # fmt: skip
    columns, target = made.all_names(None, k + 2)
    assert (columns, target) == (("x0", "x1", "y0", "y1"), "y2")
    case = Case(made, columns, n, BUDGET)
    spec = case.spec
    rng = np.random.default_rng(1)
    # 200 tables of n persons of one to three rows, whose other places have no share.
    z = np.concatenate(
        [
            rng.choice([-1.0, 1.0], (200, n, 3, k + 2)) * spec.weights[: k + 2],
            np.full((200, n, 3, 1), spec.intercept),
            rng.uniform(-1, 1, (200, n, 3, 1)),
        ],
        axis=3,
    )
    m = rng.integers(1, 4, (200, n, 1))
    counted = np.arange(3) < m
    share = counted / m if max_rows is None else (counted & (np.arange(3) < max_rows)) / max_rows
    lower = rng.uniform(size=(200, n, 1))
    share = share * np.where(rng.random(share.shape) < 1 / 3, lower, 1.0)
    moments = np.einsum("tnra,tnr,tnrb->tab", z, share, z) / made.divisor(n)
    for model in models(("x0", "x1"), target):
        rows = combinations(case.place, model)[0]
        most = orthonormal_least(moments, rows, 0.5 * model.l2_strength * np.eye(len(rows)))
        assert most <= case.greatest(model) * (1 + 1e-9), (model, most)
    assert case.mass == max(1.0, n * bound / (total or n))


def test_hopeless_regressions_of_persons_weights_and_several_targets_cost_nothing():
    ids, weights = np.repeat(np.arange(20), 3)[:59], np.ones(59)
    cases = [
        ({"persons": ids}, r"n=20 .*at least n=\d+ or rho=[\d.]+ \(zCDP\), or leave out columns\)"),
        ({"weights": dpci.Weights(weights, bound=4.0, total=59.0)}, r"divided by 59 .*at least rho=[\d.]+ \(zCDP\)"),
        ({"weights": dpci.Weights(weights, bound=4.0, total=11.0)}, r"must be above .*, got 11 / 4 and 3 coeff"),
        ({"y": np.column_stack([Y, Y, Y]), "robust": True}, r"n=59 .*, or leave out columns\)"),
    ]
    for given, message in cases:
        ledger = dpci.Ledger(dpci.ZCDP(1.0))
        for errors in ("detailed", "private"):
            if errors == "private":
                if "persons" in given:  # their number is not known before the ids are read
                    continue
                ledger = dpci.Ledger(dpci.ZCDP(1.0), errors="private")
            keywords = {"y": Y, "budget": dpci.ZCDP(2e-4), "bounds": (-1, 1), "rows": "clip", **given}
            with pytest.raises(dpci.InvalidInput, match=message):
                regression.release(X, ledger=ledger, **keywords)
            assert ledger.history == ()
