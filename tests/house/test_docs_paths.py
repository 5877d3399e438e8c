"""Files that the pages name exist: tests, modules of the core, other pages and their evidence."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(
        page for folder in (".", "guides", "proofs", "reference") for page in (ROOT / "docs" / folder).glob("*.md")
    ),
    *(ROOT / f"{name}.md" for name in ("README", "SECURITY", "CONTRIBUTING")),
]

# What is in a folder of the repository, but not the end of an address or of another path.
IN_FOLDER = re.compile(r"(?<![\w/.:-])((?:tests|docs|evidence|benches|rust|fuzz|python)/[\w.*/-]*[\w*])")
# Targets of links, without what stands behind a "#".
LINKED = re.compile(r"\]\((?!https?:|mailto:)([^)#]+)")
# Tests and files of the core are named without their folder, or with a part of it.
ALONE = re.compile(r"(?<![\w/.*-])((?:[\w-]+/)*(?:test_[\w*]+\.py|[\w*]+\.rs))\b")


def missing(text, page):
    """Paths in the text of a page that lead nowhere; * stands for any characters."""
    named, linked, alone = (set(pattern.findall(text)) for pattern in (IN_FOLDER, LINKED, ALONE))
    found = {path for path in named if any(ROOT.glob(path)) or any((ROOT / "docs").glob(path))}
    found |= {path for path in linked if (page.parent / path).exists()}
    found |= {path for path in alone if any((ROOT / "tests").rglob(path)) or any((ROOT / "rust").rglob(path))}
    return sorted((named | linked | alone) - found)


def test_files_that_pages_name_exist():
    found = {page.relative_to(ROOT).as_posix(): missing(page.read_text(encoding="utf-8"), page) for page in PAGES}
    assert {page: paths for page, paths in found.items() if paths} == {}


@pytest.mark.parametrize(
    "name",
    [
        *(
            "`tests/none.py`",
            "`test_none*.py`",
            "`seal/none.rs`",
            "`none.rs`",
            "`evidence/none.md`",
            "`benches/no_*.py`",
        ),
        *("[none](none.md)", "[none](evidence/none.md#part)", "[none](../none.md)"),
    ],
)
def test_a_file_that_does_not_exist_is_found(name):
    page = ROOT / "docs" / "privacy.md"
    there = "`test_layers.py`, `tests/prove/test_*.py`, `seal/tests.rs`, `distances.rs`, `rust/dpci-core/src/noise`, "
    there += "[a](data.md#why-a-schema), [b](evidence/table_2.md), [c](../README.md), https://x.org/tests/none.py"
    assert missing(there, page) == []
    (found,) = missing(f"{there} {name}", page)
    assert found in name
