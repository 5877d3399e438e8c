"""Published numbers, transcribed; the cells of the tables and figures; where their rows come from."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

import dpci
from dpci.datasets.tables import load_sample_table
from dpci.errors import InvalidInput
from papers import sources
from papers.ipums import read_ipums
from papers.scaling import load_with_data_dependent_scaling
from papers.sources import Sources
from papers.wang.experiments import FIGURES, L2_STRENGTH, TABLES, Cell, Prepared
from papers.wang.published import COVERAGE, SETTINGS, Setting
from support.keywords import assembled
from support.seal import left_of

pytestmark = pytest.mark.filterwarnings("ignore::dpci.errors.PrivacyLeakWarning")


# What was published.


@pytest.mark.parametrize(("table", "columns"), [(2, 9), (3, 10), (4, 8), (5, 10), (6, 10)])
def test_transcription_has_the_shape_of_the_paper(table: int, columns: int) -> None:
    assert list(COVERAGE[table]) == list(SETTINGS)
    assert all(len(line) == columns == len(TABLES[table].values) for line in COVERAGE[table].values())
    assert all(0.94 < coverage < 1.0 for line in COVERAGE[table].values() for coverage in line)


@pytest.mark.parametrize(
    ("table", "line", "value", "coverage"),
    [
        (2, ("DP", "objective", "logistic"), 50_000, 0.9680),
        (2, ("zCDP", "output", "logistic"), 350_000, 0.9985),
        (3, ("DP", "output", "huber_hinge"), 5, 0.9525),
        (3, ("zCDP", "objective", "huber_hinge"), 5, 0.9462),
        (4, ("DP", "objective", "huber_hinge"), 0.9, 0.9923),
        (4, ("zCDP", "output", "huber_hinge"), 1.0, 0.9754),
        (5, ("zCDP", "objective", "huber_hinge"), 0.6, 0.9461),
        (6, ("DP", "objective", "logistic"), 0.1, 0.9829),
        # Shifted by a column in the extracted text of the paper.
        (6, ("DP", "output", "logistic"), 0.1, 0.9705),
        (6, ("DP", "output", "huber_hinge"), 1.0, 0.9572),
        (6, ("zCDP", "output", "logistic"), 0.1, 0.9757),
        (6, ("zCDP", "output", "huber_hinge"), 1.0, 0.9685),
    ],
)
def test_spot_values(table: int, line: tuple[str, str, str], value: float, coverage: float) -> None:
    assert COVERAGE[table][Setting(*line)][TABLES[table].values.index(value)] == coverage


def test_no_digit_of_the_transcription_has_changed() -> None:
    # The hash of the transcription as it was compared with the paper, cell by cell.
    lines = [f"{table} {setting} {line}" for table, lines in COVERAGE.items() for setting, line in lines.items()]
    digest = hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
    assert digest == "d4b7c16721bd364be618292bf71fd9c4"


def test_cells_are_those_of_the_captions() -> None:
    pure, zcdp = SETTINGS[0], SETTINGS[-1]
    assert TABLES[2].cell(150_000, pure) == Cell(Prepared("kddcup99", 150_000, 10), pure, (0.5, 0.25, 0.25))
    assert TABLES[3].cell(4, pure) == Cell(Prepared("adult", 30_162, 4), pure, (0.5, 0.25, 0.25))
    assert TABLES[4].cell(0.3, pure) == Cell(Prepared("bank", 45_211, 10), pure, (0.3, 0.25, 0.25))
    assert TABLES[5].cell(0.7, zcdp) == Cell(Prepared("us", 39_928, 10), zcdp, (0.5, 0.7, 0.25))
    assert TABLES[6].cell(0.1, zcdp) == Cell(Prepared("br", 38_000, 10), zcdp, (0.5, 0.25, 0.1))


def test_budgets_of_the_steps() -> None:
    for setting, costs in ((SETTINGS[0], (0.5, 0.25, 0.25)), (SETTINGS[-1], (0.125, 0.03125, 0.03125))):
        keywords = TABLES[3].cell(10, setting).keywords("paper")
        plan = dpci.plan(
            **assembled(n_samples=30_162, n_features=11, intercept=False, l2_strength=L2_STRENGTH, **keywords)
        )
        left = [left_of(cost) for cost in costs]
        assert [step.cost for step in plan.steps] == pytest.approx(left, rel=1e-12)
        # Both moments are one release, which spends what they would spend apart.
        keywords = TABLES[3].cell(10, setting).keywords("tight")
        plan = dpci.plan(
            **assembled(n_samples=30_162, n_features=11, intercept=False, l2_strength=L2_STRENGTH, **keywords)
        )
        assert [step.cost for step in plan.steps] == pytest.approx((left[0], left[1] + left[2]), rel=1e-12)


def test_figure_1_has_the_panels_of_the_paper() -> None:
    assert [(panel.sweep.dataset, panel.loss, panel.sweep.varied) for panel in FIGURES[1].panels] == [
        ("kddcup99", "logistic", "n"),
        ("adult", "logistic", "d"),
        ("adult", "huber_hinge", "d"),
        ("bank", "logistic", "epsilon_1"),
        ("bank", "huber_hinge", "epsilon_1"),
        ("br", "logistic", "epsilon_1"),
        ("us", "logistic", "epsilon_2"),
        ("us", "huber_hinge", "epsilon_2"),
        ("br", "huber_hinge", "epsilon_3"),
    ]


def test_figures_agree_with_their_captions() -> None:
    assert all("".join(panel.letter for panel in plan.panels) == "abcdefghi" for plan in FIGURES.values())
    for number in (2, 3, 4):
        assert [panel.sweep.varied for panel in FIGURES[number].panels[:6]] == ["n", "n", "d", "d", *["epsilon_1"] * 2]
    last = {number: [panel.sweep.varied for panel in FIGURES[number].panels[6:]] for number in FIGURES}
    assert last == {
        1: ["epsilon_2", "epsilon_2", "epsilon_3"],
        2: ["epsilon_2", "epsilon_3", "epsilon_3"],
        3: ["epsilon_2", "epsilon_2", "epsilon_3"],
        4: ["epsilon_2", "epsilon_3", "epsilon_3"],
    }


# Where the data come from.


def test_layout_of_an_extract(tmp_path: Path) -> None:
    path = tmp_path / "us.csv"
    path.write_text('age,state,"wage, weekly",income\n30,TX,1.5e2,<=50K\n41,"NY",-3,>50K\n22,NY,0,<=50K\n', "utf-8")
    table, layout = read_ipums(path)
    assert layout.numeric == ("age", "wage, weekly")
    assert layout.columns == ("age", "state", "wage, weekly", "income")
    assert layout.target == "income"
    assert layout.positive == (">50K",)
    np.testing.assert_array_equal(table["wage, weekly"], [150.0, -3.0, 0.0])
    X, y = Sources(us=path).rows(Prepared("us", 39_928, 4))
    order = np.random.default_rng(0).permutation(3)
    np.testing.assert_array_equal(y, np.array([-1.0, 1.0, -1.0])[order])
    features = np.array([[30 / 41, 1, 0, 1], [1, -3 / 150, 1, 0], [22 / 41, 0, 1, 0]])[order]
    features /= np.maximum(np.linalg.norm(features, axis=1), 1.0)[:, None]
    features = np.column_stack([features, np.ones(3)])
    np.testing.assert_allclose(X, features / np.linalg.norm(features, axis=1)[:, None], rtol=1e-12)


@pytest.mark.parametrize(
    ("labels", "positive"), [("0 1", "1"), ("-1 1", "1"), ("9 10", "10"), ("no yes", "yes"), ("low 5", "low")]
)
def test_the_greater_value_of_the_target_is_positive(tmp_path: Path, labels: str, positive: str) -> None:
    path = tmp_path / "br.csv"
    path.write_text("\n".join(["x,y", *(f"{i},{label}" for i, label in enumerate(labels.split()))]), "utf-8")
    assert read_ipums(path)[1].positive == (positive,)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("us.txt", "x,y\n1,0\n2,1\n", r"must be a CSV file .* got '.*us\.txt'"),
        ("us.csv", "y\n0\n1\n", "at least one row and two columns, got 2 x 1"),
        ("us.csv", "x,y\n", "at least one row and two columns, got 0 x 2"),
        ("us.csv", "x,y\n1,0\n2,1\n3,2\n", "target with two values, got 3 in column 'y'"),
        ("us.csv", "x,y\n1,0\n2,0\n", "target with two values, got 1 in column 'y'"),
        ("us.csv", "x,y\n1,1\n2,1.0\n", "got 1 in column 'y', spelt in 2 ways"),
        ("us.csv", "x,y\n1,0\n,1\n", "no missing value, got '' in column 'x', row 2 below the header"),
        ("us.csv", "x,y\n1,0\n2,?\n", "no missing value, got '\\?' in column 'y'"),
        ("us.csv", "x,y\n1,0\nnan,1\n", "must hold finite numbers, got 'nan' in column 'x'"),
        ("us.csv", "x,y\n1,0\n1e999,1\n", "must hold finite numbers, got '1e999' in column 'x'"),
        ("us.csv", "x,y\n1,0\n \t,1\n", "no missing value, got '' in column 'x', row 2"),
        (
            "us.csv",
            f"x,y\na,0\n{'b' * 201},1\n",
            "at most 200 characters, got 201 in column 'x', row 2 below the header$",
        ),
        (
            "us.csv",
            "\n".join(["x,y", *(f"{'n/a ' * 11 if i == 4 else i},{i % 2}" for i in range(10))]),
            f"numbers in all cells or in fewer than 90% of them, got '{('n/a ' * 11)[:40]}' in column 'x', row 5 below",
        ),
        ("us.csv", "x,y\n1,0\n2\n", "must have 2 cells, got 1 in row 2 below the header"),
        ("us.csv", "x,x\n1,0\n2,1\n", "distinct column names"),
        ("us.csv", "x,y\n1,0\n2,1\n", "at least 10 columns.*got d=10"),
    ],
)
def test_other_layouts_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, "utf-8")
    with pytest.raises(InvalidInput, match=message):
        Sources(us=path).rows(Prepared("us", 2, 10))


def test_numbers_are_ascii(tmp_path: Path) -> None:
    path = tmp_path / "us.csv"
    line = "-1.5E+3 ,.5,1_0,\u0661,0x1,+2.,{}"
    path.write_text("\n".join(["a,b,c,d,e,f,y", *(line.format(label) for label in "01")]), "utf-8")
    table, layout = read_ipums(path)
    assert layout.numeric == ("a", "b", "f")
    assert [table[name][0] for name in "abcdef"] == [-1500.0, 0.5, "1_0", "\u0661", "0x1", 2.0]


def test_a_column_with_many_other_cells_is_categorical(tmp_path: Path) -> None:
    # 8 of 9 cells are fewer than 90%.
    path = tmp_path / "us.csv"
    path.write_text("\n".join(["x,y", *(f"{'V0' if i == 4 else i},{i % 2}" for i in range(9))]), "utf-8")
    assert read_ipums(path)[1].numeric == ()


def test_blanks_around_a_cell_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "us.csv"
    path.write_text("x,y\na,0 \na ,1\n b,1\n", "utf-8")
    table, layout = read_ipums(path)
    assert list(table["x"]) == ["a", "a", "b"]
    assert layout.positive == ("1",)


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """300 rows of one number and nine categories."""
    path = tmp_path / "br.csv"
    path.write_text("\n".join(["x,group,y", *(f"{i},g{i % 9},{i % 2}" for i in range(300))]), "utf-8")
    return path


def test_an_extract_gives_at_most_the_published_number_of_rows(numbered: Path) -> None:
    given = Sources(br=numbered)
    assert given.rows(Prepared("br", 200, 10))[0].shape == (200, 11)
    assert given.rows(Prepared("br", 38_000, 10))[0].shape == (300, 11)


def test_a_table_is_parsed_once(numbered: Path) -> None:
    given = Sources(br=numbered)
    first = given.rows(Prepared("br", 200, 10))[0]
    numbered.unlink()
    np.testing.assert_array_equal(given.rows(Prepared("br", 100, 10))[0], first[:100])


def test_rows_are_those_of_the_public_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "load_table", lambda _, **__: load_sample_table())
    monkeypatch.setattr("papers.scaling.load_table", lambda _, **__: load_sample_table())
    expected = load_with_data_dependent_scaling("adult", 3_000, 7)
    X, y = Sources().rows(Prepared("adult", 3_000, 7))
    np.testing.assert_array_equal(X, expected.X)
    np.testing.assert_array_equal(y, expected.y)
