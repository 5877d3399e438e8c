"""``dpci fit`` with ``--persons`` and ``--weights``: the fit of the library, from a file, and what is refused."""

import csv
import json

import numpy as np
import pytest

import dpci
from dpci.cli.commands import fit
from dpci.cli.main import main
from dpci.schema import CategoricalTarget, ClassTarget, NumericColumn, Schema
from support.commands import ran

COLUMNS = (NumericColumn(name="a", lower=-1, upper=1), NumericColumn(name="b", lower=-1, upper=1))
TARGET = ClassTarget(column="ill", negative=("no",), positive=("yes",))


@pytest.fixture
def files(tmp_path):
    panel = dpci.datasets.simulate_panel(300, n_rows=(1, 6), n_features=2, seed=0)
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "who", "ill"])
        writer.writerows(
            [*row, f"secret-{who}", "yes" if y > 0 else "no"]
            for row, y, who in zip(panel.X.tolist(), panel.y, panel.persons, strict=True)
        )
    schema = Schema(columns=COLUMNS, target=TARGET)
    (tmp_path / "visits.json").write_text(json.dumps(schema.to_dict()))
    (tmp_path / "named.json").write_text(json.dumps(schema.to_dict() | {"persons": "who"}))
    several = Schema(columns=COLUMNS, target=CategoricalTarget(column="ill", classes=("no", "yes", "unknown")))
    (tmp_path / "modes.json").write_text(json.dumps(several.to_dict() | {"persons": "who"}))
    return tmp_path


def command(files, *more, schema="visits.json"):
    return main([
        "fit", str(files / "visits.csv"), "--schema", str(files / schema), "--epsilon", "100000",
        "--l2-strength", "0.1", "--json", *more,
    ])  # fmt: skip


def test_a_table_of_persons(files, capsys):
    assert command(files, "--persons", "who") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["n_samples"] == 300
    assert "secret" not in json.dumps(printed)
    panel = dpci.datasets.simulate_panel(300, n_rows=(1, 6), n_features=2, seed=0)
    table = {"a": panel.X[:, 0], "b": panel.X[:, 1], "ill": np.where(panel.y > 0, "yes", "no"), "who": panel.persons}
    schema = Schema(columns=COLUMNS, target=TARGET)
    found = dpci.fit(table, schema=schema, persons="who", budget=dpci.PureDP(100_000.0), l2_strength=0.1)
    estimates = [row["estimate"] for row in printed["scaled"]]
    assert estimates == pytest.approx(found.scaled.params, abs=0.01)
    assert command(files, "--persons", "who", "--max-rows", "2") == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 300


@pytest.mark.parametrize(
    ("more", "schema", "message"),
    [
        ((), "named.json", "--persons who must be given"),
        (("--persons", "a"), "named.json", "the column of persons that the schema names, 'who'"),
        (("--persons", "who", "--weights", "who", "--weight-bound", "9"), "visits.json", "must be two columns"),
        (("--max-rows", "2"), "visits.json", "--max-rows must go with --persons"),
        (("--persons", "who", "--chunk-rows", "10"), "visits.json", "all of their rows in one part"),
        (("--persons", "whom"), "visits.json", "'whom'"),
    ],
)
def test_refusals(files, capsys, more, schema, message):
    assert command(files, *more, schema=schema) != 0
    assert message in capsys.readouterr().err


def sort_by_person(files):
    """Put the rows of a person together in the file, with a weight each."""
    header, *lines = (files / "visits.csv").read_text().splitlines()
    lines = sorted(lines, key=lambda line: line.split(",")[2])
    weighted = [f"{line},{1 + k % 3}.5" for k, line in enumerate(lines)]
    (files / "visits.csv").write_text("\n".join([f"{header},w", *weighted]) + "\n")


@pytest.mark.parametrize("chunk_rows", [1, 10, 100_000])
@pytest.mark.parametrize("weights", [(), ("--weights", "w", "--weight-bound", "4")], ids=["", "weighted"])
def test_chunks_of_a_sorted_file_are_the_whole(files, capsys, chunk_rows, weights):
    sort_by_person(files)
    found = []
    for more in (("--chunk-rows", str(chunk_rows)), ()):
        assert command(files, "--persons", "who", *weights, *more) == 0
        found.append(json.loads(capsys.readouterr().out))
    estimates = [[row["estimate"] for row in one["scaled"]] for one in found]
    np.testing.assert_allclose(*estimates, atol=0.01)
    assert found[0]["n_samples"] == found[1]["n_samples"] == 300


