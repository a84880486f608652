"""What a run takes: memory, cores, and compiled kernels kept on disk."""

import os
import subprocess
import sys
import textwrap

import joblib
import numba
import pytest
from numba.core.event import Listener, install_listener

from coevo.runtime import compiler, threads
from coevo.runtime import jit as compiling

SMALL_RUN = """
import numpy as np
from coevo import evolve
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (60, 3))
y = (X.sum(axis=1) > 0).astype(int)
result = evolve(X[:40], y[:40], X[40:], y[40:], hidden_layer_sizes=(3,), batch_size=20,
                max_evaluations=2000, seed=1)
assert result.evaluations >= 2000
"""


def run_python(code, **environment):
    completed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_ccde_on_data_of_mnists_size_stays_within_512_megabytes(no_jit):
    """42 000 instances, 60 neurons, 60 individuals: all activations would be 600 MB a layer."""
    if no_jit:
        pytest.skip("a minute of plain Python loops would measure nothing else")
    if not sys.platform.startswith("linux"):
        pytest.skip("reads the peak from /proc")
    output = run_python("""
    import numpy as np
    from coevo import evolve

    def kilobytes(field):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(field))

    rng = np.random.default_rng(0)
    def make(n):
        X = rng.random((n, 784), dtype=np.float32)
        return X, rng.integers(10, size=n)
    train, valid = make(42_000), make(9_000)
    before = kilobytes("VmRSS")
    evolve(*train, *valid, variant="CCDE", hidden_layer_sizes=(60,), population_size=60,
           sampling_rounds=1, max_evaluations=None, max_generations=1, seed=0)
    print(kilobytes("VmHWM") - before)
    """)
    populations = (60 * 785 + 10 * 61) * 60 * 4
    assert int(output) * 1024 <= populations + 512 * 2**20


def test_runs_in_parallel_processes_share_the_cores():
    n_jobs = 2
    counts = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(threads.available_threads)() for _ in range(4)
    )
    cores = joblib.cpu_count()
    assert all(1 <= count <= max(1, cores // n_jobs) for count in counts)


def test_kernels_are_compiled_once_and_kept(tmp_path, no_jit):
    """Loops of other metrics are left out, and literals or layouts make no second version."""
    if no_jit:
        pytest.skip("nothing is compiled")
    report = (
        SMALL_RUN
        + """
for n_threads in (1, 2):
    evolve(np.tile(X, (20, 9)), np.tile(y, 20), X[:, [0] * 27], y, hidden_layer_sizes=(60,),
           batch_size=1000, max_evaluations=5000, n_threads=n_threads, strategy="rand/1", seed=1)
from coevo.engines.kernels.sweeps import sweep
stats = sweep.entry.stats
print(sum(stats.cache_misses.values()), sum(stats.cache_hits.values()))
from coevo.engines.kernels.activations import activate
from coevo.engines.kernels.intervals import find_hidden_intervals
from coevo.engines.kernels import metrics
print(*[len(kernel.inner.signatures) for kernel in (
    metrics.measure_cross_entropy, activate, metrics._find_rest,
    metrics.measure_margins, metrics.measure_errors, find_hidden_intervals)])
"""
    )
    first = run_python(report, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    second = run_python(report, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()
    assert (first[0], second[0]) == ("1 0", "0 1")
    assert first[1] == "1 1 1 0 0 0"


def test_the_clock_stands_still_while_kernels_are_compiled(monkeypatch, no_jit):
    if no_jit:
        pytest.skip("nothing is compiled")
    now = [100.0]
    monkeypatch.setattr(compiling.time, "perf_counter", lambda: now[0])
    began = compiling.clock()
    with install_listener("numba:compile", Ticking(now)):
        numba.njit(lambda x: x + 1)(1)
    assert now[0] >= 102
    now[0] += 3
    assert compiling.clock() - began == 3


class Ticking(Listener):
    """Lets two seconds pass within each compilation."""

    def __init__(self, now):
        self.now = now

    def on_start(self, event):
        self.now[0] += 2

    def on_end(self, event):
        pass


NO_CACHE_FOLDER = """
import errno
from numba.core import caching

def refuse(self):
    raise OSError(errno.EROFS, "read-only file system")

for name in dir(caching):
    locator = getattr(caching, name)
    if isinstance(locator, type) and issubclass(locator, caching._CacheLocator):
        locator.ensure_cache_path = refuse
"""


def test_a_read_only_install_without_any_cache_folder_still_works():
    # Every kernel is decorated; a run of DE is the one that compiles fewest.
    run_python(NO_CACHE_FOLDER + SMALL_RUN.replace("seed=1", "variant='DE', fitness='accuracy'"))


def test_no_other_error_of_the_compiler_is_swallowed(monkeypatch):
    def fail(*arguments, **options):
        raise TypeError("bad")

    monkeypatch.setattr(compiler, "njit", fail)
    with pytest.raises(TypeError, match="bad"):
        compiling.compiled(lambda: None)()
