"""How commands end: exit codes, what is on which stream, and files that are complete, absent or left alone."""

import io
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import dpci
from dpci.cli import app as _cli_app
from dpci.cli.main import main
from dpci.cli.output import check_new, new_file
from dpci.errors import InvalidInput
from support.commands import ended
from support.people import fit_arguments

# Exit codes.


def test_a_budget_beyond_the_total_has_its_own_code(people, tmp_path, capsys):
    path = tmp_path / "l.ledger"
    with dpci.Ledger(dpci.PureDP(0.5), path=path) as ledger:
        code, out, err = ended(capsys, *fit_arguments(people, "--ledger", str(path)))
        assert (code, out) == (3, "")
        assert err.startswith("dpci: the ledger cannot pay for this release: requested ")
        assert ledger.spent == {"epsilon": 0.0}


def raising(error):
    """A function that raises it, whatever it is given."""

    def call(*_, **__):
        raise error

    return call


PLAN = ("plan", "--n-samples", "100", "--n-features", "2", "--epsilon", "1", "--l2-strength", "0.1")


def test_a_defect_has_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr("dpci.model.plan.plan", raising(RuntimeError("of course\nnot")))
    code, out, err = ended(capsys, *PLAN)
    assert (code, out) == (70, "")
    assert "Traceback" in err
    assert err.endswith("dpci: a defect of dpci, please report it: RuntimeError: of course not\n")
    code, out, err = ended(capsys, *PLAN, "--json")
    assert (code, out) == (70, "")
    assert "raise error" in json.loads(err)["error"].pop("traceback")


