"""The HTML page of a fit: its numbers, what it says where, and that nothing in a name becomes markup or is loaded."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest

import dpci
from dpci.base.tables import format_bound, number_format
from dpci.shown.document import Forest
from dpci.shown.html import axis_ticks, forest_figure, tag
from support.fits import SETTINGS, make_rows
from support.keywords import assembled
from support.pages import Page
from support.saved import rewritten

EVIL = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b <b>"]


def fit(**keywords):
    return dpci.fit(*make_rows(), **assembled(**{**SETTINGS, "classes": (0, 1), **keywords}))


@pytest.fixture(scope="module")
def named():
    X, y = make_rows()
    words = np.where(y == 1, "<i>yes</i>", "no")
    keywords = {**SETTINGS, "seed": None, "classes": ("no", "<i>yes</i>")}
    return dpci.fit(pd.DataFrame(X, columns=EVIL), words, **keywords)


def test_the_table_has_the_numbers(named):
    cells = Page(named.to_html(level=0.9)).cells
    intervals = named.conf_int(level=0.9)
    at = cells.index("ridge") + 1
    ridge = ["unknown" if np.isnan(moved) else f"{moved:.4f}" for moved in named.shrinkage()]
    for i, name in enumerate(named.names):
        row = cells[at + 7 * i : at + 7 * (i + 1)]
        # The interval first, which a narrow screen shows.
        numbers = (named.params[i], intervals.lower[i], intervals.upper[i], named.std_errors[i])
        assert row[:5] == [name, *(f"{number:.4f}" for number in numbers)]
        assert row[6] == ridge[i]
        assert row[5] == ("<0.0001" if named.pvalues[i] < 1e-4 else f"{named.pvalues[i]:.4f}")


def test_no_name_becomes_markup(named):
    text = named.to_html(title="<h1>& title</h1>")
    page = Page(text)
    assert not {"script", "img", "b", "i", "a", "link", "iframe"} & set(page.names)
    assert page.names.count("h1") == 1
    assert page.text.count("<h1>& title</h1>") == 2
    assert not [key for key, _ in page.attributes if key.startswith("on") or key in {"src", "href", "style"}]
    assert not re.search(r"https?:|url\(|@import|javascript:", text)
    for name in EVIL:
        assert name in page.text
    assert "'<i>yes</i>'" in page.text


def test_names_in_other_scripts_and_of_other_kinds():
    X, y = make_rows()
    names = ["\u0639\u0645\u0631 <65", "\u202eevil", "one\ntwo"]
    result = dpci.fit(pd.DataFrame(X, columns=names), y, **SETTINGS)
    page = Page(result.to_html())
    at = page.cells.index("ridge") + 1
    assert [page.cells[at + 7 * i] for i in range(3)] == [names[0], "\\u202eevil", "one\\ntwo"]
    # In the table and in the plot.
    assert page.text.count(names[0]) == page.text.count("\\u202eevil") == 2
    assert "\u202e" not in page.text
    # Each name has the direction of its own letters: the heading, the rows of three tables, those of the plot.
    rows = sum(key == "scope" and value == "row" for key, value in page.attributes)
    assert page.attributes.count(("dir", "auto")) == 1 + rows + 4
    # Not one line more than the title, the header, its rule, and the parameters.
    assert len(repr(result.conf_int()).splitlines()) == 7


@pytest.mark.parametrize(("unit", "written"), [(1.0, ["-1", "0", "1", "2", "3"]), (1e-7, ["0", "2e-07"])])
def test_long_numbers_of_an_axis_stand_apart(unit, written):
    lower, upper = np.array([-0.9]) * unit, np.array([2.5]) * unit
    figure = forest_figure(Forest(("x",), upper / 2, lower, upper, 0.95))
    assert re.findall(r"<text[^>]*>([^<]*)</text>", figure) == written
    # Every line of the grid is drawn.
    assert figure.count('class="grid"') == 4


def test_a_long_plot_shows_its_axis_all_along():
    for n, axes in ((25, 1), (26, 2), (500, 20)):
        estimate = np.arange(float(n))
        names = tuple(f"x{i}" for i in range(n))
        figure = forest_figure(Forest(names, estimate, estimate - 1, estimate + 1, 0.95))
        assert figure.count('class="cell axis"') == axes
        assert figure.endswith("</figcaption></figure>")
        # The last row is an axis.
        assert figure.rindex("axis") > figure.rindex("<circle")


def test_the_page_is_accessible(named):
    text = named.to_html()
    page = Page(text)
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert ("content", "width=device-width, initial-scale=1") in page.attributes
    assert page.names.count("caption") == page.names.count("table") == 4
    assert {"col", "row"} <= {value for key, value in page.attributes if key == "scope"}
    labels = [value for key, value in page.attributes if key == "aria-label"]
    assert any("Forest plot of 4 parameters with 95% confidence intervals" in label for label in labels)
    ids = [value for key, value in page.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert {value for key, value in page.attributes if key == "aria-labelledby"} == set(ids)
    for part in ("prefers-color-scheme: dark", "@media print", "size: A4"):
        assert part in text


def test_what_a_reader_needs(named):
    text = Page(named.to_html()).text
    wanted = [
        "epsilon=2 (pure DP)",
        "one record replaced",
        "2,000",
        "not the unregularised coefficient",
        "normal approximation",
        "discrete laplace noise",
        "Every possible record obeys the public bounds",
        "a factor of at most 7.39 (e^2, rounded up)",  # 7.38906
        "at most 88.1%",  # 88.0797
        "What someone can learn about one record",
        f"dpci {dpci.__version__}",
        "raises the odds of",
        "Budget, bounds, categories, columns, classes, formula, loss, mechanism, λ, radius and split were",
        named.digest,
        "not recorded without a ledger",
        "% of the variance of the estimates",
        "The intervals account for the noise in the released matrices",
        "differential privacy, epsilon=2 (pure DP): replacing any one record changes the probability of any result",
        "log odds ratios of a regularised model (logistic loss, lambda=",
        "95% intervals are for one coefficient at a time.",
    ]
    for part in wanted:
        assert part in text, part
    assert "NOT PRIVATE" not in text
    # Once each.
    for part in (
        "The minimiser of the population",
        "Ridge: ",
        "The intervals account for the noise in the released matrices",
    ):
        assert text.count(part) == 1, part


def test_classes_that_were_read_off_the_data_are_told():
    X, y = make_rows()
    keywords = {**SETTINGS, "seed": None}
    with pytest.warns(dpci.PrivacyLeakWarning, match="inferred from y"):
        inferred = dpci.fit(X, np.where(y == 1, "ill", "healthy"), **keywords)
    public = dpci.fit(X, np.where(y == 1, "ill", "healthy"), **keywords, classes=("healthy", "ill"))
    for result, told in ((inferred, True), (public, False), (dpci.fit(X, y == 1, **keywords), False)):
        again = dpci.PrivateFit.from_json(result.to_json())
        assert again.privacy["classes_inferred"] is told
        assert any("classes were inferred from y" in condition for condition in again.privacy["conditions"]) is told
        assert ("they were inferred from the data" in Page(again.to_html()).text) is told
        assert ("the classes were inferred from y" in Page(again.to_html()).text) is told


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_tuned_models_remember_classes_that_were_read_off_the_data(share):
    X, y = make_rows()
    grid = [{"l2_strength": 0.5}, {"l2_strength": 1.0}]
    keywords = {"budget": dpci.PureDP(4.0), "selection_share": share, "validation_radius": 2.0}
    with pytest.warns(dpci.PrivacyLeakWarning, match="inferred from y"):
        tuned = dpci.tuning.tune(X, np.where(y == 1, "b", "a"), candidates=grid, **keywords)
    assert any("inferred from y" in condition for condition in tuned.privacy["conditions"])


def test_what_is_said_at_most_is_rounded_upwards():
    for epsilon in (0.123449, 0.777, 1.0, 3.21):
        text = fit(budget=dpci.PureDP(epsilon), moments="none", l2_strength=0.5, seed=None).to_html()
        (factor, power) = re.findall(r"a factor of at most ([\d.]+) \(e\^([\d.]+), rounded up\), in", text)[0]
        (percent,) = re.findall(r"with probability at most ([\d.]+)%", text)
        exact = math.exp(epsilon), 100 / (1 + math.exp(-epsilon))
        assert float(power) >= epsilon
        for shown, number in zip((factor, percent), exact, strict=True):
            assert number <= float(shown) <= number * 1.01


def test_bounds_and_numbers_as_text():
    assert [format_bound(x, 3) for x in (0.0, 0.1, 0.5, 1.58001e-6, 99.91, 2.718)] == [
        "0", "0.1", "0.5", "1.59e-06", "100", "2.72",
    ]  # fmt: skip
    assert number_format([0.5, 0.02, 0.0], 3.0) == number_format([], []) == ".4f"
    assert f"{1.2345678e-6:{number_format([2e-7], 1.2e-6)}}" == "0.0000012346"
    assert number_format([1e-30], 1.0) == number_format(1.0, 1e300) == ".4e"


def test_small_numbers_keep_their_digits():
    X, y = make_rows()
    keywords = {**SETTINGS, "l2_strength": 0.02 * 1e10, "rows": dpci.rows.Within(1e5, intercept=False)}
    result, other = (dpci.fit(X * 1e5, y, **{**keywords, "seed": seed}) for seed in (1, 2))
    assert 1e-7 < result.std_errors[0] < 1e-5
    for text in (
        result.summary(),
        result.to_html(),
        repr(result.conf_int()),
        repr(result.wald_test("x0")),
        repr(dpci.compare(result, other, shared_data=True)),
    ):
        assert f"{result.params[0]:.9f}"[:9] in text


@pytest.mark.parametrize("scale", [1e20, 1e300, 1e308])
def test_saved_numbers_of_any_size_have_a_page(scale):
    values = json.loads(fit().to_json())
    values["params"] = [scale * value / 4.0 for value in values["params"]]
    text = dpci.PrivateFit.from_json(rewritten(values)).to_html()
    assert not re.search(r"inf%|nan%", text)
    assert len(text) < 16_000
    ends = np.array([[1e308], [-math.inf], [math.inf]])
    figure = forest_figure(Forest(("x",), *ends, 0.95))
    assert not re.search(r"inf%|nan%", figure)


def test_a_seeded_fit_says_so_first():
    page = Page(fit().to_html())
    assert page.text.index("NOT PRIVATE (seeded)") < page.text.index("Parameters")
    assert "best guess" not in page.text
    assert "with differential privacy" not in page.text
    assert page.text.count("Logistic regression, positive class 1, with seeded noise") == 2
    assert ("role", "alert") in page.attributes


@pytest.mark.parametrize(
    ("keywords", "parts"),
    [
        ({"moments": "none"}, ["No intervals: the whole budget was spent on the coefficients"]),
        ({"budget": dpci.ZCDP(0.5), "neighbors": dpci.AddRemove(2000)}, ["whether a record is in the data", "rho=0.5"]),
        (
            {"budget": dpci.ApproxDP(1.0, 1e-6)},
            ["more than 7.39 (e^(2ε)) with", "delta=1e-06", "at most 1.8 in a million"],
        ),
        ({"rows": "clip"}, ["Records beyond the public bounds (ball of norm 1) were moved"]),
        ({"loss": "huber_hinge", "budget": dpci.PureDP(200.0)}, ["e^200", "huber"]),
        ({"budget": dpci.ApproxDP(20.0, 1e-6)}, ["more than 10⁷"]),
    ],
)
def test_other_fits(keywords, parts):
    page = Page(fit(**keywords, seed=None).to_html())
    for part in parts:
        assert part in page.text, part
    assert ("upper" in page.cells) == ("moments" not in keywords)


def test_regression():
    X, _ = make_rows()
    ridge = dpci.fit(
        X, X[:, 0], budget=dpci.ZCDP(1.0), l2_strength=0.1, loss="squared",
        mechanism=dpci.ObjectivePerturbation(radius=1.0),
    )  # fmt: skip
    text = Page(ridge.to_html()).text
    assert "over the ball" in text
    assert ("raises the predicted target" in text) == (ridge.interval_refusal is None)


@pytest.mark.parametrize(
    "budget", [dpci.PureDP(0.7), dpci.ZCDP(0.3), dpci.ApproxDP(1.0, 1e-6)], ids=lambda budget: budget.notion
)
def test_the_best_guess_is_bounded_by_the_profile(budget):
    result = fit(budget=budget, seed=None)
    (percent,) = re.findall(r"with probability at most ([\d.]+)%\. Without", result.to_html())
    if isinstance(budget, dpci.PureDP):
        assert "What the guarantee implies" not in result.to_html()
        assert float(percent) == pytest.approx(100 / (1 + math.exp(-0.7)), abs=0.1)
        return
    distance = 2 * float(percent) / 100 - 1
    assert 0.0 < distance < 0.8
    for epsilon in (0.1, 0.5, 1.0):
        # What holds of every (epsilon, delta)-DP release; the page takes the best of such bounds.
        delta = float(result.guarantee.delta(epsilon))
        assert distance <= 1 - 2 * (1 - delta) / (1 + math.exp(epsilon)) + 2e-2
    # Nor does any row of the profile contradict it.
    rows = re.findall(r"<tr><t[dh][^>]*>([\d.e-]+)</t[dh]><td>[\d.,e+]+</td><td>([\d.e-]+)</td></tr>", result.to_html())
    assert len(rows) == 4
    assert all(float(epsilon) > 0.0 and float(delta) <= distance for epsilon, delta in rows)
    if isinstance(budget, dpci.ZCDP):
        # Gaussian noise of this rho attains 2 Phi(sqrt(rho / 2)) - 1: less would be a lie.
        assert distance >= math.erf(math.sqrt(0.3) / 2)


@pytest.mark.parametrize("bounds", [(-1e-300, 1e-300), (-1e308, 1e308), (0.0, 0.0), (3.2, 7.9), (-0.5, -0.1)])
def test_the_axis_has_round_numbers_around_all(bounds):
    lower, upper = np.array([bounds[0]]), np.array([bounds[1]])
    ticks = axis_ticks(Forest(("x",), lower, lower, upper, 0.95))
    assert np.isfinite(ticks).all() or abs(bounds[0]) > 1e307
    assert ticks[0] <= min(0.0, bounds[0])
    assert ticks[-1] >= max(0.0, bounds[1])
    assert 0.0 in ticks
    assert 2 <= len(ticks) <= 12


@pytest.mark.parametrize("bounds", [(0.98, 1.04), (0.5, 1.2), (0.2, 5.0), (1.5, 8e3), (1e-200, 1e300), (0.0, np.inf)])
def test_the_axis_of_ratios_is_logarithmic_around_one(bounds):
    lower, upper = np.array([bounds[0]]), np.array([bounds[1]])
    figure = forest_figure(Forest(("x",), np.array([1.0]), lower, upper, 0.95, "odds ratio", are_ratios=True))
    labels = [float(label) for label in re.findall(r"<text[^>]*>([^<]*)</text>", figure)]
    assert 1.0 in labels
    assert 2 <= len(labels) <= 13
    if bounds != (0.0, np.inf):  # which is drawn at the end of the range of floats
        place = np.interp(np.log(bounds), np.log(labels), np.arange(len(labels)))
        assert 0 <= place[0] < place[1] <= len(labels) - 1
    assert "does not contain 1" in figure
    # Equal factors are equally far apart.
    at = [float(x) for x in re.findall(r"<text[^>]*x=\"([\d.]+)%", figure)]
    slopes = np.diff(at) / np.diff(np.log(labels))
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-2)


def test_files_and_bad_arguments(tmp_path):
    result = fit()
    text = result.to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == text
    assert dpci.PrivateFit.from_json(result.to_json()).to_html() == text
    with pytest.raises(dpci.InvalidInput, match="title must be a string or None, got title=3"):
        result.to_html(title=3)
    with pytest.raises(dpci.InvalidInput, match="level must be > 0 and < 1"):
        result.to_html(level=95)
    lone = result.to_html(title="\ud800")
    assert lone.encode("utf-8")


def test_elements():
    assert tag("p", "<", class_="a&b") == '<p class="a&amp;b">&lt;</p>'
    assert tag("line", x1='"') == '<line x1="&quot;"/>'
    assert tag("p", [tag("b", "x"), " & y"]) == "<p><b>x</b> &amp; y</p>"
