"""Forged files: a field that is changed is refused, found by verification, or the report says what is in the file."""

import copy
import json
import math
import os
import pickle
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import dpci
from dpci.cli.main import main
from dpci.errors import InvalidInput
from dpci.per_instance.record import ReportRecord
from dpci.schema import NumericColumn, Schema
from dpci.shown.document import Document, Facts
from dpci.shown.text import as_text
from support.approved import COLUMNS, OF_CLASSES, REAL, TABLE, WEIGHTS, X, Y, made, opened
from support.approved import KINDS as KINDS_OF_ALL
from support.commands import ran
from support.forged import changed, failures, is_found
from support.saved import rewritten

pytestmark = pytest.mark.filterwarnings("ignore::dpci.MomentNoiseWarning")


# What decides the noise, or says how much there is; a place in the file and its other values.
FACTORS = (0.1, 0.5, 0.999, 1.001, 2.0, 10.0)
OF_FIT = (
    *("n_samples", "norm", "slope_bound", "curvature_bound", "intercept_scale", "l2_strength"),
    *("noise_scale", "noise_spectral_radius"),
)
OF_STEP = ("cost", "scale", "sensitivity")
OF_MATRIX = ("n_samples", "constant", "target_weight", "target_half")
ENUMERATIONS = {
    "notion": ("pure", "zcdp", "approx", "gdp"),
    "neighbors": ("replace_one", "add_remove"),
    "mechanism": ("objective", "output"),
    "moments": ("joint", "separate", "none"),
    "calibration": ("tight", "paper"),
    "noise_law": ("spherical_laplace", "gaussian", "shaped_laplace", "shaped_gaussian"),
}


