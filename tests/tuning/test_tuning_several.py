"""Choices among models of several classes, and of persons and weighted records."""

import json
import pickle

import numpy as np
import pytest
from scipy import optimize, stats

import dpci
from dpci import _core, tuning
from dpci.budgets import core_budget
from dpci.losses import Logistic
from dpci.multinomial.release import multinomial_settings
from support.core import specified
from support.keywords import assembled

N, CLASSES = 2400, ("a", "b", "c")
rng = np.random.default_rng(5)
X = rng.uniform(-0.7, 0.7, (N, 2))
Y = np.array(CLASSES)[(np.column_stack([np.zeros(N), 3 * X]) + rng.gumbel(size=(N, 3))).argmax(axis=1)]
GRID = [{"l2_strength": 0.01}, {"l2_strength": 1.0}]
ASKED = {"candidates": GRID, "validation_radius": 6.0, "classes": CLASSES}
UNITS = {
    "rows": {},
    "persons": {"persons": np.arange(N) // 3},
    "max_rows": {"persons": dpci.Persons(np.arange(N) // 3, max_rows=2)},
    "weights": {"weights": dpci.Weights(rng.uniform(0.0, 2.0, N), bound=2.0)},
    "both": {"persons": np.arange(N) // 3, "weights": dpci.Weights(rng.uniform(0.0, 2.0, N), bound=2.0)},
}


def spec_of(n, grid, budget, method, *, n_classes=3, radius=2.0, expected_runs=6.0, n_columns=1, **keywords):
    """The specification as ``dpci.tuning.tune`` makes it, without an intercept."""
    keywords = {"intercept": False, "moments": "none", "mechanism": "output", **keywords}
    settings = [
        multinomial_settings(n_classes, **assembled(budget=budget, **{**keywords, **candidate})) for candidate in grid
    ]
    return _core.TuningSpec(
        [s.spec(n, n_columns) for s in settings], loss=settings[0].core_loss, validation_radius=radius, method=method,
        shape=1.0, expected_runs=expected_runs, budget=core_budget(budget),
    )  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("method", ["repeat", "chunks"])
def test_without_noise_the_better_penalty_wins_and_is_fitted(method, unit):
    limit = {"budget": dpci.PureDP(1e7), "seed": 1, **UNITS[unit]}
    found = tuning.tune(X, Y, method=method, **ASKED, **limit)
    assert found.params == GRID[0]
    expected = dpci.multinomial.fit(X, Y, classes=CLASSES, **GRID[0], **limit)
    assert isinstance(found.result, dpci.multinomial.MultinomialFit)
    assert found.result.names == expected.names
    assert found.result.n_samples == expected.n_samples
    np.testing.assert_allclose(found.result.params, expected.params, atol=1e-5)
    np.testing.assert_allclose(found.result.std_errors, expected.std_errors, rtol=1e-4)
    np.testing.assert_allclose(found.result.predict_proba(X[:5]), expected.predict_proba(X[:5]), atol=1e-5)


def model_again(minimiser, scale, radius, n, draw):
    """Spherical Laplace noise on two parameters, moved into the ball: shape (n, 2)."""
    angle = draw.uniform(0.0, 2 * np.pi, n)
    models = minimiser + (scale * draw.gamma(2.0, size=n)) * np.array([np.cos(angle), np.sin(angle)])
    return models.T * np.minimum(1.0, radius / np.linalg.norm(models, axis=0))[:, None]


def loss_at(models):
    """Loss of a row 1 of class 1, whose linear predictors are the parameters."""
    return np.log1p(np.exp(models).sum(axis=-1)) - models[..., 0]


@pytest.mark.parametrize("method", ["chunks", "repeat"])
def test_choices_and_models_have_the_law_of_a_second_implementation(method):
    """All records are the same, so that parts do not differ."""
    n, radius, n_runs = 60, 1.0, 6000
    epsilon = 8.0 if method == "repeat" else 1.0
    grid = [{"l2_strength": strength} for strength in (0.7, 3.0, 30.0)]
    spec = spec_of(n, grid, dpci.PureDP(epsilon), method, radius=radius)
    rows = _core.simulate(spec, _core.Records(np.ones((n, 1)), np.ones(n)), n_runs=n_runs, seed=1, n_threads=None)
    draw = np.random.default_rng(2)

    def risk(strength):
        return optimize.minimize(lambda t: loss_at(t) + 0.5 * strength * t @ t, np.zeros(2), tol=1e-12).x

    minimisers = [risk(candidate["l2_strength"])[:, None] for candidate in grid]
    greatest = max(np.log1p(np.exp(u).sum()) - u[0] for u in radius * circle())
    least = min(np.log1p(np.exp(u).sum()) - u[0] for u in radius * circle())
    if method == "chunks":
        scales = [2 * np.sqrt(2) / (n / 4 * c["l2_strength"]) / epsilon for c in grid]
        parts = zip(minimisers, scales, strict=True)
        models = np.stack([model_again(m, s, radius, n_runs, draw) for m, s in parts])
        exponents = -epsilon * loss_at(models) * (n / 4) / (2 * (greatest - least))
        chosen = (exponents + draw.gumbel(size=exponents.shape)).argmax(axis=0)
        params = models[chosen, np.arange(n_runs)]
    else:
        run = epsilon / 3
        scales = [2 * np.sqrt(2) / (n * c["l2_strength"]) / (0.75 * run) for c in grid]
        chosen, params = np.empty(n_runs, int), np.empty((n_runs, 2))
        for i in range(n_runs):
            while (k := draw.geometric(1 / 6.0)) > 120:
                pass
            which = draw.integers(3, size=k)
            models = np.concatenate([model_again(minimisers[j], scales[j], radius, 1, draw) for j in which])
            scores = loss_at(models) + draw.laplace(scale=(greatest - least) / n / (0.25 * run), size=k)
            chosen[i], params[i] = which[scores.argmin()], models[scores.argmin()]
    counts = [np.bincount(found, minlength=3) for found in (rows[:, 0].astype(int), chosen)]
    assert np.min(counts) > 100
    tests = [stats.chi2_contingency(counts).pvalue]
    tests += [stats.ks_2samp(rows[:, 1 + k], params[:, k]).pvalue for k in range(2)]
    assert min(tests) > 1e-6 / 3


def circle():
    """Directions of two predictors."""
    angle = np.linspace(0.0, 2 * np.pi, 2001)
    return np.column_stack([np.cos(angle), np.sin(angle)])


@pytest.mark.parametrize("n_classes", [3, 4, 6])
@pytest.mark.parametrize(
    "counts",
    [{}, {"persons": dpci.Persons()}, {"persons": dpci.Persons(max_rows=3)}, {"weights": dpci.Weights(bound=2.0)}],
)
@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_no_record_moves_a_score_further_than_is_paid_for_and_one_does_nearly(n_classes, counts, radius):
    """Whole persons of three rows at one point of the ball; weights may leave almost nothing of a record."""
    n, row_norm = 50, 2.0
    spec = spec_of(
        n, [{"l2_strength": 1.0}], dpci.PureDP(1.0), "repeat", n_classes=n_classes, radius=radius, rows=row_norm,
        **counts,
    )  # fmt: skip
    paid = spec.facts()["score_sensitivity"]
    draw = np.random.default_rng(n_classes)
    n_rows = 3 if "persons" in counts else 1
    least_share = 0.0 if counts not in ({}, {"persons": dpci.Persons()}) else 1.0

    def person(theta, rows, labels):
        """The mean loss of the rows, and its gradients in theta and in the rows."""
        u = np.column_stack([np.zeros(n_rows), rows @ theta.T])
        log_sums = np.logaddexp.reduce(u, axis=1)
        excess = np.exp(u - log_sums[:, None])
        excess[np.arange(n_rows), labels] -= 1.0
        excess = excess[:, 1:] / n_rows
        return np.mean(log_sums - u[np.arange(n_rows), labels]), excess.T @ rows, excess @ theta

    def moved(z, labels, others, share):
        """How far a person moves the score, and the gradient in directions of any length."""
        free = z[: 2 * (n_classes - 1)].reshape(-1, 2), z[2 * (n_classes - 1) :].reshape(2, n_rows, 2)
        lengths = np.linalg.norm(free[0]), np.linalg.norm(free[1], axis=2, keepdims=True)
        theta, rows = free[0] * radius / lengths[0], free[1] * row_norm / lengths[1]
        (value, *slopes), (other, *counter) = person(theta, rows[0], labels), person(theta, rows[1], others)
        to_theta, to_rows = slopes[0] - share * counter[0], np.stack([slopes[1], -share * counter[1]])
        # Along a direction nothing changes.
        to_theta = (to_theta * radius - theta * (to_theta * theta).sum() / radius) / lengths[0]
        along = (to_rows * rows).sum(axis=2, keepdims=True)
        to_rows = (to_rows * row_norm - rows * along / row_norm) / lengths[1]
        return (value - share * other) / n, np.concatenate([to_theta.ravel(), to_rows.ravel()]) / n

    greatest = 0.0
    size = 2 * (n_classes - 1) + 4 * n_rows
    for _ in range(300):
        labels, others = draw.integers(n_classes, size=(2, n_rows))
        assert abs(moved(draw.normal(size=size), labels, others, draw.uniform(least_share, 1.0))[0]) <= paid
    for _ in range(8):
        # One class in each person: the worst persons have rows that are all alike.
        labels, others = np.ones(n_rows, int), np.full(n_rows, draw.integers(1, n_classes))

        def opposite(z, asked=(labels, others, least_share)):
            value, slope = moved(z, *asked)
            return -value / paid, -slope / paid

        start = draw.normal(size=size)
        assert optimize.check_grad(lambda z: opposite(z)[0], lambda z: opposite(z)[1], start) < 1e-5
        greatest = max(greatest, -optimize.minimize(opposite, start, jac=True).fun)
    assert 0.95 <= greatest <= 1.0 + 1e-12


@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
def test_a_tuning_of_persons_pays_once_and_survives_files():
    ledger = dpci.Ledger(dpci.PureDP(5.0))
    found = tuning.tune(X, Y, budget=dpci.PureDP(4.0), ledger=ledger, **ASKED, **UNITS["persons"])
    assert ledger.remaining == dpci.PureDP(1.0)
    (entry,) = ledger.history
    assert entry.unit == "person"
    assert found.privacy["fit"]["unit"] == "person"
    assert found.privacy["fit"]["classes"] == list(CLASSES)
    for again in (tuning.TuneResult.from_json(found.to_json()), pickle.loads(pickle.dumps(found))):
        assert again.to_json() == found.to_json()
        assert again.result.classes == CLASSES
        np.testing.assert_array_equal(again.result.predict(X[:4]), found.result.predict(X[:4]))
    # The model alone says what it is a part of, and so does its file.
    alone = dpci.multinomial.MultinomialFit.from_json(found.result.to_json())
    assert alone.digest == found.result.digest
    assert "the choice among 2 candidates and the fit" in found.result.summary()
    assert "log odds of 'b', 'c' against 'a'" in found.summary()
    document = found.officer_report(ledger=ledger)
    assert "a, b, c" in document
    damaged = json.loads(found.to_json())
    damaged["fit"]["classes"] = ["a", "b", "d"]
    with pytest.raises(dpci.InvalidInput):
        tuning.TuneResult.from_json(json.dumps(damaged))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "public_rule", "candidates": None, "validation_radius": None}, "public rule is for one linear"),
        ({"selection_share": 1.0}, "selection_share must be below 1 with three or more classes"),
        ({"validation_loss": "logistic"}, "validation_loss must be None with three or more classes"),
        ({"radius": 1.0}, "the multinomial loss does not support a radius"),
        ({"candidates": [{"l2_strength": 1.0, "loss": "logistic"}]}, "must differ only in l2_strength, mechanism"),
        ({"candidates": [{"mechanism": "output"}]}, "every candidate must have a number as l2_strength"),
        ({"validation_radius": None}, "validation_radius must be given"),
        ({"neighbors": dpci.AddRemove(N)}, "private tuning requires neighbors"),
        ({"classes": ("a", "b", "b")}, "classes"),
        ({"loss": "logistic"}, "loss must not be given with three or more classes"),
    ],
)
def test_refused(change, message):
    ledger = dpci.Ledger(dpci.PureDP(5.0), neighbors="add_remove" if "neighbors" in change else "replace_one")
    with pytest.raises(dpci.InvalidInput, match=message):
        tuning.tune(X, Y, **assembled(**{"budget": dpci.PureDP(4.0), "ledger": ledger, **ASKED, **change}))
    assert ledger.history == ()


