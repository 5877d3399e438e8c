"""Makes python/dpci/datasets/adult_sample.csv.gz: 4,000 complete rows of adult.data, drawn once with a fixed seed."""

import argparse
import gzip
from pathlib import Path

import numpy as np

from dpci.datasets.catalogue import ADULT
from dpci.datasets.files import read

N_ROWS = 4_000
SEED = 1994
TARGET = Path(__file__).parents[1] / "python" / "dpci" / "datasets" / "adult_sample.csv.gz"


def main() -> None:
    """Read adult.data (DPCI_DATA, cache or network) and write the sample; the same content every time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=TARGET)
    output = parser.parse_args().output
    lines = read(ADULT.files["train"]).decode().splitlines()
    complete = [line.replace(", ", ",") for line in lines if line and "?" not in line]
    chosen = np.sort(np.random.default_rng(SEED).choice(len(complete), N_ROWS, replace=False))
    rows = [",".join(ADULT.layout.columns), *(complete[i] for i in chosen)]
    output.write_bytes(gzip.compress("\n".join([*rows, ""]).encode(), compresslevel=9, mtime=0))
    print(f"{output}: {N_ROWS} of {len(complete)} complete rows, {output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
