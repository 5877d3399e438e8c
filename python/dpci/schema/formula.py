"""Formulas, such as ``income ~ age + C(education) + sex:age``, compiled to terms of a schema.

A subset of the formulas of R: ``+``, ``-``, ``:``, ``*``, parentheses, ``C(x, ref="a")``, ``I(x**2)``, ``poly(x, 3)``,
``bs(x, df=6)`` or ``bs(x, knots=[30, 45], degree=3)``, names with other signs than letters, digits, ``_`` and ``.`` in
backticks, and ``- 1``. No library of formulas is used: existing ones read levels, knots and centres off the data, drop
rows with missing values, and evaluate Python that a formula holds.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from dpci.base.habits import FORMULAS, instead
from dpci.base.validation import composed
from dpci.errors import InvalidInput
from dpci.schema.columns import (
    CategoricalColumn,
    CategoricalTarget,
    ClassTarget,
    Column,
    NumericColumn,
    NumericTarget,
    Target,
)
from dpci.schema.terms import Factor, Levels, Power, Spline, Term, equal_knots, resolved

_Sum: TypeAlias = list[tuple[Factor, ...]]
"""Terms in their order; the empty one is the intercept."""

_MOST_TERMS = 1000
_MOST_CHARACTERS = 20_000
_DEEPEST = 50
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+)
  | (?P<name>[^\W\d][\w.]*)
  | `(?P<quoted>[^`]+)`
  | (?P<text>"[^"]*"|'[^']*')
  | (?P<sign>\*\*|[-+*:~()\[\],=^])
    )""",
    re.VERBOSE,
)
_PLAIN = re.compile(r"[^\W\d][\w.]*")
_SIGN = "a name with such a sign must be in backticks"


class Model(NamedTuple):
    """Model that a formula describes."""

    target: str | None
    terms: tuple[Term, ...]
    intercept: bool


def parse(formula: object, columns: Mapping[str, Column]) -> Model:
    """Return the target, the terms and whether there is an intercept."""
    if not isinstance(formula, str) or not formula.strip() or len(formula) > _MOST_CHARACTERS:
        raise InvalidInput(f"formula must be text such as 'income ~ age + sex:age', got {_short(formula)}")
    reader = _Reader(composed(formula), columns)
    target = reader.target()
    found = reader.sum(1)
    reader.expect_end()
    terms = tuple(resolved(Term(factors), columns) for factors in found if factors)
    if not terms:
        raise InvalidInput(f"formula must have at least one term besides the intercept, got {_short(formula)}")
    return Model(target, terms, () in found)


def target_of(name: str, target: Target, columns: Mapping[str, Column]) -> Target:
    """Return the target that a formula names: that of the schema, or one of its columns."""
    if name == target.column:
        return target
    column = columns.get(name)
    if column is None:
        raise InvalidInput(
            f"the target of a formula must be that of the schema, {target.column!r}, or one of its columns, "
            f"{sorted(columns)}, got {name!r} (a ClassTarget, NumericTarget or CategoricalTarget of that name "
            "describes it: dataclasses.replace(schema, target=...))"
        )
    if isinstance(column, NumericColumn):
        if column.transform != "none" or column.missing != "error" or column.outside != "clip":
            raise InvalidInput(f"a target must be a number without transform, missing or outside, got {name!r}")
        return NumericTarget(
            column=name,
            lower=column.lower,
            upper=column.upper,
            scale=column.scale,
            source=column.source,
            unit=column.unit,
        )
    if len(column.categories) < 2 or column.missing is not None:
        raise InvalidInput(f"a target must have at least two categories and none for missing values, got {name!r}")
    first = column.reference or column.categories[0]
    others = [category for category in column.categories if category != first]
    if len(others) == 1:
        return ClassTarget(column=name, negative=(first,), positive=(others[0],), source=column.source)
    classes = tuple((category,) for category in (first, *others))
    return CategoricalTarget(column=name, classes=classes, source=column.source)


def formula_text(target: str, terms: Iterable[Term], *, intercept: bool) -> str:
    """Return a formula that :func:`parse` reads as these terms: with every knot, degree and reference."""
    parts = [":".join(map(_factor_text, term.factors)) for term in terms]
    return f"{_name_text(target)} ~ {' + '.join(parts)}{'' if intercept else ' - 1'}"


def _factor_text(factor: Factor) -> str:
    name = _name_text(factor.column)
    match factor:
        case Levels():
            reference = f"{factor.reference}"
            quote = "'" if '"' in reference else '"'
            return f"C({name}, ref={quote}{reference}{quote})"
        case Spline():
            knots = ", ".join(repr(knot).removesuffix(".0") for knot in factor.knots)
            return f"bs({name}, knots=[{knots}], degree={factor.degree})"
        case Power() if factor.exponent > 1:
            return f"I({name}**{factor.exponent})"
    return name


