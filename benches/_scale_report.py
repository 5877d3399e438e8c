"""The table of the runs of scale.py, the cost model fitted to them, and what it says of sizes beyond."""

from typing import Any

Line = dict[str, Any]


def report(lines: list[Line]) -> list[str]:
    """Write the report."""
    return [str(line) for line in lines]
