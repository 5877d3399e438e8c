"""Fits that protect persons with several rows: limits, neighbours, what is refused, and that no id is kept."""

import io
import itertools
import pickle
import re
import traceback
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import expit

import dpci
from dpci import _core, schema
from dpci.data.persons import numbered
from dpci.errors import InvalidInput
from dpci.schema.cells import as_cells
from support.keywords import assembled

N = 400
BUDGETS = (dpci.PureDP(1e7), dpci.ZCDP(1e7), dpci.ApproxDP(1e7, 1e-6))


def panel(seed=0, n=N, most=9):
    """Rows of persons anywhere in the table, with a number of their own that they share."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most, n)
    ids = rng.permutation(np.repeat(np.arange(n), counts))
    X = rng.normal(size=(len(ids), 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None]
    y = np.where(X[:, 0] + rng.normal(size=n)[ids] + rng.logistic(size=len(ids)) > 0, 1, -1)
    return X, y, ids


def quiet(X, y, **keywords):
    defaults = {"l2_strength": 0.05, "classes": (-1, 1), "seed": 1, "budget": dpci.PureDP(1e7)}
    return dpci.fit(X, y, **{**defaults, **keywords})


def exact(X, y, ids, strength, max_rows=None):
    """The minimiser of the mean over persons, its Hessian and cluster-robust gradient covariance, from the formulas."""
    Z, k = np.column_stack([X, np.ones(len(X))]), len(np.unique(ids))
    order = np.concatenate([np.flatnonzero(ids == i)[:max_rows] for i in np.unique(ids)])
    Z, y, ids = Z[order], y[order], np.unique(ids[order], return_inverse=True)[1]
    weights = 1.0 / (np.bincount(ids)[ids] if max_rows is None else np.full(len(ids), max_rows))
    params = np.zeros(3)
    for _ in range(50):
        margin = y * (Z @ params)
        slope, curvature = -y * expit(-margin), expit(margin) * expit(-margin)
        gradient = weights * slope @ Z / k + strength * params
        hessian = (Z.T * (weights * curvature)) @ Z / k + strength * np.eye(3)
        params -= np.linalg.solve(hessian, gradient)
    scores = np.zeros((k, 3))
    np.add.at(scores, ids, (weights * slope)[:, None] * Z)
    covariance = scores.T @ scores / k - strength**2 * np.outer(params, params)
    return params, hessian, covariance


@pytest.mark.parametrize("mechanism", ["objective", "output"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_without_noise_a_fit_is_the_mean_over_persons_with_cluster_robust_errors(mechanism, budget):
    X, y, ids = panel()
    for max_rows, neighbors in itertools.product([None, 3], ["replace_one", "add_remove"]):
        relation = dpci.AddRemove(N) if neighbors == "add_remove" else neighbors
        found = quiet(
            X, y, budget=budget, mechanism=mechanism, persons=dpci.Persons(ids, max_rows=max_rows), neighbors=relation
        )
        params, hessian, covariance = exact(X, y, ids, 0.05, max_rows)
        if neighbors == "add_remove":  # a second moment, from which no mean is subtracted
            covariance = covariance + 0.05**2 * np.outer(params, params)
        assert found.n_samples == N
        assert found.params == pytest.approx(params, abs=2e-3)
        assert found.hessian == pytest.approx(hessian, abs=2e-4)
        assert found.gradient_cov == pytest.approx(covariance, abs=2e-4)
        half = np.linalg.solve(hessian, np.linalg.cholesky(covariance))
        assert found.std_errors == pytest.approx(np.sqrt(np.diag(half @ half.T) / N), rel=0.01)


def test_statsmodels_cluster_robust_errors():
    """The weighted logit of statsmodels with errors by cluster, to 1e-6 without noise."""
    statsmodels = pytest.importorskip("statsmodels.api", reason="statsmodels is what is compared with")
    from statsmodels.tools.sm_exceptions import SpecificationWarning  # noqa: PLC0415  # optional

    X, y, ids = panel(3, most=6)
    found = quiet(X, y, budget=dpci.PureDP(2e8), l2_strength=1e-8, persons=ids)
    weights = 1.0 / np.bincount(ids)[ids]
    model = statsmodels.GLM(
        (y + 1) / 2, np.column_stack([X, np.ones(len(X))]), family=statsmodels.families.Binomial(), var_weights=weights
    )
    fitted = model.fit(tol=1e-14, maxiter=200)
    with pytest.warns(SpecificationWarning):  # of weights; the formula is the cluster-robust one
        robust = model.fit(
            start_params=fitted.params, cov_type="cluster", cov_kwds={"groups": ids, "use_correction": False}, tol=1e-14
        )
    assert found.params == pytest.approx(fitted.params, rel=1e-6, abs=1e-7)
    assert found.std_errors == pytest.approx(robust.bse, rel=1e-6)


def test_order_and_names_of_persons_do_not_matter():
    X, y, ids = panel()
    order = np.random.default_rng(1).permutation(len(ids))
    reference = quiet(X, y, persons=ids).params
    for others in (ids * 7919 + 10**15, ids.astype(str), [f"p{i}" for i in ids], ids.astype("datetime64[D]")):
        found = quiet(X[order], y[order], persons=np.asarray(others)[order]).params
        assert found == pytest.approx(reference, abs=1e-4)
    pandas = pytest.importorskip("pandas")
    for column in (pandas.Series(ids, dtype="Int64"), pandas.Series(ids.astype(str)).astype("category")):
        assert quiet(X, y, persons=column).params == pytest.approx(reference, abs=1e-4)


def test_one_row_a_person_is_a_row():
    X, y, _ = panel()
    X, y = X[:N], y[:N]
    for budget, mechanism in itertools.product((dpci.PureDP(1e7), dpci.ZCDP(1e7)), ("objective", "output")):
        rows = quiet(X, y, budget=budget, mechanism=mechanism)
        persons = quiet(X, y, budget=budget, mechanism=mechanism, persons=dpci.Persons(np.arange(N)[::-1], max_rows=1))
        assert persons.params == pytest.approx(rows.params, abs=2e-3)
        assert persons.gradient_cov == pytest.approx(rows.gradient_cov, abs=2e-4)
        assert persons.hessian == pytest.approx(rows.hessian, abs=2e-4)


def test_sparse_rows_blocks_and_float32():
    sparse = pytest.importorskip("scipy.sparse")
    X, y, ids = panel()
    reference = quiet(X, y, persons=ids)
    assert quiet(sparse.csr_array(X), y, persons=ids).params == pytest.approx(reference.params, abs=1e-4)
    assert quiet(X.astype(np.float32), y, persons=ids, rows="clip").params == pytest.approx(reference.params, abs=1e-4)
    blocks = dpci.rows.Blocks([1.0, 1.0])
    assert quiet(X, y, persons=ids, rows=blocks).params == pytest.approx(reference.params, abs=1e-4)
    assert quiet(X, y, persons=ids, rows=blocks, budget=dpci.PureDP(1.0)).interval_refusal is None


def test_two_indicators_of_a_column_meet_in_a_person():
    """No row has both, but the rows of a person may: the gradient covariance of persons has no structural zero."""
    rng = np.random.default_rng(2)
    X = np.tile(np.eye(2), (N, 1))
    y, ids = np.repeat(rng.choice([-1, 1], size=N), 2), np.repeat(np.arange(N), 2)
    _, hessian, covariance = exact(X, y, ids, 0.05)
    for budget in BUDGETS:
        found = quiet(X, y, persons=ids, rows=dpci.rows.Blocks([], [([0, 1], 1.0)]), budget=budget)
        assert abs(covariance[0, 1]) > 0.01
        assert found.gradient_cov == pytest.approx(covariance, abs=1e-3)
        assert found.hessian == pytest.approx(hessian, abs=1e-3)


def test_no_id_leaves():
    X, y, ids = panel()
    names = [f"secret-{i:04d}-person" for i in ids]
    result = quiet(X, y, persons=names)
    texts = [
        result.to_json(),
        repr(pickle.dumps(result)),
        result.summary(),
        repr(result),
        result.to_html(),
        str(result.privacy),
    ]
    assert not any("secret" in text for text in texts)
    assert not re.search(
        rf"(?<![\d.]){len(ids)}(?![\d.])", result.to_json()
    )  # nor the number of rows, which is private
    again = pickle.loads(pickle.dumps(result))
    assert again.summary() == result.summary()
    assert "one person replaced" in result.summary()
    assert result.privacy["unit"] == "person"
    bad = (names[:-1], [*names[:-1], None], [*names[:-1], 17], [*names[:-1], ["secret"]], np.array(names)[:, None])
    for broken in bad:
        with pytest.raises(InvalidInput) as error:
            dpci.fit(X, y, budget=dpci.PureDP(1.0), l2_strength=0.05, classes=(-1, 1), persons=broken)
        assert "secret" not in str(error.value)

    class Failing:
        def __array__(self, *_, **__):
            raise ValueError("no number: secret-0001-person")

    with pytest.raises(InvalidInput, match="whose conversion raises ValueError") as error:
        numbered(Failing(), len(ids))
    assert "secret" not in "".join(traceback.format_exception(error.value))
    numbers = np.arange(len(ids)) + 0.5
    numbers[3] = np.nan
    with pytest.raises(InvalidInput, match="must have an id in every row"):
        numbered(numbers, len(ids))


def test_an_index_that_disagrees_with_a_table_is_refused():
    """Also where the table is encoded first: another index would give rows to other persons."""
    pandas = pytest.importorskip("pandas")
    X, y, ids = panel(n=40)
    described = schema.Schema(
        columns=tuple(schema.NumericColumn(name=name, lower=-1, upper=1) for name in "ab"),
        target=schema.ClassTarget(column="y", negative=(-1,), positive=(1,)),
    )
    frame = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y, "who": ids})
    other = pandas.Series(ids, index=np.arange(len(ids))[::-1])
    ledger = dpci.Ledger(dpci.PureDP(10.0))
    common = {"schema": described, "budget": dpci.PureDP(1.0), "ledger": ledger}
    for given in ({"persons": other}, {"weights": dpci.Weights(other * 0.0, bound=1.0)}):
        with pytest.raises(InvalidInput, match=f"the index of {next(iter(given))} must be that of X"):
            dpci.fit(frame, **given, l2_strength=1.0, **common)
        with pytest.raises(InvalidInput, match="the index"):
            dpci.tuning.tune(frame, candidates=[{"l2_strength": 1.0}, {"l2_strength": 2.0}], **given, **common)
        stratum = {"by": "who", "strata": tuple(map(str, range(40))), "n_public": 5}
        with pytest.raises(InvalidInput, match="the index"):
            dpci.fit_strata(frame, **stratum, **given, l2_strength=1.0, **{**common, "ledger": None})
    assert ledger.spent["epsilon"] == 0
    same = pandas.Series(ids, index=frame.index)
    assert dpci.fit(frame, persons=same, l2_strength=1.0, **common).n_samples == 40


def test_an_index_that_disagrees_is_refused():
    pandas = pytest.importorskip("pandas")
    X, y, ids = panel()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    other = pandas.Series(ids, index=np.arange(len(ids))[::-1])
    with pytest.raises(InvalidInput, match="the index of persons must be that of X") as error:
        dpci.fit(frame, y, budget=dpci.PureDP(1.0), l2_strength=0.05, classes=(-1, 1), persons=other)
    assert "in row" not in str(error.value)
    assert quiet(frame, y, persons=pandas.Series(ids)).names == ("a", "b", "intercept")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"calibration": "paper"}, "calibration"),
        ({"mechanism": dpci.ObjectivePerturbation(variant="cms11")}, "cms11"),
        ({"loss": "hinge", "mechanism": "output", "moments": "none"}, "hinge"),
        ({"persons": dpci.Persons(max_rows=2)}, "persons must have ids where data are read"),
        ({"persons": dpci.Persons()}, "persons must have ids where data are read"),
        ({"persons": "name"}, "persons must be an array of ids without a schema"),
    ],
)
def test_refusals(keywords, message):
    X, y, ids = panel()
    defaults = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "classes": (-1, 1), "persons": ids}
    with pytest.raises(InvalidInput, match=message):
        dpci.fit(X, y, **assembled(**{**defaults, **keywords}))


@pytest.mark.filterwarnings("ignore::dpci.PrivacyLeakWarning")
def test_a_study_of_no_person_is_refused_in_words():
    with pytest.raises(InvalidInput, match="at least one row"):
        dpci.simulate.coverage(
            np.empty((0, 2)), np.empty(0, dtype=bool), persons=[], budget=dpci.PureDP(1.0), l2_strength=0.1,
            n_replicates=2,
        )  # fmt: skip


def test_a_schema_that_names_persons_wants_them():
    X, y, ids = panel()
    table = {"a": X[:, 0], "b": X[:, 1], "who": ids, "ill": np.where(y > 0, "yes", "no")}
    columns = tuple(dpci.schema.NumericColumn(name=name, lower=-1, upper=1) for name in "ab")
    target = dpci.schema.ClassTarget(column="ill", negative=("no",), positive=("yes",))
    schema = dpci.schema.Schema(columns=columns, target=target, persons="who")
    assert dpci.schema.Schema.from_dict(schema.to_dict()) == schema
    keywords = {"schema": schema, "budget": dpci.PureDP(1e7), "l2_strength": 0.05, "seed": 1, "classes": None}
    with pytest.raises(InvalidInput, match="names a column of persons, 'who'"):
        dpci.fit(table, **keywords)
    named = quiet(table, None, persons="who", **keywords)
    assert named.n_samples == N
    assert named.params == pytest.approx(quiet(table, None, persons=ids, **keywords).params)
    other = dpci.schema.Schema(columns=columns, target=target)
    with pytest.raises(InvalidInput, match="must have the column 'whom'"):
        dpci.fit(table, persons="whom", **{**keywords, "schema": other})
    # Each row would be a person of its own.
    for column in ("whom", "a", "row"):
        with pytest.raises(InvalidInput, match=f"the schema names, 'who', got persons='{column}'"):
            dpci.fit({**table, "row": np.arange(len(X))}, persons=column, **keywords)
    with pytest.raises(InvalidInput, match="two columns, got 'who' for both"):
        dpci.fit(table, persons="who", weights=dpci.Weights("who", bound=1e3), **keywords)
    encoded = dpci.data.arrays.NamedRows(schema.features(table), schema.names)
    with pytest.raises(InvalidInput, match="encoded already"):
        dpci.fit(encoded, y, persons="who", **keywords)
    with pytest.raises(InvalidInput, match="twice"):
        dpci.schema.Schema(columns=columns, target=target, persons="a")


def test_ids_beside_parts_are_named():
    X, y, ids = panel()
    chunks = dpci.Chunks(lambda: iter([(X, y)]))
    with pytest.raises(InvalidInput, match="must be the name of a column"):
        dpci.fit(chunks, budget=dpci.PureDP(1.0), l2_strength=0.05, classes=(-1, 1), persons=ids)


def test_a_ledger_pays_and_private_errors_stay_private():
    X, y, ids = panel()
    ledger = dpci.Ledger(dpci.PureDP(3.0), errors="private")
    keywords = {"budget": dpci.PureDP(1.0), "l2_strength": 0.05, "classes": (-1, 1), "rows": "clip", "ledger": ledger}
    assert dpci.fit(X, y, persons=ids, **keywords).n_samples == N
    for bad in (ids[:-1], [None, *ids[1:]]):
        with pytest.raises(dpci.errors.ReleaseFailed):
            dpci.fit(X, y, persons=bad, **keywords)
    assert ledger.spent == {"epsilon": 3.0}
    # What the kinds of the arguments rule out is refused before anything is spent.
    unspent = dpci.Ledger(dpci.PureDP(3.0), errors="private")
    chunks = dpci.Chunks(lambda: iter([(X, y)]))
    with pytest.raises(InvalidInput, match="must be the name of a column"):
        dpci.fit(chunks, persons=ids, **{**keywords, "ledger": unspent})
    assert unspent.spent == {"epsilon": 0.0}


def test_saved_records_of_before_and_contradictions():
    X, y, ids = panel()
    text = quiet(X, y, persons=dpci.Persons(ids, max_rows=4)).to_json()
    assert '"persons": {"max_rows": 4}' in text or '"persons":{"max_rows":4}' in text.replace(" ", "")
    for old, new in (('"max_rows"', '"most"'), ("tight", "paper"), ('"max_rows": 4', '"max_rows": 0')):
        assert old in text
        with pytest.raises(InvalidInput):
            dpci.PrivateFit.from_json(io.StringIO(text.replace(old, new)).read())


def test_the_guarantee_counts_persons():
    rule = {"n_samples": 2000, "n_features": 9, "budget": dpci.ApproxDP(1.0, 1e-6), "l2_strength": 0.01}
    row, person = dpci.plan(**rule).guarantee, dpci.plan(persons=dpci.Persons(), **rule).guarantee
    assert person.delta(1.0) <= 1e-6 * (1 + 1e-9)
    few = dpci.plan(persons=dpci.Persons(max_rows=2), **rule).guarantee
    of_row, of_few, of_person = (_core.Testing.log_det(found.profile) for found in (row, few, person))
    assert of_row < of_few < of_person


def test_missing_ids_of_any_library_are_refused():
    nan = float("nan")
    for bad in (
        list(np.array([1.0, nan, nan])),
        [np.datetime64("2020"), np.datetime64("NaT", "D")],
        [Decimal(1), Decimal("nan")],
        [Decimal(1), Decimal("snan")],
        np.zeros(3, dtype=[("state", int), ("number", int)]),
        np.array([1.0, complex(nan, 0)]),
        [object(), object()],
        [(1, nan), (1, nan)],
    ):
        with pytest.raises(InvalidInput, match="persons must have"):
            numbered(bad, len(bad))


def test_masked_ids_of_a_table_are_refused():
    with pytest.raises(InvalidInput, match="masked"):
        as_cells(np.ma.array([1, 2, 3], mask=[0, 1, 0]))


def test_parts_whose_schema_names_persons_are_refused(tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text("id,a,y\n1,0.2,0.1\n1,0.4,0.9\n2,0.6,0.5\n")
    target = schema.NumericTarget(column="y", lower=0, upper=1)
    columns = [schema.NumericColumn(name="a", lower=0, upper=1)]
    parts = dpci.Chunks.from_csv(file, schema=schema.Schema(columns=columns, target=target, persons="id"))
    for release in (
        lambda: dpci.fit(
            parts,
            budget=dpci.PureDP(1.0),
            l2_strength=1.0,
            loss="squared",
            mechanism=dpci.ObjectivePerturbation(radius=1.0),
        ),
        lambda: dpci.fit(parts, budget=dpci.ZCDP(1.0), loss="squared"),
        lambda: dpci.regression.release(parts, budget=dpci.ZCDP(1.0), target_bound=1.0),
    ):
        with pytest.raises(InvalidInput, match="names a column of persons"):
            release()


def test_a_plan_with_a_schema_of_persons_is_that_of_the_fit():
    X, y, ids = panel(n=200)
    named = schema.Schema(
        columns=tuple(schema.NumericColumn(name=name, lower=-1, upper=1) for name in "ab"),
        target=schema.ClassTarget(column="y", negative=(-1,), positive=(1,)),
        persons="who",
    )
    table = {"a": X[:, 0], "b": X[:, 1], "y": y, "who": ids}
    given = {"schema": named, "budget": dpci.PureDP(4.0), "l2_strength": 0.2}
    for rule in ({}, {"persons": dpci.Persons()}, {"persons": dpci.Persons(max_rows=2)}):
        plan = dpci.plan(n_samples=200, **rule, **given)
        max_rows = None if not rule else rule["persons"].max_rows
        fit = dpci.fit(table, persons=dpci.Persons("who", max_rows=max_rows), **given)
        assert plan.steps[0].to_dict() == fit.privacy["steps"][0]
        assert "n=200 persons, lambda=0.2" in plan.title
        assert str(plan.persons) in plan.summary()
        assert fit.summary(full=True).count(str(plan.persons)) == 1
    for rule, message in (
        (dpci.Persons("who"), "persons must have no ids in a plan"),
        ("who", r"persons must be dpci.Persons\(\) or dpci.Persons\(max_rows=...\) in a plan"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dpci.plan(n_samples=200, persons=rule, **given)
    assert "persons" not in dpci.plan(n_samples=200, n_features=2, budget=dpci.PureDP(1.0), l2_strength=0.2).summary()
