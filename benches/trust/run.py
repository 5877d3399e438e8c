"""Makes an environment for each system, runs its checks there, and prints the comparison with all evidence as Markdown.

`python benches/trust/run.py > docs/evidence/trust.md`; dpci is what this interpreter has installed. Environments are
kept in a cache folder outside of the repository, with what the checks of other systems found: these run again when a
script or a pin changes, or with --fresh. Tumult needs Java. A system whose environment cannot be made, or whose
checks fail, is reported as such.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from _environments import CACHE, environment, git, now, versions

HERE = Path(__file__).parent
OPPONENTS = ("diffprivlib", "opendp", "tumult")
TITLES = {"dpci": "dpci", "diffprivlib": "diffprivlib", "opendp": "OpenDP", "tumult": "Tumult"}
PACKAGES = ("diffprivlib", "scikit-learn", "opendp", "tmlt.core", "tmlt.analytics", "pyspark", "randomgen")
PROPERTIES = (
    "low bits, basic noise",
    "low bits, regression",
    "repeated noise",
    "solver error",
    "seed policy",
    "ledger",
    "composition",
    "audit tool",
    "audit of its regression",
    "fuzzing",
    "proofs",
    "rows beyond the bound",
    "intervals",
)


def findings(name: str, interpreter: Path) -> tuple[list[dict], bool]:
    """Lines that the system's script prints, and whether it came to its end."""
    with tempfile.TemporaryDirectory() as folder:
        settings = dict(os.environ, PYTHONPATH=str(HERE), PYTHONWARNINGS="ignore")
        command = [interpreter, HERE / f"check_{name}.py"]
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        lines.append({"property": "the others", "finding": f"failed: {done.stderr.strip()[-300:]}", "how": "run"})
    return lines, done.returncode == 0


def kept_findings(name: str, interpreter: Path, *, fresh: bool) -> tuple[list[dict], str]:
    """Findings and their date; from the cache where the same scripts have run in the same environment."""
    scripts = (HERE / "_probe.py").read_bytes() + (HERE / f"check_{name}.py").read_bytes()
    kept = interpreter.parent.parent / f"findings-{hashlib.sha256(scripts).hexdigest()[:12]}.json"
    if kept.exists() and not fresh:
        saved = json.loads(kept.read_text(encoding="utf-8"))
        return saved["lines"], saved["date"]
    lines, complete = findings(name, interpreter)
    date = now()
    if complete:
        kept.write_text(json.dumps({"date": date, "lines": lines}), encoding="utf-8")
    return lines, date


def heading(software: dict[str, str]) -> None:
    """Commit, date and versions."""
    changed = " with changes not committed" if git("status", "--porcelain", "--untracked-files=no") else ""
    print("# Evidence: dpci and three other systems, property by property\n")
    print("Written by `benches/trust/run.py`; [trust.md](../trust.md) says what follows from it.\n")
    try:
        installed = version("dpci")
    except PackageNotFoundError:
        installed = "not installed here"
    print(f"- dpci {installed}, commit {git('rev-parse', '--short', 'HEAD')}{changed}; run {now()}")
    print(f"- Python {sys.version.split()[0]}")
    for name, said in software.items():
        print(f"- environment of {TITLES[name]}: {said}")


def table(found: dict[str, list[dict]]) -> None:
    """One row a property, one column a system."""
    print("\n## Findings\n")
    print("| property | " + " | ".join(TITLES[name] for name in found) + " |")
    print("|---" * (len(found) + 1) + "|")
    seen = {line["property"] for lines in found.values() for line in lines}
    for prop in (*PROPERTIES, *sorted(seen - set(PROPERTIES))):
        cells = [
            "<br>".join(
                f"{line['finding']} [{line['how']}]".replace("|", "\\|") for line in lines if line["property"] == prop
            )
            for lines in found.values()
        ]
        print(f"| {prop} | " + " | ".join(cell or "-" for cell in cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the environments")
    parser.add_argument("--fresh", action="store_true", help="run the checks of all systems again")
    parser.add_argument("--only", choices=TITLES, action="append", help="leave the other systems out")
    arguments = parser.parse_args()

    software, found = {}, {}
    read = [json.loads(line) for line in (HERE / "reading.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in arguments.only or TITLES:
        try:
            requirements = HERE / f"requirements_{name}.txt"
            interpreter = environment(requirements, arguments.cache) if name in OPPONENTS else Path(sys.executable)
        except subprocess.CalledProcessError as error:
            found[name] = [{"property": "all", "finding": f"no environment: {error}", "how": "run"}]
            continue
        if name in OPPONENTS:
            found[name], date = kept_findings(name, interpreter, fresh=arguments.fresh)
            software[name] = f"{', '.join(versions(interpreter, PACKAGES))}; run {date}"
        else:
            found[name], _ = findings(name, interpreter)
        found[name] += [dict(line, how=f"read: {line['address']}") for line in read if line["system"] == TITLES[name]]

    heading(software)
    table(found)
    print("\n## Lines of the scripts\n\n```json")
    for name, lines in found.items():
        for line in lines:
            print(json.dumps({"system": TITLES[name], **line}, ensure_ascii=False))
    print("```")


if __name__ == "__main__":
    main()
