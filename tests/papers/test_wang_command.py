"""The command that repeats tables and figures: what it prints and writes, and what it refuses before a run."""

import dataclasses
import json
import warnings
from pathlib import Path

import pytest

import dpci
from dpci.errors import InvalidInput
from papers.command import main
from papers.sources import Sources
from papers.wang import studies
from papers.wang.report import run_figure, run_table
from support.reproduced import SHORT, SMALL, extract, refused, use_the_sample

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    use_the_sample(monkeypatch)


# Files of the user that cannot do.


@pytest.mark.usefixtures("sample")
def test_a_small_extract_is_refused_before_the_first_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    coverage = dpci.simulate.coverage
    monkeypatch.setattr(studies.dpci.simulate, "coverage", lambda *a, **k: calls.append(a) or coverage(*a, **k))
    run = dataclasses.replace(SMALL, n_replicates=1, n_variability=0)
    path = extract(tmp_path / "us.csv", 50)
    with pytest.raises(InvalidInput, match=r"us\.csv must have at least \d+ rows for table 5, got 50$") as refusal:
        run_table(5, ("paper", "tight"), Sources(us=path), run)
    least = int(str(refusal.value).split("at least ")[1].split()[0])
    # The number is the least one: the check refuses one row fewer, and the studies accept it.
    with pytest.raises(InvalidInput, match=f"at least {least} rows for table 5, got {least - 1}$"):
        run_table(5, ("paper", "tight"), Sources(us=extract(path, least - 1)), run)
    assert not calls
    run_table(5, ("paper", "tight"), Sources(us=extract(path, least)), run)
    assert len(calls) == 1
    # A figure is refused before the studies of its other data sets.
    with pytest.raises(InvalidInput, match=r"rows for figure 1, got 50$"):
        run_figure(1, "paper", Sources(us=extract(path, 50)), run)
    assert len(calls) == 1


@pytest.mark.usefixtures("sample")
def test_too_few_columns_are_refused_before_the_first_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(studies.dpci.simulate, "coverage", lambda *_, **__: pytest.fail("a study was run"))
    path = tmp_path / "br.csv"
    path.write_text("\n".join(["x,y", *(f"{i},{i % 2}" for i in range(2_000))]), "utf-8")
    with pytest.raises(InvalidInput, match=r"br\.csv must give at least 10 columns"):
        run_figure(1, "paper", Sources(br=path), SMALL)


def test_a_checkpoint_must_be_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for path in (file, file / "below"):
        assert f"--checkpoint must name a folder that exists or can be created, got {str(path)!r}" in refused(
            capsys, "wang", "--table", "3", "--checkpoint", str(path)
        )
    assert file.read_text() == "kept"


# The command.


def test_output_is_tried_before_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(studies.dpci.simulate, "coverage", lambda *_, **__: pytest.fail("a study was run"))
    rule = "--output must name a file that can be written, got "
    for path in (tmp_path, tmp_path / "no" / "t.txt", tmp_path / ("t" * 300)):
        assert rule in refused(capsys, "wang", "--table", "3", "--output", str(path))
    assert rule in refused(capsys, "wang", "--figure", "1", "--output", str(tmp_path / "no" / "f.png"))
    # What is there stays, and what is not is not left behind: here the run is refused after the trial.
    kept, new, link = tmp_path / "kept.txt", tmp_path / "new.txt", tmp_path / "link.txt"
    kept.write_text("kept")
    link.symlink_to(tmp_path / "nothing.txt")
    for path in (kept, new, link):
        assert "may not be redistributed" in refused(capsys, "wang", "--table", "5", "--output", str(path))
    assert kept.read_text() == "kept"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept.txt", "link.txt"]


@pytest.mark.usefixtures("sample")
def test_what_cannot_be_written_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_up(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fill_up)
    for what, name in (("table", "t.json"), ("figure", "f.png")):
        path = tmp_path / name
        short = ("--replicates", "2", "--threads", "1", "--variability", "0", "--format", "json")
        assert main(["wang", f"--{what}", "4", *short, "--output", str(path)]) == 2
        captured = capsys.readouterr()
        assert json.loads(captured.out)[what] == 4
        assert captured.err == (
            f"papers: --output must name a file that can be written, got {str(path)!r}: No space left on device\n"
        )
    assert list(tmp_path.iterdir()) == []


def test_what_a_run_reads_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = extract(tmp_path / "us.csv", 50)
    before = path.read_bytes()
    text = refused(capsys, "wang", "--table", "5", "--us", str(path), "--output", str(tmp_path / "." / "us.csv"))
    assert "--output must not be a file that the run reads" in text
    assert path.read_bytes() == before


