"""How fast a bootstrap replicate with intervals is, against NumPy, against the machine, and at full size.

Seconds a replicate of dpci.simulate.coverage, loading excepted and set-up included, against a warm-started Newton
method in NumPy (_opponent.py) at its best over one and two BLAS threads; docs/performance.md says how. What is compared
is timed in turns. A section in which other processes use the machine, or whose times contradict each other, is not
printed but ends the run. Without DPCI_DATA, a folder with KDD Cup 1999, the sections that need it are left out.

With --keep, a folder keeps rounds and sections by commit, and later runs take them from there. So the report can be
made in portions: --only for each section, as often as it takes, then --write.

    python benches/bench_replicates.py [--only SECTION] [--without SECTION] [--keep FOLDER] [--write] [--small]
                                       [--busy-ok] [--draw-again REPORT]
"""

import argparse
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dpci
from _breakdown import FEW
from _contest import CLAIMED, TRIAL, Scale, agreement, contest, cost_figure, kdd, markdown, verdict
from _cost_plot import TITLE, draw_again
from _large import FIT_ROUNDS, measure
from _timing import OTHERS_ALLOWED, OthersWatch, commit, machine, pin
from dpci._core import LANES
from papers.wang.experiments import L2_STRENGTH, TABLES
from papers.wang.published import SETTINGS

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
# Sections whose times are all of rounds, each of which says itself whether others disturbed it.
BY_ROUNDS = {"kdd", "dense10", "dense90", "cost"}
NEED_KDD = {"kdd", "cost", "kddfull", "table2"}


def table2(scale: Scale) -> list[str]:
    """Time Table 2 of Wang, Kifer & Lee (2019) in full: nine sizes, eight settings each, their calibration."""
    k, m = scale.size(1000), scale.size(10_000)
    kinds = {f"coverage, k={k:,}": (k, 0, 5), f"with variability, m={m:,}": (k, m, 30)}
    spent = dict.fromkeys(kinds, 0.0)
    pin(2)
    for value in TABLES[2].values:
        cells = [TABLES[2].cell(value, setting) for setting in SETTINGS]
        X, y = kdd(scale.size(cells[0].rows.n), cells[0].rows.d)
        for kind, (replicates, spread, _) in kinds.items():
            began = time.perf_counter()
            dpci.simulate.coverage(
                X,
                y,
                configs=[cell.keywords("paper") for cell in cells],
                l2_strength=L2_STRENGTH,
                rows=dpci.rows.Within(intercept=False),  # the rows end in a column of ones
                n_replicates=replicates,
                n_variability=spread,
                n_threads=2,
            )
            spent[kind] += time.perf_counter() - began
    body = [
        [kind, f"{spent[kind] / 60:.2f}", limit, verdict(spent[kind] < 60 * limit)]
        for kind, (_, _, limit) in kinds.items()
    ]
    return [
        "two threads, measured in full, loading excepted",
        *markdown(["table", "minutes", "target: under", ""], body),
    ]


