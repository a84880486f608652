"""Downloads against a local server that also stalls, cuts short and serves the wrong bytes."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import socket
import threading
import time
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from coevo import datasets
from coevo.datasets import loading, sources

pytest.importorskip("pooch")

HAR_ZIP = "human+activity+recognition+using+smartphones.zip"
IMAGES = "train-images-idx3-ubyte"
TIMEOUT = 0.5
LOGIN_PAGE = b"<html>Log in to the hotel's network</html>"


class Server(http.server.ThreadingHTTPServer):
    """Serves `pages` in the manner that `manners` says for a path."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {}
        self.manners = {}
        self.asked = []
        self.closing = threading.Event()

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        manner = self.server.manners.get(self.path, "well")
        if manner == "not found":
            self.send_error(404)
            return
        if manner == "silent":
            self.server.closing.wait(20)
            return
        page = self.server.pages[self.path]
        if manner == "wrong":
            page = LOGIN_PAGE
        if manner == "short":  # and claims that this was all
            page = page[: len(page) // 2]
        self.send_response(200)
        if manner != "no length":
            self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if manner in {"cut", "stalls"}:
            self.wfile.write(page[: len(page) // 2])
            self.wfile.flush()
            if manner == "stalls":
                self.server.closing.wait(20)
            return
        self.wfile.write(page)

    def log_message(self, *arguments):
        """Tests are quiet."""


@pytest.fixture
def server(monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join(10)


def idx(array):
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def serve(monkeypatch, server, name, contents, addresses):
    """Make a data set of small contents and let the local server stand for its publisher."""
    source = sources.SOURCES[name]
    files = tuple(
        replace(file, sha256=hashlib.sha256(contents[file.path]).hexdigest())
        for file in source.files
    )
    downloads = tuple(
        replace(
            download,
            addresses=tuple(f"{server.address}/{a}/{download.name}" for a in addresses),
        )
        for download in source.downloads
    )
    changed = replace(source, files=files, downloads=downloads)
    monkeypatch.setitem(sources.SOURCES, name, changed)


@pytest.fixture
def mnist(monkeypatch, server):
    rng = np.random.default_rng(1)
    contents = {}
    for part, n in (("train", 40), ("t10k", 10)):
        contents[f"{part}-images-idx3-ubyte"] = idx(rng.integers(0, 256, (n, 28, 28)))
        contents[f"{part}-labels-idx1-ubyte"] = idx(np.arange(n) % 10)
    for path, content in contents.items():
        for address in ("first", "second"):
            server.pages[f"/{address}/{path}.gz"] = gzip.compress(content)
    serve(monkeypatch, server, "MNIST", contents, ("first", "second"))
    return contents


@pytest.fixture
def har(monkeypatch, server):
    contents = {"features.txt": b"1 a\n2 b\n"}
    for part, n in (("train", 20), ("test", 8)):
        contents[f"{part}/X_{part}.txt"] = b"  1.0000000e-001 -2.0000000e-001\n" * n
        contents[f"{part}/y_{part}.txt"] = b"1\n2\n" * (n // 2)
        contents[f"{part}/subject_{part}.txt"] = b"3\n" * n
    serve(monkeypatch, server, "HAR", contents, ("har",))
    server.pages[f"/har/{HAR_ZIP}"] = nested_zip(contents)
    monkeypatch.setattr(loading, "HAR_PAPER_ROWS", 15)
    return contents


def nested_zip(contents):
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        for path, content in contents.items():
            archive.writestr(f"UCI HAR Dataset/{path}", content)
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("UCI HAR Dataset.zip", inner.getvalue())
    return outer.getvalue()


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_fetch_mnist_then_nothing_is_left_to_fetch(server, mnist, tmp_path, capfd):
    assert not datasets.status("MNIST", tmp_path).is_complete
    status = datasets.fetch("MNIST", tmp_path, timeout=5)
    assert status.is_complete
    assert files_in(tmp_path) == sorted(f"mnist/{path}.gz" for path in mnist)
    assert all(check.is_right for check in datasets.verify("MNIST", tmp_path))
    assert len(server.asked) == 4
    datasets.fetch("MNIST", tmp_path, timeout=5)
    assert len(datasets.load("MNIST", "all", tmp_path)) == 50
    assert len(server.asked) == 4
    assert capfd.readouterr() == ("", "")


def test_fetch_goes_on_where_it_stopped(server, mnist, tmp_path):
    server.manners = {f"/{a}/t10k-images-idx3-ubyte.gz": "not found" for a in ("first", "second")}
    with pytest.raises(datasets.DownloadError, match="404"):
        datasets.fetch("MNIST", tmp_path, timeout=5)
    assert len(files_in(tmp_path)) == 2
    server.manners = {}
    server.asked.clear()
    datasets.fetch("MNIST", tmp_path, timeout=5)
    assert server.asked == [
        "/first/t10k-images-idx3-ubyte.gz", "/first/t10k-labels-idx1-ubyte.gz",
    ]  # fmt: skip


def test_load_downloads_to_the_data_home(server, mnist, tmp_path, monkeypatch):
    monkeypatch.setenv("COEVO_DATA_HOME", str(tmp_path / "new" / "folder"))
    dataset = datasets.load("MNIST")
    assert dataset.inputs.shape == (40, 784)
    assert (tmp_path / "new" / "folder" / "mnist" / f"{IMAGES}.gz").is_file()


def test_load_downloads_to_the_cache(server, har, tmp_path, monkeypatch):
    import pooch

    monkeypatch.delenv("COEVO_DATA_HOME", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / project)
    dataset = datasets.load("HAR")
    assert dataset.inputs.shape == (15, 2)
    assert dataset.feature_names == ("a", "b")
    assert files_in(tmp_path) == [f"coevo/har/{HAR_ZIP}"]
    assert len(datasets.load("HAR", "all")) == 28
    assert len(server.asked) == 1


@pytest.mark.parametrize("manner", ["not found", "silent", "stalls", "cut", "short", "wrong"])
def test_second_address_when_the_first_fails(server, mnist, tmp_path, manner):
    server.manners = {f"/first/{IMAGES}.gz": manner}
    assert datasets.fetch("MNIST", tmp_path, timeout=TIMEOUT).is_complete
    assert f"/second/{IMAGES}.gz" in server.asked
    assert len(files_in(tmp_path)) == 4


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("not found", "404"),
        ("silent", "silent for 0.5 s"),
        ("stalls", "silent for 0.5 s"),
        ("cut", "the connection broke too early"),
        ("short", "expected"),
        ("wrong", "expected"),
    ],
)
def test_failed_download_is_clear_and_leaves_nothing(server, mnist, tmp_path, manner, words):
    server.manners = {f"/{a}/{IMAGES}.gz": manner for a in ("first", "second")}
    start = time.monotonic()
    with pytest.raises(datasets.DownloadError) as caught:
        datasets.fetch("MNIST", tmp_path, timeout=TIMEOUT)
    assert time.monotonic() - start < 10
    message = str(caught.value)
    for expected in ("MNIST", f"{IMAGES}.gz", str(tmp_path), "/first/", "/second/", words):
        assert expected in message
    if manner in {"short", "wrong"}:
        page = server.pages[f"/first/{IMAGES}.gz"]
        arrived = page[: len(page) // 2] if manner == "short" else LOGIN_PAGE
        assert hashlib.sha256(arrived).hexdigest() in message
        assert hashlib.sha256(mnist[IMAGES]).hexdigest() in message
    assert files_in(tmp_path) == []
    assert list((tmp_path / "mnist").iterdir()) == []


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("cut", "broke too early"),
        ("short", r"not a complete zip.*SHA-256"),
        ("wrong", r"not a complete zip.*SHA-256"),
    ],
)
def test_broken_zip_is_not_kept(server, har, tmp_path, manner, words):
    server.manners = {f"/har/{HAR_ZIP}": manner}
    with pytest.raises(datasets.DownloadError, match=words):
        datasets.fetch("HAR", tmp_path, timeout=TIMEOUT)
    assert list((tmp_path / "har").iterdir()) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"test/y_test.txt": b"6\n" * 8}, r"published test/y_test\.txt.*expected"),
        ({"test/y_test.txt": None}, r"does not hold test/y_test\.txt"),
    ],
)
def test_zip_of_something_else_is_not_kept(server, har, tmp_path, change, words):
    contents = {path: c for path, c in (har | change).items() if c is not None}
    server.pages[f"/har/{HAR_ZIP}"] = nested_zip(contents)
    with pytest.raises(datasets.DownloadError, match=words):
        datasets.fetch("HAR", tmp_path, timeout=5)
    assert list((tmp_path / "har").iterdir()) == []


