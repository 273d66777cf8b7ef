"""Pictures are read from the folder only, and pages are written whole or not at all."""

import base64
import os
import re

import pytest

from reproduction.report import render, render_markdown, write
from reproduction_support import example
from reproduction_support.markup import find, parse

PLACE = 'results["sections"][2]["figures"][0]["path"]: '


@pytest.fixture
def own_folder(tmp_path):
    """A folder that a test may change, two levels below where it may look around."""
    return example.draw(tmp_path / "a" / "b")


def with_picture(path):
    results = example.results()
    results["sections"][2]["figures"][0]["path"] = str(path)
    return results


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_pictures_are_part_of_the_page(folder, page):
    for name, file, kind in [
        ("figure7-fields", "figure7-fields.svg", "svg+xml"),
        ("figure7-images", "images.png", "png"),
    ]:
        address = find(page, name).find("div/img").get("src")
        head, _, content = address.partition(";base64,")
        assert head == f"data:image/{kind}"
        assert base64.b64decode(content, validate=True) == (folder / "figures" / file).read_bytes()


def test_a_missing_picture(own_folder):
    reason = PLACE + "expected a picture, no such file: "
    with pytest.raises(FileNotFoundError, match=re.escape(reason) + r".*none\.svg"):
        render(with_picture("figures/none.svg"), own_folder)
    (own_folder / "folder.svg").mkdir()
    with pytest.raises(FileNotFoundError, match=re.escape(reason) + r".*folder\.svg"):
        render(with_picture("folder.svg"), own_folder)


def test_pictures_from_elsewhere(own_folder):
    outside = own_folder.parent / "outside.svg"
    outside.write_text("<svg/>")
    (own_folder / "link.svg").symlink_to(outside)
    for path in ("../outside.svg", "figures/../../outside.svg", outside, "link.svg", "../../x.svg"):
        with pytest.raises(ValueError, match=r"expected a path inside .*, got ") as caught:
            render(with_picture(path), own_folder)
        assert str(caught.value).startswith(PLACE)
        assert str(caught.value).endswith(f"got {str(path)!r}")
    inside = own_folder / "figures" / "figure7-fields.svg"
    for path in ("figures/../figures/figure7-fields.svg", inside):
        assert "data:image/svg+xml" in render(with_picture(path), own_folder)


def test_files_that_are_no_pictures(own_folder):
    for name in ("page.html", "picture.jpg", "svg", "picture.svg.gz"):
        (own_folder / name).write_text("<svg/>")
        with pytest.raises(ValueError, match=re.escape(f"got {name!r}")):
            render(with_picture(name), own_folder)
    for name in ("text.svg", "text.png"):
        (own_folder / name).write_text("text")
        with pytest.raises(ValueError, match=re.escape(f"got another kind of file: {name!r}")):
            render(with_picture(name), own_folder)


def test_write_gives_the_page(own_folder):
    before = files(own_folder)
    path = write(example.results(), own_folder)
    assert path == own_folder / "report.html"
    assert path.read_bytes() == render(example.results(), own_folder).encode()
    markdown = path.with_suffix(".md")
    assert markdown.read_bytes() == render_markdown(example.results(), own_folder).encode()
    assert files(own_folder) == sorted([*before, "report.html", "report.md"])
    (own_folder / "plain").touch()
    assert path.stat().st_mode == (own_folder / "plain").stat().st_mode


def test_a_failure_leaves_the_old_page(own_folder, monkeypatch):
    path = write(example.results(), own_folder)
    old, before = path.read_bytes(), files(own_folder)
    with pytest.raises(ValueError, match="mode"):
        write(example.results() | {"mode": "other"}, own_folder)

    def fail(*_):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        write(example.results() | {"mode": "quick"}, own_folder)
    assert path.read_bytes() == old
    assert files(own_folder) == before


def test_a_new_page_replaces_the_old_one(own_folder):
    path = write(example.results(), own_folder)
    write(example.results() | {"title": "Another title"}, own_folder)
    assert parse(path.read_text(encoding="utf-8")).find("head/title").text == "Another title"