def full_kdd(scale: Scale) -> list[str]:
    """Time and memory of a study of rows in the shape of the full KDD Cup 1999 file."""
    few, many, wanted = FEW, 2 * FEW, 1000
    with tempfile.TemporaryDirectory() as folder:
        made = measure("make_kdd", folder, scale.size(4_898_431), scale.size(1_000_000))
        found = measure("study_kdd", folder, few, many, 2)
    first, second = found["seconds"]
    each = (second - first) / (many - few)
    minutes = (first + (wanted - few) * each) / 60
    gib = found["peak"] / 2**30
    n, d = found["shape"]
    passes, gigabytes, bandwidth = found["passes"], found["pass_bytes"] / 1e9, found["bandwidth"] / 1e9
    least, group = passes * gigabytes / bandwidth, LANES * each
    return [
        f"{n:,} x {d} in CSR, {found['nonzeros'] / n:.1f} non-zeros a row, {found['n_distinct']:,} distinct rows,",
        f"simulated in {made['seconds']:.0f} s ({made['peak'] / 2**30:.2f} GiB); coverage {found['coverage']:.3f}",
        *markdown(
            ["what", "value", "target: under", ""],
            [
                [
                    f"{wanted:,} replicates with intervals, 2 threads, minutes (EXTRAPOLATED from {many})",
                    f"{minutes:.2f}",
                    8,
                    verdict(minutes < 8),
                ],
                ["a replicate, s", f"{each:.3f}", "", ""],
                ["set-up, s", f"{max(0.0, first - few * each):.1f}", "", ""],
                [
                    f"peak memory, GiB ({found['loaded'] / 2**30:.2f} with the rows loaded)",
                    f"{gib:.2f}",
                    3,
                    verdict(gib < 3),
                ],
            ],
        ),
        "",
        f"{LANES} replicates share {passes:.1f} passes over the rows; one reads {gigabytes:.2f} GB.",
        f"At the copy's {bandwidth:.1f} GB/s on two cores that is {1e3 * least:.0f} of {1e3 * group:.0f} ms,",
        f"{least / group:.0%} of the bandwidth",
    ]


def large_fit(scale: Scale) -> list[str]:
    """Time and memory of one fit of 4,900,000 x 90 dense rows."""
    n, d = scale.size(4_900_000), 90
    found = measure("large_fit", n, d, min(FIT_ROUNDS, scale.rounds))
    ours, theirs = ([found[f"{who}{cores}"] for cores in (1, 2)] for who in ("ours", "lbfgs"))
    scale.insist_speed_up("large fit", ours[0] / ours[1])
    faster = verdict(min(ours) < min(theirs))
    body = [
        ["dpci.fit with intervals", *(f"{t:.2f}" for t in ours)],
        ["scikit-learn lbfgs, parameters alone, tol 1e-4", *(f"{t:.2f}" for t in theirs)],
    ]
    bandwidth, product = found["bandwidth"] / 1e9, found["multiply"] / 1e9
    reading = found["passes"] * found["bytes"] / 1e9 / bandwidth
    # Margins and gradients of each pass, and both Gram matrices of the moments.
    gflop = n * d * (4 * found["passes"] + 2 * (d + 1)) / 1e9
    extra = found["extra"]
    return [
        f"{n:,} x {d} dense, {found['bytes'] / 1e9:.2f} GB; least of {min(FIT_ROUNDS, scale.rounds)} rounds in turns",
        *markdown(["seconds", "1 core", "2 cores"], body),
        "",
        f"best against best: {min(ours) / min(theirs):.2f} of its time, target under 1: {faster};",
        f"extra memory {extra:.2%} of the rows, target under 2%: {verdict(extra < 0.02)}",
        "",
        f"ours on one core makes {found['passes']:.1f} passes over the rows: {reading:.2f} s at the copy's",
        f"{bandwidth:.1f} GB/s, {reading / ours[0]:.0%} of the bandwidth; {gflop:.0f} GFLOP without the solver's",
        f"Hessians, {gflop / ours[0] / product:.0%} of the product's {product:.0f} GFLOP/s",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="SECTION", action="append", default=[])
    parser.add_argument("--without", metavar="SECTION", action="append", default=[], help="the report says so")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="keep what is measured, and measure nothing twice")
    parser.add_argument(
        "--write",
        type=Path,
        nargs="?",
        const=EVIDENCE,
        help="write the report and the figure to this folder (without: the figure to the temporary one)",
    )
    parser.add_argument("--busy-ok", action="store_true", help="for development: go on when others use the machine")
    parser.add_argument("--small", action="store_true", help="for development: small sizes")
    parser.add_argument("--draw-again", type=Path, metavar="REPORT", help="the figure of this report; no run")
    arguments = parser.parse_args()
    if arguments.draw_again:
        draw_again(arguments.draw_again.read_text("utf-8"), arguments.draw_again.with_name("replicates_cost.svg"))
        return
    kept = arguments.keep and arguments.keep / f"{commit('rust', 'python')}{'-small' * arguments.small}"
    if kept and arguments.busy_ok:
        parser.error("--keep is for evidence, got --busy-ok too")
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
    scale = replace(TRIAL if arguments.small else CLAIMED, strict=not arguments.busy_ok, kept=kept)
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    figure = (kept or arguments.write or Path(tempfile.gettempdir())) / "replicates_cost.svg"
    sections: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "agreement": ("The opponent computes the same", lambda: agreement(scale)),
        "kdd": ("KDD Cup 1999, d=10", lambda: contest("kdd", (200, 300), scale)),
        "dense10": ("Dense, d=10", lambda: contest("dense10", (60, 80), scale)),
        "dense90": ("Dense, d=90", lambda: contest("dense90", (20, 30), scale)),
        "cost": (TITLE, lambda: cost_figure(scale, figure)),
        "kddfull": ("The shape of the full KDD Cup 1999 file", lambda: full_kdd(scale)),
        "bigfit": ("One large fit", lambda: large_fit(scale)),
        "table2": ("Table 2 of Wang, Kifer & Lee", lambda: table2(scale)),
    }
    named = [*arguments.only, *arguments.without]
    unknown = next((name for name in named if name not in sections), None)
    if unknown is not None:
        parser.error(f"--only and --without must name one of {', '.join(sections)}, got {unknown!r}")
    if arguments.write and (arguments.only or not os.environ.get("DPCI_DATA")):
        parser.error("--write needs all sections and DPCI_DATA, got --only or no DPCI_DATA")
    chosen = [name for name in arguments.only or sections if name not in arguments.without]
    report = print_report({name: sections[name] for name in chosen}, arguments, kept)
    report += [line for name in arguments.without for line in ("", f"Not part of this run: {sections[name][0]}.")]
    if arguments.write:
        (arguments.write / "replicates.md").write_text("\n".join([*report, ""]))
        if kept and figure.exists():
            shutil.copy(figure, arguments.write)


