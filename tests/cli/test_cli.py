"""The command line as a user meets it: what it prints, what it writes, and how it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import pyplot as plt

import dpci
from dpci import datasets
from dpci.cli.main import main
from dpci.cli.options import parse_budget, parse_loss
from dpci.datasets import files as _files
from dpci.datasets.catalogue import CATALOGUE
from dpci.errors import InvalidInput
from dpci.sources.files import write_csv
from support.commands import ran
from support.people import DOSE, SCHEMA
from support.tables import read_table

PNG = b"\x89PNG"
ADULT = b"age,education-num,hours-per-week,capital-gain,marital-status,sex,income\n"


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "sample.csv"
    assert main(["data", "adult_sample", "--export", str(path)]) == 0
    return path


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The one line of a refusal."""
    captured = ran(capsys, *argv, code=2)
    assert captured.out == ""
    assert captured.err.startswith("dpci: ")
    assert captured.err.count("\n") == 1
    return captured.err


def fit_arguments(sample: Path, *more: str) -> tuple[str, ...]:
    return ("fit", str(sample), "--schema", "adult_demo", "--l2-strength", "0.01", *more)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, "--version").out == f"dpci {dpci.__version__}\n"


def test_the_module_runs() -> None:
    run = subprocess.run([sys.executable, "-m", "dpci", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("dpci ")


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "--help").out
    assert all(command in text for command in ("fit", "data", "demo"))


def test_fit(sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, plot = tmp_path / "fit.json", tmp_path / "fit.png"
    arguments = fit_arguments(sample, "--target", "income", "--epsilon", "1", "--output", str(out), "--plot", str(plot))
    text = ran(capsys, *arguments).out
    result = dpci.PrivateFit.from_json(out.read_text(encoding="utf-8"))
    assert result.private
    assert result.names == (*datasets.load_schema("adult_demo").names, "intercept")
    assert result.n_samples == 4_000
    assert result.budget == dpci.PureDP(epsilon=1.0)
    assert all(name in text for name in result.names)
    assert plot.read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", "2", "--delta", "1e-6", "--mechanism", "output"),
        ("--rho", "0.5", "--mechanism", "output", "--loss", "huber_hinge:1", "--level", "0.9"),
        ("--epsilon", "1", "--loss", "smooth_hinge:0.5", "--moments", "separate", "--split", "0.6,0.2,0.2"),
        ("--epsilon", "1", "--calibration", "paper", "--projection", "floor", "--on-violation", "clip"),
        ("--epsilon", "1", "--neighbors", "add_remove", "--n-public", "4000"),
        ("--epsilon", "1", "--loss", "hinge", "--mechanism", "output", "--moments", "none", "--radius", "2"),
        ("--epsilon", "1", "--radius", "3"),
    ],
)
def test_options(sample: Path, options: tuple[str, ...], tmp_path: Path) -> None:
    out = tmp_path / "fit.json"
    assert main(fit_arguments(sample, *options, "--output", str(out))) == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert isinstance(record, dict)
    result = dpci.PrivateFit.from_json(out.read_text(encoding="utf-8"))
    assert len(result.scaled.params) == 7


def test_a_schema_file_and_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    columns = {"age": rng.integers(18, 90, 500), "ward": rng.choice(["A", "B"], 500), "sick": rng.choice([0, 1], 500)}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    schema = SCHEMA.replace('"no"', "0").replace('["yes", "probably"]', "1").replace('unknown = "zeros"', "")
    (tmp_path / "s.toml").write_text(schema, encoding="utf-8")
    arguments = ["fit", str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "s.toml"), "--target", "sick"]
    assert main([*arguments, "--epsilon", "3", "--l2-strength", "0.1", "--output", str(tmp_path / "r.json")]) == 0
    assert json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))


