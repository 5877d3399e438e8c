"""The published tables and figures, repeated: their studies, what reports say, and what the command refuses."""

import dataclasses
import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from dpci.errors import InvalidInput
from papers.command import main, render
from papers.sources import Sources
from papers.wang import figures, studies
from papers.wang.experiments import FIGURES, TABLES, Prepared
from papers.wang.published import COVERAGE, SETTINGS, Setting
from papers.wang.report import run_figure, run_table
from papers.wang.studies import Run
from support.keywords import assembled
from support.reproduced import SHORT, SMALL, extract, refused, use_the_sample

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> None:
    use_the_sample(monkeypatch)


# The studies.


@pytest.mark.usefixtures("sample")
def test_a_table_holds_the_numbers_of_its_studies() -> None:
    report = run_table(3, ("paper", "tight"), Sources(), SMALL)
    cells = [cell for cell in report.data["cells"] if cell["d"] == 3]
    budgets = {"DP": (dpci.PureDP(1.0), (0.5, 0.25, 0.25)), "zCDP": (dpci.ZCDP(0.1875), (2 / 3, 1 / 6, 1 / 6))}
    losses = {"logistic": "logistic", "huber_hinge": dpci.losses.HuberHinge(h=1.0)}
    X, y = Sources().rows(Prepared("adult", 4_000, 3))
    expected = dpci.simulate.coverage(
        X,
        y,
        configs=[
            assembled(
                **dict(zip(("budget", "split"), budgets[notion], strict=True)),
                mechanism=mechanism,
                loss=losses[loss],
                calibration=calibration,
                projection="floor",
            )
            for notion, mechanism, loss in SETTINGS
            for calibration in ("paper", "tight")
        ],
        l2_strength=0.002,
        rows=dpci.rows.Within(intercept=False),
        n_replicates=12,
        n_variability=30,
        n_threads=1,
    )
    found = [(cell, cell[calibration]) for cell in cells for calibration in ("paper", "tight")]
    for (cell, outcome), study, position in zip(found, expected, range(16), strict=True):
        setting = SETTINGS[position // 2]
        assert Setting(cell["notion"], cell["mechanism"], cell["loss"]) == setting
        assert cell["published"] == COVERAGE[3][setting][1]
        assert outcome["coverage"] == study.coverage
        assert outcome["coverage_se"] == study.coverage_se
        assert outcome["length_ratio"] == study.length_ratio
        assert outcome["average"]["std"] == pytest.approx((study.upper - study.lower).mean(axis=1).std())
        first = (study.mean_length_by_param[0], study.length_std_by_param[0], study.variability_length_by_param[0])
        assert tuple(outcome["first"].values()) == pytest.approx(first)
    shown = next(row for row in report.rows if row[:2] == ["DP output LR", "3"])
    assert shown[2:5] == ["0.9577", f"{expected[4].coverage:.4f}", f"({expected[4].coverage_se:.4f})"]


@pytest.mark.usefixtures("sample")
def test_intervals_on_the_sample_cover() -> None:
    # A cell of table 3 in small. 5 standard errors are a false-positive rate of 6e-7; the .01 is for what is not noise:
    # the intervals are asymptotic, and the sample has 4,000 rows.
    cell = TABLES[3].cell(3, SETTINGS[0])
    run = Run(n_replicates=200, n_variability=0, n_threads=1)
    outcome = run.outcomes("cell", [cell], ["tight"], Sources())[cell, "tight"]
    assert outcome.coverage_se < 0.012
    assert abs(outcome.coverage - 0.95) < 5 * outcome.coverage_se + 0.01
    assert outcome.length_ratio is None


@pytest.mark.usefixtures("sample")
def test_one_call_for_all_cells_on_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    coverage = dpci.simulate.coverage

    def counted(X, y, **keywords):
        calls.append((X.shape, len(keywords["configs"])))
        return coverage(X, y, **keywords)

    monkeypatch.setattr(studies.dpci.simulate, "coverage", counted)
    lines = []
    run = dataclasses.replace(SMALL, n_variability=0, announce=lines.append)
    run_table(2, ("paper", "tight"), Sources(), run)
    assert calls == [((2_000, 11), 16), ((4_000, 11), 16)]
    assert lines == ["1/2 KDD Cup 1999, n=2,000, d=10: 16 settings", "2/2 KDD Cup 1999, n=4,000, d=10: 16 settings"]
    calls.clear()
    run_table(4, ("tight",), Sources(), run)
    assert calls == [((4_000, 11), 16)]


@pytest.mark.usefixtures("sample")
def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    plain = run_table(3, ("tight",), Sources(), SMALL).data["cells"]
    folder = tmp_path / "new" / "folder"

    def kill(line: str) -> None:
        if line.startswith("2/2"):
            raise KeyboardInterrupt

    run = dataclasses.replace(SMALL, checkpoint=folder, announce=kill)
    with pytest.raises(KeyboardInterrupt):
        run_table(3, ("tight",), Sources(), run)
    assert [path.name for path in folder.iterdir()] == ["table3-tight-adult-n4000-d1.npz"]
    run = dataclasses.replace(SMALL, checkpoint=folder)
    assert run_table(3, ("tight",), Sources(), run).data["cells"] == plain
    assert len(list(folder.iterdir())) == 2
    # The file is what the run goes on from: with another seed it is refused.
    with pytest.raises(InvalidInput, match="checkpoint"):
        run_table(3, ("tight",), Sources(), dataclasses.replace(run, seed=1))
    # Other calibrations have files of their own.
    run_table(3, ("paper",), Sources(), run)
    assert len(list(folder.iterdir())) == 4


# Figures.


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("number", [1, 4])
def test_a_figure_has_its_panels_and_lines(number: int, tmp_path: Path) -> None:
    given = Sources(us=extract(tmp_path / "us.csv", 3_000), br=extract(tmp_path / "br.csv", 3_000))
    data = run_figure(number, "paper", given, SMALL)
    figure = figures.draw(data)
    assert len(figure.axes) == 9
    for ax, panel in zip(figure.axes, FIGURES[number].panels, strict=True):
        assert ax.get_title().startswith(f"({panel.letter}) ")
        assert ("d = 10" if panel.sweep.varied == "n" else "n = ") in ax.get_title()
        assert ax.get_xlabel().startswith({"n": "sample", "d": "dimension"}.get(panel.sweep.varied, "ε"))
        assert ("first coordinate" in ax.get_ylabel()) == (panel.sweep.varied == "d")
        # Bars on the intervals alone.
        assert sorted(bars.get_label() for bars in ax.containers) == [f"{curve.label} CI" for curve in data.plan.curves]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == {1: ["DP CI", "DP VI", "zCDP CI", "zCDP VI"]}.get(
        number, ["obj CI", "obj VI", "output CI", "output VI"]
    )
    first = figure.axes[0].containers[0].lines[0]
    np.testing.assert_array_equal(first.get_ydata(), [length.mean for length in data.lengths["a", labels[0][:-3]]])
    # The user's file is smaller than the published one: the title says what there is.
    assert figure.axes[8].get_title().endswith("n = 3,000")
    assert "3,000 rows, the paper has" in render(data.report, "text")


@pytest.mark.usefixtures("sample")
def test_lengths_of_the_first_coordinate_where_d_varies() -> None:
    data = run_figure(1, "tight", Sources(), SMALL)
    points = {(p["panel"], p["curve"], p["d"]): p["tight"] for p in data.report.data["points"] if p["panel"] in "bd"}
    assert data.lengths["b", "DP"][1].mean == points["b", "DP", 3]["first"]["mean"]
    assert data.lengths["b", "DP"][1].mean != points["b", "DP", 3]["average"]["mean"]
    assert data.lengths["d", "zCDP"][-1].mean == points["d", "zCDP", 10]["average"]["mean"]
    assert data.report.data["left_out"] == ["f", "g", "h", "i"]
    assert len(figures.draw(data).axes) == 5


@pytest.mark.usefixtures("sample")
def test_a_figure_without_variability_has_no_dashed_lines() -> None:
    data = run_figure(2, "paper", Sources(), dataclasses.replace(SMALL, n_variability=0))
    figure = figures.draw(data)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["DP CI", "zCDP CI"]


# What the reports say.


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize("calibrations", [("paper",), ("tight",), ("paper", "tight")])
def test_the_notes_explain_what_is_shown(calibrations: tuple[str, ...]) -> None:
    report = run_table(4, calibrations, Sources(), dataclasses.replace(SMALL, n_replicates=1, n_variability=0))
    notes = " ".join(report.notes)
    assert ("paper: the published method" in notes) == ("paper" in calibrations)
    assert ("tight: that of the library" in notes) == ("tight" in calibrations)
    # One replicate has no standard error.
    assert {row[4] for row in report.rows} == {"(-)"}
    assert "nan" not in render(report, "markdown")
    assert '"coverage_se": null' in render(report, "json")


def test_reports_on_an_extract_say_what_was_used(tmp_path: Path) -> None:
    given = Sources(us=extract(tmp_path / "us.csv", 2_000))
    report = run_table(5, ("tight",), given, dataclasses.replace(SMALL, n_replicates=2, n_variability=0))
    assert {cell["n"] for cell in report.data["cells"]} == {2_000}
    used = ["age", "hours", *(f"status={letter}" for letter in "abcdefgh")]
    assert json.loads(render(report, "json"))["columns"] == {"us": used}
    assert f"columns of IPUMS-US {', '.join(used)} " in " ".join(render(report, "text").split())


@pytest.mark.usefixtures("sample")
def test_columns_are_the_most_where_d_varies() -> None:
    report = run_table(3, ("tight",), Sources(), dataclasses.replace(SMALL, n_replicates=2, n_variability=0))
    # The sweep of the sample ends at d=3.
    assert report.data["columns"] == {"adult": ["age", "fnlwgt", "education-num"]}
    assert ("columns of Adult", "age, fnlwgt, education-num") in report.facts


@pytest.mark.skipif(
    _files.find(CATALOGUE["adult"].files["train"]) is None, reason="adult is neither in DPCI_DATA nor in the cache"
)
def test_a_cell_of_table_3() -> None:
    # 5 standard errors are a false-positive rate of 6e-7; the .015 is for what differs from the paper: its order of the
    # rows and columns and its own 1,000 replicates. At d=10 the standard error is below .005.
    cell = TABLES[3].cell(10, SETTINGS[0])
    run = Run(n_replicates=200, n_variability=0, n_threads=1)
    outcome = run.outcomes("cell", [cell], ["paper"], Sources())[cell, "paper"]
    assert outcome.n_samples == 30_162
    assert outcome.coverage_se < 0.005
    assert abs(outcome.coverage - COVERAGE[3][SETTINGS[0]][-1]) < 5 * outcome.coverage_se + 0.015


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
        (("--figure", "1", "--output", "figure.txt"), "--output of a figure must end in one of"),
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
