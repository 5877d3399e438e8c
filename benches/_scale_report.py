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
# Of a fit of that many rows at the same l2_strength (tests/data/test_many_rows.py has such fits).
PASSES = {"vectors": 1, "matrices": 7, "doubled": 2}
CORES = (1, 16, 256)
PARTITION_BYTES = 1e9
READING_PER_CORE = 0.5e9
"""Bytes a second that one core reads and decodes: assumed, not measured."""


def report(lines: list[Line]) -> list[str]:
    """Write the report."""
    fits = [line for line in lines if line["what"] == "fit"]
    chunks = [line for line in fits if not line["workers"]]
    dask = with_passes([line for line in fits if line["workers"]], chunks)
    overheads = {line["workers"]: line["seconds_per_part"] for line in lines if line["what"] == "overhead"}
    model = fitted([line for line in chunks if line["n"] <= FITTED_UP_TO])
    body = [*runs(fits), "", *per_row(chunks), "", *check([*chunks, *dask], model)]
    body += [
        "",
        *wall_times([*chunks, *dask], model, overheads),
        "",
        *overhead_lines(overheads),
        *dask_parts(dask, model),
    ]
    part = max([*overheads.values(), *(part_seconds(line, model) for line in dask)], default=0.0)
    return [*body, "", *extrapolation(chunks, model, part)]


def with_passes(dask: list[Line], chunks: list[Line]) -> list[Line]:
    """Runs on Dask with the passes, and the time to make rows, of the run of chunks that took the same steps."""
    of_chunks = {(line["n"], line["d"], line["notion"]): line for line in chunks}
    found = []
    for line in dask:
        same = of_chunks[line["n"], line["d"], line["notion"]]
        assert np.isclose(same["first"], line["first"], rtol=1e-3), "another minimiser: other passes"
        found.append({**line, "passes": same["passes"], "alone": line["generation"], "generation": same["generation"]})
    return found


def where(line: Line) -> str:
    """Say what a run ran on."""
    name, count = ("Dask", line["workers"]) if line["workers"] else ("chunks", line["threads"])
    unit = "worker" if line["workers"] else "thread"
    parts = f", parts of {line['part_rows']:,}" if line["workers"] else ""
    return f"{name}, {count} {unit}{'s'[: count - 1]}{parts}"


