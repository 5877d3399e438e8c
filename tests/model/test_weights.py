"""Fits with weights: limits without noise, design-based errors, what is refused, and what a record keeps."""

import itertools
import json
import pickle

import numpy as np
import pytest
from scipy.special import expit

import dpci
from dpci.errors import InvalidInput
from dpci.released.model import record_of
from dpci.unit import Weights
from support.keywords import assembled

N, BOUND, STRENGTH, SPLIT = 600, 4.0, 0.05, (0.8, 0.1, 0.1)
BUDGETS = (dpci.PureDP(1e7), dpci.ZCDP(1e7), dpci.ApproxDP(1e7, 1e-6))


def survey(seed=0):
    """Rows whose weights go with the outcome, as those of a survey do."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(X[:, 0] + rng.logistic(size=N) > 0, 1, -1)
    weights = np.where(y > 0, 0.5, 1.2) * rng.uniform(0.2, 3.0, N)
    return X, y, weights


def quiet(X, y, **keywords):
    defaults = {"l2_strength": STRENGTH, "classes": (-1, 1), "seed": 1, "budget": dpci.PureDP(1e7)}
    return dpci.fit(X, y, **assembled(**{**defaults, **keywords}))


def exact(X, y, weights, total, strength=STRENGTH):
    """The minimiser of the weighted risk, its Hessian, and the covariance of its error by the design-based sandwich."""
    Z = np.column_stack([X, np.ones(len(X))])
    params = np.zeros(3)
    for _ in range(60):
        margin = y * (Z @ params)
        slope, curvature = -y * expit(-margin), expit(margin) * expit(-margin)
        gradient = weights * slope @ Z / total + strength * params
        hessian = (Z.T * (weights * curvature)) @ Z / total + strength * np.eye(3)
        params = params - np.linalg.solve(hessian, gradient)
    scores = (weights * slope)[:, None] * Z
    return params, hessian, scores


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_without_noise_a_fit_is_the_weighted_one_with_design_based_errors(mechanism, budget):
    X, y, weights = survey()
    for total, neighbors in itertools.product([None, 900.0], ["replace_one", "add_remove"]):
        relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
        found = quiet(
            X, y, budget=budget, mechanism=mechanism, weights=dpci.Weights(weights, bound=BOUND, total=total),
            neighbors=relation,
        )  # fmt: skip
        params, hessian, scores = exact(X, y, weights, total or N)
        # Independent records of which n were drawn; under add/remove no mean is subtracted.
        centred = scores - (scores.mean(axis=0) if neighbors == "replace_one" else 0.0)
        sandwich = np.linalg.solve(hessian, centred.T / (total or N))
        assert found.n_samples == N
        assert found.params == pytest.approx(params, abs=2e-3)
        assert found.hessian == pytest.approx(hessian, abs=5e-4)
        # In shares of the bound, so that N/W stands for n in the sandwich.
        assert found.gradient_cov == pytest.approx(centred.T @ centred / (BOUND * (total or N)), abs=5e-4)
        assert found.std_errors == pytest.approx(np.sqrt(np.diag(sandwich @ sandwich.T)), rel=0.01)


def test_statsmodels_and_linearisation_of_surveys():
    """The weighted logit of statsmodels, and Binder's (1983) linearised errors, to 1e-6 without noise."""
    statsmodels = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    X, y, weights = survey(3)
    found = quiet(X, y, budget=dpci.PureDP(2e8), l2_strength=1e-8, weights=dpci.Weights(weights, bound=BOUND))
    Z = np.column_stack([X, np.ones(N)])
    model = statsmodels.GLM((y + 1) / 2, Z, family=statsmodels.families.Binomial(), freq_weights=weights)
    fitted = model.fit(cov_type="HC0", tol=1e-14, maxiter=200)
    assert found.params == pytest.approx(fitted.params, rel=1e-6, abs=1e-7)
    # The totals of the estimating function over a sample with replacement, without the factor n/(n - 1).
    _, hessian, scores = exact(X, y, weights, N, strength=1e-8)
    centred = scores - scores.mean(axis=0)
    bread = np.linalg.inv(hessian * N)
    design = np.sqrt(np.diag(bread @ (centred.T @ centred) @ bread))
    assert found.std_errors == pytest.approx(design, rel=1e-6)
    meat = scores.T @ scores
    assert found.std_errors == pytest.approx(np.sqrt(np.diag(bread @ meat @ bread)), rel=1e-6)


