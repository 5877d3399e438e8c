"""The commands on models of several classes: fit, report, predict, verify and plan, and what they refuse."""

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dpci
from dpci.cli.commands.all import app

SCHEMA = """
[target]
column = "way"
classes = ["walk", ["bus", "tram"], "car"]

[[columns]]
kind = "numeric"
name = "age"
lower = 20
upper = 60
unit = "year"

[[columns]]
kind = "categorical"
name = "sex"
categories = ["F", "M"]
reference = "F"
"""
FIT = ["--rho", "0.5", "--l2-strength", "0.01", "--loss", "multinomial"]
CLASSES = ["walk", "bus|tram", "car"]
N = 3000


def run(*arguments: object, code: int = 0) -> str:
    found = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert found.exit_code == code or (code and found.exception), found.output + str(found.exception)
    return found.stdout if not code else f"{found.output}{found.exception}"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    rng = np.random.default_rng(4)
    rows = zip(
        rng.integers(20, 61, N), rng.choice(["F", "M"], N), rng.choice(["walk", "bus", "tram", "car"], N), strict=True
    )
    (folder / "table.csv").write_text("age,sex,way\n" + "".join(f"{a},{s},{w}\n" for a, s, w in rows))
    (folder / "schema.toml").write_text(SCHEMA)
    run("ledger", "create", folder / "ledger.db", "--rho", "3")
    printed = run(
        *("fit", folder / "table.csv", "--schema", folder / "schema.toml", *FIT, "--json"),
        *("--ledger", folder / "ledger.db", "--output", folder / "model.json", "--page", folder / "page.html"),
        *("--plot", folder / "plot.svg", "--quiet"),
    )
    return folder, json.loads(printed)


def test_fit_writes_model_page_and_plot(files):
    folder, printed = files
    model = dpci.multinomial.MultinomialFit.from_json((folder / "model.json").read_text())
    assert model.classes == tuple(CLASSES)
    assert model.private
    assert printed["classes"] == CLASSES
    assert printed["privacy"]["classes"] == CLASSES
    assert [row["name"] for row in printed["coefficients"]] == list(model.names)
    np.testing.assert_array_equal([row["estimate"] for row in printed["coefficients"]], model.params)
    np.testing.assert_array_equal([row["estimate"] for row in printed["scaled"]], model.scaled.params)
    assert model.digest in (folder / "page.html").read_text(encoding="utf-8")
    assert (folder / "plot.svg").stat().st_size > 0


def test_report_shows_and_writes(files):
    folder, printed = files
    text = run("report", folder / "model.json")
    assert "against 'walk'" in text
    assert "per year" in text
    assert "per year" not in run("report", folder / "model.json", "--units", "scaled")
    assert json.loads(run("report", folder / "model.json", "--json")) == printed
    assert "max_z" in run("report", folder / "model.json", "--simultaneous", "max_z")
    run("report", folder / "model.json", "--output", folder / "again.html", "--title", "Ways")
    assert '<h1 dir="auto">Ways</h1>' in (folder / "again.html").read_text(encoding="utf-8")
    assert "--without-ridge must not be given" in run("report", folder / "model.json", "--without-ridge", code=2)


def test_verify_holds_the_file_against_schema_and_ledger(files):
    folder, _ = files
    asked = ("--ledger", folder / "ledger.db", "--schema", folder / "schema.toml", "--json")
    found = json.loads(run("verify", folder / "model.json", *asked))
    assert found["kind"] == "a multinomial fit"
    outcomes = {finding["outcome"] for finding in found["findings"]}
    assert outcomes == {"ok", "stated", "not shown"}
    assert any("holds the hash of this model" in finding["what"] for finding in found["findings"])
    (folder / "other.toml").write_text(SCHEMA.replace('"tram"], "car"', '"car"], "tram"'))
    other = CliRunner().invoke(app, ["verify", str(folder / "model.json"), "--schema", str(folder / "other.toml")])
    assert other.exit_code == 1
    assert "the target is" in other.output
    damaged = (folder / "model.json").read_text().replace('"walk"', '"run"')
    (folder / "damaged.json").write_text(damaged)
    run("verify", folder / "damaged.json", code=2)


