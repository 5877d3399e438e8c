"""The officer's report of every kind of result and setting: what it says is held against facts from elsewhere."""

import io
import itertools
import json
import math
import re
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.approval.approvable import statement_of
from dpci.approval.statement import verified
from dpci.budgets import numbers_text
from dpci.cli.main import main
from dpci.cli.saved import load
from dpci.released.model import record_of
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema
from dpci.schema.table import saved_table
from support.approved import BUDGETS, COLUMNS, KINDS, OF_CLASSES, OF_WAGES, REAL, RELATIONS, TABLE, N, X, Y, made

DOCS = Path(__file__).parents[2]


def is_offered(kind, notion, neighbors):
    if kind == "report":
        return (notion, neighbors) == ("approx", "add_remove")
    return neighbors == "replace_one" or kind not in {"chosen", "chosen_fit", "best"}


GRID = [case for case in itertools.product(KINDS, BUDGETS, RELATIONS) if is_offered(*case)]


@pytest.fixture(params=GRID, ids="-".join)
def case(request):
    return (*request.param, *made(*request.param))


def test_what_it_says_is_true_in_every_setting(case):
    kind, notion, neighbors, result, ledger = case
    text = result.officer_report(ledger=ledger)
    (entry,) = ledger.history
    whole = statement_of(result)
    # The ledger counts independently what has to be approved, for which unit and relation.
    spent = numbers_text(entry.budget.parameters())
    assert f"- [ ] This release: {entry.budget}\n" in text
    assert f"- [ ] Total of the ledger, which equals the approved total: {ledger.total}\n" in text
    assert f"- [ ] Spent in the ledger today, all entries: {spent} (1 entry)\n- [ ] Remaining: " in text
    without_page = {"best", "report", "several"}
    assert ("has no page: its file is published" in text) == (kind in without_page)
    assert f"| composition | Together {entry.budget}. Details" in text
    assert text.count("entry 1 of the ledger paid (checked). Ask whether anything was released outside it |") == 2
    assert ("protects persons, each with all rows |" in text) == (entry.unit == "person")
    assert "told apart by their persons" not in text
    assert (entry.unit == "person") == ("One person with all of that person's rows" in text)
    assert entry.unit == ("person" if "persons" in kind or kind == "max_rows" else "row")
    assert "| FAILED |" not in text
    assert f"paid {entry.budget}" in text
    # Persons have no rows of their own, and rows no persons.
    assert ("each id is one person" in text) == (entry.unit == "person")
    assert ("rows of one person | guarantee" in text) == (entry.unit == "row")
    # Where one is added or removed, what it says takes two changes.
    assert ("**Contents.**" in text) == (neighbors == "add_remove")
    assert ("the odds of any statement about that" in text) == (neighbors == "replace_one")
    if notion == "pure" and neighbors == "add_remove":
        epsilon = entry.budget.epsilon
        # e^2 for an epsilon of 1: rounded upwards.
        (shown,) = re.findall(r"\*\*Contents\.\*\*.* factor of at most ([\d.]+) \(e\^\d+, rounded up\)", text)
        assert 0.0 <= float(shown) - math.exp(2 * epsilon) <= 0.1
    # The number of records is exact under replace-one alone, and in strata never.
    is_exact = neighbors == "replace_one" and not whole.of_strata
    assert is_exact == ("is a secret.** It is released exactly" in text)
    assert is_exact == ("| values released exactly | the number of" in text)
    said = re.search("counts? that (was|were) released with noise", text.partition("## Decide")[0])
    assert ("counted" in kind) == (said is not None)
    # What is chosen with the data is said to be.
    is_chosen = kind in {"chosen", "chosen_fit", "best"}
    assert is_chosen == ("| choices from the data | the choice among 2 candidates, which the budget covers |" in text)
    assert ("No intervals are released." in text) == (statement_of(result).intervals is None)
    if hasattr(result, "interval_refusal"):
        assert ("No intervals are released." in text) == (result.interval_refusal is not None)


def test_every_proof_that_it_names_is_there(case):
    for reference in statement_of(case[3]).proofs:
        page, section = re.fullmatch(r"(docs/\S+\.md) \((.*)\)", reference).groups()
        assert re.search(rf"^##+ {re.escape(section)}$", (DOCS / page).read_text("utf-8"), re.MULTILINE), reference
    for page in statement_of(case[3]).audits:
        assert (DOCS / "docs" / "evidence" / f"{page}.md").is_file(), page


