"""A browser shows the page as meant, and asks nobody for anything."""

import pytest

from reproduction.report import write
from reproduction_support import example
from reproduction_support.browser import Page
from reproduction_support.markup import put, walk

WIDTHS = [1200, 390]
WIDE = """[...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll > *"))
    .filter(e => e.getBoundingClientRect().right > {width}).map(e => e.outerHTML.slice(0, 80))"""
POINTS = """[...document.querySelectorAll("#table4-drivface td > .number")].map(e => {
    const range = document.createRange(), at = e.firstChild.data.indexOf(".");
    range.setStart(e.firstChild, at); range.setEnd(e.firstChild, at + 1);
    return [e.closest("td").cellIndex, range.getBoundingClientRect().left];})"""
SCRIPTED = """<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="top.ran = 1">
<script>top.ran = 1</script><image href="https://example.org/a.png" width="9" height="9"/>
<style>@import url("https://example.org/a.css");</style><rect width="40" height="30"/></svg>"""


def check(page, path, width):
    """Assert what every page has to keep to."""
    assert page.complaints() == []
    assert {url for url in page.requests() if not url.startswith("data:")} == {path.as_uri()}
    assert page.evaluate(WIDE.format(width=width)) == []
    # A phone shows more than its width if something is too wide.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("innerWidth") == width
    assert page.evaluate("[...document.images].map(i => i.complete && i.naturalWidth > 0)") == [
        True,
        True,
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write(example.results(), example.draw(tmp_path_factory.mktemp("page")))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_keeps_to_itself(browser, path, width, scheme):
    page = Page(browser, path, width=width, prefers_color_scheme=scheme)
    check(page, path, width)
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")


def test_wide_tables_scroll_in_their_own_box(browser, path):
    page = Page(browser, path, width=390)
    hidden = "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
    assert max(page.evaluate(hidden)) > 50
    assert max(Page(browser, path, width=1200).evaluate(hidden)) <= 0


@pytest.mark.parametrize("width", WIDTHS)
def test_words_without_end_do_not_widen_the_page(browser, tmp_path, width):
    results = example.results()
    for place, value in list(walk(results)):
        if isinstance(value, str) and example.CHECKED.isdisjoint(place[-1:]):
            put(results, place, "endless" * 30)
    results["environment"]["endless" * 30] = "endless"
    path = write(results, example.draw(tmp_path))
    check(Page(browser, path, width=width), path, width)


def test_points_stand_below_each_other(browser, path):
    places = Page(browser, path).evaluate(POINTS)
    for column in {column for column, _ in places}:
        lefts = [left for number, left in places if number == column]
        assert len(lefts) > 3
        assert max(lefts) - min(lefts) < 0.1


def test_a_picture_runs_no_script(browser, tmp_path):
    example.draw(tmp_path)
    (tmp_path / "figures" / "figure7-fields.svg").write_text(SCRIPTED)
    path = write(example.results(), tmp_path)
    page = Page(browser, path)
    check(page, path, 1200)
    assert page.evaluate("typeof ran") == "undefined"


def test_it_prints_in_light_colours_on_whole_pages(browser, path):
    page = Page(browser, path, prefers_color_scheme="dark")
    assert page.pdf().startswith(b"%PDF")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    page.call("Emulation.setEmulatedMedia", media="print", features=dark)
    look = "(e => [e.color, e.backgroundColor])(getComputedStyle(document.documentElement))"
    assert page.evaluate(look) == ["rgb(31, 37, 43)", "rgb(255, 255, 255)"]
    # The width of A4 between its margins.
    size = {"width": 658, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    widths = "[...document.querySelectorAll('table, img')].map(e => e.offsetWidth)"
    assert max(page.evaluate(widths)) <= 658
    breaks = "[...document.querySelectorAll('figure')].map(e => getComputedStyle(e).breakInside)"
    assert set(page.evaluate(breaks)) == {"avoid"}