def test_a_schema_has_the_classes():
    schema = dpci.schema.Schema(
        columns=tuple(dpci.schema.NumericColumn(name=name, lower=-1, upper=1) for name in ("one", "two")),
        target=dpci.schema.CategoricalTarget(column="c", classes=(("a",), ("b",), ("c",))),
    )
    table = {"one": X[:, 0], "two": X[:, 1], "c": Y}
    found = tuning.tune(table, schema=schema, budget=dpci.PureDP(20.0), candidates=GRID, validation_radius=6.0)
    assert found.result.classes == CLASSES
    assert found.result.names[0].startswith("b:")


def test_the_search_of_an_estimator():
    sklearn = pytest.importorskip("dpci.sklearn", reason="scikit-learn is optional")
    model = sklearn.PrivateMultinomialRegression(
        epsilon=1e4, classes=("c", "a", "b"), weights=dpci.Weights(bound=2.0), seed=1
    )
    grid = {"l2_strength": [0.01, 1.0], "mechanism": ["objective", "output"]}
    search = sklearn.PrivateGridSearch(model, grid, validation_radius=6.0)
    search.fit(X, Y, UNITS["weights"]["weights"].values, persons=UNITS["persons"]["persons"])
    assert search.result_.result.n_samples == N // 3
    assert search.best_params_["l2_strength"] == 0.01
    assert search.classes_.tolist() == ["a", "b", "c"]
    assert search.best_estimator_.coef_.shape == (3, 2)
    np.testing.assert_allclose(search.predict_proba(X[:7]).sum(axis=1), 1.0)
    assert (search.predict(X) == Y).mean() > 0.5
    with pytest.raises(dpci.InvalidInput, match="classes of the estimator must be given"):
        sklearn.PrivateGridSearch(sklearn.PrivateMultinomialRegression(), grid, validation_radius=6.0).fit(X, Y)
    with pytest.raises(dpci.InvalidInput, match="candidates must differ only in"):
        sklearn.PrivateGridSearch(model, {"radius": [1.0]}, validation_radius=6.0).fit(X, Y)


