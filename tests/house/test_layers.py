"""Layers of the core and rooms of the package: the import graph that keeps data and noise apart."""

import ast
import importlib
import inspect
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

import dpci

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
    "faer": {"linalg"}, "pulp": {"linalg", "loss"}, "rayon": {"exec"}, "rand": {"noise", "interval", "study"},
    "rand_distr": {"noise", "interval", "study"}, "hashbrown": {"design"}, "chacha20": {"noise"}, "pyo3": set(),
    "numpy": set(),
}  # fmt: skip


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


FACE = "dpci"

# Files at the top that are no rooms.
ENTRANCES = {"public", "further", "__init__", "__main__"}
MOST_FILES = {"cli": 14, "cli/commands": 14}


class Import(NamedTuple):
    """One imported name: the module of the package that is read, and the name in it, empty for the module itself."""

    importer: str
    module: str
    name: str

    def __str__(self):
        return f"{self.importer} imports {'.'.join(filter(None, (self.module, self.name)))}"


def dotted(path):
    return ".".join(("dpci", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


FILES = {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def read_imports(importer, text, modules):
    """Imports of the package in a text; ``_core`` is free, and relative ones would escape the rules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "dpci" or alias.name.startswith("dpci."):
                    yield Import(importer, alias.name, "")
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{importer}: imports are absolute"
            if node.module != "dpci" and not (node.module or "").startswith("dpci."):
                continue
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in modules:
                    yield Import(importer, whole, "")
                elif whole != "dpci._core" and node.module != "dpci._core":
                    yield Import(importer, node.module, alias.name)


IMPORTS = [each for name, path in FILES.items() for each in read_imports(name, path.read_text("utf-8"), FILES)]


def room(module):
    """The folder or the file at the top that holds a module; "" for the face."""
    return module.split(".")[1] if "." in module else ""


def allowed():
    """The table of docs/architecture.md, in its order: a room and what it may import."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## Rooms of the Python package", 1)[1].split("\n## ", 1)[0]
    found = {}
    for name, cell in re.findall(r"^\| `(\w+)` \|[^|]*\|([^|]*)\|$", section, re.MULTILINE):
        named = set(re.findall(r"`(\w+)`", cell))
        if "all above but" in cell:
            named = set(found) - named
        found[name] = named | ({"errors"} - {name})
    return found


ROOMS_ALLOWED = allowed()


def test_every_import_is_read():
    text = """
def f():
    import dpci.data
    from dpci import _core, fit
if TYPE_CHECKING:
    from dpci import data
from dpci.data import rows
from dpci.data.rows import a, b
from dpci._core import __version__
import dpcix
"""
    found = set(read_imports("x", text, {"dpci", "dpci.data", "dpci.data.rows"}))
    assert found == {
        Import("x", "dpci.data", ""),
        Import("x", "dpci", "fit"),
        Import("x", "dpci.data.rows", ""),
        Import("x", "dpci.data.rows", "a"),
        Import("x", "dpci.data.rows", "b"),
    }


def test_the_table_names_every_room_and_points_upwards():
    top = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(ROOMS_ALLOWED) == top - ENTRANCES
    rooms = list(ROOMS_ALLOWED)
    for i, (name, may) in enumerate(ROOMS_ALLOWED.items()):
        assert (may or set()) <= set(rooms[:i]), f"{name} may import only rooms above it in the table"


def test_rooms_import_what_their_row_allows():
    breaches = [
        str(each)
        for each in IMPORTS
        if room(each.importer) not in {*ENTRANCES, "", room(each.module)}
        and each.module != FACE
        and room(each.module) not in ROOMS_ALLOWED[room(each.importer)]
    ]
    assert breaches == []


def test_nothing_imports_the_face():
    assert [str(each) for each in IMPORTS if each.module == FACE] == []


def circle(edges):
    """Return files that import each other, the first one last again; empty if there are none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_files_import_each_other():
    assert set(circle({"a": ["b"], "b": ["c"], "c": ["b"], "d": ["a", "b"]})) == {"b", "c"}
    edges = defaultdict(set)
    for each in IMPORTS:
        edges[each.importer].add(each.module)
    assert circle(edges) == []


# What lies where.


def test_the_top_holds_what_the_table_names():
    entrances = {f"{name}.py" for name in ENTRANCES}
    files = {path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix != ".so"}
    rooms = {name for name in ROOMS_ALLOWED if not (PACKAGE / f"{name}.py").exists()}
    assert files == {*entrances, *(f"{name}.py" for name in set(ROOMS_ALLOWED) - rooms), "_core.pyi", "py.typed"}
    assert len(entrances | (set(ROOMS_ALLOWED) - rooms)) == 10
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"} == rooms


def test_no_file_begins_with_an_underscore():
    assert [name for name in FILES if re.search(r"\._(?!_)", name)] == []


def test_folders_are_small():
    folders = {path.parent for path in FILES.values()}
    for folder in folders:
        most = MOST_FILES.get(folder.relative_to(PACKAGE).as_posix(), 12)
        n_files = len(list(folder.glob("*.py")))
        assert n_files <= most, f"{folder.name} must have at most {most} files, got {n_files}"


def test_inner_folders_import_nothing():
    public = {f"dpci.{name}" for name in dpci.__all__} | {"dpci", "dpci.sklearn", "dpci.cli"}
    for name, path in FILES.items():
        if path.name == "__init__.py" and name not in public:
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert len(body) == 1, f"{name} must hold a docstring and nothing else"
            assert isinstance(body[0], ast.Expr)


# What is public.


def public_modules():
    modules = [dpci, *(value for name in dpci.__all__ if isinstance(value := getattr(dpci, name), ModuleType))]
    return [*modules, pytest.importorskip("dpci.sklearn", exc_type=ImportError)]


def test_every_public_name_is_there():
    for module in public_modules():
        assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_public_names_are_no_files_of_their_folder():
    # A module of that name would take the place of the object when it is imported.
    for module in public_modules():
        if module is not dpci and hasattr(module, "__path__"):
            files = {path.stem for path in Path(module.__path__[0]).glob("*.py")}
            assert files & set(module.__all__) == set(), module.__name__


def test_public_objects_name_the_module_that_exports_them():
    modules = public_modules()
    names = {module.__name__ for module in modules}
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                assert value.__module__ in names, f"{module.__name__}.{name} says that it is of {value.__module__}"
                assert getattr(importlib.import_module(value.__module__), name) is value


def test_papers_are_written_on_public_names():
    """The published experiments in benches are programs of a user, but for the style of plots that they share."""
    paths = sorted((ROOT / "benches" / "papers").rglob("*.py"))
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}
    style = "dpci.report.style"
    public = {f"{module.__name__}.{name}" for module in public_modules() for name in module.__all__}
    public |= {module.__name__ for module in public_modules()}
    found = {each for name, text in texts.items() for each in read_imports(name, text, public)}
    assert len(found) > 20
    assert [str(each) for each in found if each.module != style and whole(each) not in public] == []
    assert [name for name, text in texts.items() if re.search(r"\b_core\b", text)] == []
    text = "".join(texts.values()).replace(style, "")
    named = set(re.findall(r"(?<!from )(?<!import )\bdpci\.(\w+)", text))
    assert named <= {*dpci.__all__, "sklearn"}
    inner = set(re.findall(r"\bdpci\.(\w+\.[a-zA-Z]\w*)", text))
    assert {each for each in inner if f"dpci.{each}" not in public} == set()


def whole(each):
    return ".".join(filter(None, (each.module, each.name)))


# Who asks the core for a release.


def core_names(text):
    """Names of the core that a file takes: attributes of ``_core``, and names that it imports from there."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "_core":
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "dpci._core":
            yield from (alias.name for alias in node.names)


OF_THE_CORE = {name: set(core_names(path.read_text("utf-8"))) for name, path in FILES.items()}


def callers(function):
    return {name for name, names in OF_THE_CORE.items() if function in names}


def test_the_core_has_one_name():
    # Under another one, or as an attribute of the package, it would escape the readers of this file.
    text = "f = _core.fit_many\nfrom dpci._core import release as release_of"
    assert set(core_names(text)) == {"fit_many", "release"}
    for name, path in FILES.items():
        code = path.read_text(encoding="utf-8")
        assert not re.search(
            r"\bdpci\._core\b(?! import)|\b_core as\b|import .*\bas _core\b|= _core$", code, re.MULTILINE
        ), name


def releases():
    """Functions of the core that spend budget, by their names."""
    stub = (PACKAGE / "_core.pyi").read_text(encoding="utf-8")
    return set(re.findall(r"^def (fit\w*|release\w*)\(", stub, re.MULTILINE))


def test_one_place_releases():
    assert {name: callers(name) for name in releases()} == {
        "release": {
            "dpci.baselines.functional",
            "dpci.baselines.histogram",
            "dpci.model.fit",
            "dpci.model.newton",
            "dpci.per_instance.release",
            "dpci.regression.mechanism",
            "dpci.strata.counts",
            "dpci.tuning.choose",
        },
        "fit_many": {"dpci.model.fit_many"},
        "release_bounds": {"dpci.described.bounds"},
        "release_counts": {"dpci.described.bounds"},
        "release_levels": {"dpci.described.bounds"},
    }
    # Other files name these two as types.
    for made, maker in {"Study": "dpci.simulate.replicates", "Utility": "dpci.utility.measure"}.items():
        assert {name for name, path in FILES.items() if f"_core.{made}(" in path.read_text("utf-8")} == {maker}


def test_what_is_for_tests_only_is_asked_by_no_file():
    assert callers("Testing") == set()


def test_results_ask_for_no_release():
    for name, path in FILES.items():
        if room(name) in {"released", "inference", "report"}:
            assert not OF_THE_CORE[name] & releases(), name
            assert not re.search(r"\brelease_\w+\(", path.read_text(encoding="utf-8")), name


def test_scikit_learn_stays_in_its_folder():
    for name, path in FILES.items():
        lines = re.findall(r"^\s*(?:from|import) sklearn\b.*$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert room(name) == "sklearn" or not lines, name
        # No private module and no private name of scikit-learn: they change without notice.
        assert [line for line in lines if re.search(r"[. ]_", line)] == []
        assert room(name) != "sklearn" or "_core" not in path.read_text(encoding="utf-8"), name