def test_no_server_at_all(server, mnist, tmp_path, monkeypatch):
    source = sources.SOURCES["MNIST"]
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{nobody_listens.getsockname()[1]}/file.gz"
        downloads = tuple(replace(one, addresses=(address,)) for one in source.downloads)
        monkeypatch.setitem(sources.SOURCES, "MNIST", replace(source, downloads=downloads))
        with pytest.raises(datasets.DownloadError, match=r"MNIST.*Connection refused"):
            datasets.fetch("MNIST", tmp_path, timeout=TIMEOUT)


def test_wrong_file_in_the_folder_is_neither_used_nor_overwritten(server, mnist, tmp_path):
    (tmp_path / "mnist").mkdir()
    path = tmp_path / "mnist" / f"{IMAGES}.gz"
    path.write_bytes(b"mine")
    with pytest.raises(datasets.WrongContentError, match="MNIST is refused"):
        datasets.fetch("MNIST", tmp_path, timeout=5)
    assert path.read_bytes() == b"mine"
    assert server.asked == []


def test_no_download_unless_allowed(server, mnist, tmp_path):
    with pytest.raises(datasets.MissingDataError, match="MNIST"):
        datasets.load("MNIST", folder=tmp_path, download=False)
    assert server.asked == []


def test_folder_that_cannot_be_written(server, mnist, tmp_path):
    (tmp_path / "mnist").write_text("a file where the folder should be")
    with pytest.raises(datasets.DownloadError, match=r"cannot be written.*COEVO_DATA_HOME"):
        datasets.fetch("MNIST", tmp_path, timeout=5)


@pytest.mark.parametrize("manner", ["well", "no length"])
def test_progress(server, mnist, tmp_path, manner):
    server.manners = dict.fromkeys(server.pages, manner)
    news = []
    datasets.fetch("MNIST", tmp_path, timeout=5, progress=lambda *arguments: news.append(arguments))
    size = len(server.pages[f"/first/{IMAGES}.gz"])
    of_images = [(received, total) for name, received, total in news if name == f"{IMAGES}.gz"]
    if manner == "well":
        assert of_images[-1] == (size, size)
    else:
        assert of_images[-1][0] >= size
        assert of_images[-1][1] is None
    received = [count for count, _ in of_images]
    assert received == sorted(received)


def test_timeout_is_checked(tmp_path):
    with pytest.raises(ValueError, match="timeout must be above 0"):
        datasets.fetch("MNIST", tmp_path, timeout=0)
