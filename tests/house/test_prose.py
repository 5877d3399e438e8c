"""Plain words for readers: no word of the list in pages, docstrings and messages, no overlong sentence on a page.

The package vale of the Python index downloads a program, and proselint takes code and formulas for prose. Hence these
two rules, which need the standard library only.
"""

import ast
import re
import tomllib
from pathlib import Path

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
