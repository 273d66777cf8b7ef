"""The page needs nothing else, escapes all text, and can be read by everyone."""

import re
from importlib.resources import files
from itertools import pairwise

import pytest

from reproduction.report import render
from reproduction_support import example
from reproduction_support.markup import find, parse, place_name, put, text, walk

EVIL = (
    "<script>alert({0})</script> & \"quoted{0}\" 'too' </style><img src=x onerror=y> javascript:x"
)


def attributes(page):
    return [(element, name, value) for element in page.iter() for name, value in element.items()]


def assert_self_contained(page):
    assert not [e for e in page.iter() if e.tag in ("script", "iframe", "object", "embed", "base")]
    for _, name, value in attributes(page):
        assert not name.startswith("on"), name
        if name in ("src", "href", "srcset", "action", "data", "poster"):
            assert value.startswith(("data:", "#")), value
    (style,) = page.iter("style")
    assert not re.search(r"@import|url\(|expression", style.text)


def test_nothing_comes_from_elsewhere(page):
    assert_self_contained(page)
    policies = [e for e in page.iter("meta") if "http-equiv" in e.attrib]
    assert [policy.get("http-equiv") for policy in policies] == ["Content-Security-Policy"]
    allowed = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert policies[0].get("content") == allowed


def test_every_text_is_shown_and_escaped(folder):
    results = example.results()
    evil = {}
    for path, value in list(walk(results)):
        if isinstance(value, str) and example.CHECKED.isdisjoint(path[-1:]):
            evil[path] = EVIL.format(len(evil))
            put(results, path, evil[path])
    results["environment"] |= {EVIL.format("key"): "value"}
    assert len(evil) > 100
    html = render(results, folder)
    page = parse(html)
    assert_self_contained(page)
    assert len(list(page.iter("img"))) == 2
    shown = ["".join(page.itertext()), *(value for _, _, value in attributes(page))]
    for path, words in {**evil, "key": EVIL.format("key")}.items():
        assert any(words in place for place in shown), path
    assert "<script" not in html


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://elsewhere.test", "data:text/html,x"]
)
def test_no_text_becomes_a_link(folder, link):
    results = example.results() | {"references": [link], "title": link, "command": link}
    page = parse(render(results, folder))
    assert_self_contained(page)
    links = [value for _, name, value in attributes(page) if name in ("href", "src")]
    assert not [value for value in links if link in value]


def test_texts_of_a_certain_form_are_checked(folder):
    checked = set()
    for path, value in walk(example.results()):
        if isinstance(value, str) and path[-1] in example.CHECKED:
            results = example.results()
            put(results, path, EVIL)
            with pytest.raises(ValueError, match=re.escape(place_name(path)) + ": expected "):
                render(results, folder)
            checked.add(path[-1])
    assert checked == example.CHECKED


def test_everything_is_there(page):
    results = example.results()
    assert text(page.find("head/title")) == text(page.find("body/header/h1")) == results["title"]
    facts = [text(fact) for fact in page.find("body/header/p")]
    assert facts == ["Full run", "mporbm 0.1.0", "16 November 2026", "1 h 30 min of computing"]
    origin = {text(row.find("dt")): text(row.find("dd")) for row in page.iterfind(".//dl/div")}
    assert origin.items() >= results["environment"].items()
    assert origin["Command"] == results["command"]
    sections = [s for s in page.iter("section") if not s.get("aria-labelledby").startswith("_")]
    for section, given in zip(sections, results["sections"], strict=True):
        assert section.find("h2").get("id") == section.get("aria-labelledby") == given["name"]
        assert [text(p) for p in section.findall("p")] == given["text"]
        names = [part["name"] for part in (*given["tables"], *given["figures"])]
        assert [figure.get("id") for figure in section.findall("figure")] == names
    table = find(page, "table4-drivface")
    papers = [text(row.find("td")) for row in table.iterfind("div/table/tbody/tr")]
    assert papers[:4] == ["24.2", "15.48", "9.68", "8.06"]