def n_parts(line: Line) -> int:
    """Count the chunks or partitions of a run."""
    return -(-int(line["n"]) // int(line["part_rows"]))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lay out a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]


def runs(fits: list[Line]) -> list[str]:
    """Every run: wall and processor time, with the time to make the rows once."""
    header = ["n", "d", "where", "budget", "passes", "rows made once: s", "fit: s", "fit: processor s"]
    rows = []
    for line in fits:
        made, spent = line["generation"], line["fit"]
        passes = len(line["passes"]) if "passes" in line else ""
        load = line["machine"].split("load ")[1].split(",")[0]
        numbers = [f"{made[0]:.1f}", f"{spent[0]:.1f}", f"{spent[1]:.1f}", f"{line['peak_mib']:.0f}", load]
        rows.append(
            [
                f"{line['n']:.0e}",
                line["d"],
                where(line),
                line["notion"],
                passes,
                *numbers,
                line["date"],
                line["commit"],
            ]
        )
    return ["## Runs", "", *table([*header, "peak MiB (Dask: client)", "load", "UTC", "commit"], rows)]


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


def expected_cpu(line: Line, model: Costs) -> float:
    """Processor seconds of the passes of a run, without making its rows."""
    return seconds(model, line["n"], line["d"], Counter(GROUPS[name] for name, _ in line["passes"]))


def check(fits: list[Line], model: Costs) -> list[str]:
    """Hold the model against the runs that it was not fitted to."""
    formulas = [f"- {group}: {c[0]:.1f} + {c[1]:.2f} k + {c[2]:.4f} k²" for group, c in model.items()]
    rows = []
    for line in (line for line in fits if line["n"] > FITTED_UP_TO or line["workers"]):
        measured = line["fit"][1] - len(line["passes"]) * line["generation"][1]
        expected = expected_cpu(line, model)
        numbers = [f"{expected:.3g}", f"{measured:.3g}", f"{measured / expected:.2f}"]
        rows.append([f"{line['n']:.0e}", line["d"], where(line), *numbers])
    doubled = Counter(
        line["n"] > FITTED_UP_TO for line in fits for name, _ in line["passes"] if GROUPS[name] == "doubled"
    )
    header = ["n", "d", "where", "expected: processor s", "measured", "ratio"]
    return [
        "## Model",
        "",
        f"Processor ns a row and pass, k = d + 1, fitted to n up to {FITTED_UP_TO:.0e}:",
        "",
        *formulas,
        "",
        f"Passes in doubled precision: {doubled[False]} in runs that the model is fitted to, {doubled[True]} beyond.",
        "",
        "Beyond, and on Dask. Making the rows, as in chunks, is subtracted; on Dask what remains has the handling of",
        "partitions, and the passes are those of the same fit of chunks.",
        "",
        *table(header, rows),
    ]


def wall_times(fits: list[Line], model: Costs, overheads: dict[int, float]) -> list[str]:
    """Hold the formula of docs/scale.md, which is of wall time on free cores, against large runs and those on Dask."""
    rows = []
    for line in (line for line in fits if line["n"] >= FITTED_UP_TO or line["workers"]):
        cores, n_passes = line["workers"] or line["threads"], len(line["passes"])
        part = max(overheads.values()) if line["workers"] else overheads[0]
        work = expected_cpu(line, model) + n_passes * line["generation"][1]
        expected, measured = work / cores + n_passes * n_parts(line) * part, line["fit"][0]
        numbers = [f"{expected:.1f}", f"{measured:.1f}", f"{measured / expected:.1f}"]
        rows.append([f"{line['n']:.0e}", line["d"], where(line), line["notion"], *numbers])
    header = ["n", "d", "where", "budget", "expected: wall s, shared perfectly", "measured", "ratio"]
    return [
        "## Wall time",
        "",
        "What docs/scale.md computes for cores that share the work perfectly, beside what was measured.",
        "",
        *table(header, rows),
    ]


def part_seconds(line: Line, model: Costs) -> float:
    """Wall time of a partition in a pass, if all that the sums do not explain is put down to it."""
    n_passes = len(line["passes"])
    work = expected_cpu(line, model) + n_passes * line["generation"][1]
    return float(line["fit"][0] - work / line["workers"]) / n_passes / n_parts(line)


def dask_parts(dask: list[Line], model: Costs) -> list[str]:
    """Cost of partitions in the runs on Dask, which is more than in the series of small ones."""
    return [
        f"{line['n']:.0e} rows, {where(line)}: {1e3 * part_seconds(line, model):.0f} ms a partition and pass, if all "
        f"that the sums do not explain is put down to partitions; making the rows alone "
        f"{1e3 * (line['alone'][0] - line['generation'][0]) / n_parts(line):.0f} ms more than in chunks."
        for line in dask
    ]


def overhead_lines(overheads: dict[int, float]) -> list[str]:
    """Cost of a part whatever its rows."""
    return [
        f"A part costs {1e3 * each:.2f} ms of wall time in every pass "
        f"({f'Dask, {workers} workers' if workers else 'chunks'}), whatever its rows."
        for workers, each in sorted(overheads.items())
    ]


def extrapolation(chunks: list[Line], model: Costs, part: float) -> list[str]:
    """Say what the model expects of sizes that were not run."""
    values = [max(v) / min(v) for v in costs(chunks).values() if len(v) > 1]
    passes = Counter(PASSES)
    n_passes = sum(passes.values())
    rows = []
    for d in (10, 30):
        size = BIG * 8 * (d + 1)
        count = max(size / PARTITION_BYTES, 1)
        for cores in CORES:
            work, handling = seconds(model, BIG, d, passes) / cores, n_passes * count * part
            reading = n_passes * size / READING_PER_CORE / cores
            numbers = [minutes(each) for each in (work, handling, reading, work + handling, work + handling + reading)]
            rows.append([d, cores, f"{size / 1e9:.0f}", f"{count:.0f}", *numbers])
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
        f"{n_passes} passes, {PASSES['doubled']} of them in doubled precision;",
        "perfect scaling over cores, which is ASSUMED;",
        f"partitions of {PARTITION_BYTES / 1e9:g} GB at {1e3 * part:.0f} ms, the dearest above, one after the other;",
        f"{READING_PER_CORE / 1e9:g} GB/s a core for reading, which is ASSUMED.",
        f"Equal passes differ by a factor of up to {max(values):.1f} in processor time.",
        "",
        *table(header, rows),
    ]


def minutes(value: float) -> str:
    """Minutes with two digits."""
    return f"{value / 60:.2g}" if value < 6000 else f"{value / 60:.0f}"
