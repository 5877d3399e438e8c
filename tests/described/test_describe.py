"""Descriptions of released schemas: every column with what is public of it, known or released."""

import json

import numpy as np
import pytest

import dpci
from dpci.schema import CategoricalColumn, CategoricalTarget, ClassTarget, NumericColumn, PartialSchema, UnboundedColumn

N = 5000
RNG = np.random.default_rng(3)
TABLE = {
    "age": RNG.uniform(18, 90, N), "height": RNG.normal(170, 10, N), "town": RNG.choice(["north", "south"], N),
    "ward": RNG.choice(["A", "B"], N), "ill": RNG.choice(["no", "yes"], N), "wage": RNG.lognormal(3, 0.5, N),
}  # fmt: skip
PARTIAL = PartialSchema(
    columns=(
        UnboundedColumn(name="age", lower=0, upper=150, unit="year"),
        NumericColumn(name="height", lower=100, upper=250, source="register"),
        dpci.schema.UnlistedColumn(name="town", categories=("north",), reference="north"),
        CategoricalColumn(name="ward", categories=("A", "B")),
    ),
    target=ClassTarget(column="ill", negative=("no",), positive=("yes",)),
)


def test_every_column_is_described():
    found = dpci.release_schema(TABLE, schema=PARTIAL, budget=dpci.ApproxDP(1.0, 1e-6), seed=1)
    columns = {column.name: column for column in found.describe().columns}
    assert list(columns) == ["age", "height", "town", "ward", "ill"]
    age, height, town = columns["age"], columns["height"], columns["town"]
    assert (age.lower, age.upper) == found.bounds["age"]
    assert (age.left_out, age.unit, age.is_released) == (found.share, "year", True)
    assert (height.is_released, height.left_out, height.source) == (False, None, "register")
    assert town.categories == found.categories["town"]
    assert (town.kind, town.reference) == ("category", "north")
    assert f"fewer than about {town.half_count:,.0f} rows" in found.summary()
    assert columns["ward"].half_count is None
    assert (columns["ill"].kind, columns["ill"].categories, columns["ill"].is_target) == (
        "classes",
        ("no", "yes"),
        True,
    )


def test_text_frames_and_json_have_the_same():
    found = dpci.release_schema(TABLE, schema=PARTIAL, budget=dpci.ApproxDP(1.0, 1e-6), seed=1)
    description = found.describe()
    text = description.summary()
    assert repr(description) == text
    of_town, of_age = "north, south, other; reference north", f"up to about {found.share:.1%} on either side"
    for words in (
        "NOT PRIVATE",
        "ill (target)",
        of_town,
        of_age,
        "100 to 250",
        "(year)",
        "known",
        "epsilon=1, delta=1",
    ):
        assert words in text
    saved = json.loads(json.dumps(description.to_dict()))
    assert [column["name"] for column in saved["columns"]] == ["age", "height", "town", "ward", "ill"]
    assert saved["budget"] == {"epsilon": 1.0, "delta": 1e-6}
    pytest.importorskip("pandas")
    frame = description.to_frame()
    assert frame.loc["age", "lower"] == found.bounds["age"][0]
    assert frame.loc["town", "categories"] == found.categories["town"]
    # A saved release has the same description.
    assert dpci.ReleasedSchema.from_json(found.to_json()).describe() == description


def test_targets_with_released_bounds_and_of_several_classes():
    target = dpci.schema.UnboundedTarget(column="wage", unit="euro")
    found = dpci.release_schema(
        TABLE, schema=PartialSchema(columns=PARTIAL.columns[:1], target=target), budget=dpci.PureDP(1.0), seed=2
    )
    wage = found.describe().columns[-1]
    assert (wage.name, wage.kind, wage.is_target, wage.is_released) == ("wage", "number", True, True)
    assert (wage.lower, wage.upper) == found.bounds["wage"]
    several = CategoricalTarget(column="ward", classes=("A", "B", "C"))
    found = dpci.release_schema(
        TABLE, schema=PartialSchema(columns=PARTIAL.columns[:1], target=several), budget=dpci.PureDP(1.0), seed=2
    )
    assert found.describe().columns[-1].categories == ("A", "B", "C")
