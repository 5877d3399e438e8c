"""Help, its examples, which are run, and the completion of a real shell."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.completion import completion_init

import dpci
from dpci.cli.app import EXIT_CODES
from dpci.cli.commands.all import app
from dpci.cli.main import _CODES, BROKEN_PIPE, DEFECT, INTERRUPTED, REFUSED, main
from dpci.datasets.loaders import schema_names
from support import words
from support.commands import ran
from support.people import AGES, GAPS, make_people
from support.reproduced import use_the_sample


def commands(group, *path):
    """Every command with its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *path, name)
        else:
            yield (*path, name), command


COMMANDS = dict(commands(typer.main.get_command(app)))
EXAMPLES = [
    (words, line.split("  #")[0].strip()) for words, command in COMMANDS.items() for line in command.epilog.splitlines()
]


UNBOUNDED_AGES = AGES.replace("lower = 18\nupper = 90", 'kind = "unbounded"')


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    folder = tmp_path_factory.mktemp("people")
    make_people(folder)
    with dpci.Ledger(dpci.PureDP(2.0), path=folder / "people.ledger"):
        pass
    # What ``dpci verify`` holds against the model.
    table, schema, model, ledger = (
        str(folder / name) for name in ("people.csv", "people.toml", "model.json", "people.ledger")
    )
    paid = ["--epsilon", "1", "--l2-strength", "0.01", "--ledger", ledger]
    assert main(["fit", table, "--schema", schema, *paid, "--output", model, "--force", "--quiet"]) == 0
    # What ``dpci compare`` and ``dpci verify`` take besides.
    free = [table, "--schema", schema, "--epsilon", "1", "--quiet", "--output"]
    assert main(["fit", *free, str(folder / "other.json"), "--l2-strength", "0.01"]) == 0
    assert main(["tune", *free, str(folder / "tuned.json"), "--radius", "3", "--candidate", "l2_strength=.1"]) == 0
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_examples(words, capsys):
    text = ran(capsys, *words, "--help").out
    assert "\x1b" not in text
    examples = [line for command, line in EXAMPLES if command == words]
    assert len(examples) >= 2
    for line in examples:
        assert line.startswith("dpci " + " ".join(words))
        assert f"  {line}" in text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_says_what_it_is_for(words):
    options = [param for param in COMMANDS[words].params if param.name != "help"]
    assert [param.name for param in options if not getattr(param, "help", None)] == []


def test_commands_of_one_kind_have_examples(capsys):
    text = ran(capsys, "ledger", "--help").out
    lines = [line for command, line in EXAMPLES if command[0] == "ledger" and f"  {line}" in text]
    assert len(lines) == 2


