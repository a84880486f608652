"""The site builds without warnings, loads nothing from elsewhere, and a browser shows it."""

import os
import re
import runpy
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("material", reason="needs the extra coevo[docs]")
pytest.importorskip("mkdocstrings", reason="needs the extra coevo[docs]")

ROOT = Path(__file__).parents[2]
PAGES = ("index.html", "gallery.html", "algorithm.html", "architecture.html", "api/estimators.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def test_nothing_is_loaded_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    loaded = re.compile(r"""<(?:script|img|iframe)[^>]+src=["']?(?:https?:)?//|<link(?![^>]+canonical)[^>]+href=["']?(?:https?:)?//""")  # fmt: skip  # noqa: E501
    for page in pages:
        assert not loaded.search(page.read_text(encoding="utf-8")), page


def test_reference_names_everything_public(site):
    import coevo

    text = "".join(page.read_text(encoding="utf-8") for page in (site / "api").glob("*.html"))
    for name in set(coevo.__all__) - {"__version__"}:
        assert re.search(rf'id="coevo\.(\w+\.)*{name}"', text), name


def test_each_name_of_a_group_has_its_own_default(site):
    page = (site / "api" / "estimators.html").read_text(encoding="utf-8")
    words = " ".join(re.sub("<[^>]+>", "", page).split())
    assert re.search(r"activation \( ?str, default: &#39;tanh&#39; ?\)", words)
    assert re.search(r"decay \( ?float, default: 0.2 ?\)", words)


def test_figures_are_drawn_under_the_names_the_pages_use(tmp_path, monkeypatch):
    script = ROOT / "docs" / "figures" / "draw.py"
    drawing = runpy.run_path(str(script))
    monkeypatch.setitem(drawing["save"].__globals__, "HERE", tmp_path)
    drawing["main"]()
    drawn = {path.name for path in tmp_path.glob("*.svg")}
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")]
    used = {name for page in pages for name in re.findall(r"\(figures/([\w.-]+)\)", page)}
    assert used == drawn
    assert {path.name for path in script.parent.glob("*.svg")} == drawn


class Handler(SimpleHTTPRequestHandler):
    """Serves the site and notes what could not be found."""

    def log_message(self, *_):
        pass

    def log_error(self, message, *arguments):
        self.server.errors.append(f"{self.path}: {message % arguments}")


@pytest.fixture(scope="module")
def server(site):
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(site))) as server:
        server.errors = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


PROBE = """<script>addEventListener("load", () => setTimeout(() => {
  const images = [...document.images];
  const drawn = images.filter(image => image.naturalWidth > 0).length;
  const wide = document.documentElement.scrollWidth > innerWidth;
  document.title = `drawn ${drawn} of ${images.length}, ${wide ? "too wide" : "fits"}`;
}, 500));</script></body>"""


@pytest.mark.parametrize("width", [1280, 500])
@pytest.mark.parametrize("name", PAGES)
def test_browser_shows_the_site(site, server, browse, name, width):
    page = site / name
    probed = page.with_name(f"probed-{page.name}")
    text = page.read_text(encoding="utf-8")
    probed.write_text(text.replace("</body>", PROBE), encoding="utf-8")
    port = server.server_address[1]
    address = f"http://127.0.0.1:{port}/{probed.relative_to(site).as_posix()}"
    dom, console = browse(address, width)
    n_images = len(re.findall(r"<img", text))
    assert f"<title>drawn {n_images} of {n_images}, fits</title>" in dom
    assert console == []
    assert server.errors == []


def test_search_works_when_the_site_is_opened_from_disk(site, browse):
    dom, console = browse(f"{(site / 'index.html').as_uri()}?q=decomposition", 1300)
    assert re.search(r"md-search-result__meta\">\s*\d+ matching documents", dom)
    assert "howto/decomposition.html" in dom.partition("md-search-result__list")[2]
    assert console == []


def test_code_of_the_tutorial_needs_no_scrolling(site, browse):
    probe = """<script>addEventListener("load", () => setTimeout(() => {
      const codes = [...document.querySelectorAll("pre > code")];
      const wide = codes.filter(code => code.scrollWidth > code.clientWidth + 1).length;
      document.title = `${codes.length > 5} ${wide}`; }, 500));</script></body>"""
    page = site / "probed-tutorial.html"
    text = (site / "tutorial.html").read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", probe), encoding="utf-8")
    assert "<title>true 0</title>" in browse(page.as_uri(), 1300)[0]
    assert "<title>true 0</title>" not in browse(page.as_uri(), 500)[0]  # it can fail


def test_browser_notices_errors_and_missing_files(site, server, browse):
    (site / "bad.html").write_text(
        '<body><img src="nothing.png"><script>console.error("spoilt")</script></body>'
    )
    _, console = browse(f"http://127.0.0.1:{server.server_address[1]}/bad.html", 900)
    assert any("spoilt" in line for line in console)
    assert any("nothing.png" in error for error in server.errors)
    server.errors.clear()
