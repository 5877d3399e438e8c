"""The layer rules: which module may import which, in the core, the bindings and the Python package.

Privacy rests on them: data meets noise in `mechanism` alone, and intervals are computed where no data can be seen.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "rust" / "dpci-core" / "src"
BINDINGS = ROOT / "rust" / "dpci-py" / "src"
PACKAGE = ROOT / "python" / "dpci"

# What each module of the core may import besides `error` and itself; `exec` runs loops on threads.
ALLOWED = {
    "error": set(),
    # Mistakes that tests of the tests switch on; constants in every other build.
    "bugs": set(),
    # Which errors the data can cause.
    "refusals": set(),
    "exec": set(),
    "linalg": {"exec"},
    "loss": {"linalg"},
    "design": {"exec", "linalg", "loss"},
    # Sums over all records, wherever the rows are; who asks for sums does not see the rows.
    "records": {"design", "exec", "linalg", "loss"},
    "objective": {"exec", "linalg", "loss", "records"},
    "moments": {"design", "exec", "linalg", "loss", "records"},
    "solver": {"exec", "linalg"},
    "erm": {"design", "exec", "linalg", "loss", "objective", "records", "solver"},
    "noise": {"bugs"},
    "privacy": {"bugs", "loss"},
    "interval": {"exec", "linalg", "noise", "privacy"},
    # Bounds of records: what these functions read of released values and of the record, no noise and no release.
    "per_instance": {"design", "exec", "linalg", "loss", "privacy"},
    "mechanism": {
        "bugs",
        "design",
        "erm",
        "exec",
        "interval",
        "linalg",
        "loss",
        "moments",
        "noise",
        "objective",
        "per_instance",
        "privacy",
        "records",
        "solver",
    },
}
# A study repeats mechanisms, so it may import all of them.
ALLOWED["study"] = {*ALLOWED["mechanism"], "mechanism", "refusals"}

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
    assert {module_of(path) for path in core_files()} <= set(ALLOWED)


@pytest.mark.parametrize("path", core_files(), ids=lambda p: str(p.relative_to(CORE)))
def test_core_imports(path):
    module = module_of(path)
    code = rust_code(path)
    beyond = crate_imports(code) - ALLOWED[module] - {module, "error"}
    assert not beyond, f"{module} may import only {sorted(ALLOWED[module])}, but imports {sorted(beyond)}"
    # A path that climbs to the crate root would escape the check above.
    assert "super::super" not in code
    for crate, homes in CRATE_HOMES.items():
        if module not in homes:
            assert not re.search(rf"\b{crate}::", code), f"{crate} may be named only in {sorted(homes)}"


def test_data_meets_noise_in_the_mechanisms_alone():
    meeting = {
        module
        for module, allowed in ALLOWED.items()
        if "noise" in allowed and allowed & {"design", "moments", "objective", "erm", "records"}
    }
    assert meeting == {"mechanism", "study"}
    assert not ALLOWED["interval"] & {"design", "erm", "loss", "moments", "objective", "records"}
    assert ALLOWED["noise"] == {"bugs"}


def test_nothing_rests_on_studies():
    assert not [module for module, allowed in ALLOWED.items() if "study" in allowed]


def test_studies_alone_merge_and_resample():
    # A fit takes the rows as they come: merging them would cost more than it saves.
    for path in core_files():
        if module_of(path) not in {"design", "study"}:
            assert not re.search(r"\.merged\(|\bResampler\b", rust_code(path)), path.name


def test_studies_never_release():
    # Their noise is seeded; the generator of releases takes its randomness from the operating system.
    for path in sorted((CORE / "study").glob("*.rs")):
        assert "ReleaseGenerator" not in rust_code(path), path.name
    assert "pub struct ReleaseGenerator" in "".join(
        p.read_text(encoding="utf-8") for p in (CORE / "noise").glob("*.rs")
    )


def test_the_page_on_architecture_has_the_same_rules():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", page, re.MULTILINE)
    assert {name for name, _ in rows} == set(ALLOWED)
    for name, cell in rows:
        if "all above" not in cell:
            assert set(re.findall(r"`(\w+)`", cell)) == ALLOWED[name], name


def test_core_does_not_know_python():
    manifest = (CORE.parent / "Cargo.toml").read_text(encoding="utf-8")
    assert "pyo3" not in manifest
    assert "numpy" not in manifest


@pytest.mark.parametrize("path", sorted(BINDINGS.rglob("*.rs")), ids=lambda p: p.name)
def test_bindings_decide_nothing(path):
    # A condition ends at its block or, in a match guard, at the arrow.
    for condition in re.findall(r"\bif (?!let\b)([^{]*?)(?:\{|=>)", rust_code(path)):
        assert not re.search(r"[<>]|[=!]=\s*-?\d", condition), (
            f"a decision on a number belongs in the core: if {condition}"
        )


def python_imports(path):
    """Modules of the package that a file imports at its top or in a function, as first names after `dpci`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checking = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    found = set()
    for node in ast.walk(tree):
        if node in checking:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "dpci":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpci."):
            found.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("dpci.")}
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path.name}: imports are absolute"
    return found


RESULT_MODULES = [
    "_baseline_fit",
    "_baseline_record",
    "_contrasts",
    "_error_law",
    "_html",
    "_html_plot",
    "_html_report",
    "_html_style",
    "_linear_model",
    "_mean_intervals",
    "_quadratic_tail",
    "_record_checks",
    "_report",
    "_report_plots",
    "_report_record",
    "_selection",
    "_simultaneous",
    "_study_plot",
    "_tuning_result",
    "comparison",
    "domain",
    "hypotheses",
    "inference",
    "intervals",
    "plotting",
    "record",
    "results",
    "study_results",
    "summary",
    "tables",
]


