"""How fast a bootstrap replicate with intervals is, against NumPy, against the machine, and at full size.

Seconds a replicate of dpci.simulate.coverage, loading excepted and set-up included, against a warm-started Newton
method in NumPy (_opponent.py) at its best over one and two BLAS threads; docs/performance.md says how. Every number of
a table is of one run, ours pinned to one core unless said otherwise. A section in which other processes use the machine
is not printed but ends the run. Without DPCI_DATA, a folder with KDD Cup 1999, the sections that need it are left out.

    python benches/bench_replicates.py [--only SECTION] [--table2 [--full]] [--write] [--busy-ok] [--small]
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import dpci
from _breakdown import FEW, MODEL
from _contest import CLAIMED, TRIAL, Scale, agreement, contest, cost_figure, kdd, markdown, verdict
from _large import measure
from _timing import OthersWatch, machine, pin
from bench_fit import rows

EVIDENCE = Path(__file__).parents[1] / "docs" / "evidence"
# Share of one core that other processes may use during a section, and the load before the first.
OTHERS_ALLOWED = 0.05
LOAD_ALLOWED = 0.5
NEED_KDD = {"kdd", "cost", "kddfull", "table2"}


def table2(scale: Scale, *, full: bool) -> list[str]:
    """Time Table 2 of Wang, Kifer & Lee (2019): nine sizes, eight configurations each, their calibration."""
    splits = {"pure": (dpci.PureDP(1.0), (0.5, 0.25, 0.25)), "zcdp": (dpci.ZCDP(0.1875), (2 / 3, 1 / 6, 1 / 6))}
    configs = [
        {"budget": splits[notion][0], "split": splits[notion][1], "mechanism": mechanism, "loss": loss}
        for notion, mechanism, loss in itertools.product(
            splits, ("objective", "output"), (dpci.losses.Logistic(), dpci.losses.HuberHinge(h=1.0))
        )
    ]
    pin(2)
    asked = {"coverage, k=1,000": (1000, 0, 5), "with variability, m=10,000": (1000, 10_000, 30)}
    spent = dict.fromkeys(asked, 0.0)
    options = {**MODEL, "calibration": "paper", "configs": configs, "n_threads": 2}
    options.pop("projection")

    def seconds(X: np.ndarray, y: np.ndarray, replicates: int, spread: int) -> float:
        began = time.perf_counter()
        dpci.simulate.coverage(X, y, n_replicates=replicates, n_variability=spread, **options)
        return time.perf_counter() - began

    few, many = FEW, 7 * FEW
    sizes = [scale.size(n) for n in range(50_000, 450_001, 50_000)]
    all_X, all_y = kdd(sizes[-1])  # its first rows are those of the smaller sizes
    for n in sizes:
        X, y = all_X[:n], all_y[:n]
        if full:
            spent = {name: spent[name] + seconds(X, y, k, m) for name, (k, m, _) in asked.items()}
            continue
        base = seconds(X, y, few, 0)
        replicate = (seconds(X, y, many, 0) - base) / (many - few)
        spread = (seconds(X, y, few, many) - base) / many
        setup = max(0.0, base - few * replicate)
        spent = {name: spent[name] + setup + k * replicate + m * spread for name, (k, m, _) in asked.items()}
    how = "measured" if full else f"EXTRAPOLATED from {many} replicates of each kind"
    body = [
        [name, f"{spent[name] / 60:.2f}", limit, how, verdict(spent[name] < 60 * limit)]
        for name, (_, _, limit) in asked.items()
    ]
    return ["two threads, loading excepted", *markdown(["table", "minutes", "asked: under", "how", ""], body)]


def full_kdd(scale: Scale) -> list[str]:
    """Time and memory of a study of rows in the shape of the full KDD Cup 1999 file."""
    few, many, asked = FEW, 2 * FEW, 1000
    with tempfile.TemporaryDirectory() as folder:
        made = measure("make_kdd", folder, scale.size(4_898_431), scale.size(1_000_000))
        found = measure("study_kdd", folder, few, many, 2)
    first, second = found["seconds"]
    each = (second - first) / (many - few)
    minutes = (first + (asked - few) * each) / 60
    gib = found["peak"] / 2**30
    n, d = found["shape"]
    return [
        f"{n:,} x {d} in CSR, {found['nonzeros'] / n:.1f} non-zeros a row, {found['n_distinct']:,} distinct rows,",
        f"simulated in {made['seconds']:.0f} s ({made['peak'] / 2**30:.2f} GiB); coverage {found['coverage']:.3f}",
        *markdown(
            ["what", "value", "asked: under", ""],
            [
                [
                    f"{asked:,} replicates with intervals, 2 threads, minutes (EXTRAPOLATED from {many})",
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
    ]


def large_fit(scale: Scale) -> list[str]:
    """Time and memory of one fit of 4,900,000 x 90 dense rows."""
    n, d = scale.size(4_900_000), 90
    found = measure("large_fit", n, d, min(2, scale.repetitions))
    ours, theirs = found["ours"], found["lbfgs"]
    faster = verdict(min(ours) < min(theirs))
    body = [
        ["dpci.fit with intervals", *(f"{t:.2f}" for t in ours)],
        ["scikit-learn lbfgs, parameters alone, tol 1e-4", *(f"{t:.2f}" for t in theirs)],
    ]
    return [
        f"{n:,} x {d} dense, {found['bytes'] / 1e9:.2f} GB",
        *markdown(["seconds", "1 core", "2 cores"], body),
        "",
        f"best against best: {min(ours) / min(theirs):.2f} of its time, asked under 1: {faster}; extra memory",
        f"{found['extra']:.2%} of the rows, asked under 2%: {verdict(found['extra'] < 0.02)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="SECTION", action="append", default=[])
    parser.add_argument("--table2", action="store_true", help="also time Table 2 of the paper, extrapolated")
    parser.add_argument("--full", action="store_true", help="run Table 2 in full instead (up to half an hour)")
    parser.add_argument(
        "--write",
        type=Path,
        nargs="?",
        const=EVIDENCE,
        help="write the report and the figure to this folder (without: the figure to the temporary one)",
    )
    parser.add_argument("--busy-ok", action="store_true", help="for development: go on when others use the machine")
    parser.add_argument("--small", action="store_true", help="for development: small sizes")
    arguments = parser.parse_args()
    scale = TRIAL if arguments.small else CLAIMED
    warnings.simplefilter("ignore", dpci.errors.DpciWarning)
    folder = arguments.write or Path(tempfile.gettempdir())
    sections: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "agreement": ("The opponent computes the same", lambda: agreement(scale)),
        "kdd": ("KDD Cup 1999, d=10", lambda: contest(*kdd(scale.size(450_000)), (200, 300), scale, repeats=True)),
        "dense10": ("Dense, d=10", lambda: contest(*rows(scale.size(450_000), 10), (45, 80), scale, repeats=False)),
        "dense90": ("Dense, d=90", lambda: contest(*rows(scale.size(100_000), 90), (12, 20), scale, repeats=False)),
        "cost": ("Cost against n, d and threads", lambda: cost_figure(scale, folder / "replicates_cost.svg")),
        "kddfull": ("The shape of the full KDD Cup 1999 file", lambda: full_kdd(scale)),
        "bigfit": ("One large fit", lambda: large_fit(scale)),
        "table2": ("Table 2 of Wang, Kifer & Lee", lambda: table2(scale, full=arguments.full)),
    }
    unknown = next((name for name in arguments.only if name not in sections), None)
    if unknown is not None:
        parser.error(f"--only must name one of {', '.join(sections)}, got {unknown!r}")
    if arguments.write and (arguments.only or not os.environ.get("DPCI_DATA")):
        parser.error("--write needs all sections and DPCI_DATA, got --only or no DPCI_DATA")
    chosen = arguments.only or [name for name in sections if name != "table2"]
    if arguments.table2 and "table2" not in chosen:
        chosen.append("table2")
    print_report(sections, chosen, arguments)


def print_report(
    sections: dict[str, tuple[str, Callable[[], list[str]]]], chosen: Sequence[str], arguments: argparse.Namespace
) -> None:
    """Run and print the sections one by one, each only if nobody else used the machine meanwhile."""
    printed: list[str] = []

    def put(*lines: str) -> None:
        for line in lines:
            printed.append(f"BUSY {line}".rstrip() if arguments.busy_ok else line)
            print(printed[-1], flush=True)

    def refuse_if_busy(watch: OthersWatch, when: str) -> None:
        share = watch.share()
        if share > OTHERS_ALLOWED and not arguments.busy_ok:
            sys.exit(f"others may use {OTHERS_ALLOWED:.0%} of a core, got {share:.0%} {when}; see --busy-ok")

    watch = OthersWatch()
    time.sleep(1)
    refuse_if_busy(watch, "before the run")
    if os.getloadavg()[0] > LOAD_ALLOWED and not arguments.busy_ok:
        sys.exit(f"the load must be at most {LOAD_ALLOWED} before the run, got {os.getloadavg()[0]:.2f}; see --busy-ok")
    put(
        "# Bootstrap replicates: speed",
        "",
        f"{machine()}, dpci {dpci.__version__}, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )
    if arguments.small:
        put("", "SMALL: sizes of a trial run, no evidence")
    for name in chosen:
        title, run = sections[name]
        if name in NEED_KDD and not os.environ.get("DPCI_DATA"):
            put("", f"## {title}", "", "left out: DPCI_DATA is not set")
            continue
        watch = OthersWatch()
        lines = run()
        refuse_if_busy(watch, f"during {name}, which is not printed")
        put("", f"## {title}", "", *lines)
    if arguments.write:
        (arguments.write / "replicates.md").write_text("\n".join([*printed, ""]))


if __name__ == "__main__":
    main()
