"""``read``: files of tables in memory, however they are written."""

from dpci.base.validation import broken
from dpci.errors import InvalidInput
from dpci.schema.partial import PartialSchema
from dpci.schema.table import Schema, numeric_names
from dpci.sources.files import STDIN, Columns, FileColumns, Paths, as_paths, read_batches
from dpci.sources.find import find_tables
from dpci.sources.formats import Format


def read(
    path: Paths,
    *,
    schema: Schema | PartialSchema | None = None,
    delimiter: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    quote: str = '"',
    sheet: str | None = None,
    date_format: str | None = None,
) -> Columns:
    r"""Read a table from files, as programs for the office write them in many countries.

    Cells are as in the file: those of CSV text are texts, which a schema reads as numbers or categories. Not private:
    the table is the data.

    Parameters
    ----------
    path : path or paths
        A ``.csv``, ``.csv.gz``, ``.parquet``, ``.xlsx``, ``.xlsb``, ``.xls`` or ``.ods`` file, a folder of them, or a
        pattern such as ``"parts/*.csv"``; several together are one table, and no file may be named twice.
    schema : Schema or PartialSchema of dpci.schema, optional
        Public description of the columns, of which no others are read. None: all columns, also those that
        ``persons=`` or ``weights=`` of a fit may name.
    delimiter : str
        The one character between fields of a CSV file: ``";"``, or ``"\t"`` for a tab.
    decimal : {".", ","}
        The decimal mark in a CSV file. With ``","`` a number with a comma gets a point; of a schema in the columns of
        numbers alone, where a point is refused.
    encoding : str
        Encoding of a CSV file, such as ``"latin-1"``, ``"cp1252"`` (Windows in Western Europe) or ``"utf-16"``.
    quote : str
        The one character around fields of a CSV file that hold a delimiter; ``"none"``: there is none.
    sheet : str, optional
        Name of the sheet of a workbook; None: the only one. Needs the extra ``office``.
    date_format : str, optional
        Form of dates in a CSV file or a workbook, of ``%d``, ``%m``, ``%Y``, ``%H``, ``%M`` and ``%S``:
        ``"%d.%m.%Y"`` for 31.12.2024. Every cell that is such a date is read as 2024-12-31.

    Returns
    -------
    dict of str to sequence
        Columns by name, for ``dpci.fit(table, schema=schema)``; ``pandas.DataFrame(table)`` is a frame.

    Raises
    ------
    InvalidInput
        For arguments out of range, and files that are not as described.
    MissingExtra
        Without pyarrow for a Parquet file, or python-calamine for a workbook.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = file.write_bytes("Größe;Stadt\n1,75;Köln\n".encode("latin-1"))
    >>> read(file, delimiter=";", decimal=",", encoding="latin-1")
    {'Größe': ['1.75'], 'Stadt': ['Köln']}
    """
    form = Format(
        delimiter=delimiter, decimal=decimal, encoding=encoding, quote=quote, sheet=sheet, date_format=date_format
    )
    columns = numbers = None
    if schema is not None:
        if not isinstance(schema, Schema | PartialSchema):
            raise broken("schema", "a Schema or a PartialSchema of dpci.schema, or None", schema)
        known = schema.blank if isinstance(schema, PartialSchema) else schema
        ids = [known.persons] if known.persons else []
        columns = [*dict.fromkeys([*(column.name for column in known.columns), known.target.column, *ids])]
        numbers = numeric_names(known)
    files = find_tables(as_paths(path))
    tables: list[Columns] = []
    for file in files:
        if file == STDIN:
            raise InvalidInput("path must name a file, got the standard input (-)")
        (table,) = read_batches(file, n_rows=None, form=form, columns=columns, numbers=numbers)
        if tables and set(table) != set(tables[0]):
            raise InvalidInput(f"all files of a table must have the same columns, got others in {str(file)!r}")
        tables.append(table)
    return FileColumns(files, tables)
