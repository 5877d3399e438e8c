"""Assumptions of a guarantee, as a section of a page."""

from collections.abc import Sequence

from dpci.released.facts import CHOSEN, CHOSEN_WITHOUT_DATA
from dpci.report.html.elements import Content, Html, bullets, section


def assumptions_section(facts: Sequence[str], chosen: Sequence[str] = CHOSEN) -> Html:
    """Return what a guarantee rests on; ``chosen`` is what must not depend on the data."""
    independent = f"{', '.join(chosen[:-1])} and {chosen[-1]} were chosen without the data"
    shown = (independent if fact == CHOSEN_WITHOUT_DATA else fact for fact in facts)
    rests: list[Content] = [f"{fact[0].upper()}{fact[1:]}." for fact in shown]
    return section("conditions", "Assumptions of the guarantee", bullets(rests))
