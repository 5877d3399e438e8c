"""Builds the core once with every chosen mutant asleep in it, and runs the tests that reach each of them."""

import json
import os
import re
import shutil
import subprocess
import time
from collections import defaultdict
from pathlib import Path
from threading import Timer

import rust_sites

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SCRATCH = ROOT / "target/mutants"
CORE = "rust/dpci-core/src"
# Not that of the checkout: to Cargo the copy is the same package, and it would take one's builds for the other's.
TARGET = SCRATCH / "target"


def write(path: Path, content: str | bytes) -> None:
    """Write a file where it differs, so that Cargo builds no more than it has to."""
    data = content.encode() if isinstance(content, str) else content
    if not path.exists() or path.read_bytes() != data:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def is_source(path: Path) -> bool:
    return path.suffix == ".rs" and not path.stem.endswith(("tests", "testing")) and "tests" not in path.parts[-2:]


def find(areas: dict[str, list[str]]) -> dict[str, list[rust_sites.Site]]:
    """All sites of each area: of whole folders, of files, or of functions of a file (``file.rs::function``)."""
    found: dict[str, list[rust_sites.Site]] = {}
    taken: set[Path] = set()
    for area, places in areas.items():
        found[area] = []
        for place in places:
            name, _, function = place.partition("::")
            path = ROOT / CORE / name
            files = sorted(filter(is_source, path.rglob("*.rs"))) if path.is_dir() else [path]
            for file in files:
                if file in taken:
                    continue
                if not function:
                    taken.add(file)
                sites = rust_sites.Finder(str(file.relative_to(ROOT)), file.read_bytes()).sites
                found[area] += [site for site in sites if site.function.startswith(function)]
    return found


def choose(
    found: dict[str, list[rust_sites.Site]], seed: int, number: int, refused: set[str]
) -> dict[str, list[rust_sites.Site]]:
    chosen = {}
    for area, sites in found.items():
        ranked = sorted(
            (site for site in sites if site.key not in refused), key=lambda site: rust_sites.rank(site, seed)
        )
        chosen[area] = ranked[:number]
    return chosen


def copy_workspace() -> None:
    """The two crates in a workspace of their own."""
    manifest = (ROOT / "Cargo.toml").read_text().replace(', "benches"]', "]", 1)
    # Half the time of the compiler; the tests take little longer.
    manifest += "\n[profile.test.package.dpci-core]\nopt-level = 1\ndebug = false\n"
    write(SCRATCH / "Cargo.toml", manifest)
    if not (SCRATCH / "Cargo.lock").exists():
        shutil.copy(ROOT / "Cargo.lock", SCRATCH / "Cargo.lock")
    kept = set()
    for path in (ROOT / "rust").rglob("*"):
        if path.is_file() and path.suffix in {".rs", ".toml", ".pyi"}:
            target = SCRATCH / path.relative_to(ROOT)
            kept.add(target)
            if not str(path).startswith(str(ROOT / CORE)):
                write(target, path.read_bytes())
    for path in (SCRATCH / "rust").rglob("*.rs"):
        if path not in kept and path.name != "mutant.rs":
            path.unlink()


def write_switched(chosen: dict[str, list[rust_sites.Site]]) -> None:
    by_file = defaultdict(list)
    for site in (site for sites in chosen.values() for site in sites):
        by_file[site.file].append(site)
    for path in (ROOT / CORE).rglob("*.rs"):
        name = str(path.relative_to(ROOT))
        source = path.read_bytes()
        code = rust_sites.switched(source, by_file[name]) if name in by_file else source.decode()
        # In the scratch copy alone: the switch is no part of the documented crate.
        if path == ROOT / CORE / "lib.rs":
            code += "\n#[allow(missing_docs, warnings)]\npub mod mutant;\n"
        write(SCRATCH / name, code)
    write(SCRATCH / CORE / "mutant.rs", (HERE / "switch.rs").read_bytes())