def test_verdicts_have_a_word_and_a_sign(page):
    words = {"\u2713": "Confirmed", "\u2717": "Not confirmed", "\u25cb": "Open"}
    signs = {True: "\u2713", False: "\u2717", None: "\u25cb"}
    findings = find(page, "_findings")
    (summary,) = [s for s in page.iter("section") if s.find("h2") is findings]
    shown = [[text(part) for part in item] for item in summary.iterfind("ul/li")]
    expected = [
        [f"{signs[v['holds']]} {words[signs[v['holds']]]}", v["text"].replace(" %", "\u00a0%")]
        for v in example.results()["summary"]
    ]
    assert shown == expected
    assert len(page.findall(".//ul/li/strong")) == 12


def test_headings_are_in_order(page):
    levels = [int(e.tag[1]) for e in page.iter() if re.fullmatch(r"h[1-6]", e.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert all(text(e) for e in page.iter() if re.fullmatch(r"h[1-6]", e.tag))


def test_links_lead_somewhere(page):
    names = [element.get("id") for element in page.iter() if "id" in element.attrib]
    assert len(set(names)) == len(names)
    links = [a.get("href") for a in page.iter("a")]
    assert {link.removeprefix("#") for link in links} <= set(names)
    assert len(page.findall(".//nav//a")) == len(page.findall(".//main/section"))
    labels = {value for _, name, value in attributes(page) if name == "aria-labelledby"}
    assert labels <= set(names)


def test_everyone_can_read_it(page):
    assert page.get("lang") == "en"
    metas = {meta.get("name"): meta.get("content") for meta in page.iter("meta")}
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert all(image.get("alt") for image in page.iter("img"))
    for table in page.iter("table"):
        assert {h.get("scope") for h in table.iterfind("thead//th")} == {"col"}
        assert {h.get("scope") for h in table.iterfind("tbody//th")} == {"row"}
        widths = {len(row) for row in table.iter("tr")}
        assert len(widths) == 1


def luminance(color):
    parts = [int(color[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(weight * p for weight, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def blended(color, tint):
    """A colour below a transparent one."""
    *parts, percent = map(int, re.findall(r"\d+", tint))
    under = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [u + (p - u) * percent / 100 for u, p in zip(under, parts, strict=True)]
    return "#" + "".join(f"{round(m):02x}" for m in mixed)


def test_contrast_is_enough_in_light_and_dark():
    style = files("reproduction.report").joinpath("report.css").read_text()
    roots = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    assert len(roots) == 2
    for root in roots:
        colors = dict(re.findall(r"--(\w+): (#\w{6}|rgb\(.*?\));", root))
        for below in (colors["page"], blended(colors["page"], colors["tint"])):
            for name in ("text", "quiet", "accent", "confirmed", "refuted", "open"):
                light, dark = sorted(map(luminance, (below, colors[name])), reverse=True)
                assert (light + 0.05) / (dark + 0.05) >= 4.5, (name, below)


def test_a_quick_run_says_so(folder):
    results = example.results() | {"mode": "quick", "seconds": None}
    header = parse(render(results, folder)).find("body/header")
    assert text(header).count("uick run") == 2
    assert "computing" not in text(header)


def test_empty_parts_leave_no_trace(folder):
    results = example.results() | {"summary": [], "sections": [], "references": []}
    page = parse(render(results | {"environment": {}}, folder))
    assert [text(h) for h in page.iter("h2")] == ["Contents", "Origin of the numbers"]
    assert list(page.iter("figure")) == []


def test_numbers_keep_their_units(folder):
    results = example.results()
    results["summary"][0]["text"] = "10 % noise at 12.5 dB in 3 dBs"
    shown = text(parse(render(results, folder)))
    assert "10\u00a0% noise at 12.5\u00a0dB in 3 dBs" in shown


def test_the_same_results_give_the_same_page(folder):
    assert render(example.results(), folder) == render(example.results(), folder)
