"""Runs the blocks of a guide in order, in one namespace and one folder, and compares what they print with the page.

A block of Python runs as it stands; in a console block each line after ``$ dpci`` goes to the command
line, and after ``$ python benches/papers`` to the published experiments. The text
block that follows is what they print. Under the mark ``<!-- numbers vary -->``, for noise that is real, only the text
around the numbers is compared, and every number may be another. ``python tests/support/guides.py PAGE ...`` writes what
the blocks print into the pages.
"""

import contextlib
import io
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpci.cli.main import main
from papers.command import main as repeat_paper

VARIES = "<!-- numbers vary -->\n"
_BLOCK = re.compile(
    rf"^```(?P<kind>python|console)\n(?P<code>.*?)^```\n(?:\n(?P<varies>{VARIES})?```text\n(?P<shown>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
# Hashes, numbers, what stands in place of one, and the rules, blanks and times whose width follows them.
_NUMBER = re.compile(
    r"\b(?:sha256:)?(?:[0-9a-f]{64}|[0-9a-f]{32})\b|"
    r"(?<=  )(?:-|unknown)(?=\s)|\d{4}-\d\d-\d\dT[\d:.]+Z|<?[-+]?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:e[-+]?\d+)?|-{3,}"
)


@dataclass(frozen=True)
class Block:
    """A block that was run: what the page shows, what was printed."""

    code: str
    shown: str | None
    printed: str
    varies: bool
    end: int

    @property
    def agrees(self) -> bool:
        """Whether the page shows what was printed."""
        if self.shown is None:
            return not self.printed
        return shape(self.shown) == shape(self.printed) if self.varies else self.shown == self.printed


def shape(text: str) -> list[str]:
    """Return the words of a text, with a mark for each number."""
    return _NUMBER.sub(" # ", text).split()


@contextlib.contextmanager
def in_new_folder() -> Iterator[None]:
    """Change to a new folder for the time being."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def run(page: str, name: str) -> list[Block]:
    """Run the blocks of a page; an exception, also a warning, says which block raised it."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = []
    with in_new_folder(), warnings.catch_warnings(action="error"):
        for found in _BLOCK.finditer(page):
            # The line of the page, so that a traceback points there.
            before = page.count("\n", 0, found.start("code"))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                if found["kind"] == "python":
                    exec(compile("\n" * before + found["code"], name, "exec"), namespace)
                else:
                    _commands(found["code"], f"{name}:{before + 1}")
            # No lines that end in blanks, and no name of the folder.
            lines = printed.getvalue().replace(f"{Path.cwd()}/", "").splitlines()
            text = "".join(f"{line.rstrip()}\n" for line in lines)
            blocks.append(Block(found["code"], found["shown"], text, bool(found["varies"]), found.end()))
    return blocks


def _commands(code: str, where: str) -> None:
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        is_paper = words[:3] == ["$", "python", "benches/papers"]
        assert is_paper or words[:2] == ["$", "dpci"], f"{where}: a console block runs dpci, got {line!r}"
        status = repeat_paper(words[3:]) if is_paper else main(words[2:])
        assert status == 0, f"{where}: exit code {status}: {line}"


def write_outputs(page: str, name: str) -> str:
    """Return the page with what its blocks print."""
    printed = iter(run(page, name))

    def block(found: re.Match[str]) -> str:
        made = next(printed)
        # Numbers of real noise stay those that the text around them speaks of.
        output = made.shown if made.shown is not None and made.agrees else made.printed
        code = f"```{found['kind']}\n{found['code']}```\n"
        return f"{code}\n{found['varies'] or ''}```text\n{output}```\n" if output else code

    return _BLOCK.sub(block, page)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(write_outputs(path.read_text(encoding="utf-8"), str(path)), encoding="utf-8")
