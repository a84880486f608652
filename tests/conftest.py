"""What tests of several folders share.

Factories are of session scope, so that hypothesis may call a test that uses them many times.
"""

import os
import shutil
import signal
import subprocess

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import find_metric
from coevo.core.network import ACTIVATIONS, Architecture
from coevo.core.selection import Offspring, Outcome, Rule
from coevo.engines.reference import ReferenceEvaluator
from coevo.training.paper import SHARED
from coevo.training.variants import variant_settings

# Compiling a kernel may take seconds on first use; that says nothing about the property under test.
settings.register_profile("coevo", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("coevo")


@pytest.fixture(scope="session", autouse=True)
def _sigint():
    """Let Ctrl-C interrupt: a shell starts what runs in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng():
    return np.random.default_rng(20180715)


@pytest.fixture
def no_jit():
    return os.environ.get("NUMBA_DISABLE_JIT") == "1"


@pytest.fixture
def browse(tmp_path):
    """Return a page's DOM and what the console of a browser says; skip if there is no browser."""
    names = ("chromium", "chromium-browser", "chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("needs chromium")

    def open_page(address, width):
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking",
            "--disable-component-update", "--disable-sync",
            # Whoever asks for another machine is told that there is none, and complains.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--enable-logging=stderr", "--virtual-time-budget=5000",
            f"--window-size={width},900", f"--user-data-dir={tmp_path / 'profile'}",
        ]  # fmt: skip
        done = subprocess.run(
            [chromium, *options, "--dump-dom", address],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return open_page


@pytest.fixture
def notebook():
    """A kernel of Jupyter's: call it with a cell, and with what to do at each message."""
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    kernel, client = manager.start_new_kernel(
        startup_timeout=60, extra_arguments=["--HistoryManager.enabled=False"]
    )
    shown = []

    def run(code, tell=lambda kernel, message: None):
        def hook(message):
            shown.append(message)
            tell(kernel, message)

        client.execute_interactive(code, timeout=120, output_hook=hook)
        return shown

    yield run
    client.stop_channels()
    kernel.shutdown_kernel(now=True)
    kernel.cleanup_resources()


@pytest.fixture(scope="session")
def make_classification_data():
    """Noisy linear classes; every class occurs."""

    def make(rng, n_instances=60, n_inputs=4, n_classes=3):
        inputs = rng.uniform(-1, 1, (n_instances, n_inputs))
        scores = inputs @ rng.normal(size=(n_inputs, n_classes)) + rng.normal(
            scale=0.3, size=(n_instances, n_classes)
        )
        targets = scores.argmax(axis=1)
        targets[:n_classes] = np.arange(n_classes)
        return inputs, targets

    return make


@pytest.fixture(scope="session")
def write_plan():
    """Write a study's plan to a folder; by default one of nine short runs."""
    small = """
name = "small"
seeds = 3
[[experiment]]
name = "tiny"
dataset = "WBC"
variants = ["LECCDE", "CCDE", "backprop"]
trace = ["LECCDE"]
[experiment.settings]
hidden_layer_sizes = [6]
batch_size = 100
max_evaluations = 3000
[experiment.rows.backprop]
max_epochs = 5
"""

    def write(folder, text=small, name="small.toml"):
        path = folder / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="session")
def architectures():
    """A hypothesis strategy for small networks; draw from it with `data.draw`."""
    return st.builds(
        Architecture,
        st.integers(1, 5),
        st.lists(st.integers(1, 4), max_size=3).map(tuple),
        st.integers(1, 4),
        st.sampled_from(sorted(ACTIVATIONS)),
    )


@pytest.fixture(scope="session")
def small_settings():
    """The paper's settings for a small network and a short run."""

    def make(variant="LECCDE", **changes):
        defaults = {"hidden_layer_sizes": (3,), "population_size": 6, "batch_size": 10,
                    "max_evaluations": None, "max_generations": 8, "seed": 7}  # fmt: skip
        return variant_settings(variant, **SHARED | defaults | changes)

    return make


@pytest.fixture(scope="session")
def make_search(make_classification_data):
    """A search on 40 training and 20 validation instances, measured by the reference engine."""

    def make(settings, callbacks=(), evaluator_class=ReferenceEvaluator, seed=5, **further):
        settings = resolve(settings)
        inputs, targets = make_classification_data(np.random.default_rng(seed))
        architecture = Architecture(4, settings.hidden_layer_sizes, 3, settings.activation)
        decomposition = decompose(settings.decomposition, architecture)
        evaluator = evaluator_class(
            architecture, decomposition, find_metric(settings.fitness),
            Data(inputs[:40], targets[:40]), Data(inputs[40:], targets[40:]),
        )  # fmt: skip
        return assemble(evaluator, decomposition, settings, callbacks, **further)

    return make


@pytest.fixture(scope="session")
def make_contest():
    """Offspring, rule and outcome for given individuals and trials; changes by field name."""

    def make(individuals, trials, first_target=0, **changes):
        k, size, _ = individuals.shape
        parts = (
            Offspring(
                trials=trials,
                first_target=first_target,
                inherited_by_targets=np.zeros(trials.shape[:2]),
                inherited_by_trials=np.zeros(trials.shape[:2]),
            ),
            Rule(measures_targets=True, accepts_ties=True, takes_means=False, completes=True),
            Outcome(
                individuals=individuals,
                fitness=np.zeros((k, size)),
                champions=np.zeros(k, dtype=np.int64),
                wins=np.zeros((k, size), dtype=bool),
                gains=np.zeros((k, size)),
                representatives=np.zeros_like(individuals[:, 0]),
                has_moved=np.zeros(k, dtype=bool),
            ),
        )
        known = {name for part in parts for name in part._fields}
        assert changes.keys() <= known, changes.keys() - known
        return tuple(
            part._replace(**{name: changes[name] for name in part._fields if name in changes})
            for part in parts
        )

    return make


@pytest.fixture(scope="session")
def counting_evaluator():
    """An engine that counts the networks run for fitness, and keeps all that is validated."""

    class CountingEvaluator(ReferenceEvaluator):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            self.n_evaluated = 0
            self.validated = []

        def evaluate_networks(self, genotypes, instances):
            self.n_evaluated += len(genotypes)
            return super().evaluate_networks(genotypes, instances)

        def evaluate(self, i):
            measured = super().evaluate(i)
            self.n_evaluated += len(measured)
            return measured

        def validate_networks(self, genotypes):
            fitness = super().validate_networks(genotypes)
            self.validated += list(zip(fitness, genotypes.copy(), strict=True))
            return fitness

        def validate(self):
            moves = list(self._moves)
            fitness = super().validate()
            self.validated += list(zip(fitness, moves, strict=True))
            return fitness

    return CountingEvaluator
