"""Prose: pages, docstrings and messages are plain, descriptions say what things are, files that pages name exist."""

import ast
import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))
WORDS = [(re.compile(pattern.replace(" ", r"\s+")), instead) for pattern, instead in RULES["words"].items()]
DOCS = ROOT / "docs"
FOR_USERS = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted(page for folder in ("", "guides", "reference") for page in (DOCS / folder).glob("*.md")),
]
APPENDICES = sorted((DOCS / "proofs").glob("*.md"))
# Pages for those who check proofs; other pages end with their proofs.
EXEMPT = {"bounds.md", "certificates.md", "inference_formulas.md"}
PROOFS = "\n## Appendix: proofs"
# What has nothing to run: lists of pages, comparisons, and pages for those who check proofs or work on the code.
NO_EXAMPLE = {
    *("README.md", "index.md", "command_line.md", "features.md", "trust.md", "performance.md", "fuzzing.md"),
    *("dependencies.md", "noise.md", "nist.md", "specimen.md", "tables.md", "model_inversion.md"),
    *("architecture.md", "decisions.md", *EXEMPT),
}


def prose(text):
    """The text of a page: without code, formulas and addresses of links, of which one word stays."""
    for pattern, left in (
        (re.compile(r"^```.*?^```\s*$", re.DOTALL | re.MULTILINE), "\n\n"),
        (re.compile(r"<!--.*?-->", re.DOTALL), ""),
        (re.compile(r"\$\$.*?\$\$", re.DOTALL), "M"),
        (re.compile(r"\$[^$]*?\$"), "M"),
        (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
        (re.compile(r"`[^`]*`"), "C"),
    ):
        text = pattern.sub(left, text)
    return text


def sentences(text):
    """Sentences of a page's prose, without tables and headings."""
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.)\s?)", text):
        if not paragraph.lstrip().startswith(("|", "#")):
            # A closing quotation mark or bracket may follow the full stop.
            yield from re.split(
                r"""(?<=[.!?:;])["')*]*\s+(?=["'(*]*[A-Zλερδ]|\*[a-z0-9])""", " ".join(paragraph.split())
            )


def listed(text):
    """Words of the list in a text, each with what stands around it."""
    return [
        f"{' '.join(text[max(0, hit.start() - 30) : hit.end() + 30].split())!r}: write {instead!r}"
        for pattern, instead in WORDS
        for hit in pattern.finditer(text)
    ]


def named(page):
    """The name of a page in a report."""
    return page.relative_to(ROOT).as_posix()


def test_pages_are_plain():
    texts = {page: prose(page.read_text(encoding="utf-8")) for page in [*FOR_USERS, *APPENDICES]}
    assert [(named(page), found) for page, text in texts.items() for found in listed(text)] == []
    bodies = {page: texts[page].partition(PROOFS)[0] for page in FOR_USERS if page.name not in EXEMPT}
    lines = [(named(page), sentence) for page, text in bodies.items() for sentence in sentences(text)]
    assert [(name, line) for name, line in lines if len(line.split()) > RULES["longest_sentence"]] == []


def lacks(page):
    """Things that a page for users needs and lacks: a title, a sentence that opens it, an example that a test runs."""
    text = page.read_text(encoding="utf-8")
    title, blank, first = text.splitlines()[:3]
    if not title.startswith("# ") or blank:
        yield "a title and an empty line"
    if not (first[:1].isalpha() or first[:1] == "`"):
        yield "a sentence that opens it"
    needs_example = page.is_relative_to(DOCS) and page.name not in NO_EXAMPLE
    if needs_example and not re.search(r"^```(?:python|console)$", text, re.MULTILINE):
        yield "an example that a test runs"


def test_pages_open_with_what_they_are_for(tmp_path):
    assert [(named(page), found) for page in FOR_USERS for found in lacks(page)] == []
    (tmp_path / "page.md").write_text("Title\n\n- one\n")
    assert len(list(lacks(tmp_path / "page.md"))) == 2


def test_docstrings_and_messages_are_plain():
    files = sorted((ROOT / "python" / "dpci").rglob("*.py"))
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno} {hit}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
        for hit in listed(node.value)
    ]
    assert found == []


# Names of numpydoc above a description that begins with a bare genitive: "Of the noise." says nothing by itself.
OF_WHAT = re.compile(r"^ *[\w`*]+(?:, [\w`*]+)* : .*\n +Of .*$", re.MULTILINE)


def test_a_description_says_what_the_thing_is():
    files = sorted((ROOT / "python" / "dpci").rglob("*.py"))
    assert [(file.name, found) for file in files for found in OF_WHAT.findall(file.read_text(encoding="utf-8"))] == []
    assert OF_WHAT.findall("    seed : int\n        Of the noise.\n    n : int\n        Number of draws.\n") == [
        "    seed : int\n        Of the noise."
    ]


def rust_texts(source):
    """String literals of a Rust file that have a space, without those of comments and of its tests."""
    code = re.sub(r"^\s*//.*$", "", source.partition("#[cfg(test)]\nmod tests {")[0], flags=re.MULTILINE)
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', code, re.DOTALL)
    return [re.sub(r"\\\n\s*", "", text) for text in literals if " " in text]


def test_messages_of_the_core_are_plain():
    files = [path for path in (ROOT / "rust").glob("*/src/**/*.rs") if "test" not in path.as_posix()]
    texts = [(path.name, text) for path in files for text in rust_texts(path.read_text(encoding="utf-8"))]
    assert len(texts) > 300
    assert [(name, found) for name, text in texts if (found := listed(text))] == []
    assert rust_texts('// "in a comment"\nf("a long \\\n    text", "one", "with \\"it\\"")') == [
        "a long text",
        'with \\"it\\"',
    ]


def test_the_rules_find_what_they_are_for():
    assert len(listed("The file is not to be had, and is read\nanew; else it is no release.")) == 4
    assert listed("The file is not available. Otherwise nothing is released.") == []
    text = prose("Of `a b c` and $x\n y$ [one two](three four.md)\n\n```python\nanew\n```\n")
    assert text.split() == ["Of", "C", "and", "M", "one", "two"]
    assert [len(sentence.split()) for sentence in sentences("One two. Three four five.\n\n| a | b |\n\n- Six\n")] == [
        2,
        3,
        2,
    ]


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
