"""``dpci fit --weights``: the fit of the library, from a file, and what is refused before anything is spent."""

import csv
import json

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.schema import ClassTarget, NumericColumn, Schema

N = 400
SCHEMA = Schema(
    columns=(NumericColumn(name="a", lower=-1, upper=1),),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    a, w = rng.uniform(-1, 1, N), rng.uniform(0.1, 3.0, N)
    ill = np.where(a + rng.logistic(size=N) > 0, "yes", "no")
    with (tmp_path / "survey.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "w", "ill"])
        writer.writerows(zip(a.tolist(), w.tolist(), ill, strict=True))
    (tmp_path / "survey.json").write_text(json.dumps(SCHEMA.to_dict()))
    return tmp_path, {"a": a, "w": w, "ill": ill}


def command(folder, *more):
    return main([
        "fit", str(folder / "survey.csv"), "--schema", str(folder / "survey.json"), "--epsilon", "100000",
        "--l2-strength", "0.1", "--json", *more,
    ])  # fmt: skip


def test_a_table_with_weights(files, capsys):
    folder, table = files
    assert command(folder, "--weights", "w", "--weight-bound", "3", "--weight-total", "620") == 0
    printed = json.loads(capsys.readouterr().out)
    found = dpci.fit(
        table, schema=SCHEMA, weights=dpci.Weights("w", bound=3.0, total=620.0), budget=dpci.PureDP(100_000.0),
        l2_strength=0.1,
    )  # fmt: skip
    assert [row["estimate"] for row in printed["parameters"]] == pytest.approx(found.params, abs=0.01)


def test_chunks_with_weights(files, capsys):
    """Weights of CSV files are texts, one by one."""
    folder, _ = files
    found = []
    for more in (("--chunk-rows", "7"), ()):
        assert command(folder, "--weights", "w", "--weight-bound", "3", *more) == 0
        found.append([row["estimate"] for row in json.loads(capsys.readouterr().out)["parameters"]])
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
def test_refusals(files, capsys, more, message):
    folder, _ = files
    ledger = folder / "ledger.json"
    assert main(["ledger", "create", str(ledger), "--epsilon", "1000000"]) == 0
    assert command(folder, *more, "--ledger", str(ledger)) != 0
    assert message in capsys.readouterr().err
    assert dpci.Ledger.open(ledger).history == ()
