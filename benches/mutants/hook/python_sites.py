"""Where Python code can be mutated, and the same code with a switch at each chosen place.

Left alone are annotations, decorators, patterns, docstrings and the formats of strings.
"""

import ast
import hashlib
from dataclasses import dataclass
from functools import partial

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass
class Site:
    """One mutant: the ``alternative``-th change of the ``index``-th node of a file."""

    file: str
    function: str
    line: int
    change: str
    index: int
    alternative: int
    number: int = 0

    @property
    def key(self):
        return f"{self.file} · {self.function} · {self.change}"


def shortened(node, room=60):
    words = " ".join(ast.unparse(node).split())
    return words if len(words) <= room else words[:room] + "…"


def switch(number):
    return ast.Call(ast.Name("__mutant__", ast.Load()), [ast.Constant(number)], [])


def either(number, node, new):
    return ast.IfExp(switch(number), new, node)


def replaced(node, *others):
    """Changes to other expressions."""
    return [(f"`{shortened(node)}` → `{shortened(other)}`", partial(either, new=other)) for other in others]


def of_compare(node):
    if len(node.ops) != 1:
        return []
    news = COMPARISONS.get(type(node.ops[0]), ())
    return replaced(node, *(ast.Compare(node.left, [new()], node.comparators) for new in news))


def of_constant(node):
    value = node.value
    if isinstance(value, bool):
        news = [not value]
    elif isinstance(value, int):
        news = [value + 1, value - 1] if value else [1]
    elif isinstance(value, float):
        news = [value * 2, value / 2] if value else [1.0]
    else:
        news = []
    return [(f"`{value}` → `{new}`", partial(either, new=ast.Constant(new))) for new in news]


def of_call(node):
    if not isinstance(node.func, ast.Name) or node.func.id not in CALLS:
        return []
    return replaced(node, ast.Call(ast.Name(CALLS[node.func.id], ast.Load()), node.args, node.keywords))


def of_if(node):
    if not isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break):
        return []
    return [(f"never leaves at `if {shortened(node.test)}`", guarded)]


OF = {
    ast.Compare: of_compare,
    ast.BoolOp: lambda n: replaced(n, ast.BoolOp(ast.Or() if isinstance(n.op, ast.And) else ast.And(), n.values)),
    ast.BinOp: lambda n: replaced(
        n, *(ast.BinOp(n.left, OPERATORS[kind](), n.right) for kind in [type(n.op)] if kind in OPERATORS)
    ),
    ast.UnaryOp: lambda n: replaced(n, n.operand) if isinstance(n.op, ast.Not | ast.USub) else [],
    ast.Constant: of_constant,
    ast.Call: of_call,
    ast.If: of_if,
    ast.Expr: lambda n: [(f"without `{shortened(n)}`", dropped)] if isinstance(n.value, ast.Call) else [],
}


def changes(node):
    """Every change of a node: what it is called, and what makes the node with a switch out of number and node."""
    return OF.get(type(node), lambda _: [])(node)


def dropped(number, node):
    return ast.If(ast.UnaryOp(ast.Not(), switch(number)), [node], [])


def guarded(number, node):
    test = ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), switch(number)), node.test])
    return ast.If(test, node.body, node.orelse)


class Walker(ast.NodeTransformer):
    """Numbers the nodes of a file in one fixed order; lists its sites, or puts switches into it."""

    def __init__(self, file, chosen=None):
        self.file, self.chosen = file, chosen or {}
        self.index, self.function, self.sites = 0, "", []
        self.around = None

    def closed(self, node):
        return node

    visit_JoinedStr = visit_Match = closed  # noqa: N815  # names that the base class looks up

    def visit_AnnAssign(self, node):
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_arg(self, node):
        return node

    def definition(self, node):
        outer, self.function = self.function, f"{self.function}.{node.name}".lstrip(".")
        if isinstance(node, ast.ClassDef):
            node.body = [self.visit(one) for one in node.body]
        else:
            node.args = self.visit(node.args)
            node.body = [self.visit(one) for one in node.body]
        self.function = outer
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = definition  # noqa: N815

    def visit(self, node):
        if isinstance(node, ast.stmt):
            self.around = node
        index, self.index = self.index, self.index + 1
        around = self.around
        options = changes(node)
        mine = self.chosen.get(index, [])
        # Alternatives hold parts of the node as they are now, before those get switches of their own.
        makers = [(number, options[alternative][1]) for number, alternative in mine]
        place = f" in `{shortened(around)}`" if isinstance(node, ast.Constant) else ""
        line = getattr(node, "lineno", 0)
        for alternative, (words, _) in enumerate(options):
            self.sites.append(Site(self.file, self.function, line, words + place, index, alternative))
        node = super().visit(node)
        for number, make in makers:
            node = make(number, node)
        return node


def find(file, source):
    walker = Walker(file)
    walker.visit(ast.parse(source))
    seen = {}
    for site in walker.sites:
        seen[site.key] = seen.get(site.key, 0) + 1
        if seen[site.key] > 1:
            site.change += f" ({seen[site.key]})"
    return walker.sites


def switched(file, source, chosen):
    """The tree with switches; ``chosen`` has, by node, numbers of mutants and their alternatives."""
    return ast.fix_missing_locations(Walker(file, chosen).visit(ast.parse(source)))


def rank(site, seed):
    return hashlib.sha256(f"{seed}|{site.key}".encode()).digest()
