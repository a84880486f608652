"""Data and helpers that the tests of files share."""

import numpy as np
import pytest

from coevo.persistence import checkpoint, freezing


@pytest.fixture(scope="session")
def make_data():
    """Return training and validation data of noisy linear classes."""

    def make(n_instances=80, n_inputs=4, n_classes=3):
        rng = np.random.default_rng(2)
        inputs = rng.uniform(-1, 1, (n_instances, n_inputs))
        noise = 0.3 * rng.normal(size=(n_instances, n_classes))
        targets = (inputs @ rng.normal(size=(n_inputs, n_classes)) + noise).argmax(axis=1)
        targets[:n_classes] = np.arange(n_classes)
        half = n_instances // 2
        return inputs[:half], targets[:half], inputs[half:], targets[half:]

    return make


@pytest.fixture(scope="session")
def data(make_data):
    return make_data()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.checkpoint"


@pytest.fixture(scope="session")
def assert_same_run():
    """Compare two results' networks, histories and counts, bit for bit."""

    def compare(result, other):
        assert result.network.genotype.tobytes() == other.network.genotype.tobytes()
        for name in ("generations", "evaluations", "train_fitness", "validation_fitness"):
            assert getattr(result, name) == getattr(other, name)
        columns, others = result.history.columns(), other.history.columns()
        for name in columns.keys() - {"seconds"}:
            assert columns[name].tobytes() == others[name].tobytes(), name
        assert result.stop_reason == other.stop_reason

    return compare


@pytest.fixture(scope="session")
def assert_same_checkpoint():
    """Compare two files: all of the state, and what the engine remembers, bit for bit."""

    def compare(path, other):
        contents = []
        for saved in (checkpoint.load(path), checkpoint.load(other)):
            values, arrays = freezing.freeze(saved.state)
            del values["seconds"]
            arrays["history.rows"][:, 2] = arrays["history.latest"][2] = 0
            contents.append((values, arrays | saved.memory))
        assert contents[0][0] == contents[1][0]
        assert contents[0][1].keys() == contents[1][1].keys()
        for name, array in contents[0][1].items():
            twin = contents[1][1][name]
            assert array.tobytes() == twin.tobytes(), name
            assert (array.dtype, array.shape) == (twin.dtype, twin.shape)

    return compare
