"""Processes that fit with one ledger and are killed at random instants; a script, so that forks start from few threads.

After every kill the file must hold what it held before, then every release that came out of the process, in order, and
at most one more: the spend whose release the kill prevented.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np

import dpci

TOTAL = dpci.PureDP(1000.0)
X = np.tile([[0.6, 0.0], [-0.6, 0.1]], (20, 1))
Y = X[:, 0] > 0
PER_LEDGER = 10

ALONE = dpci.ObjectivePerturbation(moments="none")


def release_for_ever(path, out, seed, *, late):
    """Fit until killed, and say what came out; ``late``: the wrong order, which pays afterwards."""
    rng = np.random.default_rng(seed)
    ledger = dpci.Ledger(TOTAL, path=path)
    while True:
        budget = dpci.PureDP(float(np.round(rng.uniform(0.1, 1.0), 6)))
        keywords = {"budget": budget, "l2_strength": 0.5, "mechanism": ALONE}
        result = dpci.fit(X, Y, **keywords, ledger=None if late else ledger)
        os.write(out, json.dumps([budget.epsilon, result.params.tolist()]).encode() + b"\n")
        if late:
            ledger.spend(budget, neighbors="replace_one")


def watched(path, seed, *, late, until):
    """Kill a process that fits once ``until``, which gets the pipe, returns; return what that did, and the pipe."""
    source, target = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        try:
            release_for_ever(path, target, seed, late=late)
        finally:
            os._exit(1)
    os.close(target)
    with os.fdopen(source, "rb") as pipe:
        found = until(pipe)
        os.kill(child, signal.SIGKILL)
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the process must live until it is killed"
    return found, lines


def killed_once(path, seed, seconds, *, late):
    """Return the epsilons of the releases that came out of a process that lived for so long."""
    _, lines = watched(path, seed, late=late, until=lambda _: time.sleep(seconds))
    return [json.loads(line)[0] for line in lines]


def seconds_of_releases(path, n_releases):
    """Return how long a process takes for so many releases: on a loaded machine much longer than on another."""
    start = time.monotonic()

    def until(pipe):
        for _ in range(n_releases):
            pipe.readline()
        return time.monotonic() - start

    return watched(path, 0, late=False, until=until)[0]


def run(folder, n_kills, *, seed=0, late=False, longest=None):
    """Kill so many processes; return how often each thing was seen, or raise where a spend is lost or counted twice."""
    rng = np.random.default_rng(seed)
    if longest is None:
        longest = max(0.15, seconds_of_releases(folder / "first.db", 5))
    seen, before, path = Counter(), [], None
    for number in range(n_kills):
        if number % PER_LEDGER == 0:
            path, before = folder / f"{number}.db", []
        out = killed_once(path, [seed, number], rng.uniform(0.0, longest), late=late)
        seen["kills"] += 1
        seen["interrupted while the file was being written"] += path.with_name(f"{path.name}-journal").exists()
        if not path.exists():
            assert out == []
            seen["before the ledger existed"] += 1
            continue
        ledger = dpci.Ledger(TOTAL, path=path)
        spends = [entry.budget.epsilon for entry in ledger.history]
        seen["releases that came out"] += len(out)
        seen["spends in the files"] += len(spends) - len(before)
        lost = spends[: len(before)] != before or spends[len(before) :][: len(out)] != out
        doubled = len(spends) > len(before) + len(out) + 1
        if late:
            seen["lost"] += lost
        else:
            assert not lost, (before, out, spends)
            assert not doubled, (before, out, spends)
        seen["spent, and killed before the release came out"] += len(spends) == len(before) + len(out) + 1
        exact = sum((Fraction(repr(epsilon)) for epsilon in spends), Fraction(0))
        assert ledger.spent["epsilon"] == float(exact)
        before = spends
    return dict(seen)


if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    sys.stdout.write(json.dumps(run(Path(options.pop("folder")), **options)))