def test_tables_beyond_memory_are_read_in_chunks(files, capsys, monkeypatch):
    monkeypatch.setattr(fit, "MOST_BYTES", 100)
    assert command(files, "--persons", "who") != 0
    assert "sort the rows by person" in capsys.readouterr().err
    sort_by_person(files)
    assert command(files, "--persons", "who") == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 300


def test_private_errors_read_persons_in_chunks(files, capsys):
    sort_by_person(files)
    ledger = str(files / "l.ledger")
    create = ["ledger", "create", ledger, "--epsilon", "200000", "--errors", "private", "--neighbors", "add_remove"]
    assert main([*create, "--n-public", "300"]) == 0
    private = ("--ledger", ledger, "--neighbors", "add_remove", "--n-public", "300", "--on-violation", "clip")
    private = (*private, "--persons", "who")
    assert command(files, *private, "--weights", "w", "--weight-bound", "4") == 0
    # Nothing of the ids is said, but that the release failed.
    (files / "visits.csv").write_text((files / "visits.csv").read_text().replace("secret-1,", ",", 1))
    capsys.readouterr()
    assert command(files, *private) == 4
    assert "secret" not in capsys.readouterr().err
    assert [entry.unit for entry in dpci.Ledger.open(ledger).history] == ["person", "person"]


def test_a_person_in_two_files_is_refused(files, capsys):
    sort_by_person(files)
    header, *lines = (files / "visits.csv").read_text().splitlines()
    for k, part in enumerate((lines[:3], lines[1:])):
        (files / f"part{k}.csv").write_text("\n".join([header, *part]) + "\n")
    (files / "visits.csv").unlink()
    found = main([
        "fit", str(files / "part*.csv"), "--schema", str(files / "visits.json"), "--epsilon", "9", "--chunk-rows", "50",
        "--l2-strength", "0.1", "--persons", "who",
    ])  # fmt: skip
    assert found != 0
    assert "all of their rows in one part" in capsys.readouterr().err


def test_studies_and_tuning_take_persons(files, capsys):
    common = ["--schema", str(files / "visits.json"), "--epsilon", "100000", "--json", "--persons", "who"]
    study = ["--l2-strength", "0.1", "--replicates", "2", "--variability", "0"]
    assert json.loads(ran(capsys, "coverage", files / "visits.csv", *common, *study).out)
    assert main(["coverage", "adult_sample", "--epsilon", "1", *study, "--persons", "age"]) != 0
    assert "columns of a table of yours" in capsys.readouterr().err
    candidates = ["--candidate", "l2_strength=.1", "--candidate", "l2_strength=.2", "--validation-radius", "3"]
    assert json.loads(ran(capsys, "tune", files / "visits.csv", *common, *candidates).out)["n_samples"] == 300


def test_a_line_without_an_id_is_refused(files, capsys):
    text = (files / "visits.csv").read_text().splitlines()
    cells = text[5].split(",")
    text[5] = ",".join([*cells[:2], "", cells[3]])
    (files / "visits.csv").write_text("\n".join(text) + "\n")
    assert command(files, "--persons", "who") != 0
    error = capsys.readouterr().err
    assert "persons must have an id in every row" in error
    assert "secret" not in error


def test_a_plan_is_for_persons(files, capsys):
    def planned(*more, schema="visits.json"):
        common = ["--n-samples", "5000", "--schema", str(files / schema), "--epsilon", "1", "--l2-strength", "0.05"]
        assert main(["plan", *common, *more]) == 0
        return capsys.readouterr().out

    rows, persons = planned(), planned("--persons", "who")
    assert "persons" not in rows
    assert "n=5,000 persons" in persons
    assert "the mean of each person's rows" in persons
    # The schema that names a column makes the plan that the fit will keep.
    assert planned(schema="named.json") == persons
    assert "the first 3 rows of each person" in planned("--max-rows", "3", schema="named.json")
    weighted = json.loads(planned("--weight-bound", "2", "--weight-total", "9000", "--json"))
    assert (weighted["unit"], weighted["weights"]) == ("row", {"bound": 2.0, "total": 9000.0})
    assert json.loads(planned("--persons", "who", "--json"))["unit"] == "person"
    assert main(["plan", "--n-samples", "5000", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.05",
                 "--max-rows", "3"]) == 2  # fmt: skip
    assert "--max-rows must go with --persons" in capsys.readouterr().err
    for loss in ([], ["--loss", "multinomial"]):
        schema = ["--schema", str(files / ("named.json" if not loss else "modes.json"))]
        asked = ["plan", "--n-samples", "5000", *schema, "--epsilon", "1", "--l2-strength", "0.05", *loss]
        assert main([*asked, "--persons", "patient"]) == 2
        assert "must be the column of persons that the schema names, 'who'" in capsys.readouterr().err
        assert "the first 3 rows of each person" in ran(capsys, *asked, "--max-rows", "3").out


