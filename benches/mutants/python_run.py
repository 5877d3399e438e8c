"""Runs Python tests with mutants of the Python code, and with those mutants of the core that its own tests let live."""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import rust_run

ROOT = rust_run.ROOT
SCRATCH = rust_run.SCRATCH
HOOK = Path(__file__).parent / "hook"
PYTHON = ROOT / ".venv/bin/python"
LONGEST = 1800.0

sys.path.insert(0, str(HOOK))
import python_sites  # noqa: E402  # found in the folder that the tests have on their path


def find(areas: dict[str, list[str]]) -> dict[str, list]:
    found = {}
    for area, files in areas.items():
        paths = [ROOT / "python/dpci" / file for file in files]
        found[area] = [
            site for path in paths for site in python_sites.find(str(path.relative_to(ROOT)), path.read_text())
        ]
    return found


def choose(found: dict[str, list], seed: int, number: int) -> dict[str, list]:
    chosen = {area: sorted(sites, key=lambda s: python_sites.rank(s, seed))[:number] for area, sites in found.items()}
    listed: dict[str, dict[int, list]] = defaultdict(lambda: defaultdict(list))
    for index, site in enumerate(site for sites in chosen.values() for site in sites):
        site.number = index
        listed[site.file.removeprefix("python/")][site.index].append((index, site.alternative))
    rust_run.write(SCRATCH / "chosen.json", json.dumps(listed))
    return chosen


class Server:
    """A process that has imported the package and forks for each mutant."""

    def __init__(self, package: Path, **environment: str):
        path = os.pathsep.join(map(str, [HOOK, package]))
        self.process = subprocess.Popen(
            [PYTHON, HOOK / "server.py"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.imported = set(self.hear()["imported"])

    def hear(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the tests of Python cannot be started")
        return json.loads(line)

    def ask(self, **request) -> dict:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def mutated(package: Path = ROOT / "python", **environment: str) -> Server:
    """A server with the chosen mutants of the Python code."""
    return Server(package, DPCI_PYTHON_MUTANTS=str(SCRATCH / "chosen.json"), **environment)


def trace(server: Server, file: str) -> dict[str, tuple[float, set[int]]]:
    """How long each test of a file takes, and which mutants it reaches."""
    answer = server.ask(tests=[file], trace=True, limit=LONGEST)
    if answer["failed"]:
        raise SystemExit(f"{answer['failed']} fails without a mutant")
    return {test: (seconds, set(numbers)) for test, (seconds, numbers) in answer["seen"].items()}


def killed(server: Server, number: int, tests: dict[str, tuple[float, set[int]]], variable: str) -> str | None:
    """The test that finds a mutant: of those that reach it, the fast ones first."""
    everywhere = number in server.imported
    if everywhere:  # it does its work where a module is imported, so that has to be done again
        server = mutated(DPCI_PYTHON_MUTANT=str(number))
    mine = sorted((seconds, test) for test, (seconds, numbers) in tests.items() if everywhere or number in numbers)
    failed = None
    # Most mutants fall to one of the first few.
    for first, last in ((0, 12), (12, 60), (60, len(mine))):
        batch = mine[first:last]
        if batch and not failed:
            limit = 60 + 10 * sum(seconds for seconds, _ in batch)
            failed = server.ask(tests=[test for _, test in batch], number=number, variable=variable, limit=limit)[
                "failed"
            ]
    if everywhere:
        server.close()
    return failed


def build_extension() -> Path:
    """The package with an extension that has the mutants of the core."""
    lines = rust_run.cargo(
        "build",
        "--release",
        "-p",
        "dpci-py",
        "--features",
        "testing",
        "--lib",
        PYO3_PYTHON=str(PYTHON),
        CARGO_PROFILE_RELEASE_LTO="off",
        CARGO_PROFILE_RELEASE_CODEGEN_UNITS="16",
    )
    if lines[-1] != {"reason": "build-finished", "success": True}:
        raise SystemExit("the extension does not build")
    package = SCRATCH / "python"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "python", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    extension = rust_run.TARGET / "release/lib_core.so"
    if b"DPCI_MUTANTS_REACHED" not in extension.read_bytes():
        raise SystemExit("the extension was built without the switch")
    shutil.copy(extension, package / "dpci/_core.abi3.so")
    return package