def cargo(*arguments: str, **environment: str) -> list[dict]:
    """Messages of Cargo about a build, as it says it to programs."""
    command = ["cargo", arguments[0], "--offline", "--message-format=json", *arguments[1:]]
    shared = {"CARGO_TARGET_DIR": str(TARGET), **environment}
    ran = subprocess.run(
        command, cwd=SCRATCH, env={**os.environ, **shared}, capture_output=True, text=True, check=False
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if ran.returncode and not any(line["reason"] == "compiler-message" for line in lines):
        raise SystemExit(ran.stderr)
    return lines


def culprits(messages: list[dict], numbered: dict[int, rust_sites.Site]) -> set[str]:
    """Keys of the mutants in which the compiler finds errors."""
    keys, unknown = set(), []
    for line in messages:
        if line["reason"] != "compiler-message" or line["message"]["level"] != "error":
            continue
        found = False
        for span in line["message"]["spans"]:
            code = (SCRATCH / span["file_name"]).read_bytes()
            best = None
            for opening in re.finditer(rb"/\*(\d+)\[\*/", code):
                closing = code.find(b"/*]" + opening[1] + b"*/", opening.end())
                if opening.start() <= span["byte_start"] and span["byte_end"] <= closing + 20:
                    best = int(opening[1])
            if best is not None:
                keys.add(numbered[best].key)
                found = True
        if not found and line["message"]["spans"]:
            unknown.append(line["message"]["rendered"])
    if unknown and not keys:
        raise SystemExit("\n".join(unknown))
    return keys


def prepare(areas: dict[str, list[str]], wanted: list[str], seed: int, number: int) -> dict[str, list[rust_sites.Site]]:
    """Chooses mutants that compile, and writes the copy that has them all."""
    copy_workspace()
    found = {area: sites for area, sites in find(areas).items() if area in wanted}
    print("sites:", {area: len(sites) for area, sites in found.items()}, flush=True)
    refused: set[str] = set()
    while True:
        chosen = choose(found, seed, number, refused)
        numbered = {}
        for index, site in enumerate(site for sites in chosen.values() for site in sites):
            site.number = index
            numbered[index] = site
        write_switched(chosen)
        broken = culprits(cargo("test", "--no-run", "--lib", "-p", "dpci-core"), numbered)
        if not broken:
            return chosen
        print(f"{len(broken)} of the chosen mutants do not compile", flush=True)
        refused |= broken


def test_binaries() -> list[Path]:
    """The unit tests of the core, and its detectors of seeded mistakes."""
    built = []
    for arguments in (("--lib",), ("--features", "seeded-bugs", "--test", "seeded_bugs")):
        lines = cargo("test", "--no-run", "-p", "dpci-core", *arguments)
        names = [
            line["executable"] for line in lines if line["reason"] == "compiler-artifact" and line["profile"]["test"]
        ]
        if len([name for name in names if name]) != 1:
            raise SystemExit(
                "\n".join(line["message"]["rendered"] for line in lines if line["reason"] == "compiler-message")
            )
        target = SCRATCH / "bin" / arguments[-1].strip("-")
        target.parent.mkdir(exist_ok=True)
        target.unlink(missing_ok=True)
        shutil.copy(names[-1], target)
        built.append(target)
    return built


def list_tests(binary: Path) -> list[str]:
    out = subprocess.run([binary, "--list"], capture_output=True, text=True, check=True).stdout
    return [
        line.removesuffix(": test")
        for line in out.splitlines()
        if line.endswith(": test") and "every_mistake" not in line
    ]


def reach(binary: Path, test: str) -> tuple[Path, str, float, set[int]]:
    """How long a test takes, and which mutants it reaches."""
    log = SCRATCH / "reached" / f"{binary.name}.{test.replace('::', '.')}"
    log.parent.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    begun = time.monotonic()
    environment = {**os.environ, "DPCI_MUTANTS_REACHED": str(log)}
    ran = subprocess.run(
        [binary, "--exact", test], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SystemExit(f"{test} fails without a mutant:\n{ran.stdout}{ran.stderr}")
    numbers = set(map(int, log.read_text().split())) if log.exists() else set()
    return binary, test, time.monotonic() - begun, numbers


def failing_test(binary: Path, tests: list[str], number: int, limit: float) -> str | None:
    """The first of the tests that fails with a mutant; a hang is a failure."""
    environment = {**os.environ, "DPCI_MUTANT": str(number)}
    command = [binary, "--exact", "--test-threads=1", *tests]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    timer = Timer(limit, process.kill)
    timer.start()
    running = ""
    try:
        for line in process.stdout:
            name = re.match(r"test (\S+)", line)
            running = name[1] if name else running
            if re.search(r"\bFAILED$", line.rstrip()):
                return running
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    # Killed by the timer, or by the system, or ended by itself with a failure.
    return (running or "start") + " (no end)" if process.returncode else None


def killed_by_core(site: rust_sites.Site, reached: list[tuple[Path, str, float, set[int]]]) -> str | None:
    """The test of the core that finds a mutant: fast ones first."""
    batches: dict[tuple[bool, str], list[tuple[float, str, Path]]] = defaultdict(list)
    for binary, test, seconds, numbers in reached:
        if site.number in numbers:
            batches[seconds > 0.3, binary.name].append((seconds, test, binary))
    for _, batch in sorted(batches.items()):
        limit = 30 + 10 * sum(seconds for seconds, _, _ in batch)
        test = failing_test(batch[0][2], [test for _, test, _ in sorted(batch)], site.number, limit)
        if test:
            return test
    return None
