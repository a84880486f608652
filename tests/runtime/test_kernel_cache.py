"""The cache of compiled kernels: nothing stale is run, nothing damaged stops a run."""

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from coevo.runtime import kernel_cache

MODULE = """
from coevo.runtime.jit import compiled

@compiled
def inner(x):
    return x + {added}

@compiled
def outer(x):
    return 2 * inner(x)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package's lowest floor, with a kernel that calls another one."""
    package = tmp_path / "coevo"
    source = os.path.dirname(os.path.dirname(kernel_cache.__file__))
    (package / "engines").mkdir(parents=True)
    shutil.copy(os.path.join(source, "_typing.py"), package)
    (package / "__init__.py").touch()
    shutil.copytree(
        os.path.join(source, "runtime"),
        package / "runtime",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (package / "engines" / "__init__.py").touch()
    return package


def run(package, code):
    """Run code in a process of its own and return what it prints."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=package.parent, text=True,
        env=environment | {"PYTHONPATH": str(package.parent)}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNT = """
from coevo.engines.outer import outer
print(outer(1), sum(outer.entry.stats.cache_hits.values()))
"""


def write(package, added):
    inner, outer = MODULE.format(added=added).split("\n\n@compiled\ndef outer")
    (package / "engines" / "inner.py").write_text(inner + "\n")
    (package / "engines" / "outer.py").write_text(
        "from coevo.runtime.jit import compiled\nfrom coevo.engines.inner import inner\n\n"
        "@compiled\ndef outer" + outer
    )


def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(package):
    write(package, added=1)
    assert run(package, COUNT) == "4 0"
    assert run(package, COUNT) == "4 1"
    before = os.stat(package / "engines" / "outer.py")
    inner = package / "engines" / "inner.py"
    inner.write_text(inner.read_text().replace("x + 1", "x + 5"))
    after = os.stat(package / "engines" / "outer.py")
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)
    assert run(package, COUNT) == "12 0"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "random"])
def test_a_damaged_cache_is_replaced(package, ending, damage):
    write(package, added=1)
    assert run(package, COUNT) == "4 0"
    files = sorted((package / "engines" / "__pycache__").glob(f"*.{ending}"))
    assert files
    for file in files:
        content = file.read_bytes()
        harmed = {"empty": b"", "cut": content[: len(content) // 2], "random": os.urandom(400)}
        file.write_bytes(harmed[damage])
    assert run(package, COUNT) == "4 0"
    assert run(package, COUNT) == "4 1"  # and is whole again


FIRST = """
import time
from pathlib import Path
from coevo.engines.outer import outer
from coevo.runtime.jit import watching

def wait_until_the_other_waits(name):
    print("compiling", flush=True)
    while not Path("waits").exists():
        time.sleep(0.05)

with watching(wait_until_the_other_waits):
    print(outer(1))
"""

SECOND = """
from pathlib import Path
from coevo.engines.outer import outer
from coevo.runtime.jit import watching

with watching(lambda name: Path("waits").touch()):
    print(outer(1), sum(outer.entry.stats.cache_hits.values()))
"""


def test_processes_wait_for_the_one_that_compiles_and_say_so(package):
    write(package, added=1)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA")}
    first = subprocess.Popen(
        [sys.executable, "-c", FIRST], cwd=package.parent, text=True, stdout=subprocess.PIPE,
        env=environment | {"PYTHONPATH": str(package.parent)},
    )  # fmt: skip
    assert first.stdout.readline() == "compiling\n"
    assert run(package, SECOND) == "4 1"
    assert first.wait() == 0
    first.stdout.close()
    assert (package.parent / "waits").exists()
    assert not list(package.rglob("*.lock"))
