"""HTML as a tree of elements, read strictly; and places in nested results."""

from html.parser import HTMLParser
from xml.etree.ElementTree import TreeBuilder

VOID = {"br", "hr", "img", "link", "meta"}


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.builder, self.open = TreeBuilder(), []

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), (tag, attributes)
        self.builder.start(tag, {name: value or "" for name, value in attributes})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.builder.end(tag)

    def handle_data(self, data):
        if self.open:
            self.builder.data(data)


def parse(html):
    """The root of a page whose tags all match."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader.builder.close()


def text(element):
    """What an element says, with single spaces."""
    return " ".join("".join(element.itertext()).split(" ")).replace("\n", " ").strip()


def find(page, name):
    """The element with this id."""
    (found,) = [element for element in page.iter() if element.get("id") == name]
    return found


def walk(value, path=()):
    """Every place of nested dictionaries and lists, from the top: its path and what is there."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from walk(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from walk(item, (*path, number))


def place_name(path):
    """How errors name a place."""
    return "results" + "".join(f'["{k}"]' if isinstance(k, str) else f"[{k}]" for k in path)


def put(results, path, value):
    """Change the results at a place."""
    for step in path[:-1]:
        results = results[step]
    results[path[-1]] = value
