"""Steps of the site's build: pages from the top of the repository, help of the commands, formulas as MathML."""

import contextlib
import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from posixpath import normpath
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]

# Pages of the site that have another name in the repository, most of them at its top.
FROM_THE_TOP = {
    "README.md": "index.md",
    "docs/README.md": "contents.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/embedding/README.md": "guides/embedding_example.md",
}
HELP_MARK = "<!-- help of the commands -->"
LOGS_MARK = "<!-- list of the logs -->"

_LINK = re.compile(r"(?<!!)\[([^\]\[]*)\]\((?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\()docs/")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">(?:\\\((.*?)\\\)|\\\[(.*?)\\\])</\1>', re.DOTALL)
_FUNCTION = re.compile(r"(</(?:mi|mn|msub|msup|mfrac|mtext)>)(?=<mi>[a-z]{2,}</mi>)")
# What the converter reads differently from TeX: a prime is a superscript that takes no power, and \arg is unknown.
_UNLIKE_TEX = {"'": r"\text{′}", r"\arg": r"\operatorname{arg}"}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from the top of the repository."""
    for source, page in FROM_THE_TOP.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository into links of the site; what is not on the site keeps its text only."""
    source = next((top for top, name in FROM_THE_TOP.items() if name == page.file.src_uri), f"docs/{page.file.src_uri}")
    known = {file.src_uri for file in files if file.inclusion.is_included()}
    depth = page.file.src_uri.count("/")

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        path = normpath(f"{Path(source).parent.as_posix()}/{target}")
        place = FROM_THE_TOP.get(path, path.removeprefix("docs/"))
        return f"[{text}]({'../' * depth}{place}{anchor})" if place in known else text

    # Marks of the log of four systems, which are no references.
    markdown = markdown.replace("[run]", r"\[run\]") if page.file.src_uri.startswith("evidence/") else markdown
    if source in FROM_THE_TOP:
        markdown = _IMAGE.sub(r"\1", markdown)
    markdown = _outside_of_code(markdown, lambda text: _LINK.sub(link, text))
    if LOGS_MARK in markdown:
        return markdown.replace(LOGS_MARK, _logs(config.nav or []))
    return markdown.replace(HELP_MARK, _help()) if HELP_MARK in markdown else markdown


def on_page_content(content: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001  # called by name
    """Write formulas as MathML, which browsers show without a script."""

    def formula(match: re.Match[str]) -> str:
        inline, block = match[2], match[3]
        tex = html.unescape(inline or block)
        for written, read in _UNLIKE_TEX.items():
            tex = tex.replace(written, read)
        mathml = convert(tex, display="inline" if inline else "block")
        # A brace of a given size, as \big\{, keeps its backslash, and names of functions touch what is before them.
        mathml = mathml.replace("\\{", "{").replace("\\}", "}")
        return _FUNCTION.sub(r'\1<mspace width="0.17em"/>', mathml)

    return _FORMULA.sub(formula, content)


def _outside_of_code(markdown: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(^```.*?^```\s*$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else change(part) for part in parts)


def _logs(nav: list[Any]) -> str:
    """Return the logs of the menu, each with a link, under the headings that they have there."""
    (evidence,) = (part["Evidence"] for part in nav if "Evidence" in part)
    sections = [next(iter(part.items())) for part in evidence if isinstance(part, dict)]
    return "\n\n".join(
        f"## {name}\n\n" + "\n".join(f"- [{title}]({_name(path)})" for page in logs for title, path in page.items())
        for name, logs in sections
        if isinstance(logs, list)
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _help(*command: str) -> str:
    """Return what `--help` says of a command and those below it, with a heading each."""
    from dpci.cli.main import main  # noqa: PLC0415  # the package must be built for this page alone

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main([*command, "--help"])
    text = printed.getvalue().strip()
    below = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    pages = [f"## `{' '.join(('dpci', *command))}`\n\n```text\n{text}\n```"]
    return "\n\n".join([*pages, *(_help(*command, name) for name in re.findall(r"^  (\w+)", below, re.MULTILINE))])
