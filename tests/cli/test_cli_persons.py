"""``dpci fit --persons``: the fit of the library, from a file, and what is refused."""

import csv
import json

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.schema import ClassTarget, NumericColumn, Schema

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
    estimates = [row["estimate"] for row in printed["parameters"]]
    assert estimates == pytest.approx(found.params, abs=0.01)
    assert command(files, "--persons", "who", "--max-rows", "2") == 0
    assert json.loads(capsys.readouterr().out)["n_samples"] == 300


@pytest.mark.parametrize(
    ("more", "schema", "message"),
    [
        ((), "named.json", "--persons who must be given"),
        (("--persons", "a"), "named.json", "the column of persons that the schema names, 'who'"),
        (("--persons", "who", "--weights", "who", "--weight-bound", "9"), "visits.json", "must be two columns"),
        (("--max-rows", "2"), "visits.json", "--max-rows must go with --persons"),
        (("--persons", "who", "--chunk-rows", "10"), "visits.json", "the table is held in memory"),
        (("--persons", "whom"), "visits.json", "'whom'"),
    ],
)
def test_refusals(files, capsys, more, schema, message):
    assert command(files, *more, schema=schema) != 0
    assert message in capsys.readouterr().err


def test_a_line_without_an_id_is_refused(files, capsys):
    text = (files / "visits.csv").read_text().splitlines()
    cells = text[5].split(",")
    text[5] = ",".join([*cells[:2], "", cells[3]])
    (files / "visits.csv").write_text("\n".join(text) + "\n")
    assert command(files, "--persons", "who") != 0
    error = capsys.readouterr().err
    assert "missing ids" in error
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
    assert "at most 3 rows a person" in planned("--max-rows", "3", schema="named.json")
    weighted = json.loads(planned("--weight-bound", "2", "--weight-total", "9000", "--json"))
    assert (weighted["unit"], weighted["weights"]) == ("row", {"bound": 2.0, "total": 9000.0})
    assert json.loads(planned("--persons", "who", "--json"))["unit"] == "person"
    assert main(["plan", "--n-samples", "5000", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.05",
                 "--max-rows", "3"]) != 0  # fmt: skip
    assert "persons" in capsys.readouterr().err