def test_a_survey_has_the_coefficients_of_its_population():
    survey = dpci.datasets.simulate_survey(40_000, seed=1)
    assert survey.weights.max() == survey.weight_bound
    assert survey.weights.mean() == pytest.approx(1.0, abs=0.03)
    common = {"budget": dpci.ZCDP(1e6), "l2_strength": 1e-3, "projection": "floor"}
    weighted = quiet(survey.X, survey.y, weights=dpci.Weights(survey.weights, bound=survey.weight_bound), **common)
    plain = quiet(survey.X, survey.y, **common)
    # Of everyone half have either outcome.
    assert abs(weighted.params[-1]) < 0.06
    assert plain.params[-1] > 1.0
    assert weighted.params[0] < plain.params[0] - 0.2


def test_weights_of_one_are_none_and_scales_cancel():
    X, y, weights = survey()
    for budget, mechanism in itertools.product(BUDGETS, ("objective", "output")):
        same = {"budget": budget, "mechanism": mechanism, "moments": "none", "radius": 50.0}
        plain = quiet(X, y, **same)
        ones = quiet(X, y, weights=dpci.Weights(np.ones(N), bound=1.0), **same)
        assert ones.params == pytest.approx(plain.params, abs=1e-6)
        one, other = (
            quiet(X, y, weights=dpci.Weights(weights * k, bound=BOUND * k, total=N * k), **same) for k in (1.0, 1024.0)
        )
        assert other.params == pytest.approx(one.params, abs=1e-12)


