"""Plots of results, and figures of the evidence: what they show, their style, and that nothing is cut off."""

import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import dpci
from _panels import blocks, grid, head, label, legend, save
from dpci.inference.intervals import ConfidenceIntervals
from dpci.report.plot import figure_height, forest_plot, shorten
from dpci.report.style import BLUE, LETTERS, WIDTH, log_numbers, symbols
from support.fits import SETTINGS, make_rows

plt = pytest.importorskip("matplotlib.pyplot")


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def intervals(estimate, names=None):
    estimate = np.array(estimate, dtype=float)
    names = names or tuple(f"x{i}" for i in range(len(estimate)))
    return ConfidenceIntervals(tuple(names), estimate, estimate - 1.0, estimate + 1.0, 0.95, "exact")


def test_intervals_are_where_they_should_be():
    ax = forest_plot(intervals([3.0, -0.5, 5.0]), private=True, order="estimate")
    assert labels(ax) == ["x2", "x0", "x1"]
    (lines,) = [c for c in ax.collections if len(c.get_paths()) == 3 and hasattr(c, "get_segments")]
    np.testing.assert_allclose(np.array(lines.get_segments())[:, :, 0], [[4.0, 6.0], [2.0, 4.0], [-1.5, 0.5]])
    (points,) = [c for c in ax.collections if not hasattr(c, "get_segments") and len(c.get_offsets()) == 3]
    np.testing.assert_allclose(points.get_offsets()[:, 0], [5.0, 3.0, -0.5])
    # Filled where the interval leaves out 0.
    np.testing.assert_array_equal(points.get_facecolors()[:, 0] < 0.5, [True, True, False])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    assert ax.get_title() == ""


def test_long_names_and_many_rows_have_room():
    assert shorten("a" * 60) == "a" * 60
    assert shorten("start" + "x" * 90 + "the end") == "start" + "x" * 34 + "…" + "x" * 13 + "the end"
    ax = forest_plot(intervals(np.arange(100.0), [f"${i}_name^" * 9 for i in range(100)]), private=False)
    ax.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    assert all(above.y0 >= below.y1 - 1.0 for above, below in itertools.pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0.0
    assert ax.get_title() == "NOT PRIVATE (seeded)"
    assert figure_height(100) < 30.0
    # The scale is at both ends.
    assert ax.xaxis.get_tick_params()["labeltop"]
    assert not forest_plot(intervals([1.0]), private=True).xaxis.get_tick_params()["labeltop"]


@pytest.mark.parametrize(
    "name", ["W" * 44, "W" * 35, "marital-status=Married, spouse absent, of the armed forces", "x"]
)
@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1.0, 1e9, 1e300])
def test_nothing_is_cut_off(name, unit):
    column = np.array([-3.0, 2.0]) * unit
    ax = forest_plot(
        ConfidenceIntervals((name, "y"), column, column - unit, column + unit, 0.95, "exact"), private=True, what="$a$"
    )
    ax.figure.canvas.draw()
    inside = ax.figure.bbox.padded(1.0)
    shown = [*ax.get_yticklabels(), ax.xaxis.label, *ax.get_xticklabels()[1:-1]]
    for box in (text.get_window_extent() for text in shown):
        assert inside.contains(box.x0, box.y0)
        assert inside.contains(box.x1, box.y1)
    # At least a third of the figure is for the intervals.
    assert ax.get_window_extent().width > inside.width / 3
    # What a tick says, times the unit that the label names, is where it stands.
    _, _, named = ax.get_xlabel().replace("\xa0", " ").split("\nfilled")[0].partition("in units of ")
    said = [float(text.get_text().replace("\u2212", "-")) * float(named or 1) for text in ax.get_xticklabels()]
    np.testing.assert_allclose(said, ax.get_xticks(), rtol=1e-5, atol=1e-9 * unit)
    assert ax.xaxis.get_offset_text().get_text() == ""
    assert bool(named) == (unit != 1.0)
    assert "".join(labels(ax)[0].split()) == "".join(name.split())


