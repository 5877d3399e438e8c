"""The stub of the core says what the compiled module has: the same names, the same parameters."""

import ast
import inspect
import tomllib
from pathlib import Path

import pytest

import dpci
from dpci import _core, losses

PACKAGE = Path(dpci.__file__).parent
BINDINGS = Path(__file__).parents[2] / "rust" / "dpci-py" / "src"
STUB = ast.parse((PACKAGE / "_core.pyi").read_text(encoding="utf-8"))


def is_for_types_alone(node):
    return "type_check_only" in map(ast.unparse, node.decorator_list)


FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef) and not is_for_types_alone(node)}
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
    listed = [*arguments.posonlyargs, *arguments.args, *filter(None, [arguments.vararg])]
    positional = [argument.arg for argument in listed]
    return [name for name in positional if name not in {"self", "cls"}], [a.arg for a in arguments.kwonlyargs]


def compiled_parameters(function):
    """Names of the positional and keyword-only parameters, as `__text_signature__` has them."""
    found = inspect.signature(function).parameters.values()
    keyword_only = [p.name for p in found if p.kind is p.KEYWORD_ONLY]
    return [p.name for p in found if p.kind is not p.KEYWORD_ONLY and p.name not in {"self", "cls"}], keyword_only


def test_names():
    # The stub is that of a release; the core for tests has one class more.
    assert public(dir(_core)) - {"Testing"} == public({*FUNCTIONS, *CLASSES, *CONSTANTS})


def attributes(text):
    return {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}


def test_the_package_uses_every_name():
    """Functions for tests alone are in the class Testing."""
    used = {name for path in PACKAGE.rglob("*.py") for name in attributes(path.read_text(encoding="utf-8"))}
    # By name: ``losses.py`` makes losses, and a pickle makes a ball.
    used |= {*losses.BUILT_IN, "ball"}
    members = {
        node.target.id if isinstance(node, ast.AnnAssign) else node.name
        for body in CLASSES.values()
        for node in body.body
        if isinstance(node, ast.AnnAssign | ast.FunctionDef)
    }
    assert public({*FUNCTIONS, *CLASSES, *CONSTANTS, *members}) - used == set()


@pytest.mark.skipif(not BINDINGS.is_dir(), reason="outside of the checkout")
def test_a_release_differs_by_one_file_of_bindings():
    """The feature switches on functions for tests, and changes nothing that the package calls."""
    files = {path.name: path.read_text(encoding="utf-8") for path in BINDINGS.rglob("*.rs")}
    asking = {name: text.count("feature = ") for name, text in files.items() if "feature = " in text}
    assert asking == {"lib.rs": 2}
    gate = '#[cfg(feature = "testing")]\n'
    assert f"{gate}mod testing;\n" in files["lib.rs"]
    assert f"{gate}    #[pymodule_export]\n    use super::testing::Testing;\n" in files["lib.rs"]
    assert [name for name, text in files.items() if "testing::" in text] == ["lib.rs"]
    features = tomllib.loads((BINDINGS.parent / "Cargo.toml").read_text(encoding="utf-8"))["features"]
    assert features == {"testing": ["dep:libm", "dep:rand"]}
    project = tomllib.loads((BINDINGS.parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "features" not in project["tool"]["maturin"]


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