@pytest.mark.parametrize(("words", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_the_examples_run(words, line, people, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "here"
    shutil.copytree(people, folder)
    (folder / "ages.toml").write_text(AGES, encoding="utf-8")
    (folder / "gaps.toml").write_text(GAPS, encoding="utf-8")
    (folder / "unbounded_ages.toml").write_text(UNBOUNDED_AGES, encoding="utf-8")
    monkeypatch.chdir(folder)
    use_the_sample(monkeypatch)
    command, _, stdin = line.partition(" < ")
    arguments = shlex.split(command)[1:]
    # What an example makes is not there yet.
    for made in (Path(arguments[-1]) if "--output" in arguments else None, Path("people.ledger")):
        if made is not None and (made.suffix != ".ledger" or "create" in arguments):
            made.unlink(missing_ok=True)
    if not stdin:
        # What an official compares with is not given in every example.
        assert main(arguments) in ({0, 6} if arguments[0] == "verify" or "--officer" in arguments else {0})
    else:
        with Path(stdin).open(encoding="utf-8") as file:
            monkeypatch.setattr(sys, "stdin", file)
            assert main(arguments) == 0
    captured = capsys.readouterr()
    if "--json" in arguments:
        documents = captured.out.splitlines() if words == ("predict",) else [captured.out]
        assert [json.loads(document) for document in documents]
    elif "--output" in arguments and words not in {("fit",), ("regress",), ("schema",), ("demo",)}:
        assert captured.out == ""
    else:
        assert captured.out


def test_the_help_of_the_program(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    text = ran(capsys, "--help").out
    lines = [line.split()[0] for line in text.split("Commands:")[1].split("Exit codes:")[0].splitlines() if line]
    assert lines[:5] == ["check", "plan", "ledger", "schema", "fit"]
    assert set(lines) == {words[0] for words in COMMANDS}
    for code in (0, 1, 2, 3, 70, 74, 129, 130, 141, 143):
        assert f"\n  {code} " in text
    # No sentence is cut.
    assert "..." not in text.split("Commands:")[1].split("Exit codes:")[0]


def test_options_are_in_groups(capsys):
    text = ran(capsys, "fit", "--help").out
    places = [text.index(f"\n{title}:\n") for title in ("Input", "Budget", "Model", "Intervals", "Output", "Running")]
    assert places == sorted(places)
    assert text.index("--epsilon") > text.index("\nBudget:\n")


def test_no_command_shows_the_help(capsys):
    assert main([]) in {0, 2}  # as the version of typer has it
    captured = capsys.readouterr()
    assert "Usage: dpci" in captured.out + captured.err


# Completion.


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell, capsys):
    assert f"_DPCI_COMPLETE=complete_{shell}" in ran(capsys, "completion", shell).out
    assert "shell must be one of" in ran(capsys, "completion", "tcsh", code=2).err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("coverage adult_s", ["adult_sample"]),
        ("data ba", ["bank"]),
        ("fit t.csv --loss s", ["smooth_hinge", "soft_logistic", "squared"]),
        ("fit t.csv --mechanism ", ["newton", "objective", "output"]),
        ("fit t.csv --l2", ["--l2-strength"]),
        ("ledger create x --neighbors a", ["add_remove"]),
        ("ledger ", ["create", "show", "export"]),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_what_is_completed(words, found, monkeypatch, capsys):
    monkeypatch.setenv("_DPCI_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"dpci {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(f"dpci {words}".split(" ")) - 1))
    assert ran(capsys).out.split() == found


def test_the_words_are_those_of_the_commands():
    """After another option or command: python -m support.words in the folder of the tests."""
    assert words.FILE.read_text(encoding="utf-8") == words.read_off()


@pytest.mark.parametrize(
    "line",
    [
        *("", "f", "fit -", "fit --json --j", "fit t.csv --epsilon 1 --", "fit t.csv --epsilon ", "fit t.csv --loss=s"),
        *("fit -- -", "fit 'a b", "tune --candidate x --can", "compare a b --", "completion bash ", "data --json "),
    ],
)
def test_shells_get_the_answers_of_typer(line, monkeypatch, capsys):
    place = len(f"dpci {line}".split(" ")) - 1
    given = {"_DPCI_COMPLETE": "complete_bash", "COMP_WORDS": f"dpci {line}", "COMP_CWORD": str(place)}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found = ran(capsys).out.split()
    completion_init()
    with pytest.raises(SystemExit):
        app(args=[], prog_name="dpci", standalone_mode=False)
    assert sorted(found) == sorted(capsys.readouterr().out.split())


@pytest.mark.parametrize(("line", "code"), [("dpci pre", 0), ("dpci fit ", 1)])
def test_fish_asks_first_whether_there_is_an_answer(line, code, monkeypatch, capsys):
    monkeypatch.setenv("_DPCI_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "is-args")
    assert main([]) == code
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("shell", "line", "answer"),
    [
        ("zsh", "dpci pre", '_arguments \'*: :(("predict":"Predict for every row of a table."))\'\n'),
        ("zsh", "dpci fit ", "_files\n"),
        ("fish", "dpci pre", "predict\tPredict for every row of a table.\n"),
    ],
)
def test_other_shells_get_the_meaning_too(shell, line, answer, monkeypatch, capsys):
    monkeypatch.setenv("_DPCI_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", line)
    assert ran(capsys).out == answer


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_real_bash_completes(tmp_path):
    # A program of that name on the path, as an installation would have it.
    program = tmp_path / "dpci"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dpci "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    script = """
    eval "$(dpci completion bash)"
    complete_words() {
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        "$(complete -p dpci | sed 's/.*-F \\([^ ]*\\) .*/\\1/')" dpci
        echo "${COMPREPLY[*]}"
    }
    complete_words dpci pre
    complete_words dpci fit people.csv --schema adult
    """
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True)
    schemas = " ".join(name for name in schema_names() if name.startswith("adult"))
    assert run.stdout.splitlines() == ["predict", schemas]
    assert run.stderr == ""


def test_the_help_lists_every_exit_code():
    listed = {int(line.split()[0]) for line in EXIT_CODES.splitlines()}
    assert listed >= {0, 1, REFUSED, INTERRUPTED, BROKEN_PIPE, DEFECT, *_CODES.values()}
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert all(re.search(rf"^\| (\d+, )*{code}\b", page, re.MULTILINE) for code in listed)
