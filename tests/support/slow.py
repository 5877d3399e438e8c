"""Writes ``slow.txt``, the tests that are left to ``make test``, from the times of a run of all.

``python -m pytest --junitxml=times.xml``, on an idle machine, then ``python tests/support/slow.py times.xml``. The test
functions that take longest with all their cases are listed, until the others take no more than :data:`SECONDS`.
"""

import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree as ET

SECONDS = 110.0
"""On one core, for ``make check-fast`` in 90 seconds on two, each of which collects all tests first."""


def slowest(seconds: Counter[str], left: float) -> list[str]:
    """Return the names of the fewest entries without which the others sum to at most ``left``."""
    total, names = seconds.total(), []
    for name, time in seconds.most_common():
        if total <= left:
            break
        names.append(name)
        total -= time
    return sorted(names)


def times(report: Path) -> Counter[str]:
    """Return the seconds of test functions in a report of pytest."""
    seconds: Counter[str] = Counter()
    for case in ET.parse(report).iter("testcase"):
        path = case.attrib["classname"].removeprefix("tests.").replace(".", "/")
        seconds[f"{path}.py::{case.attrib['name'].partition('[')[0]}"] += float(case.attrib["time"])
    return seconds


if __name__ == "__main__":
    names = slowest(times(Path(sys.argv[1])), SECONDS)
    (Path(__file__).parents[1] / "slow.txt").write_text("\n".join(names) + "\n", encoding="utf-8")