def test_an_interrupt_is_quiet(monkeypatch, capsys):
    monkeypatch.setattr("dpci.model.plan.plan", raising(KeyboardInterrupt()))
    assert ended(capsys, *PLAN) == (130, "", "")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_closed_pipe_is_quiet(people):
    table = people / "long.csv"
    lines = (people / "people.csv").read_text().splitlines(keepends=True)
    table.write_text("".join([lines[0], *lines[1:] * 20]))
    arguments = ["predict", str(people / "model.json"), str(table), "--schema", str(people / "people.toml")]
    command = [sys.executable, "-m", "dpci", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "prediction\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141


# Streams.


@pytest.mark.parametrize(
    ("argv", "kind", "message"),
    [
        (("fit", "--json"), None, "Missing argument"),
        (("fit", "--bogus", "--json"), None, "--bogus"),
        ((*PLAN, "--calibration", "paper", "--projection", "cautious", "--json"), None, "(use --projection floor or"),
        (("fit", "--C", "1", "--json"), None, "--C: give --l2-strength, which is 1 / (C n)"),
        (("report", "none.json", "--json"), "InvalidInput", "a model must be a file that can be read"),
        (("ledger", "show", "none.ledger", "--json"), "LedgerError", "must exist"),
        ((*PLAN[:-1], "0.0001", "--json"), "RegularizationTooSmall", "l2_strength"),
    ],
)
def test_errors_are_json_where_output_is(argv, kind, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, out, err = ended(capsys, *argv)
    assert (code, out) == (2, "")
    found = json.loads(err)["error"]
    assert found["exit_code"] == 2
    assert message in found["message"]
    assert kind in {None, found["type"]}


def test_warnings_are_lines_and_json_too(people, capsys):
    # Little budget for the moments: the fit warns of their noise.
    noisy = fit_arguments(people, "--split", "0.98,0.01,0.01")
    with warnings.catch_warnings(action="always"):  # as in a program, not as in a test
        code, out, err = ended(capsys, *noisy)
        assert code == 0
        assert err.startswith("dpci: warning: the noise in the Hessian is")
        assert err.count("\n") == 1
        code, out, err = ended(capsys, *noisy, "--json")
    assert json.loads(out)["private"]
    assert json.loads(err)["warning"]["type"] == "MomentNoiseWarning"


@pytest.mark.parametrize("argv", [("plan", *PLAN[1:]), ("data",), ("ledger", "show", "x.ledger")])
def test_json_says_what_the_text_says(argv, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with dpci.Ledger(dpci.PureDP(1.0), path="x.ledger"):
        pass
    code, text, _ = ended(capsys, *argv)
    assert code == 0
    code, document, err = ended(capsys, *argv, "--json")
    assert (code, err) == (0, "")
    found = json.loads(document)
    if argv[0] == "data":
        assert [row["name"] for row in found] == [line.split()[0] for line in text.splitlines()[1:]]
    elif argv[0] == "plan":
        assert f"{found['steps'][0]['scale']:.4g}" in text
        assert found["n_params"] == 3
    else:
        assert found["total"] == {"epsilon": 1.0}


def test_progress_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    wants = _cli_app.wants_progress
    assert not wants(progress=None, quiet=False)  # pytest's stderr is no terminal
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert wants(progress=None, quiet=False)
    assert not wants(progress=None, quiet=True)
    assert not wants(progress=False, quiet=False)
    assert wants(progress=True, quiet=True)
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert not wants(progress=None, quiet=False)


def test_progress_on_request(people, monkeypatch, capsys):
    arguments = ("predict", str(people / "model.json"), str(people / "people.csv"), "--schema")
    arguments = (*arguments, str(people / "people.toml"), "--chunk-rows", "100", "--progress")
    code, out, err = ended(capsys, *arguments)
    assert code == 0
    assert len(out.splitlines()) == 2_001
    assert "predicted" in err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    code, _, err = ended(capsys, *arguments)
    assert (code, err) == (2, "dpci: a progress bar needs tqdm: pip install 'dpci[progress]'\n")


def test_rows_that_are_held_are_read_under_a_bar_too(people, capsys):
    model = ("--schema", str(people / "people.toml"), "--epsilon", "1", "--l2-strength", "0.05", "--progress")
    more = ("--replicates", "2", "--variability", "0", "--threads", "1")
    for command in (("fit", *model), ("coverage", *model, *more)):
        code, _, err = ended(capsys, command[0], str(people / "people.csv"), *command[1:])
        assert code == 0
        assert "read: 0.00 rows" in err


def test_no_colour_anywhere(people, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for argv in (("--help",), ("fit", "--help"), ("fit", "--bogus"), ("report", str(people / "model.json"))):
        assert "\x1b" not in "".join(ended(capsys, *argv)[1:])


def test_json_before_a_table_is_none(people, capsys):
    command, table, *rest = fit_arguments(people)
    for place in (str(people / "parts"), str(people / "parts" / "*.csv"), table):
        code, out, err = ended(capsys, command, "--json", place, *rest)
        assert (code, err) == (0, "")
        assert json.loads(out)["n_samples"] == 2_000


# Files.


def test_a_fit_never_spends_for_a_model_that_it_could_not_write(people, tmp_path, capsys):
    path, there = tmp_path / "l.ledger", tmp_path / "there.json"
    there.write_text("kept")
    with dpci.Ledger(dpci.PureDP(1.0), path=path) as ledger:
        for option, name in (("--output", "there.json"), ("--output", "no/m.json"), ("--plot", "there.json")):
            arguments = fit_arguments(people, "--ledger", str(path), option, str(tmp_path / name))
            code, out, err = ended(capsys, *arguments)
            assert (code, out) == (2, "")
            assert f"{option} must name" in err
        assert ended(capsys, *fit_arguments(people, "--output", str(people / "people.csv"), "--force"))[0] == 2
        assert ledger.history == ()
    assert there.read_text() == "kept"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l.ledger", "there.json"]
    assert main(fit_arguments(people, "--output", str(there), "--force")) == 0
    assert dpci.PrivateFit.from_json(there.read_text()).private


def test_what_a_fit_reads_is_never_replaced(people, tmp_path, capsys):
    here, link = shutil.copytree(people, tmp_path / "here"), tmp_path / "link"
    path = here / "l.ledger"
    link.symlink_to(path)
    with dpci.Ledger(dpci.PureDP(9.0), path=path) as ledger:
        names = ["people.csv", "people.toml", *(f"l.ledger{ending}" for ending in ("", "-wal", "-journal", "-lock"))]
        for option in ("--output", "--plot"):
            for name in (*(here / name for name in names), link):
                code, out, err = ended(
                    capsys, *fit_arguments(here, "--ledger", str(link), "--force", option, str(name))
                )
                assert (code, out) == (2, "")
                assert err == f"dpci: {option} must not be one of the input files, got {str(name)!r}\n"
        for name in ("l.ledger", "l.ledger-journal"):
            code, _, err = ended(capsys, "ledger", "export", str(link), "--force", "--output", str(here / name))
            assert (code, "must not be one of the input files" in err) == (2, True)
        assert ledger.history == ()
    assert (here / "people.toml").read_text() == (people / "people.toml").read_text()


def test_the_table_on_stdin_is_not_replaced(people, tmp_path, monkeypatch, capsys):
    table = shutil.copy(people / "people.csv", tmp_path / "people.csv")
    arguments = fit_arguments(people, "--force", "--output", str(table))
    with table.open(encoding="utf-8") as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, _, err = ended(capsys, "fit", "-", *arguments[2:])
    assert (code, "--output must not be one of the input files" in err) == (2, True)


def test_other_commands_replace_nothing_that_they_read(tmp_path, monkeypatch, capsys):
    public = tmp_path / "adult" / "adult.data"
    public.parent.mkdir()
    public.write_text("kept")
    monkeypatch.setenv("DPCI_DATA", str(tmp_path))
    code, out, err = ended(capsys, "data", "adult_sample", "--force", "--export", str(public))
    assert (code, out) == (2, "")
    assert "must not be one of the input files" in err
    assert public.read_text() == "kept"


def test_two_outputs_are_two_files(people, tmp_path, capsys):
    (tmp_path / "link.png").symlink_to(tmp_path / "m.png")
    for other in ("m.png", "./m.png", "link.png"):
        arguments = fit_arguments(people, "--output", str(tmp_path / "m.png"), "--plot", f"{tmp_path}/{other}")
        code, out, err = ended(capsys, *arguments)
        assert (code, out) == (2, "")
        assert err.startswith("dpci: --output and --plot must name different files, got ")
    assert [path.name for path in tmp_path.iterdir()] == ["link.png"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_released_model_is_not_lost(people, tmp_path, monkeypatch, capsys):
    full = tmp_path / "m.json"
    full.symlink_to("/dev/full")
    code, out, err = ended(capsys, *fit_arguments(people, "--output", str(full)))
    assert code == 74
    assert dpci.PrivateFit.from_json(out).private
    reason = f"--output must name a file that can be written, got {str(full)!r}: No space left on device"
    assert err == f"dpci: released and spent, but not written in full: {reason}; the model is on stdout\n"
    # A file that another program has made meanwhile is left alone.
    late, fit = tmp_path / "late.json", dpci.fit

    def slow(*args, **kwargs):
        late.write_text("of another program")
        return fit(*args, **kwargs)

    monkeypatch.setattr("dpci.model.fit.fit", slow)
    code, out, err = ended(capsys, *fit_arguments(people, "--output", str(late)))
    assert code == 74
    assert dpci.PrivateFit.from_json(out).private
    assert "File exists" in err
    assert late.read_text() == "of another program"


def test_a_file_is_complete_or_absent(tmp_path):
    path, link = tmp_path / "f.txt", tmp_path / "link.txt"

    def write_half():
        with new_file("--output", path, force=False) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert list(tmp_path.iterdir()) == []
    with new_file("--output", path, force=False) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    link.symlink_to(path)
    with new_file("--output", link, force=True) as temporary:
        temporary.write_text("through the link")
    assert link.is_symlink()
    assert path.read_text() == "through the link"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.txt", "link.txt"]
    assert path.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    # Two at work do not meet, nor what a killed one has left, whose number another process may have.
    with new_file("--output", path, force=True) as one, new_file("--output", path, force=True) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_without_hard_links_a_file_is_renamed(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "hardlink_to", raising(PermissionError()))
    with new_file("--output", tmp_path / "f.txt", force=False) as temporary:
        temporary.write_text("whole")
    assert [p.name for p in tmp_path.iterdir()] == ["f.txt"]


@pytest.mark.parametrize("name", [".", "x" * 300, "no/f.txt", "nul\0"])
def test_files_that_cannot_be_written(name, tmp_path):
    with pytest.raises(InvalidInput, match="--output must name a"):
        check_new("--output", tmp_path / name, force=True)
    assert list(tmp_path.iterdir()) == []