@pytest.mark.parametrize("name", RESULT_MODULES)
def test_results_see_no_data(name):
    data_side = {"api", "datasets", "schema", "settings", "lowlevel", "cli"}
    assert not python_imports(PACKAGE / f"{name}.py") & data_side


def test_python_foundations():
    assert python_imports(PACKAGE / "errors.py") == set()
    assert python_imports(PACKAGE / "_optional.py") == {"errors"}
    assert python_imports(PACKAGE / "validation.py") == {"errors"}
    assert python_imports(PACKAGE / "_frames.py") == {"_optional", "errors"}
    assert python_imports(PACKAGE / "arrays.py") == {"_frames", "errors"}


@pytest.mark.parametrize(
    ("release", "home"),
    [
        ("fit", "api.py"),
        ("fit_parts", "api.py"),
        ("release_report", "per_instance.py"),
        ("release_functional_mechanism", "baselines.py"),
        ("release_histogram", "baselines.py"),
        ("release_tuning", "tuning.py"),
    ],
)
def test_one_place_releases(release, home):
    callers = {path.name for path in PACKAGE.rglob("*.py") if f"_core.{release}(" in path.read_text(encoding="utf-8")}
    assert callers == {home}


def test_the_map_of_the_files_names_every_module():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    files = [*PACKAGE.glob("*.py"), *(p for p in (CORE / "mechanism").glob("*.rs") if p.name != "mod.rs")]
    assert sorted(path.name for path in files if f"`{path.name}`" not in text) == []
    homes = text.split("has one home", 1)[1].split("\n\n", 1)[0]
    for name in ("api", "per_instance", "tuning", "baselines"):
        assert f"`{name}.py`" in homes


STUDY_MODULES = {"simulate", "_study", "_replicates", "_checkpoint", "study_results"}


def test_study_modules_rest_on_each_other_in_one_order():
    assert python_imports(PACKAGE / "_checkpoint.py") == {"errors"}
    assert python_imports(PACKAGE / "study_results.py") == {"_study_plot", "tables"}
    assert python_imports(PACKAGE / "_replicates.py") & STUDY_MODULES == {"_checkpoint"}
    assert python_imports(PACKAGE / "_study.py") & STUDY_MODULES == {"_checkpoint", "_replicates"}
    assert python_imports(PACKAGE / "simulate.py") & STUDY_MODULES == {"_replicates", "_study", "study_results"}


def test_nothing_private_comes_from_a_study():
    # A study makes no private result, and what makes one knows of no study.
    for name in STUDY_MODULES:
        assert not python_imports(PACKAGE / f"{name}.py") & {"record", "results"}
    for path in PACKAGE.glob("*.py"):
        if path.stem not in {*STUDY_MODULES, "__init__"} and not path.stem.endswith(("_command", "_commands")):
            assert not python_imports(path) & STUDY_MODULES, path.name


UTILITY_MODULES = {
    "utility",
    "_error_bounds",
    *(f"_utility_{part}" for part in ("curve", "expected", "interpolation", "metrics", "path", "plot", "search")),
}


def test_utility_modules_are_apart_from_what_is_private():
    for name in UTILITY_MODULES:
        assert not python_imports(PACKAGE / f"{name}.py") & {"record", "results", *STUDY_MODULES}
    for path in PACKAGE.glob("*.py"):
        if path.stem not in {*UTILITY_MODULES, "__init__"} and not path.stem.endswith(("_command", "_commands")):
            assert not python_imports(path) & UTILITY_MODULES, path.name
    assert python_imports(PACKAGE / "_utility_interpolation.py") == set()
    makers = {path.name for path in PACKAGE.rglob("*.py") if "_core.Utility(" in path.read_text(encoding="utf-8")}
    assert makers == {"utility.py"}


def test_scikit_learn_stays_in_its_folder():
    # The estimators stand on the functions that release; nothing stands on them but their name in the package.
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name != "sklearn":
            assert "sklearn" not in python_imports(path), path.name
            assert not re.search(r"^\s*(from|import) sklearn\b", path.read_text(encoding="utf-8"), re.MULTILINE), (
                path.name
            )
    for path in (PACKAGE / "sklearn").glob("*.py"):
        assert not python_imports(path) & {*STUDY_MODULES, *UTILITY_MODULES, "_core"}, path.name
        # No private module and no private name of scikit-learn: they change without notice.
        for line in re.findall(r"^\s*(?:from|import) sklearn.*$", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert not re.search(r"[. ]_", line), line


def test_one_place_makes_a_study():
    makers = {path.name for path in PACKAGE.rglob("*.py") if "_core.Study(" in path.read_text(encoding="utf-8")}
    assert makers == {"_replicates.py"}


def source_files():
    return sorted([*CORE.rglob("*.rs"), *BINDINGS.rglob("*.rs"), *PACKAGE.rglob("*.py")])


@pytest.mark.parametrize("path", source_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_say_what_they_are_for(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        assert text.startswith("//! ")
    else:
        assert (ast.get_docstring(ast.parse(text)) or "").split("\n")[0].endswith(".")


def written_files():
    patterns = ("rust/**/*.rs", "python/**/*.py", "tests/**/*.py", "benches/**/*.py", "examples/**/*.py")
    return sorted(path for pattern in patterns for path in ROOT.glob(pattern))


@pytest.mark.parametrize("path", written_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_are_short(path):
    n_lines = len(path.read_text(encoding="utf-8").splitlines())
    assert n_lines <= 400, f"a file must have at most 400 lines, got {n_lines}"
