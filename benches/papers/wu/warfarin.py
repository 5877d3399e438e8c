"""Reads the user's copy of the IWPC's warfarin data, chooses rows by public rules, and scales them by public bounds."""

import dataclasses
import hashlib
import math
import os
from collections.abc import Mapping
from itertools import zip_longest
from os import PathLike
from pathlib import Path
from typing import Final, Literal, TypeAlias

import numpy as np

from dpci.datasets import Dataset, DatasetUnavailable
from dpci.errors import InvalidInput
from dpci.schema import CategoricalColumn, NumericTarget, Schema
from papers.files import Table, read_bytes, read_csv

Genotypes: TypeAlias = Literal["consensus", "imputed"]
UnknownRace: TypeAlias = Literal["level", "reference"]

FILE = "iwpc_warfarin/warfarin.csv"
SHA256 = "13c37c04d28bee5c02b2ff55afbc256b11aec74b2d2eea284744dce1af697810"
LICENCE = (
    "CC BY-SA 4.0: International Warfarin Pharmacogenetics Consortium (2009), Estimation of the warfarin dose with "
    "clinical and pharmacogenetic data, N Engl J Med 360:753-764, distributed by PharmGKB"
)
SCHEMA: Final = Schema.from_file(Path(__file__).with_name("warfarin.toml"))
"""Public description of the rows."""

_MISSING = ("", "NA")
# What pandas makes of the flags of a column with gaps is 1.0 and 0.0.
_FLAGS: Final = {0.0: False, 1.0: True}
_DECADES: Final = {**{f"{k}0 - {k}9": k for k in range(1, 9)}, "90+": 9}

# Columns of the file by the names of the schema.
_NUMBERS: Final = {"height": "Height (cm)", "weight": "Weight (kg)"}
_AGE, _RACE, _AMIODARONE = "Age", "Race", "Amiodarone (Cordarone)"
_INDUCERS = ("Carbamazepine (Tegretol)", "Phenytoin (Dilantin)", "Rifampin or Rifampicin")
_STABLE, _DOSE = "Subject Reached Stable Dose of Warfarin", "Therapeutic Dose of Warfarin"
_CYP2C9, _VKORC1 = "CYP2C9 consensus", "VKORC1 -1639 consensus"

# The consortium's rules for a missing genotype at -1639 (supplementary appendix, section S4), in its order: the site
# that tells, what its genotypes stand for, and whether the rule holds for every race.
_IMPUTATION: Final = (
    ("VKORC1 2255 consensus", {"C/C": "G/G", "T/T": "A/A", "C/T": "A/G"}, False),
    ("VKORC1 1173 consensus", {"C/C": "G/G", "T/T": "A/A", "C/T": "A/G"}, True),
    ("VKORC1 1542 consensus", {"G/G": "G/G", "C/C": "A/A", "C/G": "A/G"}, False),
)
_NO_RULE = ("Black or African American", "Unknown")

_COLUMNS = (
    *(_AGE, _RACE, *_NUMBERS.values(), _AMIODARONE, *_INDUCERS, _STABLE, _DOSE, _CYP2C9, _VKORC1),
    *(site for site, _, _ in _IMPUTATION),
)
_Row: TypeAlias = Mapping[str, str]


def load_warfarin(
    path: str | PathLike[str] | None = None,
    *,
    stable_only: bool = True,
    genotypes: Genotypes = "consensus",
    unknown_race: UnknownRace = "level",
    largest_dose: float = 324.0,
) -> Dataset:
    """Doses of the International Warfarin Pharmacogenetics Consortium, for regression: 3,450 patients, 15 columns.

    The file is share-alike (CC BY-SA 4.0) and one row is one patient, so it is neither packaged nor downloaded: it is
    read from ``path`` or from the folder that ``DPCI_DATA`` names.

    Parameters
    ----------
    path : path-like, optional
        CSV of the consortium's table, plain or ``.gz``, with its own column names in any order. None: the file
        ``iwpc_warfarin/warfarin.csv`` in ``DPCI_DATA``, whose checksum is verified.
    stable_only : bool
        Only patients marked as having reached a stable dose; otherwise 3,524.
    genotypes : {"consensus", "imputed"}
        VKORC1 -1639 as the file's consensus column has it; or, where that is missing, derived from a neighbouring site
        by the consortium's rules, which gives 4,196 rows (4,275 with ``stable_only=False``).
    unknown_race : {"level", "reference"}
        Whether unknown race has a column of its own (15 columns) or counts as the reference, White (14 columns).
    largest_dose : float
        Public bound of the weekly dose in mg. The target is its square root, 0 to the root of the bound scaled to
        [-1, 1]; larger doses are clipped.

    Returns
    -------
    Dataset
        Rows of norm at most 1, scaled by the public bounds of ``warfarin.toml``; ``y`` as said in [-1, 1].

    Raises
    ------
    DatasetUnavailable
        The file is not in ``DPCI_DATA``, or is not the published one.
    InvalidInput
        ``path`` names a file that cannot be read or has another layout, a value of it is none that its column can hold,
        or ``largest_dose`` is out of range.

    Notes
    -----
    A row is kept if age, height, weight, dose and both genotypes are known; a missing answer on amiodarone or an enzyme
    inducer is read as no. Each rule looks at one row at a time, but how many rows are left is a fact about the data,
    which for this file has been published.
    """
    schema = _schema(unknown_race, largest_dose)
    X, y, names = schema.transform(warfarin_table(path, stable_only=stable_only, genotypes=genotypes))
    return Dataset(X=X, y=y, names=names, schema=schema, licence=LICENCE)


