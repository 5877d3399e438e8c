"""``dpci fit`` of rows in blocks and in chunks: the encoding and the domain go together, and memory does not grow."""

import csv
import dataclasses
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import dpci
from dpci.cli.commands import fit as _commands
from dpci.cli.main import main
from dpci.cli.rows import Passes, TableRows, UnitOptions
from dpci.rows import Ball, Blocks
from dpci.schema import Schema
from support.commands import ran
from support.people import as_csv, columns, fit_arguments

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
            X, y, rows=whole.rows, budget=dpci.PureDP(1.0), l2_strength=0.05, classes=(-1, 1), n_replicates=4,
            n_variability=0,
        )  # fmt: skip
    found = json.loads(printed(capsys, *short, "--rows", "blocks"))
    assert found["by_param"]["target"] == pytest.approx(study.target.tolist(), rel=1e-12)
    assert json.loads(printed(capsys, *short))["by_param"]["target"] != found["by_param"]["target"]


FAR = 1e-10


@pytest.fixture
def seeded(monkeypatch):
    """The fits of commands, with noise that repeats: two of them differ by their rounding alone."""
    fit, results = dpci.fit, []

    def repeated(*args, **keywords):
        results.append(fit(*args, seed=1, **keywords))
        return results[-1]

    monkeypatch.setattr("dpci.model.fit.fit", repeated)
    return results


def as_parquet(folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table(columns()), folder / "people.parquet", row_group_size=300)


OPTIONS = [
    (),
    ("--delta", "1e-6"),
    ("--mechanism", "output", "--loss", "huber_hinge"),
    ("--neighbors", "add_remove", "--n-public", "2000", "--moments", "separate"),
]


@pytest.mark.filterwarnings("ignore::dpci.errors.MomentNoiseWarning")
# Each way of reading, and each choice of a fit.
@pytest.mark.parametrize(
    ("table", "options"),
    [*(("people.csv", options) for options in OPTIONS), ("parts", OPTIONS[1]), ("people.parquet", OPTIONS[1])],
    ids=lambda given: given if isinstance(given, str) else " ".join(given),
)
def test_a_fit_by_chunks_is_that_in_memory(people, table, options, seeded):
    as_parquet(people)
    for rows in ((), ("--chunk-rows", "2000"), ("--chunk-rows", "321")):
        assert main(fit_arguments(people, *options, *rows, table=table)) == 0
    whole, *chunked = seeded
    for result in chunked:
        np.testing.assert_allclose(result.params, whole.params, rtol=0, atol=FAR)
        np.testing.assert_allclose(result.hessian, whole.hessian, rtol=0, atol=FAR)
        np.testing.assert_allclose(result.gradient_cov, whole.gradient_cov, rtol=0, atol=FAR)
        assert (result.names, result.n_samples, result.classes) == (whole.names, whole.n_samples, whole.classes)


def test_large_tables_are_read_by_chunks(people, monkeypatch):
    sources = []
    fit = dpci.fit
    monkeypatch.setattr("dpci.model.fit.fit", lambda X, *y, **keywords: sources.append(X) or fit(X, *y, **keywords))
    assert main(fit_arguments(people)) == 0
    monkeypatch.setattr(_commands, "MOST_BYTES", 1_000)
    assert main(fit_arguments(people)) == 0
    assert [isinstance(source, dpci.Chunks) for source in sources] == [False, True]


def test_a_bad_row_in_a_late_chunk_costs_nothing(people, tmp_path, capsys):
    path, table = tmp_path / "l.ledger", people / "bad.csv"
    table.write_text(as_csv(columns(500)) + "40,A,perhaps\n", encoding="utf-8")
    with dpci.Ledger(dpci.PureDP(1.0), path=path) as ledger:
        assert main(fit_arguments(people, "--ledger", str(path), "--chunk-rows", "100", table="bad.csv")) == 2
        captured = capsys.readouterr()
        assert "column 'ill' must hold one of" in captured.err
        assert "(row 0, counted from 0, is line 502" in captured.err
        assert captured.err.count("\n") == 1
        assert ledger.history == ()
        assert main(fit_arguments(people, "--ledger", str(path), "--chunk-rows", "100")) == 0
        assert len(ledger.history) == 1


def test_the_standard_input_is_read_once(people, monkeypatch, capsys):
    arguments = fit_arguments(people, "--json")
    arguments[1] = "-"
    for more, code in ((), 0), (("--chunk-rows", "10"), 2):
        with (people / "people.csv").open(encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert main([*arguments, *more]) == code
    captured = capsys.readouterr()
    assert json.loads(captured.out)["n_samples"] == 2_000
    assert "--chunk-rows requires files, because tables are read several times" in captured.err


def test_each_pass_has_its_bar(people, capsys):
    err = ran(capsys, *fit_arguments(people, "--chunk-rows", "500", "--progress")).err
    assert "pass 1" in err
    assert "pass 2" in err
    rows = TableRows(files=(people / "people.csv",), schema=Schema.from_file(people / "people.toml"), chunk_rows=300)
    passes = Passes(rows, UnitOptions(), progress=False)
    assert [len(X) for X, _, _ in passes()] == [300] * 6 + [200]
    assert [len(X) for X, _, _ in passes()] == [300] * 6 + [200]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_does_not_grow_with_the_table(people):
    """Eight times the rows, and megabytes of them, in the same memory."""
    # Not getrusage, which counts what the parent held when it made the process.
    script = "import re, sys; from pathlib import Path; from dpci.cli import main; code = main(sys.argv[1:])"
    script += "; print(re.search(r'VmHWM:\\s+([0-9]+) kB', Path('/proc/self/status').read_text())[1], file=sys.stderr)"
    script += "; sys.exit(code)"
    peaks = []
    for n in (10_000, 80_000):
        (people / f"{n}.csv").write_text(as_csv(columns(n)), encoding="utf-8")
        arguments = fit_arguments(people, "--chunk-rows", "2000", "--threads", "1", table=f"{n}.csv")
        run = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
        peaks.append(int(run.stderr.split()[-1]))
    # Rows and texts of 70,000 more people take 19 MB.
    assert peaks[1] - peaks[0] < 8_000


def test_a_pipe_is_read_once(people, tmp_path, seeded, capsys):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    text = (people / "people.csv").read_text(encoding="utf-8")
    assert main(fit_arguments(people, "--chunk-rows", "10", table=str(pipe))) == 2
    assert (
        f"--chunk-rows requires files, because tables are read several times, got {str(pipe)!r}"
        in capsys.readouterr().err
    )
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    for table in (str(pipe), "people.csv"):
        assert main(fit_arguments(people, table=table)) == 0
    writer.join()
    np.testing.assert_array_equal(seeded[0].params, seeded[1].params)
