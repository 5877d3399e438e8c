"""Workbooks as Excel and LibreOffice write them, of rows of texts and numbers."""

import zipfile
from xml.sax.saxutils import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def write_xlsx(path, sheets):
    """Write sheets, rows by name, as Excel does."""
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        '<Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r0" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    }
    names = "".join(f'<sheet name="{escape(name)}" sheetId="{i + 1}" r:id="r{i}"/>' for i, name in enumerate(sheets))
    parts["xl/workbook.xml"] = f'<workbook xmlns="{_SHEETS}" xmlns:r="{_OFFICE}"><sheets>{names}</sheets></workbook>'
    links = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(len(sheets))
    )
    parts["xl/_rels/workbook.xml.rels"] = f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'
    for i, rows in enumerate(sheets.values()):
        lines = "".join(
            f'<row r="{n}">{"".join(_cell(cell, n, m) for m, cell in enumerate(row))}</row>'
            for n, row in enumerate(rows, 1)
        )
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{_SHEETS}"><sheetData>{lines}</sheetData></worksheet>'
        )
    _write(path, parts)


def _cell(cell, row, column):
    place = f"{chr(65 + column)}{row}"
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
    return f'<c r="{place}"><v>{cell}</v></c>'


def write_ods(path, sheets):
    """Write sheets, rows by name, as LibreOffice does."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(_open_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    names = "".join(f' xmlns:{each}="{_ODF}:{each}:1.0"' for each in ("office", "table", "text"))
    content = (
        f"<office:document-content{names}><office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
        "</office:document-content>"
    )
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    manifest = (
        f'<manifest:manifest xmlns:manifest="{_ODF}:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        f'manifest:media-type="{kind}"/></manifest:manifest>'
    )
    _write(path, {"mimetype": kind, "content.xml": content, "META-INF/manifest.xml": manifest})


def _open_cell(cell):
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, str):
        return f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
    return (
        f'<table:table-cell office:value-type="float" office:value="{cell}"><text:p>{cell}</text:p></table:table-cell>'
    )


def _write(path, parts):
    with zipfile.ZipFile(path, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text if name == "mimetype" else _HEAD + text)
