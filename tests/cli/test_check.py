"""``dpci check``: what a schema would do to a table, before any budget is spent."""

import json

import pytest

from support.commands import ended
from support.people import make_people


@pytest.fixture
def people(tmp_path, monkeypatch):
    make_people(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "people.csv"


def checked(capsys, *arguments):
    return ended(capsys, "check", *arguments, "--schema", "people.toml")


def test_a_table_as_its_schema_has_it(people, capsys):
    code, out, err = checked(capsys, "people.csv")
    n_rows = len(people.read_text().splitlines()) - 1
    assert (code, err) == (0, "")
    assert out.startswith(f"NOT PRIVATE: {n_rows:,} rows")
    assert out.endswith(("nothing would be refused\n", "every value agrees with the schema\n"))


def test_a_refused_value_and_a_moved_one(people, capsys):
    people.write_text(people.read_text() + "30,A,maybe\n999,B,no\n")
    code, out, _ = checked(capsys, "people.csv", "--json")
    assert code == 1
    found = json.loads(out)
    assert (found["private"], found["refused"]) == (False, True)
    whats = {(one["column"], one["what"]): one for one in found["findings"]}
    assert whats["ill", "of neither class: refused"]["examples"] == ["'maybe'"]
    assert any(column == "age" and what.endswith("moved to the bound") for column, what in whats)


def test_several_files_are_one_table(people, capsys):
    lines = people.read_text().splitlines(keepends=True)
    people.with_name("a.csv").write_text("".join(lines[:10]))
    people.with_name("b.csv").write_text("".join([lines[0], *lines[10:15]]))
    code, out, _ = checked(capsys, "a.csv", "b.csv")
    assert code == 0
    assert out.startswith("NOT PRIVATE: 14 rows")


def test_a_wrong_delimiter(people, capsys):
    people.write_text(people.read_text().replace(",", ";"))
    code, out, err = checked(capsys, "people.csv")
    assert (code, out) == (2, "")
    assert "in a shell --delimiter ';'" in err
    assert checked(capsys, "people.csv", "--delimiter", ";")[0] == 0
