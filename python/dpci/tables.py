"""Plain-text tables with aligned columns."""

from collections.abc import Sequence


def format_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is aligned left and the others right, with a rule under the header."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), "  ".join("-" * width for width in widths), *(line(row) for row in rows)])


def format_percent(level: float) -> str:
    """Return a level as a percentage, with as many digits as tell it from 100%."""
    return f"{100 * level:.13g}%"


def format_facts(facts: Sequence[tuple[str, str]]) -> str:
    """Return "name  value" lines with the values aligned."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name.ljust(width)}  {value}".rstrip() for name, value in facts)
