"""Docstrings as the site shows them: roles and pages become links, and asterisks of formulas stay asterisks."""

import importlib.util
import re
from pathlib import Path

from griffe import Class, Docstring, Extension, Module, Object
from pymdownx.slugs import slugify

DOCS = Path(__file__).parents[1]
# The merging of docstrings of estimators, in a file that needs no compiled core.
_FILE = DOCS.parent / "python" / "dpci" / "sklearn" / "docstrings.py"

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([^`]+)`")
_CODE = re.compile(r"(``.*?``|`.*?`)")
# A page, perhaps with a section: docs/data.md, "Models".
_PAGE = re.compile(r'\bdocs/([\w/]+)\.md(?:(,\s+)"([^"]+)")?')
# An entry of a numpydoc section, such as "**keywords : Any", has no text of Markdown.
_ENTRY = re.compile(r"^\*{0,2}\w+(?:, \*{0,2}\w+)*( : .*)?$")
# Entries that the parser misunderstands: it takes the first of {"a", "b"} for a default, and a hyphen for a minus.
_CHOICES = re.compile(r"^(\w[\w, ]* : )\{(.*)\}")
_HYPHEN = re.compile(r"(?<=\w)-(?=like\b)")
_SEVERAL = re.compile(r"^\w+(?:, \w+)+$")


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: object) -> None:  # noqa: ARG002  # called by name
        """Rewrite the docstring of one object."""
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value, obj.path)

    def on_package(self, *, pkg: Module, **kwargs: object) -> None:  # noqa: ARG002  # called by name
        """Give the classes that are decorated with ``described`` the parameters of their base classes, too."""
        found = importlib.util.spec_from_file_location("merging", _FILE)
        merging = importlib.util.module_from_spec(found)
        found.loader.exec_module(merging)
        merged = {kind: merging.merged(_docstrings(kind)) for kind in _classes(pkg) if _is_described(kind)}
        for kind, text in merged.items():
            kind.docstring = Docstring(text, parent=kind, lineno=kind.docstring.lineno)


def _classes(module: Module) -> list[Class]:
    """Return the classes of a package, where they are defined."""
    here = [member for member in module.members.values() if not member.is_alias]
    inner = [kind for member in here if member.is_module for kind in _classes(member)]
    return inner + [member for member in here if member.is_class]


def _is_described(kind: Class) -> bool:
    return any(str(decorator.value) == "described" for decorator in kind.decorators)


def _docstrings(kind: Class) -> list[str]:
    return [base.docstring.value for base in [*reversed(kind.mro()), kind] if base.docstring]


def as_markdown(docstring: str, path: str) -> str:
    """Return a docstring in Markdown; ``path`` is the object that it describes."""
    lines, in_example = [], False
    for line in _PAGE.sub(_page, _one_by_one(docstring)).splitlines():
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if in_example:
            lines.append(line)
        elif _ENTRY.match(line):
            line = _CHOICES.sub(lambda match: match[1] + match[2].replace(", ", " or "), line)  # noqa: PLW2901
            lines.append(_HYPHEN.sub("\N{NON-BREAKING HYPHEN}", line))
        else:
            lines.append(_line(line, path))
    return "\n".join(lines)


def _one_by_one(docstring: str) -> str:
    """Write parameters that share a description and have no type one by one, so that each has the type of its own."""
    before, heading, after = docstring.partition("Parameters\n----------\n")
    lines, found = after.splitlines(), []
    while lines:
        line = lines.pop(0)
        if line.startswith("---"):  # the next section
            return before + heading + "\n".join([*found, line, *lines])
        if not _SEVERAL.match(line):
            found.append(line)
            continue
        below = []
        while lines and lines[0].startswith(" "):
            below.append(lines.pop(0))
        found += [text for name in line.split(", ") for text in (name, *below)]
    return before + heading + "\n".join(found)


def _page(match: re.Match[str]) -> str:
    """Return a link to a page, as it is from the pages of the reference."""
    name, comma, section = match.groups()
    title = (DOCS / f"{name}.md").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    if section is None:
        return f"[{title}](../{name}.md)"
    anchor = slugify(case="lower")(" ".join(section.split()), "-")
    return f'[{title}{comma}"{section}"](../{name}.md#{anchor})'


def _line(line: str, path: str) -> str:
    line = _ROLE.sub(lambda match: _link(match[1], match[2], path), line)
    return "".join(part if part.startswith("`") else part.replace("*", r"\*") for part in _CODE.split(line))


def _link(short: str, target: str, path: str) -> str:
    shown = target.rsplit(".", 1)[-1] if short else target
    # Names without a module are those of the same module or class, next to the reader: no link.
    return f"[`{shown}`][{target}]" if target.startswith("dpci.") and target != path else f"`{shown}`"
