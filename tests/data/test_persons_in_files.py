"""Persons and weights of rows in files: the fit of the whole table; a person cut in two is refused."""

import itertools

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.sources.files import uncut

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
    weighted = {"weights": dpci.Weights("w", bound=2.0), "seed": 1, **KEYWORDS}
    theirs = dpci.fit(TABLE, **weighted)
    source = dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("w", "pid"), chunk_rows=50)
    np.testing.assert_allclose(dpci.fit(source, **weighted).params, theirs.params, atol=1e-12)
    np.testing.assert_allclose(dpci.fit(path, **weighted).params, theirs.params, atol=1e-12)
    for bad, message in (
        ("1_0", "a number in every row"),
        (" 1,5", "decimal point"),
        ("", "a number in every row"),
        ("NA", "a number in every row"),
        ("inf", "weight_bound=2"),
        ("-1", "weight_bound=2"),
        ("3.5", "weight_bound=2"),
    ):
        broken = TABLE.astype({"w": object})
        broken.loc[400, "w"] = bad
        broken.to_csv(path, index=False)
        with pytest.raises(dpci.InvalidInput, match=message):
            dpci.fit(path, **weighted)


@pytest.mark.parametrize("cell", ["", "  ", "NA", "nan"])
def test_records_without_an_id_are_refused(tmp_path, cell):
    """The cells that hold nothing are those of any column of a table."""
    path = tmp_path / "people.csv"
    broken = TABLE.astype({"pid": object})
    broken.loc[400, "pid"] = cell
    broken.to_csv(path, index=False)
    with pytest.raises(dpci.InvalidInput, match=r"missing ids|id in every row"):
        dpci.fit(path, **KEYWORDS)


@pytest.mark.parametrize("chunk_rows", [1, 7, 65_536])
def test_a_person_whose_id_is_written_in_several_ways_is_one(tmp_path, chunk_rows):
    """With a space, and with the decimals that a gap gives to whole numbers: two ids would be two persons."""
    path = tmp_path / "people.csv"
    ways = np.resize(["{}", "{} ", "{}.0", " {}\t"], N)
    written = TABLE.astype({"pid": object})
    written["pid"] = [way.format(pid) for way, pid in zip(ways, TABLE.pid, strict=True)]
    written.to_csv(path, index=False)
    theirs = dpci.fit(TABLE, seed=1, **KEYWORDS)
    source = dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("pid",), chunk_rows=chunk_rows)
    ours = dpci.fit(source, seed=1, **KEYWORDS)
    assert ours.n_samples == theirs.n_samples
    np.testing.assert_allclose(ours.params, theirs.params, atol=1e-12)


def test_parts_with_ids_that_are_written_in_two_ways_have_the_person_twice(tmp_path):
    path = [tmp_path / f"{k}.csv" for k in range(2)]
    TABLE[:500].to_csv(path[0], index=False)
    TABLE[499:].assign(pid=TABLE.pid[499:].map("{}.0".format)).to_csv(path[1], index=False)
    with pytest.raises(dpci.InvalidInput, match="all of their rows in one part"):
        dpci.fit(dpci.Chunks.from_csv(path, schema=SCHEMA, beside=("pid",)), **KEYWORDS)


def test_the_rows_of_a_person_of_many_chunks_are_put_together_once(monkeypatch):
    """Time grows with the rows of a person, not with their square."""
    copied, concatenate = [], np.concatenate

    def counting(parts):
        copied.append(sum(map(len, parts)))
        return concatenate(parts)

    monkeypatch.setattr(np, "concatenate", counting)
    (found,) = uncut(({"pid": np.array([7]), "age": np.array([k])} for k in range(500)), "pid")
    assert found["age"].tolist() == list(range(500))
    assert sum(copied) == 2 * 500


def test_batches_are_cut_where_ids_change():
    texts = ["a", "a ", "b", "b", "b", "1", "1.0", " 1", "c", "", "d"]
    for size in range(1, len(texts) + 1):
        batches = [{"pid": texts[k : k + size]} for k in range(0, len(texts), size)]
        found = [part["pid"] for part in uncut([*batches, {"pid": []}], "pid")]
        assert [cell for part in found for cell in part] == texts
        owners = [{cell.strip().removesuffix(".0") for cell in part} for part in found]
        assert all(not first & second for first, second in itertools.combinations(owners, 2))
    assert list(uncut([{"pid": []}], "pid")) == [{"pid": []}]
    gaps = [np.array([1.0, np.nan]), np.array([np.nan, 2.0])]
    found = [part["pid"] for part in uncut([{"pid": cells} for cells in gaps], "pid")]
    np.testing.assert_array_equal(np.concatenate(found), np.concatenate(gaps))


def test_lists_of_a_parquet_file_are_no_ids(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "people.parquet"
    TABLE.assign(pid=[[int(pid), 1] for pid in TABLE.pid]).to_parquet(path, index=False)
    with pytest.raises(dpci.InvalidInput, match="persons must"):
        dpci.fit(dpci.Chunks.from_parquet(path, schema=SCHEMA, beside=("pid",), chunk_rows=30), **KEYWORDS)


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
    weighted = {"weights": dpci.Weights("w", bound=2.0), "seed": 1, **KEYWORDS}
    source = dpci.Chunks.from_parquet(paths, schema=SCHEMA, beside=("pid", "w"), chunk_rows=30)
    ours = dpci.fit(source, **weighted)
    np.testing.assert_allclose(ours.params, dpci.fit(TABLE, **weighted).params, atol=1e-12)
