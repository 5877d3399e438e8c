"""Installs the wheels and the source distribution of a folder in clean environments, and tests them there."""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from _timing import commit

ROOT = Path(__file__).parents[1]
PERMISSIVE = {"Apache-2.0", "BSD-2-Clause", "MIT", "Unicode-3.0", "Unlicense", "Zlib", "Apache-2.0 WITH LLVM-exception"}
# Tests that need NumPy, SciPy and pytest alone: fits, intervals, saved results, ledgers in threads and processes.
TESTS = (
    "embedding",
    "imports",
    "releases",
    "saved_fits",
    "seal",
    "stubs",
    "tuning",
)
OLDEST = ("numpy==1.26.0", "scipy==1.11.2")
NEWEST = ("numpy", "scipy")
# Those that start no other Python, which an emulated one cannot, and take minutes there.
TESTS_ELSEWHERE = ("releases", "saved_fits", "seal", "stubs")


class Failed(Exception):
    """A check that did not pass."""


def check(condition: object, message: str) -> None:
    """Raise with this message unless the condition holds."""
    if not condition:
        raise Failed(message)


def run(*command: object, cwd: Path | None = None, **environment: str) -> str:
    """Return what a command prints, without this process's settings of Python and Cargo; raise where it fails."""
    own = ("PYTHON", "CARGO_TARGET_DIR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    python: Path

    @classmethod
    def create(cls, interpreter: str, folder: Path) -> "Environment":
        run(interpreter, "-m", "venv", folder)
        return cls(folder / "bin" / "python")

    def install(self, *what: object) -> None:
        """Install by pip, from wheels except for dpci itself."""
        run(self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what)

    def packages(self) -> dict[str, str]:
        """Return names and versions, without the installer."""
        listed = json.loads(run(self.python, "-m", "pip", "list", "--format=json", "--disable-pip-version-check"))
        return {one["name"]: one["version"] for one in listed if one["name"] not in {"pip", "setuptools"}}


def only(folder: Path, pattern: str) -> Path:
    """Return the one file that matches."""
    found = sorted(folder.glob(pattern))
    check(len(found) == 1, f"{folder} must hold one {pattern}, got {[path.name for path in found]}")
    return found[0].resolve()


def check_wheel(wheel: Path) -> Iterator[str]:
    """Check what is in the wheel, what licences it links, and what it asks of the system."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        sbom = next(name for name in names if name.endswith(".cyclonedx.json"))
        components = json.loads(archive.read(sbom))["components"]
        core = archive.read("dpci/_core.abi3.so")
        metadata = archive.read(next(name for name in names if name.endswith("/METADATA"))).decode()
    info = wheel.name.split("-cp")[0] + ".dist-info"
    wanted = {
        *("dpci/py.typed", "dpci/_core.pyi", "dpci/_core.abi3.so", "dpci/datasets/adult_sample.csv.gz"),
        *(f"{info}/licenses/LICENSE", f"{info}/licenses/NOTICE"),
    }
    check(wanted <= set(names), f"the wheel must hold {sorted(wanted - set(names))}")
    check({name.split("/")[0] for name in names} == {"dpci", info}, "the wheel must hold dpci and its metadata alone")
    source = {str(p.relative_to(ROOT / "python")) for p in (ROOT / "python").rglob("*.py")}
    check({name for name in names if name.endswith(".py")} == source, "the wheel must hold the modules of the checkout")
    check([name for name in names if name.endswith(".so")] == ["dpci/_core.abi3.so"], "one compiled module")
    check(b"bounded_noise" not in core, "the compiled module must have no functions for tests")
    hard = re.findall(r"^Requires-Dist: (\w+)[^;\n]*$", metadata, re.MULTILINE)
    check(sorted(hard) == ["numpy", "scipy"], f"numpy and scipy alone must be required, got {hard}")
    licences = [one.get("expression") or one["license"]["id"] for c in components for one in c.get("licenses", [])]
    for licence in licences:
        parts = [part.strip("()") for part in licence.split(" AND ")]
        check(
            all(PERMISSIVE & set(part.split(" OR ")) for part in parts), f"a licence must be permissive, got {licence}"
        )
    yield f"{wheel.name}, {wheel.stat().st_size / 1e6:.1f} MB: {len(source)} modules, the compiled one, `_core.pyi`,"
    yield "`py.typed`, the sample of Adult, LICENSE and NOTICE, and nothing else;"
    yield f"{len(components)} linked crates in its bill of materials, each under a permissive licence"


def check_tag(wheel: Path, tools: Environment) -> Iterator[str]:
    """Let auditwheel say what the compiled module asks of the system."""
    shown = " ".join(run(tools.python, "-m", "auditwheel", "show", wheel).split())
    consistent = re.search(r'platform tag: "(\w+)"', shown)
    check(consistent and consistent[1] in wheel.name, f"the tag of {wheel.name} must be that of auditwheel: {shown}")
    yield f"auditwheel: consistent with `{consistent[1] if consistent else ''}`"


def check_sdist(sdist: Path) -> Iterator[str]:
    """Check what is in the source distribution."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "NOTICE", "README.md", "Cargo.lock", "python/dpci/py.typed", "rust/dpci-core/src/lib.rs"}
    check(wanted <= names, f"the source distribution must hold {sorted(wanted - names)}")
    check(not [name for name in names if name.endswith((".so", ".pyc"))], "nothing compiled")
    yield f"{sdist.name}, {sdist.stat().st_size / 1e6:.1f} MB: {len(names)} files, nothing compiled"


@contextmanager
def outside() -> Iterator[Path]:
    """Copy the tests, and what they read, to a folder outside of the checkout, which has no dpci to import."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("tests", "examples"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        for part in ("pyproject.toml", "Cargo.toml", "Cargo.lock"):
            shutil.copy(ROOT / part, folder)
        yield folder


def test(environment: Environment, pytest: Path, folder: Path) -> str:
    """Run the tests and return pytest's verdict; pytest is lent by a folder, so the environment stays as it is."""
    where = run(environment.python, "-c", "import dpci; print(dpci.__file__)", cwd=folder).strip()
    check(str(environment.python.parents[1]) in where, f"dpci must be the installed one, got {where}")
    return tested([environment.python], TESTS, folder, str(pytest))


def tested(python: Sequence[object], names: Sequence[str], folder: Path, path: str) -> str:
    """Run the tests of these names and return pytest's verdict."""
    files = [str(file.relative_to(folder)) for name in names for file in (folder / "tests").rglob(f"test_{name}.py")]
    command = (*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    return run(*command, cwd=folder, PYTHONPATH=path).strip().splitlines()[-1]


def check_install(what: Path, dependencies: Sequence[str], interpreter: str, work: Path, folder: Path) -> Iterator[str]:
    """Install dpci with NumPy and SciPy alone, check that nothing else came along, and run the tests."""
    environment = Environment.create(interpreter, work / "environment")
    began = time.monotonic()
    environment.install("--only-binary=numpy,scipy", *dependencies, what)
    seconds = time.monotonic() - began
    packages = environment.packages()
    check(set(packages) == {"dpci", "numpy", "scipy"}, f"numpy and scipy alone must be installed, got {packages}")
    run(interpreter, "-m", "venv", work / "lent")
    run(work / "lent/bin/python", "-m", "pip", "install", "--quiet", "--target", work / "pytest", "pytest")
    version = run(environment.python, "-c", "import platform; print(platform.python_version())").strip()
    verdict = test(environment, work / "pytest", folder)
    with_what = ", ".join(f"{name} {packages[name]}" for name in ("numpy", "scipy"))
    kind = kind_of(what) if what.suffix == ".whl" else "source"
    yield f"| {kind} | {version} | {with_what} | {seconds:.0f} | {verdict} |"
    shutil.rmtree(work)


def kind_of(wheel: Path) -> str:
    """Return the kind of system that a wheel is for, such as musllinux_x86_64: its tag without a version."""
    found = re.search(r"(manylinux|musllinux)_\d+_\d+_(\w+)", wheel.stem)
    check(found, f"a wheel must be for a kind of Linux, got {wheel.name}")
    return "_".join(found.groups()) if found else ""


def check_elsewhere(wheel: Path, python: Sequence[str], work: Path, folder: Path) -> Iterator[str]:
    """Install a wheel for another kind of system with NumPy and SciPy alone, and run tests by a Python of that kind."""
    libc, architecture = kind_of(wheel).split("_", 1)
    versions = ("2_28", "2_27", "2_17") if libc == "manylinux" else ("1_2",)
    platforms = [word for version in versions for word in ("--platform", f"{libc}_{version}_{architecture}")]
    version = run(*python, "-c", "import platform; print(platform.python_version())").strip()
    tools = Environment.create(sys.executable, work / "tools")
    site, wanted = work / "site", ("--only-binary=:all:", "--python-version", version, *platforms)
    began = time.monotonic()
    tools.install("--target", site, *wanted, wheel)
    seconds = time.monotonic() - began
    tools.install("--target", work / "pytest", "pytest")
    packages = dict(path.name.removesuffix(".dist-info").split("-") for path in site.glob("*.dist-info"))
    check(set(packages) == {"dpci", "numpy", "scipy"}, f"numpy and scipy alone must be installed, got {packages}")
    verdict = tested(python, TESTS_ELSEWHERE, folder, f"{site}:{work / 'pytest'}")
    with_what = ", ".join(f"{name} {packages[name]}" for name in ("numpy", "scipy"))
    yield f"| {kind_of(wheel)} | {version} | {with_what} | {seconds:.0f} | {verdict} |"
    shutil.rmtree(work)


def check_types(wheel: Path, work: Path, folder: Path) -> Iterator[str]:
    """Type-check the embedding example against the installed package, strictly, and the stub against the module."""
    environment = Environment.create(sys.executable, work / "types")
    environment.install(wheel, "mypy")
    example = folder / "examples" / "embedding" / "uplift.py"
    strict = (environment.python, "-m", "mypy", "--strict", "--config-file=", example)
    yield f"mypy --strict on examples/embedding: {run(*strict, cwd=work).strip()}"
    allowed = folder / "tests" / "stubtest_allowlist.txt"
    stubtest = run(environment.python, "-m", "mypy.stubtest", "dpci._core", "--allowlist", allowed, cwd=work).strip()
    yield f"stubtest of dpci._core: {stubtest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dist", type=Path, help="folder of a source distribution and a wheel for each system")
    parser.add_argument("--python", nargs="*", default=[sys.executable], help="interpreters, the oldest first")
    parser.add_argument(
        "--elsewhere",
        nargs="*",
        default=[],
        help="Pythons of other kinds, as 'manylinux_aarch64=qemu-aarch64 -L ROOT ROOT/usr/bin/python3.11'",
    )
    parser.add_argument("--no-sdist", action="store_true", help="leave out the build from source, which takes minutes")
    options = parser.parse_args()
    wheel = only(options.dist, f"*-manylinux*_{platform.machine()}.whl")
    others = [path.resolve() for path in sorted(options.dist.glob("*.whl")) if path.name != wheel.name]
    pythons = dict(one.split("=", 1) for one in options.elsewhere)
    sdist = only(options.dist, "*.tar.gz")
    print("# Distribution: what is installed, and that it works\n")
    print(f"`python benches/check_dist.py dist --python ...`, commit {commit()}, {datetime.now(UTC):%Y-%m-%d}.\n")
    try:
        with tempfile.TemporaryDirectory() as name, outside() as folder:
            work = Path(name)
            tools = Environment.create(sys.executable, work / "tools")
            tools.install("auditwheel")
            lines = [line for each in (wheel, *others) for line in (*check_wheel(each), *check_tag(each, tools))]
            for line in (*lines, *check_sdist(sdist)):
                print(f"- {line}" if not line.startswith("`py") else f"  {line}", flush=True)
            for line in check_types(wheel, work, folder):
                print(f"- {line}", flush=True)
            print(f"\nInstalled with NumPy and SciPy alone, tested outside of the checkout ({', '.join(TESTS)}):\n")
            print("| from | Python | with | seconds to install | pytest |\n|---|---|---|---|---|")
            cases = [(wheel, OLDEST, options.python[0]), *((wheel, NEWEST, python) for python in options.python)]
            if not options.no_sdist:
                cases.append((sdist, NEWEST, options.python[0]))
            for number, case in enumerate(cases):
                for line in check_install(*case, work / str(number), folder):
                    print(line, flush=True)
            for other in others:
                if kind_of(other) not in pythons:
                    print(f"| {kind_of(other)} | none here | | | **not run** |", flush=True)
                    continue
                for line in check_elsewhere(other, shlex.split(pythons[kind_of(other)]), work / other.stem, folder):
                    print(line, flush=True)
    except Failed as failure:
        print(f"\nFAILED: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
