"""Draws figures of docs/evidence again from the tables on their page, without a run: figure and table cannot disagree.

python benches/redraw.py [NAME ...]
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from _panels import save
from _tables import read_table
from papers.li import figures as utility
from papers.wu import figures as regression
from papers.wu.experiments import PUBLISHED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
Row = Sequence[str]
# By name of the figure: page, heading of the section, and what draws its first table.
FIGURES: "dict[str, tuple[str, str, Callable[[Row, Sequence[Row]], Figure]]]" = {
    "regression_mechanisms": (
        "regression",
        "`mechanisms`",
        partial(regression.draw_mechanisms_of_table, published=PUBLISHED),
    ),
    "utility_measuring_points": ("utility", "`measuring_points`", utility.draw_measuring_points),
    "utility_sizes": ("utility", "`sizes`", utility.draw_sizes),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(FIGURES)}; default: all")
    for name in parser.parse_args().names or FIGURES:
        page, heading, draw = FIGURES[name]
        table = read_table((EVIDENCE / f"{page}.md").read_text("utf-8"), heading)
        save(draw(*table), EVIDENCE / f"{name}.svg")


if __name__ == "__main__":
    main()
