"""Figures of the evidence keep the style of plots: their width, letters and colours, a title, alternative text."""

import re
import sys
from pathlib import Path

import pytest

from _panels import blocks, grid, head, label, legend, save
from dpci.report.style import BLUE, LETTERS, WIDTH, log_numbers, symbols

pytest.importorskip("matplotlib")

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs" / "evidence"
FIGURES = [*sorted(EVIDENCE.glob("*.svg")), ROOT / "docs" / "first_result.svg"]
SHOWN = re.compile(r"^!\[([^\]]*)\]\(([\w/]+\.svg)\)\n\n(.*)$", re.MULTILINE)


def small(text):
    """Sizes of letters that are smaller than the style allows."""
    found = re.findall(r"font(?:-size)?: ?([\d.]+)px", text)
    return [size for size in found if float(size) < LETTERS]


def faults(text):
    """Parts of the text of an SVG that are not of the style."""
    width = re.search(r'<svg [^>]*?width="([\d.]+)pt"', text)
    title = re.search(r"<dc:title>([^<]+)</dc:title>", text)
    found = []
    if width is None or float(width[1]) != 72.0 * WIDTH:
        found.append("width")
    if title is None or len(title[1].split()) < 5:
        found.append("title")
    if "<dc:date>" in text:
        found.append("date")
    if "<text" not in text or small(text):
        found.append("letters")
    if "fill: #ffffff" not in text:  # a transparent figure is unreadable on a dark page
        found.append("background")
    return found


def drawn(tmp_path, *, letters=LETTERS, width=WIDTH, title="A title of at least five words"):
    figure, ((left, right),) = grid(1, 2, height=2.0)
    for ax in (left, right):
        ax.plot([0.01, 1.0], [1.0, 2.0], color=BLUE, label="a line")
        log_numbers(ax, "x")
        label(ax, "panel", "ε", "mean error of a quantity whose name is long")
    left.tick_params(labelsize=letters)
    legend(figure, *left.get_legend_handles_labels())
    head(figure, title)
    figure.set_figwidth(width)
    save(figure, tmp_path / "figure.svg")
    return (tmp_path / "figure.svg").read_text("utf-8")


@pytest.mark.parametrize("path", FIGURES, ids=[path.stem for path in FIGURES])
def test_a_figure_of_the_evidence_keeps_the_style(path):
    assert faults(path.read_text("utf-8")) == []


def test_faults_are_found(tmp_path):
    plain = drawn(tmp_path)
    assert faults(plain) == []
    assert drawn(tmp_path) == plain
    assert faults(drawn(tmp_path, letters=8)) == ["letters"]
    assert faults(drawn(tmp_path, width=9.0)) == ["width"]
    assert faults(drawn(tmp_path, title="")) == ["title"]
    assert faults(plain.replace("fill: #ffffff", "fill: none")) == ["background"]


def test_nothing_of_a_figure_of_panels_is_cut_off():
    figure, parts = blocks([2.5, 2.5], 2)
    for block, axes in parts:
        for ax in axes:
            ax.plot([1.0, 2.0], [1.0, 2.0], label="a name of twenty-eight signs")
            label(ax, "a title that has no room on one line of a panel", "ε", "median of the mean squared error")
        legend(block, *axes[0].get_legend_handles_labels())
        head(block, "a block")
    head(figure, "a title that is so long that it stands on more than one line above all of the panels of it")
    figure.draw_without_rendering()
    inside = figure.bbox.padded(1.0)
    shown = [figure._suptitle, *(text for ax in figure.axes for text in (ax.title, ax.xaxis.label, ax.yaxis.label))]
    for box in (text.get_window_extent() for text in shown):
        assert inside.contains(box.x0, box.y0)
        assert inside.contains(box.x1, box.y1)


@pytest.mark.parametrize("page", sorted(EVIDENCE.glob("*.md")), ids=lambda page: page.stem)
def test_a_figure_has_alternative_text_and_a_caption(page):
    text = page.read_text("utf-8")
    shown = {name: (alternative, below) for alternative, name, below in SHOWN.findall(text)}
    assert set(re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)) == set(shown)
    for name, (alternative, below) in shown.items():
        assert (page.parent / name).is_file()
        assert len(alternative.split()) >= 10, name
        assert below.startswith("*"), name
        assert len(below.split()) >= 15, name


def test_every_figure_of_the_evidence_is_shown():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs").rglob("*.md")) + (ROOT / "README.md").read_text(
        "utf-8"
    )
    assert [path.name for path in FIGURES if path.name not in pages] == []


def test_figures_that_are_drawn_from_tables_are_those_of_the_tables():
    redraw = __import__("redraw")
    for name, (page, heading, draw) in redraw.FIGURES.items():
        table = redraw.read_table((EVIDENCE / f"{page}.md").read_text("utf-8"), heading)
        figure = draw(*table)
        assert f"<dc:title>{' '.join(figure.get_suptitle().split())}" in (EVIDENCE / f"{name}.svg").read_text("utf-8")
        # All numbers of the table, column by column.
        lines = [line for ax in figure.axes for line in ax.lines]
        if page == "utility":
            assert sum(len(line.get_xdata()) for line in lines) == len(table[1]) * (len(table[0]) - 3)
        else:
            drawn_medians = {y for line in figure.axes[0].lines for y in line.get_ydata()}
            assert {float(row[4]) for row in table[1] if row[0] == "histogram"} <= drawn_medians
    sys.modules.pop("redraw", None)


def test_symbols_of_budgets():
    assert symbols("epsilon=1, delta=1e-06 (approximate DP)") == "ε=1, δ=1e-06 (approximate DP)"
    assert symbols("rho=0.5 (zCDP)") == "ρ=0.5 (zCDP)"


def test_the_cost_of_a_replicate_is_drawn_again_from_its_report(tmp_path):
    cost = __import__("_cost_plot")
    report = f"""
## {cost.TITLE}

| what varies | value | dpci, ms a replicate | NumPy (plain), ms | ratio |
| --- | --- | --- | --- | --- |
| n (d=10) | 50000 | 1.000 | 20.1 | 20.1 |
| n (d=10) | 450000 | 10.000 | 220.1 | 22.0 |
| d (n=50,000) | 5 | 0.500 | 9.1 | 18.2 |
| d (n=50,000) | 90 | 10.000 | 200.1 | 20.0 |

{cost.SPEED_UPS}dense, d=10 1.70; KDD, d=10 1.60
"""
    cost.draw_again(report, tmp_path / "cost.svg")
    text = (tmp_path / "cost.svg").read_text("utf-8")
    assert faults(text) == []
    for part in ("n (d=10)", "d (n=50,000)", "450k", "KDD, d=10", "ms a replicate"):
        assert part in text
