"""The document for whoever approves a release: it says what the record says, and a name in it is never a mark."""

import json
import math
import re

import numpy as np
import pytest
from scipy import stats

import dpci
from dpci.cli.main import main
from dpci.report.meaning import chance, meaning_of, meaning_of_budget, percent_down, percent_up
from dpci.schema import CategoricalColumn, NumericColumn, Schema
from dpci.schema.columns import ClassTarget
from support.commands import ran
from support.keywords import assembled

RNG = np.random.default_rng(5)
X = RNG.uniform(-0.5, 0.5, (4_000, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=len(X)) > 0
PURE = dpci.PureDP(1.0)


def fit(**keywords):
    return dpci.fit(X, Y, **assembled(**{"budget": PURE, "l2_strength": 0.05, **keywords}))


def rows_of(document):
    """Cells of every table; an escaped or encoded bar is part of its cell."""
    return [re.split(r"(?<!\\)\|", line)[1:-1] for line in document.splitlines() if line.startswith("|")]


def test_a_pure_budget_in_plain_words():
    text = fit().officer_report()
    assert "right with probability at most 73.2%" in text
    assert "by a factor of at most 2.72 (e^1, rounded up), in every release" in text
    # Odds of e to 1 and of 1 to e, rounded outwards.
    assert "| 50% | 26.8% | 73.2% |" in text
    assert "| 5 | epsilon=5 (pure DP) |" in text
    assert "For m rows, epsilon is multiplied by m." in text
    assert "may exceed this table" not in text
    assert "| **none stated**; written statement of: ___ |" in text


def test_the_odds_of_an_approximate_budget_hold_but_for_a_rare_case():
    result = fit(budget=dpci.ApproxDP(1.0, 1e-6), neighbors=dpci.AddRemove(4_000), rows="clip")
    text = result.officer_report()
    meaning = meaning_of(result.guarantee)
    delta = float(result.guarantee.delta([1.0])[0])
    assert meaning.rare == pytest.approx((1 + math.exp(-2.0)) * delta / (1 - math.exp(-1.0)))
    low, high = meaning.posterior(0.5)
    assert high / (1 - high) == pytest.approx(math.exp(meaning.usual))
    assert low == pytest.approx(1 - high)
    assert text.count("A single release may exceed this table, with probability at most 5%") == 2
    assert "Delta is 1 in a million. This budget bounds" in text
    assert "One record is added or removed. The number of records is private." in text
    assert "n_public = 4,000 was chosen without counting" in text
    # Three records: epsilon, and delta (1 + e + e^2) for steps of e^1; here two, of 1 + e.
    assert "| 2 | epsilon=2, delta=3.72e-06 (approximate DP) |" in text


def test_a_delta_that_could_publish_whole_records_is_questioned():
    large = fit(budget=dpci.ApproxDP(1.0, 1e-3)).officer_report()
    assert "With delta=0.001 and 4,000 records it would publish 4 on average." in large
    assert "Delta is usually far below 1/n, here 0.00025." in large
    for budget in (dpci.ApproxDP(1.0, 1e-6), dpci.PureDP(1.0), dpci.ZCDP(0.5)):
        assert "such a large delta" not in fit(budget=budget).officer_report()


def test_groups_under_zcdp_grow_with_the_square():
    assert "| 5 | rho=2.5 (zCDP) |" in fit(budget=dpci.ZCDP(0.1)).officer_report()


def test_what_alone_refuses_a_release():
    with pytest.warns(dpci.SeededNoiseWarning):
        seeded = fit(seed=1).officer_report()
    assert seeded.index("NOT PRIVATE") < seeded.index("- **Refuse.** The noise of this model was drawn from a seed")
    assert "What the budget means" not in seeded
    with pytest.warns(dpci.PrivacyLeakWarning):
        inferred = dpci.fit(X, np.where(Y, "a", "b"), budget=PURE, l2_strength=0.05).officer_report()
    assert "**Refuse, unless the class labels are public.**" in inferred
    assert "the class labels would be the same for any data" in inferred
    assert "| not covered | the class labels: they were inferred from the data" in inferred
    assert "not covered" not in fit().officer_report()
    assert "**Refuse, unless the class labels" not in fit().officer_report()


def test_persons_are_the_unit():
    text = fit(persons=np.arange(len(X)) // 2).officer_report()
    assert "One person with all of that person's rows" in text
    assert "rows of one person | guarantee" not in text


def test_a_release_without_intervals_promises_none():
    assert "No intervals are released." in fit(moments="none").officer_report()


@pytest.fixture(scope="module")
def hidden():
    """A fit of a table in which no row has a missing age and none is of the last region."""
    rng = np.random.default_rng(4)
    schema = Schema(
        columns=(
            NumericColumn(name="age", lower=20, upper=80, unit="year", per=10, missing=50),
            CategoricalColumn(name="region", categories=("north", "south", "lost"), reference="north"),
        ),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    age = rng.uniform(20, 80, 6_000)
    ill = np.where((age - 50) / 20 + rng.logistic(size=6_000) > 0, "yes", "no")
    table = {"age": age, "region": rng.choice(["north", "south"], 6_000), "ill": ill}
    return dpci.fit(table, schema=schema, budget=dpci.ZCDP(0.5))


def test_parameters_without_an_estimate_are_told(hidden):
    text = hidden.officer_report()
    assert "Every parameter has an interval" not in text
    assert "3 of 5 parameters have an interval; none for region=lost, age=missing. The intervals account" in text
    assert "No estimate of region=lost, age=missing: at this budget the noise hides it." in text
    assert "| outcome | ill (yes against no) |" in text
    numbers = text[text.index("## The numbers to be approved") : text.index("## What the budget covers")]
    assert f"| age | per 10 years | {hidden.params[0]:.4f} |" in numbers
    assert "| region=lost | against north | - |" in numbers
    assert "Every parameter has an interval" in fit().officer_report()


def test_a_fit_whose_intervals_the_noise_hides_says_why():
    rng = np.random.default_rng(4)
    rows = np.zeros((3_000, 6))
    rows[:, 0] = rng.uniform(-0.4, 0.4, 3_000)
    y = rows[:, 0] + rng.logistic(size=3_000) > 0
    with pytest.warns(dpci.DpciWarning, match="there is nothing to publish, and the budget is spent") as caught:
        result = dpci.fit(rows, y, budget=PURE, mechanism="newton", rows="clip")
    assert [warning.message.code for warning in caught] == ["nothing_to_publish"]
    assert result.interval_refusal.startswith("too few records for this budget and these columns: the noise hides")
    assert ("mean eigenvalue" in result.summary(full=True)) or ("directions" in result.summary(full=True))
    for shown in (result.conf_int(), result.odds_ratios(), result.tidy()[["conf.low", "conf.high"]]):
        assert np.isnan(np.asarray(shown)).all()
    assert "too few records" in repr(result.odds_ratios())
    assert [text.get_text() for text in result.plot().texts][:1] == ["no interval is given"]
    text = result.officer_report()
    assert "No intervals are released. No intervals: too few records for this budget and these columns" in text
    assert "numbers to be approved" not in text
    first = "- **No coefficient has an interval: there is nothing to publish.** The budget is spent."
    assert text.partition("## Decide first\n\n")[2].startswith(first)
    assert "is the precision good enough" not in text
    assert "( ) nothing to publish, and the budget is spent" in text


def test_every_point_and_every_item_is_there():
    text = fit(ledger=dpci.Ledger(PURE)).officer_report()
    assert "( ) nothing to publish" not in text
    parts = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert parts == [
        *(
            "Decide first",
            "The numbers to be approved",
            "What the budget covers",
            "Who is protected",
            "What the budget means",
            "Assumptions",
        ),
        "Verified and not verified",
        *("NIST SP 800-226, point by point", "Checklist"),
    ]
    assert len(re.findall(r"^- \[ \] ", text, re.MULTILINE)) >= 10
    assert "No ledger is named" not in text
    assert "No ledger is named, which would list the releases that were paid from it." in fit().officer_report()
    assert "A written statement says that this is the only release" in fit().officer_report()
    assert "A written statement says what each column means" in text
    assert "| `columns` | `x0, x1` | **none stated**; written statement of: ___ |" in text
    assert "Name, role, date, signature:" in text


def test_it_says_what_the_saved_file_says():
    result = fit()
    again = dpci.PrivateFit.from_json(result.to_json())
    assert again.officer_report() == result.officer_report()
    assert json.loads(result.to_json())["checksum"] in result.officer_report()


def test_names_and_sources_are_shown_and_never_read_as_marks(tmp_path):
    hostile = "a|b`<script>\n## Approved"
    schema = Schema(
        columns=(NumericColumn(name=hostile, lower=0, upper=1, source="[x](https://x.org) | <b>\n- [x] approved"),),
        target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    table = {hostile: RNG.uniform(size=2_000), "ill": np.where(RNG.uniform(size=2_000) > 0.5, "yes", "no")}
    result = dpci.fit(table, schema=schema, budget=PURE, l2_strength=0.05)
    text = result.officer_report(tmp_path / "approval.md")
    assert (tmp_path / "approval.md").read_text(encoding="utf-8") == text
    assert not re.search(r"^(## Approved|- \[x\])", text, re.MULTILINE)
    # Outside of code no bracket, angle or bar of the schema is left.
    outside = re.sub(r"`[^`\n]*`", "", text)
    assert "<" not in outside
    assert "](" not in outside
    widths = {len(row) for row in rows_of(text)}
    assert widths <= {2, 3, 7}
    (row,) = [row for row in rows_of(text) if "column a" in row[0]]
    assert row[1].strip() == "`0 to 1`"


def test_each_column_has_its_rule_for_values_beyond_its_bounds():
    columns = (
        NumericColumn(name="age", lower=18, upper=100),
        NumericColumn(name="wage", lower=0, upper=9, outside="error", missing=3),
        CategoricalColumn(name="sex", categories=("F", "M"), unknown="zeros"),
        CategoricalColumn(name="ward", categories=("A", "B"), missing="B"),
    )
    target = ClassTarget(column="ill", negative=("no",), positive=("yes",))
    table = {"age": [20.0, 30.0], "wage": [1.0, 2.0], "sex": ["F", "M"], "ward": ["A", "B"], "ill": ["no", "yes"]}
    many = {name: np.resize(values, 2_000) for name, values in table.items()}
    result = dpci.fit(many, schema=Schema(columns=columns, target=target), budget=PURE, l2_strength=0.05)
    rules = (
        "`age`: beyond the bounds, moved to the nearer bound; missing, the release fails. "
        "`wage`: beyond the bounds, the release fails; missing, replaced by 3, which a further column marks. "
        "`sex`: not in the list, counted as none of the list; missing, counted as none of the list. "
        "`ward`: not in the list, the release fails; missing, counted as B. "
        "`ill`: not in the list, the release fails; missing, the release fails |"
    )
    assert result.officer_report().count(rules) == 1
    fails = (
        "assumed absent: missing values of `age`, `ill`; values beyond the bounds of `wage`; "
        "values outside the list of `ward`, `ill`. Nothing is assumed about other values"
    )
    assert fails in result.officer_report()
    assert (
        "sex: not in the list, counted as none of the list; missing, counted as none of the list." in result.to_html()
    )
    # What the rules say is what the columns do.
    assert columns[1].encode([np.nan]) == columns[1].encode([3.0])
    assert columns[2].encode(["X"]).tolist() == [[0.0, 0.0]]
    assert columns[3].encode([None]).tolist() == columns[3].encode(["B"]).tolist()
    for column, value in ((columns[0], np.nan), (columns[1], 10.0), (columns[3], "C")):
        with pytest.raises(dpci.errors.InvalidInput):
            column.encode([value])
    with pytest.raises(dpci.errors.InvalidInput):
        target.encode(["perhaps"])


@pytest.mark.parametrize(
    ("probability", "up", "down", "words"),
    [
        (1.83e-6, "0.00019%", "0.00018%", "1.9 in a million"),
        (0.73106, "73.2%", "73.1%", "74 in a hundred"),
        (0.0136, "1.4%", "1.3%", "1.4 in a hundred"),
        (0.99331, "99.4%", "99.3%", "100 in a hundred"),
        (9e-4, "0.09%", "0.09%", "900 in a million"),
        (1e-14, "1e-12%", "1e-12%", "1e-14"),
    ],
)
def test_probabilities_are_rounded_in_the_safe_direction(probability, up, down, words):
    assert (percent_up(probability), percent_down(probability), chance(probability)) == (up, down, words)


def test_a_name_that_ends_in_html_makes_it_a_page(tmp_path, capsys):
    result, page = fit(), tmp_path / "approval.html"
    written = result.officer_report(page)
    assert written == page.read_text(encoding="utf-8")
    assert written.startswith("<!DOCTYPE html>")
    assert written.count("<li>☐ ") == result.officer_report().count("- [ ] ")
    saved = tmp_path / "model.json"
    assert result.to_json(saved) == result.to_json() == saved.read_text(encoding="utf-8")
    assert main(["report", str(saved), "--officer", "--output", str(page), "--force", "--quiet"]) == 0
    named = page.read_text(encoding="utf-8")
    assert named.count(str(saved)) == 1
    assert written.partition("Decide first")[2] == named.partition("Decide first")[2]
    # Nothing is written under a name that says another form.
    for officer, name in ((["--officer"], "approval.pdf"), ([], "page.md")):
        assert main(["report", str(saved), *officer, "--output", str(tmp_path / name)]) == 2
        assert "--output must end in .html" in capsys.readouterr().err
        assert not (tmp_path / name).exists()


def test_nineteen_of_twenty_releases_change_the_odds_by_less_than_is_said():
    """The loss of a Gaussian release with mu = 1 is normal with mean 1/2 and variance 1, whichever record is there."""
    for meaning, slack in ((meaning_of_budget(dpci.GDP(1.0)), 1.25), (meaning_of_budget(dpci.ZCDP(0.5)), 1.45)):
        beyond = stats.norm.sf(meaning.usual - 0.5) + stats.norm.cdf(-meaning.usual - 0.5)
        assert beyond <= 0.05
        exact = stats.norm.isf(0.05) + 0.5
        assert meaning.usual < slack * exact
    assert meaning_of_budget(dpci.PureDP(2.0)).usual == 2.0
    nearly = meaning_of_budget(dpci.ApproxDP(2.0, 1e-6)).usual
    assert 2.0 < nearly < 2.001
    assert meaning_of_budget(dpci.ApproxDP(0.01, 0.2)).usual is None


def test_probabilities_that_say_no_more_are_bounds():
    text = fit(budget=dpci.ZCDP(5.0)).officer_report()
    table = text.partition("| before | lowest after | highest after |")[2].partition("A single release")[0]
    assert "100%" not in table
    assert "above 99.99%" in table
    assert "below 0.01%" in table


def test_the_command_writes_it(tmp_path, capsys):
    saved, written = tmp_path / "model.json", tmp_path / "approval.md"
    saved.write_text(fit().to_json(), encoding="utf-8")
    assert main(["report", str(saved), "--officer", "--output", str(written), "--quiet"]) == 0
    text = written.read_text(encoding="utf-8")
    assert "| not shown | that the noise was drawn as the model says: no file can show it |" in text
    assert ran(capsys, "report", saved, "--officer").out == text
    assert "--officer takes no --title, --json" in ran(capsys, "report", saved, "--officer", "--json", code=2).err
