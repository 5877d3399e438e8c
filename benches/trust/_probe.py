"""Base of the checks of all systems: one line of output a finding, and attacks that need only a function to call.

Imported in every system's own environment, so it uses the standard library, NumPy and SciPy only.
"""

import json
import math
import os
import signal
import threading
from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np
from scipy.stats import beta

# Neighbours whose values without noise are 0 and 1: a sum `1 + noise` of doubles that falls into (-1/2, 1/2) is the
# exact difference of two numbers of size 1/2 or more, so a multiple of this. `0 + noise` is not bound to that grid.
_GRID = 2.0**-53


def report(prop: str, finding: str, number: object = None) -> None:
    """Print one finding as a line of JSON."""
    print(json.dumps({"property": prop, "finding": finding, "number": number, "how": "run"}), flush=True)


def off_grid(values: Iterable[float], half_width: float = 0.5) -> int:
    """Count the values near zero that no sum of 1 and a double can be."""
    near = np.array([v for v in values if abs(v) < half_width])
    return int(np.count_nonzero(np.mod(near, _GRID)))


def support_attack(at_zero: Callable[[], float], at_one: Callable[[], float], n_draws: int) -> dict[str, int]:
    """Count outputs that exclude the neighbour `1`: sound if it never makes one, and a leak if `0` does."""
    zero = off_grid(at_zero() for _ in range(n_draws))
    return {"draws": n_draws, "from 0": zero, "from 1": off_grid(at_one() for _ in range(n_draws))}


def verdict(counts: dict[str, int]) -> str:
    """Put the counts of a support attack into words."""
    if counts["from 0"] and not counts["from 1"]:
        share = counts["from 0"] / counts["draws"]
        return f"neighbour excluded with certainty in {share:.1%} of {counts['draws']:,} draws"
    return f"not distinguished in {counts['draws']:,} draws ({counts['from 0']} against {counts['from 1']})"


def in_child(task: Callable[[], str], *, kill: bool = False) -> str:
    """Answer of the task in a forked child, which ends (by SIGKILL where asked) once it has written the answer."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = task()
        except Exception as error:  # noqa: BLE001 - whatever the system raises is the answer
            answer = f"{type(error).__name__}: {error}"
        os.write(writer, answer.encode()[:60_000])
        if kill:
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(child, 0)
    return answer


def distinct_after_fork(draw: Callable[[], object], n_children: int = 8) -> str:
    """Draw once, then fork children that draw once each, and compare."""
    draw()
    answers = [in_child(lambda: repr(draw())) for _ in range(n_children)]
    answers.append(repr(draw()))
    if len(set(answers)) == len(answers):
        return f"{n_children} forked children and their parent: {len(answers)} different draws"
    return f"{n_children} forked children and their parent: only {len(set(answers))} different draws"


def outcome(task: Callable[[], object]) -> str:
    """`released`, or the name of the exception."""
    try:
        task()
    except Exception as error:  # noqa: BLE001 - whatever the system raises is the answer
        return type(error).__name__
    return "released"


def in_processes(spend: Callable[[], object], n_processes: int = 8) -> int:
    """Count the children, forked from here, that get their release."""
    return sum(in_child(lambda: outcome(spend)) == "released" for _ in range(n_processes))


def in_threads(spend: Callable[[], object], n_threads: int = 8) -> int:
    """Count the threads, started together, that get their release."""
    answers: list[str] = []
    gate = threading.Barrier(n_threads)

    def work() -> None:
        gate.wait()
        answers.append(outcome(spend))

    threads = [threading.Thread(target=work) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers.count("released")


def after_kill(spend: Callable[[], object]) -> str:
    """Spend the whole budget in a child that is killed once its answer has arrived, then try again here."""
    first = in_child(lambda: outcome(spend), kill=True)
    second = outcome(spend)
    return f"killed process: {first}; the process that lives on: {second}"


def exactly_longer(rows: np.ndarray, bound: float) -> int:
    """Count rows whose norm in rational arithmetic is above the bound."""
    limit = Fraction(bound) ** 2
    return sum(sum(Fraction(float(x)) ** 2 for x in row) > limit for row in rows)


def epsilon_bound(hits: int, hits_of_neighbour: int, n_runs: int, confidence: float = 0.999) -> float:
    """Lower bound on a pure ε from one event, fixed beforehand (Clopper and Pearson's limits on both rates)."""
    share = (1 - confidence) / 2
    low = beta.ppf(share, hits, n_runs - hits + 1) if hits else 0.0
    high = beta.ppf(1 - share, hits_of_neighbour + 1, n_runs - hits_of_neighbour)
    return math.log(low / high) if low > 0 else 0.0