def test_predict_gives_labels_and_a_probability_for_each_class(files):
    folder, _ = files
    text = run("predict", folder / "model.json", folder / "table.csv", "--proba", "--keep", "age")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == N
    assert list(rows[0]) == ["age", "prediction", *(f"probability:{label}" for label in CLASSES)]
    found = np.array([[float(row[f"probability:{label}"]) for label in CLASSES] for row in rows])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert [CLASSES[k] for k in found.argmax(axis=1)] == [row["prediction"] for row in rows]
    model = dpci.multinomial.MultinomialFit.from_json((folder / "model.json").read_text())
    np.testing.assert_allclose(found, model.predict_proba(folder / "table.csv"))
    twice = ("--proba", "--keep", "probability:car")
    assert "already" in run("predict", folder / "model.json", folder / "table.csv", *twice, code=2)
    assert set(run("predict", folder / "model.json", folder / "table.csv").split()) <= {"prediction", *CLASSES}


def test_classes_of_the_command_line_are_those_of_the_target(files):
    folder, _ = files
    two = SCHEMA.replace('classes = ["walk", ["bus", "tram"], "car"]', 'negative = "walk"\npositive = "car"')
    (folder / "two.toml").write_text(two)
    given = ("--schema", folder / "two.toml", "--classes", "car, walk,bus,tram")
    printed = json.loads(run("fit", folder / "table.csv", *given, *FIT, "--json"))
    assert printed["classes"] == ["car", "walk", "bus", "tram"]


def test_plan_predicts_noise_and_lengths(files):
    folder, _ = files
    schema = ("--n-samples", N, "--schema", folder / "schema.toml", *FIT)
    plan = json.loads(run("plan", *schema, "--json"))
    model = dpci.multinomial.MultinomialFit.from_json((folder / "model.json").read_text())
    assert plan["n_params"] == 6
    assert [step["scale"] for step in plan["steps"]][:1] == [step["scale"] for step in model.privacy["steps"]][:1]
    assert "multinomial loss of 3 classes" in run("plan", *schema)
    like = json.loads(run("plan", *schema, "--like", folder / "model.json", "--json"))
    np.testing.assert_allclose(like["interval_length"], model.conf_int().length.mean(), rtol=0.2)
    bare = ("plan", "--n-samples", N, "--n-features", 2, *FIT)
    assert json.loads(run(*bare, "--classes", "a,b,c", "--json"))["steps"] == plan["steps"]
    run(*bare, "--classes", "a,b,c", "--neighbors", "add_remove")
    objective = json.loads(run(*bare, "--classes", "a,b,c", "--mechanism", "objective", "--json"))
    assert objective["least_l2_strength"] > plan["least_l2_strength"] == 0.0
    for wrong, why in (
        ((), "classes must be"),
        (("--classes", "a,b"), "three"),
        (("--classes", "a,b,c", "--like", folder / "schema.toml"), "saved"),
        (("--classes", "a,b,c", "--without-ridge"), "--without-ridge"),
        (("--classes", "a,b,c", "--like", folder / "model.json", "--no-intercept"), "like must"),
        (("--classes", "a,b,c,d", "--like", folder / "model.json"), "as many classes"),
    ):
        assert why in run(*bare, *wrong, code=2)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--radius", "1"), "--radius must not be given with --loss multinomial"),
        (("--rows", "blocks"), "--rows"),
        (("--mechanism", "moments"), "mechanism must be"),
        (("--calibration", "paper"), "--calibration"),
        (("--projection", "floor"), "--projection"),
        (("--max-rows", "2"), "--max-rows must go with --persons"),
        (("--persons", "age", "--weights", "age", "--weight-bound", "60"), "persons"),
        (("--weights", "age"), "--weight-bound"),
        (("--classes", "walk,car"), "three"),
        (("--classes", "walk,car,car"), "several"),
        (("--classes", "walk,car,ship"), "ship"),
        (("--loss", "logistic"), "--loss multinomial"),
        (("--loss", "logistic", "--classes", "a,b,c"), "--classes must go with"),
        (("--formula", "age ~ sex"), "--loss multinomial requires a schema"),
    ],
)
def test_what_is_refused_spends_nothing(files, options, why):
    folder, _ = files
    fit = ("fit", folder / "table.csv", "--schema", folder / "schema.toml", *FIT, "--ledger", folder / "ledger.db")
    before = run("ledger", "show", folder / "ledger.db")
    assert why in run(*fit, *options, code=2)
    assert run("ledger", "show", folder / "ledger.db") == before


