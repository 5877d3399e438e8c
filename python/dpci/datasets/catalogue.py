"""The public data sets that dpci can read: files, addresses, checksums, layout and licence."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


def _same_bytes(content: bytes) -> bytes:
    return content


def _whole_numbers(content: bytes) -> bytes:
    """Cells of a CSV file with one header line, as little-endian int64 in order of rows.

    The credit card data were published as a spreadsheet; exports differ in line ends and in 200000 against 2.00E+05, so
    the values are compared and not the bytes.
    """
    return np.loadtxt(io.BytesIO(content), delimiter=",", skiprows=1).astype("<i8").tobytes()


@dataclass(frozen=True, kw_only=True)
class PublicFile:
    """One published file: where it lies below a data folder, where it comes from, and how it is recognised."""

    path: str
    """Below `DPCI_DATA` or the cache; a copy compressed by gzip has ``.gz`` appended."""
    url: str
    sha256: str
    """Checksum of the uncompressed content in its canonical form, or of the archive as published: see `sha256_of`."""
    sha256_of: Literal["content", "archive"] = "content"
    """An archive is verified as it is, and its content is streamed: it would be too large to be held as text."""
    member: str | None = None
    """Name inside the archive at `url`, if that is a zip archive."""
    url_is_gzip: bool = False
    canonical: Callable[[bytes], bytes] = _same_bytes

    def digest(self, content: bytes) -> str:
        """Return what `sha256` is compared with, of some uncompressed content."""
        try:
            return hashlib.sha256(self.canonical(content)).hexdigest()
        except ValueError:
            return "a file of another kind"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How the lines of a file are read, which columns are numbers, and which values of the target are positive."""

    columns: tuple[str, ...]
    numeric: tuple[str, ...]
    target: str
    positive: tuple[str, ...]
    delimiter: str = ","
    has_header: bool = False
    comment: str | None = None
    ignored: tuple[str, ...] = ()
    width: int = 32
    """Characters of a text column, more than any category has: a longer text is cut, and still equals none of them."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set of the catalogue: its files, their layout, and on what terms it may be used."""

    name: str
    files: dict[str, PublicFile]
    """By split."""
    licence: str
    citation: str
    n_rows: dict[str, int]
    layout: Layout


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADULT = Entry(
    name="adult",
    files={
        "train": PublicFile(
            path="adult/adult.data",
            url=f"{UCI}/adult/adult.data",
            sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        "test": PublicFile(
            path="adult/adult.test",
            url=f"{UCI}/adult/adult.test",
            sha256="a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ),
    },
    layout=Layout(
        columns=_words(
            "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
            "capital-gain capital-loss hours-per-week native-country income"
        ),
        numeric=_words("age fnlwgt education-num capital-gain capital-loss hours-per-week"),
        target="income",
        positive=(">50K", ">50K."),
        comment="|",
    ),
    licence="CC BY 4.0",
    citation="Becker and Kohavi (1996), Adult, UCI Machine Learning Repository, doi 10.24432/C5XW20",
    n_rows={"train": 32_561, "test": 16_281},
)

BANK = Entry(
    name="bank",
    files={
        "train": PublicFile(
            path="bank_marketing/bank-full.csv",
            url=f"{UCI}/00222/bank.zip",
            member="bank-full.csv",
            sha256="d1513ec63b385506f7cfce9f2c5caa9fe99e7ba4e8c3fa264b3aaf0f849ed32d",
        )
    },
    layout=Layout(
        columns=_words(
            "age job marital education default balance housing loan contact day month duration campaign pdays previous "
            "poutcome y"
        ),
        numeric=_words("age balance day duration campaign pdays previous"),
        target="y",
        positive=("yes",),
        delimiter=";",
        has_header=True,
    ),
    licence="CC BY 4.0",
    citation="Moro, Rita and Cortez (2012), Bank Marketing, UCI Machine Learning Repository, doi 10.24432/C5K306",
    n_rows={"train": 45_211},
)

CREDIT_DEFAULT = Entry(
    name="credit_default",
    files={
        "train": PublicFile(
            path="credit_default/default_of_credit_card_clients.csv",
            url="https://archive.ics.uci.edu/static/public/350/data.csv",
            sha256="7d0c12ad5a87c1ba4b09d18a85664be31614e173fe5fb6feca9bfb568e3f6749",
            canonical=_whole_numbers,
        )
    },
    layout=Layout(
        columns=("ID", *(f"X{i}" for i in range(1, 24)), "Y"),
        numeric=("X1", *(f"X{i}" for i in range(5, 24))),
        target="Y",
        positive=("1",),
        has_header=True,
        ignored=("ID",),
    ),
    licence="CC BY 4.0",
    citation="Yeh (2009), Default of Credit Card Clients, UCI Machine Learning Repository, doi 10.24432/C55S3H",
    n_rows={"train": 30_000},
)

_KDD_CATEGORICAL = ("protocol_type", "service", "flag")
_KDD_COLUMNS = _words(
    "duration protocol_type service flag src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins "
    "logged_in num_compromised root_shell su_attempted num_root num_file_creations num_shells num_access_files "
    "num_outbound_cmds is_host_login is_guest_login count srv_count serror_rate srv_serror_rate rerror_rate "
    "srv_rerror_rate same_srv_rate diff_srv_rate srv_diff_host_rate dst_host_count dst_host_srv_count "
    "dst_host_same_srv_rate dst_host_diff_srv_rate dst_host_same_src_port_rate dst_host_srv_diff_host_rate "
    "dst_host_serror_rate dst_host_srv_serror_rate dst_host_rerror_rate dst_host_srv_rerror_rate"
)

KDDCUP99 = Entry(
    name="kddcup99",
    files={
        "percent10": PublicFile(
            path="kddcup99/kddcup.data_10_percent",
            url="https://ndownloader.figshare.com/files/5976042",
            url_is_gzip=True,
            sha256="f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
        ),
        "full": PublicFile(
            path="kddcup99/kddcup.data",
            url="https://ndownloader.figshare.com/files/5976045",
            url_is_gzip=True,
            sha256="3b6c942aa0356c0ca35b7b595a26c89d343652c9db428893e7494f837b274292",
            sha256_of="archive",
        ),
    },
    layout=Layout(
        columns=(*_KDD_COLUMNS, "label"),
        numeric=tuple(column for column in _KDD_COLUMNS if column not in _KDD_CATEGORICAL),
        target="label",
        positive=("normal.",),
        width=20,
    ),
    licence="CC BY 4.0",
    citation="Stolfo et al. (1999), KDD Cup 1999 Data, UCI Machine Learning Repository, doi 10.24432/C51C7N",
    n_rows={"percent10": 494_021, "full": 4_898_431},
)

CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in (ADULT, BANK, CREDIT_DEFAULT, KDDCUP99)}
