"""Benches and examples pass keywords that exist, also from dictionaries, which no type checker follows."""

import ast
import importlib
import inspect
from functools import cached_property
from pathlib import Path

import pytest

import dpci

ROOT = Path(__file__).parents[2]
PROGRAMS = [path for folder in ("benches", "examples") for path in sorted((ROOT / folder).rglob("*.py"))]
OF_A_FIT = set(inspect.signature(dpci.fit).parameters)
"""Keywords that functions take which pass others on."""


class Program:
    """A program as its source: calls of the package, and keys of dictionaries that it gives them."""

    def __init__(self, text):
        self.nodes = list(ast.walk(ast.parse(text)))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.functions = {node.name: node for node in self.nodes if isinstance(node, ast.FunctionDef)}
        self.calls = [node for node in self.nodes if isinstance(node, ast.Call)]

    @cached_property
    def imported(self):
        """Objects of the package by their names here."""
        found = {}
        for node in self.nodes:
            module = getattr(node, "module", None) or "dpci"
            if isinstance(node, ast.Import | ast.ImportFrom) and module.partition(".")[0] == "dpci":
                for alias in node.names:
                    if isinstance(node, ast.ImportFrom):
                        found[alias.asname or alias.name] = getattr(importlib.import_module(module), alias.name)
                    elif alias.name == "dpci":
                        found["dpci"] = dpci
        return found

    def called(self, node):
        """The object of the package behind a name with dots; None for any other."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id)
        whole = self.called(node.value) if isinstance(node, ast.Attribute) else None
        return getattr(whole, node.attr) if inspect.ismodule(whole) or inspect.isclass(whole) else None

    def scopes(self, node):
        """The functions around a node, the innermost first, and the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef | ast.Module):
                yield node

    @cached_property
    def bound(self):
        """Expressions by scope and name, of which one is the value, or an entry."""
        found = {}
        for node in self.nodes:
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            for target in targets:
                if isinstance(node, ast.For | ast.comprehension):
                    # An entry of the dictionary whose items are gone through.
                    whole = getattr(getattr(node.iter, "func", None), "value", node.iter)
                    pairs = [(each, ast.Subscript(whole)) for each in ast.walk(target) if isinstance(each, ast.Name)]
                elif isinstance(target, ast.Subscript) and not isinstance(node, ast.Delete):
                    pairs = [(target.value, ast.Dict([target.slice], [node.value]))]
                else:
                    pairs = [(target, getattr(node, "value", None))]
                for name, value in pairs:
                    if isinstance(name, ast.Name) and value is not None:
                        found.setdefault((next(self.scopes(node)), name.id), []).append(value)
        return found

    def values(self, name):
        """Expressions for the value of a name, in the innermost scope that has some, and keys that it loses there."""
        for scope in self.scopes(name):
            lost = {
                call.args[0].value
                for call in self.calls
                if isinstance(call.func, ast.Attribute) and call.func.attr == "pop" and scope in self.scopes(call)
                if isinstance(call.func.value, ast.Name) and call.func.value.id == name.id
                if isinstance(call.args[0], ast.Constant)
            }
            found = [*self.bound.get((scope, name.id), ()), *self.arguments(scope, name.id)]
            if found:
                return found, lost
        return [], set()

    def arguments(self, function, name):
        """Expressions that are given for a parameter where this program calls the function."""
        if not isinstance(function, ast.FunctionDef):
            return
        parameters = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        for call in self.calls:
            if not isinstance(call.func, ast.Name) or call.func.id != function.name:
                continue
            if function.args.kwarg and function.args.kwarg.arg == name:
                for each in call.keywords:
                    if each.arg is None:
                        yield each.value
                    elif each.arg not in parameters:
                        yield ast.Dict([ast.Constant(each.arg)], [each.value])
            yield from (value for parameter, value in zip(parameters, call.args, strict=False) if parameter == name)
            yield from (each.value for each in call.keywords if each.arg == name and name in parameters)

    def entries(self, value):
        """Expressions for what is in a dictionary or list."""
        match value:
            case ast.Name():
                for each in self.values(value)[0]:
                    yield from self.entries(each)
            case ast.Dict():
                for key, part in zip(value.keys, value.values, strict=True):
                    yield from [part] if key is not None else self.entries(part)
            case ast.List() | ast.Tuple():
                yield from value.elts

    def keys(self, value, seen=()):
        """Words that a dictionary may have as keys, as far as the program says."""
        if value in seen:
            return set()
        seen = (*seen, value)
        lost = set()
        match value:
            case ast.Dict():
                own = {key.value for key in value.keys if isinstance(key, ast.Constant)}
                parts = [part for key, part in zip(value.keys, value.values, strict=True) if key is None]
                return own.union(*(self.keys(part, seen) for part in parts))
            case ast.BinOp():
                parts = [value.left, value.right]
            case ast.IfExp():
                parts = [value.body, value.orelse]
            case ast.Subscript(value=whole):
                parts = list(self.entries(whole))
            case ast.Call(func=ast.Name(id=name)) if name in self.functions:
                inside = ast.walk(self.functions[name])
                parts = [node.value for node in inside if isinstance(node, ast.Return) and node.value is not None]
            case ast.Name():
                parts, lost = self.values(value)
            case _:
                parts = []
        return set().union(*(self.keys(part, seen) for part in parts)) - lost

    def unknown(self):
        """Line, function and keyword of each that the package does not take."""
        for call in self.calls:
            function = self.called(call.func)
            try:
                taken = inspect.signature(function).parameters
            except (TypeError, ValueError):  # no function, or none with a signature
                continue
            (others,) = [each.name for each in taken.values() if each.kind is each.VAR_KEYWORD] or [None]
            given = set().union(*({each.arg} if each.arg else self.keys(each.value) for each in call.keywords))
            if others in {None, "keywords"}:
                for keyword in sorted(given - taken.keys() - (OF_A_FIT if others else set())):
                    yield call.lineno, ast.unparse(call.func), keyword


@pytest.mark.parametrize(
    "text",
    [
        "dpci.fit(X, y, old=1)",
        "dpci.fit(X, y, **{'seed': 1, **{'old': 1}})",
        "def f(many):\n    common = {'seed': 1} | ({'old': 1} if many else {})\n    return dpci.fit(X, y, **common)",
        "common = {}\ncommon['old'] = 1\nfits = [lambda: dpci.simulate.coverage(X, y, **common)]",
        "def common():\n    return {'old': 1}\ndpci.plan(**common())",
        "def f(**more):\n    dpci.lowlevel.minimize_erm(X, y, **more)\nf(old=1)",
        "def f(more):\n    dpci.fit(X, y, **more)\nCASES = {'a': {'old': 1}}\n[f(case) for case in CASES.values()]",
        "ALL = [{'old': 1}]\ndpci.fit(X, y, **ALL[0])",
    ],
)
def test_keywords_that_are_gone_are_found(text):
    (found,) = Program(f"import dpci\n{text}").unknown()
    assert found[2] == "old"


def test_programs_pass_keywords_that_exist():
    found = {str(path.relative_to(ROOT)): list(Program(path.read_text("utf-8")).unknown()) for path in PROGRAMS}
    assert {name: lines for name, lines in found.items() if lines} == {}