def test_a_whole_weight_is_so_many_equal_records():
    X, y, _ = survey()
    counts = np.random.default_rng(4).integers(0, 4, N)
    repeated = quiet(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    weighted = quiet(X, y, weights=dpci.Weights(counts, bound=3, total=int(counts.sum())))
    assert weighted.params == pytest.approx(repeated.params, abs=1e-3)
    assert weighted.hessian == pytest.approx(repeated.hessian, abs=1e-3)


def test_noise_grows_with_the_bound():
    def plan(**public):
        return dpci.plan(
            **assembled(n_samples=5000, n_features=3, budget=dpci.PureDP(1.0), l2_strength=0.05, split=SPLIT, **public)
        )

    plain, twice = plan(), plan(weights=dpci.Weights(bound=2.0))
    assert twice.least_l2_strength == pytest.approx(2.0 * plain.least_l2_strength)
    assert plan(weights=dpci.Weights(bound=2.0, total=10_000.0)).least_l2_strength == pytest.approx(
        plain.least_l2_strength
    )
    assert twice.noise_std_devs[0] > 2.0 * plain.noise_std_devs[0]
    spent = dpci.plan(
        n_samples=5000, n_features=3, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.05, weights=dpci.Weights(bound=3.0)
    )
    # The guarantee knows the greater share of the Jacobian.
    assert spent.guarantee.delta(1.0) == pytest.approx(1e-6, rel=1e-3)


def test_studies_take_no_bound_alone():
    X, y, _ = survey()
    rule = {
        "weights": dpci.Weights(bound=BOUND),
        "budget": dpci.PureDP(1.0),
        "l2_strength": STRENGTH,
        "classes": (-1, 1),
    }
    for function in (dpci.simulate.coverage, dpci.simulate.variability):
        with pytest.raises(InvalidInput, match="weights must have values where data are read"):
            function(X, y, **rule)


def test_persons_with_weights():
    X, y, _ = survey()
    ids = np.arange(N) // 3
    of_persons = np.random.default_rng(5).uniform(0.5, 2.0, N // 3)
    found = quiet(X, y, persons=ids, weights=dpci.Weights(of_persons[ids], bound=2.0))
    share = of_persons[ids] / 3.0
    params, hessian, scores = exact(X, y, share, N // 3)
    summed = scores.reshape(N // 3, 3, 3).sum(axis=1)
    centred = summed - summed.mean(axis=0)
    sandwich = np.linalg.solve(hessian, centred.T / (N // 3))
    assert found.n_samples == N // 3
    assert found.params == pytest.approx(params, abs=2e-3)
    assert found.std_errors == pytest.approx(np.sqrt(np.diag(sandwich @ sandwich.T)), rel=0.01)
    assert "persons" in found.summary(full=True)
    assert "weights" in found.summary(full=True)


def test_squared_loss_sparse_rows_and_blocks():
    sparse = pytest.importorskip("scipy.sparse")
    X, y, weights = survey()
    keywords = {"weights": dpci.Weights(weights, bound=BOUND)}
    squared = quiet(X, y / 2, loss="squared", radius=20.0, classes=None, **keywords)
    Z = np.column_stack([X, np.ones(N)])
    gram = (Z.T * (2.0 * weights)) @ Z / N + STRENGTH * np.eye(3)
    assert squared.params == pytest.approx(np.linalg.solve(gram, Z.T @ (weights * y) / N), abs=2e-3)
    reference = quiet(X, y, **keywords).params
    assert quiet(sparse.csr_array(X), y, **keywords).params == pytest.approx(reference, abs=1e-4)
    found = quiet(X, y, rows=dpci.rows.Blocks([1.0, 1.0]), **keywords)
    assert found.params == pytest.approx(reference, abs=1e-4)


def test_a_schema_names_the_column():
    X, y, weights = survey()
    table = {"a": X[:, 0], "b": X[:, 1], "w": weights, "ill": np.where(y > 0, "yes", "no")}
    columns = tuple(dpci.schema.NumericColumn(name=name, lower=-1, upper=1) for name in "ab")
    target = dpci.schema.ClassTarget(column="ill", negative=("no",), positive=("yes",))
    described = dpci.schema.Schema(columns=columns, target=target)
    common = {"schema": described, "budget": dpci.PureDP(100.0), "l2_strength": 0.05, "seed": 2}
    named, given = (
        quiet(table, None, classes=None, weights=dpci.Weights(column, bound=BOUND), **common)
        for column in ("w", weights)
    )
    assert named.params == pytest.approx(given.params, abs=1e-12)
    with pytest.raises(InvalidInput, match="must have the column 'v'"):
        dpci.fit(table, weights=dpci.Weights("v", bound=BOUND), **common)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"calibration": "paper"}, "calibration"),
        ({"mechanism": dpci.ObjectivePerturbation(variant="cms11")}, "cms11"),
        ({"loss": "hinge", "mechanism": "output", "moments": "none"}, "hinge"),
        ({"weights": np.ones(N)}, r"weights must be dpci.Weights\(values, bound=...\), .* got ndarray"),
        ({"weights": "name"}, r"weights must be dpci.Weights\(values, bound=...\), .* got str"),
        ({"weights": dpci.Weights(bound=4.0)}, "weights must have values where data are read"),
        ({"weights": dpci.Weights(np.ones(N), bound=4.0, total=3.0)}, "weight_bound must be at most weight_total"),
        ({"weights": dpci.Weights("name", bound=4.0)}, "weights must be an array of numbers without a schema"),
        ({"weights": dpci.Weights(np.ones(3), bound=4.0)}, "one number for each of the 600 rows"),
        ({"weights": dpci.Weights(np.full(N, "1"), bound=4.0)}, "weights must hold booleans, integers or floats"),
        ({"weights": dpci.Weights(np.full(N, 4.5), bound=4.0)}, "at most weight_bound=4, got 4.5 in row 0"),
        ({"weights": dpci.Weights(-np.ones(N), bound=4.0), "rows": "clip"}, "at least 0"),
        ({"weights": dpci.Weights(np.full(N, np.nan), bound=4.0), "rows": "clip"}, "got NaN in row 0"),
    ],
)
def test_refusals(keywords, message):
    X, y, weights = survey()
    ledger = dpci.Ledger(dpci.PureDP(10.0))
    given = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "weights": dpci.Weights(weights, bound=BOUND)}
    if "mechanism" not in keywords or keywords["mechanism"] != "moments":
        given["classes"] = (-1, 1)
    with pytest.raises(InvalidInput, match=message):
        dpci.fit(X, y, **assembled(ledger=ledger, **{**given, **keywords}))
    assert ledger.remaining == ledger.total


def test_clipped_weights_are_those_at_the_bound():
    X, y, weights = survey()
    clipped, lowered = (
        quiet(X, y, weights=dpci.Weights(given, bound=1.5), rows="clip", budget=dpci.PureDP(1.0))
        for given in (weights, np.minimum(weights, 1.5))
    )
    assert np.array_equal(clipped.params, lowered.params)
    with pytest.raises(InvalidInput, match="weights must be the name of a column"):
        dpci.fit(
            dpci.Chunks(lambda: iter([(X, y)])), budget=dpci.PureDP(1.0), l2_strength=0.05, classes=(-1, 1),
            weights=dpci.Weights(weights, bound=BOUND),
        )  # fmt: skip


def test_a_record_keeps_what_is_public_of_weights():
    X, y, weights = survey()
    found = quiet(X, y, weights=dpci.Weights(weights, bound=BOUND, total=900.0))
    again = dpci.PrivateFit.from_json(found.to_json())
    assert again.privacy["constants"]["weights"] == {"bound": BOUND, "total": 900.0}
    assert again.std_errors == pytest.approx(found.std_errors, rel=1e-12)
    assert "from 0 to 4, sums divided by 900" in found.summary(full=True)
    assert pickle.loads(pickle.dumps(found)).summary(full=True) == found.summary(full=True)
    plain = quiet(X, y)
    assert json.loads(plain.to_json())["weights"] is None
    record = record_of(again)
    object.__setattr__(record, "weights", Weights(bound=4.0, total=3.0))
    with pytest.raises(InvalidInput, match="at least their bound"):
        record.check()
