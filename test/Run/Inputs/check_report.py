"""check_report.py REPORT.html [CHART.svg...]: a report is well-formed, complete in itself, and has no broken number."""
import html.parser
import re
import sys
import xml.etree.ElementTree as xml

HTML, SVG = "{http://www.w3.org/1999/xhtml}", "{http://www.w3.org/2000/svg}"
VOID = {"meta"}
NO_NUMBER = re.compile(r"(?<![\w-])-?(nan|inf|infinity)(?![\w-])", re.I)


class Nesting(html.parser.HTMLParser):
    """What a browser reads it by: every tag ends in its turn."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


def check_elements(root):
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(ids) == len(set(ids)), "an id is there twice"
    for element in root.iter():
        tag = element.tag.split("}")[1]
        assert tag not in ("script", "link", "iframe", "object", "img", "image", "use"), f"<{tag}>"
        for name, value in element.attrib.items():
            assert not name.startswith("on") and name != "src", f"{name} of <{tag}>"
            assert name != "href" or value[0] == "#" and value[1:] in ids, f"a link to {value}"
            assert tag in ("title", "text") or not NO_NUMBER.search(value), f"{name}={value}"
        if tag == "style":
            assert "url(" not in element.text and "@import" not in element.text, "a style from elsewhere"
        if tag == "svg":
            title = element.find(f"{SVG}title")
            assert title is not None and title.text and title.get("id") == element.get("aria-labelledby"), "a chart without title"
            _, _, width, height = map(float, element.get("viewBox").split())
            for inside in element.iter():
                for name, most in (("x", width), ("cx", width), ("x2", width), ("y", height), ("cy", height), ("y2", height)):
                    value = float(inside.get(name, 0))
                    assert -0.5 <= value <= most + 0.5, f"{name}={value} outside of {element.get('id')}"
                assert float(inside.get("width", 0)) >= 0, f"a width below 0 in {element.get('id')}"


def check_tables(root):
    tables = list(root.iter(f"{HTML}table"))
    for table in tables:
        widths = {len(row) for row in table.iter(f"{HTML}tr")}
        assert len(widths) == 1, f"rows of {widths} cells"
    return len(tables)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    nesting = Nesting()
    nesting.feed(text)
    assert text.startswith("<!DOCTYPE html>") and not nesting.open, nesting.open
    root = xml.fromstring(text)
    check_elements(root)
    sections = [s.get("id") for s in root.iter(f"{HTML}section")]
    charts = list(root.iter(f"{SVG}svg"))
    print(f"valid: {' '.join(sections)}; {len(charts)} charts, {check_tables(root)} tables")
    for path in sys.argv[2:]:
        chart = xml.parse(path).getroot()
        check_elements(chart)
        assert any(path.endswith(f"/{c.get('id')}.svg") for c in charts), path


main()
