"""Sizes of the product, and files that a value visits on its way: the figures by which the layout is judged.

Counts lines; follows a result to its page, and rows and targets into releases; lists the files that name a public
choice. Prints Markdown.
"""

import ast
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import dpci
from _studies import markdown
from _timing import commit

ROOT = Path(__file__).parents[1]
PACKAGE = str(ROOT / "python" / "dpci")
CHOICES = ("rows", "n_public", "on_violation", "neighbors", "budget", "persons", "weights")


def source_files(folder: str, ending: str) -> list[Path]:
    """Files of a folder, without what is built."""
    found = (ROOT / folder).rglob(f"*{ending}")
    return sorted(path for path in found if not {"target", "__pycache__"} & set(path.parts))


def is_test(path: Path) -> bool:
    """Whether a file of Rust holds tests or benchmarks alone, and what only they use."""
    within = {"tests", "benches", "examples"} & set(path.parts[:-1])
    return path.name == "build.rs" or bool(within) or path in modules_of_tests()


@cache
def modules_of_tests() -> frozenset[Path]:
    """Files of Rust that are compiled for tests alone, as the files that name them say."""
    found = []
    for path in source_files("rust", ".rs"):
        folder = path.parent if path.name in {"mod.rs", "lib.rs"} else path.with_suffix("")
        names = re.findall(
            r'#\[cfg\((?:test|feature = "testing")\)\]\s*(?:#\[.*\]\s*)?(?:pub(?:\(crate\))? )?mod (\w+);',
            path.read_text(encoding="utf-8"),
        )
        found += [folder / f"{name}.rs" for name in names]
    return frozenset(found)


def lines(path: Path) -> int:
    """Lines of a file, without the tests at the end of one of Rust."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".rs":
        text = re.split(r"^#\[cfg\(test\)\]\nmod tests \{", text, maxsplit=1, flags=re.MULTILINE)[0]
    return text.count("\n")


def sizes() -> Iterator[list[object]]:
    """Lines of the parts of the product, and of the tests of the package."""
    rust = [path for path in source_files("rust", ".rs") if not is_test(path)]
    parts = {
        "package": source_files("python", ".py"),
        "stub": source_files("python", ".pyi"),
        "core, without tests": [path for path in rust if "dpci-core" in path.parts],
        "bindings": [path for path in rust if "dpci-py" in path.parts],
    }
    counts = {name: sum(map(lines, paths)) for name, paths in parts.items()}
    yield from ([name, len(paths), f"{counts[name]:,}"] for name, paths in parts.items())
    yield ["product", sum(map(len, parts.values())), f"{sum(counts.values()):,}"]
    tests = source_files("tests", ".py")
    yield ["tests of the package", len(tests), f"{sum(map(lines, tests)):,}"]


def visits(call: Callable[[], object], *, of: Any = None) -> list[str]:
    """Files of the package that a call enters, in order, without repetitions in a row.

    With ``of``, an array, only functions that have it or a view of it among their arguments, or in a tuple of them.
    """
    found: list[str] = []

    def holds(value: object) -> bool:
        if isinstance(value, tuple):
            return any(map(holds, value))
        return isinstance(value, np.ndarray) and value.size and np.shares_memory(value, of)

    def entered(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(PACKAGE):
            return
        if of is not None and not any(map(holds, frame.f_locals.values())):
            return
        if not found or found[-1] != name:
            found.append(name)

    sys.setprofile(entered)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [str(Path(name).relative_to(PACKAGE)) for name in found]


def journeys() -> Iterator[list[object]]:
    """Files on the ways that a maintainer follows most."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (500, 3))
    y = np.where(rng.random(500) < 0.5, 0.0, 1.0)
    fit = {"budget": dpci.PureDP(8.0), "l2_strength": 0.1, "classes": (0, 1), "seed": 1}
    moments = {"budget": dpci.ZCDP(8.0), "bounds": (-1.0, 1.0), "seed": 1}
    dpci.fit(X, y, **fit).to_html()  # what is imported on the way is no part of it
    result = dpci.fit(X, y, **fit)
    ways = {
        "a fit to its page": visits(result.to_html),
        "a fit to its summary": visits(result.summary),
        "X into a fit": visits(lambda: dpci.fit(X, y, **fit), of=X),
        "y into a matrix": visits(lambda: dpci.regression.release(X, y, **moments), of=y),
    }
    for name, way in ways.items():
        returns = sum(b in way[: i + 1] for i, (_, b) in enumerate(pairwise(way)))
        yield [name, len(set(way)), returns, ", ".join(dict.fromkeys(way))]


def public_signatures() -> set[tuple[str, str]]:
    """Return file and name of public functions, and of the methods of public classes."""
    modules = [dpci, *(each for each in (getattr(dpci, name) for name in dpci.__all__) if inspect.ismodule(each))]
    found = [getattr(module, name) for module in modules for name in getattr(module, "__all__", ())]
    members = [member for each in found if inspect.isclass(each) for _, member in inspect.getmembers(each)]
    functions = filter(inspect.isfunction, map(inspect.unwrap, filter(callable, (*found, *members))))
    return {(each.__code__.co_filename, each.__name__) for each in functions}


def long_signatures() -> Iterator[list[object]]:
    """Functions outside of public signatures and commands that take more than the eight parameters of the rule."""
    public = public_signatures()
    for path in source_files("python", ".py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or (str(path), node.name) in public:
                continue
            named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            count = sum(each.arg not in {"self", "cls"} for each in named) + (node.args.kwarg is not None)
            if count > 8 and "commands" not in path.parts:
                yield [str(path.relative_to(PACKAGE)), node.name, count]


def main() -> None:
    """Print the figures."""
    warnings.simplefilter("ignore", dpci.DpciWarning)
    print(f"# Figures of the layout\n\n`python benches/house_figures.py`, commit {commit()}.\n")
    print("\n".join(markdown(["part", "files", "lines"], list(sizes()))))
    print("\nFiles of the package that a value visits, and how often the way comes back to one.\n")
    print("\n".join(markdown(["way", "files", "returns", "which"], list(journeys()))))
    print("\nFunctions that take more than 8 parameters, public ones and commands aside.\n")
    print("\n".join(markdown(["file", "function", "parameters"], list(long_signatures()))))
    print("\nFiles of the package that name a public choice.\n")
    texts = [path.read_text(encoding="utf-8") for path in source_files("python", ".py")]
    named = [[name, sum(bool(re.search(rf"\b{name}\b", text)) for text in texts)] for name in CHOICES]
    print("\n".join(markdown(["choice", "files"], named)))


if __name__ == "__main__":
    main()
