"""The warfarin data: rows chosen by the consortium's rules, public scaling, and a file that is never fetched."""

import csv
import gzip
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pooch
import pytest

from dpci import datasets
from dpci.cli.main import main
from dpci.datasets import files as _files
from dpci.datasets import warfarin as _warfarin
from dpci.datasets.catalogue import CATALOGUE, WARFARIN
from dpci.datasets.warfarin import warfarin_table
from dpci.errors import InvalidInput

FILE = WARFARIN.files["train"]
real = pytest.mark.skipif(_files.find(FILE) is None, reason="the warfarin file is not in DPCI_DATA")

HEADER = ("PharmGKB Subject ID", *_warfarin._COLUMNS, "VKORC1 497 consensus", "")
_FLAGS = (*_warfarin._INDUCERS, "Amiodarone (Cordarone)", "Subject Reached Stable Dose of Warfarin")
GOOD = {
    "Age": "60 - 69",
    "Race": "White",
    "Height (cm)": "165",
    "Weight (kg)": "105",
    "Amiodarone (Cordarone)": "0",
    "Carbamazepine (Tegretol)": "NA",
    "Phenytoin (Dilantin)": "",
    "Rifampin or Rifampicin": "0",
    "Subject Reached Stable Dose of Warfarin": "1",
    "Therapeutic Dose of Warfarin": "81",
    "CYP2C9 consensus": "*1/*1",
    "VKORC1 -1639 consensus": "G/G",
}


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
    data = datasets.load_warfarin(write(tmp_path / "w.csv", *changes))
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
    merged = datasets.load_warfarin(tmp_path / "w.csv", unknown_race="reference", largest_dose=100)
    assert merged.X.shape == (4, 14)
    np.testing.assert_array_equal(merged.X, np.delete(data.X, 5, axis=1))
    np.testing.assert_allclose(merged.y, [0.8, -1.0, 0.8, 1.0], atol=1e-15)


@pytest.mark.parametrize("missing", ["Age", "Height (cm)", "Weight (kg)", "Therapeutic Dose of Warfarin"])
def test_incomplete_rows_are_left_out(tmp_path: Path, missing: str) -> None:
    changes = ({}, {missing: "NA"}, {missing: ""}, {"CYP2C9 consensus": "NA"}, {"VKORC1 -1639 consensus": "NA"})
    path = write(tmp_path / "w.csv.gz", *changes, {"Subject Reached Stable Dose of Warfarin": "NA"})
    assert len(datasets.load_warfarin(path).y) == 1
    assert len(datasets.load_warfarin(path, stable_only=False).y) == 2


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
        datasets.load_warfarin(write(tmp_path / "w.csv", {}, change))


def test_files_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(datasets.DatasetUnavailable, match=r"can be read, got .*none\.csv"):
        datasets.load_warfarin(tmp_path / "none.csv")
    (tmp_path / "w.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InvalidInput, match="must have the columns of the consortium's table, got none named 'Age'"):
        datasets.load_warfarin(tmp_path / "w.csv")
    for content in (b"", b"\xff\xfe\x00"):
        (tmp_path / "w.csv").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"w\.csv"):
            datasets.load_warfarin(tmp_path / "w.csv")
    (tmp_path / "w.csv.gz").write_bytes(b"no archive")
    with pytest.raises(datasets.DatasetUnavailable, match="can be read"):
        datasets.load_warfarin(tmp_path / "w.csv.gz")
    with pytest.raises(InvalidInput, match="must have a complete row"):
        datasets.load_warfarin(write(tmp_path / "w.csv"))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"stable_only": "yes"}, "stable_only"),
        ({"genotypes": "guessed"}, "genotypes"),
        ({"unknown_race": None}, "unknown_race"),
        ({"largest_dose": math.nan}, "largest_dose must be finite and > 0"),
        ({"largest_dose": 0}, "largest_dose"),
        ({"largest_dose": "324"}, "largest_dose"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, option: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        datasets.load_warfarin(write(tmp_path / "w.csv", {}), **option)


def test_it_is_never_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch(*_: object) -> None:
        pytest.fail("the file was to be downloaded")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fetch)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache" / name)
    monkeypatch.delenv("DPCI_DATA", raising=False)
    cached = tmp_path / "cache" / "dpci" / FILE.path
    cached.parent.mkdir(parents=True)
    write(cached, {})
    with pytest.raises(datasets.DatasetUnavailable, match=r"set DPCI_DATA .*which dpci never downloads"):
        datasets.load_warfarin()
    assert FILE.url is None
    assert all(file.url for entry in CATALOGUE.values() for file in entry.files.values())
    # Another file in the place of the published one is refused, and accepted when it is named.
    monkeypatch.setenv("DPCI_DATA", str(tmp_path / "cache" / "dpci"))
    with pytest.raises(datasets.DatasetUnavailable, match="must be the published file with sha256"):
        datasets.load_warfarin()
    assert len(datasets.load_warfarin(cached).y) == 1


@real
@pytest.mark.parametrize(
    ("options", "n"),
    [({}, 3_450), ({"stable_only": False}, 3_524), ({"genotypes": "imputed"}, 4_196)],
)
def test_counts(options: dict[str, object], n: int) -> None:
    data = datasets.load_warfarin(**options)
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
    listed = datasets.load_schema("warfarin").columns[-1].categories
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


@real
def test_it_can_be_listed_and_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data"]) == 0
    line = capsys.readouterr().out.splitlines()[-1].split("  ")
    assert line[0] == "warfarin"
    assert "CC BY-SA 4.0" in line
    assert main(["data", "warfarin", "--export", str(tmp_path / "w.csv")]) == 0
    X, y, _ = datasets.load_schema("warfarin").transform(dict(zip(*columns(tmp_path / "w.csv"), strict=True)))
    np.testing.assert_allclose(X, datasets.load_warfarin().X, atol=1e-12)
    np.testing.assert_allclose(y, datasets.load_warfarin().y, atol=1e-12)


def columns(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return header, [list(column) for column in zip(*rows, strict=True)]
