"""The page with a complete report for approval: made by the commands that it shows, and signed as an officer would.

``python tests/support/specimen.py`` writes the page; `tests/house/test_guides.py` compares it with a new run.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

from dpci.cli.main import main
from support.guides import in_new_folder

PAGE = Path(__file__).parents[2] / "docs" / "specimen.md"
# What another run has otherwise: the hashes of the model and the schema, the name and the time of the ledger.
_VARIES = re.compile(r"\b[0-9a-f]{16,}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d{4}-\d\d-\d\dT[\d:.]+Z")
# The share of the noise, which follows from the released matrices.
_SHARE = re.compile(r"(?<=makes up )\d+%(?: to \d+%)?")
# And the released numbers, in the table that has them.
_RELEASED = re.compile(r"(### The numbers to be approved\n)(.*?)(?=^##)", re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"(?:&#60;)?(?<![\w.])-?\d+\.\d{4,5}(?!\d)")
_COMMANDS = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "<!-- the report begins -->\n"
# In the order of the blanks of the checklist; the last two are the reasons of a return and of a refusal.
_NONE = "does not apply"
_ANSWERS = (
    *("26 November 2026", "26 November 2026", _NONE, _NONE, _NONE, "epsilon=2"),
    *("those at the top of this page, on the dates there", "—", "—"),
)


def written(page: str) -> str:
    """Return the page with the report that its commands make, and with its checklist filled in."""
    above = page.partition(_MARK)[0]
    found = _COMMANDS.search(above)
    assert found is not None
    with in_new_folder(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for line in found[1].replace("\\\n", "").splitlines():
            assert main(shlex.split(line, comments=True)[1:]) == 0, line
        report = Path("approval.md").read_text(encoding="utf-8")
    # One level down: the page has a title of its own.
    shown = re.sub(r"^#", "##", report, flags=re.MULTILINE)
    checklist = report.partition("## Checklist\n\n")[2]
    return f"{above}{_MARK}\n{shown}\n## The same checklist, signed\n\n{_signed(checklist)}"


def _signed(checklist: str) -> str:
    text = checklist.replace("- [ ]", "- [x]").replace("( ) approved", "(x) approved")
    for answer in _ANSWERS:
        text = text.replace("___", f"*{answer}*", 1)
    return text.replace(
        "date, signature:", "date, signature: *A. Example, data protection officer, 1 December 2026, A. E.*"
    )


def alike(text: str) -> str:
    """Return a page without what another run has otherwise."""
    text = _SHARE.sub("#", text)
    return _VARIES.sub("#", _RELEASED.sub(lambda found: found[1] + _NUMBER.sub("#", found[2]), text))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
