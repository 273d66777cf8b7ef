"""Files are looked for in the folder of the user, the cache and the web, and are checked."""

import hashlib
import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pooch
import pytest

from mporbm.datasets import DatasetNotFoundError, load_mnist
from mporbm.datasets.fetch import Remote, cache_folder, fetch

RETRIEVE = pooch.retrieve
"""That of pooch itself: tests find another one in its place."""
CONTENT = b"some bytes"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
REMOTE = Remote("a.bin", ("https://one.test/a.bin", "https://two.test/a.bin"), SHA256)


@pytest.fixture
def server(monkeypatch):
    """What the addresses give, as pooch would get it."""
    pages, asked = {}, []

    def retrieve(url, known_hash, fname, path, downloader):
        asked.append((url, known_hash))
        if url not in pages:
            raise ConnectionError("404 Client Error")
        if known_hash and known_hash != hashlib.sha256(pages[url]).hexdigest():
            raise ValueError("SHA256 hash of downloaded file does not match the known hash")
        Path(path).mkdir(parents=True, exist_ok=True)
        target = Path(path) / fname
        target.write_bytes(pages[url])
        return str(target)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    return pages, asked


def test_a_file_of_the_user_comes_first(put, offline, capsys):
    path = put("things", "a.bin", CONTENT)
    cached = cache_folder("things") / "a.bin"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(CONTENT)
    assert fetch("things", REMOTE) == path
    path.unlink()
    assert fetch("things", REMOTE) == cached
    assert offline == []
    assert capsys.readouterr() == ("", "")


def test_download_into_the_cache(home, server, capsys):
    pages, asked = server
    pages[REMOTE.urls[0]] = CONTENT
    path = fetch("things", REMOTE)
    assert path == cache_folder("things") / "a.bin"
    assert path.read_bytes() == CONTENT
    assert capsys.readouterr() == ("", f"Downloading {REMOTE.urls[0]} to {path.parent}\n")
    assert fetch("things", REMOTE) == path
    assert asked == [(REMOTE.urls[0], SHA256)]


def test_the_next_address_is_tried(home, server):
    pages, asked = server
    pages[REMOTE.urls[0]] = b"an apology"
    pages[REMOTE.urls[1]] = CONTENT
    assert fetch("things", REMOTE).read_bytes() == CONTENT
    assert [url for url, _ in asked] == list(REMOTE.urls)


def test_a_broken_file_of_the_cache_is_downloaded_again(home, server):
    server[0][REMOTE.urls[0]] = CONTENT
    fetch("things", REMOTE).write_bytes(CONTENT[:-1])
    assert fetch("things", REMOTE).read_bytes() == CONTENT


def test_a_file_without_a_known_hash_is_not_downloaded(home, server):
    """But for one whose content has hashes of its own."""
    pages, asked = server
    pages[REMOTE.urls[0]] = CONTENT
    with pytest.raises(DatasetNotFoundError, match=r"no hash of it is known. Get it from http"):
        fetch("things", Remote("a.bin", REMOTE.urls))
    assert asked == []
    fetch("things", Remote("a.bin", REMOTE.urls, checked_inside=True))
    assert asked == [(REMOTE.urls[0], None)]


@pytest.fixture
def website(monkeypatch):
    """A server on this computer: what it gives, and its address."""
    pages = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(pages[self.path])

        def log_message(self, *arguments):
            pass

    monkeypatch.setattr("pooch.retrieve", RETRIEVE)
    monkeypatch.setenv("NO_PROXY", "*")
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield pages, f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_download_with_another_hash_is_refused_and_leaves_nothing(home, website):
    pages, address = website
    pages["/a.bin"] = b"other bytes"
    remote = Remote("a.bin", (f"{address}/a.bin",), SHA256)
    with pytest.raises(DatasetNotFoundError, match=r"hash .* does not match"):
        fetch("things", remote)
    assert [path for path in home.parent.rglob("*") if path.is_file()] == []
    pages["/a.bin"] = CONTENT
    assert fetch("things", remote).read_bytes() == CONTENT


def test_the_logger_of_pooch_is_as_it_was(home, server):
    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel("DEBUG")
    server[0][REMOTE.urls[1]] = CONTENT
    try:
        fetch("things", REMOTE)
        assert logging.getLevelName(logger.level) == "DEBUG"
    finally:
        logger.setLevel(before)


def test_a_broken_file_of_the_user_is_named(put, offline):
    path = put("things", "a.bin", CONTENT[:-1])
    with pytest.raises(
        ValueError, match=r"expected the file as it is published.*get it again"
    ) as e:
        fetch("things", REMOTE)
    assert str(e.value).startswith(f"{path}: ")
    assert SHA256 in str(e.value)
    assert REMOTE.urls[0] in str(e.value)
    assert offline == []


def test_without_a_network(home, offline):
    with pytest.raises(DatasetNotFoundError, match="could not be downloaded") as e:
        load_mnist()
    message = str(e.value)
    assert isinstance(e.value, OSError)
    assert "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz" in message
    assert "Name or service not known" in message
    assert f"put it into {home / 'mnist'} ($MPORBM_DATA/mnist)." in message
    assert len(offline) == 2


def test_without_the_package_that_downloads(home, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "mporbm\[datasets\]"'):
        fetch("things", REMOTE)


def test_without_a_network_and_a_folder(home, monkeypatch):
    monkeypatch.delenv("MPORBM_DATA")
    remote = Remote("a.zip", REMOTE.urls, members=("a.data", "b.data"), checked_inside=True)
    with pytest.raises(DatasetNotFoundError) as e:
        fetch("things", remote)
    message = str(e.value)
    assert REMOTE.urls[0] in message
    assert "or a.data, b.data" in message
    assert f"into {home.parent / 'cache' / 'things'} or $MPORBM_DATA/things." in message


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_folder_that_is_none(home, monkeypatch, kind):
    value = home / "nowhere"
    if kind == "file":
        value.write_bytes(b"")
    monkeypatch.setenv("MPORBM_DATA", str(value))
    with pytest.raises(NotADirectoryError, match=r"expected a folder.*unset the variable") as e:
        load_mnist()
    assert str(e.value).startswith(f"MPORBM_DATA={value}: ")


def test_the_cache_is_a_folder_of_the_system(home, monkeypatch):
    monkeypatch.delenv("MPORBM_CACHE")
    assert cache_folder("mnist").parts[-2:] == ("mporbm", "mnist")


def test_importing_is_cheap():
    modules = "{'jax', 'scipy', 'sklearn', 'PIL', 'pooch', 'mlxtend'}"
    script = f"import sys, mporbm.datasets; print(sorted({modules} & set(sys.modules)))"
    command = [sys.executable, "-c", script]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.split() == ["[]"]
