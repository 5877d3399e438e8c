"""Streams that are closed or full, and signals: nothing is spent in vain, and what was released is not lost."""

import errno
import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dpci
from dpci.cli.main import main
from dpci.model.result import PrivateFit
from support.commands import ran
from support.people import fit_arguments

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="streams and signals of POSIX")


def run_in_shell(arguments, redirection, *, before=""):
    """Run the program as a shell does with such streams."""
    shell = ["/bin/sh", "-c", f'{before} "$@" {redirection}', "sh"]
    command = [*shell, sys.executable, "-m", "dpci", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


# Before anything is spent.


@pytest.mark.parametrize(
    ("redirection", "message"),
    [
        (">&-", "the standard output must be open, got a closed one"),
        ("1</dev/null", "the standard output must be writable, got Bad file descriptor"),
        (">/dev/full", "the standard output must be writable, got No space left on device"),
    ],
)
def test_nothing_is_spent_for_a_screen_that_shows_nothing(people, redirection, message, tmp_path):
    if "full" in redirection and not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")
    path = tmp_path / "l.ledger"
    with dpci.Ledger(dpci.PureDP(1.0), path=path) as ledger:
        run = run_in_shell(fit_arguments(people, "--ledger", str(path)), redirection)
        assert (run.returncode, run.stdout) == (2, "")
        assert run.stderr.startswith(f"dpci: {message}")
        assert run.stderr.count("\n") == 1
        assert ledger.history == ()


def test_a_closed_standard_input_is_refused(people):
    arguments = fit_arguments(people)
    run = run_in_shell(["fit", "-", *arguments[2:]], "<&-")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "dpci: the standard input (-) must be open, got a closed one\n"


def test_without_stderr_there_is_still_the_result(people):
    run = run_in_shell(fit_arguments(people, "--progress"), "2>&-")
    assert run.returncode == 0
    assert "95% confidence intervals" in run.stdout
    run = run_in_shell(fit_arguments(people, "--level", "2"), "2>&-")
    assert (run.returncode, run.stdout) == (2, "")


# After the release.


class Full(io.StringIO):
    """A stream that takes nothing, because of a full disk unless another reason is given."""

    def __init__(self, number: int = errno.ENOSPC) -> None:
        super().__init__()
        self.number = number

    def write(self, _: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


def models_on(text):
    return [PrivateFit.from_json(line) for line in text.splitlines() if line.startswith('{"schema')]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE])
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_summary_that_nobody_sees_is_followed_by_the_model(people, number, more, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Full(number))
    err = ran(capsys, *fit_arguments(people, *more), code=74).err
    (model,) = models_on(err)
    assert model.private
    assert "released and spent, but not written in full: " in err.splitlines()[-1]
    assert os.strerror(number) in err.splitlines()[-1]
    assert "; the model is on stderr" in err.splitlines()[-1]


def test_a_model_in_its_file_is_not_printed(people, tmp_path, monkeypatch, capsys):
    for number, code in ((errno.ENOSPC, 74), (errno.EPIPE, 141)):
        path = tmp_path / f"{number}.json"
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", Full(number))
            assert main(fit_arguments(people, "--output", str(path))) == code
        err = capsys.readouterr().err
        assert models_on(err) == []
        assert (f"; the model is in {path}\n" in err) == (code == 74)
        assert PrivateFit.from_json(path.read_text()).private


def test_a_model_that_neither_file_nor_stdout_takes(people, tmp_path, monkeypatch, capsys):
    output = tmp_path / "m.json"
    fit = dpci.fit
    monkeypatch.setattr("dpci.model.fit.fit", lambda *x, **keywords: output.write_text("late") and fit(*x, **keywords))
    monkeypatch.setattr(sys, "stdout", Full())
    err = ran(capsys, *fit_arguments(people, "--output", str(output)), code=74).err
    assert len(models_on(err)) == 1
    assert "File exists; the model is on stderr" in err
    monkeypatch.setattr(sys, "stderr", Full())
    output.unlink()
    assert main(fit_arguments(people, "--output", str(output))) == 74


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("of course not"), 74), (KeyboardInterrupt(), 130)])
def test_whatever_goes_wrong_the_model_is_there(people, error, code, monkeypatch, capsys):
    def summary(*_, **__):
        raise error

    monkeypatch.setattr(PrivateFit, "summary", summary)
    captured = ran(capsys, *fit_arguments(people), code=code)
    assert captured.out == ""
    assert len(models_on(captured.err)) == 1
    # A defect says where it is.
    assert ("raise error" in captured.err) == (code == 74)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_plot_that_is_not_written_costs_no_model(people, tmp_path, capsys):
    (tmp_path / "p.png").symlink_to("/dev/full")
    output = tmp_path / "m.json"
    captured = ran(capsys, *fit_arguments(people, "--output", str(output), "--plot", str(tmp_path / "p.png")), code=74)
    assert "95% confidence intervals" in captured.out
    assert "not written in full: --plot must name a file that can be written" in captured.err
    assert PrivateFit.from_json(output.read_text()).private


def test_the_code_survives_the_end_of_the_interpreter(people, tmp_path):
    """It flushes what is left, and would end with 120."""
    # An empty write succeeds on such a disk, so nothing warns of it.
    run = run_in_shell(fit_arguments(people), f"> '{tmp_path / 'out'}'", before="ulimit -f 0;")
    assert run.returncode == 74
    assert len(models_on(run.stderr)) == 1
    assert "File too large; the model is on stderr" in run.stderr


# Signals.


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing_behind(people, number, code, tmp_path):
    with predicting(people, tmp_path) as process:
        process.send_signal(number)
        assert process.wait(timeout=30) == code
        assert process.stderr.read() == b""
    assert list(tmp_path.iterdir()) == []


def test_a_hangup_that_is_ignored_stays_so(people, tmp_path):
    with predicting(people, tmp_path, hangup=signal.SIG_IGN) as process:
        process.send_signal(signal.SIGHUP)
        process.stdin.write((people / "people.csv").read_bytes())
        process.stdin.close()
        assert process.wait(timeout=30) == 0
    assert (tmp_path / "out.csv").read_text().count("\n") == 2_001


def predicting(people, folder, hangup=signal.SIG_DFL):
    """A program that has opened its output and waits for its input."""
    arguments = ["predict", people / "model.json", "-", "--schema", people / "people.toml", "--output"]
    command = [sys.executable, "-m", "dpci", *map(str, arguments), str(folder / "out.csv"), "--quiet"]
    # The program inherits what becomes of a hangup, which the tests ignore where they run under nohup.
    before = signal.signal(signal.SIGHUP, hangup)
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGHUP, before)
    for _ in range(3_000):
        if list(folder.iterdir()):
            return process
        time.sleep(0.02)
    raise AssertionError(process.communicate(timeout=10))


def test_handlers_are_those_of_the_caller_again(people, capsys):
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    assert main(["report", str(people / "model.json")]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before
    assert capsys.readouterr().err == ""
