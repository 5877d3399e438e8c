"""The list of refusals that data can cause: it is the page's, and no place that raises one is missing from it."""

import ast
from pathlib import Path

import dpci
from support.refusals import OF_PYTHON, all_refusals, markdown

ROOT = Path(__file__).parents[2]
PACKAGE = Path(dpci.__file__).parent
BEGIN, END = "<!-- refusals: written by support.refusals.markdown -->\n", "\n<!-- end of refusals -->"

# Of each function of the modules that look at rows, targets and tables: how many exceptions it raises, and which of the
# listed refusals they are; none where public values alone decide.
SITES = {
    "base/validation": {
        "check_different": (1, ()),
        "check_real": (2, ()),
        "check_positive": (1, ()),
        "check_not_negative": (1, ()),
        "check_fraction": (1, ()),
        "check_count": (2, ()),
        "check_seed": (1, ()),
        "check_flag": (1, ()),
        "check_intercept": (1, ()),
        "check_choice": (1, ()),
        "check_reals": (1, ()),
        "check_finite": (1, ()),
        "_integer": (1, ()),
        "check_symmetric": (1, ()),
        "advised.decorate.called": (2, ()),
        "needing.decorate.checked": (1, ()),
    },
    "data/labels": {
        "SeveralClasses.encoded": (1, ("label",)),
        "check_several_classes": (3, ()),
        "check_label": (1, ()),
        "check_classes": (2, ()),
        "encode_labels": (1, ("label",)),
        "check_public_classes": (1, ("parts_labels",)),
        "_labels": (5, ("form",)),
        "check_present": (1, ("missing_target",)),
        "_check_length": (1, ("form",)),
        "several_read_off": (1, ()),
        "_read_off": (2, ("one_class", "no_parts")),
        "_labels_that_occur": (2, ()),
    },
    "data/arrays": {
        "_finite_block": (1, ("form",)),
        "_sparse_block": (1, ("form",)),
        "check_columns": (2, ("form",)),
        "as_matrix": (1, ()),
        "as_numbers": (3, ("form",)),
        "as_square": (1, ()),
        "_csr": (3, ("form",)),
        "_checked_rows": (2, ("form",)),
        "_check_offsets": (1, ("form",)),
        "_contiguous": (1, ("form",)),
    },
    "data/frames": {
        "frame_matrix": (2, ("form",)),
        "named_columns": (1, ("form",)),
        "check_same_index": (1, ("index",)),
        "_check_names": (2, ("form",)),
        "_check_column": (2, ("form", "missing")),
        "arrow_table": (1, ("form",)),
        "taken_over": (1, ("form",)),
        "_check_device": (1, ("form",)),
    },
    "data/rows": {
        "check_beside_parts": (2, ()),
        "as_partitions": (3, ()),
        "known_shape": (1, ("form",)),
        "_param_names": (1, ()),
    },
    "data/persons": {
        "check_columns_of_unit": (3, ()),
        "check_no_column_of_persons": (1, ()),
        "check_index_of_persons": (1, ("persons",)),
        "checked_ids": (5, ("persons",)),
        "_as_compared": (1, ("persons",)),
        "_told_apart": (1, ("persons",)),
        "_compared": (3, ("persons",)),
        "_cells": (1, ("persons",)),
        "check_apart": (1, ("parts_persons",)),
        "check_in_one_group": (1, ("parts_persons",)),
        "check_one_kind": (1, ("parts_persons",)),
        "_encoded": (1, ("persons",)),
    },
    "baselines/choices": {
        "polynomial_loss": (1, ()),
        "unbounded_loss": (1, ()),
    },
    "sources/chunks": {
        "Chunks.__init__": (2, ()),
        "Chunks.reduce": (2, ("parts_iterator",)),
        "_checked": (2, ()),
        "Chunks.from_parquet": (3, ()),
        "Chunks._from_files": (1, ()),
        "Chunks.__array__": (1, ()),
        "_check_names": (1, ()),
        "_checked_together": (1, ()),
        "_without_gaps": (1, ("missing",)),
    },
    "data/parts": {
        "PartRules.sums": (2, ()),
        "Description.merge": (1, ("parts_columns",)),
        "_keyed_request": (1, ()),
        "DescribedParts.evaluate": (1, ("parts_change",)),
        "describe": (3, ("no_parts", "parts_columns")),
        "check_smooth": (1, ()),
    },
    "data/dask": {
        "dask_partitions": (2, ("form",)),
        "DaskPartitions.reduce": (1, ("parts_fail",)),
        "_work_on": (1, ()),
        "_check_sizes": (2, ("parts_sizes",)),
        "_wait": (1, ()),
    },
    "sources/files": {
        "as_paths": (3, ()),
        "check_files": (1, ("file",)),
        "read_batches": (1, ()),
        "check_named_once": (1, ("file",)),
        "_readable": (1, ("file",)),
        "csv_records": (3, ("csv_line", "file")),
        "_csv_lines": (2, ("csv_line", "table_columns")),
        "_check_exact": (1, ("table_columns",)),
        "_parquet_file": (2, ("file", "table_columns")),
        "_check_present": (1, ("table_columns",)),
    },
    "sources/find": {
        "find_tables": (3, ("file",)),
        "_tables": (1, ("file",)),
    },
    "sources/formats": {
        "Format.__post_init__": (5, ()),
        "check_delimiter": (1, ()),
        "_encoding": (2, ()),
        "_point": (1, ("csv_line",)),
    },
    "sources/whole": {
        "read": (3, ("table_columns",)),
    },
    "sources/workbooks": {
        "read_sheet": (2, ("file", "table_columns")),
        "_sheet": (2, ("table_columns",)),
    },
    "cli/rows": {
        "TableRows.__post_init__": (1, ()),
        "TableRows._chunks": (1, ("schema_value",)),
        "UnitOptions.check": (2, ()),
        "UnitOptions._check_persons": (1, ()),
        "UnitOptions._check_bound": (1, ()),
    },
    "schema/cells": {
        "as_cells": (2, ("table_columns",)),
        "label_of": (1, ("schema_value",)),
        "check_rows": (1, ("schema_value",)),
        "column_of": (3, ("table_columns",)),
        "key_of": (1, ("table_columns",)),
        "names_of": (1, ("table_columns",)),
        "check_length": (1, ("table_columns",)),
    },
    "schema/columns": {
        "NumericColumn.__post_init__": (2, ()),
        "UnboundedColumn.__post_init__": (1, ()),
        "_numbers": (1, ("schema_value",)),
        "_take_since": (1, ()),
        "_take_per": (2, ()),
        "CategoricalColumn.__post_init__": (4, ()),
        "ClassTarget.__post_init__": (1, ()),
        "CategoricalTarget.__post_init__": (2, ()),
        "_take_name": (1, ()),
        "_take_bounds": (3, ()),
        "_check_choice": (1, ()),
        "_labels_of": (1, ()),
    },
    "schema/design": {
        "Values._make": (1, ("schema_value",)),
        "coded_parts": (2, ()),
    },
    "schema/formula": {
        "parse": (2, ()),
        "target_of": (3, ()),
        "_Reader.sum": (2, ()),
        "_Reader._crossed": (2, ()),
        "_Reader._atom": (3, ()),
        "_Reader._categories": (2, ()),
        "_Reader._power": (1, ()),
        "_Reader._spline": (3, ()),
        "_Reader._numbers": (2, ()),
        "_Reader._count": (1, ()),
        "_Reader._name": (1, ()),
        "_Reader._numeric": (1, ()),
        "_Reader._known": (1, ()),
        "_Reader._next": (1, ()),
        "_Reader._expect_keyword": (1, ()),
        "_Reader._expect": (1, ()),
        "_Reader.expect_end": (1, ()),
        "_tokens": (1, ()),
    },
    "schema/saved": {
        "fields_of": (2, ()),
        "described_by": (1, ()),
        "build": (2, ()),
        "read_file": (3, ()),
        "_build_column": (1, ()),
        "_as_mapping": (1, ()),
        "_as_list": (1, ()),
    },
    "schema/table": {
        "Schema.__post_init__": (7, ()),
        "Schema._take_terms": (3, ()),
        "Schema.from_formula": (1, ()),
        "RawTable.shape": (2, ("table_columns",)),
        "on_violation_of": (1, ()),
        "_read_table": (1, ()),
    },
    "schema/partial": {
        "PartialSchema.__post_init__": (5, ()),
        "PartialSchema.numbers": (1, ("schema_value",)),
    },
    "schema/terms": {
        "Power.__post_init__": (1, ()),
        "Spline.__post_init__": (4, ()),
        "Term.__post_init__": (4, ()),
        "Term.from_dict": (4, ()),
        "_resolved": (6, ()),
    },
}


def raises(tree):
    """Number of exceptions that each function raises, those passed on not counted."""
    found = {}

    def visit(node, name):
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
            elif isinstance(child, ast.Raise) and child.exc is not None:
                found[name] = found.get(name, 0) + 1
            visit(child, inner)

    visit(tree, "")
    return found


def test_every_place_that_raises_is_listed():
    for module, listed in SITES.items():
        found = raises(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8")))
        assert found == {name: count for name, (count, _) in listed.items()}, f"{module}: classify what is new"


def test_every_key_is_raised_somewhere():
    used = {key for listed in SITES.values() for _, keys in listed.values() for key in keys}
    assert used == set(OF_PYTHON)


def test_the_page_is_the_list():
    """To write it anew: paste what ``support.refusals.markdown()`` returns between the two marks."""
    page = (ROOT / "docs" / "privacy.md").read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0] == markdown()


def test_the_core_lists_what_it_raises():
    """One example of each kind reaches Python with the words of the list."""
    what = [refusal.what for refusal in all_refusals()]
    assert len(set(what)) == len(what)
    assert any("cannot be certified" in text for text in what)
    assert any("16 · `n_public`" in text for text in what)