LISTED = [{"l2_strength": 0.003}, {"l2_strength": 0.3}]
PANEL = dpci.datasets.simulate_panel(1500, n_rows=(1, 8), seed=0)
SURVEY = dpci.datasets.simulate_survey(3000, seed=0)
HUGE = {"budget": dpci.PureDP(1e6), "classes": (-1, 1), "seed": 1}
PERSONS = {"persons": PANEL.persons}
WEIGHTS = {"weights": dpci.Weights(SURVEY.weights, bound=SURVEY.weight_bound)}


@pytest.mark.parametrize("method", ["repeat", "chunks"])
@pytest.mark.parametrize(
    ("data", "unit"),
    [
        (PANEL, PERSONS),
        (PANEL, {"persons": dpci.Persons(PANEL.persons, max_rows=3)}),
        (SURVEY, WEIGHTS),
        (SURVEY, {"weights": dpci.Weights(SURVEY.weights, bound=SURVEY.weight_bound, total=4e3)}),
    ],
    ids=["mean", "max_rows", "weights", "total"],
)
def test_without_noise_the_least_penalty_wins_and_is_fitted(method, data, unit):
    found = tuning.tune(data.X, data.y, candidates=LISTED, validation_radius=4.0, method=method, **unit, **HUGE)
    assert found.params == LISTED[0]
    expected = dpci.fit(data.X, data.y, **found.params, **unit, **HUGE)
    assert found.result.n_samples == expected.n_samples
    assert found.result.privacy["unit"] == expected.privacy["unit"]
    assert found.result.params == pytest.approx(expected.params, abs=1e-4)
    assert found.result.std_errors == pytest.approx(expected.std_errors, rel=1e-3)
    assert tuning.TuneResult.from_json(found.to_json()).to_json() == found.to_json()


