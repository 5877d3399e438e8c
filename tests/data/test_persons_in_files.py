"""Persons and weights of rows in files: the fit of the whole table; a person cut in two is refused."""

import numpy as np
import pandas as pd
import pytest

import dpci

N = 900
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"pid": np.sort(RNG.integers(0, 200, N)), "age": RNG.uniform(18, 80, N), "w": RNG.uniform(0, 2, N)}
)
TABLE["ill"] = np.where(0.05 * (TABLE.age - 50) + RNG.logistic(size=N) > 0, "yes", "no")
SCHEMA = dpci.schema.Schema(
    columns=(dpci.schema.NumericColumn(name="age", lower=18, upper=80),),
    target=dpci.schema.ClassTarget(column="ill", negative="no", positive="yes"),
    persons="pid",
)
KEYWORDS = {"schema": SCHEMA, "budget": dpci.ZCDP(0.5), "l2_strength": 0.05, "persons": "pid"}

pytestmark = pytest.mark.filterwarnings("ignore::dpci.SeededNoiseWarning")


def test_a_csv_file_is_its_table(tmp_path):
    path = tmp_path / "people.csv"
    TABLE.to_csv(path, index=False)
    ours = dpci.fit(dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("pid",)), seed=1, **KEYWORDS)
    theirs = dpci.fit(TABLE, seed=1, **KEYWORDS)
    assert ours.n_samples == theirs.n_samples == TABLE.pid.nunique()
    np.testing.assert_allclose(ours.params, theirs.params, atol=1e-12)
    ledger = dpci.Ledger(dpci.ZCDP(1.0))
    # Chunks are cut between persons, whose rows follow each other.
    cut = dpci.fit(dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("pid",), chunk_rows=7), seed=1, **KEYWORDS)
    np.testing.assert_allclose(cut.params, theirs.params, atol=1e-12)
    shuffled = tmp_path / "shuffled.csv"
    TABLE.sample(frac=1.0, random_state=0).to_csv(shuffled, index=False)
    for chunks, message in (
        (
            dpci.Chunks.from_csv(shuffled, schema=SCHEMA, beside=("pid",), chunk_rows=100),
            "all of their rows in one part",
        ),
        (dpci.Chunks.from_csv(path, schema=SCHEMA), "must have the column 'pid' of persons beside its rows"),
        (dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("pid", "w")), "'w', which is not"),
    ):
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.fit(chunks, ledger=ledger, **KEYWORDS)
    assert ledger.history == ()


def test_csv_files_have_weights_as_texts(tmp_path):
    path = tmp_path / "people.csv"
    TABLE.to_csv(path, index=False)
    weighted = {"weights": "w", "weight_bound": 2.0, "seed": 1, **KEYWORDS}
    theirs = dpci.fit(TABLE, **weighted)
    source = dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("w", "pid"), chunk_rows=50)
    np.testing.assert_allclose(dpci.fit(source, **weighted).params, theirs.params, atol=1e-12)
    np.testing.assert_allclose(dpci.fit(path, **weighted).params, theirs.params, atol=1e-12)
    for bad, message in (("1_0", "a number in every row"), ("", "a number in every row"), ("3.5", "weight_bound=2")):
        broken = TABLE.astype({"w": object})
        broken.loc[400, "w"] = bad
        broken.to_csv(path, index=False)
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.fit(path, **weighted)


def test_records_without_an_id_are_refused(tmp_path):
    path = tmp_path / "people.csv"
    broken = TABLE.astype({"pid": object})
    broken.loc[400, "pid"] = ""
    broken.to_csv(path, index=False)
    with pytest.raises(dpci.InvalidInput, match=r"missing ids|id in every row"):
        dpci.fit(path, **KEYWORDS)


def test_a_file_is_cut_between_the_persons_that_are_named(tmp_path):
    path = tmp_path / "people.csv"
    TABLE.to_csv(path, index=False)
    plain = dpci.schema.Schema(columns=SCHEMA.columns, target=SCHEMA.target)
    given = {**KEYWORDS, "schema": plain}
    theirs = dpci.fit(TABLE, seed=1, **given)
    source = dpci.Chunks.from_csv(path, schema=plain, beside=("pid",), together="pid", chunk_rows=1)
    np.testing.assert_allclose(dpci.fit(source, seed=1, **given).params, theirs.params, atol=1e-12)
    with pytest.raises(dpci.InvalidInput, match="together must be one of the columns"):
        dpci.Chunks.from_csv(path, schema=plain, together="pid")


def test_parquet_files_have_weights_too(tmp_path):
    pytest.importorskip("pyarrow")
    cut = int(np.searchsorted(TABLE.pid, 90))
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, part in zip(paths, (TABLE[:cut], TABLE[cut:]), strict=True):
        part.to_parquet(path, index=False)
    weighted = {"weights": "w", "weight_bound": 2.0, "seed": 1, **KEYWORDS}
    source = dpci.Chunks.from_parquet(paths, schema=SCHEMA, beside=("pid", "w"), chunk_rows=30)
    ours = dpci.fit(source, **weighted)
    np.testing.assert_allclose(ours.params, dpci.fit(TABLE, **weighted).params, atol=1e-12)
