"""Moment matrices of persons and of weighted records: their numbers, sensitivities, guarantees, and what is refused."""

import json
import pickle

import numpy as np
import pytest

import dpci
from dpci import regression
from dpci.cli.main import main
from dpci.regression import Regression
from dpci.schema import NumericColumn, NumericTarget, Schema
from support.commands import ran
from support.saved import rewritten

P = 300
_rng = np.random.default_rng(7)
_counts = _rng.integers(1, 7, P)
_order = _rng.permutation(_counts.sum())
IDS = np.repeat(np.arange(P), _counts)[_order]
N = len(IDS)
_own = _rng.normal(size=(P, 3))
X = np.clip(
    [2005, 0, 5] + [5, 0.3, 2] * (0.7 * _own[IDS] + 0.7 * _rng.normal(size=(N, 3))), [1990, -1, 0], [2020, 1, 10]
)
Y = np.clip((X - [2005, 0, 5]) @ [0.1, -2.0, 0.5] + 1.5 * _own[IDS, 0] + _rng.normal(size=N) + 7, -11, 25)
WEIGHTS = _rng.uniform(0, 3, N)
BOUNDS = {"bounds": ([1990, -1, 0], [2020, 1, 10]), "target_bound": (-11, 25)}
ENORMOUS = [dpci.PureDP(1e13), dpci.ZCDP(1e24), dpci.ApproxDP(1e13, 1e-6), dpci.GDP(1e8)]


def released(budget=ENORMOUS[1], **keywords):
    return regression.release(X, Y, budget=budget, **{"persons": IDS, "seed": 1, **BOUNDS, **keywords})


def shares(max_rows=None, weights=None):
    """How much each row counts, by the definition."""
    met, out = {}, np.zeros(N)
    for i, person in enumerate(IDS):
        met[person] = met.get(person, 0) + 1
        if max_rows is None:
            out[i] = 1 / _counts[person]
        elif met[person] <= max_rows:
            out[i] = 1 / max_rows
    return out if weights is None else out * weights