def print_report(
    sections: dict[str, tuple[str, Callable[[], list[str]]]], arguments: argparse.Namespace, kept: Path | None
) -> list[str]:
    """Run and print the sections one by one, each only if nobody else used the machine meanwhile."""
    printed: list[str] = []

    def put(*lines: str) -> None:
        for line in lines:
            printed.append(f"BUSY {line}".rstrip() if arguments.busy_ok else line)
            print(printed[-1], flush=True)

    put(
        "# Bootstrap replicates: speed",
        "",
        f"{machine(load=False)}, dpci {dpci.__version__}, commit {commit()}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
    if arguments.small:
        put("", "SMALL: sizes of a trial run, no evidence")
    for name, (title, run) in sections.items():
        if name in NEED_KDD and not os.environ.get("DPCI_DATA"):
            put("", f"## {title}", "", "left out: DPCI_DATA is not set")
            continue
        checked = arguments.busy_ok or (kept and name in BY_ROUNDS)
        lines = measured(run, kept and kept / f"{name}.json", checked=bool(checked))
        put("", f"## {title}", "", *lines)
    return printed


def measured(run: Callable[[], list[str]], file: Path | None, *, checked: bool) -> list[str]:
    """Return the lines of a section: those in its file, or those of a run, while nobody else used the machine.

    ``checked``: whether others disturb it is looked at elsewhere, or not at all.
    """
    if file and file.exists():
        lines: list[str] = json.loads(file.read_text())
        return lines
    watch = OthersWatch()
    lines = run()
    others = "least times of rounds, during each of which others used at most"
    if not checked:
        watch.refuse_if_busy("during a section, which is not printed")
        others = "others meanwhile used at most"
    lines = [f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; {others} {OTHERS_ALLOWED:.0%} of a core", "", *lines]
    if file:
        file.write_text(json.dumps(lines))
    return lines


if __name__ == "__main__":
    main()