def test_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A target with bounds is scaled into [-1, 1]; a radius that may bind has no plot, and says so."""
    rng = np.random.default_rng(1)
    age = rng.integers(18, 90, 3000)
    lines = ["age,dose", *(f"{a},{min(max(90 - a + rng.normal(), 0), 100):.3f}" for a in age)]
    (tmp_path / "t.csv").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "s.toml").write_text(DOSE, encoding="utf-8")
    arguments = ["fit", str(tmp_path / "t.csv"), "--schema", str(tmp_path / "s.toml"), "--epsilon", "2"]
    arguments += ["--l2-strength", "0.05", "--loss", "squared"]
    plot = tmp_path / "p.png"
    assert main([*arguments, "--radius", "0.1", "--plot", str(plot)]) == 0
    assert (
        "no plot: intervals require released values which show that the radius does not bind" in capsys.readouterr().err
    )
    assert not plot.exists()
    assert "95% confidence intervals" in ran(capsys, *arguments, "--radius", "4", "--plot", plot).out
    assert plot.read_bytes().startswith(PNG)
    # Without a radius: by the moment matrix.
    out = ran(capsys, *arguments).out
    assert "by the moment matrix" in out
    assert "per unit" in out
    assert "requires radius" in refused(capsys, *arguments, "--mechanism", "objective")
    regress = ["regress", *arguments[1:4], "--mu", "2"]
    model = tmp_path / "m.json"
    document = json.loads(ran(capsys, *regress, "--json", "--output", model, "--plot", plot, "--force").out)
    (age, intercept) = document["coefficients"]
    assert age["lower"] < -1.0 + 0.1 < age["upper"] + 0.2
    assert (age["unit"], intercept["name"], document["classes"]) == ("per unit", "intercept", None)
    assert dpci.regression.LinearFit.from_json(model.read_text()).budget == dpci.GDP(2.0)
    assert json.loads(ran(capsys, "report", model, "--json").out)["coefficients"] == document["coefficients"]
    assert len(ran(capsys, "predict", model, arguments[1], "--quiet").out.split()) == 1 + document["n_samples"]
    assert "no probabilities" in refused(capsys, "predict", str(model), arguments[1], "--proba")
    assert "--l2-strength must be" in refused(capsys, *regress, "--l2-strength", "least")
    assert "without --epsilon" in refused(capsys, *regress, "--epsilon", "1")
    assert "must be able to vary more" in refused(capsys, "regress", *arguments[1:4], "--mu", "1e-6")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "the budget must be --epsilon, --epsilon with --delta, or --rho, got none of them"),
        (("--epsilon", "1", "--rho", "1"), "got --epsilon and --rho"),
        (("--delta", "1e-6"), "got --delta"),
        (("--epsilon", "-1"), "epsilon must be finite and > 0, got epsilon=-1.0"),
        (("--epsilon", "1", "--target", "wage"), "the table must have the column 'wage'"),
        (("--epsilon", "1", "--loss", "cauchit"), "loss must be logistic"),
        (("--epsilon", "1", "--loss", "huber_hinge:wide"), "loss must hold numbers, got 'wide'"),
        (("--epsilon", "1", "--loss", "logistic:1"), "loss must be logistic"),
        (("--epsilon", "1", "--split", "0.5;0.5"), "split must hold numbers"),
        (("--epsilon", "1", "--split", "0.5,0.5"), "split"),
        (("--epsilon", "1", "--mechanism", "magic"), "mechanism"),
        (("--epsilon", "1", "--level", "1"), "level"),
        (("--epsilon", "1", "--schema", "iris.toml"), "a schema file must be readable"),
        (("--epsilon", "1", "--schema", "iris"), "or one of the packaged schemas (adult, adult_demo, bank, "),
        (("--epsilon", "0.001"), "l2_strength"),
    ],
)
def test_refusals(sample: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert message in refused(capsys, *fit_arguments(sample, *options))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.csv", None, "a table must be readable"),
        ("t.txt", b"a,b\n", "must be a file of the kind .csv, .csv.gz, .parquet"),
        ("t.csv", b"", "must begin with a line of distinct column names"),
        ("t.csv", b"a,a\n1,2\n", "must begin with a line of distinct column names"),
        ("t.csv", ADULT + b"1,2\n", "must have 7 fields, got 2 in line 2"),
        ("t.csv", b"a,b\n\xff,2\n", "must be CSV text in UTF-8"),
        ("t.csv", b"a,b\n1,2\n", "the table must have the column 'age', got ['a', 'b']"),
        (
            "t.csv",
            b"age;sex\n1;2\n",
            "t.csv' (';' seems to separate the fields: pass delimiter=';' to dpci.read, in a shell --delimiter",
        ),
        ("t.csv.gz", b"a,b\n1,2\n", "a table must be readable"),
        ("t.parquet", b"a,b\n1,2\n", "must be a Parquet file"),
    ],
)
def test_bad_tables(
    tmp_path: Path, name: str, content: bytes | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert message in refused(capsys, *fit_arguments(tmp_path / name, "--epsilon", "1"))


@pytest.mark.parametrize("argv", [["fit"], ["fly"], ["fit", "t.csv", "--epsilon", "one"], ["data", "--bogus"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "Traceback" not in ran(capsys, *argv, code=2).err


def test_without_typer() -> None:
    script = "import sys; sys.modules['typer'] = None; from dpci.cli import main; sys.exit(main(['plan']))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == "dpci: the command line needs typer: pip install 'dpci[cli]'\n"


def test_data_lists_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ran(capsys, "data").out.splitlines()
    assert len(lines) == 2 + sum(len(entry.files) for entry in CATALOGUE.values())
    for line, file in zip(
        lines[2:], (file for entry in CATALOGUE.values() for file in entry.files.values()), strict=True
    ):
        assert ("not here" in line) == (_files.find(file) is None)
        assert "WRONG" not in line


def test_data_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "requires the name of a data set" in refused(capsys, "data", "--export", str(tmp_path / "t.csv"))
    assert "requires --export FILE" in refused(capsys, "data", "adult")
    export = ("--export", str(tmp_path / "t.csv"))
    assert "['adult_sample', 'adult', " in refused(capsys, "data", "iris", *export)
    assert "--split requires a data set of several files" in refused(
        capsys, "data", "adult_sample", "--split", "test", *export
    )
    assert "must not end in .parquet" in refused(
        capsys, "data", "adult_sample", "--export", str(tmp_path / "t.parquet")
    )
    assert list(tmp_path.iterdir()) == []
    assert "in a folder that exists" in refused(
        capsys, "data", "adult_sample", "--export", str(tmp_path / "no" / "t.csv")
    )


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_tables_round_trip(tmp_path: Path, name: str) -> None:
    table = {"a b": [1.0, 2.5, 1e300], "c": ['x, "y"', "", "é"]}
    write_csv(tmp_path / name, table)
    assert read_table(tmp_path / name) == {"a b": ["1", "2.5", str(int(1e300))], "c": table["c"]}


def test_an_exported_table_gives_the_same_rows(sample: Path) -> None:
    data = datasets.load_adult_sample()
    assert data.schema is not None
    X, y, _ = data.schema.transform(read_table(sample))
    np.testing.assert_array_equal(X, data.X)
    np.testing.assert_array_equal(y, data.y)


def test_budgets_and_losses() -> None:
    assert parse_budget(None, None, 0.5) == dpci.ZCDP(rho=0.5)
    assert parse_budget(1.0, 1e-6, None) == dpci.ApproxDP(epsilon=1.0, delta=1e-6)
    assert parse_loss("huber_hinge:0.25") == dpci.losses.HuberHinge(h=0.25)
    assert parse_loss("smooth_hinge") == dpci.losses.SmoothHinge()
    for text in ("huber_hinge:-1", "huber_hinge:1,2", "smooth_hinge:"):
        with pytest.raises(InvalidInput):
            parse_loss(text)


def test_folders_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    message = f"--output must name a folder that exists or can be created, got {str(file)!r}: File exists"
    assert message in refused(capsys, "demo", "--output", str(file))
    path = tmp_path / "no" / "people.ledger"
    assert f"a new ledger must be in a folder that exists, got {str(path)!r}" in refused(
        capsys, "ledger", "create", str(path), "--epsilon", "1"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ran(capsys, "demo", "--output", tmp_path / "demo").out
    assert "ordinary ones, without a ridge" in text
    assert "against Female" in text
    assert "Odds ratios\n95% intervals" in text
    assert (tmp_path / "demo" / "forest_plot.png").read_bytes().startswith(PNG)


def test_a_plot_leaves_no_figure_open(tmp_path: Path) -> None:
    assert main(["demo", "--output", str(tmp_path / "demo")]) == 0
    assert plt.get_fignums() == []


@pytest.mark.parametrize(("option", "budget"), [("--rho", dpci.ZCDP(rho=0.5)), ("--epsilon", dpci.PureDP(epsilon=0.5))])
def test_newton_steps_are_planned_and_taken_without_a_ridge(
    sample: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, budget: dpci.ZCDP | dpci.PureDP
) -> None:
    public = ["--schema", "adult_demo", option, "0.5"]
    assert main(["plan", "--n-samples", "4000", *public, "--mechanism", "newton", "--json"]) == 0
    schema = datasets.load_schema("adult_demo")
    plan = dpci.plan(n_samples=4000, schema=schema, budget=budget, mechanism="newton")
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(plan.to_dict()))
    model = tmp_path / "model.json"
    assert main(["fit", str(sample), *public, "--output", str(model), "--quiet"]) == 0
    assert dpci.PrivateFit.from_json(model.read_text(encoding="utf-8")).mechanism == "newton"
