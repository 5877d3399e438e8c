"""The page of the contest: who wins by how much, one row a contest, then every contestant with its error and memory."""

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from cells import ERRORS, PLAIN, PRIVATE, RIDGE, RIDGE_RADIUS, RIDGE_STRENGTH, TARGET

import dpci

Line = dict[str, Any]
_LIBRARIES = ("scikit-learn", "SciPy", "glum", "statsmodels", "diffprivlib")


def rows(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def seconds(value: float) -> str:
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def ours(record: Line, solver: str | None = None) -> Line:
    """dpci's line: with a solver the one of that name, else the one that the others are set against."""
    wanted = solver or {PLAIN: "minimiser", ERRORS: "intervals"}.get(record["task"], "no intervals")
    return next(line for line in record["lines"] if line["library"] == "dpci" and line["solver"] == wanted)


def best(record: Line, library: str) -> Line:
    """The fastest line of a library that did what was asked, or one that did not."""
    lines = [line for line in record["lines"] if line["library"] == library]
    return min(lines, key=lambda line: (not finished(line), line.get("seconds", float("inf"))))


def finished(line: Line) -> bool:
    """Whether the contestant did what was asked."""
    return "seconds" in line and not line["missed"]


def verdict(record: Line) -> str:
    """Who is fastest, and by how much over the next."""
    if not finished(ours(record)):
        return f"**dpci fails**: {ours(record)['failure'] or 'too far from the minimiser'}"
    opponents = [best(record, name) for name in _LIBRARIES if any(x["library"] == name for x in record["lines"])]
    timed = [line for line in opponents if finished(line)]
    if not timed:
        return "dpci alone finishes"
    rival = min(timed, key=lambda line: line["seconds"])
    ratio = rival["seconds"] / ours(record)["seconds"]
    who = f"{rival['library']} ({rival['solver']})"
    return (
        f"dpci wins: {ratio:.1f} times faster than {who}"
        if ratio >= 1
        else f"**LOST** to {who}: {1 / ratio:.2f} times slower"
    )


def summary(records: Sequence[Line]) -> str:
    body = []
    for record in records:
        line = ours(record)
        cells = [record["task"], f"{record['data']}, {record['n']:,} × {record['k']}"]
        cells.append(f"{record['loss']}, λ={record['l2_strength']:g}")
        times = line.get("by_threads", {})
        cells.append(" / ".join(seconds(times[t]) for t in ("1", "2") if t in times) or "-")
        for name in _LIBRARIES:
            if not any(x["library"] == name for x in record["lines"]):
                cells.append("")
                continue
            found = best(record, name)
            if not finished(found) or not finished(line):
                cells.append("*misses*" if found["missed"] else "*fails*")
            else:
                ratios = (found["seconds"] / value for value in (line["seconds"], times.get("1", line["seconds"])))
                cells.append(" / ".join(f"{ratio:.2f}" for ratio in ratios))
        body.append([*cells, verdict(record)])
    header = ["task", "rows", "objective", "dpci, 1 / 2 cores", *_LIBRARIES, "who wins (best against best)"]
    return rows(header, body)


def shown(line: Line) -> list[str]:
    """Cells that all tables have: who, how, time, memory."""
    setting = "" if line["tolerance"] is None else f", tol {line['tolerance']:.0e}"
    label = f"{line['library']}: {line['solver']}{setting}"
    times = {t: seconds(v) for t, v in sorted(line["by_threads"].items())}
    runs = f"of {line['runs']}" if line["kept"] else "trial"
    memory = f"{line['peak'] / 1e6:.0f} ({(line['peak'] - line['loaded']) / 1e6:.0f})"
    return [label, times.get("1", "-"), times.get("2", "-"), runs, memory]


def details(records: Sequence[Line]) -> str:
    """All contestants of one task; what failed says why."""
    task = records[0]["task"]
    answers = {
        PLAIN: ["distance"],
        ERRORS: ["distance", "std error / sandwich: median (least, greatest)"],
        PRIVATE: ["median distance to the minimiser", "test loss", "test accuracy", "releases"],
        RIDGE: ["median distance to the minimiser", "test mean square", "sign accuracy", "releases"],
    }[task]
    header = ["data", "contestant", "1 core", "2 cores", "least", "peak MB (of the fit)", *answers]
    body = []
    for record in records:
        label = f"{record['data']}, {record['loss']}, λ={record['l2_strength']:g}"
        for line in record["lines"]:
            if "seconds" not in line:
                said = [f"{line['library']}: {line['solver']}", *["-"] * 4, f"fails: {line['failure']}"]
                body.append([label, *said, *[""] * (len(answers) - 1)])
                continue
            cells = [f"{line['distance']:.1e}{' (misses)' * line['missed']}"]
            if task == ERRORS:
                ratios = (line.get(f"{name}_ratio") for name in ("median", "least", "greatest"))
                cells.append("{:.4g} ({:.4g}, {:.4g})".format(*ratios))
            elif task in {PRIVATE, RIDGE}:
                cells = [f"{line['median_distance']:.3g}", f"{line['test_loss']:.4g}", f"{line['test_accuracy']:.2%}"]
                cells.append(str(line["releases"]))
            body.append([label, *shown(line), *cells])
        if task in {PRIVATE, RIDGE}:
            loss, accuracy = record["exact_test"]
            body.append([label, "not private: the minimiser", *["-"] * 4, "0", f"{loss:.4g}", f"{accuracy:.2%}", ""])
    return rows(header, body)


NOTES = {
    PLAIN: f"""Minimise mean loss + (λ/2)‖θ‖², the constant being a column of the rows and penalised like the others, in
all libraries. Every contestant must come within {TARGET:g} of the minimiser, in the norm of θ. dpci is asked for a
certificate of that; each other gets the loosest of its tolerances, in steps of 100 from 1e-4, with which it does, found
beforehand. The distance is to the minimiser of Newton's method in NumPy, whose own certificate ‖∇J‖/λ is
{{certificate}} (the hinge's: dpci's certified minimiser, which the opponent confirms where it gets there). statsmodels
does not let its tolerance be set.
""",
    ERRORS: """dpci: the private fit at ε = 1 with 95% intervals of all parameters; its standard errors include the
noise of privacy. glum: the penalised fit, then its robust covariance, which by its own warning leaves the penalty out,
HC1 scaled to HC0. statsmodels: HC0, but of the fit *without* a penalty, so another problem with another minimiser (its
distance says how far); it has no HC0 for penalised fits. Ratios are to the sandwich of the penalised objective at its
minimiser.
""",
    PRIVATE: """The same ε = 1 (pure), rows, bound on their norm, λ; objective perturbation in both. A release is judged
by its distance to the minimiser without noise and on the test rows (medians). dpci's fit is certified; diffprivlib is
shown with its default tolerance and with one that brings it near to the point that its proof speaks of.
""",
    RIDGE: f"""ε = 1 (pure). dpci: objective perturbation with λ={RIDGE_STRENGTH:g} and the radius {RIDGE_RADIUS:g};
diffprivlib: noisy moments without a penalty (it has none), entries and targets bounded by 1. The targets are the labels
-1 and 1. The distance of both is to the minimiser with λ, so the errors on test rows say more.
""",
}


def heading(records: Sequence[Line], software: dict[str, str], busy_above: float, *, quick: bool) -> list[str]:
    """Runs with their place and time, and whether it counts."""
    lines = ["# Evidence: dpci and five other libraries on the same problems", ""]
    lines += ["Written by `python benches/contest/run.py --write`;"]
    lines += ["[performance.md](../performance.md#other-libraries) has the rules.", ""]
    if quick:
        lines += ["**Trial on small data (`--quick`): no evidence.**", ""]
    disturbed = [record["others"] for record in records if record["others"] > busy_above]
    if disturbed:
        lines += [
            f"**Others took up to {max(disturbed):.0%} of a core during {len(disturbed)} of {len(records)} contests"
        ]
        lines += ["(`--busy-ok`): no evidence.**", ""]
    dates = sorted(record["date"] for record in records)
    lines += [f"- commit {', '.join(sorted({record['commit'] for record in records}))}; {dates[0]} to {dates[-1]}"]
    lines += [f"- {records[0]['machine'].split(', load')[0]}; Python {platform.python_version()}"]
    lines += [f"- dpci {dpci.__version__}, with numpy {np.__version__} and scipy {scipy.__version__}"]
    for name, said in software.items():
        lines += [f"- environment of {'diffprivlib' if name == 'diffprivlib' else 'the others'}: {said}"]
    lines += ["- seed 0 of all that is generated or divided; release noise is not seeded"]
    return lines


def page(records: Sequence[Line], software: dict[str, str], busy_above: float, *, quick: bool) -> str:
    """All of the report, in Markdown."""
    if not records:
        return "Nothing was measured.\n"
    lines = heading(records, software, busy_above, quick=quick)
    lines += ["", "## Who wins", ""]
    lines += ["Times of dpci on one and two cores; then, for each library at its best over solvers and threads, its"]
    lines += [
        "time over dpci's best / over dpci's on one core: below 1 dpci loses. *misses*: not as near as asked, so its"
    ]
    lines += ["time does not count; *fails*: no answer, the reason is below. A time left out (-) was far behind.", ""]
    lines += [summary(records)]
    for task, note in NOTES.items():
        shared = [record for record in records if record["task"] == task]
        if shared:
            worst = max(record["certificate"] for record in shared)
            lines += [f"## {task[3:].capitalize()}", "", note.replace("{certificate}", f"at most {worst:.0e}")]
            lines += [details(shared)]
    return "\n".join(lines)