def test_sentences_are_plain_and_tables_whole(case):
    text = case[3].officer_report()
    # The released numbers have a table of their own width.
    other = re.sub(r"(?s)\n## The numbers to be approved\n.*?(?=\n## )", "", text)
    for line in other.splitlines():
        if line.startswith("|"):
            assert len(re.split(r"(?<!\\)\|", line)) in {4, 5}, line
        shown = re.sub("`[^`]*`", "x", line)
        if "___" not in shown and not shown.startswith("Decision"):
            assert not re.search(r"None|[.][.]| ,|[(][)]|[{}]|  ", shown), line


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_writes_what_python_returns(kind, tmp_path):
    neighbors = "add_remove" if kind == "report" else "replace_one"
    found = made(kind, "approx" if kind == "report" else "pure", neighbors)
    result, _ = found
    path = tmp_path / "saved.json"
    path.write_text(result.to_json(), encoding="utf-8")
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["report", str(path), "--officer"])
    report = result.officer_report()
    assert code == (6 if "**Return.**" in report else 0)
    assert (
        "".join(line for line in out.getvalue().splitlines(keepends=True) if "name of the file" not in line) == report
    )
    assert statement_of(load(path)).claim.digest == json.loads(result.to_json())["checksum"]


def test_a_refined_regression_names_its_gradient():
    text = made("refined", "zcdp", "replace_one")[0].officer_report()
    assert (
        "as one matrix with noise; the numbers of residuals of each size and the gradient of one planned regression"
        in text
    )
    assert "which accounts for sampling, the noise in the matrix and that in the gradient." in text
    assert "| `planned regression` | `y on x0, x1` |" in text
    plain = made("regression", "zcdp", "replace_one")[0].officer_report()
    assert "gradient" not in plain
    assert "which accounts for sampling and the noise in the matrix." in plain


def test_a_moment_matrix_covers_all_regressions():
    text = made("matrix", "zcdp", "replace_one")[0].officer_report()
    assert "It covers every linear regression among the 3 columns: of any of them, on any others." in text
    assert "They cost nothing more, however many there are." in text
    with pytest.warns(dpci.MomentNoiseWarning):
        hidden = dpci.fit(0.01 * X, REAL, loss="squared", budget=dpci.PureDP(0.3))
    assert hidden.interval_refusal is not None
    assert "hidden by the noise, so that it has no coefficients" in hidden.officer_report()
    gaussian = dpci.regression.release(X, REAL, budget=dpci.GDP(0.5)).officer_report()
    assert "This release: mu=0.5 (Gaussian DP)" in gaussian
    assert "a ledger counts it as rho=0.125 (zCDP)" in gaussian
    assert "| 2 | mu=1 (Gaussian DP) |" in gaussian


@pytest.mark.parametrize(("notion", "neighbors", "cost"), [
    ("pure", "add_remove", "epsilon=1 (pure DP), what one stratum costs (parallel composition)"),
    ("pure", "replace_one", "epsilon=2 (pure DP), what two changes of one stratum cost"),
    ("zcdp", "replace_one", "rho=1.2 (zCDP), what two changes of one stratum cost"),
])  # fmt: skip
def test_strata_cost_one_or_two_changes(notion, neighbors, cost):
    for kind, parts in (("strata", "models of 2 strata."), ("counted", "2 strata, and the counts of their records.")):
        text = made(kind, notion, neighbors)[0].officer_report()
        assert f"So all of it costs {cost}." in text
        assert parts in text
        assert f"| spent | {cost.partition(',')[0]} |" in text


def test_several_classes_are_public_and_noise_is_added_to_the_parameters():
    text = made("multinomial", "pure", "replace_one")[0].officer_report()
    assert "| classes | `a`, `b`, `c` |" in text
    assert "the 3 classes" in text
    assert "objective perturbation: " in text
    assert '`proofs/multinomial.md` ("Coefficients")' in text
    text = made("multinomial", "approx", "replace_one")[0].officer_report()
    assert '`proofs/multinomial.md` ("Gaussian objective perturbation")' in text


