"""Everything with a summary shows itself in a notebook: well-formed, escaped, bounded in height, and without ids."""

import importlib
import inspect
import pkgutil
import re

import numpy as np
import pytest

import dpci
from dpci.released.result import Result, Shown
from dpci.schema import CategoricalColumn, ClassTarget, NumericColumn, PartialSchema, Schema, UnboundedColumn
from dpci.shown.displayed import Displayed
from support.pages import Page
from support.releases import RELEASES

EVIL = "<script>alert(1)</script>"
COLUMNS = (
    NumericColumn(name=EVIL, lower=0.0, upper=1.0, unit="<b>", source="<i>"),
    CategoricalColumn(name="g", categories=("a", EVIL), reference="a"),
)
TARGET = ClassTarget(column="y", negative=("no",), positive=(f"</style>{EVIL}",))
SCHEMA = Schema(columns=COLUMNS, target=TARGET, title=EVIL, persons="id")
GAPS = PartialSchema(
    columns=(UnboundedColumn(name="x", lower=0, upper=9), dpci.schema.UnlistedColumn(name=EVIL), COLUMNS[1]),
    target=TARGET,
)


def cell(shown):
    found = shown._repr_html_()
    parsed = Page(found)
    assert not any(key == "id" or key.startswith("on") for key, _ in parsed.attributes)
    assert parsed.names[:2] == ["div", "style"]
    assert parsed.names.count("style") == 1
    assert not {"script", "meta"} & {*parsed.names}
    style = re.search("<style>(.*?)</style>", found, re.DOTALL)[1]
    # Every rule stands within that of the cell, and its height is bounded.
    depth = np.cumsum([{"{": 1, "}": -1}.get(letter, 0) for letter in style])
    assert style.strip().startswith(".dpci {")
    assert (depth[style.index("{") : style.rindex("}")] >= 1).all()
    assert "max-height" in style
    assert "overflow: auto" in style
    return parsed


def classes():
    """Classes of the package that have a summary."""
    for module in pkgutil.walk_packages(dpci.__path__, "dpci."):
        if module.name.startswith(("dpci.cli", "dpci.__main__", "dpci.sklearn")):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind.__module__.startswith("dpci") and hasattr(kind, "summary") and not issubclass(kind, Shown):
                yield kind


def test_every_class_with_a_summary_shows_itself():
    found = set(classes())
    assert len(found) > 20
    for kind in found:
        assert issubclass(kind, Displayed), kind
        # The first two are no kinds of their own, and the third is what a command reads of a file.
        if kind.__name__ not in {"Result", "Approvable", "SavedReport"}:
            assert kind._document not in (Displayed._document, Result._document), kind


@pytest.mark.parametrize("name", RELEASES)
def test_releases_show_themselves(name):
    found = cell(RELEASES[name](seed=1))
    assert "NOT PRIVATE (seeded)" in found.text
    assert "table" in found.names


def test_a_page_is_shown_with_its_first_section_open():
    fit = RELEASES["fit"](seed=1)
    found = fit._repr_html_()
    assert found.count("<details open=") == 1
    assert found.count("<details>") > 2
    assert f"{fit.params[0]:.4f}" in cell(fit).text
    # Two cells of one notebook have no name in common that a link could lead to.
    assert 'id="' not in found


def test_what_is_not_released_shows_itself():
    fit = RELEASES["fit"](seed=1)
    ledger = dpci.Ledger(dpci.PureDP(2.0))
    assert "no entries" in cell(ledger).text
    ledger.labelled(EVIL).spend(dpci.PureDP(0.5), neighbors="replace_one")
    assert EVIL in cell(ledger).text
    plan = dpci.plan(n_samples=500, n_features=2, budget=dpci.PureDP(1.0), l2_strength=0.1)
    assert plan.title in cell(plan).text
    newton = dpci.plan(n_samples=5000, n_features=2, budget=dpci.ZCDP(1.0))
    assert "interval length" in cell(newton).text
    assert "lower" in cell(fit.conf_int()).text
    assert fit.names[0] in cell(fit.wald_test([fit.names[0]])).text
    assert "a - b" in cell(dpci.compare(fit, RELEASES["fit"](seed=2))).text


def test_schemas_show_their_columns():
    for schema in (SCHEMA, GAPS):
        assert EVIL in cell(schema).text
    text = cell(SCHEMA).text
    assert all(
        part in text for part in ("0 to 1", "<b>", "<i>", "against a", "persons: id", f"</style>{EVIL} against no")
    )
    assert "bounds to be released, within 0 to 9" in cell(GAPS).text
    table = {EVIL: [0.5, 2.0], "g": ["a", EVIL], "y": ["no", "no"], "id": ["1", "2"]}
    check = SCHEMA.check(table)
    assert "beyond" in cell(check).text or "above" in cell(check).text
    assert cell(check).text.startswith("NOT PRIVATE: 2 rows")


@pytest.mark.filterwarnings("ignore::dpci.errors.DpciWarning")
def test_strata_classes_regressions_and_studies_show_themselves():
    rng = np.random.default_rng(2)
    n = 900
    X = rng.uniform(-0.5, 0.5, (n, 2))
    given = {"budget": dpci.PureDP(8.0), "l2_strength": 0.1}
    table = {"g": rng.choice(["a", "b"], n), "x": X[:, 0], "y": np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")}
    schema = Schema(
        columns=(CategoricalColumn(name="g", categories=("a", "b")), NumericColumn(name="x", lower=-0.5, upper=0.5)),
        target=ClassTarget(column="y", negative=("no",), positive=("yes",)),
    )
    strata = dpci.fit_strata(table, by="g", schema=schema, n_public=450, seed=1, **given)
    assert "Models of 2 strata" in cell(strata).text
    classes = dpci.multinomial.fit(X, rng.choice([0, 1, 2], n), classes=[0, 1, 2], seed=1, **given)
    assert "log odds of 1, 2 against 0" in cell(classes).text
    matrix = dpci.regression.release(X, X @ [0.5, -0.2], budget=dpci.PureDP(50.0), seed=1)
    assert "regression of" in cell(matrix.fit()).text.lower()
    assert "second moments" in cell(matrix).text
    study = dpci.simulate.coverage(X, table["y"], classes=("no", "yes"), n_replicates=5, n_variability=0, **given)
    assert "NOT PRIVATE" in cell(study).text
