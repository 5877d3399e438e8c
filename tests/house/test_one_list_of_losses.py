"""The losses are listed in ``losses.py`` alone: whatever else needs them asks it, so that a new one is added once."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

import dpci
from dpci import losses

PACKAGE = Path(dpci.__file__).parent
# Two losses may be named together for what they have in common, and three in a sentence; more are a list.
MOST, MOST_IN_TEXT = 2, 3
NAMES = {word: name for name, kind in losses.BUILT_IN.items() for word in (name, kind.__name__)}


def named(words):
    """The losses among the words."""
    return {NAMES[word] for word in words if word in NAMES}


def parts(node):
    """Names that stand side by side in a literal, a call or a union."""
    if isinstance(node, ast.BinOp):
        return [*parts(node.left), *parts(node.right)]
    if isinstance(node, ast.Dict):
        return [*node.keys, *node.values]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return node.elts
    return [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else [node]


def lists_of_losses(text):
    """Line numbers of literals, calls, unions and texts that are no documentation, which name more losses than that."""
    if len(named(re.findall(r"\w+", text))) <= MOST:
        return
    tree = ast.parse(text)
    documentation = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            words, most = re.findall(r"\w+", node.value), MOST_IN_TEXT
        else:
            fields = [[getattr(each, field, None) for field in ("value", "id", "attr")] for each in parts(node)]
            words, most = [word for field in fields for word in field if isinstance(word, str)], MOST
        if len(named(words)) > most:
            yield node.lineno


@pytest.mark.parametrize(
    "text",
    [
        "x = {'logistic': 1, 'squared': 2, 'hinge': 3}",
        "x = Literal['logistic', 'squared', 'hinge']",
        "check('logistic', 'squared', 'hinge')",
        "x = Logistic | losses.Squared | Hinge",
        "x = f'logistic, huber_hinge, squared or hinge, {y}'",
    ],
)
def test_lists_are_found(text):
    assert list(lists_of_losses(text))


def test_no_other_file_lists_the_losses():
    files = [path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "losses.py"]
    found = {str(path.relative_to(PACKAGE)): list(lists_of_losses(path.read_text(encoding="utf-8"))) for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_lists_of_the_file_agree():
    kinds = get_args(losses.BuiltIn)
    assert get_args(losses.LossName) == tuple(kind.name for kind in kinds) == tuple(losses.BUILT_IN)
    assert set(losses.__all__) == {kind.__name__ for kind in kinds} | {"Custom", "Loss"}
    assert all(losses.check_loss(name).to_core().name == name for name in losses.BUILT_IN)
