"""Times fits of coded rows against those of the same rows as 0/1 columns, and against glum on its own categories.

``python benches/contest/coded.py --glum PYTHON --write`` needs DPCI_DATA and an idle machine with two cores; PYTHON is
the interpreter of an environment with requirements_newest.txt. ``--quick`` cuts the generated data, which is no
evidence. Every fit runs in a process of its own, on as many cores as it may use.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import dpci
from dpci.schema.table import encoded_rows

sys.path.insert(0, str(Path(__file__).parents[1]))

from _environments import git, now
from _timing import machine

HERE = Path(__file__)
ROUNDS = 5
TARGET = 1e-5
Coded = dict[str, Any]


def adult() -> Coded:
    """Every label that occurs, numbers by their greatest value, and ones: 105 columns."""

    layout = dpci.datasets.load_layout("adult")
    table = dpci.datasets.load_table("adult", "all", drop_missing=True)
    order = np.random.default_rng(0).permutation(len(table[layout.target]))[:30_162]
    numbers = [table[name][order] / np.abs(table[name]).max() for name in layout.numeric]
    labels = [
        np.unique(table[name], return_inverse=True)
        for name in layout.columns
        if name not in {*layout.numeric, *layout.ignored, layout.target}
    ]
    codes = [(place[order] + 1, len(distinct)) for distinct, place in labels]
    y = np.where(np.isin(table[layout.target][order], layout.positive), 1.0, -1.0)
    return coded([*numbers, np.ones(len(order))], codes, y, "logistic")


def kdd() -> Coded:
    """The 10% file by its public schema."""

    table = dpci.datasets.load_table("kddcup99")
    schema = dpci.datasets.load_schema("kddcup99")
    rows = encoded_rows(schema, table)
    scale = 1.0 / rows.categories[0][2]
    categories = [levels for _, levels, _ in rows.categories]
    codes = list(zip(rows.codes.T, categories, strict=True))
    return coded(list(rows.numbers.T * scale), codes, schema.targets(table), "logistic")


def claims(n: int) -> Coded:
    """Like freMTPL2 in bins: 600,000 x 322, counts of claims."""
    sizes = (2, 6, 11, 12, 22, 30, 50, 80, 104)
    return generated(n, 5, sizes, "poisson")


def clicks(n: int) -> Coded:
    """Like Criteo: 13 numbers and 26 categories of up to 1,000 levels, of which few are frequent."""
    sizes = tuple(int(m) for m in np.geomspace(3, 1000, 26))
    return generated(n, 13, sizes, "logistic")


def generated(n: int, p: int, sizes: tuple[int, ...], loss: str) -> Coded:
    rng = np.random.default_rng(1)
    numbers = rng.uniform(-1.0, 1.0, (p, n))
    codes, predictor = [], 0.3 * numbers.sum(axis=0) / np.sqrt(p)
    for m in sizes:
        share = 1.0 / np.arange(1, m + 1)
        places = rng.choice(m, n, p=share / share.sum())
        predictor += rng.normal(0.0, 0.2, m)[places]
        codes.append((places + 1, m))
    if loss == "poisson":
        y = np.minimum(rng.poisson(np.exp(predictor - 2.0)), 10.0)
    else:
        y = np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(1.0 - predictor)), 1.0, -1.0)
    return coded(list(numbers), codes, y, loss)


def coded(numbers: list[Any], codes: list[tuple[Any, int]], y: Any, loss: str) -> Coded:
    """The rows with the numbers first, then the categories, those of few levels first."""
    codes.sort(key=lambda each: each[1])
    levels = [m for _, m in codes]
    dtype = np.uint8 if max(levels) < 256 else np.uint16
    return {
        "numbers": np.ascontiguousarray(np.column_stack(numbers)),
        "codes": np.ascontiguousarray(np.column_stack([each for each, _ in codes]).astype(dtype)),
        "y": np.asarray(y, dtype=np.float64),
        "levels": np.array(levels),
        "loss": np.array(loss),
    }


DATA = {"Adult": adult, "KDD 10%": kdd, "claims": claims, "clicks": clicks}
SIZES = {"claims": 600_000, "clicks": 1_000_000}


def measured(python: str, file: Path, kind: str, n_cores: int, rounds: int) -> dict[str, Any]:
    threads = {name: str(n_cores) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    command = ["taskset", "-c", "0" if n_cores == 1 else "0,1", python, str(HERE.with_name("coded_worker.py"))]
    run = subprocess.run(
        [*command, str(file), kind, str(n_cores), str(rounds)],
        env={**os.environ, **threads},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        return {"error": run.stderr.strip().splitlines()[-1][:90] if run.stderr.strip() else f"exit {run.returncode}"}
    return {**json.loads(run.stdout.splitlines()[-1])}


def kinds(name: str) -> list[str]:
    """Fits that are timed, the one on codes before that on 0/1 columns."""
    before = "sparse" if name == "clicks" else "dense"
    tasks = ["minimiser"] if name in SIZES else ["minimiser", "private"]
    found = [f"dpci: {task} {storage}" for task in tasks for storage in ("coded", before)]
    if name == "KDD 10%":
        found.append("dpci: minimiser sparse")
    if name == "Adult":
        found += ["dpci: replicates coded", "dpci: replicates dense"]
    return found


def lines_of(name: str, file: Path, glum: str, rounds: int) -> list[str]:
    exact = None
    rows = []
    for kind in kinds(name):
        found = [measured(sys.executable, file, kind, cores, rounds) for cores in (1, 2)]
        rows.append((kind, found))
        if exact is None and "found" in found[0]:
            exact = np.load(found[0]["found"])
        print(rows[-1], flush=True)
    if glum and exact is not None:
        for tolerance in (1e-4, 1e-5, 1e-6, 1e-8):
            one = measured(glum, file, f"glum: {tolerance}", 2, 1)
            distance = float(np.linalg.norm(np.load(one["found"]) - exact)) if "found" in one else np.inf
            print(tolerance, one, distance, flush=True)
            if distance <= 2 * TARGET or "error" in one:
                break
        found = [measured(glum, file, f"glum: {tolerance}", cores, rounds) for cores in (1, 2)]
        rows.append((f"glum: {tolerance:g}, {distance:.0e} from dpci", found))
        print(rows[-1], flush=True)
    return [row(name, kind, found) for kind, found in rows]


def row(name: str, kind: str, found: list[dict[str, Any]]) -> str:
    times = [f"{each['seconds']:.4g} s" if "seconds" in each else each["error"] for each in found]
    sizes = [f"{found[1][key]:.0f}" if key in found[1] else "-" for key in ("rows", "extra")]
    return f"| {' | '.join([name, kind, *times, *sizes])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glum", default="", metavar="PYTHON", help="interpreter of an environment with glum")
    parser.add_argument("--only", action="append", default=[], choices=list(DATA))
    parser.add_argument("--quick", action="store_true", help="a tenth of the generated rows: no evidence")
    parser.add_argument("--write", action="store_true", help="write docs/evidence/coded.md")
    chosen = parser.parse_args()
    table = ["| rows | fit | 1 core | 2 cores | rows, MB | more at its peak, MB |", "|---|---|---|---|---|---|"]
    sizes = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only or DATA:
            make: Any = DATA[name]
            data = make(SIZES[name] // (10 if chosen.quick else 1)) if name in SIZES else make()
            p, levels = data["numbers"].shape[1], data["levels"]
            shape = f"{p} numbers, {len(levels)} categories, {p + levels.sum()} columns"
            sizes.append(f"{name}: {len(data['y']):,} rows, {shape}")
            file = Path(folder) / f"{name.replace(' ', '_')}.npz"
            np.savez(file, **data)
            del data
            table += lines_of(name, file, chosen.glum, ROUNDS)
    load = f"load of the machine {os.getloadavg()[2]:.1f} in the last quarter of an hour"
    commit = git("rev-parse", "--short", "HEAD")
    head = [f"{machine(load=False)}, commit {commit}, {now()}, {load}", "", *(f"- {each}" for each in sizes), ""]
    report = "\n".join([*head, *table])
    print(report)
    if chosen.write:
        (HERE.parents[2] / "docs/evidence/coded.md").write_text(PAGE.format(report=report), encoding="utf-8")


PAGE = """# Evidence: coded rows

Written by `python benches/contest/coded.py --glum PYTHON --write`.

Fits of numbers and codes, beside those of the same rows as 0/1 columns: dense, or sparse where a dense matrix does not
fit into memory. glum 3.4.1 has the same numbers and categories as a split matrix of tabmat 4.2.1, which stores codes
too. *minimiser*: mean loss plus the ridge with λ = 0.002, within 1e-5 by a certificate; glum with the loosest tolerance
that comes within 2e-5 of it. *private*: `dpci.fit` at ε = 1 without matrices. *replicates*: a study of 64 replicates
with intervals. Each time is the least of five in a process of its own, pinned to as many cores, which holds the rows
before the clock starts. Memory is what the process held at its peak beyond what it held before, what a first fit loads
included.

{report}
"""

if __name__ == "__main__":
    main()