@pytest.mark.parametrize("budget", ENORMOUS, ids=lambda budget: budget.notion)
@pytest.mark.parametrize(
    ("rule", "weighed"),
    [
        ({}, False),
        ({"persons": dpci.Persons(IDS, max_rows=3)}, False),
        ({}, True),
        ({"persons": dpci.Persons(IDS, max_rows=2)}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("neighbors", ["replace_one", "add_remove"])
def test_an_enormous_budget_gives_the_clusters_of_statsmodels(budget, rule, weighed, neighbors):
    sm = pytest.importorskip("statsmodels.api")
    extra = {"weights": dpci.Weights(WEIGHTS, bound=3.0, total=500.0)} if weighed else {}
    public = {"neighbors": dpci.AddRemove(P + 50) if neighbors == "add_remove" else neighbors}
    planned = [Regression(), Regression(features=["x2", "x0"]), Regression(target="x1", features=["x2"])]
    matrix = released(budget, robust=planned, **rule, **extra, **public)
    assert matrix.n_samples == (P if neighbors == "replace_one" else P + 50)
    weights = shares(rule["persons"].max_rows if rule else None, WEIGHTS if weighed else None)
    kept = weights > 0
    table = {"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "y": Y}
    for one in planned:
        features = one.features or ("x0", "x1", "x2")
        design = np.column_stack([*(table[name] for name in features), np.ones(N)])[kept]
        model = sm.WLS(table[one.target or "y"][kept], design, weights=weights[kept])
        theirs = model.fit(cov_type="cluster", cov_kwds={"groups": IDS[kept], "use_correction": False})
        fit = matrix.fit(one.target, features)
        assert fit.covariance == "robust"
        # The greatest budgets of the other two still have noise.
        room = 1e-6 if budget.notion in {"pure", "zcdp"} else 3e-4
        np.testing.assert_allclose(fit.params, theirs.params, rtol=room)
        np.testing.assert_allclose(fit.std_errors, theirs.bse, rtol=room)
        np.testing.assert_allclose(fit.cov, theirs.cov_params(), rtol=10 * room, atol=room * np.abs(fit.cov).max())
        np.testing.assert_allclose(np.asarray(fit.conf_int()), theirs.conf_int(), rtol=10 * room)


def test_weighted_records_have_the_robust_covariance_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    design = np.column_stack([X, np.ones(N)])
    theirs = sm.WLS(Y, design, weights=WEIGHTS).fit(cov_type="HC0")
    fit = released(persons=None, weights=dpci.Weights(WEIGHTS, bound=3.0)).fit()
    assert (fit.covariance, fit.n_samples) == ("robust", N)
    np.testing.assert_allclose(fit.params, theirs.params, rtol=1e-6)
    np.testing.assert_allclose(fit.std_errors, theirs.bse, rtol=1e-6)


def test_a_ridge_is_that_of_the_mean_over_persons():
    fit = released(robust=[Regression(l2_strength=0.3)]).fit(l2_strength=0.3)
    design, weights = np.column_stack([X, np.ones(N)]), shares()
    inverse = np.linalg.inv((design.T * weights) @ design / P + 0.15 * np.eye(4))
    params = inverse @ (design.T @ (weights * Y)) / P
    scores = np.zeros((P, 4))
    np.add.at(scores, IDS, design * (weights * (Y - design @ params))[:, None])
    np.testing.assert_allclose(fit.params, params, rtol=1e-5)
    cov = inverse @ (scores.T @ scores / P) @ inverse / P
    np.testing.assert_allclose(fit.std_errors, np.sqrt(np.diag(cov)), rtol=1e-5)


def test_one_row_a_person_is_a_matrix_of_rows():
    person = np.random.default_rng(3).permutation(N)
    for budget in (dpci.PureDP(1.0), dpci.ZCDP(0.5)):
        ours, rows = released(budget, persons=person), released(budget, persons=None, robust=True)
        scales = [[step.scale for step in matrix._record.steps] for matrix in (ours, rows)]
        assert scales[0][0] == scales[1][0]
        assert scales[0] == pytest.approx(scales[1], rel=1e-3)
        # The seals' lattices differ, because the rounding of more rows is bounded.
        np.testing.assert_allclose(ours.moments, rows.moments, rtol=1e-4)


def persons_of(rng, count, d, most, *, constant, weight, bound, cap):
    """Terms and gradients' terms of random persons of up to five rows, most of which are on the edge of the domain."""

    def edged(shape, reach):
        inside = rng.uniform(-reach, reach, shape)
        return np.where(rng.uniform(size=shape) < 0.8, rng.choice([-reach, reach], shape), inside)

    m = rng.integers(1, 6, (count, 1))
    x, y = edged((count, 5, d), 1.0), edged((count, 5), bound)
    alike = rng.uniform(size=count) < 0.5
    x[alike], y[alike] = x[alike, :1], y[alike, :1]
    z = np.concatenate([x, np.full((count, 5, 1), constant), weight * y[..., None]], axis=2)
    rows = np.arange(5)
    omega = np.where(rows < m, 1.0 / m, 0.0) if most is None else np.where((rows < m) & (rows < most), 1.0 / most, 0.0)
    # Weights over their bound.
    omega = omega * np.where(rng.integers(2, size=(count, 5)), 1.0, rng.uniform(size=(count, 1)))
    residual = np.array([-cap, cap, 0.0])[rng.integers(3, size=(count, 5))]
    residual = np.where(residual == 0.0, rng.uniform(-cap, cap, (count, 1)), residual)
    gradient = np.einsum("nm,nmi->ni", omega * residual, z[:, :, :-1])
    return np.einsum("nm,nmi,nmj->nij", omega, z, z), gradient[:, :, None] * gradient[:, None, :]


@pytest.mark.parametrize("max_rows", [None, 1, 3])
@pytest.mark.parametrize("notion", ["pure", "zcdp"])
def test_no_two_persons_exceed_the_sensitivities_and_some_nearly_attain_them(max_rows, notion):
    d, bound, norm = 3, 2.0, "nuc" if notion == "pure" else "fro"
    given = {
        "budget": dpci.PureDP(4.0) if notion == "pure" else dpci.ZCDP(0.5),
        "persons": dpci.Persons(IDS, max_rows=max_rows),
    }
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 1, (N, d)), rng.uniform(-bound, bound, N)
    weigh = {"weights": dpci.Weights(WEIGHTS, bound=3.0, total=6.0 * P)}
    worst, drawn = {}, None
    for neighbors in ("replace_one", "add_remove"):
        public = {"neighbors": dpci.AddRemove(P) if neighbors == "add_remove" else neighbors}
        common = {"bounds": (-1, 1), "target_bound": bound, "seed": 1, **given, **public}
        plain = regression.release(x, y, **common)._record
        weighted = regression.release(x, y, **common, **weigh)._record
        for record in (plain, weighted):
            assert record.divisor == (P if record is plain else 2.0 * P)
        constant, weight = plain.constant, plain.target_weight
        square = d + constant**2
        top = {"matrix": 1.5 * square, "residual": square}  # of the squared norms of z, and of x over the cap
        factor = 1.0 if neighbors == "add_remove" else {"pure": 2.0, "zcdp": np.sqrt(2.0)}[notion]
        for record in (plain, weighted):
            claims = [step.sensitivity * record.divisor / factor for step in record.steps]
            assert claims[0] == pytest.approx(top["matrix"], rel=1e-9)
            # The cap follows from the matrix: what is claimed is its square times that of x.
            assert claims[1] > 0
        if drawn is None:
            drawn = persons_of(rng, 3000, d, max_rows, constant=constant, weight=weight, bound=bound, cap=1.0)
        for name, terms in zip(("matrix", "residual"), drawn, strict=True):
            gaps = terms[::2] - terms[1::2] if neighbors == "replace_one" else terms
            found = np.linalg.norm(gaps, norm, axis=(1, 2)).max()
            claim = factor * top[name]
            assert found <= claim * (1 + 1e-12)
            worst[neighbors, name] = found / claim
        # Two persons whose rows are alike, and nearly at right angles.
        alone = [np.array([*row, constant, weight * target]) for row, target in (([1, 1, 1], 2), ([1, 1, -1], -2))]
        rows = [np.array([1, 1, 1, constant]), np.array([1, -1, -1, constant])]
        for name, (one, other) in (("matrix", alone), ("residual", rows)):
            gap = np.outer(one, one) - (np.outer(other, other) if neighbors == "replace_one" else 0.0)
            assert 0.95 <= np.linalg.norm(gap, norm) / (factor * top[name]) <= 1 + 1e-12
    assert min(worst.values()) > 0.5


def test_two_persons_at_right_angles_attain_the_sensitivity_in_the_data():
    """The released matrices themselves, with next to no noise, before and after one person is replaced."""
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-1, 1, (N, 3)), rng.uniform(-2, 2, N)
    for budget, norm in ((dpci.ZCDP(1e24), "fro"), (dpci.PureDP(1e13), "nuc")):
        found = []
        for pair in (([1, 1, 1], 2.0), ([1, 1, -1], -2.0)):
            rows, targets = x.copy(), y.copy()
            who = int(np.argmax(_counts))
            rows[who == IDS], targets[who == IDS] = pair
            given = {"budget": budget, "bounds": (-1, 1), "target_bound": 2.0, "persons": IDS, "seed": 1}
            found.append(regression.release(rows, targets, **given)._record)
        gap = np.linalg.norm(found[0].matrix - found[1].matrix, norm)
        assert 0.95 * found[0].steps[0].sensitivity < gap <= found[0].steps[0].sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("max_rows", [None, 2])
@pytest.mark.parametrize("weighed", [False, True])
def test_residual_moments_are_those_of_persons_with_residuals_held_to_the_cap(max_rows, weighed):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (N, 2))
    y = 0.3 * x[:, 0] + 0.01 * rng.normal(size=N)
    y[:3] = [1.0, -1.0, 1.0]  # beyond the cap
    extra = {"weights": dpci.Weights(WEIGHTS, bound=3.0)} if weighed else {}
    record = regression.release(
        x, y, budget=dpci.ZCDP(1e24), bounds=(-1, 1), persons=dpci.Persons(IDS, max_rows=max_rows), seed=1, **extra
    )._record
    (residual,) = record.residuals
    design = np.column_stack([x, np.full(N, record.constant)])
    cap = np.sqrt(record.steps[1].sensitivity / np.sqrt(2) * record.divisor / (2 + record.constant**2))
    left = y - design @ residual.point
    assert np.abs(left).max() > cap > 8 * 0.01
    weights = shares(max_rows, WEIGHTS / 3.0 if weighed else None)
    scores = np.zeros((P, 3))
    np.add.at(scores, IDS, design * (weights * np.clip(left, -cap, cap))[:, None])
    np.testing.assert_allclose(residual.moments, scores.T @ scores / record.divisor, rtol=1e-8, atol=1e-12)


def test_the_cap_is_that_of_rows_however_little_each_counts():
    """It follows from the mean of the squared residuals of what is counted (proofs/linear_regression.md)."""
    caps = []
    for max_rows in (1, 4):
        persons = dpci.Persons(np.arange(N), max_rows=max_rows)
        caps.append(released(persons=persons, robust=True)._record.steps[1].sensitivity)
    assert caps[1] == pytest.approx(caps[0], rel=1e-3)


def test_everything_says_person():
    ledger = dpci.Ledger(dpci.ZCDP(1000.0))
    matrix = released(dpci.ZCDP(500.0), ledger=ledger, seed=None)
    assert [entry.unit for entry in ledger.history] == ["person"]
    assert "one person replaced" in matrix.summary()
    assert "the mean of each person's rows" in matrix.summary()
    fit = matrix.fit()
    assert "cluster-robust covariance" in fit.summary()
    assert fit.privacy["unit"] == "person"
    assert fit.privacy["constants"]["persons"] == {"max_rows": None}
    for text in (fit.to_json(), matrix.to_json()):
        read = type(fit if "LinearFit" in text[:40] else matrix).from_json(text)
        assert read.to_json() == text
        assert read.privacy == matrix.privacy
    assert pickle.loads(pickle.dumps(fit)).params.tolist() == fit.params.tolist()
    page = fit.to_html()
    assert "one person replaced" in page
    weighted = released(dpci.ZCDP(5e4), weights=dpci.Weights(WEIGHTS, bound=3.0), persons=dpci.Persons(IDS, max_rows=2))
    assert "from 0 to 3" in weighted.fit().summary()
    assert "the first 2 rows of each person" in weighted.summary()
    with pytest.raises(dpci.InvalidInput, match="the same unit"):
        regression.release(X, Y, budget=dpci.ZCDP(1.0), ledger=ledger, **BOUNDS)


def test_files_say_whose_privacy_they_protect_and_damage_is_refused():
    plain = json.loads(released(persons=None).to_json())
    assert plain["persons"] is None
    assert plain["weights"] is None
    document = json.loads(released(weights=dpci.Weights(WEIGHTS, bound=3.0)).to_json())
    for damage in (
        {"persons": {"max_rows": 0}},
        {"persons": {}},
        {"weights": {"bound": 1.0, "total": 0.5}},
        {"weights": {"bound": -1.0, "total": None}},
    ):
        with pytest.raises(dpci.InvalidInput):
            regression.MomentMatrix.from_json(rewritten({**document, **damage}))
    fit = json.loads(released().fit().to_json())
    changed = {**fit, "model": {**fit["model"], "covariance": "classical"}}
    with pytest.raises(dpci.InvalidInput, match="robust"):
        regression.LinearFit.from_json(rewritten(changed))


BAD = {
    "no standard errors": ({"robust": False}, "robust must be True"),
    "an empty plan": ({"robust": []}, "robust must be True"),
    "a name": ({"persons": "who"}, "name of a column"),
    "a rule alone": ({"persons": dpci.Persons(max_rows=2)}, "persons must have ids"),
    "no bound": ({"weights": WEIGHTS}, "bound="),
    "a bound alone": ({"weights": dpci.Weights(bound=2.0)}, "weights must have values"),
    "a weight above the bound": ({"weights": dpci.Weights(WEIGHTS, bound=1.0)}, "weight"),
    "too few ids": ({"persons": IDS[1:]}, "one id for each"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_spends_nothing(name):
    keywords, message = BAD[name]
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    with pytest.raises(dpci.InvalidInput, match=message):
        released(dpci.ZCDP(0.4), ledger=ledger, seed=None, **keywords)
    assert ledger.spent["rho"] == 0


def test_what_a_matrix_of_persons_does_not_offer():
    matrix = released(dpci.ZCDP(1e6))
    with pytest.raises(dpci.InvalidInput, match="independent record"):
        matrix.fit(covariance="classical")
    with pytest.raises(dpci.InvalidInput, match="planned"):
        matrix.fit(features=["x0"])
    chunks = dpci.Chunks([(X, Y)])
    for keywords in ({"persons": IDS}, {"weights": dpci.Weights(WEIGHTS, bound=3.0)}):
        ledger = dpci.Ledger(dpci.ZCDP(1.0))
        with pytest.raises(dpci.InvalidInput, match="name of a column"):
            regression.release(chunks, budget=dpci.ZCDP(0.5), ledger=ledger, **keywords, **BOUNDS)
        with pytest.raises(dpci.InvalidInput, match="name of a column"):
            dpci.fit(chunks, loss="squared", budget=dpci.ZCDP(0.5), ledger=ledger, **keywords)
        assert ledger.spent["rho"] == 0
    for keywords, message in (
        ({"l2_strength": "private"}, "l2_strength"),
        ({"rows": dpci.rows.Within(intercept=False)}, "intercept"),
    ):
        ledger = dpci.Ledger(dpci.ZCDP(1.0))
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.fit(X / 3000, Y / 25, loss="squared", persons=IDS, budget=dpci.ZCDP(0.5), ledger=ledger, **keywords)
        assert ledger.spent["rho"] == 0


def test_means_count_persons():
    found = released(persons=dpci.Persons(IDS, max_rows=2)).means()
    weights = shares(2)
    columns = np.column_stack([X, Y])
    means = weights @ columns / weights.sum()
    np.testing.assert_allclose(found.estimate, means, rtol=1e-6)
    # Longer than those of clusters, at most by the factor of independent persons with one row each.
    scores = np.zeros((P, 4))
    np.add.at(scores, IDS, weights[:, None] * (columns - means))
    errors = np.sqrt((scores**2).sum(axis=0)) / weights.sum()
    ours = (found.upper - found.lower) / (2 * 1.96)
    assert np.all((errors < ours) & (ours < 2 * errors))
    variances = weights @ (columns - means) ** 2 / weights.sum()
    np.testing.assert_allclose(
        released(persons=dpci.Persons(IDS, max_rows=2)).variances().estimate, variances, rtol=1e-2
    )


SCHEMA = Schema(
    columns=(
        NumericColumn(name="year", lower=1990, upper=2020),
        NumericColumn(name="size", lower=-1, upper=1),
        NumericColumn(name="score", lower=0, upper=10),
    ),
    target=NumericTarget(column="pay", lower=-11, upper=25),
    persons="who",
)
TABLE = {"year": X[:, 0], "size": X[:, 1], "score": X[:, 2], "pay": Y, "who": IDS, "count": WEIGHTS}


def test_a_table_with_a_column_of_persons():
    sm = pytest.importorskip("statsmodels.api")
    given = {"schema": SCHEMA, "loss": "squared", "budget": dpci.ZCDP(1e24), "seed": 1}
    with pytest.raises(dpci.InvalidInput, match="persons must be given"):
        dpci.fit(TABLE, **given)
    fit = dpci.fit(TABLE, persons="who", weights=dpci.Weights("count", bound=3.0), **given)
    design = np.column_stack([X, np.ones(N)])
    model = sm.WLS(Y, design, weights=shares(None, WEIGHTS))
    theirs = model.fit(cov_type="cluster", cov_kwds={"groups": IDS, "use_correction": False})
    np.testing.assert_allclose(fit.params, theirs.params, rtol=1e-5)
    np.testing.assert_allclose(fit.std_errors, theirs.bse, rtol=1e-5)
    frame = pytest.importorskip("pandas").DataFrame(TABLE)
    same = dpci.fit(frame, persons="who", weights=dpci.Weights("count", bound=3.0), **given)
    np.testing.assert_allclose(same.params, fit.params)
    for series in (
        {"persons": frame["who"][::-1]},
        {"persons": "who", "weights": dpci.Weights(frame["count"][::-1], bound=3.0)},
    ):
        with pytest.raises(dpci.InvalidInput, match="index"):
            dpci.fit(frame, **series, **given)
    with pytest.raises(dpci.InvalidInput, match="index"):
        regression.release(
            frame[["year", "size", "score"]], Y, persons=frame["who"][::-1], budget=dpci.ZCDP(1), **BOUNDS
        )


def test_the_command(tmp_path, capsys):
    names = list(TABLE)
    lines = [",".join(names), *(",".join(str(TABLE[name][i]) for name in names) for i in range(N))]
    (tmp_path / "visits.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "visits.json").write_text(json.dumps(SCHEMA.to_dict()))
    command = ["regress", str(tmp_path / "visits.csv"), "--schema", str(tmp_path / "visits.json"), "--rho", "1e6"]
    assert main(command) != 0
    assert "--persons who must be given" in capsys.readouterr().err
    assert main([*command, "--persons", "who", "--chunk-rows", "10"]) != 0
    assert "all of their rows in one part" in capsys.readouterr().err
    ledger, model = str(tmp_path / "l.ledger"), str(tmp_path / "model.json")
    assert main(["ledger", "create", ledger, "--rho", "2e6"]) == 0
    paid = ["--persons", "who", "--max-rows", "4", "--ledger", ledger, "--output", model]
    assert "cluster-robust" in ran(capsys, *command, *paid, "--weights", "count", "--weight-bound", "3").out
    assert "FAILED" not in ran(capsys, "verify", model, "--ledger", ledger, code=6).out
    given = {"schema": SCHEMA, "loss": "squared", "budget": dpci.ZCDP(1e24), "seed": 1}
    expected = dpci.fit(
        TABLE, persons=dpci.Persons("who", max_rows=4), weights=dpci.Weights("count", bound=3.0), **given
    )
    found = regression.LinearFit.from_json((tmp_path / "model.json").read_text())
    np.testing.assert_allclose(found.scaled.params, expected.scaled.params, atol=0.01)


def test_private_errors_hide_what_the_ids_say():
    def attempt(**keywords):
        ledger = dpci.Ledger(dpci.ZCDP(3.0), errors="private")
        try:
            found = released(dpci.ZCDP(1.0), ledger=ledger, seed=None, rows="clip", **keywords)
        except dpci.ReleaseFailed:
            found = None
        assert [entry.unit for entry in ledger.history] == ["person"]
        return found

    assert attempt().n_samples == P
    assert attempt(weights=dpci.Weights(WEIGHTS, bound=3.0)).n_samples == P
    for keywords in ({"persons": IDS[1:]}, {"persons": np.where(IDS == 0, np.nan, IDS)}):
        assert attempt(**keywords) is None
