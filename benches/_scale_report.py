"""The tables of the runs of scale.py, the cost model fitted to them, and what it says of sizes beyond."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

Line = dict[str, Any]
Costs = dict[str, list[float]]

# Passes over rows alone, and those that add up a matrix.
GROUPS = {
    "describe": "vectors",
    "risk": "vectors",
    "risk_and_hessian": "matrices",
    "moments": "matrices",
    "doubled_gradient": "doubled",
}
FITTED_UP_TO = 10**7
BIG = 10**10
# Of a fit of that many rows at the same l2_strength (tests/test_many_rows.py has such fits).
PASSES = {"vectors": 1, "matrices": 7, "doubled": 2}
CORES = (1, 16, 256)
PARTITION_BYTES = 1e9
READING_PER_CORE = 0.5e9
"""Bytes a second that one core reads and decodes: assumed, not measured."""


def report(lines: list[Line]) -> list[str]:
    """Write the report."""
    fits = [line for line in lines if line["what"] == "fit"]
    chunks = [line for line in fits if not line["workers"]]
    overheads = {line["workers"]: line["seconds_per_part"] for line in lines if line["what"] == "overhead"}
    model = fitted([line for line in chunks if line["n"] <= FITTED_UP_TO])
    body = [*runs(fits), "", *per_row(chunks), "", *check(chunks, model), "", *overhead_lines(overheads)]
    return [*body, "", *extrapolation(chunks, model, overheads)]


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay out a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def runs(fits: list[Line]) -> list[str]:
    """Every run: wall and processor time, with the time to make the rows once."""
    header = ["n", "d", "where", "budget", "passes", "rows made once: s", "fit: s", "fit: processor s"]
    rows = []
    for line in fits:
        workers, threads = line["workers"], line["threads"]
        where = (
            f"Dask, {workers} worker{'s'[: workers - 1]}"
            if workers
            else f"chunks, {threads} thread{'s'[: threads - 1]}"
        )
        made, spent = line["generation"], line["fit"]
        passes = len(line["passes"]) if "passes" in line else ""
        load = line["machine"].split("load ")[1].split(",")[0]
        numbers = [f"{made[0]:.1f}", f"{spent[0]:.1f}", f"{spent[1]:.1f}", f"{line['peak_mib']:.0f}", load]
        rows.append(
            [f"{line['n']:.0e}", line["d"], where, line["notion"], passes, *numbers, line["date"], line["commit"]]
        )
    return ["## Runs", "", *table([*header, "peak MiB", "load", "UTC", "commit"], rows)]


def costs(lines: list[Line]) -> dict[tuple[str, int], list[float]]:
    """Processor nanoseconds a row and pass without making the row, by kind of pass and columns."""
    found = defaultdict(list)
    for line in lines:
        made = line["generation"][1]
        for name, (_, cpu) in line["passes"]:
            found[GROUPS[name], line["d"]].append(1e9 * (cpu - made) / line["n"])
    return found


def per_row(chunks: list[Line]) -> list[str]:
    """Nanoseconds by kind of pass: the median over passes, and the least and the greatest."""
    rows = [
        [group, d, len(values), f"{np.median(values):.0f}", f"{min(values):.0f} to {max(values):.0f}"]
        for (group, d), values in sorted(costs(chunks).items())
    ]
    header = ["what a pass adds up", "d", "passes", "processor ns a row, median", "range"]
    return ["## Cost of a row in a pass", "", "Making the row is subtracted.", "", *table(header, rows)]


def fitted(lines: list[Line]) -> Costs:
    """Fit c0 + c1 k + c2 k² to the medians, each weighted to count by its relative error; k = d + 1."""
    model = {}
    medians = {key: float(np.median(values)) for key, values in costs(lines).items()}
    for group in sorted({name for name, _ in medians}):
        points = [(d + 1, value) for (name, d), value in medians.items() if name == group]
        terms = np.array([[1.0, k, k * k * (group == "matrices")] for k, _ in points])
        values = np.array([value for _, value in points])
        model[group] = [float(c) for c in nnls(terms / values[:, None], np.ones(len(values)))[0]]
    return model


def seconds(model: Costs, n: float, d: int, passes: Counter[str]) -> float:
    """Processor seconds of all passes."""
    k = d + 1
    return n * 1e-9 * sum(count * float(np.dot(model[group], [1, k, k * k])) for group, count in passes.items())


def check(chunks: list[Line], model: Costs) -> list[str]:
    """Hold the model against the sizes that it was not fitted to."""
    formulas = [f"- {group}: {c[0]:.1f} + {c[1]:.2f} k + {c[2]:.4f} k²" for group, c in model.items()]
    rows = []
    for line in (line for line in chunks if line["n"] > FITTED_UP_TO):
        passes = Counter(GROUPS[name] for name, _ in line["passes"])
        measured = line["fit"][1] - len(line["passes"]) * line["generation"][1]
        expected = seconds(model, line["n"], line["d"], passes)
        ratio = f"{measured / expected:.2f}"
        rows.append([f"{line['n']:.0e}", line["d"], line["threads"], f"{expected:.0f}", f"{measured:.0f}", ratio])
    header = ["n", "d", "threads", "expected: processor s", "measured", "ratio"]
    return [
        "## Model",
        "",
        f"Processor ns a row and pass, k = d + 1, fitted to n up to {FITTED_UP_TO:.0e}:",
        "",
        *formulas,
        "",
        "Beyond:",
        "",
        *table(header, rows),
    ]


def overhead_lines(overheads: dict[int, float]) -> list[str]:
    """What a part costs whatever its rows."""
    return [
        f"A part costs {1e3 * each:.2f} ms of wall time in every pass "
        f"({f'Dask, {workers} workers' if workers else 'chunks'}), whatever its rows."
        for workers, each in sorted(overheads.items())
    ]


def extrapolation(chunks: list[Line], model: Costs, overheads: dict[int, float]) -> list[str]:
    """Say what the model expects of sizes that were not run."""
    values = [max(v) / min(v) for v in costs(chunks).values() if len(v) > 1]
    passes = Counter(PASSES)
    n_passes = sum(passes.values())
    part = max(overheads.values(), default=0.0)
    rows = []
    for d in (10, 30):
        size = BIG * 8 * (d + 1)
        n_parts = max(size / PARTITION_BYTES, 1)
        for cores in CORES:
            work, handling = seconds(model, BIG, d, passes) / cores, n_passes * n_parts * part
            reading = n_passes * size / READING_PER_CORE / cores
            numbers = [minutes(each) for each in (work, handling, reading, work + handling, work + handling + reading)]
            rows.append([d, cores, f"{size / 1e9:.0f}", f"{n_parts:.0f}", *numbers])
    header = [
        "d",
        "cores",
        "GB",
        "partitions",
        "sums: min",
        "partitions: min",
        "reading: min",
        "persisted",
        "read anew",
    ]
    return [
        f"## n = {BIG:.0e}: EXTRAPOLATED",
        "",
        f"{n_passes} passes, {PASSES['doubled']} of them in doubled precision; perfect scaling over cores;",
        f"partitions of {PARTITION_BYTES / 1e9:g} GB at the above cost, one after the other;",
        f"{READING_PER_CORE / 1e9:g} GB/s a core for reading, which is ASSUMED.",
        f"Equal passes differ by a factor of up to {max(values):.1f} in processor time on the shared machine.",
        "",
        *table(header, rows),
    ]


def minutes(value: float) -> str:
    """Minutes with two digits."""
    return f"{value / 60:.2g}" if value < 6000 else f"{value / 60:.0f}"
