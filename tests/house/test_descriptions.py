"""The first word of a description is the noun of the thing, or a verb: never one that points at something else."""

import ast
import re
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("rust", "python/dpci", "tests", "benches", "examples", "fuzz")

# "What is public of a fit", "Of the noise", "Those of a sample", "As for fit": the thing itself is named elsewhere.
POINTS_ELSEWHERE = re.compile(r"[\W_]*(?:what|of|that|those|as)\b", re.IGNORECASE)
# A block of documentation of Rust, or of comments on an attribute of Python: its first line, after the mark.
FIRST_LINES = {
    ".rs": re.compile(r"(?<!/)(//[/!])(?!/) ?(.*)"),
    ".py": re.compile(r"\s*(#:) ?(.*)"),
    ".pyi": re.compile(r"\s*(#:) ?(.*)"),
}


def commented(text, suffix):
    """First lines of the blocks of comments that document something, each with its number."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = FIRST_LINES[suffix].match(line.lstrip() if suffix == ".rs" else line)
        mark = found[1] if found else ""
        if found and mark != before:
            yield number, found[2]
        before = mark


def documented(text):
    """First lines of docstrings, also of those below an attribute, and of the descriptions of their parameters."""
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            lines = value.value.splitlines()
            yield value.lineno, lines[0]
            margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
            for number, (name, first) in enumerate(pairwise(lines[1:]), value.lineno + 2):
                if re.match(rf" {{{margin}}}\S", name) and re.match(rf" {{{margin + 4}}}\S", first):
                    yield number, first.strip()


def descriptions(path, text):
    """First lines of all descriptions of a file, each with its number."""
    yield from commented(text, path.suffix)
    if path.suffix != ".rs":
        yield from documented(text)


def test_a_description_begins_with_what_the_thing_is():
    files = [path for folder in FOLDERS for suffix in FIRST_LINES for path in (ROOT / folder).rglob(f"*{suffix}")]
    read = [(path, found) for path in sorted(files) for found in descriptions(path, path.read_text(encoding="utf-8"))]
    assert len(read) > 7_000
    found = [
        f"{path.relative_to(ROOT)}:{number}: {first}" for path, (number, first) in read if POINTS_ELSEWHERE.match(first)
    ]
    assert found == []


def test_the_reader_finds_every_kind_of_description():
    rust = (
        "//! What it is.\n//! And more.\n\n/// A law.\n/// Of noise.\nfn f() {\n    /// As g.\n    x: i32,\n}\n// that"
    )
    assert [number for number, _ in descriptions(Path("f.rs"), rust)] == [1, 4, 7]
    python = '''"""Of a module."""

@: That of the noise.
@: And more.
RATE = 1


class Law:
    """A law.

    Parameters
    ----------
    scale : float
        What it is multiplied with.
        As before.
    """

    scale: float
    """Those of a law."""
'''.replace("@", "#")
    found = [(number, first) for number, first in descriptions(Path("f.py"), python) if POINTS_ELSEWHERE.match(first)]
    assert sorted(found) == [
        (1, "Of a module."),
        (3, "That of the noise."),
        (14, "What it is multiplied with."),
        (19, "Those of a law."),
    ]
    assert not POINTS_ELSEWHERE.match("Whatever; Offset; Assumptions; `of`")
