"""The seeded mistakes: each has one place in the core, and nothing of them is in the extension that is installed."""

import re
import tomllib
from pathlib import Path

import pytest

from dpci import _core

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust" / "dpci-core"
SOURCE = (CORE / "src" / "bugs.rs").read_text(encoding="utf-8")
BUGS = re.findall(r"^    (\w+),$", SOURCE.split("pub enum Bug {")[1].split("\n}")[0], re.MULTILINE)
MARK = re.search(r'MARK: &str = "([^"]+)"', SOURCE).group(1)


def test_there_are_ten():
    assert len(BUGS) == 10


@pytest.mark.parametrize("bug", BUGS)
def test_every_mistake_has_one_place_and_one_detector(bug):
    files = {path: path.read_text(encoding="utf-8") for path in (CORE / "src").rglob("*.rs") if path.name != "bugs.rs"}
    places = [path.name for path, text in files.items() for _ in re.findall(rf"\bBug::{bug}\b", text)]
    # The stale draw is kept where the switch is.
    assert len(places) == (0 if bug == "StaleDraw" else 1), places
    detectors = (CORE / "tests" / "seeded_bugs.rs").read_text(encoding="utf-8")
    assert len(re.findall(rf"\(Bug::{bug}, Detector::\w+\)", detectors)) == 1


def test_the_stale_draw_has_one_place():
    files = [path.read_text(encoding="utf-8") for path in (CORE / "src").rglob("*.rs") if path.name != "bugs.rs"]
    assert sum(text.count("bugs::stale(") for text in files) == 1


# An extension that is built with the feature fails both: whatever releases asks for the mistakes, and carries the mark.


def test_the_extension_says_that_it_has_none():
    assert _core.Testing.SEEDED_BUGS is False


def test_the_extension_has_no_trace():
    assert MARK.encode() not in Path(_core.__file__).read_bytes()


def test_nothing_but_its_test_asks_for_the_feature():
    core = tomllib.loads((CORE / "Cargo.toml").read_text(encoding="utf-8"))
    assert core["features"] == {"internals": [], "seeded-bugs": ["internals"]}
    assert core["test"] == [{"name": "seeded_bugs", "required-features": ["seeded-bugs"]}]
    for manifest in (ROOT / "Cargo.toml", ROOT / "rust" / "dpci-py" / "Cargo.toml", ROOT / "pyproject.toml"):
        text = manifest.read_text(encoding="utf-8")
        assert "seeded-bugs" not in text
        assert "all-features" not in text
    commands = (ROOT / "Makefile").read_text(encoding="utf-8")
    asking = [line.split() for line in commands.splitlines() if "seeded-bugs" in line or "all-features" in line]
    assert all("cargo" in line and {"test", "clippy"} & {*line} for line in asking), asking