@pytest.mark.parametrize(
    ("unit", "counts"),
    [
        ({"persons": True}, [(1.0, 1.0), (1.0, 1.0)]),
        ({"persons": True, "max_rows": 4}, [(1.0, 1.0), (0.25, 0.25)]),
        ({"weight_bound": 3.0}, [(1.0, 1.0), (0.0, 0.0)]),
    ],
    ids=["mean", "max_rows", "weights"],
)
def test_no_record_of_a_unit_moves_a_score_further_than_is_paid_for(unit, counts):
    """The loss of a whole person is that of its rows together; one that counts less may have almost none."""
    n, radius = 50, 1.5
    budget = dpci.budgets.core_budget(dpci.PureDP(1.0))
    spec = specified(
        _core.Spec, n_samples=n, n_columns=1, row_norm=2.0, loss=Logistic().to_core(), radius=radius, budget=budget,
        **unit,
    )  # fmt: skip
    choice = _core.TuningSpec(
        [spec], loss=Logistic().to_core(), validation_radius=None, method="repeat", shape=1.0, expected_runs=3.0,
        budget=budget,
    )  # fmt: skip
    paid = choice.facts()["score_sensitivity"]
    losses = np.logaddexp(0.0, np.array([3.0, -3.0]))  # at the ends of the ball, rows of norm 2
    values = [share * loss for shares in counts for share, loss in zip(shares, losses, strict=True)]
    # Replaced: all pairs of what a record can add.
    moved = max(abs(a - b) for a in values for b in values) / n
    assert 0.95 * paid <= moved <= paid


def test_persons_in_parts_and_without_a_rule_are_refused():
    with pytest.raises(dpci.InvalidInput, match="persons must have ids"):
        tuning.tune(
            PANEL.X, PANEL.y, candidates=LISTED, validation_radius=4.0, budget=dpci.PureDP(1.0),
            persons=dpci.Persons(max_rows=3),
        )  # fmt: skip
    with pytest.raises(dpci.InvalidInput, match="bound="):
        tuning.tune(
            SURVEY.X, SURVEY.y, candidates=LISTED, validation_radius=4.0, budget=dpci.PureDP(1.0),
            weights=SURVEY.weights,
        )  # fmt: skip
