"""Attacks in a network log of a file a day, with semicolons and decimal commas, a part in memory at a time."""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpci
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, Schema

schema = Schema(
    columns=(
        NumericColumn(name="bytes", lower=0, upper=1e6, transform="signed_log", unit="byte"),
        NumericColumn(name="errors", lower=0, upper=1, scale="unit"),
        CategoricalColumn(name="protocol", categories=("tcp", "udp", "icmp"), reference="tcp"),
    ),
    target=ClassTarget(column="kind", negative=("normal",), positive=("attack",)),
)
with tempfile.TemporaryDirectory() as folder:
    for day in range(5):  # a file a day
        rng = np.random.default_rng(day)
        size, errors = rng.lognormal(6, 2, 4_000), rng.beta(0.4, 2.0, 4_000)
        protocol = rng.choice(["tcp", "udp", "icmp"], 4_000, p=[0.7, 0.2, 0.1])
        attack = rng.logistic(size=4_000) < 3.0 * errors - 0.3 * np.log1p(size) + 1.5 * (protocol == "icmp")
        rows = zip(size, errors, protocol, np.where(attack, "attack", "normal"), strict=True)
        lines = [f"{a:.0f};{b:.3f};{c};{d}".replace(".", ",") for a, b, c, d in rows]
        Path(folder, f"day{day}.csv").write_text("\n".join(["bytes;errors;protocol;kind", *lines]))
    log = dpci.Chunks.from_csv(folder, schema=schema, delimiter=";", decimal=",", chunk_rows=2_000)
    result = dpci.fit(log, budget=dpci.PureDP(2.0), l2_strength=0.002, rows=schema.domain)
print(result.summary())
result.plot(order="estimate")
plt.savefig("network.png", bbox_inches="tight")
