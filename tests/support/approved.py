"""Every kind of result of which an approver can have a report, and the ledger that paid for it."""

import json
import warnings
from dataclasses import replace
from functools import cache

import numpy as np

import dpci
from dpci.schema import NumericColumn, PartialSchema, Schema, UnboundedColumn
from dpci.schema.columns import ClassTarget, NumericTarget
from support.keywords import assembled

N = 2_000
RNG = np.random.default_rng(3)
X = RNG.uniform(-0.5, 0.5, (N, 2))
Y = X[:, 0] + 0.3 * RNG.normal(size=N) > 0
REAL = np.clip(X[:, 0] + 0.1 * RNG.normal(size=N), -1, 1)
IDS = np.arange(N) // 2
WEIGHTS = RNG.uniform(0, 2, N)
TABLE = {
    "age": RNG.uniform(18, 90, N),
    "state": np.repeat(["A", "B"], N // 2),
    "ill": np.where(Y, "yes", "no"),
    "wage": RNG.uniform(0, 100, N),
}
COLUMNS = (NumericColumn(name="age", lower=18, upper=90, source="law"),)
OF_CLASSES = Schema(columns=COLUMNS, target=ClassTarget(column="ill", negative=("no",), positive=("yes",)))
GAPS = PartialSchema(
    columns=(UnboundedColumn(name="age", lower=0, upper=150), UnboundedColumn(name="wage", missing="middle")),
    target=OF_CLASSES.target,
)
OF_WAGES = Schema(columns=COLUMNS, target=NumericTarget(column="wage", lower=0, upper=100))
BUDGETS = {"pure": dpci.PureDP(1.0), "zcdp": dpci.ZCDP(0.3), "approx": dpci.ApproxDP(1.0, 1e-7)}
RELATIONS = ("replace_one", "add_remove")
KINDS = (
    *("fit", "output", "persons", "max_rows", "weights", "clip", "ball", "hinge", "bare", "schema"),
    *(
        "matrix",
        "robust",
        "refined",
        "regression",
        "ridge",
        "matrix_of_persons",
        "matrix_of_weights",
        "wages",
        "several",
    ),
    *("strata", "counted", "strata_of_persons", "stratum", "counted_stratum"),
    *("multinomial", "multinomial_of_persons", "groups", "disjoint", "chosen", "chosen_fit", "best", "rule", "report"),
    *("gaps", "bounds", "bounds_of_persons"),
)
LAST = {"stratum": "A", "counted_stratum": "A", "groups": "a", "disjoint": "a"}


@cache
def made(kind, notion, neighbors):
    """Return a result and the ledger that paid for it."""
    budget, add = BUDGETS[notion], neighbors == "add_remove"
    total = dpci.ApproxDP(50.0, 0.5) if notion == "approx" else type(budget)(50.0)
    ledger = dpci.Ledger(total, neighbors)
    common = {"budget": budget, "ledger": ledger}
    number = {"neighbors": dpci.AddRemove(N)} if add else {}
    people = number | ({"neighbors": dpci.AddRemove(N // 2)} if add else {})
    fit = {"classes": (False, True), "l2_strength": 0.2, **common}
    of_matrix = {"bounds": (-0.5, 0.5), **common}
    strata = {"by": "state", "strata": ("A", "B"), "schema": OF_CLASSES, "l2_strength": 0.5, "neighbors": neighbors}
    choice = {"candidates": [{"l2_strength": 0.2}, {"l2_strength": 0.5}], "validation_radius": 2.0}
    with warnings.catch_warnings(action="ignore"):
        makers = {
            "fit": lambda: dpci.fit(X, Y, **fit, **number),
            "output": lambda: dpci.fit(X, Y, mechanism="output", **fit, **number),
            "persons": lambda: dpci.fit(X, Y, persons=IDS, **fit, **people),
            "max_rows": lambda: dpci.fit(X, Y, persons=dpci.Persons(IDS, max_rows=3), **fit, **people),
            "weights": lambda: dpci.fit(X, Y, weights=dpci.Weights(WEIGHTS, bound=2.0, total=N), **fit, **number),
            "clip": lambda: dpci.fit(X, Y, rows="clip", **fit, **number),
            "newton": lambda: dpci.fit(X, Y, classes=(False, True), **common, **number),
            "ball": lambda: dpci.fit(X, Y, **assembled(radius=2.0, **fit, **number)),
            "hinge": lambda: dpci.fit(
                X, Y, **assembled(loss="hinge", mechanism="output", moments="none", **fit, **number)
            ),
            "bare": lambda: dpci.fit(X, Y, **assembled(moments="none", **fit, **number)),
            "schema": lambda: dpci.fit(TABLE, schema=OF_CLASSES, l2_strength=0.2, **common, **number),
            "matrix": lambda: dpci.regression.release(X, REAL, **common, **number),
            "robust": lambda: dpci.regression.release(X, REAL, robust=True, rows="clip", **of_matrix, **number),
            "refined": lambda: dpci.regression.release(X, REAL, refine=True, **of_matrix, **number).fit(),
            "regression": lambda: dpci.regression.release(X, REAL, **of_matrix, **number).fit(),
            "ridge": lambda: dpci.regression.release(X, REAL, **of_matrix, **number).fit(l2_strength=0.3),
            "matrix_of_persons": lambda: dpci.regression.release(X, REAL, persons=IDS, **of_matrix, **people),
            "matrix_of_weights": lambda: dpci.regression.release(
                X, REAL, weights=dpci.Weights(WEIGHTS, bound=2.0), **of_matrix, **number
            ),
            "wages": lambda: dpci.fit(TABLE, schema=OF_WAGES, loss="squared", **common, **number),
            "several": lambda: dpci.regression.release(
                X, np.column_stack([REAL, REAL**2]), target_bound=[(-1, 1), (0, 1)], **of_matrix, **number
            ),
            "gaps": lambda: dpci.fit(
                TABLE, schema=replace(GAPS, bounds_share=0.5), l2_strength=0.2, **common, **number
            ),
            "bounds": lambda: dpci.release_schema(TABLE, schema=GAPS, **common, **number),
            "bounds_of_persons": lambda: dpci.release_schema(
                TABLE, schema=GAPS, persons=dpci.Persons(IDS, max_rows=3), **common, **people
            ),
            "strata": lambda: dpci.fit_strata(TABLE, n_public=N // 2, **strata, **common),
            "counted": lambda: dpci.fit_strata(TABLE, n_public="private", **strata, **common),
            "strata_of_persons": lambda: dpci.fit_strata(TABLE, n_public=N // 4, persons=IDS, **strata, **common),
            "stratum": lambda: dpci.fit_strata(TABLE, n_public=N // 2, **strata, **common),
            "counted_stratum": lambda: dpci.fit_strata(TABLE, n_public="private", **strata, **common),
            "multinomial": lambda: dpci.multinomial.fit(
                X, np.resize(["a", "b", "c"], N), classes=["a", "b", "c"], l2_strength=0.2, **common, **number
            ),
            "multinomial_of_persons": lambda: dpci.multinomial.fit(
                X, np.resize(["a", "b", "c"], N), classes=["a", "b", "c"], l2_strength=0.2,
                persons=dpci.Persons(IDS, max_rows=3), **common, **people,
            ),
            "groups": lambda: dpci.fit_many({"a": (X, Y), "b": (X, Y)}, **fit, **number),
            "disjoint": lambda: dpci.fit_many({"a": (X, Y), "b": (X, Y)}, disjoint=True, **fit, **number),
            "chosen": lambda: dpci.tuning.tune(X, Y, method="chunks", **choice, classes=(False, True), **common),
            "chosen_fit": lambda: dpci.tuning.tune(X, Y, method="chunks", **choice, classes=(False, True), **common),
            "best": lambda: dpci.tuning.tune(
                X, Y, method="repeat", selection_share=1.0, **choice, classes=(False, True), **common
            ),
            "rule": lambda: dpci.tuning.tune(X, Y, method="public_rule", classes=(False, True), **common, **number),
            "report": lambda: dpci.per_instance.report(
                X, Y, l2_strength=0.2, n_public=N, classes=(False, True), **common
            ),
        }  # fmt: skip
        found = makers[kind]()
    if kind in LAST:
        found = found[LAST[kind]]
    return (found.result if kind == "chosen_fit" else found), ledger


def opened(*case):
    """Return a result, and what its file holds."""
    result, _ = made(*case)
    return result, json.loads(result.to_json())
