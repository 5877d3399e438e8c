"""Versions: one number everywhere, and a changelog in its form."""

import re
import tomllib
from pathlib import Path

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