def test_persons_and_weights_are_those_of_python(files):
    folder, _ = files
    table = (folder / "table.csv").read_text().splitlines()
    ids, weights = np.arange(N) // 3, np.linspace(0.5, 2.0, N)
    lines = [f"{line},{p},{w}" for line, p, w in zip(table[1:], ids, weights, strict=True)]
    (folder / "people.csv").write_text("\n".join([table[0] + ",id,w", *lines]) + "\n")
    common = ("--schema", folder / "schema.toml", *FIT, "--persons", "id", "--weights", "w", "--weight-bound", "2")
    run("fit", folder / "people.csv", *common, "--output", folder / "people.json", "--quiet")
    saved = dpci.multinomial.MultinomialFit.from_json((folder / "people.json").read_text())
    assert saved.n_samples == N // 3
    assert "the mean of each person's rows" in saved.summary(full=True)
    assert "from 0 to 2" in saved.summary(full=True)
    plan = ("plan", "--n-samples", N // 3, "--schema", folder / "schema.toml", *FIT, "--persons", "id")
    assert f"n={N // 3:,} persons" in run(*plan, "--weight-bound", "2")


def test_other_commands_name_the_loss(files):
    folder, _ = files
    common = ("--schema", folder / "schema.toml", "--rho", "0.5", "--l2-strength", "0.01")
    assert "--loss multinomial" in run("plan", "--n-samples", N, *common, code=2)
    assert "--loss multinomial" in run("coverage", folder / "table.csv", *common, code=2)
    assert "got MultinomialFit" in run("compare", folder / "model.json", folder / "model.json", code=2)


def test_tune_chooses_among_models_of_several_classes(files):
    folder, _ = files
    out = folder / "tuned.json"
    candidates = ("--candidate", "l2_strength=0.02", "--candidate", "l2_strength=0.5,mechanism=output")
    asked = ("tune", folder / "table.csv", "--schema", folder / "schema.toml", "--epsilon", 20, "--loss", "multinomial")
    run("ledger", "create", folder / "tune.db", "--epsilon", 30)
    paid = ("--ledger", folder / "tune.db", "--output", out)
    printed = json.loads(run(*asked, *candidates, "--validation-radius", 3, *paid, "--json", "--quiet"))
    assert printed["classes"] == CLASSES
    assert printed["chosen"]["l2_strength"] in {0.02, 0.5}
    found = dpci.tuning.TuneResult.from_json(out.read_text(encoding="utf-8"))
    assert found.result.classes == tuple(CLASSES)
    assert dpci.Ledger.open(folder / "tune.db").remaining == dpci.PureDP(10.0)
    assert "log odds" in run("report", out)
    assert "nothing differs" in run("verify", out, "--ledger", folder / "tune.db", "--schema", folder / "schema.toml")
    refused = run(*asked, *candidates, "--validation-radius", 3, "--radius", 2, code=1)
    assert "--radius must not be given with --loss multinomial" in refused


def test_chunks_and_private_errors(files):
    folder, _ = files
    run("ledger", "create", folder / "private.db", "--rho", "3", "--errors", "private")
    fit = ("fit", folder / "table.csv", "--schema", folder / "schema.toml", *FIT, "--quiet", "--force")
    paid = ("--ledger", folder / "private.db", "--on-violation", "clip")
    for options in (("--chunk-rows", "500"), paid):
        run(*fit, *options, "--output", folder / "chunks.json")
        saved = dpci.multinomial.MultinomialFit.from_json((folder / "chunks.json").read_text())
        assert saved.n_samples == N
        assert saved.classes == tuple(CLASSES)
    assert "rows must be clipped with a ledger" in run(*fit, "--ledger", folder / "private.db", code=2)
