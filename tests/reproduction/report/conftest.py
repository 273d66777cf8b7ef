"""The example as a page, and a browser if there is one."""

import pytest

from reproduction.report import render
from reproduction_support import example
from reproduction_support.browser import Browser, program
from reproduction_support.markup import parse


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with the pictures of the example; nothing else is ever written to it."""
    return example.draw(tmp_path_factory.mktemp("example"))


@pytest.fixture(scope="session")
def page(folder):
    """The example as a tree of elements."""
    return parse(render(example.results(), folder))


@pytest.fixture(scope="session")
def browser():
    if program() is None:
        pytest.skip("no Chromium is installed: pages are not looked at")
    with Browser() as running:
        yield running
