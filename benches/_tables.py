"""Reads the tables of reports in Markdown, so that a figure can be drawn from what a report says."""

from collections.abc import Sequence


def read_table(text: str, heading: str) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Return the header and the rows of the first table of a section of Markdown."""
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    block = next(part for part in section.strip().split("\n\n") if part.startswith("| "))
    header, _, *rows = ([cell.strip() for cell in line.strip("| ").split(" | ")] for line in block.splitlines())
    return header, rows
