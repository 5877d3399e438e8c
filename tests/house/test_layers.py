"""The layer rules: which module of the core may import which, and what the bindings may decide.

Privacy rests on them: data meets noise in `mechanism` alone, and intervals are computed where no data can be seen.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust" / "dpci-core" / "src"
BINDINGS = ROOT / "rust" / "dpci-py" / "src"
PACKAGE = ROOT / "python" / "dpci"


def layers():
    """Imports of each module of the core besides `error` and itself, from the table of docs/architecture.md.

    Its cells name modules, or "all above" and those that are left out.
    """
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").split("## Rooms of the Python package")[0]
    allowed = {}
    for name, cell in re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE):
        named = set(re.findall(r"`(\w+)`", cell))
        allowed[name] = (set(allowed) - {"error"}) - named if "all above" in cell else named
    return allowed


ALLOWED = layers()

# External crates that only some modules may name.
CRATE_HOMES = {
    "faer": {"linalg"},
    "pulp": {"linalg", "loss"},
    "rayon": {"exec"},
    "rand": {"noise", "interval", "study"},
    "rand_distr": {"noise", "interval", "study"},
    "hashbrown": {"design"},
    "chacha20": {"noise"},
    "pyo3": set(),
    "numpy": set(),
}


def rust_code(path):
    """Source without comments, strings and test modules, which may import anything."""
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', path.read_text(encoding="utf-8"))
    text = re.sub(r"//[^\n]*", "", text)
    return re.split(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))? )?mod \w+ \{", text)[0]


def module_of(path):
    """Top-level module of a file of the core."""
    return path.relative_to(CORE).parts[0].removesuffix(".rs")


def crate_imports(code):
    """Top-level modules named after `crate::`, also inside braces."""
    found = set()
    for match in re.finditer(r"\bcrate::", code):
        rest = code[match.end() :]
        found |= set(brace_heads(rest)) if rest.startswith("{") else {re.match(r"\w+", rest).group()}
    # `crate::Error` and `crate::Result` are the module `error`; macros and items in capitals are no modules.
    return {name for name in found if name.islower()}


def brace_heads(text):
    """First identifiers of the entries of a `use` group."""
    depth, at_head = 0, False
    for token in re.finditer(r"[{},]|\w+", text):
        if token.group() == "{":
            depth += 1
            at_head = depth == 1
        elif token.group() == "}":
            depth -= 1
            if depth == 0:
                return
        elif token.group() == ",":
            at_head = depth == 1
        elif at_head:
            yield token.group()
            at_head = False


def test_the_readers_understand_rust():
    assert crate_imports("use crate::{Error, design::{Design, blocks}, loss::Loss};") == {"design", "loss"}
    assert crate_imports("fn f(x: crate::noise::Law) -> crate::Result<()>") == {"noise"}


def core_files():
    # Files that hold tests only are free as test modules are.
    return [p for p in sorted(CORE.rglob("*.rs")) if p.name not in {"lib.rs", "tests.rs", "testing.rs"}]


def test_every_module_of_the_core_has_a_rule():
    assert {module_of(path) for path in core_files()} == set(ALLOWED)
    assert list(ALLOWED)[-1] == "study"


def forbidden_imports(module, code):
    """Names that a file of a module of the core must not have."""
    found = sorted(crate_imports(code) - ALLOWED[module] - {module, "error"})
    # A path that climbs to the crate root would escape the check above.
    found += ["super::super"] * ("super::super" in code)
    crates = [crate for crate, homes in CRATE_HOMES.items() if module not in homes]
    return found + [crate for crate in crates if re.search(rf"\b{crate}::", code)]


def test_core_imports():
    found = {path: forbidden_imports(module_of(path), rust_code(path)) for path in core_files()}
    assert {str(path.relative_to(CORE)): names for path, names in found.items() if names} == {}
    assert forbidden_imports("interval", "use crate::design::Design; use super::super::x; let x: rayon::X;") == [
        "design",
        "super::super",
        "rayon",
    ]


def test_data_meets_noise_in_the_mechanisms_alone():
    meeting = {
        module
        for module, allowed in ALLOWED.items()
        if "noise" in allowed and allowed & {"design", "moments", "objective", "erm", "records"}
    }
    assert meeting == {"mechanism", "study"}
    assert not ALLOWED["interval"] & {"design", "erm", "loss", "moments", "objective", "records"}
    assert ALLOWED["noise"] == {"bugs", "row_domain"}
    assert not ALLOWED["row_domain"]


# What would let a calibration depend on data.
DATA = {"design", "erm", "moments", "objective", "per_instance", "records"}


def test_calibrations_see_neither_data_nor_randomness():
    assert not ALLOWED["spec"] & DATA
    for path in sorted((CORE / "spec").rglob("*.rs")):
        # Of its tests, too: what they would need of data or noise belongs to `mechanism`.
        code = re.sub(r"//[^\n]*", "", path.read_text(encoding="utf-8"))
        assert not crate_imports(code) & (DATA | {"mechanism", "study"}), path.name
        assert not re.search(r"\w*Generator\b", code), f"{path.name} names a generator"
    both = {module for module, allowed in ALLOWED.items() if {"spec", "records"} <= allowed}
    assert both == {"mechanism", "study"}


def test_where_noise_is_added_is_a_choice_and_not_a_fact_of_intervals():
    for path in (CORE / "interval").rglob("*.rs"):
        assert "enum Perturbation" not in path.read_text(encoding="utf-8"), path.name
    assert "pub enum Perturbation" in (CORE / "privacy" / "perturbation.rs").read_text(encoding="utf-8")


def test_nothing_rests_on_studies():
    assert not [module for module, allowed in ALLOWED.items() if "study" in allowed]


def test_studies_alone_merge_and_resample():
    # A fit takes the rows as they come: merging them would cost more than it saves.
    for path in core_files():
        if module_of(path) not in {"design", "study"}:
            assert not re.search(r"\.merged\(|\bResampler\b", rust_code(path)), path.name


def test_studies_never_release():
    # Their noise is seeded; the generator of releases takes its randomness from the operating system.
    for path in sorted((CORE / "study").rglob("*.rs")):
        assert "ReleaseGenerator" not in rust_code(path), path.name
    assert "pub struct ReleaseGenerator" in "".join(
        p.read_text(encoding="utf-8") for p in (CORE / "noise").glob("*.rs")
    )


def test_core_does_not_know_python():
    manifest = (CORE.parent / "Cargo.toml").read_text(encoding="utf-8")
    assert "pyo3" not in manifest
    assert "numpy" not in manifest


def decisions(code):
    """Conditions on numbers, which belong in the core."""
    # A condition ends at its block or, in a match guard, at the arrow.
    conditions = re.findall(r"\bif (?!let\b)([^{]*?)(?:\{|=>)", code)
    return [condition for condition in conditions if re.search(r"[<>]|[=!]=\s*-?\d", condition)]


def test_bindings_decide_nothing():
    files = sorted(BINDINGS.rglob("*.rs"))
    assert [(path.name, found) for path in files for found in decisions(rust_code(path))] == []
    assert decisions("if n > 3 { f() } if name == other { g() }") == ["n > 3 "]


def purpose(path):
    """Whether a file of the package opens with the sentence that states its purpose."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        return text.startswith("//! ")
    return (ast.get_docstring(ast.parse(text)) or "").split("\n")[0].endswith(".")


def test_files_say_what_they_are_for():
    files = sorted([*CORE.rglob("*.rs"), *BINDINGS.rglob("*.rs"), *PACKAGE.rglob("*.py")])
    assert len(files) > 400
    assert [str(path.relative_to(ROOT)) for path in files if not purpose(path)] == []
