"""Seeded mutants: changes one place of the code at a time, and sees whether a test notices (``make mutants``)."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from queue import Empty, SimpleQueue

import python_run
import rust_run

import report

ROOT = rust_run.ROOT
KEPT = rust_run.SCRATCH / "outcomes"

# Places of the core by area; a file belongs to the first area that names it. `seal` has what its distances are made of.
RUST = {
    "privacy": ["privacy"],
    "noise": ["noise"],
    "seal": [
        "mechanism/gate.rs",
        "mechanism/seal.rs",
        "spec/seal.rs",
        "spec/fit/distances.rs",
        "loss/rounding.rs",
        "objective.rs",
        "moments.rs",
        "erm/hinge/polish.rs",
        "erm/hinge/kink_split.rs",
    ],
    "mechanism": ["spec", "mechanism"],
}
PYTHON = {
    "ledger": ["ledger/ledger.py", "ledger/store.py", "ledger/composition.py", "ledger/payment.py", "ledger/run.py"],
    "accounting": [
        "accounting/guarantee.py",
        "accounting/costs.py",
        "budgets.py",
        "released/record.py",
        "base/codec.py",
    ],
}
# Tests of the package for mutants of the core that its own tests let live.
TESTS_OF_CORE = {
    "privacy": [
        "test_accounting", "test_mechanisms", "test_gaussian_objective", "core/test_sensitivity", "test_tuning",
    ],
    "noise": ["core/test_noise", "test_entropy"],
    "seal": ["test_seal", "core/test_families", "test_hinge", "test_ball"],
    "mechanism": [
        "test_api", "test_tuning", "test_baselines", "test_baselines_histogram", "test_per_instance", "test_ball",
        "test_domain", "test_strong_convexity", "test_mechanisms", "test_releases", "core/test_noise", "test_refined",
    ],
}  # fmt: skip
TESTS_OF_PYTHON = {
    "ledger": [
        "test_ledger", "test_ledger_composition", "test_ledger_file", "test_ledger_growth", "test_ledger_private",
        "test_payment", "test_fit_many",
    ],
    "accounting": [
        "test_accounting", "test_guarantee", "test_ledger_composition", "test_saved_fits", "test_seal",
        "test_gaussian_budget", "test_far_rows", "test_newton", "test_error_bounds", "test_api", "test_tuning",
        "test_html_report", "test_answer",
    ],
}  # fmt: skip


def path_of(name):
    """A file of tests, in the only folder that has one of this name, or that is named; none of `make prove`."""
    found = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob(f"{name}.py") if path.parent.name != "prove"]
    (path,) = found
    return str(path)


def say(outcome, numbers):
    site = outcome.site
    words = outcome.killed or "SURVIVES"
    print(
        f"{outcome.area} {site.number}  {site.file}:{site.line} {site.function}: {site.change}  [{numbers}]  {words}",
        flush=True,
    )


def rust_outcomes(options):
    """Mutants of the core, with the test that kills each."""
    chosen = rust_run.prepare(RUST, options.areas, options.seed, options.number)
    tests = [(binary, test) for binary in rust_run.test_binaries() for test in rust_run.list_tests(binary)]
    outcomes = [report.Outcome(area, site) for area, sites in chosen.items() for site in sites]
    with ThreadPoolExecutor(options.jobs) as pool:
        begun = time.monotonic()
        reached = list(pool.map(lambda pair: rust_run.reach(*pair), tests))
        if not any(numbers for *_, numbers in reached):
            raise SystemExit("no test reaches a mutant: the tests were built without the switch")
        print(f"{len(tests)} tests of the core in {time.monotonic() - begun:.0f} s", flush=True)

        def judge(outcome):
            outcome.by_core = rust_run.killed_by_core(outcome.site, reached)
            say(outcome, sum(outcome.site.number in numbers for *_, numbers in reached))

        list(pool.map(judge, outcomes))
    left = [outcome for outcome in outcomes if not outcome.by_core and outcome.site.key not in report.reasons()]
    if left and not options.core_only:
        by_python(options, left)
    return outcomes


def by_python(options, outcomes):
    """Mutants of the core with the tests of Python."""
    package = python_run.build_extension()
    files = sorted({name for outcome in outcomes for name in TESTS_OF_CORE[outcome.area]})
    seconds = {}

    def measure(name):
        # The core notes what was reached once a process, so a whole file is one test here.
        log = rust_run.SCRATCH / "reached" / name
        log.unlink(missing_ok=True)
        server = python_run.Server(package, DPCI_MUTANTS_REACHED=str(log))
        took = sum(seconds for seconds, _ in python_run.trace(server, path_of(name)).values())
        server.close()
        seconds[name] = (took, set(map(int, log.read_text().split())) if log.exists() else set())

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(measure, files))

    def judge(server, outcome):
        number = outcome.site.number
        mine = {path_of(name): seconds[name] for name in TESTS_OF_CORE[outcome.area]}
        outcome.by_python = python_run.killed(server, number, mine, "DPCI_MUTANT")
        say(outcome, sum(number in numbers for _, numbers in mine.values()))

    each(lambda: python_run.Server(package), judge, outcomes, options.jobs)


def each(make, judge, outcomes, jobs):
    """Judges every outcome, with a server of its own for each of the jobs."""
    waiting = SimpleQueue()
    for outcome in outcomes:
        waiting.put(outcome)

    def work(_):
        server = make()
        with contextlib.suppress(Empty):
            while True:
                judge(server, waiting.get_nowait())
        server.close()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))


def python_outcomes(options, areas):
    """Mutants of the Python code, with the test that kills each."""
    chosen = python_run.choose(python_run.find(areas), options.seed, options.number)
    outcomes = [report.Outcome(area, site) for area, sites in chosen.items() for site in sites]
    tests = {}

    def measure(server, name):
        tests[name] = python_run.trace(server, path_of(name))

    names = sorted({name for area in areas for name in TESTS_OF_PYTHON[area]})
    each(python_run.mutated, measure, names, options.jobs)

    def judge(server, outcome):
        mine = {test: found for name in TESTS_OF_PYTHON[outcome.area] for test, found in tests[name].items()}
        number = outcome.site.number
        outcome.by_python = python_run.killed(server, number, mine, "DPCI_PYTHON_MUTANT")
        say(outcome, sum(number in numbers for _, numbers in mine.values()))

    each(python_run.mutated, judge, outcomes, options.jobs)
    return outcomes


def keep(run, outcomes):
    """Keeps what became of the mutants of each area, so that areas can be run one after another."""
    for area in dict.fromkeys(outcome.area for outcome in outcomes):
        here = [asdict(outcome) for outcome in outcomes if outcome.area == area]
        for outcome in here:
            del outcome["commit"]
        rust_run.write(KEPT / f"{area}.json", json.dumps({"run": run, "outcomes": here}, indent=1))


def kept(run):
    """Outcomes of the mutants of all areas with this seed, at whatever commit each was last run."""
    saved = [json.loads(path.read_text()) for path in KEPT.glob("*.json")]
    saved = [one for one in saved if all(one["run"][name] == run[name] for name in ("seed", "number"))]
    by_area = {one["outcomes"][0]["area"]: one for one in saved}
    outcomes = []
    for area in [*RUST, *PYTHON]:
        one = by_area.get(area, {"outcomes": []})
        for outcome in one["outcomes"]:
            place = report.Place(outcome["site"])
            outcomes.append(report.Outcome(**{**outcome, "site": place}, commit=one["run"]["commit"]))
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=60, help="mutants an area, at most")
    parser.add_argument("--areas", nargs="+", choices=[*RUST, *PYTHON], default=[*RUST, *PYTHON])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--core-only", action="store_true", help="leave out Python tests of mutants of the core")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/evidence/mutants.md")
    options = parser.parse_args()
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    run = {"commit": git.stdout.strip(), "seed": options.seed, "number": options.number}
    python = {area: files for area, files in PYTHON.items() if area in options.areas}
    if python:
        keep(run, python_outcomes(options, python))
    if not RUST.keys().isdisjoint(options.areas):
        keep(run, rust_outcomes(options))
    faults = report.write(options.out, kept(run), seed=options.seed, number=options.number)
    print("\n".join([*faults, f"written: {options.out}"]))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