def test_what_a_record_says_can_be_found_out_twice_as_well_as_whether_it_is_there():
    # Laplace noise of one sensitivity per epsilon on a sum: a record adds 1, or -1, or is not there.
    epsilon, places = 0.7, np.linspace(-30.0, 30.0, 4_001)
    law = {value: np.exp(-epsilon * np.abs(places - value)) for value in (-1.0, 0.0, 1.0)}
    there = max(np.max(np.abs(np.log(law[value] / law[0.0]))) for value in (-1.0, 1.0))
    contents = np.max(np.abs(np.log(law[1.0] / law[-1.0])))
    text = dpci.fit(
        X, Y, classes=(False, True), budget=dpci.PureDP(epsilon), l2_strength=0.2, neighbors=dpci.AddRemove(N)
    ).officer_report()
    odds, contents_odds = (float(power) for power in re.findall(r"factor of at most [\d.]+ \(e\^([\d.]+)", text))
    assert there == pytest.approx(odds)
    assert contents == pytest.approx(contents_odds)


def test_seeded_results_have_no_checklist():
    with warnings.catch_warnings(action="ignore"):
        for seeded in (
            dpci.fit(X, Y, classes=(False, True), budget=BUDGETS["pure"], l2_strength=0.2, seed=1),
            dpci.regression.release(X, REAL, budget=BUDGETS["pure"], seed=1),
            dpci.fit_strata(TABLE, by="state", strata=("A", "B"), schema=OF_CLASSES, l2_strength=0.5, n_public=N,
                            budget=BUDGETS["pure"], seed=1),
        ):  # fmt: skip
            text = seeded.officer_report()
            assert text.startswith("# A result that must not be released")
            assert "## Checklist" not in text
            assert "Who is protected" not in text
            assert "| FAILED | its noise came from a seed: NOT PRIVATE |" in text


def test_an_agreed_schema_and_a_ledger_are_compared(tmp_path):
    result, ledger = made("schema", "pure", "replace_one")
    agreed = Schema(columns=COLUMNS, target=OF_CLASSES.target)
    assert "of the agreed one |" in result.officer_report(schema=agreed, ledger=ledger)
    for other, difference in (
        (Schema(columns=COLUMNS, target=OF_CLASSES.target, persons="id"), "the column of persons is none in the model"),
        (
            Schema(columns=(NumericColumn(name="age", lower=0, upper=90),), target=OF_CLASSES.target),
            "column 'age' has the lower bound 18 in the model, 0 in the agreed one",
        ),
        (
            Schema(columns=(*COLUMNS, CategoricalColumn(name="sex", categories=("F", "M"))), target=OF_CLASSES.target),
            "column 'sex' is only in the agreed one",
        ),
    ):
        failed = [found.what for found in verified(statement_of(result), ledger=None, schema=other)
                  if found.outcome == "FAILED"]  # fmt: skip
        assert len(failed) == 1
        assert difference in failed[0]
    assert "| FAILED | the model names ledger" in result.officer_report(ledger=dpci.Ledger(dpci.PureDP(1.0)))
    path = tmp_path / "l.db"
    dpci.Ledger(dpci.PureDP(1.0), path=path)
    other_ledger = result.officer_report(ledger=path)
    assert "| FAILED | the model names ledger" in other_ledger
    assert "the ledger that was given does not agree with the file |" in other_ledger
    assert "Remaining: ___" in other_ledger
    with pytest.raises(dpci.errors.InvalidInput, match=r"ledger must be a dpci\.Ledger"):
        result.officer_report(ledger=3)
    with pytest.raises(dpci.errors.InvalidInput, match=r"schema must be a dpci\.schema\.Schema"):
        result.officer_report(schema="people.toml")
    with pytest.raises(dpci.errors.LedgerError):
        result.officer_report(ledger=tmp_path / "none.db")


