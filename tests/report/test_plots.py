"""Plots of intervals and of studies show what their objects hold, for long names, many rows and seeded fits."""

import itertools

import numpy as np
import pytest

import dpci
from dpci.inference.intervals import ConfidenceIntervals
from dpci.report.plot import figure_height, forest_plot, shorten
from support.fits import SETTINGS, make_rows

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("agg")
    yield
    plt.close("all")


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
    assert shorten("a" * 44) == "a" * 44
    assert shorten("start" + "x" * 90 + "the end") == "start" + "x" * 28 + "…" + "xxxthe end"
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


def test_the_plot_of_a_fit():
    result = dpci.fit(*make_rows(), **SETTINGS)
    ax = result.plot(level=0.9, contrast=["x1", {"x0": 1, "x2": -1}], simultaneous="bonferroni")
    assert labels(ax) == ["x1", "x0 - x2"]
    assert ax.get_xlabel().startswith("estimate with simultaneous (bonferroni) 90% interval\nlogistic loss, n = ")
    with pytest.raises(dpci.InvalidInput, match="order must be one of 'given', 'estimate', got order='name'"):
        result.plot(order="name")


def test_the_plot_of_a_study():
    keywords = {"budget": dpci.PureDP(2.0), "l2_strength": 0.05, "n_replicates": 40, "seed": 1}
    with pytest.warns(dpci.PrivacyLeakWarning):
        study = dpci.simulate.coverage(*make_rows(), **keywords, n_variability=50)
    ax = study.plot()
    coverage, lengths = ax.figure.axes
    assert coverage is ax
    assert labels(ax) == list(study.names)
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


def test_plots_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.pyplot", None)
    with pytest.raises(dpci.DpciError, match=r"dpci\[plot\]"):
        forest_plot(intervals([1.0]), private=True)
