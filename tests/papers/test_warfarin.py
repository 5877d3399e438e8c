"""The warfarin data: rows chosen by the consortium's rules, public scaling, and a file that is never fetched."""

import csv
import gzip
import math
import os
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dpci.datasets import DatasetUnavailable
from dpci.errors import InvalidInput
from papers.wu import warfarin as _warfarin
from papers.wu.warfarin import FILE, SCHEMA, load_warfarin, warfarin_table

real = pytest.mark.skipif(
    not list(Path(os.environ.get("DPCI_DATA", "/nowhere")).glob(f"{FILE}*")),
    reason="the warfarin file is not in DPCI_DATA",
)

HEADER = ("PharmGKB Subject ID", *_warfarin._COLUMNS, "VKORC1 497 consensus", "")
_FLAGS = (*_warfarin._INDUCERS, "Amiodarone (Cordarone)", "Subject Reached Stable Dose of Warfarin")
GOOD = {
    "Age": "60 - 69", "Race": "White", "Height (cm)": "165", "Weight (kg)": "105", "Amiodarone (Cordarone)": "0",
    "Carbamazepine (Tegretol)": "NA", "Phenytoin (Dilantin)": "", "Rifampin or Rifampicin": "0",
    "Subject Reached Stable Dose of Warfarin": "1", "Therapeutic Dose of Warfarin": "81", "CYP2C9 consensus": "*1/*1",
    "VKORC1 -1639 consensus": "G/G",
}  # fmt: skip