def test_the_column_of_strata_is_apart_from_the_agreed_schema():
    sex = CategoricalColumn(name="sex", categories=("F", "M"))
    agreed = Schema(columns=(*COLUMNS, sex), target=OF_CLASSES.target)
    table = TABLE | {"sex": np.where(np.arange(N) % 2, "F", "M")}
    fits = dpci.fit_strata(table, by="sex", schema=agreed, l2_strength=0.5, n_public=N // 2, budget=BUDGETS["pure"])

    def found(result, schema):
        checked = verified(statement_of(result), ledger=None, schema=schema)
        return [what for outcome, what in checked if outcome == "FAILED"], " ".join(what for _, what in checked)

    failed, said = found(fits, agreed)
    assert not failed
    assert "of the agreed one; its column 'sex' names the strata" in said
    failed, said = found(fits["F"], agreed)
    assert not failed
    assert "that the column 'sex' names the strata: the file of the whole shows it" in said
    # A schema without the strata, as the models have it, agrees too.
    assert not found(fits, OF_CLASSES)[0]
    more = Schema(columns=(*COLUMNS, CategoricalColumn(name="sex", categories=("F", "M", "X"))), target=agreed.target)
    assert found(fits, more)[0] == ["the strata are F, M in the file, F, M, X in the agreed schema (--schema)"]
    other = Schema(columns=(*COLUMNS, CategoricalColumn(name="race", categories=("F", "M"))), target=agreed.target)
    assert "column 'race' is only in the agreed one" in found(fits, other)[0][0]
    # Only strata leave a column out.
    assert "column 'sex' is only in the agreed one" in found(made("schema", "pure", "replace_one")[0], agreed)[0][0]


def test_pages_say_what_the_report_says():
    approve, advisories, nist = (
        " ".join((DOCS / "docs" / f"{page}.md").read_text("utf-8").split())
        for page in ("approve", "evidence/advisories", "nist")
    )
    (date,) = re.findall(r"compared with published advisories on (\d{4}-\d\d-\d\d)", approve)
    assert date in advisories
    chosen = (*record_of(made("fit", "pure", "replace_one")[0]).chosen, "treatment of missing values")
    assert f"{', '.join(chosen[:-1])} or {chosen[-1]}" in approve
    assert f"Budget, {', '.join(chosen[1:-1])} and {chosen[-1]}" in approve
    # Each point of the report stands on the page too, which names those that no release decides.
    report = made("fit", "pure", "replace_one")[0].officer_report()
    points = re.findall(r"^\| ([^|]+) \|", report.partition("## NIST")[2].partition("## Checklist")[0], re.MULTILINE)
    assert len(points) == 12
    for point in points[1:]:
        assert f"| {point.split()[0]}" in nist, point
    for topic in (
        "query model",
        "randomness",
        "trust model",
        "side channels",
        "security",
        "collection",
        "supply chain",
    ):
        assert topic in report
        assert topic in nist


def test_the_report_without_ledger_and_schema_is_returned():
    result, ledger = made("schema", "pure", "replace_one")
    agreed = Schema(columns=COLUMNS, target=OF_CLASSES.target)
    alone = result.officer_report()
    assert all(f"no {what} was given, repeat with" in alone for what in ("ledger", "agreed schema"))
    assert result.officer_report(ledger=ledger).count("**Return.** Not checked: ") == 1
    assert "**Return" not in result.officer_report(ledger=ledger, schema=agreed)
    # Who pays from no ledger states that nothing else was released, and counts nothing else.
    unpaid = dpci.fit(X, Y, classes=(False, True), budget=BUDGETS["pure"], l2_strength=0.2).officer_report()
    assert "A written statement says that this is the only release" in unpaid
    assert "Every other release" not in unpaid


def test_what_a_rho_implies_and_what_it_says_of_contents():
    text = made("fit", "zcdp", "add_remove")[0].officer_report()
    # Bun and Steinke's conversion, rounded up.
    epsilon = 0.3 + 2.0 * math.sqrt(0.3 * math.log(1e6))
    # The best guess comes first.
    said = text.partition("spends rho=0.3 (zCDP)")[2].partition("**Best guess.**")[2]
    (shown,) = re.findall(r"The budget implies \(ε, δ\) = \(([\d.]+), 1e-06\);", said)
    assert 0.0 <= float(shown) - epsilon <= 1e-3
    assert text.count("| before | lowest after | highest after |") == 2
    assert "For somebody who also knows that the record is in the data" in text
    assert "Column of ids, as stated by the analyst: ___" in made("persons", "pure", "replace_one")[0].officer_report()


def test_a_file_holds_the_source_of_a_target():
    named = Schema(columns=COLUMNS, target=ClassTarget(column="ill", negative=("no",), positive=("yes",), source="law"))
    for schema, source in ((OF_CLASSES, ""), (named, "law"), (OF_WAGES, "")):
        assert saved_table(schema)["schema"]["target"]["source"] == source
