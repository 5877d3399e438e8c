"""The command `dpci coverage`: what it prints, that a stopped run goes on, and how it refuses."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci import datasets
from dpci.cli.main import main
from support.commands import ran

SAMPLE = ("coverage", "adult_sample", "--epsilon", "2", "--l2-strength", "0.01")
SHORT = (*SAMPLE, "--replicates", "24", "--variability", "20", "--threads", "1")
STEPS = ("coverage", "adult_sample", "--replicates", "12", "--variability", "6", "--threads", "1")
BUDGETS = {
    ("--rho", "0.5"): dpci.ZCDP(0.5),
    ("--epsilon", "1", "--delta", "1e-6"): dpci.ApproxDP(1.0, 1e-6),
    ("--epsilon", "2"): dpci.PureDP(2.0),
}


@pytest.fixture(scope="module")
def study() -> dpci.simulate.CoverageStudy:
    """The same study by the library."""
    data = datasets.load_adult_sample()
    assert data.schema is not None
    with pytest.warns(dpci.PrivacyLeakWarning):
        return dpci.simulate.coverage(
            data.X, data.y, budget=dpci.PureDP(2.0), l2_strength=0.01, classes=(-1, 1), rows=data.schema.rows,
            n_replicates=24, n_variability=20, n_threads=1,
        )  # fmt: skip


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    captured = ran(capsys, *argv)
    assert captured.err == ""
    return captured.out


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    captured = ran(capsys, *argv, code=2)
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert "coverage" in printed(capsys, "--help")
    text = printed(capsys, "coverage", "--help")
    assert "NOT PRIVATE" in text
    assert all(option in text for option in ("--replicates", "--variability", "--checkpoint", "--json", "--seed"))


def test_the_table_is_that_of_the_study(study: dpci.simulate.CoverageStudy, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *SHORT)
    assert "NOT PRIVATE" in text
    rows = {line.split("  ")[0]: line.split() for line in text.splitlines() if line.strip()}
    names = (*datasets.load_schema("adult_demo").names, "intercept")
    for i, name in enumerate(names):
        expected = study.target[i], study.coverage_by_param[i], study.mean_length_by_param[i]
        found = rows[name][-7], rows[name][-6], rows[name][-4]
        assert found == tuple(f"{value:.4g}" for value in expected)
    assert rows["coverage"][-1] == f"{study.coverage:.4g}"
    assert rows["n distinct"][-1] == f"{study.n_distinct:,}"


def test_json_is_that_of_the_study(study: dpci.simulate.CoverageStudy, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, *SHORT, "--json"))
    expected = study.to_dict()
    assert found.keys() == expected.keys()
    assert found["by_param"].pop("name") == [*datasets.load_schema("adult_demo").names, "intercept"]
    expected["by_param"].pop("name")
    assert found == json.loads(json.dumps(expected))


def test_seeds_threads_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, *SHORT)
    assert printed(capsys, *SHORT, "--seed", "1") != text
    assert printed(capsys, *SHORT[:-2], "--threads", "2") == text
    captured = ran(capsys, *SHORT, "--progress")
    assert captured.out == text
    assert "44/44" in captured.err


def test_a_table_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sample.csv"
    printed(capsys, "data", "adult_sample", "--export", str(path))
    own = ("coverage", str(path), *SHORT[2:])
    assert printed(capsys, *own, "--schema", "adult_demo", "--target", "income") == printed(capsys, *SHORT)
    assert "--schema must be given unless the table is a public data set" in refusal(capsys, *own)


@pytest.mark.parametrize(("options", "budget"), BUDGETS.items())
def test_without_a_ridge_newton_steps_are_repeated(
    options: tuple[str, ...], budget: dpci.PureDP | dpci.ZCDP | dpci.ApproxDP, capsys: pytest.CaptureFixture[str]
) -> None:
    data = datasets.load_adult_sample()
    assert data.schema is not None
    with pytest.warns(dpci.PrivacyLeakWarning):
        study = dpci.simulate.coverage(
            data.X, data.y, budget=budget, rows=data.schema.domain, n_replicates=12, n_variability=6, n_threads=1
        )
    assert study.nonprivate_ratio is not None
    found = json.loads(printed(capsys, *STEPS, *options, "--json"))
    expected = json.loads(json.dumps(study.to_dict()))
    expected["by_param"].pop("name")
    assert found["by_param"].pop("name") == [*datasets.load_schema("adult_demo").names, "intercept"]
    assert found == expected
    assert json.loads(printed(capsys, *STEPS, *options, "--mechanism", "newton", "--json"))["by_param"] == {
        "name": [*datasets.load_schema("adult_demo").names, "intercept"],
        **expected["by_param"],
    }
    text = printed(capsys, *STEPS, *options)
    assert f"nonprivate ratio    {study.nonprivate_ratio:.4g}" in text


def test_newton_steps_of_persons_in_blocks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, rng = tmp_path / "people.csv", np.random.default_rng(5)
    sample = datasets.load_sample_table()
    columns = {name: np.asarray(values).astype(str) for name, values in sample.items()}
    columns["id"] = np.sort(rng.integers(0, 2000, 4000)).astype(str)
    lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines), encoding="utf-8")
    own = ("coverage", str(path), *STEPS[2:], "--schema", "adult_demo", "--persons", "id", "--rho", "0.5", "--json")
    ball = json.loads(printed(capsys, *own))
    blocks = json.loads(printed(capsys, *own, "--rows", "blocks", "--on-violation", "clip"))
    assert ball["n_samples"] == blocks["n_samples"] == len(np.unique(columns["id"]))
    # The columns have other units, and the fits another public set of rows.
    assert ball["nonprivate_ratio"] != blocks["nonprivate_ratio"]
    assert 1.0 < ball["nonprivate_ratio"] < 2.0
    assert 1.0 < blocks["nonprivate_ratio"] < 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--mechanism", "newton", "--radius", "2"), "--radius must not be given with --mechanism newton"),
        (("--mechanism", "newton", "--split", "0.6,0.2,0.2"), "--split must not be given with --mechanism newton"),
        (("--mechanism", "newton", "--l2-strength", "0.1"), "l2_strength must be 'auto' with mechanism='newton'"),
        (("--mechanism", "newton", "--loss", "hinge"), "with bounded slope and curvature, got hinge"),
        (("--mechanism", "objective"), "--l2-strength must be given for a study of fits that take no Newton steps"),
        (("--loss", "hinge"), "--l2-strength must be given for a study of fits that take no Newton steps"),
        (("--moments", "joint"), "--l2-strength must be given for a study of fits that take no Newton steps"),
        (("--mechanism", "steps"), "mechanism must be"),
    ],
)
def test_refusals_of_newton_steps(options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refusal(capsys, *STEPS, "--epsilon", "1", *options)


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "smooth_hinge:0.5", "--mechanism", "output"),
        ("--calibration", "paper", "--projection", "floor", "--level", "0.9"),
        ("--moments", "separate", "--split", "0.6,0.2,0.2", "--intercept-scale", "0.5", "--on-violation", "clip"),
        ("--delta", "1e-6", "--mechanism", "output", "--variability", "0"),
    ],
)
def test_options_reach_the_study(options: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    plain, found = (json.loads(printed(capsys, *SHORT, "--json", *more)) for more in ((), options))
    assert found["by_param"]["mean_length"] != plain["by_param"]["mean_length"]
    assert len(found["by_param"]["name"]) == 7
    assert found["level"] == (0.9 if "--level" in options else 0.95)
    assert found["n_variability"] == (0 if "--variability" in options else 20)


def test_a_checkpoint_is_resumed(
    study: dpci.simulate.CoverageStudy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.npz"
    fewer = (*SAMPLE, "--replicates", "9", "--variability", "0", "--threads", "1")
    printed(capsys, *fewer, "--checkpoint", str(path))
    found = json.loads(printed(capsys, *SHORT, "--json", "--checkpoint", str(path)))
    assert found["mean_length"] == study.mean_length
    with np.load(path) as archive:
        assert len(archive["coverage_0_params"]) == 24
    for more, message in (
        (("--seed", "1"), "which differs in seed: 0 there, 1 here"),
        (("--loss", "huber_hinge"), "differs in con"),
    ):
        assert message in refusal(capsys, *SHORT, "--checkpoint", str(path), *more)


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "study.npz"
    command = [sys.executable, "-m", "dpci", *SAMPLE, "--replicates", "1000000", "--checkpoint", str(path)]
    with subprocess.Popen([*command, "--threads", "1", "--progress"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        # The bar has moved beyond 0: some replicates are complete, though the file may not hold them yet.
        text, deadline = "", time.monotonic() + 60
        while "s/it" not in text and "replicates/s]" not in text.replace("? replicates/s]", ""):
            assert time.monotonic() < deadline
            text += process.stderr.read(1)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in rest
    with np.load(path) as archive:
        assert len(archive["coverage_0_params"]) > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--replicates", "0"), "n_replicates must be at least 1, got n_replicates=0"),
        (("--replicates", "ten"), "--replicates"),
        (("--variability", "1"), "n_variability must be 0 or at least 2"),
        (("--level", "1"), "level must be > 0 and < 1, such as 0.95 for 95%, got level=1.0"),
        (("--seed", "-1"), "seed must be None or an integer in [0, 2**64), got seed=-1"),
        (("--threads", "0"), "n_threads must be at least 1, got n_threads=0"),
        (("--moments", "none"), "coverage requires released moments"),
        (("--rho", "1"), "the budget must be --epsilon"),
        (("--epsilon", "-1"), "epsilon must be finite and > 0, got epsilon=-1.0"),
        (("--epsilon", "0.00001"), "l2_strength must be greater than"),
        (("--schema", "iris"), "or one of the packaged schemas"),
        (("--target", "wage"), "the table must have the column 'wage'"),
        (("--checkpoint", "."), "checkpoint must be a file that can be read, got '.': Is a directory"),
        (("--checkpoint", "no/study.npz"), "checkpoint must be a file that can be written, got 'no/study.npz'"),
        (("--neighbors", "replace_one"), "No such option"),
    ],
)
def test_refusals(
    options: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refusal(capsys, *SHORT, *options)


def test_sources_that_are_none(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = str(tmp_path / "none.csv")
    assert "a table must be readable" in refusal(capsys, "coverage", path, "--schema", "adult_demo", *SHORT[2:])
    assert "(adult_sample, adult," in refusal(capsys, "coverage", "adults", *SHORT[2:])
    assert main(["coverage", "bank", *SHORT[2:], "--schema", "adult_demo"]) == 2
    # Its own file, or what to do about it, and not a table of the user's.
    assert "a table must be" not in capsys.readouterr().err
    assert "Missing argument" in refusal(capsys, "coverage", *SHORT[2:])
