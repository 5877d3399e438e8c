"""Makes the pinned environments in which other libraries run, in a cache folder outside of the repository."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dpci-benches"


def environment(requirements: Path, cache: Path) -> Path:
    """Interpreter of a virtual environment that holds exactly the pinned requirements, made if there is none."""
    name = requirements.stem.removeprefix("requirements_")
    folder = cache / f"{name}-{hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]}"
    interpreter = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", requirements]
        subprocess.run(pip, check=True, stdout=sys.stderr)
        ready.touch()
    return interpreter


def versions(interpreter: Path, packages: Collection[str]) -> list[str]:
    """The packages of these names as the environment has them."""
    frozen = subprocess.run([interpreter, "-m", "pip", "freeze"], capture_output=True, text=True, check=True).stdout
    pinned = [line for line in frozen.splitlines() if line.split("==")[0] in packages]
    return [line.replace("==", " ") for line in pinned]


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout.strip()
