"""``--rows`` on the command line: the encoding and the domain go together, from the plan to the prediction."""

import csv
import dataclasses
import json

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.rows import Ball, Blocks
from dpci.schema import Schema
from support.commands import ran
from support.people import columns, fit_arguments

BLOCKS = Blocks([0.5, 1.0])


def printed(capsys, *arguments):
    return ran(capsys, *arguments).out


def fitted(people, tmp_path, *more):
    file = tmp_path / "model.json"
    assert main([*fit_arguments(people), "--output", str(file), "--quiet", *more]) == 0
    return dpci.PrivateFit.from_json(file.read_text())


@pytest.mark.parametrize("more", [(), ("--chunk-rows", "500")])
def test_a_fit_in_blocks(people, tmp_path, more):
    assert fitted(people, tmp_path, "--rows", "blocks", *more).rows == BLOCKS
    ball = fitted(people, tmp_path, "--rows", "ball", "--force", *more)
    assert ball.rows == Ball(1.0)
    # Where nothing is asked for: the blocks within the ball, whose encoding stays.
    within = Schema.from_file(people / "people.toml").rows
    assert fitted(people, tmp_path, "--force", *more).rows == within
    assert fitted(people, tmp_path, "--force", "--mechanism", "output", *more).rows == ball.rows


def test_the_encoding_of_a_file_decides(people, tmp_path):
    own = tmp_path / "own.toml"
    own.write_text('encoding = "full_range"\n' + (people / "people.toml").read_text())
    assert fitted(people, tmp_path, "--schema", str(own)).rows == BLOCKS
    assert fitted(people, tmp_path, "--schema", str(own), "--rows", "ball", "--force").rows == Ball(BLOCKS.norm)


def test_predictions_are_in_the_encoding_of_the_fit(people, tmp_path, capsys):
    model = fitted(people, tmp_path, "--rows", "blocks")
    capsys.readouterr()
    schema = str(people / "people.toml")
    predict = ("predict", tmp_path / "model.json", people / "people.csv", "--schema")
    text = printed(capsys, *predict, schema, "--proba")
    found = [float(line["probability"]) for line in csv.DictReader(text.splitlines())]
    whole = dataclasses.replace(Schema.from_file(schema), encoding="full_range")
    np.testing.assert_allclose(found, model.predict_proba(whole.features(columns()))[:, 1], rtol=1e-14)
    wide = tmp_path / "wide.toml"
    wide.write_text((people / "people.toml").read_text().replace('"A", "B"', '"A", "B", "C"'))
    assert "--schema must" in ran(capsys, *predict, wide, code=2).err


def test_plans(people, capsys):
    shared = ("plan", "--n-samples", "2000", "--epsilon", "1", "--l2-strength", "0.01")
    schema = ("--schema", str(people / "people.toml"))
    assert "blocks of 2 columns, 2 bounded; norm 1.118" in printed(capsys, *shared, *schema, "--rows", "blocks")
    assert "blocks of 2 columns, 2 bounded; norm 1\n" in printed(capsys, *shared, *schema)
    assert "blocks" not in printed(capsys, *shared, *schema, "--rows", "ball")
    document = json.loads(printed(capsys, *shared, *schema, "--rows", "blocks", "--json"))
    assert document["blocks"] == BLOCKS.to_dict()
    assert json.loads(printed(capsys, *shared, "--n-features", "2", "--json"))["blocks"] is None
    for arguments, message in (
        ((*shared, "--n-features", "2", "--rows", "blocks"), "--rows blocks requires --schema"),
        ((*shared, *schema, "--rows", "cube"), "rows must be one of 'ball', 'blocks', got rows='cube'"),
    ):
        assert message in ran(capsys, *arguments, code=2).err


def test_studies(people, capsys):
    shared = ("coverage", str(people / "people.csv"), "--schema", str(people / "people.toml"), "--epsilon", "1")
    short = (*shared, "--l2-strength", "0.05", "--replicates", "4", "--variability", "0", "--json")
    whole = dataclasses.replace(Schema.from_file(people / "people.toml"), encoding="full_range")
    X, y, _ = whole.transform(columns())
    with pytest.warns(dpci.PrivacyLeakWarning):
        study = dpci.simulate.coverage(
            X,
            y,
            rows=whole.rows,
            budget=dpci.PureDP(1.0),
            l2_strength=0.05,
            classes=(-1, 1),
            n_replicates=4,
            n_variability=0,
        )
    found = json.loads(printed(capsys, *short, "--rows", "blocks"))
    assert found["by_param"]["target"] == pytest.approx(study.target.tolist(), rel=1e-12)
    assert json.loads(printed(capsys, *short))["by_param"]["target"] != found["by_param"]["target"]