def places(node, wanted, prefix=()):
    """Yield the paths of the numbers and names of an object that are called so."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in pairs:
        here = (*prefix, key)
        if isinstance(value, dict | list):
            if key not in {"loss", "table", "params", "hessian", "gradient_cov", "matrix"}:
                yield from places(value, wanted, here)
        elif key in wanted and value is not None:
            yield here


BOTH = ("replace_one", "add_remove")
KINDS = [
    *(("fit", notion, neighbors) for notion in ("pure", "zcdp", "approx") for neighbors in BOTH),
    *((kind, "pure", "replace_one") for kind in ("output", "max_rows", "weights", "ball", "schema", "multinomial")),
    *((kind, "zcdp", "add_remove") for kind in ("output", "groups", "stratum", "multinomial")),
    *(("multinomial_of_persons", notion, "add_remove") for notion in ("pure", "approx")),
]


def others_of(values, wanted):
    """Yield a place and another value of each number and name that is called so."""
    for place in places(values, wanted):
        value = values
        for key in place:
            value = value[key]
        if isinstance(value, str):
            yield from ((place, other) for other in ENUMERATIONS[place[-1]] if other != value)
        else:
            # An integer stays one, and zero stays zero.
            numbers = [round(value * factor) if isinstance(value, int) else value * factor for factor in FACTORS]
            yield from ((place, other) for other in numbers if other != value)


@pytest.mark.parametrize("case", KINDS, ids="-".join)
def test_numbers_that_decide_the_noise_of_a_fit_are_calibrated_again(case):
    result, values = opened(*case)
    assert failures(result) == []
    assert type(result).from_json(rewritten(values)).to_json() == result.to_json()
    for place, other in others_of(values, (*OF_FIT, *OF_STEP, *ENUMERATIONS)):
        # With a public total of the weights the number of records decides nothing.
        if (case[0], place[-1]) != ("weights", "n_samples"):
            assert is_found(type(result), changed(values, place, other)), (place, other)


@pytest.mark.parametrize("kind", ["matrix", "robust", "refined", "matrix_of_persons", "matrix_of_weights", "wages"])
def test_numbers_that_decide_the_noise_of_a_matrix_are_calibrated_again(kind):
    result, _ = made(kind, "zcdp", "replace_one")
    if not isinstance(result, dpci.regression.MomentMatrix):
        result = dpci.regression.MomentMatrix.of(result)
    values = json.loads(result.to_json())
    assert failures(result) == []
    for place, other in others_of(values, (*OF_MATRIX, *OF_STEP, "cap", "square_weight", "neighbors", "notion")):
        assert is_found(type(result), changed(values, place, other)), (place, other)


@pytest.mark.parametrize(("kind", "part"), [("robust", "residuals"), ("refined", "refined")])
def test_residuals_are_taken_at_the_coefficients_of_the_matrix(kind, part):
    # A refined regression steps from there, so that another point gives other coefficients.
    result, _ = made(kind, "zcdp", "replace_one")
    if not isinstance(result, dpci.regression.MomentMatrix):
        result = dpci.regression.MomentMatrix.of(result)
    values = json.loads(result.to_json())
    for i, value in enumerate(values[part][0]["point"]):
        assert is_found(type(result), changed(values, (part, 0, "point", i), value + 0.001)), i


# Numbers that no file contradicts: its ledger's entry; released ones, but for their lattices; and public ones on which
# no other number depends, as the rows' bounds of Newton steps, the radius of a continued loss, and other candidates.
RELEASED = {"params", "hessian", "gradient_cov", "gradient"}
OPEN = {"entry", "failure_probability", "candidates"}
OF_NEWTON = {"norm", "intercept_scale"}
IN_FULL = [
    *(("newton", notion, "replace_one") for notion in ("pure", "zcdp", "approx")),
    *(("report", "approx", "add_remove"), ("rule", "zcdp", "replace_one"), ("chosen_fit", "zcdp", "replace_one")),
    *((kind, notion, "replace_one") for kind in ("chosen", "best") for notion in ("pure", "approx")),
]


@pytest.mark.parametrize("case", IN_FULL, ids="-".join)
def test_every_number_is_compared_with_the_others(case):
    result, values = opened(*case)
    assert failures(result) == []
    unseen = RELEASED | OPEN | (OF_NEWTON if case[0] == "newton" else {"parts"} if case[0] == "chosen_fit" else set())
    assert [place for place in numbers_of(values, unseen) if not is_found(type(result), more(values, place))] == []


def numbers_of(node, without, prefix=()):
    """Yield the places of the numbers of an object, but for those that are called so or within what is."""
    for key, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(value, dict | list):
            if key not in without:
                yield from numbers_of(value, without, (*prefix, key))
        elif isinstance(value, int | float) and not isinstance(value, bool) and key not in without:
            yield (*prefix, key)


def more(values, place):
    """The object with a number a tenth greater, or one more."""
    value = values
    for key in place:
        value = value[key]
    return changed(values, place, value + max(1, round(0.1 * value)) if isinstance(value, int) else 1.1 * value or 0.1)


@pytest.mark.parametrize("kind", ["chosen", "best", "rule"])
def test_the_chosen_candidate_is_that_of_the_model(kind):
    result, _ = made(kind, "pure", "replace_one")
    for change in (
        {"l2_strength": 0.4},
        {"l2_strength": None},
        {"odd": 1},
        {"loss": "squared"},
        {"mechanism": "output"},
    ):
        values = json.loads(result.to_json())
        values["params"] |= change
        with pytest.raises(InvalidInput, match="params must"):
            type(result).from_json(rewritten(values))


def test_a_failure_probability_is_a_number():
    values = json.loads(made("report", "approx", "add_remove")[0].to_json())
    for value in (math.nan, math.inf, -1.0, 10**400):
        with pytest.raises(InvalidInput, match="failure_probability must be finite"):
            ReportRecord.from_json(rewritten({**values, "failure_probability": value}))


def test_one_stratum_of_another_kind_is_refused():
    result, values = opened("strata_of_persons", "pure", "add_remove")
    for name, other in (
        ("persons", None), ("persons", {"max_rows": 7}), ("on_violation", "clip"), ("private", False),
        ("version", "0.0.1"), ("paid", None), ("weights", {"bound": 2.0, "total": None}), ("l2_strength", 0.25),
        ("classes_inferred", True), ("table", None), ("named_columns", False),
    ):  # fmt: skip
        for at in (0, 1):
            forged = copy.deepcopy(values)
            forged["strata"][at][1][name] = other
            with pytest.raises(InvalidInput, match=rf"one kind, got another {name}|persons must be given"):
                dpci.StrataFit.from_json(rewritten(forged))
    chosen = "the list of strata, the public number of persons, budget, bounds"
    assert f"if any of these was chosen after a look at these data: {chosen}" in result.officer_report()


def test_a_field_that_comes_twice_is_refused():
    for case in (
        ("fit", "pure", "replace_one"),
        ("strata", "pure", "replace_one"),
        ("regression", "pure", "replace_one"),
    ):
        result, _ = made(*case)
        text = result.to_json()
        for extra in ('{"private": false, ', '{"schema_version": 1, '):
            with pytest.raises(InvalidInput, match="twice in one object"):
                type(result).from_json(text.replace("{", extra, 1).replace('{"', '{"private": true, "', 1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("version", "0.1.0\n| ok | forged |"),
        ("version", ""),
        ("version", "x" * 2000),
        ("paid", {"ledger": "x\nok  forged", "entry": 1, "time": "2026-01-01T00:00:00.000000Z"}),
        ("paid", {"ledger": "a" * 32, "entry": 1, "time": "\x1b[2J"}),
    ],
)
def test_versions_and_ledgers_are_named_as_they_are_written(name, value):
    for kind in ("fit", "matrix"):
        result, values = opened(kind, "pure", "replace_one")
        values[name] = value
        with pytest.raises(InvalidInput, match=rf"{name}(\.\w+)? must be") as caught:
            type(result).from_json(rewritten(values))
        assert len(str(caught.value)) < 300


def test_no_name_of_a_file_changes_a_terminal(tmp_path, capsys):
    hostile = "state\x1b[2J\nok           forged"
    _, values = opened("strata", "pure", "replace_one")
    values["by"] = hostile
    path = tmp_path / "saved.json"
    path.write_text(rewritten(values), encoding="utf-8")
    ledger = tmp_path / "l.db"
    dpci.Ledger(dpci.PureDP(1.0), path=ledger)
    for arguments in (("verify", "--ledger", str(ledger)), ("report",), ("report", "--officer")):
        main([arguments[0], str(path), *arguments[1:]])
        shown = "".join(capsys.readouterr())
        assert "\x1b" not in shown
        assert not re.search("^ok           forged", shown, re.MULTILINE)
    assert "\x1b" not in as_text(Document(parts=[Facts([("by\x1b[2J", "a\x1b[2J")])]))
    values["budget"]["notion"] = "\x1b[2J" + "x" * 100_000
    path.write_text(rewritten(values), encoding="utf-8")
    shown = ran(capsys, "verify", path, code=2).err
    assert "\x1b" not in shown
    assert len(shown) < 5_000


def test_the_reasons_of_bounds_are_those_of_the_agreed_schema():
    result, _ = made("schema", "pure", "replace_one")
    (column,) = COLUMNS
    agreed = Schema(columns=(column,), target=OF_CLASSES.target)
    assert failures(result, schema=agreed) == []
    other = NumericColumn(name="age", lower=18, upper=90, source="a look at the table")
    agreed = Schema(columns=(other,), target=OF_CLASSES.target)
    assert failures(result, schema=agreed) == []
    said = (
        "| stated | column 'age' has the source 'law' in the model, 'a look at the table' in the agreed schema (neither"
    )
    assert said in result.officer_report(schema=agreed)


def test_persons_are_told_apart_by_the_ledger_alone():
    # Noise for persons is that for rows, where each has one share: a file of rows may say that it is of persons.
    result, ledger = made("bare", "pure", "replace_one")
    values = json.loads(result.to_json())
    values["persons"] = {"max_rows": None}
    forged = dpci.PrivateFit.from_json(rewritten(values))
    assert "| not shown | that rows were told apart by their persons" in forged.officer_report()
    assert any(
        "another unit of privacy than the model: row in the ledger, person in the model" in what
        for what in failures(forged, ledger=ledger)
    )
    assert "told apart by their persons" not in result.officer_report()
    # Where the schema names their column, rows are no records.
    schema = Schema(columns=COLUMNS, target=OF_CLASSES.target, persons="id")
    table = {"age": np.linspace(18, 90, 600), "ill": np.resize(["no", "yes"], 600), "id": np.arange(600) // 2}
    with warnings.catch_warnings(action="ignore"):
        of_persons = dpci.fit(table, schema=schema, persons="id", budget=dpci.PureDP(1.0), l2_strength=0.5)
    values = json.loads(of_persons.to_json())
    values["persons"] = None
    with pytest.raises(InvalidInput, match="persons must be given where the schema names a column of them, 'id'"):
        dpci.PrivateFit.from_json(rewritten(values))


def test_a_budget_is_spent_in_full_and_every_vector_has_its_seal():
    for notion in ("pure", "zcdp"):
        result, values = opened("fit", notion, "replace_one")
        (name,) = values["budget"].keys() - {"notion"}
        values["budget"][name] *= 1.0001
        with pytest.raises(InvalidInput, match="must spend the whole budget"):
            dpci.PrivateFit.from_json(rewritten(values))
        values = json.loads(result.to_json())
        del values["seals"][1]
        with pytest.raises(InvalidInput, match="the seals with moments='joint' must be those of"):
            dpci.PrivateFit.from_json(rewritten(values))


def test_damaged_numbers_are_no_crash():
    result, values = opened("fit", "pure", "replace_one")
    values["intercept_scale"] = 1e300
    assert is_found(dpci.PrivateFit, values)
    result, values = opened("refined", "pure", "replace_one")
    release = values["release"]
    small = [{**release["refined"][0], "cap": 5e-324}]
    assert is_found(type(result), {**values, "release": {**release, "refined": small}})
    far = type(result).from_json(rewritten({**values, "release": {**release, "scale": [1e300, 0.5]}}))
    assert "so that it has no coefficients" in far.officer_report()
    with pytest.raises(InvalidInput, match="each once"):
        type(result).from_json(rewritten({**values, "model": {**values["model"], "features": ["x0", "x1", "x1"]}}))


def test_a_device_without_an_end_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("dpci.cli.saved._MOST", 10_000)
    assert main(["verify", "/dev/zero"]) == 2
    assert "a model must be a file of at most 10,000 bytes, got '/dev/zero'" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes that have names")
@pytest.mark.parametrize("arguments", [
    ("verify", "pipe"), ("report", "pipe"), ("verify", "model.json", "--schema", "pipe.toml"),
    ("verify", "model.json", "--ledger", "pipe"),
])  # fmt: skip
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(arguments, tmp_path):
    (tmp_path / "model.json").write_text(made("fit", "pure", "replace_one")[0].to_json())
    for name in ("pipe", "pipe.toml"):
        os.mkfifo(tmp_path / name)
    command = [sys.executable, "-m", "dpci", *arguments]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert ended.returncode in {1, 2}
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize("content", [
    b"", b"\xff\xfe", b"[" * 200_000, b'{"a":' * 200_000, b"null", b"\0" * 1000, b"9" * 100_000, b'{"schema": 1e999}',
    ('{"schema": "dpci.PrivateFit", "x": "' + "x" * 5_000_000 + '"}').encode(),
], ids=range(9))  # fmt: skip
@pytest.mark.parametrize("command", ["verify", "report"])
def test_what_is_no_result_is_refused_on_one_line(content, command, tmp_path, capsys):
    path = tmp_path / "saved.json"
    path.write_bytes(content)
    shown = ran(capsys, command, path, code=2).err
    assert shown.count("\n") == 1
    assert len(shown) < 5_000
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert main([command, str(link)]) == 2
    assert main([command, str(tmp_path)]) == 2
    assert main([command, str(tmp_path / "none")]) == 2


@pytest.mark.parametrize("kind", KINDS_OF_ALL)
def test_no_number_of_the_data_is_saved_or_pickled(kind):
    notion, neighbors = ("approx", "add_remove") if kind == "report" else ("pure", "replace_one")
    result, _ = made(kind, notion, neighbors)
    saved, pickled = result.to_json(), pickle.dumps(result)
    data = [*X[:50].ravel(), *REAL[:50], *WEIGHTS[:50], *TABLE["age"][:50], *TABLE["wage"][:50]]
    for number in map(float, data):
        if abs(number) not in {0.0, 1.0}:
            assert repr(number) not in saved
            assert np.float64(number).tobytes() not in pickled
    # The least regularised loss of all records, without noise, where it is that of the released parameters.
    if kind in {"fit", "output", "bare"}:
        exact = dpci.lowlevel.minimize_erm(X, np.where(Y, 1.0, -1.0), loss="logistic", l2_strength=0.2, intercept=1.0)
        assert not np.isin(np.asarray(exact.params), result.params).any()
        for number in np.asarray(exact.params).tolist():
            assert repr(number)[:10] not in saved
            assert np.float64(number).tobytes() not in pickled
