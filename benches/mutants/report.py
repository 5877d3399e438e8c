"""Writes docs/evidence/mutants.md: how many mutants were found, and every survivor with its reason."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

REASONS = Path(__file__).with_name("reasons.toml")
KINDS = ("equivalent", "conservative")
# Least shares of the mutants that are not equivalent: found by all tests, and in Rust by those of the core.
LEAST_OF_ALL, LEAST_OF_CORE = 0.97, 0.85

HEAD = """# Seeded mutants

`make mutants`, {date}: seed {seed}, at most {number} mutants an area.

Each mutant is one small, randomly chosen change of the code: a different comparison or operator, a different number,
or a removed check or early return. All mutants of a language are compiled into one program, in which an environment
variable activates one of them. A mutant is killed if a test fails, crashes or does not end. The tests of the core run
on the Rust mutants first, and the tests of the package run on those that survive. Tests were then written for the
survivors, so the rates are those of this seed. With a new seed, more mutants survive.

An *equivalent* mutant computes the same result for every input that can reach it, or differs only where the result is
unspecified. A *conservative* mutant adds more noise. `benches/mutants/reasons.toml` keeps the reasons.

| area | commit | mutants | equivalent | killed by the core | by Python | left | killed of the different | by the core |
|---|---|---|---|---|---|---|---|---|
"""


class Place:
    """The site of a mutant, as it was saved."""

    def __init__(self, saved):
        self.file, self.function = saved["file"], saved["function"]
        self.line, self.change, self.number = saved["line"], saved["change"], saved["number"]

    @property
    def key(self):
        return f"{self.file} · {self.function} · {self.change}"


@dataclass
class Outcome:
    """Outcome of one mutant."""

    area: str
    site: object
    by_core: str | None = None
    by_python: str | None = None
    commit: str = ""

    @property
    def killed(self):
        return self.by_core or self.by_python


def reasons():
    return {
        key: (kind, why) for kind, table in tomllib.loads(REASONS.read_text()).items() for key, why in table.items()
    }


def share(part, whole):
    return f"{part / whole:.1%}" if whole else "-"


def write(path, outcomes, *, seed, number):
    """Writes the page; says what it shows that must not be."""
    known, faults = reasons(), []
    rows, survivors = [], []
    for area in dict.fromkeys(outcome.area for outcome in outcomes):
        here = [outcome for outcome in outcomes if outcome.area == area]
        is_rust = here[0].site.file.endswith(".rs")
        count = Counter()
        for outcome in here:
            kind, why = known.get(outcome.site.key, (None, None))
            if outcome.killed:
                count["core" if outcome.by_core else "python"] += 1
                if kind:
                    faults.append(f"killed, but called {kind}: {outcome.site.key}")
                continue
            count[kind if kind == "equivalent" else "left"] += 1
            survivors.append((outcome, kind or "**not explained**", why or ""))
            if not kind:
                faults.append(f"not explained: {outcome.site.key}")
        different = len(here) - count["equivalent"]
        found = count["core"] + count["python"]
        by_core = share(count["core"], different) if is_rust else "-"
        cells = [area, here[0].commit[:10], len(here), count["equivalent"], count["core"] if is_rust else "-"]
        cells += [count["python"], count["left"], share(found, different), by_core]
        rows.append(f"| {' | '.join(map(str, cells))} |")
        if found < LEAST_OF_ALL * different:
            faults.append(f"{area}: {share(found, different)} are killed, of at least {LEAST_OF_ALL:.0%}")
        if is_rust and count["core"] < LEAST_OF_CORE * different:
            faults.append(f"{area}: {by_core} are killed by the core, of at least {LEAST_OF_CORE:.0%}")
    lines = [HEAD.format(date=datetime.now(UTC).date(), seed=seed, number=number) + "\n".join(rows), ""]
    lines += ["## Survivors", "", "| place | change | kind | reason |", "|---|---|---|---|"]
    for outcome, kind, why in survivors:
        site = outcome.site
        change = site.change.replace("|", "\\|")
        lines.append(f"| `{site.file}:{site.line}` `{site.function}` | {change} | {kind} | {why} |")
    path.write_text("\n".join(lines) + "\n")
    return faults
