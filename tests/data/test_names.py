"""Names are looked up however they were typed: an accented letter is one character of Unicode, or two."""

import unicodedata

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci import regression
from dpci.audit import model_inversion
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, ClassTarget, Levels, NumericColumn, NumericTarget, Power, Schema, Term
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings(
    "ignore::dpci.SeededNoiseWarning", "ignore::dpci.MomentNoiseWarning", "ignore::dpci.PrivacyLeakWarning"
)

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
            assert found.estimate[0] == fitted.params[1]

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