@pytest.mark.usefixtures("sample")
def test_a_table_is_replaced_by_a_complete_one_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "t.txt"
    out.write_text("of yesterday")

    def fill_up(path: Path, text: str, **_: object) -> None:
        path.write_bytes(text[:9].encode())
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill_up)
    arguments = ["wang", "--table", "4", "--replicates", "2", "--threads", "1", "--variability", "0"]
    assert main([*arguments, "--output", str(out)]) == 2
    assert "Table 4" in capsys.readouterr().out
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("t.txt", "of yesterday")]


@pytest.mark.usefixtures("sample")
def test_table_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings(action="error"):
        # What a user would see on stderr.
        assert main(["wang", "--table", "3", *SHORT, "--variability", "20"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[2].split() == ["setting", "d", "published", "paper", "(s.e.)", "ratio", "tight", "(s.e.)", "ratio"]
    assert len([line for line in lines if line.startswith(("DP ", "zCDP "))]) == 16
    for text in ("n=4,000, epsilon_1=0.5", "k   12", "m  20", "seed", "run time", dpci.__version__, "NOT PRIVATE"):
        assert text in captured.out


@pytest.mark.usefixtures("sample")
def test_formats_and_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "table.json"
    short = ("wang", "--table", "4", *SHORT, "--variability", "0", "--calibration", "tight")
    assert main([*short, "--format", "json", "--output", str(out)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(out) in captured.err
    found = json.loads(out.read_text("utf-8"))
    assert found["table"] == 4
    assert found["private"] is False
    assert len(found["cells"]) == 16
    assert all("paper" not in cell and cell["tight"]["length_ratio"] is None for cell in found["cells"])
    assert main([*short, "--format", "markdown"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(lines) == 18
    assert {line.count("|") for line in lines} == {6}
    # The same numbers in both.
    assert f"{found['cells'][0]['tight']['coverage']:.4f}" in lines[2]
    assert main([*short, "--seed", "1", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] != found["cells"]


@pytest.mark.parametrize(("table", "option"), [(5, "--us"), (6, "--br")])
def test_tables_of_ipums(table: int, option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = refused(capsys, "wang", "--table", str(table), *SHORT)
    assert all(part in text for part in (option, "may not be redistributed", "target in the last column"))
    path = extract(tmp_path / "extract.csv", n=2_000)
    assert main(["wang", "--table", str(table), option, str(path), *SHORT, "--variability", "0"]) == 0
    text = capsys.readouterr().out
    assert len([line for line in text.splitlines() if line.startswith(("DP ", "zCDP "))]) == 80
    assert "2,000 rows, the paper has" in text


@pytest.mark.usefixtures("sample")
def test_figure_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # As SVG here, as PNG and PDF where one experiment is drawn.
    path = tmp_path / "figure.svg"
    assert main(["wang", "--figure", "3", *SHORT, "--variability", "20", "--output", str(path)]) == 0
    assert path.read_bytes().startswith(b"<?xml")
    captured = capsys.readouterr()
    assert "Omitted without --us or --br: panels f, g, h." in captured.out
    assert f"wrote {path}" in captured.err


@pytest.mark.usefixtures("sample")
def test_progress_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wang", "--table", "4", *SHORT, "--variability", "0", "--progress", "--format", "json"]) == 0
    captured = capsys.readouterr()
    json.loads(captured.out)
    assert "1/1 Banking, n=4,000, d=10: 32 settings" in captured.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "one of the arguments --table --figure is required"),
        (("--table", "3", "--figure", "1"), "argument --figure: not allowed with argument --table"),
        (("--table", "1"), "table must be one of 2, 3, 4, 5, 6, got table=1"),
        (("--figure", "5", "--output", "f.png"), "figure must be one of 1, 2, 3, 4, got figure=5"),
        (("--figure", "1"), "--figure requires --output FILE, got none"),
        (
            ("--figure", "1", "--output", "figure.txt"),
            "--output of a figure must end in one of",
        ),
        (("--figure", "1", "--output", "f.png", "--calibration", "both"), "--calibration must be paper or tight"),
        (
            ("--table", "3", "--us", "absent.csv"),
            "--us must be given only where IPUMS-US is used, got 'absent.csv' for table 3",
        ),
        (
            ("--table", "5", "--br", "absent.csv"),
            "--br must be given only where IPUMS-BR is used, got 'absent.csv' for table 5",
        ),
        (("--figure", "4", "--br", "absent.csv", "--output", "f.png"), "got 'absent.csv' for figure 4"),
        (("--table", "1", "--us", "absent.csv"), "table must be one of 2, 3, 4, 5, 6, got table=1"),
        (("--table", "3", "--format", "html"), "argument --format: invalid choice: 'html'"),
        (("--table", "3", "--calibration", "loose"), "argument --calibration: invalid choice: 'loose'"),
        (("--table", "5", "--us", "absent.csv"), "a table must be readable, got 'absent.csv'"),
    ],
)
def test_wrong_usage(argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capsys, "wang", *argv)


@pytest.mark.usefixtures("sample")
def test_wrong_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert "n_replicates must be at least 1" in refused(capsys, "wang", "--table", "4", "--replicates", "0")
