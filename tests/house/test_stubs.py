"""The stub of the core says what the compiled module has: the same names, the same parameters."""

import ast
import inspect
from pathlib import Path

import dpci
from dpci import _core

STUB = ast.parse((Path(dpci.__file__).parent / "_core.pyi").read_text(encoding="utf-8"))


def is_typed_dict(node):
    return any(ast.unparse(base) == "TypedDict" for base in node.bases)


FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef) and not is_typed_dict(node)}
CONSTANTS = {node.target.id for node in STUB.body if isinstance(node, ast.AnnAssign)}
METHODS = {
    f"{name}.{node.name}": node
    for name, body in CLASSES.items()
    for node in body.body
    if isinstance(node, ast.FunctionDef)
}


def public(names):
    return {name for name in names if not name.startswith("_")}


def parameters(node):
    """Names and kinds of the parameters in the stub, without self and cls."""
    arguments = node.args
    positional = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    return [name for name in positional if name not in {"self", "cls"}], [a.arg for a in arguments.kwonlyargs]


def compiled_parameters(function):
    """Names of the positional and keyword-only parameters, as `__text_signature__` has them."""
    found = inspect.signature(function).parameters.values()
    keyword_only = [p.name for p in found if p.kind is p.KEYWORD_ONLY]
    return [p.name for p in found if p.kind is not p.KEYWORD_ONLY and p.name not in {"self", "cls"}], keyword_only


def test_names():
    assert public(dir(_core)) == public({*FUNCTIONS, *CLASSES, *CONSTANTS})


def test_version():
    assert _core.__version__ == dpci.__version__


def compiled_method(name):
    """The compiled method; a class for its constructor."""
    owner, method = name.split(".")
    return getattr(_core, owner) if method == "__new__" else getattr(getattr(_core, owner), method)


def test_parameters():
    compiled = {name: getattr(_core, name) for name in FUNCTIONS} | {name: compiled_method(name) for name in METHODS}
    described = {**FUNCTIONS, **METHODS}
    assert len(compiled) > 100
    found = {name: (compiled_parameters(compiled[name]), parameters(node)) for name, node in described.items()}
    assert {name: both for name, both in found.items() if both[0] != both[1]} == {}


def test_members():
    described = {
        name: {
            node.target.id if isinstance(node, ast.AnnAssign) else node.name
            for node in body.body
            if isinstance(node, ast.AnnAssign | ast.FunctionDef)
        }
        for name, body in CLASSES.items()
    }
    compiled = {name: public(dir(getattr(_core, name))) for name in CLASSES}
    assert compiled == {name: public(members) for name, members in described.items()}
