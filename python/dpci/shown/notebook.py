"""Documents as the output of a cell of a notebook: compact, at most a screen high, in the colours of the notebook."""

from collections.abc import Iterator, Sequence

from dpci.shown.document import Document, Part, Section
from dpci.shown.html import PARTS, Html, element, tag

# Names of the variables with which JupyterLab, VS Code and Colab say their colours; else those of a page in the light.
_COLOURS = {
    "ink": ("jp-content-font-color0", "vscode-editor-foreground", "colab-primary-text-color", "#1c2430"),
    "paper": ("jp-layout-color0", "vscode-editor-background", "colab-primary-surface-color", "#ffffff"),
    "soft": ("jp-content-font-color2", "vscode-descriptionForeground", "colab-secondary-text-color", "#5a6675"),
    "line": ("jp-border-color2", "vscode-widget-border", "colab-border-color", "#d8dee6"),
    "stripe": ("jp-rendermime-table-row-background", "vscode-list-hoverBackground", "colab-chrome-color", "#f5f7fa"),
    "mark": ("jp-brand-color1", "vscode-textLink-foreground", "#1f5fa8"),
    "alarm": ("jp-error-color0", "vscode-errorForeground", "#a3161f"),
}


def _variable(names: Sequence[str]) -> str:
    """Return the first of the variables that is known."""
    *before, last = names
    for name in reversed(before):
        last = f"var(--{name}, {last})"
    return last


# Rules hold within a cell only, so that the rest of the notebook keeps its own.
_STYLE = f"""
.dpci {{ {" ".join(f"--{name}: {_variable(names)};" for name, names in _COLOURS.items())}
  --alarm-paper: transparent; color: var(--ink); background: var(--paper); font-size: 14px; line-height: 1.45;
  max-height: min(80vh, 40rem); max-width: 60rem; overflow: auto; padding: .25rem .1rem;
{PARTS}
  .title {{ font-size: 1.1em; font-weight: 600; overflow-wrap: anywhere; }}
  p {{ max-width: 52rem; }}
  .banner {{ padding: .15rem .6rem; border-width: 1px; }}
  table {{ width: auto; margin: 0; }}
  th, td {{ padding: .1rem .45rem; }}
  th:first-child {{ min-width: 6.5rem; }}
  small {{ display: inline; margin-left: .5em; }}
  .facts thead {{ display: none; }}
  .scroll, figure {{ margin: .4rem 0; }}
  .forest .name {{ padding: .1rem .6rem .1rem 0; }}
  .forest .cell {{ min-height: 1.25rem; }}
  .forest text {{ font-size: 11px; }}
  summary {{ cursor: pointer; color: var(--soft); font-weight: 600; }}
}}
"""


def as_cell(document: Document) -> str:
    """Return a document as HTML that stands beside other outputs: the first section open, the others folded."""
    banner = [] if document.banner is None else [tag("p", f"{document.banner}.", class_="banner")]
    title = [tag("div", document.title, class_="title", dir="auto")] if document.title else []
    content = [tag("style", Html(_STYLE)), *banner, *title, *_elements(document.parts)]
    # A lone surrogate in a name has no UTF-8.
    return tag("div", content, class_="dpci").encode("utf-8", "replace").decode("utf-8")


def _elements(parts: Sequence[Part]) -> Iterator[Html]:
    n_sections = 0
    for part in parts:
        if not isinstance(part, Section):
            yield element(part)
            continue
        # Names of sections are left out: another cell may have the same ones.
        inner = [tag("summary", part.heading), *map(element, part.parts)]
        yield tag("details", inner, **({} if n_sections else {"open": "open"}))
        n_sections += 1
