"""The gallery: each file runs by itself, draws its plot, and is private; the list has all of them."""

import re
import runpy
import warnings
from pathlib import Path

import pytest

import dpci

FOLDER = Path(__file__).parents[2] / "examples" / "gallery"
CASES = sorted(path.stem for path in FOLDER.glob("*.py"))


def test_the_list_has_every_case():
    listed = re.findall(
        r"^\| \[(\w+)\.py\]\(\1\.py\)", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == CASES
    assert len(CASES) == 10


@pytest.mark.parametrize("case", CASES)
def test_a_case_runs(case, tmp_path, monkeypatch, capsys):
    plot = pytest.importorskip("matplotlib.pyplot")
    plot.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="error"):
        # The noise is real: what a fit says about it may differ from run to run.
        warnings.simplefilter("ignore", dpci.DpciWarning)
        made = runpy.run_path(str(FOLDER / f"{case}.py"), run_name="__main__")
    plot.close("all")
    assert (tmp_path / f"{case}.png").read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "interval" in printed
    assert "NOT PRIVATE" not in printed
    results = [value for value in made.values() if isinstance(value, dpci.PrivateFit)]
    assert all(result.private for result in results)
