"""Checks of single arguments: each returns the argument in one plain type, or raises ``InvalidInput``."""

import functools
import inspect
import math
import numbers
import operator
import unicodedata
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpci.base.habits import COLUMNS, NEEDED, unexpected
from dpci.errors import InvalidInput

_Value = TypeVar("_Value")
_Taken = ParamSpec("_Taken")


def composed(text: str) -> str:
    """Return a text in the normal form C of Unicode: an accented letter is one character, however it was typed."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def as_name(value: _Value) -> _Value:
    """Return a text as :func:`composed` does, and anything else as it is."""
    return composed(value) if isinstance(value, str) else value  # type: ignore[return-value]  # a text again


def place_of(name: object, names: Sequence[str]) -> int | None:
    """Return the place of a name among names, however both were typed; None where it is not one of them."""
    if not isinstance(name, str):
        return None
    wanted = composed(name)
    return next((place for place, known in enumerate(names) if composed(known) == wanted), None)


def check_different(rule: str, values: Iterable[Hashable]) -> None:
    """Refuse texts that are equal however they were typed."""
    seen: set[Hashable] = set()
    for value in map(as_name, values):
        if value in seen:
            raise InvalidInput(f"{rule}, got {value!r} twice")
        seen.add(value)


_SEED_END = 2**64
_LONGEST = 80
"""Longest text of an object in a message."""

_Choice = TypeVar("_Choice", bound=str)


def in_short(value: object) -> str:
    """Return a value as messages show it: no more than its type where its text is long, or may hold rows of data."""
    kind = type(value)
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else f"{value[: _LONGEST - 3]}...")
    # Rows are records: arrays and frames of any size.
    text = "" if hasattr(kind, "__array__") and getattr(value, "ndim", 1) > 0 else repr(value)
    return text if 0 < len(text) <= _LONGEST and "\n" not in text else f"an object of {kind.__name__}"


def broken(name: str, rule: str, value: object) -> InvalidInput:
    """Return the error for an argument that must be ``rule`` and is not."""
    plain = value if isinstance(value, int | float | str) else None
    return InvalidInput(f"{name} must be {rule}, got {name}={in_short(value)}", name=name, value=plain)


def check_real(name: str, value: object) -> float:
    """Return a real number as ``float``; booleans and strings are refused, NaN and infinity are not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise broken(name, "a real number", value)
    try:
        return float(value)
    except TypeError as error:  # a duration of NumPy is registered as a number
        raise broken(name, "a real number", value) from error
    except OverflowError:  # an integer beyond the range of floats
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]  # reals are ordered


def check_positive(name: str, value: object) -> float:
    """Return a finite number above zero."""
    number = check_real(name, value)
    if not (number > 0.0) or math.isinf(number):
        raise broken(name, "finite and > 0", number)
    return number


def check_not_negative(name: str, value: object) -> float:
    """Return a finite number of at least zero."""
    number = check_real(name, value)
    if not (number >= 0.0) or math.isinf(number):
        raise broken(name, "finite and >= 0", number)
    return number


def check_fraction(name: str, value: object) -> float:
    """Return a number strictly between 0 and 1."""
    number = check_real(name, value)
    if not (0.0 < number < 1.0):
        raise broken(name, "> 0 and < 1, such as 0.95 for 95%" if name == "level" else "> 0 and < 1", number)
    return number


def check_count(name: str, value: object, *, least: int = 1) -> int:
    """Return an integer of at least ``least``; floats and booleans are refused."""
    number = _integer(name, value)
    if number < least:
        raise broken(name, f"at least {least}", number)
    if number >= _SEED_END // 2:
        raise broken(name, "below 2**63", number)
    return number


def check_seed(value: object) -> int | None:
    """Return a seed: None, or an integer of 64 bits."""
    if value is None:
        return None
    number = _integer("seed", value)
    if not 0 <= number < _SEED_END:
        raise broken("seed", "None or an integer in [0, 2**64)", number)
    return number


def check_flag(name: str, value: object) -> bool:
    """Return a boolean; numbers are refused because they are usually a misplaced argument."""
    if not isinstance(value, bool | np.bool_):
        raise broken(name, "True or False", value)
    return bool(value)


def check_intercept(value: object) -> float | None:
    """Return the constant that is appended to every row: 1 for True, a number as it is; None for False."""
    if isinstance(value, bool | np.bool_):
        return 1.0 if value else None
    if isinstance(value, str) or value is None:
        raise broken("intercept", "True, False or a number", value)
    return check_positive("intercept", value)


def check_choice(name: str, value: object, choices: tuple[_Choice, ...]) -> _Choice:
    """Return one of ``choices``."""
    for choice in choices:
        if isinstance(value, str) and composed(value) == composed(choice):
            return choice
    raise broken(name, f"one of {', '.join(map(repr, choices))}", value)


def check_reals(name: str, value: object, length: int) -> tuple[float, ...]:
    """Return a sequence of ``length`` real numbers as a tuple."""
    ordered = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
    flat = ordered and getattr(value, "ndim", 1) == 1
    entries: tuple[object, ...] = tuple(value) if flat else ()  # type: ignore[arg-type]  # ordered
    if len(entries) != length or any(isinstance(entry, list | tuple | np.ndarray) for entry in entries):
        raise broken(name, f"a sequence of {length} numbers", value)
    return tuple(check_real(f"{name}[{i}]", entry) for i, entry in enumerate(entries))


