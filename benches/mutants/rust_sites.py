"""Where Rust code can be mutated, and the same code with a switch at each chosen place.

The syntax tree is tree-sitter's. Left alone are tests, constants' own definitions, ``const fn``, patterns, types,
attributes and the arguments of macros.
"""

import hashlib
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))

SWAPS = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["*"],
    "<<": [">>"],
    ">>": ["<<"],
    "+=": ["-="],
    "-=": ["+="],
    "*=": ["/="],
    "/=": ["*="],
}
METHODS = {"min": "max", "max": "min", "next_up": "next_down", "next_down": "next_up", "ceil": "floor", "floor": "ceil"}
FLOATS, INTEGERS = {"f64"}, {"u32", "u64", "u128", "usize", "i32", "i64", "i128"}

# Nothing below these is an expression that runs.
CLOSED = {
    "attribute_item", "closure_parameters", "const_block", "const_item", "inner_attribute_item", "line_comment",
    "block_comment", "macro_definition", "macro_invocation", "parameters", "static_item", "type_arguments",
    "use_declaration",
}  # fmt: skip


@dataclass
class Site:
    """One mutant: the place, and the code that takes its place."""

    file: str
    function: str
    line: int
    change: str
    start: int
    end: int
    replacement: str
    # Further places at which the same mutant is active: other uses of a constant.
    also: list[tuple[int, int]] = field(default_factory=list)
    wrap: str = "expression"
    number: int = 0

    @property
    def key(self) -> str:
        return f"{self.file} · {self.function} · {self.change}"


def text(node) -> str:
    return node.text.decode()


def shortened(words: str, room: int = 60, *, tail: bool = False) -> str:
    words = " ".join(words.split())
    if len(words) <= room:
        return words
    return "…" + words[-room:] if tail else words[:room] + "…"


def is_seeded(node) -> bool:
    """Whether a mistake that tests switch on is asked for here (src/bugs.rs), which no build for users has."""
    if node.type == "if_expression":
        return text(node).startswith("if active(")
    if node.type == "binary_expression":
        return any(text(node.child_by_field_name(side)).startswith("bugs::factor(") for side in ("left", "right"))
    return node.type == "call_expression" and text(node).startswith(("bugs::", "active("))


