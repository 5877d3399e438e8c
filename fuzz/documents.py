"""Fuzzing of the readers of saved results, guided by coverage of the Python code: needs atheris (see docs/fuzzing.md).

``python fuzz/documents.py fuzz/corpus/documents -max_total_time=300``
"""

import functools
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

with atheris.instrument_imports(include=["dpci"]):
    import dpci
    from support import fuzz_targets, fuzzing
from support.fuzz_documents import read_document

KINDS = (dpci.PrivateFit, dpci.per_instance.Report, dpci.baselines.BaselineFit, dpci.tuning.TuneResult)


def read(data: bytes) -> None:
    """Read a document whose first byte says of which kind it is."""
    if data:
        call = functools.partial(read_document, KINDS[data[0] % len(KINDS)])
        fuzzing.judge(fuzz_targets.Target("document", call, ("text",)), {"text": data[1:]})


def main() -> None:
    """Write the start of a corpus and fuzz."""
    folder = Path(next(argument for argument in sys.argv[1:] if not argument.startswith("-")))
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in fuzz_targets.samples().items():
        if type(value) in KINDS:
            start = bytes([KINDS.index(type(value))])
            (folder / name.replace(" ", "_")).write_bytes(start + value.to_json().encode())
    atheris.Setup([*sys.argv, "-max_len=6000", "-timeout=60"], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
