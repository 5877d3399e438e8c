"""Where Python code can be mutated, and the same code with a switch at each chosen place.

Left alone are annotations, decorators, patterns, docstrings and the formats of strings.
"""

import ast
import hashlib
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult}
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


def either(number, new, old):
    return ast.IfExp(switch(number), new, old)


def changes(node):
    """Every change of a node: what it is called, and what makes the node with a switch out of the node as it is."""
    found = []
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for new in COMPARISONS.get(type(node.ops[0]), ()):
            other = ast.Compare(node.left, [new()], node.comparators)
            found.append((f"`{shortened(node)}` → `{shortened(other)}`", lambda k, old, other=other: either(k, other, old)))
    elif isinstance(node, ast.BoolOp):
        other = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        found.append((f"`{shortened(node)}` → `{shortened(other)}`", lambda k, old: either(k, other, old)))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        other = ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        found.append((f"`{shortened(node)}` → `{shortened(other)}`", lambda k, old: either(k, other, old)))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        other = node.operand
        found.append((f"`{shortened(node)}` → `{shortened(other)}`", lambda k, old: either(k, other, old)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        value = node.value
        if isinstance(value, bool):
            news = [not value]
        elif isinstance(value, int):
            news = [value + 1, value - 1] if value else [1]
        else:
            news = [value * 2, value / 2] if value else [1.0]
        for new in news:
            found.append((f"`{value}` → `{new}`", lambda k, old, new=new: either(k, ast.Constant(new), old)))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        other = ast.Call(ast.Name(CALLS[node.func.id], ast.Load()), node.args, node.keywords)
        found.append((f"`{shortened(node)}` → `{shortened(other)}`", lambda k, old: either(k, other, old)))
    elif isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise | ast.Return | ast.Continue | ast.Break):
        words = f"never leaves at `if {shortened(node.test)}`"
        found.append((words, lambda k, old: guarded(k, old)))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        words = f"without `{shortened(node)}`"
        found.append((words, lambda k, old: ast.If(ast.UnaryOp(ast.Not(), switch(k)), [old], [])))
    return found


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

    visit_JoinedStr = visit_Match = closed

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

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = definition

    def visit(self, node):
        if isinstance(node, ast.stmt):
            self.around = node
        index, self.index = self.index, self.index + 1
        around = self.around
        options = changes(node)
        mine = self.chosen.get(index, [])
        # Alternatives hold parts of the node as they are now, before those get switches of their own.
        makers = [(number, options[alternative][1]) for number, alternative in mine]
        for alternative, (words, _) in enumerate(options):
            if isinstance(node, ast.Constant):
                words += f" in `{shortened(around)}`"
            self.sites.append(Site(self.file, self.function, getattr(node, "lineno", 0), words, index, alternative))
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