def test_the_plot_of_a_fit():
    result = dpci.fit(*make_rows(), **SETTINGS)
    ax = result.plot(level=0.9, contrast=["x1", {"x0": 1, "x2": -1}], simultaneous="bonferroni")
    assert labels(ax) == ["x1", "x0 - x2"]
    label = " ".join(ax.get_xlabel().split())
    beginning = "log odds with simultaneous (bonferroni) 90% interval filled points: the interval excludes 0"
    assert label.startswith(f"{beginning} logistic loss, n = ")
    with pytest.raises(dpci.InvalidInput, match="order must be one of 'given', 'estimate', got order='name'"):
        result.plot(order="name")


def test_the_plot_of_a_study():
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "n_replicates": 40, "seed": 1}
    with pytest.warns(dpci.PrivacyLeakWarning):
        study = dpci.simulate.coverage(*make_rows(), **keywords, n_variability=50)
    ax = study.plot()
    coverage, lengths = ax.figure.axes
    assert coverage is ax
    assert labels(ax) == labels(lengths) == list(study.names)
    assert ax.get_title(loc="left") == "NOT PRIVATE"
    drawn = ax.containers[0]
    np.testing.assert_allclose(drawn[0].get_xdata(), study.coverage_by_param)
    (bars,) = drawn[2]
    spans = np.array(bars.get_segments())[:, :, 0]
    share = study.coverage_by_param
    errors = 2 * np.sqrt(np.where(share < 1, share * (1 - share), 0.95 * 0.05) / 40)
    # No coverage is above 1.
    assert (share + errors > 1.0).any()
    np.testing.assert_allclose(spans, np.stack([share - errors, np.minimum(share + errors, 1.0)], axis=1))
    assert any(line.get_xdata()[0] == 0.95 for line in ax.lines)
    np.testing.assert_allclose(lengths.containers[0][0].get_xdata(), study.mean_length_by_param)
    np.testing.assert_allclose(lengths.lines[-1].get_xdata(), study.variability_length_by_param)
    own = plt.subplots()[1]
    with pytest.warns(dpci.PrivacyLeakWarning):
        one = dpci.simulate.coverage(*make_rows(), **{**keywords, "n_replicates": 1}, n_variability=0)
    assert one.plot(ax=own) is own
    assert len(own.figure.axes) == 1
    assert own.get_xlim()[1] < 1.1
    narrow = plt.subplots(figsize=(2.5, 3), layout="constrained")[1]
    study.plot(ax=narrow).figure.canvas.draw()
    banner = narrow._left_title.get_window_extent()  # type: ignore[attr-defined]  # the titles at the sides have no other name
    assert not banner.overlaps(narrow.get_legend().get_window_extent())


def test_names_that_hide_something_show_it():
    assert shorten("a\n b\u202ec") == "a b\\u202ec"
    ax = forest_plot(intervals([1.0, 2.0], ["\x1b[2J", "\u0639\u0645\u0631"]), private=True)
    assert labels(ax) == ["\\x1b[2J", "\u0639\u0645\u0631"]


def test_ratios_are_drawn_on_a_logarithmic_axis_around_1():
    X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (2000, 1))
    result = dpci.fit(X, X[:, 0] > 0, budget=dpci.ZCDP(1.0), l2_strength=0.1, seed=1)
    ax, found = result.plot(exponentiate=True, level=0.9), result.odds_ratios(level=0.9)
    assert (ax.get_xscale(), labels(ax)) == ("log", list(found.names))
    assert ax.get_xlabel().startswith("odds ratio with 90% interval")
    assert "excludes 1" in ax.get_xlabel()
    np.testing.assert_allclose(ax.collections[-1].get_offsets()[:, 0], found.estimate)
    with pytest.raises(dpci.InvalidInput, match="exponentiate must be True or False"):
        result.plot(exponentiate=1)


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(dpci.DpciError, match=r"dpci\[plot\]"):
        forest_plot(intervals([1.0]), private=True)


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