def test_a_check_finds_what_the_fit_refuses_of_ids(files, capsys):
    """Rows without an id, as the fit counts them, and a table without the column."""
    asked = ["check", str(files / "visits.csv"), "--schema", str(files / "named.json")]
    assert " persons, at most 6 rows each  " in ran(capsys, *asked).out
    # A schema that does not name the column leaves it to the option.
    unnamed = [*asked[:3], str(files / "visits.json"), "--persons"]
    assert "persons, at most 6 rows each: fit with persons='who'" in ran(capsys, *unnamed, "who").out
    assert "must have the column 'whom'" in ran(capsys, *unnamed, "whom", code=2).err
    lines = (files / "visits.csv").read_text().splitlines()
    where = lines[0].split(",").index("who")
    for row, cell in ((5, ""), (9, "NA"), (11, " nan ")):
        cells = lines[row].split(",")
        lines[row] = ",".join([*cells[:where], cell, *cells[where + 1 :]])
    (files / "visits.csv").write_text("\n".join(lines) + "\n")
    printed = ran(capsys, *asked, "--json", code=1).out
    (found,) = (f for f in json.loads(printed)["findings"] if "without" in f["what"])
    assert (found["what"], found["n_rows"], found["examples"]) == ("without an id: refused", 3, [])
    assert "secret" not in printed
    (files / "visits.csv").write_text("\n".join(line.replace("who", "whom") for line in lines) + "\n")
    assert "the table must have the column 'who'" in ran(capsys, *asked, code=2).err


N_ROWS = 400
SURVEY = Schema(
    columns=(NumericColumn(name="a", lower=-1, upper=1),),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


@pytest.fixture
def survey(tmp_path):
    rng = np.random.default_rng(0)
    a, w = rng.uniform(-1, 1, N_ROWS), rng.uniform(0.1, 3.0, N_ROWS)
    ill = np.where(a + rng.logistic(size=N_ROWS) > 0, "yes", "no")
    with (tmp_path / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "w", "ill"])
        writer.writerows(zip(a.tolist(), w.tolist(), ill, strict=True))
    (tmp_path / "survey.json").write_text(json.dumps(SURVEY.to_dict()))
    return tmp_path, {"a": a, "w": w, "ill": ill}


def fit_survey(folder, *more):
    return main([
        "fit", str(folder / "survey.csv"), "--schema", str(folder / "survey.json"), "--epsilon", "100000",
        "--l2-strength", "0.1", "--json", *more,
    ])  # fmt: skip


def test_a_table_with_weights(survey, capsys):
    folder, table = survey
    assert fit_survey(folder, "--weights", "w", "--weight-bound", "3", "--weight-total", "620") == 0
    printed = json.loads(capsys.readouterr().out)
    found = dpci.fit(
        table, schema=SURVEY, weights=dpci.Weights("w", bound=3.0, total=620.0), budget=dpci.PureDP(100_000.0),
        l2_strength=0.1,
    )  # fmt: skip
    assert [row["estimate"] for row in printed["scaled"]] == pytest.approx(found.scaled.params, abs=0.01)


def test_chunks_with_weights(survey, capsys):
    """Weights of CSV files are texts, one by one."""
    folder, _ = survey
    found = []
    for more in (("--chunk-rows", "7"), ()):
        assert fit_survey(folder, "--weights", "w", "--weight-bound", "3", *more) == 0
        found.append([row["estimate"] for row in json.loads(capsys.readouterr().out)["scaled"]])
    np.testing.assert_allclose(*found, atol=0.01)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--weights", "w"), "--weight-bound, the greatest weight"),
        (("--weight-bound", "3"), "weights must be given"),
        (("--weights", "w", "--weight-bound", "1"), "at most weight_bound=1"),
        (("--weights", "v", "--weight-bound", "3"), "'v'"),
        (("--weights", "ill", "--weight-bound", "3"), "must have a number in every row"),
        (("--weights", "ill", "--weight-bound", "3", "--chunk-rows", "10"), "must have a number in every row"),
    ],
)
def test_refusals_of_weights(survey, capsys, more, message):
    folder, _ = survey
    ledger = folder / "ledger.json"
    assert main(["ledger", "create", str(ledger), "--epsilon", "1000000"]) == 0
    assert fit_survey(folder, *more, "--ledger", str(ledger)) != 0
    assert message in capsys.readouterr().err
    assert dpci.Ledger.open(ledger).history == ()
