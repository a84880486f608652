"""Every example of README and docs runs, and prints what its page says.

The blocks of a page run in order, in one folder and one namespace: `python` blocks as they are, of
`console` and `sh` blocks the commands that begin with coevo. A `text` block right after a python
block, and the lines after a command in a `console` block, are what is printed. Numbers may differ
by a quarter, as they depend on the machine a little; times and versions may differ at will. A
`toml` block with a title is a file of that name. A block after a comment such as
`<!-- not run: needs a cluster -->` is left out.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"( *)(`{3,})(\w*)(.*)")
MARK = re.compile(r"<!-- not run: (.+) -->")
EXTRAS = ("onnx", "onnxruntime", "skl2onnx", "pandas", "gymnasium")


@dataclass
class Block:
    language: str
    title: str
    line: int
    text: str
    reason: str = ""
    prints: str | None = None


def read_blocks(page):
    """Return the blocks of a page, each with what it prints if the page tells."""
    blocks, opened, above = [], None, ""
    for number, line in enumerate(page.splitlines(), start=1):
        fence = FENCE.fullmatch(line)
        if opened is not None:
            indent, ticks, block = opened
            if line.strip() == ticks:
                if block.language == "text" and above == "python" and blocks[-1].prints is None:
                    blocks[-1].prints = block.text
                else:
                    blocks.append(block)
                above, opened = block.language, None
            else:
                block.text += line.removeprefix(indent) + "\n"
        elif fence:
            indent, ticks, language, info = fence.groups()
            title = re.search('title="(.+?)"', info)
            reason = MARK.fullmatch(above)
            opened = indent, ticks, Block(
                language, title[1] if title else "", number, "", reason[1] if reason else ""
            )  # fmt: skip
        elif line.strip():
            above = line.strip()
    assert opened is None, f"the block at line {opened[2].line} has no end"
    return blocks


def read_commands(block):
    """Return the commands of a block and the lines that each prints."""
    commands = []
    for line in block.text.replace("\\\n", " ").splitlines():
        is_command = line.startswith("$ ") or block.language == "sh"
        if is_command:
            commands.append((line.removeprefix("$ ").partition("#")[0].strip(), []))
        elif line.strip():
            commands[-1][1].append(line)
    return [(words, printed) for words, printed in commands if words.split()[:1] == ["coevo"]]


NUMBER = re.compile(r"\d(?:[\d,.]*\d)?")
TIME = re.compile(r" (?:s|seconds|minutes|µs)\b|:\d")


def says(line, printed):
    """Return whether a line of a page is in what was printed, but for small differences."""
    line, printed = " ".join(line.split()), " ".join(printed.split())
    pattern = NUMBER.sub(r"(\\d(?:[\\d,.]*\\d)?)", re.escape(line).replace(r"\.", "."))
    numbers = [
        (match.group(), bool(TIME.match(line, match.end()))) for match in NUMBER.finditer(line)
    ]
    return any(
        all(
            is_time or is_near(told, found)
            for (told, is_time), found in zip(numbers, match.groups(), strict=True)
        )
        for match in re.finditer(f"(?={pattern})", printed)
    )


def is_near(told, found):
    if told.count(".") > 1:
        return True  # a version or a date
    told, found = (float(number.replace(",", "")) for number in (told, found))
    return abs(told - found) <= 0.25 * max(told, found) + 0.02


def run_python(block, namespace, name):
    code = compile("\n" * block.line + block.text, name, "exec")  # so that errors name the line
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    if block.prints is not None:
        printed = printed.getvalue()
        assert len(printed.split()) == len(block.prints.split()), f"{name}:{block.line}: {printed}"
        assert says(block.prints, printed), f"{name}:{block.line}: {printed}"


def run_commands(block, folder, name):
    for words, lines in read_commands(block):
        done = subprocess.run(
            [sys.executable, "-c", "from coevo.cli.app import app; app()", *shlex.split(words)[1:]],
            cwd=folder, env=os.environ, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{name}:{block.line}: {words}\n{done.stderr}"
        for line in lines:
            assert says(line, done.stdout), f"{name}:{block.line}: {words}\n{done.stdout}"


def run_page(page, name, folder):
    namespace = {"__name__": "__main__"}
    for block in read_blocks(page):
        if block.reason:
            continue
        if block.language == "python":
            run_python(block, namespace, name)
        elif block.language in ("console", "sh"):
            run_commands(block, folder, name)
        elif block.language == "toml" and block.title:
            (folder / block.title).write_text(block.text, encoding="utf-8")


def is_runnable(page):
    blocks = read_blocks(page.read_text(encoding="utf-8"))
    return any(block.language in ("python", "console", "sh") for block in blocks)


@pytest.mark.parametrize("path", [p for p in PAGES if is_runnable(p)], ids=lambda p: p.stem)
def test_page(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    try:
        run_page(path.read_text(encoding="utf-8"), str(path.relative_to(ROOT)), tmp_path)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")


def test_speed_on_the_first_page_is_the_measured_one():
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rate, ratio = re.search(
        r"([\d,]+) evaluations a second .* (\d+) times", page, re.DOTALL
    ).groups()
    measured = (ROOT / "benchmarks" / "results" / "speed.md").read_text(encoding="utf-8")
    row = next(line for line in measured.splitlines() if line.startswith("| HAR |")).split("|")
    assert rate == row[3].strip()
    assert int(ratio) == round(float(row[5]))


def test_architecture_names_modules_and_functions_that_exist():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)*\w+\.py)`((?:(?:,| or)\s+`[\w.]+`)*)", page)
    assert len(named) > 20
    for path, functions in named:
        here = ROOT if path.startswith("tests/") else ROOT / "src" / "coevo"
        text = (here / path).read_text(encoding="utf-8")
        for function in re.findall(r"`([\w.]+)`", functions):
            if not function.endswith(".py"):
                name = function.rpartition(".")[2]
                assert re.search(rf"(def|class) {name}\b", text), f"{path}: {function}"


# -------------------------------------------------------------------------- the runner itself


def run(text, tmp_path):
    run_page(text, "made-up.md", tmp_path)


@pytest.mark.parametrize(
    ("told", "is_right"),
    [
        ("3 of 1,000 in 0.2 s", True), ("3 of 1,200 in 9 s", True), ("3.5 of 900 in 0.2 s", True),
        ("3 of 1,400 in 0.2 s", False), ("5 of 1,000 in 0.2 s", False), ("3 of 1,000", False),
    ],
)  # fmt: skip
def test_blocks_share_a_namespace_and_numbers_may_differ_a_little(told, is_right, tmp_path):
    page = (
        "```python\nx = 3\n```\nwords\n```python\nprint(f'{x} of 1,000 in 0.2 s')\n```\n\n"
        f"```text\n{told}\n```\n"
    )
    with contextlib.nullcontext() if is_right else pytest.raises(AssertionError, match="made-up"):
        run(page, tmp_path)


def test_other_output_is_noticed(tmp_path):
    with pytest.raises(AssertionError, match=r"made-up\.md:1"):
        run("```python\nprint('right 3')\n```\n```text\nwrong 3\n```\n", tmp_path)


def test_errors_name_the_line(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run("words\n\n```python\nx = 1\nx / 0\n```\n", tmp_path)
    assert caught.traceback[-1].lineno + 1 == 5


def test_failing_commands_and_other_lines_are_noticed(tmp_path):
    with pytest.raises(AssertionError, match="there is no plan"):
        run("```sh\nmake demo\ncoevo study status nothing  # really\n```\n", tmp_path)
    with pytest.raises(AssertionError, match=r"made-up\.md:1"):
        run("```console\n$ coevo --version\nsomething else\n```\n", tmp_path)


def test_marked_blocks_are_left_out_and_files_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(
        "<!-- not run: no such thing -->\n```python\n1 / 0\n```\n"
        '```toml title="a.toml"\nb = 1\n```\n'
        "!!! note\n    ```python\n    from pathlib import Path\n"
        "    assert Path('a.toml').read_text() == 'b = 1\\n'\n    ```\n",
        tmp_path,
    )
