"""Summaries and pages lead with the answer: intervals first, then a sentence on each magnitude; the rest is folded."""

import re

import numpy as np
import pytest

import dpci
from dpci.accounting.costs import step_names
from dpci.released.model import record_of
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, NumericTarget, Schema
from support.fits import SETTINGS, make_rows
from support.keywords import assembled

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")

N = 4000
FIVE = Schema(
    columns=(
        *(NumericColumn(name=f"x{i}", lower=0.0, upper=10.0, unit="hour") for i in range(4)),
        CategoricalColumn(name="sex", categories=("F", "M"), reference="F"),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    columns = {f"x{i}": rng.uniform(0.0, 10.0, N) for i in range(4)}
    predictor = 0.3 * (columns["x0"] - 5.0) - 0.2 * (columns["x1"] - 5.0)
    ill = predictor + rng.logistic(size=N) > 0.0
    sex = rng.choice(["F", "M"], N)
    return {**columns, "sex": sex, "ill": np.where(ill, "yes", "no"), "hours": np.clip(5.0 + predictor, 0.0, 10.0)}


@pytest.fixture(scope="module")
def newton(table):
    return dpci.fit(table, schema=FIVE, budget=dpci.ZCDP(0.5), seed=3)


@pytest.fixture(scope="module")
def ridge(table):
    return dpci.fit(table, schema=FIVE, budget=dpci.PureDP(1.0), l2_strength=0.002, seed=3)


@pytest.fixture(scope="module")
def both():
    """A fit whose released values show the ordinary coefficients beside the regularised ones."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (20_000, 2))
    y = X @ [2.0, -1.5] + rng.logistic(size=20_000) > 0
    return dpci.fit(
        X, y, budget=dpci.ZCDP(5.0), l2_strength=0.004, mechanism=dpci.ObjectivePerturbation(split=(0.7, 0.15, 0.15)),
        seed=1,
    )  # fmt: skip


def cells(text):
    """The cells of the first table of a text, by the first of each line."""
    lines = text.splitlines()
    rule = next(i for i, line in enumerate(lines) if set(line) == {"-", " "})
    rows = lines[rule + 1 : lines.index("", rule)]
    return re.split(" {2,}", lines[rule - 1]), {row.split()[0]: re.split(" {2,}", row) for row in rows}


@pytest.mark.parametrize("kind", ["newton", "ridge"])
def test_five_columns_take_a_screen(kind, request):
    lines = request.getfixturevalue(kind).summary().splitlines()
    # Marks of a seeded fit and the blank lines beside them count as well.
    assert len(lines) <= 25
    assert max(map(len, lines)) <= 100
    assert lines[0] == lines[-1] == "NOT PRIVATE (seeded)"
    assert lines[2].startswith("95% confidence intervals")
    assert [line.split()[0] for line in lines[5:11]] == ["x0", "x1", "x2", "x3", "sex=M", "intercept"]
    names = [line.split()[0] for line in lines[12:-2] if line[:1].strip()]
    wanted = ["model", "budget", "target", *(["ridge"] if kind == "ridge" else []), "noise"]
    assert names[: len(wanted)] == wanted
    assert names[-1] == "more"


@pytest.mark.parametrize("kind", ["newton", "ridge"])
def test_the_numbers_are_those_of_the_methods(kind, request):
    fit = request.getfixturevalue(kind)
    header, rows = cells(fit.summary())
    assert header == ["name", "unit", "estimate", "lower", "upper", "std error", "p-value", "odds ratio"]
    intervals = fit.conf_int()
    for i, name in enumerate(fit.names):
        row = rows[name][-6:] if name != "intercept" else [*rows[name][-5:], ""]
        estimate, lower, upper, error = (float(cell) for cell in row[:4])
        assert [estimate, lower, upper] == pytest.approx(
            [fit.params[i], intervals.lower[i], intervals.upper[i]], abs=6e-5, rel=1e-3
        )
        assert error == pytest.approx(fit.std_errors[i], abs=6e-5)
        if name != "intercept":
            assert float(row[5]) == pytest.approx(np.exp(fit.params[i]), abs=6e-5, rel=1e-4)
    assert rows["intercept"][-1].startswith(("<0", "0"))  # the p-value: odds of no column have no ratio


def test_ordinary_coefficients_stand_before_regularised_ones(both):
    header, rows = cells(both.summary())
    assert header == ["name", "ordinary", "regularised"]
    for column, target in ((1, "unregularised"), (2, "regularised")):
        intervals = both.conf_int(target=target)
        for i, name in enumerate(both.names):
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", rows[name][column])]
            assert numbers == pytest.approx([intervals.estimate[i], intervals.lower[i], intervals.upper[i]], abs=6e-5)
    text = both.summary()
    assert "\nordinary " in text
    assert "\nregularised " in text
    # Asked for alone, they stand alone.
    header, rows = cells(both.summary(target="unregularised"))
    assert header == ["name", "estimate", "lower", "upper", "std error", "p-value"]
    assert float(rows["x0"][1]) == pytest.approx(both.conf_int(target="unregularised").estimate[0], abs=6e-5)


def test_the_full_summary_has_the_rest(ridge, newton):
    for fit in (ridge, newton):
        short, full = fit.summary(), fit.summary(full=True)
        for part in ("rounding seal", "scaled", "neighbours", "moments"):
            assert part in full
            assert part not in short
        assert all(name in full for name in step_names(fit._record.steps))
    assert "ridge" in ridge.summary(full=True).partition("in the units of the table")[2].splitlines()[1].split()
    with pytest.raises(dpci.InvalidInput, match="full must be"):
        ridge.summary(full="yes")


def test_what_must_not_be_overlooked_stays():
    X, y = make_rows()
    bare = dpci.fit(X, y, **assembled(**SETTINGS, moments="none", classes=(0, 1))).summary()
    assert "\nNo intervals: the whole budget was spent on the coefficients" in bare
    assert "scaled" not in bare
    inferred = dpci.fit(X, y, **SETTINGS).summary()
    assert "classes inferred from y: not private" in " ".join(inferred.split())
    custom = dpci.losses.Custom(
        lambda u, _y: np.logaddexp(0.0, u),
        lambda u, _y: 0.5 + 0.5 * np.tanh(u / 2),
        lambda u, _y: 0.25 * (1.0 - np.tanh(u / 2) ** 2),
        slope_bound=1.0,
        curvature_bound=0.25,
    )
    text = dpci.fit(X, y, **SETTINGS, loss=custom, classes=(0, 1)).summary()
    assert "caution" in text
    assert "relies on the declared bounds of the custom loss" in " ".join(text.split())
    hidden = dpci.fit(X, y, **SETTINGS, classes=(0, 1)).summary(target="unregularised")
    assert "caution" in hidden
    assert "No estimate of" in hidden


def test_the_noise_is_said_as_the_length_of_intervals():
    """Against the intervals of maximum likelihood, which noise of twice the length makes visible."""
    rng = np.random.default_rng(7)
    n, k = 8_000, 11
    X = rng.uniform(-1.0, 1.0, (n, k)) / np.sqrt(k)
    y = X @ np.r_[2.0, -1.0, 0.5, np.zeros(k - 3)] + rng.logistic(size=n) > 0.0
    fit = dpci.fit(X, y, budget=dpci.PureDP(1.0), mechanism="newton", rows="clip", seed=2)
    design, theta = np.column_stack([X, np.ones(n)]), np.zeros(k + 1)
    for _ in range(20):
        mean = 1.0 / (1.0 + np.exp(-design @ theta))
        hessian = (design * (mean * (1.0 - mean))[:, None]).T @ design
        theta += np.linalg.solve(hessian, design.T @ (y - mean))
    exact = 2 * 1.959964 * np.sqrt(np.diag(np.linalg.inv(hessian)))
    known = np.isfinite(fit.conf_int().length)
    longer = np.exp(np.log(fit.conf_int().length[known] / exact[known]).mean())
    said = re.search(r"about ([\d.]+) times as long as without\s+privacy\s+noise", fit.summary())
    assert 1.5 < longer < 4.0
    assert float(said[1]) == pytest.approx(longer, rel=0.1)
    assert "The noise in the gradients makes up" not in fit.summary()
    assert "The noise in the gradients makes up" in fit.summary(full=True)


@pytest.fixture(scope="module")
def hidden():
    """A fit in which no row has a missing age and none is of the last region."""
    return _sparse(("north", "south", "lost"), dpci.ZCDP(0.5))


def _sparse(regions, budget):
    """Return a fit of two regions to a schema that lists more."""
    rng = np.random.default_rng(4)
    age = rng.uniform(20, 80, 6_000)
    table = {"age": age, "region": rng.choice(["north", "south"], 6_000)}
    table["ill"] = np.where((age - 50) / 20 + rng.logistic(size=6_000) > 0, "yes", "no")
    columns = (
        NumericColumn(name="age", lower=20, upper=80, unit="year", per=10, missing=50),
        CategoricalColumn(name="region", categories=regions, reference="north"),
    )
    schema = Schema(columns=columns, target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
    return dpci.fit(table, schema=schema, budget=budget, mechanism="newton")


def test_rows_that_the_noise_hides_have_dashes_everywhere(hidden):
    full = hidden.summary(full=True)
    ratios, rest = full.split("95% confidence intervals in the units of the table")
    for name, unit in (("region=lost", "against north"), ("age=missing", None)):
        (ratio,) = [line for line in ratios.splitlines() if line.startswith(name)]
        assert re.split(" {2,}", ratio)[2:] == ["not estimable", "-", "-"]
        (row,) = [line for line in rest.splitlines() if line.startswith(name)]
        assert re.split(" {2,}", row)[2:] == ["-"] * 6, unit
        assert np.isnan(hidden.params[hidden.names.index(name)])
    for text in (hidden.to_html(), hidden.to_latex(), hidden.to_markdown(), hidden.odds_ratios().to_latex()):
        assert re.search(r"region=lost\W.*?(not estimable|-)\W.*?-\W", text)
        assert not re.search(r"\bnan\b", text, re.IGNORECASE)
    assert hidden.tidy().set_index("term").loc["region=lost"].isna().all()
    pytest.importorskip("great_tables")
    assert "not estimable" in hidden.to_great_tables().as_raw_html()


def test_a_fit_of_noise_alone_has_no_results():
    fit = _sparse(("north", "south", *map(str, range(8))), dpci.PureDP(0.3))
    page, text = fit.to_html(), fit.summary()
    assert fit.interval_refusal.startswith("too few records for this budget and these columns: the noise hides")
    assert text.index("No intervals: too few records for this budget") < text.index("estimate")
    with pytest.raises(dpci.InvalidInput, match=r"to_latex\(\) requires an object that shows a table"):
        fit.to_latex()
    for part in ("No results", "This fit has no estimates to publish"):
        assert part in page
    assert np.isnan(fit.params).all()
    assert np.isnan(fit.scaled.params).all()
    with pytest.raises(dpci.InvalidInput, match="predictions need coefficients, got none: too few records"):
        fit.predict({column.name: [] for column in fit.schema.columns})
    for text in (page, fit.summary(), fit.summary(full=True), repr(fit)):
        assert not any(f"{number:.4f}" in text for number in record_of(fit).params)
    for part in ("may be shared as it is", "Sentences to publish", "Released parameters"):
        assert part not in page


def sections(page):
    """The headings of a page, and which of them are folded."""
    found = re.findall(r"<section[^>]*>(<details><summary>)?<h2 id=\"([\w-]+)\">([^<]*)</h2>", page)
    return [(name, heading, bool(folded)) for folded, name, heading in found]


def test_the_page_leads_with_the_answer(newton, both):
    page = newton.to_html()
    (first, heading, folded), *others = sections(page)
    assert (first, heading, folded) == ("odds", "Odds ratios", False)
    assert all(folded for _, _, folded in others)
    assert {name for name, _, _ in others} >= {"parameters", "columns", "read", "magnitudes", "budget", "caveats"}
    top = page[page.index("<section") : page.index("</section>")]
    ratios = newton.odds_ratios()
    for name, ratio in zip(ratios.names, ratios.estimate, strict=True):
        assert name in top.replace("<wbr/>", "")
        assert f"{ratio:.4f}" in top
    for what in ("target", "noise"):
        assert f'<th scope="row" dir="auto">{what}</th>' in top
    assert "<figure>" in top
    # Folds open on paper.
    assert "details::details-content { content-visibility: visible; }" in page
    page = both.to_html()
    assert sections(page)[0] == ("numbers", "Coefficients", False)
    assert ">ordinary</th>" in page


def test_counts_have_rate_ratios(table):
    schema = Schema(
        columns=FIVE.columns, target=NumericTarget(column="hours", lower=0.0, upper=10.0, scale="unit", unit="hour")
    )
    fit = dpci.fit(
        table, schema=schema, loss=dpci.losses.NegativeBinomial(dispersion=0.5),
        budget=dpci.PureDP(4.0), l2_strength=0.05, seed=1,
    )  # fmt: skip
    header, rows = cells(fit.summary())
    assert header[-1] == "rate ratio"
    assert float(rows["x0"][-1]) == pytest.approx(np.exp(fit.params[0]), abs=6e-5, rel=1e-4)
    assert sections(fit.to_html())[0][0] == "rate"


@pytest.mark.parametrize("budget", [dpci.ZCDP(0.5), dpci.PureDP(4.0)], ids=str)
def test_a_category_of_few_records_is_named(budget):
    rng = np.random.default_rng(8)
    ward, age = rng.choice(["A", "B", "C"], 6000, p=[0.6, 0.39, 0.01]), rng.uniform(20, 80, 6000)
    ill = np.where((age - 50) / 30 + rng.logistic(size=6000) > 0, "yes", "no")
    schema = Schema(
        columns=(
            NumericColumn(name="age", lower=20, upper=80),
            CategoricalColumn(name="ward", categories=("A", "B", "C"), reference="A"),
        ),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    fit = dpci.fit({"age": age, "ward": ward, "ill": ill}, schema=schema, budget=budget, seed=1)
    assert np.isfinite(fit.params).all()
    assert "Few records have ward=C: noise makes up most of the interval." in " ".join(fit.summary().split())