def _name_text(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name}`"


class _Reader:
    """A formula, read from left to right."""

    def __init__(self, text: str, columns: Mapping[str, Column]) -> None:
        self._text = text
        self._columns = columns
        self._tokens = list(_tokens(text))
        self._place = 0

    def target(self) -> str | None:
        """Read ``name ~``, if it is there."""
        kinds = [kind for kind, _ in self._tokens[:2]]
        values = [value for _, value in self._tokens[:2]]
        if values[:1] == ["~"] and kinds[:1] == ["sign"]:
            self._place = 1
            return None
        if kinds[:1] == ["name"] and values[1:] == ["~"]:
            self._place = 2
            return str(values[0])
        return None

    def sum(self, depth: int) -> _Sum:
        """Read terms that are added and taken away; outside parentheses the intercept is there from the start."""
        if depth > _DEEPEST:
            raise self._error(f"parentheses must be at most {_DEEPEST} deep")
        found: _Sum = [()] if depth == 1 else []
        sign = self._take("+", "-") or "+"
        while True:
            more = self._product(depth)
            if more == [None]:  # 0: no intercept
                more, sign = [()], "-" if sign == "+" else "+"
            added = [term for term in more if term is not None]
            if sign == "+":
                found += [term for term in added if not _among(term, found)]
            else:
                found = [term for term in found if not _among(term, added)]
            if len(found) > _MOST_TERMS:
                raise self._error(f"a formula must have at most {_MOST_TERMS} terms")
            sign = self._take("+", "-") or ""
            if not sign:
                return found

    def _product(self, depth: int) -> "list[tuple[Factor, ...] | None]":
        found = self._interaction(depth)
        while self._take("*"):
            other = self._interaction(depth)
            found = [*found, *other, *self._crossed(found, other)]
        return found

    def _interaction(self, depth: int) -> "list[tuple[Factor, ...] | None]":
        found = self._atom(depth)
        while self._take(":"):
            found = self._crossed(found, self._atom(depth))
        return found

    def _crossed(
        self, one: "list[tuple[Factor, ...] | None]", other: "list[tuple[Factor, ...] | None]"
    ) -> "list[tuple[Factor, ...] | None]":
        if len(one) * len(other) > _MOST_TERMS:
            raise self._error(f"a formula must have at most {_MOST_TERMS} terms")
        if any(not term for term in (*one, *other)):
            raise self._error("an intercept must not be multiplied")
        return [(*a, *b) for a in one if a for b in other if b]

    def _atom(self, depth: int) -> "list[tuple[Factor, ...] | None]":
        kind, value = self._next()
        if kind == "number":
            if value not in {"0", "1"}:
                raise self._error(f"a number alone must be 0 or 1, for the intercept, not {value}")
            return [()] if value == "1" else [None]
        if value == "(" and kind == "sign":
            inside = self.sum(depth + 1)
            self._expect(")")
            return [*inside]
        if kind != "name":
            raise self._error(f"a term must begin with a name, not {value!r}")
        if self._peek() != ("sign", "("):
            return [(self._column_factor(value),)]
        if value not in _CALLS:
            raise self._error(f"a call must be one of {', '.join(_CALLS)}, not {value!r}{instead(value, FORMULAS)}")
        self._expect("(")
        made = getattr(self, _CALLS[value])(self._name())
        self._expect(")")
        return [(factor,) for factor in made]

    def _categories(self, column: str) -> list[Factor]:
        reference = None
        if self._take(","):
            self._expect_keyword("ref")
            kind, value = self._next()
            if kind not in {"text", "number"}:
                raise self._error("ref must be a category in quotes")
            reference = str(value)
        if not isinstance(self._known(column), CategoricalColumn):
            kind = "a CategoricalColumn with its public values as categories"
            raise self._error(
                f"C() must have a categorical column of the schema, not {column!r}: describe it as {kind}"
            )
        return [Levels(column=column, reference=reference)]

    def _power(self, column: str) -> list[Factor]:
        if not self._take("**", "^"):
            products = f": write {column}:b or {column}*b for products" if self._take("*", ":") else ""
            raise self._error(f"I() must be a power, such as I(age**2){products}")
        return [Power(column=self._numeric(column).name, exponent=self._count("an exponent"))]

    def _powers(self, column: str) -> list[Factor]:
        self._expect(",")
        self._take_keyword("degree")
        highest = Power(column=self._numeric(column).name, exponent=self._count("a degree")).exponent
        return [Power(column=column, exponent=exponent) for exponent in range(1, highest + 1)]

    def _spline(self, column: str) -> list[Factor]:
        number = self._numeric(column)
        given: dict[str, Any] = {}
        while self._take(","):
            key = self._take_keyword("df", "knots", "degree")
            if key is None or key in given:
                raise self._error("bs() must have df= or knots=, and may have degree=, each once")
            given[key] = self._numbers() if key == "knots" else self._count(key)
        if ("df" in given) == ("knots" in given):
            raise self._error("bs() must have one of df= and knots=, such as bs(age, df=5)")
        degree = given.get("degree", 3)
        if "knots" in given:
            return [Spline(column=column, knots=given["knots"], degree=degree)]
        if not degree <= given["df"] <= _MOST_TERMS:
            raise self._error(f"df must be at least the degree, {degree}, and at most {_MOST_TERMS}, not {given['df']}")
        # As in R, df counts the columns beside an intercept: one less than the functions.
        return [Spline(column=column, knots=equal_knots(number, given["df"] + 1, degree), degree=degree)]

    def _numbers(self) -> tuple[float, ...]:
        self._expect("[")
        found: list[float] = []
        while not self._take("]"):
            sign = -1.0 if self._take("-") else 1.0
            kind, value = self._next()
            if kind != "number":
                raise self._error(f"knots must be numbers, not {value!r}")
            found.append(sign * float(value))
            if not self._take(",") and self._peek() != ("sign", "]"):
                raise self._error("knots must be separated by commas")
        return tuple(found)

    def _count(self, what: str) -> int:
        kind, value = self._next()
        if kind != "number" or not value.isdigit() or not 1 <= len(value) <= 4:
            raise self._error(f"{what} must be a whole number, not {value!r}")
        return int(value)

    def _name(self) -> str:
        kind, value = self._next()
        if kind != "name":
            raise self._error(f"a call must begin with the name of a column, not {value!r}")
        return value

    def _column_factor(self, name: str) -> Factor:
        return Power(column=name) if isinstance(self._known(name), NumericColumn) else Levels(column=name)

    def _numeric(self, name: str) -> NumericColumn:
        column = self._known(name)
        if not isinstance(column, NumericColumn):
            raise self._error(f"powers and splines must be of numeric columns of the schema, not of {name!r}")
        return column

    def _known(self, name: str) -> Column:
        if name not in self._columns:
            raise self._error(
                f"names must be those of columns of the schema ({', '.join(self._columns)}), not {name!r}"
                f"{self._backticks()}"
            )
        return self._columns[name]

    def _backticks(self) -> str:
        """Return what to do where the name of a column was perhaps read as a sum of several."""
        meant = [name for name in self._columns if not _PLAIN.fullmatch(name) and name in self._text]
        if meant:
            return f" (write `{meant[0]}` in backticks)"
        return " (a name that contains - must be in backticks)" if self._peek() == ("sign", "-") else ""

    def _peek(self) -> tuple[str, str] | None:
        return self._tokens[self._place] if self._place < len(self._tokens) else None

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        if token is None:
            raise self._error("a term must follow, not the end")
        self._place += 1
        return token

    def _take(self, *signs: str) -> str | None:
        token = self._peek()
        if token is None or token[0] != "sign" or token[1] not in signs:
            return None
        self._place += 1
        return token[1]

    def _take_keyword(self, *names: str) -> str | None:
        token = self._peek()
        if token is None or token[0] != "name" or token[1] not in names:
            return None
        self._place += 1
        self._expect("=")
        return token[1]

    def _expect_keyword(self, name: str) -> None:
        if self._take_keyword(name) is None:
            token = self._peek()
            advice = "" if token is None else instead(token[1], FORMULAS)
            raise self._error(f"{name}= must follow the comma{advice}")

    def _expect(self, sign: str) -> None:
        if self._take(sign) is None:
            token = self._peek()
            raise self._error(f"{sign!r} must follow, not {'the end' if token is None else repr(token[1])}")

    def expect_end(self) -> None:
        """Refuse what is left over."""
        token = self._peek()
        if token is not None:
            raise self._error(f"terms must be joined by +, -, : or *, not by {token[1]!r}{instead(token[1], FORMULAS)}")

    def _error(self, rule: str) -> InvalidInput:
        return InvalidInput(f"formula: {rule}, got {_short(self._text)}")


_CALLS = {"C": "_categories", "I": "_power", "poly": "_powers", "bs": "_spline"}


def _among(term: tuple[Factor, ...], others: "list[tuple[Factor, ...]]") -> bool:
    return frozenset(term) in map(frozenset, others)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    end = len(text.rstrip())
    place = 0
    while place < end:
        found = _TOKEN.match(text, place)
        if found is None or found.lastgroup is None:
            rest = text[place:].strip()
            advice = instead(rest[:1], FORMULAS)
            rule = f"terms must be joined by +, -, : or *, not by {rest[:1]!r}{advice}" if advice else _SIGN
            raise InvalidInput(f"formula: {rule}, got {_short(rest)}")
        kind, value = found.lastgroup, found[found.lastgroup]
        if kind == "quoted":
            kind = "name"
        yield kind, value[1:-1] if kind == "text" else value
        place = found.end()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
