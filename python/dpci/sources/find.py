"""Files of tables: those that are named, those of a folder, and those that a pattern matches."""

import glob
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from dpci.errors import InvalidInput
from dpci.sources.files import ENDINGS, STDIN, check_named_once, first_pair


def find_tables(sources: Sequence[Path]) -> tuple[Path, ...]:
    """Return the files that are named: each as it is, those of a folder, and those that a pattern matches, by name."""
    files: list[Path] = []
    for source in sources:
        if source != STDIN and source.is_dir():
            # What writers of many files, and office programs, leave beside them begins with one of these.
            inside = sorted(path for path in source.iterdir() if not path.name.startswith((".", "_", "~$")))
            files += _tables(source, inside, "a folder")
        elif glob.has_magic(str(source)) and not source.exists():
            files += _tables(source, sorted(map(Path, glob.glob(str(source), recursive=True))), "a pattern")  # noqa: PTH207  # absolute patterns too
        else:
            files.append(source)
    if STDIN in files and len(files) > 1:
        raise InvalidInput(f"the standard input (-) must be the only table, got {len(files)} tables")
    if STDIN in files and sys.stdin is None:
        raise InvalidInput("the standard input (-) must be open, got a closed one")
    check_named_once(files)
    if pair := first_pair(files, _without_endings):
        raise InvalidInput(
            f"tables of a folder must differ in more than their endings, got {' and '.join(pair)} (rename one)"
        )
    return tuple(files)


def _without_endings(file: Path) -> Path:
    """Return the file as it would be named whatever its format and compression."""
    ending = next((ending for ending in ENDINGS if file.name.lower().endswith(ending)), "")
    return Path(os.path.realpath(file.parent)) / file.name[: len(file.name) - len(ending)]


def _tables(source: Path, found: list[Path], what: str) -> list[Path]:
    tables = [path for path in found if path.name.lower().endswith(ENDINGS) and path.is_file()]
    if not tables:
        raise InvalidInput(f"{what} must have at least one {', '.join(ENDINGS)} file, got none in {str(source)!r}")
    return tables
