"""Documents as pages: one file of HTML that needs no network and no script, and whose text is escaped throughout."""

import html
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpci.base.tables import format_percent, printable
from dpci.base.validation import broken
from dpci.shown.document import (
    SEEDED,
    Bars,
    Bullets,
    Code,
    Document,
    Facts,
    Forest,
    Paragraph,
    Part,
    Section,
    Strong,
    Table,
    Words,
)

PARTS = """
p, ul { margin: .5rem 0; }
ul { padding-left: 1.25rem; }
li { margin: .3rem 0; overflow-wrap: anywhere; }
summary { cursor: pointer; }
.lead { color: var(--soft); }
.note { font-weight: 600; }
.banner { border: 2px solid var(--alarm); border-radius: .4rem; padding: .7rem 1rem; color: var(--alarm);
  background: var(--alarm-paper); font-weight: 700; }
.scroll { overflow-x: auto; margin: .75rem 0; }
small { display: block; color: var(--soft); font-size: .85em; font-weight: 400; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .94rem; }
caption { text-align: left; color: var(--soft); padding: .25rem 0; }
caption span { display: inline-block; position: sticky; left: 0; max-width: calc(100vw - 2.5rem);
  overflow-wrap: anywhere; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child { text-align: left; font-weight: 500; white-space: normal; overflow-wrap: anywhere; min-width: 8.5rem;
  position: sticky; left: 0; background: var(--paper); background-clip: padding-box; }
thead th, thead th:first-child { color: var(--soft); font-weight: 600; }
tbody tr:nth-child(even), tbody tr:nth-child(even) th { background: var(--stripe); }
.words td { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 6rem; }
.words thead th { text-align: left; white-space: normal; }
.words th:first-child { max-width: none; }
.facts th:first-child { min-width: 0; overflow-wrap: break-word; }
@media (min-width: 48rem) { .facts th:first-child { white-space: nowrap; } }
figure { margin: 1.25rem 0 .5rem; }
figcaption { color: var(--soft); font-size: .9rem; }
.forest { display: grid; grid-template-columns: fit-content(42%) 1fr; font-size: .9rem; line-height: 1.25; }
.forest .name { padding: .3rem .6rem .3rem 0; overflow-wrap: anywhere; align-self: center;
  text-align: left; }
.forest .what { color: var(--soft); text-align: center; }
.forest .cell { position: relative; min-height: 1.6rem; }
.forest svg { position: absolute; inset: 0; overflow: visible; }
.forest text { fill: var(--soft); font-size: 12px; }
.forest .grid { stroke: var(--line); }
.forest .zero { stroke: var(--soft); stroke-width: 1.5; }
.forest .bar { stroke: var(--mark); stroke-width: 2.5; }
.forest circle { stroke: var(--mark); stroke-width: 2; }
.forest .apart { fill: var(--mark); }
.forest .open { fill: var(--paper); }
.bars { display: inline-block; width: 15rem; max-width: 100%; margin: .5rem 1rem .5rem 0; vertical-align: top; }
.bars svg { display: block; width: 100%; height: 4.5rem; overflow: visible; border-bottom: 1px solid var(--soft); }
.bars rect { fill: var(--mark); }
.bars .axis { display: flex; justify-content: space-between; color: var(--soft); font-size: .8rem; gap: .3rem; }
.bars .axis span { overflow-wrap: anywhere; }
"""
"""Rules for what stands in a document, on a page and in a notebook."""
STYLE = (
    """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --paper: #ffffff; --line: #d8dee6; --stripe: #f5f7fa;
  --mark: #1f5fa8; --alarm: #a3161f; --alarm-paper: #fdeceb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #a2aebd; --paper: #14181e; --line: #38424f;
  --stripe: #1b2129; --mark: #79b4f2; --alarm: #ffb4ae; --alarm-paper: #43191b; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main, footer { max-width: 52rem; margin: 0 auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 2rem 0 .5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
summary { font-size: 1.15rem; margin: .4rem 0; }
summary h2 { display: inline-block; width: calc(100% - 1.5rem); font-size: 1em; margin: 0; vertical-align: top; }
"""
    + PARTS
    + """
section[aria-labelledby="attacker"] table { width: auto; min-width: min(100%, 28rem); }
footer { color: var(--soft); font-size: .88rem; margin: 2.5rem auto 2rem; border-top: 1px solid var(--line);
  padding-top: .75rem; }
@media (max-width: 34rem) { body { font-size: 15px; } h1 { font-size: 1.4rem; } table { font-size: .87rem; }
  th, td { padding: .3rem .3rem; } th:first-child { min-width: 5.5rem; max-width: 8rem; padding-left: 0; } }
@page { size: A4; margin: 18mm 16mm; }
@media print { :root { --ink: #000; --soft: #444; --paper: #fff; --line: #bbb; --stripe: #fff; --mark: #1f5fa8;
  --alarm: #a3161f; --alarm-paper: #fff; }
  body { font-size: 10.5pt; } main, footer { max-width: none; padding: 0; } h1 { margin-top: 0; }
  .scroll { overflow: visible; } details::details-content { content-visibility: visible; }
  h2, tr, li, figure, .forest .name, .forest .cell { break-inside: avoid; } h2, caption { break-after: avoid; }
  * { print-color-adjust: exact; } }
"""
)