def check_finite(name: str, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array, or raise naming its first entry that is NaN or infinite."""
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at = tuple(int(i) for i in bad[0])
        place = f" at index {at if len(at) > 1 else at[0]}" if at else ""
        raise InvalidInput(f"{name} must be finite, got {values[at]}{place}")
    return values


def _integer(name: str, value: object) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]  # the except clause is the check
        except TypeError:
            pass
    raise broken(name, "an integer", value)


def check_symmetric(name: str, matrix: NDArray[np.float64], *, rounding: float = 0.0) -> None:
    """Refuse a matrix whose halves differ by more than a share of its greatest entry; 0: in any bit.

    Noise is drawn once for both halves; projections, and what is subtracted later, may round them apart.
    """
    greatest = float(np.abs(matrix).max())
    scaled = matrix / greatest if rounding and greatest > 0.0 else matrix
    apart = np.abs(scaled - scaled.T) > rounding if rounding else matrix != matrix.T
    if apart.any():
        i, j = np.argwhere(apart)[0].tolist()
        pair = f"{matrix[i, j]} at ({i}, {j}) and {matrix[j, i]} at ({j}, {i})"
        raise InvalidInput(f"{name} must be symmetric, got {pair}")


def hint(option: str, value: str) -> str:
    """Return what to do about a file that is written in another way, in Python and in a shell."""
    shown = {"\t": "tab", ";": "';'", "|": "'|'", " ": "' '"}.get(value, value)
    shown = f"'{shown}'" if "%" in shown else shown
    return f"pass {option}={value!r} to dpci.read, in a shell --{option.replace('_', '-')} {shown}"


def advised(advice: Mapping[str, str]) -> Callable[[Callable[_Taken, _Value]], Callable[_Taken, _Value]]:
    """Return a decorator of functions whose refusal of an unknown keyword says what to type."""

    def decorate(function: Callable[_Taken, _Value]) -> Callable[_Taken, _Value]:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        known, by_place = frozenset(names), names[: code.co_argcount]
        needed = {*by_place[: len(by_place) - len(function.__defaults__ or ())], *names[code.co_argcount :]}
        needed = (needed - (function.__kwdefaults__ or {}).keys()) & NEEDED.keys()
        # One that passes keywords on refuses them itself.
        passes_on = bool(code.co_flags & inspect.CO_VARKEYWORDS)

        @functools.wraps(function)
        def called(*args: _Taken.args, **keywords: _Taken.kwargs) -> _Value:
            for name in keywords:
                if name not in known and not passes_on:
                    raise unexpected(function.__name__, name, advice, keywords)
            for name in sorted(needed.difference(keywords, by_place[: len(args)])):
                raise TypeError(f"{function.__name__}() missing required argument {name!r}: {NEEDED[name]}")
            if len(args) > len(by_place):
                by_name = ", ".join(f"{name}=" for name in names[code.co_argcount :])
                raise TypeError(
                    f"{function.__name__}() got too many arguments without a name: write {by_name or 'fewer'}"
                )
            return function(*args, **keywords)

        return called

    return decorate


def advised_class(kind: type, advice: Mapping[str, str], *, needed: Sequence[str] = (), otherwise: str = "") -> None:
    """Let a class refuse unknown parameters with advice, and the lack of public bounds with the name of another class.

    ``needed``: the bounds; ``otherwise``: the class for those who do not know them.
    """
    made: Any = kind.__init__  # type: ignore[misc]  # of the class as it is
    known = inspect.signature(made).parameters
    by_name = [name for name, parameter in known.items() if parameter.kind is parameter.KEYWORD_ONLY]

    @functools.wraps(made)
    def checked(self: object, *args: object, **given: object) -> None:
        for name in given:
            if name not in known:
                raise unexpected(type(self).__name__, name, advice)
        wanted = " and ".join(f"{name}=" for name in needed)
        if len(args) > len(known) - len(by_name) - 1:
            names = wanted or ", ".join(f"{name}=" for name in by_name)
            raise TypeError(
                f"{kind.__name__} takes its first argument alone by position: write {names} before the others"
            )
        if not given.keys() >= set(needed):
            unknown = f": if nobody knows them, take {otherwise}" if otherwise else ""
            raise TypeError(f"{kind.__name__} needs {wanted}, which must be public{unknown}")
        made(self, *args, **given)

    setattr(kind, "__init__", checked)  # noqa: B010  # a checker of types keeps the signature of the class


def usage(form: str) -> Callable[[type[_Value]], type[_Value]]:
    """Return a decorator of classes whose refusal of arguments shows how one is typed."""

    def decorate(kind: type[_Value]) -> type[_Value]:
        made: Any = kind.__init__
        signature = inspect.signature(made)

        @functools.wraps(made)
        def checked(self: object, *args: object, **given: object) -> None:
            try:
                signature.bind(self, *args, **given)
            except TypeError as error:
                raise TypeError(f"{kind.__name__}: {error}; type {form}") from None
            made(self, *args, **given)

        setattr(kind, "__init__", checked)  # noqa: B010  # as above
        return kind

    return decorate


def column(*needed: str, otherwise: str = "") -> Callable[[type[_Value]], type[_Value]]:
    """Return a decorator of descriptions of columns, see :func:`advised_class`."""

    def decorate(kind: type[_Value]) -> type[_Value]:
        advised_class(kind, COLUMNS, needed=needed, otherwise=otherwise)
        return kind

    return decorate