def write(path: Path, *changes: dict[str, str]) -> Path:
    """A file with the consortium's header, a row for each set of changes to a plain patient, and an empty last line."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8-sig", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(HEADER)
        for number, change in enumerate(changes):
            row = {"PharmGKB Subject ID": f"PA{number}", **GOOD, **change}
            lines.writerow([row.get(name, "NA") if name else "" for name in HEADER])
        lines.writerow([""] * len(HEADER))
    return path


def test_rows_follow_the_public_bounds(tmp_path: Path) -> None:
    changes = (
        {},
        {"Age": "90+", "Race": "Unknown", "Rifampin or Rifampicin": "1", "Therapeutic Dose of Warfarin": "0"},
        {"Age": "10 - 19", "Height (cm)": "300", "VKORC1 -1639 consensus": "A/A", "CYP2C9 consensus": "*1/*5"},
        {"Amiodarone (Cordarone)": "1", "CYP2C9 consensus": "*2/*3", "Therapeutic Dose of Warfarin": "400"},
    )
    data = load_warfarin(write(tmp_path / "w.csv", *changes))
    assert data.X.shape == (4, 15)
    assert data.names[:6] == ("age", "height", "weight", "race=Asian", "race=Black or African American", "race=Unknown")
    assert data.names[6:10] == ("enzyme_inducer=yes", "amiodarone=yes", "vkorc1=A/G", "vkorc1=A/A")
    expected = np.zeros((4, 15))
    expected[:, 0] = [0.25, 1.0, -1.0, 0.25]  # decades 1 to 9
    expected[2, 1] = 1.0  # 300 cm is clipped to 210; 165 is the middle, as 105 kg is
    expected[1, [5, 6]] = 1.0
    expected[2, 9] = 1.0  # the rare CYP2C9 genotype counts as the reference
    expected[3, 7] = expected[3, 13] = 1.0
    np.testing.assert_allclose(data.X, expected / math.sqrt(8), atol=1e-12)
    # sqrt(81) is half of sqrt(324); 400 mg are clipped.
    np.testing.assert_allclose(data.y, [0.0, -1.0, 0.0, 1.0], atol=1e-15)
    assert "CC BY-SA 4.0" in data.licence
    merged = load_warfarin(tmp_path / "w.csv", unknown_race="reference", largest_dose=100)
    assert merged.X.shape == (4, 14)
    np.testing.assert_array_equal(merged.X, np.delete(data.X, 5, axis=1))
    np.testing.assert_allclose(merged.y, [0.8, -1.0, 0.8, 1.0], atol=1e-15)


@pytest.mark.parametrize("missing", ["Age", "Height (cm)", "Weight (kg)", "Therapeutic Dose of Warfarin"])
def test_incomplete_rows_are_left_out(tmp_path: Path, missing: str) -> None:
    changes = ({}, {missing: "NA"}, {missing: ""}, {"CYP2C9 consensus": "NA"}, {"VKORC1 -1639 consensus": "NA"})
    path = write(tmp_path / "w.csv.gz", *changes, {"Subject Reached Stable Dose of Warfarin": "NA"})
    assert len(load_warfarin(path).y) == 1
    assert len(load_warfarin(path, stable_only=False).y) == 2


def test_flags_are_numbers(tmp_path: Path) -> None:
    # As pandas writes a column with gaps.
    changes = [
        {"Amiodarone (Cordarone)": "1.0", "Subject Reached Stable Dose of Warfarin": "1.0"},
        {"Phenytoin (Dilantin)": "1.0", "Amiodarone (Cordarone)": "0.0"},
        {"Carbamazepine (Tegretol)": "0.0", "Amiodarone (Cordarone)": ""},
        {"Subject Reached Stable Dose of Warfarin": "0.0"},
        {"Subject Reached Stable Dose of Warfarin": ""},
    ]
    table = warfarin_table(write(tmp_path / "w.csv", *changes))
    assert table["amiodarone"].tolist() == ["yes", "no", "no"]
    assert table["enzyme_inducer"].tolist() == ["no", "yes", "no"]


def test_every_decade(tmp_path: Path) -> None:
    ages = [*(f"{k}0 - {k}9" for k in range(1, 9)), "90+", "NA"]
    table = warfarin_table(write(tmp_path / "w.csv", *({"Age": age} for age in ages)))
    assert table["age"].tolist() == list(range(1, 10))


@pytest.mark.parametrize(
    ("race", "sites", "genotype"),
    [
        ("White", {"2255": "C/C", "1173": "T/T"}, "G/G"),  # 2255 comes first
        ("Asian", {"2255": "NA", "1173": "T/T", "1542": "G/G"}, "A/A"),
        ("Asian", {"1542": "C/G"}, "A/G"),
        ("Unknown", {"2255": "C/C", "1173": "C/T"}, "A/G"),  # only 1173 tells for these two
        ("Black or African American", {"1173": "C/C"}, "G/G"),
        ("Black or African American", {"2255": "C/C", "1542": "C/C"}, None),
        ("White", {"497": "T/T"}, None),
    ],
)
def test_imputed_genotypes(tmp_path: Path, race: str, sites: dict[str, str], genotype: str | None) -> None:
    change = {"Race": race, "VKORC1 -1639 consensus": "NA", **{f"VKORC1 {k} consensus": v for k, v in sites.items()}}
    table = warfarin_table(write(tmp_path / "w.csv", {}, change), genotypes="imputed")
    assert table["vkorc1"].tolist() == ["G/G", *([genotype] if genotype else [])]
    assert len(warfarin_table(tmp_path / "w.csv")["vkorc1"]) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Age": "old"}, "decades, '10 - 19' to '80 - 89' or '90\\+', got 'old' in row 2"),
        *(({"Age": age}, "must hold decades") for age in ("1", "15", "100+", "10-19", "90 - 99", "60 - 69 years")),
        *(
            ({flag: value}, f"column '{re.escape(flag)}' must hold .*, got '{value}' in row 2")
            for flag in _FLAGS
            for value in ("2", "-1", "0.5", "yes", "nan")
        ),
        (
            {"Carbamazepine (Tegretol)": "1", "Rifampin or Rifampicin": "2"},
            "'Rifampin or Rifampicin' must hold 0, 1 or NA",
        ),
        # Also where the row is left out.
        ({"Subject Reached Stable Dose of Warfarin": "0", "Phenytoin (Dilantin)": "?"}, "'Phenytoin"),
        ({"Height (cm)": "tall"}, "'Height \\(cm\\)' must hold numbers, got 'tall' in row 2"),
        ({"Therapeutic Dose of Warfarin": "-3"}, "must hold doses >= 0, got '-3' in row 2"),
        ({"Therapeutic Dose of Warfarin": "nan"}, "must hold doses >= 0, got 'nan' in row 2"),
        ({"Weight (kg)": "inf"}, "column 'weight' must hold finite numbers"),
    ],
)
def test_values_that_cannot_be(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load_warfarin(write(tmp_path / "w.csv", {}, change))


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"must be readable, got .*none\.csv"):
        load_warfarin(tmp_path / "none.csv")
    (tmp_path / "w.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="must have the columns of the consortium's table, got none named 'Age'"):
        load_warfarin(tmp_path / "w.csv")
    for content in (b"", b"\xff\xfe\x00"):
        (tmp_path / "w.csv").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"w\.csv"):
            load_warfarin(tmp_path / "w.csv")
    (tmp_path / "w.csv.gz").write_bytes(b"no archive")
    with pytest.raises(InvalidInput, match="must be readable"):
        load_warfarin(tmp_path / "w.csv.gz")
    with pytest.raises(InvalidInput, match="must have a complete row"):
        load_warfarin(write(tmp_path / "w.csv"))


@pytest.mark.parametrize("bound", [math.nan, math.inf, 0.0])
def test_bounds_that_cannot_be(tmp_path: Path, bound: float) -> None:
    with pytest.raises(InvalidInput, match="largest_dose must be finite and > 0"):
        load_warfarin(write(tmp_path / "w.csv", {}), largest_dose=bound)


def test_another_file_is_read_only_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPCI_DATA", raising=False)
    with pytest.raises(DatasetUnavailable, match="set DPCI_DATA to a folder with your copy, which is never downloaded"):
        load_warfarin()
    path = tmp_path / FILE
    path.parent.mkdir()
    write(path, {})
    monkeypatch.setenv("DPCI_DATA", str(tmp_path))
    with pytest.raises(DatasetUnavailable, match="must be the published file with sha256"):
        load_warfarin()
    assert len(load_warfarin(path).y) == 1


@real
@pytest.mark.parametrize(
    ("options", "n"), [({}, 3_450), ({"stable_only": False}, 3_524), ({"genotypes": "imputed"}, 4_196)]
)
def test_counts(options: dict[str, object], n: int) -> None:
    data = load_warfarin(**options)
    assert data.X.shape == (n, 15)
    assert data.X.dtype == data.y.dtype == np.float64
    assert data.X.flags.c_contiguous
    assert np.linalg.norm(data.X, axis=1).max() <= 1.0
    assert np.abs(data.y).max() <= 1.0


@real
def test_the_published_rows() -> None:
    table = warfarin_table()
    assert Counter(table["vkorc1"].tolist()) == {"A/A": 1_219, "A/G": 1_201, "G/G": 1_030}
    assert Counter(table["race"].tolist())["Unknown"] == 242
    listed = SCHEMA.columns[-1].categories
    assert (~np.isin(table["cyp2c9"], listed)).sum() == 11
    assert table["sqrt_dose"].max() == pytest.approx(17.748, abs=1e-3)
    assert [int((table[drug] == "yes").sum()) for drug in ("enzyme_inducer", "amiodarone")] == [29, 151]


@real
def test_the_rules_agree_with_measured_genotypes() -> None:
    rows = _warfarin._rows(None)
    told = [(_warfarin._imputed(row), row["VKORC1 -1639 consensus"]) for row in rows]
    both = [pair for pair in told if pair[0] and pair[1] != "NA"]
    assert (len(both), sum(guess == measured for guess, measured in both)) == (3_637, 3_580)
    filled = Counter(guess for guess, measured in told if measured == "NA")
    assert filled == {"A/G": 595, "G/G": 500, "A/A": 294, "": 110}


def test_the_schema_states_its_sources() -> None:
    assert SCHEMA.name == "warfarin"
    assert SCHEMA.source
    assert SCHEMA.licence == "CC BY-SA 4.0"
    assert all(column.source for column in SCHEMA.columns)
