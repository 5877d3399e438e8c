"""Elements and texts of a page or of a cell of a notebook, which must nest."""

from html.parser import HTMLParser

VOID = {"meta", "line", "circle", "wbr"}


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails where elements do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.names, self.attributes, self.cells, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.names.append(name)
        self.attributes += attributes
        if name not in VOID:
            self.open.append(name)
        if name in {"th", "td"}:
            self.cells.append("")

    def handle_startendtag(self, name, attributes):
        assert name in VOID
        self.names.append(name)
        self.attributes += attributes

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open[-1:] in (["th"], ["td"]):
            self.cells[-1] += data
        elif self.open[-2:] == ["th", "small"]:
            self.cells[-1] += f"|{data}"
        if self.open[-1:] != ["style"]:
            self.text += data