def warfarin_table(
    path: str | PathLike[str] | None = None, *, stable_only: bool = True, genotypes: Genotypes = "consensus"
) -> Table:
    """Columns of the schema in ``warfarin.toml`` before scaling; arguments and errors as for `load_warfarin`."""
    kept = []
    for number, row in enumerate(_rows(path), start=1):
        taken = _taken(row, number, *_INDUCERS), _taken(row, number, _AMIODARONE)
        if not _flag(row, _STABLE, number) and stable_only:
            continue
        vkorc1 = row[_VKORC1]
        if vkorc1 in _MISSING and genotypes == "imputed":
            vkorc1 = _imputed(row)
        needed = (row[_AGE], *(row[column] for column in _NUMBERS.values()), row[_DOSE], row[_CYP2C9], vkorc1)
        if not any(value in _MISSING for value in needed):
            kept.append((*_numbers(row, number), *taken, row[_RACE], vkorc1, row[_CYP2C9]))
    if not kept:
        raise InvalidInput("the table of warfarin doses must have a complete row, got none")
    names = ("age", *_NUMBERS, "sqrt_dose", "enzyme_inducer", "amiodarone", "race", "vkorc1", "cyp2c9")
    return {name: np.array(column) for name, column in zip(names, zip(*kept, strict=True), strict=True)}


def _schema(unknown_race: UnknownRace, largest_dose: float) -> Schema:
    if not (0.0 < largest_dose < math.inf):
        raise InvalidInput(f"largest_dose must be finite and > 0, got largest_dose={largest_dose}")
    columns = tuple(
        dataclasses.replace(column, categories=tuple(name for name in column.categories if name != "Unknown"))
        if isinstance(column, CategoricalColumn) and column.name == "race" and unknown_race == "reference"
        else column
        for column in SCHEMA.columns
    )
    target = NumericTarget(column="sqrt_dose", lower=0.0, upper=math.sqrt(largest_dose))
    return dataclasses.replace(SCHEMA, columns=columns, target=target)


def _rows(path: str | PathLike[str] | None) -> list[dict[str, str]]:
    """Return the lines of the file by the names in its header, without blank ones."""
    name, content = _published() if path is None else (str(path), read_bytes(Path(path)))
    header, lines = read_csv(name, content)
    if missing := [column for column in _COLUMNS if column not in header]:
        msg = f"{name} must have the columns of the consortium's table, got none named {missing[0]!r}"
        raise InvalidInput(msg)
    # Spreadsheets leave out the empty cells at the end of a line.
    cells = (dict(zip_longest(header, line[: len(header)], fillvalue="")) for line in lines)
    rows = [{column: row[column].strip() for column in _COLUMNS} for row in cells]
    return [row for row in rows if any(row.values())]


def _published() -> tuple[str, bytes]:
    """Return the published file in the user's folder of data, and its name."""
    folder = os.environ.get("DPCI_DATA")
    copies = [Path(folder) / f"{FILE}{ending}" for ending in (".gz", "")] if folder else []
    path = next((copy for copy in copies if copy.is_file()), None)
    if path is None:
        msg = f"{FILE} is not available: set DPCI_DATA to a folder with your copy, which is never downloaded"
        raise DatasetUnavailable(msg, file=FILE)
    content = read_bytes(path)
    if (got := hashlib.sha256(content).hexdigest()) != SHA256:
        msg = f"{path} must be the published file with sha256 {SHA256}, got {got}"
        raise DatasetUnavailable(msg, file=FILE)
    return str(path), content


def _imputed(row: _Row) -> str:
    for site, meaning, every_race in _IMPUTATION:
        if row[site] in meaning and (every_race or row[_RACE] not in _NO_RULE):
            return meaning[row[site]]
    return ""


def _numbers(row: _Row, number: int) -> tuple[float, float, float, float]:
    """Age in decades, height, weight, square root of the dose."""
    dose = _number(row, _DOSE, number)
    if not (0.0 <= dose < math.inf):
        raise InvalidInput(f"column {_DOSE!r} must hold doses >= 0, got {row[_DOSE]!r} in row {number}")
    height, weight = (_number(row, column, number) for column in _NUMBERS.values())
    if row[_AGE] not in _DECADES:
        msg = f"column {_AGE!r} must hold decades, '10 - 19' to '80 - 89' or '90+', got {row[_AGE]!r} in row {number}"
        raise InvalidInput(msg)
    return float(_DECADES[row[_AGE]]), height, weight, math.sqrt(dose)


def _taken(row: _Row, number: int, *drugs: str) -> str:
    # All answers are read, so that a wrong one is found behind a yes.
    answers = [_flag(row, drug, number) for drug in drugs]
    return "yes" if any(answers) else "no"


def _flag(row: _Row, column: str, number: int) -> bool:
    """Whether a flag is 1; a missing one is read as no."""
    if row[column] in _MISSING:
        return False
    value = _number(row, column, number)
    if value not in _FLAGS:
        raise InvalidInput(f"column {column!r} must hold 0, 1 or NA, got {row[column]!r} in row {number}")
    return _FLAGS[value]


def _number(row: _Row, column: str, number: int) -> float:
    try:
        return float(row[column])
    except ValueError as error:
        raise InvalidInput(f"column {column!r} must hold numbers, got {row[column]!r} in row {number}") from error
