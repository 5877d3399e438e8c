"""Every kind of released result is in the one list of the command line, which asks no object for its kind."""

import ast
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.approval.approvable import Approvable
from dpci.cli.saved import KINDS
from dpci.per_instance import Report
from dpci.released.result import Result, name_of
from support.approved import KINDS as MADE
from support.approved import made
from support.commands import ran

CLI = Path(dpci.__file__).with_name("cli")


def of_kind(name):
    """A result of a kind."""
    return made(name, *(("approx", "add_remove") if name == "report" else ("pure", "replace_one")))[0]


def kinds(base=Result):
    """The classes of results that are made of a record."""
    for kind in base.__subclasses__():
        if "_RECORD" in vars(kind):
            yield kind
        yield from kinds(kind)


def test_the_list_has_every_kind():
    assert set(KINDS.values()) == set(kinds())
    assert all(name_of(kind) == name for name, kind in KINDS.items())
    approved = {kind for kind in KINDS.values() if issubclass(kind, Approvable)}
    assert not {kind for kind in approved if not any(isinstance(of_kind(name), kind) for name in MADE)}


def test_no_command_asks_for_the_kind_of_an_object():
    names = {kind.__name__ for kind in (*KINDS.values(), Report)} | {"MomentPlan", "Plan", "SelectedFit"}
    for path in CLI.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asked = {each.id for each in ast.walk(node.args[1]) if isinstance(each, ast.Name)}
                assert not asked & names, f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("kind", MADE)
def test_a_file_is_read_as_its_kind(kind, tmp_path):
    result = of_kind(kind)
    (tmp_path / "saved.json").write_text(result.to_json())
    found = dpci.load(str(tmp_path / "saved.json"))
    assert isinstance(result, type(found))
    assert found.to_json() == result.to_json()
    assert found.digest == result.digest
    assert repr(found).partition(":")[2] == repr(result).partition(":")[2]


def test_a_path_in_the_place_of_text_is_told_from_broken_text(tmp_path):
    (tmp_path / "fit.json").write_text(of_kind(next(iter(MADE))).to_json())
    for path in (tmp_path / "fit.json", str(tmp_path / "fit.json")):
        with pytest.raises(
            dpci.InvalidInput, match=r"must be JSON text, got the path .*\(dpci\.load\(path\) reads it\)"
        ):
            dpci.PrivateFit.from_json(path)
    with pytest.raises(dpci.InvalidInput, match="a model must be a file that can be read"):
        dpci.load(tmp_path / "none.json")
    for path in (None, 5, b"model.json"):
        with pytest.raises(dpci.InvalidInput, match="path must name the file of a saved result"):
            dpci.load(path)


def run(capsys, *arguments, code=0):
    return "".join(ran(capsys, *arguments, code=code))


def test_a_baseline_is_shown_and_predicts_and_is_no_release_to_approve(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (300, 1))
    table = {"age": 54.0 + 72.0 * X[:, 0], "ill": np.where(X[:, 0] > 0, "yes", "no")}
    schema = dpci.schema.Schema(
        columns=(dpci.schema.NumericColumn(name="age", lower=18, upper=90),),
        target=dpci.schema.ClassTarget(column="ill", negative=("no",), positive=("yes",)),
    )
    with warnings.catch_warnings(action="ignore"):
        features, y, _ = schema.transform(table)
        model = dpci.baselines.non_private(features, y, loss="logistic", classes=(-1, 1), l2_strength=0.1)
    file, rows = tmp_path / "model.json", tmp_path / "people.csv"
    (tmp_path / "people.json").write_text(json.dumps(schema.to_dict()))
    file.write_text(model.to_json())
    rows.write_text("age,ill\n" + "".join(f"{a},{b}\n" for a, b in zip(table["age"], table["ill"], strict=True)))
    assert run(capsys, "report", file) == model.summary() + "\n"
    document = json.loads(run(capsys, "report", file, "--json"))
    assert [each["estimate"] for each in document["coefficients"]] == model.params.tolist()
    assert document["privacy"] == model.privacy
    assert "this model is for comparison only" in document["interval_refusal"]
    assert "--schema must be given for a model that holds no schema" in run(capsys, "predict", file, rows, code=2)
    given = ("predict", file, rows, "--schema", tmp_path / "people.json")
    labels = np.where(model.predict(features) > 0, "yes", "no")
    assert run(capsys, *given).splitlines() == ["prediction", *labels]
    proba = run(capsys, *given, "--proba").splitlines()[1:]
    assert [float(line.split(",")[1]) for line in proba] == pytest.approx(model.predict_proba(features)[:, 1])
    for arguments, message in (
        (("report", file, "--level", "0.9"), "--level must not be given for a saved baseline, got 0.9"),
        (("report", file, "--output", tmp_path / "p.html"), "a result with a page, got a saved baseline"),
        (("report", file, "--officer"), "the file must hold a release that can be approved, got a saved baseline"),
        (("verify", file), "the file must hold a release that can be approved, got a saved baseline"),
        (("compare", file, file), "got BaselineFit"),
    ):
        assert message in run(capsys, *arguments, code=2)


def test_files_without_a_model_are_refused_with_their_names(tmp_path, capsys):
    for kind, message in (
        ("strata", "the file must hold a model that predicts, got saved strata: "),
        ("report", "the file must hold a model that predicts, got a saved report: "),
        ("best", "the file must hold a model that predicts, got one that was selected by its own score: "),
    ):
        file = tmp_path / "model.json"
        file.write_text(of_kind(kind).to_json())
        assert f"{message}{str(file)!r}" in run(capsys, "compare", file, file, code=2)
    file.write_text(of_kind("report").to_json())
    assert "the file must hold a result that a command shows, got a saved report" in run(capsys, "report", file, code=2)
