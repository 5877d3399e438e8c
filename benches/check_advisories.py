"""Compares all dependencies with published advisories: crates with RustSec's, Python packages with PyPA's.

Exit code 0: nothing applies; 1: something does; 2: a source could not be asked. `--rustsec` and `--pypa` name clones of
the databases, for machines that reach no other host.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

import yaml
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
# The folder in which cargo-deny keeps its clone of https://github.com/RustSec/advisory-db.
CLONE = "advisory-db-3157b0e258782691"


def crates(clone):
    """Return the advisories that apply to crates of the wheel, or why none could be had."""
    text = (ROOT / "deny.toml").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "deny.toml")
        offline = []
        if clone is not None:
            Path(folder, CLONE).symlink_to(Path(clone).resolve())
            text = text.replace("[advisories]", f'[advisories]\ndb-path = "{folder}"\nmaximum-db-staleness = "P366D"')
            offline = ["--offline"]
        config.write_text(text, encoding="utf-8")
        command = ["cargo", "deny", *offline, "--format", "json", "--config", str(config), "check", "advisories"]
        try:
            run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None, "cargo is not installed"
    entries = [json.loads(line) for line in run.stderr.splitlines() if line.startswith("{")]
    if not any(entry["type"] == "summary" for entry in entries):
        return None, run.stderr.strip()[:300] or "cargo-deny is not installed"
    fields = [entry["fields"] for entry in entries if entry["type"] == "diagnostic"]
    return [
        f"{each.get('advisory', {}).get('id')}: {each['message']}" for each in fields if each["severity"] == "error"
    ], ""


def packages(clone):
    """Return the advisories that apply to packages of this environment, or why none could be had."""
    installed = {canonicalize_name(each.name): each.version for each in distributions()}
    installed.pop("dpci", None)
    if clone is not None:
        return [found for name, version in installed.items() for found in in_clone(clone, name, version)], ""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(f"{name}=={version}" for name, version in installed.items()))
        file.flush()
        command = ["pip_audit", "--disable-pip", "--no-deps", "--format", "json", "--requirement", file.name]
        run = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    if not run.stdout.startswith("{"):
        return None, run.stderr.strip()[-300:]
    asked = json.loads(run.stdout)["dependencies"]
    skipped = [each["name"] for each in asked if "skip_reason" in each]
    if skipped:
        return None, f"{len(skipped)} of {len(asked)} packages are unknown to the service, {skipped[0]} among them"
    return [f"{each['name']} {each['version']}: {bug['id']}" for each in asked for bug in each["vulns"]], ""


def in_clone(clone, name, version):
    """Yield what a clone of PyPA's database says about one package."""
    for file in sorted(Path(clone, "vulns", name).glob("*.yaml")):
        advisory = yaml.safe_load(file.read_text(encoding="utf-8"))
        for affected in advisory["affected"]:
            ranges = [each["events"] for each in affected.get("ranges", []) if each["type"] == "ECOSYSTEM"]
            if version in affected.get("versions", []) or any(holds(events, version) for events in ranges):
                yield f"{name} {version}: {advisory['id']}"
                break


def holds(events, version):
    """Whether a version lies in a range: between an `introduced` and the next `fixed`."""
    inside, asked = False, Version(version)
    for event in events:
        ((kind, bound),) = event.items()
        if kind == "introduced":
            inside = inside or bound == "0" or Version(bound) <= asked
        elif kind == "fixed":
            inside = inside and asked < Version(bound)
        elif kind == "last_affected":
            inside = inside and asked <= Version(bound)
    return inside


def state_of(clone):
    """Say which state of a clone was asked."""
    if clone is None:
        return "as published today"
    command = ["git", "-C", clone, "log", "-1", "--format=commit %h of %cs"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rustsec", help="clone of RustSec's advisory-db")
    parser.add_argument("--pypa", help="clone of PyPA's advisory-database")
    options = parser.parse_args()
    codes = []
    for what, ask, clone in (("crates, RustSec", crates, options.rustsec), ("packages, PyPA", packages, options.pypa)):
        found, reason = ask(clone)
        said = f"could not be asked: {reason}" if found is None else "; ".join(found) or "nothing applies"
        print(f"- {what} ({state_of(clone)}): {said}")
        codes.append(2 if found is None else 1 if found else 0)
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main())
