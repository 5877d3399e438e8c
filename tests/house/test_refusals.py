"""The list of refusals that data can cause: it is the page's, and no place that raises one is missing from it."""

import ast
import re
from pathlib import Path

import dpci
from support.refusals import OF_PYTHON, all_refusals, markdown

ROOT = Path(__file__).parents[2]
PACKAGE = Path(dpci.__file__).parent
BEGIN, END = "<!-- refusals: written by support.refusals.markdown -->\n", "\n<!-- end of refusals -->"

# Functions of modules that look at rows, targets and tables: name*2 raises two exceptions, and name=key those of the
# listed refusals; without a key public values alone decide.
SITES = """
base/validation: check_different check_real*2 check_positive check_not_negative check_fraction check_count*2
  check_seed check_flag check_intercept check_choice check_reals check_finite _integer check_symmetric
  advised.decorate.called*3 advised_class.checked*3 usage.decorate.checked
data/labels: SeveralClasses.encoded=label check_several_classes*3 check_label check_classes*2 encode_labels=label
  check_public_classes=parts_labels _labels*5=form check_present=missing_target _check_length=form several_read_off
  _read_off*2=one_class,no_parts _labels_that_occur*2
data/arrays: ByName.__getitem__ _finite_block=form _sparse_block=form check_columns*2=form as_matrix as_square
  as_numbers*3=form _csr*3=form _checked_rows*2=form _check_offsets=form _contiguous=form
data/frames: frame_matrix*2=form named_columns=form check_same_index=index _check_names*2=form
  _check_column*2=form,missing arrow_table=form taken_over=form _check_device=form
data/rows: check_beside_parts*2 as_partitions*3 known_shape=form _param_names
data/persons: check_columns_of_unit*3 check_no_column_of_persons check_index_of_persons=persons checked_ids*5=persons
  _as_compared=persons _told_apart=persons _compared*3=persons _cells=persons check_apart=parts_persons
  check_in_one_group=parts_persons check_one_kind=parts_persons _encoded=persons
baselines/choices: polynomial_loss unbounded_loss
sources/chunks: Chunks.__init__*2 Chunks.reduce*2=parts_iterator _checked*2 Chunks.from_parquet*3 Chunks._from_files
  Chunks.__array__ _check_names _checked_together _without_gaps=missing
data/parts: PartRules.sums*2 Description.merge=parts_columns _keyed_request DescribedParts.evaluate=parts_change
  describe*3=no_parts,parts_columns check_smooth
data/dask: dask_partitions*2=form DaskPartitions.reduce=parts_fail _work_on _check_sizes*2=parts_sizes _wait
sources/files: as_paths*3 check_files=file read_batches check_named_once=file _readable=file
  csv_records*3=csv_line,file _csv_lines*2=csv_line,table_columns _check_exact=table_columns
  _parquet_file*2=file,table_columns _check_present=table_columns
sources/find: find_tables*3=file _tables=file
sources/formats: Format.__post_init__*5 check_delimiter _encoding*2 _dates*2 _point=csv_line
sources/whole: read*3=table_columns
sources/workbooks: read_sheet*2=file,table_columns _sheet*2=table_columns
cli/rows: TableRows.__post_init__ TableRows._chunks=schema_value UnitOptions.check*2 UnitOptions._check_persons
  UnitOptions._check_bound
schema/cells: as_cells*2=table_columns label_of=schema_value labels_of check_rows=schema_value column_of*3=table_columns
  outside_fits=schema_value key_of=table_columns names_of=table_columns check_length=table_columns
schema/columns: NumericColumn.__post_init__*2 UnboundedColumn.__post_init__ _numbers=schema_value _take_since
  _take_per*2 CategoricalColumn.__post_init__*3 ClassTarget.__post_init__ CategoricalTarget.__post_init__*2 _take_name
  _check_choice
schema/design: Values._make=schema_value coded_parts*2
schema/formula: parse*2 target_of*3 _Reader.sum*2 _Reader._crossed*2 _Reader._atom*3 _Reader._categories*2
  _Reader._power _Reader._spline*3 _Reader._numbers*2 _Reader._count _Reader._name _Reader._numeric _Reader._known
  _Reader._next _Reader._expect_keyword _Reader._expect _Reader.expect_end _tokens
schema/saved: FileSchema.to_file fields_of*3 described_by build*2 read_file*4 _build_column _as_mapping _as_list
schema/transforms: take_bounds*3
schema/table: Schema.__post_init__*5 Schema._take_texts*2 Schema._take_terms*4 Schema.from_formula fitted_constant
  RawTable.shape*2=table_columns
  on_violation_of _read_table
schema/partial: PartialSchema.__post_init__*5 PartialSchema.numbers=schema_value
schema/terms: Power.__post_init__ Spline.__post_init__*4 Term.__post_init__*4 Term.from_dict*4 _resolved*6
"""


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
    for module, listed in re.findall(r"^(\S+): ((?:.|\n )*)", SITES, re.MULTILINE):
        found = raises(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8")))
        expected = {name: int(count or 1) for name, count in re.findall(r"([\w.]+)(?:\*(\d+))?(?:=\S+)?", listed)}
        assert found == expected, f"{module}: classify what is new"


def test_every_key_is_raised_somewhere():
    assert set(",".join(re.findall(r"=(\S+)", SITES)).split(",")) == set(OF_PYTHON)


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
