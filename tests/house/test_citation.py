"""CITATION.cff names the version of the package and is what its format asks for."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import dpci

ROOT = Path(__file__).parents[2]


def test_the_citation_names_this_version():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which comes with 'dpci[docs]'")
    record = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert record["version"] == dpci.__version__
    assert f'version = "{record["version"]}"' in (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    assert {"cff-version", "message", "title", "authors"} <= record.keys()
    assert record["authors"] == [{"name": "The dpci developers"}]


@pytest.mark.skipif(find_spec("cffconvert") is None, reason="needs cffconvert, which is not among the extras")
def test_the_citation_is_valid():
    from cffconvert import Citation  # noqa: PLC0415  # optional

    Citation((ROOT / "CITATION.cff").read_text(encoding="utf-8")).validate()