class Html(str):
    """Text that is markup already; every other string is escaped where it enters an element."""

    __slots__ = ()


Content: TypeAlias = str | Iterable[str]

# Elements without an end tag.
_VOID = frozenset({"meta", "line", "circle", "br", "wbr"})


def tag(name: str, content: Content = (), /, **attributes: object) -> Html:
    """Return an element; underscores around and in names of attributes stand for what Python does not allow there."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{_escaped(str(value))}"' for key, value in attributes.items()
    )
    if name in _VOID:
        return Html(f"<{name}{written}/>")
    return Html(f"<{name}{written}>{join(content)}</{name}>")


def join(content: Content) -> Html:
    """Return pieces one after the other, escaped unless they are markup."""
    pieces = [content] if isinstance(content, str) else content
    return Html("".join(piece if isinstance(piece, Html) else _escaped(piece) for piece in pieces))


def _escaped(text: str) -> str:
    # Names are those of a file, which may hold controls and overrides of direction.
    return html.escape(text if text.isprintable() else printable(text))


def breakable(name: str) -> Html:
    """Return a name that a narrow screen breaks between its words, which punctuation ends."""
    # Not within a number.
    words = re.split(r"(?<=[=:_/])(?=\w)|(?<=\w\()(?=\w)|(?<=[.,])(?=[^\W\d])", name)
    return join([piece for word in words for piece in (tag("wbr"), word)][1:])


# The plot keeps clear of the sides, where labels of the axis would be cut.
_LEFT, _WIDTH = 4.0, 92.0
_N_STEPS = 5
# Logarithms of ratios: the end of floats, a decade, the most for round numbers, and the most decades of 1, 2 and 5.
_END, _DECADE, _NARROW, _FEW_DECADES = 690.0, math.log(10.0), math.log(3.0), 4
_FINE, _MOST_FINE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0), 7
# Longer numbers are written at every second line of the grid, so that they stand apart on a telephone.
_LONGEST_TICK = 5
# A sheet of A4 holds more rows, so that every sheet of a long plot has an axis.
_ROWS_OF_AN_AXIS = 25


def forest_figure(forest: Forest) -> Html:
    """Return a figure with one row for each interval; those that leave out 0, or ratio 1, have a filled point."""
    if forest.are_ratios:
        forest = _in_logs(forest)
    ticks = axis_ticks(forest)
    percent = format_percent(forest.level)
    n_rows = len(forest.names)
    label = f"Forest plot of {n_rows} parameters with {percent} confidence intervals; the table has the numbers"
    axis = [_text(label, _place(tick, ticks)) for tick, label in _labelled(ticks, are_ratios=forest.are_ratios)]
    axis_row = [tag("div"), _cell(axis, class_="cell axis")]
    cells = []
    columns = (forest.names, *(column.tolist() for column in (forest.estimate, forest.lower, forest.upper)))
    for i, (name, estimate, lower, upper) in enumerate(zip(*columns, strict=True)):
        if i and i % _ROWS_OF_AN_AXIS == 0:
            cells += axis_row
        cells += [
            tag("div", breakable(name), class_="name", dir="auto"),
            _cell([*_grid(ticks), *_mark(estimate, lower, upper, ticks)]),
        ]
    cells += [*axis_row, tag("div"), tag("div", forest.axis, class_="what")]
    middle = 1 if forest.are_ratios else 0
    caption = f"{percent} confidence intervals. A filled point means that the interval does not contain {middle}."
    plot = tag("div", cells, class_="forest", role="img", aria_label=label)
    return tag("figure", [plot, tag("figcaption", caption)])


# Longer lists of names are read in the table.
_MOST_NAMES = 12


def bars_figure(bars: Bars) -> Html:
    """Return a figure of counts; negative ones, which noise makes, have no bar."""
    n_bars, greatest = len(bars.counts), max(1, *bars.counts)
    label = f"Counts of {bars.name}; the largest is {greatest:,}"
    drawn = [
        tag("rect", tag("title", f"{what}: {count:,}"), x=f"{100 * i / n_bars:.3f}%", width=f"{92 / n_bars:.3f}%",
            y=f"{100 * (1 - max(count, 0) / greatest):.3f}%", height=f"{100 * max(count, 0) / greatest:.3f}%")
        for i, (what, count) in enumerate(zip(bars.labels, bars.counts, strict=True))
    ]  # fmt: skip
    below = bars.ends or (bars.labels if n_bars <= _MOST_NAMES else ())
    plot = tag("svg", drawn, role="img", aria_label=label)
    axis = tag("div", [tag("span", each, dir="auto") for each in below], class_="axis")
    return tag("figure", [tag("figcaption", bars.name, dir="auto"), plot, axis], class_="bars")


def _in_logs(forest: Forest) -> Forest:
    """Return the logarithms of ratios, those beyond the range of floats at its end."""
    with np.errstate(divide="ignore"):
        estimate, lower, upper = (
            np.clip(logs, -_END, _END) for logs in np.log([forest.estimate, forest.lower, forest.upper])
        )
    return replace(forest, estimate=estimate, lower=lower, upper=upper)


def _ratio_ticks(low: float, high: float) -> NDArray[np.float64]:
    """Return the logarithms of round ratios, 1 among them, from below e^low to above e^high."""
    if high - low <= _NARROW:
        bounds = np.exp([low, high])
        return np.log(np.round(_round_numbers(float(bounds[0]), float(bounds[1])), 12))
    first, last = math.floor(low / _DECADE), math.ceil(high / _DECADE)
    every = math.ceil((last - first) / (2 * _N_STEPS))
    decades = np.arange(math.floor(first / every), math.ceil(last / every) + 1) * every
    ticks = decades * _DECADE
    for within in (_FINE, (1.0, 2.0, 5.0) if len(decades) <= _FEW_DECADES else (1.0,)):
        ticks = np.sort((decades[:, None] * _DECADE + np.log(within)).ravel())
        ticks = ticks[np.searchsorted(ticks, low, "right") - 1 : np.searchsorted(ticks, high) + 1]
        if len(ticks) <= _MOST_FINE:
            break
    return np.asarray(ticks, dtype=np.float64)


def axis_ticks(forest: Forest) -> NDArray[np.float64]:
    """Return round numbers from below the smallest bound, or 0, to above the largest; of ratios their logarithms."""
    # Saved fits may hold any numbers: bounds beyond the range of floats are drawn at its end.
    greatest = float(np.finfo(np.float64).max)
    low = max(-greatest, min(0.0, float(forest.lower.min())))
    high = min(greatest, max(0.0, float(forest.upper.max())))
    return _ratio_ticks(low, high) if forest.are_ratios else _round_numbers(low, high)


def _round_numbers(low: float, high: float) -> NDArray[np.float64]:
    """Return round numbers from below one number to above another."""
    # In halves: the difference of two floats may be beyond their range.
    rough = max((high / 2.0 - low / 2.0) / _N_STEPS * 2.0, 1e-300)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = unit * next((factor for factor in (1.0, 2.0, 5.0) if factor * unit >= rough), 10.0)
    first, last = math.floor(low / step), math.ceil(high / step)
    with np.errstate(over="ignore"):
        ticks = np.arange(first, max(last, first + 1) + 1) * step
    return np.asarray(ticks[np.isfinite(ticks)])


def _labelled(ticks: NDArray[np.float64], *, are_ratios: bool) -> list[tuple[float, str]]:
    """Return the ticks that have a label, 0 among them, with their labels."""
    shown = np.exp(ticks) if are_ratios else ticks
    labels = [f"{tick:.6g}" if tick else "0" for tick in map(float, shown)]
    every = 2 if max(map(len, labels)) > _LONGEST_TICK else 1
    zero = ticks.tolist().index(0.0)
    return [
        (float(tick), label)
        for i, (tick, label) in enumerate(zip(ticks, labels, strict=True))
        if (i - zero) % every == 0
    ]


def _cell(parts: list[Html], class_: str = "cell") -> Html:
    return tag("div", tag("svg", parts, width="100%", height="100%", aria_hidden="true"), class_=class_)


def _place(value: float, ticks: NDArray[np.float64]) -> str:
    low, high = float(ticks[0]) / 2.0, float(ticks[-1]) / 2.0
    share = min(max((value / 2.0 - low) / (high - low), 0.0), 1.0)
    return f"{_LEFT + _WIDTH * share:.3f}%"


def _grid(ticks: NDArray[np.float64]) -> list[Html]:
    places = [(_place(float(tick), ticks), "grid" if tick else "zero") for tick in ticks]
    return [tag("line", x1=at, x2=at, y1="0", y2="100%", class_=kind) for at, kind in places]


def _mark(estimate: float, lower: float, upper: float, ticks: NDArray[np.float64]) -> list[Html]:
    kind = "apart" if lower > 0.0 or upper < 0.0 else "open"
    ends = {"x1": _place(lower, ticks), "x2": _place(upper, ticks)}
    return [
        tag("line", **ends, y1="50%", y2="50%", class_="bar"),
        tag("circle", cx=_place(estimate, ticks), cy="50%", r=4.5, class_=kind),
    ]


def _text(label: str, at: str) -> Html:
    return tag("text", label, x=at, y=14, text_anchor="middle")


# Nothing is loaded or run, even where a name were to break out of its element.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WARNINGS = {
    SEEDED: (
        "The noise of this model was drawn from a seed: anyone who knows the seed can subtract it. Do not publish this "
        "page as a private release."
    )
}
"""Request of a banner to the reader of a page."""


def write_html(document: Document, path: "str | PathLike[str] | None") -> str:
    """Return a document as a page, and write it to a file if one is named."""
    if not isinstance(document.title, str):
        raise broken("title", "a string or None", document.title)
    page = as_html(document)
    if path is not None:
        Path(path).write_text(page, encoding="utf-8")
    return page


def as_html(document: Document) -> str:
    """Return a document as a page."""
    made = f"dpci {document.version}".strip()
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="generator", content=made),
        tag("title", document.title),
        tag("style", Html(STYLE)),
    ]
    main = [tag("h1", document.title, dir="auto")]
    if document.banner is not None:
        main.append(tag("p", f"{document.banner}. {_WARNINGS[document.banner]}", class_="banner", role="alert"))
    footer = tag("footer", [f"{made}. The same facts in machine-readable form: ", tag("code", "result.to_json()"), "."])
    body = tag("body", [tag("main", [*main, *map(element, document.parts)]), footer])
    page = tag("html", [tag("head", head), body], lang="en")
    # A lone surrogate in a name has no UTF-8.
    return ("<!DOCTYPE html>\n" + page + "\n").encode("utf-8", "replace").decode("utf-8")


def element(part: Part) -> Html:  # noqa: PLR0911  # one for each kind
    """Return a part as an element."""
    match part:
        case Paragraph():
            return tag("p", _marked(part.words), **({"class_": part.role} if part.role else {}))
        case Bullets():
            return tag("ul", [tag("li", ["☐ " * part.to_tick, _marked(item)]) for item in part.items])
        case Facts():
            # Spaces before a name, which HTML would drop, say that it belongs to the fact above.
            rows = [(name.replace("  ", "\u2003"), value) for name, value in part.rows]
            return _table(Table(("what", "value"), rows, part.caption, of_words=True), "facts")
        case Table():
            return _table(part)
        case Forest():
            return forest_figure(part)
        case Bars():
            return bars_figure(part)
        case Section():
            heading, inner = tag("h2", part.heading, id=part.name), [*map(element, part.parts)]
            inner = [tag("details", [tag("summary", heading), *inner])] if part.folded else [heading, *inner]
            return tag("section", inner, aria_labelledby=part.name)
        case _:
            raise TypeError(part)


def _table(table: Table, role: str = "") -> Html:
    """Return a table with the unit of a row below its name."""
    places = {name: place for place, name in enumerate(table.header) if place and name != "unit"}
    columns = [places[name] for name in table.first or places if name in places]
    unit = table.header.index("unit") if "unit" in table.header else None
    rows = []
    for row in table.rows:
        name = breakable(row[0]) if isinstance(row[0], str) else _marked(row[0])
        below = [] if unit is None else [tag("small", _marked(row[unit]))]
        first = tag("th", [name, *below], scope="row", dir="auto")
        rows.append(tag("tr", [first, *(tag("td", _marked(row[place])) for place in columns)]))
    head = tag("tr", [tag("th", table.header[place], scope="col") for place in (0, *columns)])
    caption = [tag("caption", tag("span", table.caption))] if table.caption else []
    parts = [*caption, tag("thead", head), tag("tbody", rows)]
    # On a narrow screen a table scrolls by itself, with the keyboard too.
    kinds = ["scroll", *(["words"] if table.of_words else []), *([role] if role else [])]
    region = {"tabindex": "0", "role": "region", "aria_label": table.caption or "table"}
    return tag("div", tag("table", parts), class_=" ".join(kinds), **region)


def _marked(words: Words) -> Html:
    if isinstance(words, tuple):
        return join(map(_marked, words))
    if isinstance(words, Strong):
        return tag("strong", _marked(words.words))
    return tag("code", str(words)) if isinstance(words, Code) else join(words)