class Finder:
    """All sites of one file, in the order of the code."""

    def __init__(self, file: str, source: bytes):
        self.file, self.source = file, source
        self.sites: list[Site] = []
        self.constants: dict[str, tuple[str, list]] = {}
        root = PARSER.parse(source).root_node
        for node in root.children:
            if node.type == "const_item" and text(node.child_by_field_name("type")) in FLOATS | INTEGERS:
                kind = "float" if text(node.child_by_field_name("type")) in FLOATS else "integer"
                self.constants[text(node.child_by_field_name("name"))] = (kind, [])
        self.items(root, "")
        for name, (kind, uses) in self.constants.items():
            self.constant(name, kind, uses)
        seen: dict[str, int] = {}
        for site in self.sites:
            seen[site.key] = seen.get(site.key, 0) + 1
            if seen[site.key] > 1:
                site.change += f" ({seen[site.key]})"

    def items(self, node, prefix: str) -> None:
        """Functions of a file, a module or an implementation."""
        attributes = ""
        for child in node.children:
            if child.type == "attribute_item":
                attributes += text(child)
                continue
            if child.type in {"line_comment", "block_comment"}:
                continue
            skipped = "cfg(test)" in attributes or "#[test]" in attributes or "seeded-bugs" in attributes
            attributes = ""
            if skipped:
                continue
            if child.type == "function_item":
                self.function_item(child, prefix)
            elif child.type in {"impl_item", "trait_item"}:
                name = child.child_by_field_name("type") or child.child_by_field_name("name")
                self.items(child.child_by_field_name("body"), text(name).split("<")[0] + "::")
            elif child.type == "mod_item" and child.child_by_field_name("body"):
                self.items(child.child_by_field_name("body"), prefix + text(child.child_by_field_name("name")) + "::")

    def function_item(self, node, prefix: str) -> None:
        modifiers = [text(child) for child in node.children if child.type == "function_modifiers"]
        if not any("const" in words.split() for words in modifiers):
            self.function = prefix + text(node.child_by_field_name("name"))
            body = node.child_by_field_name("body")
            if body is not None:
                self.walk(body)

    def walk(self, node) -> None:
        kind = node.type
        if kind in CLOSED or kind.endswith("_type") or is_seeded(node):
            return
        if kind == "function_item":
            outer = self.function
            self.function_item(node, outer + "::")
            self.function = outer
            return
        if kind.endswith("_pattern"):
            condition = node.child_by_field_name("condition") if kind == "match_pattern" else None
            if condition is not None:
                self.walk(condition)
            return
        getattr(self, f"at_{kind}", lambda _: None)(node)
        for index, child in enumerate(node.children):
            name = node.field_name_for_child(index)
            if child.is_named and not (
                name in {"pattern", "type", "field", "macro", "length"}
                or (kind == "closure_expression" and name == "parameters")
            ):
                self.walk(child)

    def add(self, node, change: str, replacement: str, wrap: str = "expression") -> None:
        self.sites.append(
            Site(
                self.file,
                self.function,
                node.start_point[0] + 1,
                change,
                node.start_byte,
                node.end_byte,
                replacement,
                wrap=wrap,
            )
        )

    def with_piece(self, node, piece, new: str) -> str:
        """The code of a node in which one piece is another."""
        before = self.source[node.start_byte : piece.start_byte]
        return before.decode() + new + self.source[piece.end_byte : node.end_byte].decode()

    def at_binary_expression(self, node) -> None:
        left, operator, right = (node.child_by_field_name(name) for name in ("left", "operator", "right"))
        if any(child.type in {"let_condition", "let_chain"} for child in (left, right)):
            return
        for new in SWAPS.get(text(operator), []):
            words = f"{shortened(text(left), 30, tail=True)} {text(operator)} {shortened(text(right), 30)}"
            self.add(node, f"`{words}`: `{text(operator)}` → `{new}`", self.with_piece(node, operator, new))

    at_compound_assignment_expr = at_binary_expression

    def at_unary_expression(self, node) -> None:
        operator, operand = node.children[0], node.children[-1]
        if text(operator) in {"!", "-"}:
            self.add(node, f"`{shortened(text(node))}`: without `{text(operator)}`", text(operand))

    def literal(self, node, new: str) -> None:
        parent = node.parent
        while len(text(parent)) < 12:
            parent = parent.parent
        around = shortened(text(parent)) if len(text(parent)) <= 90 else shortened(self.line_of(node))
        self.add(node, f"`{text(node)}` → `{new}` in `{around}`", new)

    def line_of(self, node) -> str:
        return self.source.splitlines()[node.start_point[0]].decode()

    def at_float_literal(self, node) -> None:
        digits, mark, suffix = text(node).partition("_f")
        value = float(digits.replace("_", ""))
        for factor in (2.0, 0.5) if value else (None,):
            new = repr(1.0 if factor is None else value * factor)
            new = new if "." in new or "e" in new else new + ".0"
            self.literal(node, new + mark + suffix)

    def at_integer_literal(self, node) -> None:
        digits = text(node)
        suffix = next((kind for kind in sorted(INTEGERS) if digits.endswith(kind)), "")
        value = int(digits.removesuffix(suffix).replace("_", ""), 0)
        for new in (value + 1, value - 1) if value else (1,):
            self.literal(node, f"{new}{'_' if suffix else ''}{suffix}")

    def at_boolean_literal(self, node) -> None:
        self.literal(node, "false" if text(node) == "true" else "true")

    def at_identifier(self, node) -> None:
        if text(node) in self.constants and node.parent.type != "scoped_identifier":
            self.constants[text(node)][1].append((self.function, node))

    def constant(self, name: str, kind: str, uses: list) -> None:
        """Mutants of a constant are active wherever its file uses it."""
        for new in (f"{name} * 2.0", f"{name} * 0.5") if kind == "float" else (f"{name} + 1", f"{name} - 1"):
            if uses:
                self.function = uses[0][0]
                self.add(uses[0][1], f"`{name}` → `{new}`", f"({new})")
                self.sites[-1].also = [(node.start_byte, node.end_byte) for _, node in uses[1:]]

    def at_call_expression(self, node) -> None:
        function = node.child_by_field_name("function")
        if function.type == "field_expression":
            method = function.child_by_field_name("field")
            new = METHODS.get(text(method))
            if new:
                words = shortened(text(node), 60, tail=True)
                self.add(node, f"`{words}`: `{text(method)}` → `{new}`", self.with_piece(node, method, new))

    def at_expression_statement(self, node) -> None:
        inner = node.children[0]
        if inner.type == "try_expression":
            self.add(node, f"without `{shortened(text(node))}`", "", wrap="statement")

    def at_if_expression(self, node) -> None:
        """A guard that no longer returns."""
        last = [child for child in node.child_by_field_name("consequence").children if child.is_named]
        condition = node.child_by_field_name("condition")
        if last and text(last[-1]).startswith("return") and node.child_by_field_name("alternative") is None:
            self.add(condition, f"never returns early at `if {shortened(text(condition))}`", "", wrap="guard")


def rank(site: Site, seed: int) -> bytes:
    """A random order that the seed fixes, in which a site keeps its place when other code changes."""
    return hashlib.sha256(f"{seed}|{site.key}".encode()).digest()


def switched(source: bytes, sites: list[Site]) -> str:
    """The code with all mutants in it, each asleep until its number is called.

    Every switch stands between comments with its number, so that an error of the compiler leads to its mutant.
    """
    spans: dict[tuple[int, int], list[Site]] = {}
    for site in sites:
        for span in [(site.start, site.end), *site.also]:
            spans.setdefault(span, []).append(site)
    order = sorted(spans, key=lambda span: (span[0], -span[1]))

    def render(start: int, end: int, inner: list[tuple[int, int]]) -> str:
        out, at = [], start
        while inner:
            span, *rest = inner
            within = [other for other in rest if other[1] <= span[1]]
            out += [source[at : span[0]].decode(), wrapped(span, within)]
            at, inner = span[1], rest[len(within) :]
        return "".join(out) + source[at:end].decode()

    def wrapped(span: tuple[int, int], within: list[tuple[int, int]]) -> str:
        code = render(*span, within)
        for site in spans[span]:
            call = f"crate::mutant::is({site.number})"
            if site.wrap == "statement":
                code = f"if !{call} {{ {code} }}"
            elif site.wrap == "guard":
                chained = code if code.startswith("let ") or " let " in code else f"({code})"
                code = f"!{call} && {chained}"
            else:
                code = f"(if {call} {{ {site.replacement} }} else {{ {code} }})"
            code = f"/*{site.number}[*/{code}/*]{site.number}*/"
        return code

    return render(0, len(source), order)
