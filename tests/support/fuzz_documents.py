"""Saved results and command lines with something changed: their readers must refuse them, or give a sound result."""

import contextlib
import io
import json
import math
import tempfile
from pathlib import Path

import dpci
from dpci import cli
from support.saved import rewritten

SCHEMA = """
[[columns]]
name = "a"
kind = "numeric"
lower = 0.0
upper = 2.0

[[columns]]
name = "b"
kind = "categorical"
categories = ["u", "v"]
reference = "u"

[target]
column = "c"
negative = ["no"]
positive = ["yes"]
"""
TABLE = b"a,b,c\n" + b"0.5,u,no\n1.0,v,yes\n2.0,v,no\n0.1,u,yes\n" * 10
ODD_CELLS = (
    b"",
    b"nan",
    b"inf",
    b"1e999",
    b"-1",
    b'"',
    b"\xff",
    b"\0",
    "é".encode(),
    b"0x10",
    b"1_0",
    b"True",
    b" 1 ",
    b"\r",
    b"u,v",
    b"9" * 400,
)
# Files that are no ledgers.
PLACES = {"empty": b"", "text": b"a ledger?\n", "damaged": b"SQLite format 3\0" + bytes(range(256)) * 20}
ODD_JSON = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**63,
    10**400,
    -0.0,
    0.5,
    1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "",
    "x",
    "\ud800",
    "a\0",
    [],
    {},
    [[]],
)


def read_document(kind, text):
    """Read a saved result; what is read must be written and read again with the same values."""
    result = kind.from_json(text)
    written = result.to_json()
    if kind.from_json(written).to_json() != written:
        raise AssertionError("reading what was written gave something else")
    return result


def mutated_document(rng, documents):
    """Return the arguments of :func:`read_document` for a changed document."""
    kind, text = rng.choice(documents)
    if rng.random() < 0.2:
        return {"kind": kind, "text": _damaged(rng, text)}
    tree = json.loads(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        tree = _changed(rng, tree, rng.choice((1, 2, 3, 4)))
    return {"kind": kind, "text": rewritten(tree) if rng.random() < 0.8 else json.dumps(tree)}


def _damaged(rng, text):
    """Damage the bytes rather than the values."""
    at = rng.randrange(len(text))
    with_bytes = bytearray(text.encode())
    with_bytes[at % len(with_bytes)] = rng.randrange(256)
    return rng.choice(
        (
            text[:at],
            text[at:],
            bytes(with_bytes),
            text.encode("utf-16"),
            "\ufeff" + text,
            text + text,
            text[:at] + rng.choice(("[", "{", '"', "\\", "1e999", "null", "NaN", ",", "9" * 5000)) + text[at:],
            "[" * rng.choice((10, 10**5)),
            '{"a":' * 10**5,
            rng.choice(("", "null", "[]", "{}", "0", '"x"', b"", b"\xff\xfe", "9" * 5000)),
        )
    )


def _changed(rng, tree, depth):
    """Return the tree with one node below it replaced, removed or added."""
    if depth == 0 or not isinstance(tree, dict | list) or not tree:
        if isinstance(tree, float) and rng.random() < 0.5:
            return tree * rng.choice((-1.0, 0.0, 1.0 + 2.0**-50, 1e-3, 1e6, 1e200))
        return rng.choice(ODD_JSON)
    key = rng.choice([*tree] if isinstance(tree, dict) else range(len(tree)))
    tree = tree.copy()
    action = rng.random()
    if action < 0.1:
        del tree[key]
    elif action < 0.15 and isinstance(tree, dict):
        tree[rng.choice(("odd", "", "params", "format"))] = tree[key]
    elif action < 0.2 and isinstance(tree, list):
        tree.append(tree[key])
    else:
        tree[key] = _changed(rng, tree[key], depth - 1)
    return tree


def ledger_at(path, total):
    """Open a ledger at a place in a fresh folder, spend, and open it again: what was spent is there."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, content in PLACES.items():
            Path(name).write_bytes(content)
        Path("folder").mkdir()
        with dpci.Ledger(total, path=path) as ledger:
            ledger.spend(total, neighbors=ledger.neighbors)
            spent = ledger.to_json()
        if path is not None:
            with dpci.Ledger.open(path) as again:
                if again.to_json() != spent:
                    raise AssertionError("the ledger that was opened is not the one that was written")
        if any(Path(name).read_bytes() != content for name, content in PLACES.items()):
            raise AssertionError("a file that is no ledger was written over")


def mutated_place(rng):
    """Return the arguments of :func:`ledger_at`: new files, and places where no ledger can be."""
    new = ("new.db", "é.db", Path("new"), Path("folder", "a b"), None)
    odd = (*PLACES, "folder", ".", "", "no/such/folder/x", "a\0b", "\ud800", "\udcff", "x" * 5000, "/proc/x", b"new")
    return {"path": rng.choice(rng.choice((new, odd))), "total": rng.choice((dpci.PureDP(1.0), dpci.ZCDP(0.5)))}


def command_line(arguments, table):
    """Run the command on a file of these bytes; the exit code must be one of those documented."""
    with tempfile.TemporaryDirectory() as folder:
        rows, description = Path(folder, "table.csv"), Path(folder, "schema.toml")
        rows.write_bytes(table)
        description.write_text(SCHEMA)
        places = {"TABLE": str(rows), "SCHEMA": str(description), "JSON": str(Path(folder, "result.json"))}
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main([places.get(argument, argument) for argument in arguments])
        if code not in {0, 2} or "Traceback" in err.getvalue():
            raise AssertionError(f"exit code {code}: {err.getvalue()[-500:]}")
        if code != 0 and Path(places["JSON"]).exists():
            raise AssertionError("a result was written by a command that failed")


def mutated_command(rng):
    """Return the arguments of :func:`command_line`: a command with an odd table, odd options, or both."""
    table = TABLE
    if rng.random() < 0.8:
        lines = table.split(b"\n")
        for _ in range(rng.choice((1, 1, 3))):
            row = rng.randrange(min(len(lines), 4))
            cells = lines[row].split(b",")
            cells[rng.randrange(len(cells))] = rng.choice(ODD_CELLS)
            lines[row] = b",".join(cells)
        table = b"\n".join(lines)[: rng.choice((None, None, None, 0, 3, 40))]
    options = {"--l2-strength": "0.5", "--epsilon": "1.0", "--schema": "SCHEMA"}
    for _ in range(rng.choice((0, 1, 2))):
        names = (
            "--l2-strength", "--epsilon", "--delta", "--rho", "--loss", "--radius", "--split", "--moments", "--level",
        )  # fmt: skip
        others = (
            "--neighbors", "--n-public", "--mechanism", "--delimiter", "--on-violation", "--projection", "--target",
            "--json", "--output", "--chunk-rows",
        )  # fmt: skip
        name = rng.choice(names + others)
        values = (
            "",
            "nan",
            "inf",
            "-1",
            "0",
            "1e999",
            "x",
            "0.5",
            "1",
            "squared",
            "none",
            ".8,.1,.1",
            "c",
            "é",
            "\ud800",
            "9" * 400,
        )
        if name == "--json":
            options[name] = None
        else:
            options[name] = "JSON" if name == "--output" else rng.choice(values)
    command = rng.choice(("fit", "fit", "fit", "data", "report", "", "--version"))
    parts = (part for pair in options.items() for part in pair if part is not None)
    return {"arguments": [command, "TABLE", *parts], "table": table}
