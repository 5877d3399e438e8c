"""Times dpci against diffprivlib, scikit-learn, SciPy, statsmodels and glum on the same problems, and writes one page.

``python benches/contest/run.py --write`` needs DPCI_DATA and an idle machine with two cores; minutes. dpci is what this
interpreter has installed; the others run in pinned environments, made in a cache folder outside of the repository.
Finished contests are kept there, so a run that was interrupted, or disturbed by others, goes on where it was.
``--quick`` does all of it on at most 20,000 rows, which is no evidence; ``--only`` picks contests. docs/performance.md
has the rules.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from cells import ERRORS, PLAIN, TARGET, cells, entries
from contestant import HERE, START_LIMIT, Contestant, Entry, Failed, Process
from problem import Terms
from reference import Reference, reference

from _environments import CACHE, environment, git, now, versions
from _timing import OthersWatch, machine, unpin
from data import written
from dpci import _core
from report import page

ROUNDS = 5
# A fit may take this many times what the fastest opponent took, or so many seconds; then it is stopped.
TIMES_FASTEST, LEAST_LIMIT = 5.0, 5.0
# After the trial a library goes on with what was within this factor of its best; what takes longer than so many seconds
# takes part in so many rounds only.
NEAR_BEST, SLOW, SLOW_ROUNDS = 1.4, 3.0, 2
# Releases by which a private fit is judged, or as many as so many seconds allow.
RELEASES, RELEASE_SECONDS = 20, 4.0
# Threads of BLAS spin for a while before they sleep.
REST = 0.1
# In the trial: a time with two threads so many times that of another solver of the library does not win with one.
HOPELESS = 2.5
# Tolerances of one library mean other things than those of the next: only from here down no progress means an end.
STILL = 1e-8
BUSY = 0.05
MODULES = {name: f"{name.lower().replace('scikit-learn', 'sklearn')}" for name in ("dpci", "scikit-learn", "SciPy")}
PACKAGES = ("diffprivlib", "scikit-learn", "scipy", "statsmodels", "glum", "tabmat", "numpy")


def started(
    entry: Entry, interpreters: dict[str, Path | str], folder: Path, terms: Terms
) -> tuple[Contestant | None, str]:
    """The contestant, or why it cannot take part."""
    name = "diffprivlib" if entry.library == "diffprivlib" else "newest"
    interpreter = Path(sys.executable) if entry.library == "dpci" else interpreters[name]
    if isinstance(interpreter, str):
        return None, interpreter
    library = MODULES.get(entry.library, entry.library)
    return Contestant(entry, Process(interpreter, library, entry.solver, folder, terms.to_json())), ""


def trial(contestant: Contestant, exact: Reference, limit: float, rival: float, *, judged: bool) -> None:
    """Find the loosest tolerance that reaches the target, with two threads, then fit with one.

    ``rival`` is the best time of its library so far: what is far from it before it is accurate will not win.
    """
    distance = np.inf
    for tolerance in contestant.entry.tolerances:
        contestant.tolerance = tolerance
        seconds = contestant.fit(2, limit)
        if seconds is None:
            return
        contestant.trial = {2: seconds}
        previous, distance = distance, exact.distance(contestant.found[-1]["params"])
        # A solver that stands still has met its own limit, as the rounding of its values.
        if distance <= TARGET or (tolerance is not None and tolerance <= STILL and distance > 0.9 * previous):
            break
        if judged and seconds > HOPELESS * rival:
            contestant.failure = (
                f"stopped: {seconds / rival:.1f} times the time of its library's best at {distance:.0e}"
            )
            contestant.process.close()
            return
    contestant.found = contestant.found[-1:]
    contestant.missed = judged and distance > TARGET
    if contestant.missed:
        return
    # With two threads again, as the first time may have paid for what is loaded once.
    for threads in (1, 2):
        if contestant.trial[2] > HOPELESS * rival:
            return
        seconds = contestant.fit(threads, limit)
        if seconds is None:
            return
        contestant.trial[threads] = min(seconds, contestant.trial.get(threads, np.inf))


def leader(contestants: list[Contestant], library: str) -> float:
    """Best time of the solvers of a library that did what was asked in their trials, infinite if there is none."""
    of_library = (each for each in contestants if each.entry.library == library)
    return min(
        (each.best[0] for each in of_library if each.trial and not (each.failure or each.missed)), default=np.inf
    )


def choose(contestants: list[Contestant], task: str) -> None:
    """Let go of what is far from the best of its library; private fits of one library are different products."""
    for contestant in contestants:
        if contestant.failure:
            continue
        rival = leader(contestants, contestant.entry.library) if task in {PLAIN, ERRORS} else np.inf
        contestant.kept = not contestant.missed and contestant.best[0] <= NEAR_BEST * rival
        if not contestant.kept:
            contestant.process.close()


def rounds(contestants: list[Contestant], count: int) -> None:
    """All of them in turns; both numbers of threads where both are near the best."""
    for number in range(count):
        for contestant in contestants:
            ours = contestant.entry.library == "dpci"
            for threads, seconds in contestant.trial.items():
                far = seconds > NEAR_BEST * min(contestant.trial.values()) and not ours
                if contestant.failure or far or (number >= SLOW_ROUNDS and seconds > SLOW):
                    continue
                again = contestant.fit(threads, 10 * LEAST_LIMIT)
                if again is not None:
                    contestant.seconds.setdefault(threads, []).append(again)
                time.sleep(0.0 if ours else REST)


def releases(contestant: Contestant) -> None:
    """Draw more private fits, to judge their errors by."""
    began = time.monotonic()
    while not contestant.failure and len(contestant.found) < RELEASES and time.monotonic() - began < RELEASE_SECONDS:
        contestant.fit(contestant.best[1], 10 * LEAST_LIMIT)


def line(contestant: Contestant, exact: Reference) -> dict[str, Any]:
    """Line of the report for a contestant."""
    said: dict[str, Any] = {"library": contestant.entry.library, "solver": contestant.entry.solver}
    said |= {"tolerance": contestant.tolerance, "failure": contestant.failure, "kept": contestant.kept}
    said["missed"] = contestant.missed
    if contestant.failure or not contestant.found:
        return said
    found = contestant.found
    tested = np.array([exact.on_test(each["params"]) for each in found])
    distances = [exact.distance(each["params"]) for each in found]
    seconds, threads = contestant.best
    timed_once = {number: [each] for number, each in contestant.trial.items()}
    said |= {
        "seconds": seconds,
        "threads": threads,
        "by_threads": {str(t): min(v) for t, v in (contestant.seconds or timed_once).items()},
        "runs": max(map(len, contestant.seconds.values()), default=1),
        "releases": len(found),
        "distance": max(distances),
        "median_distance": float(np.median(distances)),
        "test_loss": float(np.median(tested[:, 0])),
        "test_accuracy": float(np.median(tested[:, 1])),
        "peak": contestant.peak,
        "loaded": contestant.loaded,
    }
    if "std_errors" in found[-1] and exact.std_errors is not None:
        ratios = np.array([each["std_errors"] for each in found]) / exact.std_errors
        said |= {"least_ratio": float(ratios.min()), "greatest_ratio": float(ratios.max())}
        said["median_ratio"] = float(np.median(ratios))
    return said


def all_started(
    taking_part: list[Entry], interpreters: dict[str, Path | str], folder: Path, terms: Terms
) -> tuple[list[Contestant], list[dict[str, Any]]]:
    """Processes that are ready, and lines of those whose library has no environment."""
    contestants, absent = [], []
    unpin()
    for entry in taking_part:
        contestant, reason = started(entry, interpreters, folder, terms)
        if contestant is None:
            nothing = {"failure": reason, "kept": False, "missed": False, "tolerance": None}
            absent.append({"library": entry.library, "solver": entry.solver, **nothing})
        else:
            contestants.append(contestant)
    for contestant in contestants:
        try:
            contestant.loaded = contestant.process.answer(START_LIMIT)["loaded"]
        except Failed as error:
            contestant.failure = str(error)
    return contestants, absent


def contest(
    task: str, terms: Terms, folder: Path, exact: Reference, *, interpreters: dict[str, Path | str], count: int
) -> list[dict[str, Any]]:
    """Trial, then rounds, then what is judged by many releases; a line a contestant."""
    sparse = (folder / "train_X.npz").exists()
    contestants, absent = all_started(entries(task, terms, sparse=sparse), interpreters, folder, terms)
    fastest = np.inf
    for contestant in contestants:
        if not contestant.failure:
            limit = max(LEAST_LIMIT, TIMES_FASTEST * fastest) if np.isfinite(fastest) else 10 * LEAST_LIMIT
            rival = leader(contestants, contestant.entry.library)
            trial(contestant, exact, limit, rival, judged=task == PLAIN)
        if not (contestant.failure or contestant.missed) and contestant.entry.library != "dpci":
            fastest = min(fastest, contestant.best[0])
    choose(contestants, task)
    kept = [contestant for contestant in contestants if contestant.kept]
    rounds(kept, count)
    for contestant in kept:
        # Once is not enough: every fit that counts must be as near as asked.
        contestant.missed = task == PLAIN and any(exact.distance(each["params"]) > TARGET for each in contestant.found)
        if terms.task == "private":
            releases(contestant)
        contestant.process.close()
    return [line(contestant, exact) for contestant in contestants] + absent


def digest() -> str:
    """Checksum of what the results depend on: the scripts, the pins, the compiled module."""
    files = [*sorted(HERE.glob("*.py")), *sorted(HERE.glob("*.txt")), Path(_core.__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def environments(cache: Path) -> tuple[dict[str, Path | str], dict[str, str]]:
    """Interpreters of the opponents, or why there is none, and the versions that they have."""
    interpreters: dict[str, Path | str] = {}
    software = {}
    for name, folder in (("diffprivlib", HERE.parent / "trust"), ("newest", HERE)):
        try:
            interpreters[name] = environment(folder / f"requirements_{name}.txt", cache)
            software[name] = ", ".join(versions(interpreters[name], PACKAGES))
        except subprocess.CalledProcessError as error:
            interpreters[name] = software[name] = f"no environment: {error}"
    return interpreters, software


def key_of(task: str, name: str, terms: Terms) -> str:
    return f"{task}, {name}, {terms.loss}, {terms.l2_strength:g}"


def measure(
    done: dict[str, dict[str, Any]], kept: Path, interpreters: dict[str, Path | str], arguments: argparse.Namespace
) -> None:
    """Hold the contests that are not done, and keep each as soon as it is over."""
    known: dict[tuple[str, Terms], Reference] = {}
    # By data, so that contests on the same objective share what is exact.
    for task, name, terms in sorted(cells(), key=lambda cell: cell[1]):
        key = key_of(task, name, terms)
        if key in done or arguments.only not in key:
            continue
        began = time.monotonic()
        folder = written(name, arguments.cache, quick=arguments.quick)
        problem = name, replace(terms, task="", radius=None)
        if problem not in known:
            known = {p: exact for p, exact in known.items() if p[0] == name} | {problem: reference(folder, terms)}
        exact = known[problem]
        watch = OthersWatch()
        count = 2 if arguments.quick else ROUNDS
        lines = contest(task, terms, folder, exact, interpreters=interpreters, count=count)
        record = {
            "key": key,
            "task": task,
            "data": name,
            "loss": terms.loss,
            "l2_strength": terms.l2_strength,
            "n": int(np.load(folder / "train_y.npy", mmap_mode="r").size),
            "k": len(exact.params),
            "certificate": exact.certificate,
            "exact_test": exact.on_test(exact.params),
            "lines": lines,
            "others": watch.share(),
            "commit": git("rev-parse", "--short", "HEAD"),
            "date": now(),
            "machine": machine(),
        }
        print(f"{time.monotonic() - began:6.1f} s, others {record['others']:4.0%}: {key}", file=sys.stderr, flush=True)
        with kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        if record["others"] <= BUSY or arguments.busy_ok:
            done[key] = record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of environments, rows and results")
    parser.add_argument("--quick", action="store_true", help="at most 20,000 rows and two rounds")
    parser.add_argument("--only", default="", help="contests whose task, data, loss and strength contain this")
    parser.add_argument("--fresh", action="store_true", help="forget the finished contests")
    parser.add_argument("--busy-ok", action="store_true", help="keep what was measured while others were busy")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/contest.md instead of printing it")
    arguments = parser.parse_args()

    interpreters, software = environments(arguments.cache)
    kept = arguments.cache / f"contest-results-{digest()}{'-quick' * arguments.quick}.jsonl"
    if arguments.fresh:
        kept.unlink(missing_ok=True)
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    records = [json.loads(line) for line in lines]
    done = {record["key"]: record for record in records if record["others"] <= BUSY or arguments.busy_ok}
    measure(done, kept, interpreters, arguments)
    wanted = [key for key in (key_of(*cell) for cell in cells()) if arguments.only in key]
    text = page([done[key] for key in wanted if key in done], software, BUSY, quick=arguments.quick)
    for key in wanted:
        if key not in done:
            text += f"\nNot measured, because others took more than {BUSY:.0%} of a core: {key}\n"
    if arguments.write:
        (HERE.parents[1] / "docs" / "evidence" / "contest.md").write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
