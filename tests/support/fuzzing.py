"""One fuzz case: a public function with some of its arguments replaced by odd ones, and the judge of what comes out.

A case is legal if it gives a result whose numbers are finite and of the right shape, or an error of the library. It is
a violation if it panics, gives another exception or warning, takes too long, or fails after a release was made.
"""

import dataclasses
import numbers
import signal
import warnings
from contextlib import contextmanager, suppress

import numpy as np

import dpci
from dpci import _core
from support.fuzz_targets import Left, targets
from support.odd_values import HUGE_COUNT, odd_like, odd_scalar

# A legal case of the sizes here takes milliseconds; the machine may be busy.
SECONDS = 20.0
# What is asked for may take forever; the case must then end soon after it is interrupted.
SECONDS_OF_HUGE = 0.2
# Numbers that are infinite or NaN by their documentation.
_UNBOUNDED = {"predictor_bound", "slope_bound", "curvature_bound"}


class Violation(AssertionError):
    """A case that broke the rules above."""


class OutOfTime(BaseException):
    """The alarm of a case; no ordinary except clause catches it."""


def run_case(rng, target=None):
    """Run one random case, of a target or of any, and return what came of it in one word; raises Violation."""
    target = rng.choice(_weighted()) if target is None else target
    arguments = target.typical(rng)
    names = [*target.parameters]
    for name in rng.sample(names, min(len(names), rng.choice((0, 1, 1, 1, 1, 2, 2, 3)))):
        known = name in arguments
        odd = odd_like(rng, arguments[name]) if known else odd_scalar(rng)
        # What a mechanism raises is the caller's own; what it returns is for the library to check.
        returns = name == "draw" and (callable(odd) or rng.random() < 0.7)
        arguments[name] = (lambda *_, output=odd: output) if returns else odd
    return judge(target, arguments)


def judge(target, arguments):
    """Call the target and return "result", "interrupted" or the name of the library's error; raises Violation."""
    huge = any(_is_huge(value) for name, value in arguments.items() if name != "seed")
    with warnings.catch_warnings(record=True, action="always") as heard, _released() as released:
        try:
            outcome = _outcome(target, arguments, released, SECONDS_OF_HUGE if huge else SECONDS)
        except OutOfTime:
            if not huge:
                raise Violation(_story(target, arguments, f"took longer than {SECONDS} s")) from None
            outcome = "interrupted"
        except (KeyboardInterrupt, SystemExit):
            raise
        except Violation as error:
            raise Violation(_story(target, arguments, str(error))) from error
        except BaseException as error:
            raise Violation(_story(target, arguments, f"raised {type(error).__name__}: {error}")) from error
    for warning in heard:
        if not issubclass(warning.category, dpci.DpciWarning):
            said = f"{warning.category.__name__}: {warning.message} at {warning.filename}:{warning.lineno}"
            raise Violation(_story(target, arguments, f"warned {said}"))
    return outcome


def _outcome(target, arguments, released, seconds):
    try:
        with _alarm(seconds):
            result = target.call(**arguments)
    except dpci.DpciError as error:
        _require("internal error" not in str(error), f"panicked: {error}")
        _require(not released, f"failed after a release: {error!r}")
        return type(error).__name__
    with _alarm(SECONDS):
        check_result(target.name, result)
    return "result"


def check_result(name, result):
    """Raise Violation unless all numbers of a result are finite and their shapes go together."""
    _walk(name, result, set(), 0)
    if isinstance(result, dpci.PrivateFit):
        k = len(result.names)
        _require(result.params.shape == (k,), f"{k} names, params of shape {result.params.shape}")
        for part in ("hessian", "gradient_cov"):
            matrix = getattr(result, part)
            if matrix is not None:
                _require(matrix.shape == (k, k), f"{part} of shape {matrix.shape}")
                # A saved result may come from a writer that rounds.
                asymmetry = np.abs(matrix - matrix.T).max()
                _require(asymmetry <= 1e-9 * np.abs(matrix).max(), f"{part} is not symmetric")
    if isinstance(result, dpci.ConfidenceIntervals):
        _require(result.lower.shape == result.upper.shape, "intervals of two lengths")
        _require(not (result.lower > result.upper).any(), "an interval whose ends are swapped")


def _walk(path, value, seen, depth):
    if isinstance(value, float | np.floating | np.ndarray):
        numbers_of = np.asarray(value)
        bad = numbers_of[~np.isfinite(numbers_of)] if numbers_of.dtype.kind == "f" else ()
        _require(len(bad) == 0, f"{path} holds {bad[:3]}")
        return
    for name, entry in _parts(value, seen, depth):
        _walk(f"{path}{name}", entry, seen, depth + name.startswith("."))


def _parts(value, seen, depth):
    """Yield entries of a container, and public fields and properties of an object of the library."""
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", entry) for key, entry in value.items() if key not in _UNBOUNDED)
    elif isinstance(value, list | tuple):
        yield from ((f"[{i}]", entry) for i, entry in enumerate(value))
    elif type(value).__module__.partition(".")[0] == "dpci" and id(value) not in seen and depth < 3:
        seen.add(id(value))
        refused = getattr(value, "interval_refusal", None) or any(getattr(value, "refusals", ()))
        for attribute in (name for name in _public_values(type(value)) if not (refused and name in _REFUSED)):
            # A property that this object refuses says so with an error of the library.
            with suppress(dpci.DpciError):
                yield f".{attribute}", getattr(value, attribute)


_ATTRIBUTES = {}
# NaN where there is no interval.
_REFUSED = {"params", "cov", "std_errors", "pvalues", "estimate", "lower", "upper", "length"}


def _public_values(kind):
    """Names of public fields and properties."""
    if kind not in _ATTRIBUTES:
        names = {name for name in dir(kind) if isinstance(getattr(kind, name), property)}
        if dataclasses.is_dataclass(kind):
            names |= {field.name for field in dataclasses.fields(kind)}
        names -= _UNBOUNDED | Left.ATTRIBUTES.get(kind.__name__, frozenset())
        _ATTRIBUTES[kind] = sorted(name for name in names if not name.startswith("_"))
    return _ATTRIBUTES[kind]


def _require(kept, story):
    if not kept:
        raise Violation(story)


def _is_huge(value):
    """Whether a number could be a count that keeps the machine busy for long."""
    # NumPy's durations are integers by type, and are not compared with numbers.
    is_count = isinstance(value, numbers.Integral) and not isinstance(value, np.timedelta64)
    return is_count and abs(value) >= HUGE_COUNT


def _story(target, arguments, what):
    # An argument may have no honest repr.
    shown = []
    for name, value in arguments.items():
        try:
            shown.append(f"{name}={value!r}"[:400])
        except Exception:  # noqa: BLE001  # whatever it raises
            shown.append(f"{name}=<{type(value).__name__}>")
    return f"{target.name} {what}\n  " + "\n  ".join(shown)


@contextmanager
def _alarm(seconds):
    def ring(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _released():
    """Releases of the core that were completed while the block ran."""
    made, before = [], _core.release

    def noted(spec, *arguments, **keywords):
        outcome = before(spec, *arguments, **keywords)
        made.append(type(spec).__name__)
        return outcome

    _core.release = noted
    try:
        yield made
    finally:
        _core.release = before


_POOL = []


def _weighted():
    if not _POOL:
        for target in targets():
            _POOL.extend([target] * target.weight)
    return _POOL
