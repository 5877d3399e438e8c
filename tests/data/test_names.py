"""Names are the same however they were typed, and rows are converted once."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci import regression
from dpci.audit import model_inversion
from dpci.data import arrays
from dpci.data.labels import CodedLabels
from dpci.errors import InvalidInput, RegularizationTooSmall
from dpci.schema import CategoricalColumn, ClassTarget, Levels, NumericColumn, NumericTarget, Power, Schema, Term
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning")

ONE = "é"
TWO = unicodedata.normalize("NFD", ONE)
N = 600
SETTINGS = {"budget": dpci.PureDP(100.0), "l2_strength": 0.05, "seed": 1}


def table(name=ONE, category=ONE):
    rng = np.random.default_rng(0)
    columns = {name: rng.uniform(0.0, 1.0, N), "c": rng.choice(["a", category], N)}
    return {**columns, "state": rng.choice(["n", category], N), "ill": np.where(columns[name] > 0.5, "yes", "no")}


def schema(name=ONE, category=ONE, **keywords):
    columns = (
        NumericColumn(name=name, lower=0.0, upper=1.0),
        CategoricalColumn(name="c", categories=("a", category), reference="a"),
    )
    target = ClassTarget(column="ill", negative=("no",), positive=("yes",))
    return Schema(**{"columns": columns, "target": target, **keywords})


@pytest.fixture(scope="module")
def fitted():
    return dpci.fit(table(), schema=schema(), **SETTINGS)


@pytest.mark.parametrize("name", [ONE, TWO], ids=["one", "two"])
class TestNamesOfParameters:
    def test_in_contrasts(self, fitted, name):
        for contrast in (f"c={name}", [f"c={name}"], {f"c={name}": 1.0}, np.array([f"c={name}"])):
            found = fitted.conf_int(contrast=contrast)
            assert found.names == (f"c={ONE}",)
            assert found.estimate[0] == pytest.approx(fitted.params[1], rel=1e-12)

    def test_in_labels_of_rows_and_values(self, fitted, name):
        row = pd.Series({f"c={name}": 2.0, name: 1.0})
        np.testing.assert_array_equal(
            fitted.conf_int(contrast=row).estimate, fitted.conf_int(contrast=[1.0, 2.0, 0.0]).estimate
        )
        tested = fitted.wald_test([f"c={name}", ONE], value=pd.Series([0.0, 1.0], index=[f"c={ONE}", name]))
        assert tested.pvalue == fitted.wald_test([f"c={ONE}", ONE], value=[0.0, 1.0]).pvalue

    def test_in_schemas_and_their_tables(self, name):
        for other in (ONE, TWO):
            X, _, names = schema(name, other).transform(table(other, name))
            assert names == (ONE, f"c={ONE}")
            np.testing.assert_array_equal(X, schema().transform(table())[0])
        assert schema(name).digest == schema(ONE).digest
        assert not [finding for finding in schema(name).check(table(TWO)).findings if finding.refused]
        terms = Term((Power(column=name),)), Term((Levels(column="c", reference=name),))
        assert schema(terms=terms).names == (ONE, "c=a")
        assert Schema.from_formula(f"ill ~ {name} + C(c, ref='{name}')", schema()).names == (ONE, "c=a")
        assert Schema.from_formula(f"ill ~ `{name}`:c", schema(TWO)).terms[0].columns == (ONE, "c")

    def test_in_frames_that_are_predicted(self, fitted, name):
        frame = pd.DataFrame(table(name, name))
        np.testing.assert_array_equal(fitted.predict(frame), fitted.predict(pd.DataFrame(table())))
        result = dpci.fit(pd.DataFrame({TWO: frame[name]}), frame["ill"] == "yes", rows=dpci.rows.Ball(1.0), **SETTINGS)
        assert result.names == (ONE, "intercept")
        assert len(result.predict(pd.DataFrame({name: frame[name]}))) == N

    @pytest.mark.parametrize("ending", ["csv", "parquet"])
    def test_in_files(self, tmp_path, name, ending):
        path = tmp_path / f"table.{ending}"
        frame = pd.DataFrame(table(name)).assign(**{f"id{name}": np.arange(N)})
        if ending == "parquet":
            pytest.importorskip("pyarrow", reason="reads Parquet files")
            frame.to_parquet(path)
            numbers = tmp_path / "numbers.parquet"
            frame[[name, f"id{name}"]].assign(**{f"y{name}": frame["ill"] == "yes"}).to_parquet(numbers)
            chunks = dpci.Chunks.from_parquet(numbers, target=f"y{ONE}", columns=[TWO], beside=[f"id{TWO}"])
            result = dpci.fit(
                chunks, None, persons=f"id{ONE}", classes=(False, True), rows=dpci.rows.Ball(1.0), **SETTINGS
            )
            assert result.names == (ONE, "intercept")
        else:
            frame.to_csv(path, index=False)
        result = dpci.fit(path, None, schema=schema(TWO), persons=f"id{ONE}", **SETTINGS)
        assert result.names == (ONE, f"c={ONE}", "intercept")

    def test_in_moment_matrices(self, name):
        frame = pd.DataFrame({TWO: table()[ONE], "z": np.random.default_rng(1).uniform(-1.0, 1.0, N)})
        y = pd.Series(frame[TWO].to_numpy(), name=f"y{name}")
        keywords = {"budget": dpci.ZCDP(1e4), "rows": dpci.rows.Ball(2.0), "target_bound": 1.0, "seed": 1}
        planned = regression.Regression(target=f"y{ONE}", features=[name])
        matrix = regression.release(frame, y, robust=[planned], **keywords)
        assert matrix.targets == (f"y{ONE}",)
        assert matrix.fit(f"y{name}", [name], covariance="robust").names == (ONE, "intercept")
        assert matrix.means([name]).names == (ONE,)

    def test_in_strata(self, name):
        common = {"schema": schema(), "budget": dpci.PureDP(100.0), "l2_strength": 0.05, "seed": 1}
        data = {**table(), f"by{TWO}": table(category=TWO)["state"]}
        fits = dpci.fit_strata(data, by=f"by{name}", strata=("n", name), n_public={"n": 300, TWO: 300}, **common)
        assert fits.by == f"by{ONE}"
        assert list(fits) == ["n", ONE]
        assert fits[name] is fits[ONE]
        assert name in fits
        assert fits.conf_int(f"c={name}").names == ("n", ONE)
        assert fits.compare("n", name).names == fits[ONE].names

    def test_in_audits(self, name):
        numeric = schema(target=NumericTarget(column="y", lower=0.0, upper=1.0))
        X, y, names = numeric.transform({**table(), "y": table()[ONE]})
        frame = pd.DataFrame(X, columns=names)
        result = dpci.fit(frame, y, **assembled(loss="squared", radius=1.0, **SETTINGS))
        expected = {"residual_variance": 0.1, "on": 1.0 / numeric.row_scale}
        found = model_inversion(result, frame, y, column=[f"c={name}"], prior={"a": 0.5, f"c={TWO}": 0.5}, **expected)
        assert found.guesses.shape == (N,)
        found = model_inversion(result, frame, y, column="c", prior={"a": 0.5, name: 0.5}, **expected)
        assert found.guesses.shape == (N,)


def test_equal_names_are_refused():
    X, y = np.zeros((2, 1)), [True, False]
    two_groups = {ONE: (X, y), TWO: (X, y)}
    with pytest.raises(InvalidInput, match="the keys of groups must differ, got 'é' twice"):
        dpci.fit_many(two_groups, budget=dpci.PureDP(1.0), l2_strength=0.1, disjoint=True)
    with pytest.raises(InvalidInput, match="a table must have different column names, got 'é' 2 times"):
        schema().transform({**table(ONE), **table(TWO)})
    with pytest.raises(InvalidInput, match="a schema must name a column once"):
        schema(columns=tuple(NumericColumn(name=name, lower=0.0, upper=1.0) for name in (ONE, TWO)))
    result = dpci.fit(table(), schema=schema(), **SETTINGS)
    with pytest.raises(InvalidInput, match="the names in contrast must differ, got 'c=é' twice"):
        result.conf_int(contrast={f"c={ONE}": 1.0, f"c={TWO}": -1.0})


def test_groups_keep_the_keys_that_were_given():
    X, y = np.tile([[0.6], [-0.6]], (300, 1)), np.tile([True, False], 300)
    ids = np.arange(600)
    keywords = {"budget": dpci.PureDP(100.0), "l2_strength": 0.1, "seed": 1}
    fits = dpci.fit_many({TWO: (X, y), "b": (X, y)}, persons={ONE: ids, "b": ids}, **keywords)
    assert list(fits) == [TWO, "b"]


RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, size=(400, 2))
Y = X[:, 0] > 0
REALS = np.clip(X[:, 0], -1.0, 1.0)
PURE = dpci.PureDP(3.0)
FIT = {"budget": PURE, "l2_strength": 0.1, "seed": 1}
TUNE = {"budget": PURE, "candidates": [{"l2_strength": 0.1}, {"l2_strength": 0.2}], "validation_radius": 4.0, "seed": 1}
BINS = [dpci.baselines.Bins(column=i, lower=-1.0, upper=1.0, count=3) for i in range(2)]

READERS = {
    "fit": lambda X: dpci.fit(X, Y, **FIT),
    "tune": lambda X: dpci.tuning.tune(X, Y, **TUNE),
    "parts": lambda X: dpci.tuning.tune(X, Y, method="chunks", **TUNE),
    "rule": lambda X: dpci.tuning.tune(X, Y, budget=PURE, method="public_rule", mechanism="output", seed=1),
    "oracle": lambda X: dpci.tuning.oracle_not_private(X, Y, budget=PURE, candidates=TUNE["candidates"], n_runs=1),
    "report": lambda X: dpci.per_instance.report(
        X, Y, budget=dpci.ApproxDP(1.0, 1e-6), l2_strength=0.2, n_public=400, seed=1
    ),
    "functional": lambda X: dpci.baselines.functional_mechanism(X, REALS, budget=PURE, seed=1),
    "histogram": lambda X: dpci.baselines.projected_histogram(
        X, REALS, budget=PURE, axes=BINS, l2_strength=0.1, seed=1
    ),
    "non-private": lambda X: dpci.baselines.non_private(X, Y, loss="logistic", l2_strength=0.1),
    "coverage": lambda X: dpci.simulate.coverage(
        X, Y, budget=PURE, l2_strength=0.1, n_replicates=2, n_variability=2, n_threads=1
    ),
    "curve": lambda X: dpci.utility.curve(X, Y, at=PURE, l2_strength=0.1),
}


@pytest.mark.parametrize("reader", READERS)
def test_rows_are_converted_once(reader, monkeypatch):
    converted = []
    convert = arrays._dense

    def count(table):
        converted.append(table)
        return convert(table)

    monkeypatch.setattr(arrays, "_dense", count)
    table = X.tolist()
    READERS[reader](table)
    assert len(converted) == 1
    assert converted[0] is table


def test_what_public_choices_rule_out_is_refused_before_targets_are_looked_at():
    with pytest.raises(RegularizationTooSmall):
        dpci.fit(X, ["a", "b", "c", "d"] * 100, budget=dpci.PureDP(1e-3), l2_strength=1e-6)


def test_coded_labels_are_the_labels():
    labels = np.where(Y, "yes", "no")
    coded = CodedLabels(np.where(Y, 1.0, -1.0), ("no", "yes"))
    given = dpci.fit(X, labels, classes=("no", "yes"), **FIT).to_json()
    assert dpci.fit(X, coded, classes=("no", "yes"), **FIT).to_json() == given
    parts = [dpci.Chunks(lambda y=y: iter([(X[:150], y(0, 150)), (X[150:], y(150, 400))])) for y in cuts(labels, coded)]
    in_parts = [dpci.fit(chunks, classes=("no", "yes"), **FIT).to_json() for chunks in parts]
    assert in_parts[0] == in_parts[1]
    with pytest.raises(InvalidInput, match="y must have one entry for each row of X, got 400 entries and 10 rows"):
        dpci.fit(X[:10], coded, classes=("no", "yes"), **FIT)


def cuts(labels, coded):
    """Two functions that return a part: of labels, and of coded ones."""
    return lambda i, j: labels[i:j], lambda i, j: CodedLabels(coded.values[i:j], coded.classes)  # noqa: PD011  # no frame
