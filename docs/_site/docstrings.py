"""Docstrings as the site shows them: roles become links, and asterisks of formulas stay asterisks."""

import re

from griffe import Extension, Object

_ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):`(~?)([^`]+)`")
_CODE = re.compile(r"(``.*?``|`.*?`)")
# An entry of a numpydoc section, such as "**keywords : Any", has no text of Markdown.
_ENTRY = re.compile(r"^\*{0,2}\w+( : .*)?$")


class Docstrings(Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj: Object, **kwargs: object) -> None:  # noqa: ARG002  # called by name
        """Rewrite the docstring of one object."""
        if obj.docstring and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value, obj.path)


def as_markdown(docstring: str, path: str) -> str:
    """Return a docstring in Markdown; ``path`` is the object that it describes."""
    lines, in_example = [], False
    for line in docstring.splitlines():
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        lines.append(line if in_example or _ENTRY.match(line) else _line(line, path))
    return "\n".join(lines)


def _line(line: str, path: str) -> str:
    line = _ROLE.sub(lambda match: _link(match[1], match[2], path), line)
    return "".join(part if part.startswith("`") else part.replace("*", r"\*") for part in _CODE.split(line))


def _link(short: str, target: str, path: str) -> str:
    shown = target.rsplit(".", 1)[-1] if short else target
    # Names without a module are those of the same module or class, next to the reader: no link.
    return f"[`{shown}`][{target}]" if target.startswith("dpci.") and target != path else f"`{shown}`"
