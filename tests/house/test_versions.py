"""Versions: one number everywhere, in the citation too, and a changelog in its form."""

import re
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import dpci

ROOT = Path(__file__).parents[2]


def test_one_version_everywhere():
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    assert workspace == dpci.__version__
    assert re.findall(r'name = "dpci-(?:core|py)"\nversion = "(.*)"', lock) == [workspace] * 2


def test_the_changelog_has_the_form_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert re.fullmatch(r"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", versions[0])
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d{2}-\d{2}", line) for line in versions[1:])
    kinds = [line.removeprefix("### ") for line in lines if line.startswith("### ")]
    assert kinds
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


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
