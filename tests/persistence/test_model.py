"""Model files: what is saved comes back, and nothing malformed is let in."""

import hashlib
import io
import json
import pickle
import random
import struct
import tracemalloc
from pathlib import Path

import joblib
import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st

import coevo
from coevo import Architecture, Network, Settings, evolve
from coevo.persistence import container, model
from coevo.persistence.model import Model, ModelError

OLD = Path(__file__).parent / "version_0_1"


def make_network(
    sizes=(4, 5, 3), dtype=np.float32, activation="tanh", output_activation="identity"
):
    architecture = Architecture(
        sizes[0], tuple(sizes[1:-1]), sizes[-1], activation, output_activation
    )
    genotype = np.random.default_rng(1).uniform(-4, 4, architecture.n_genes).astype(dtype)
    return Network(architecture, genotype)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


@pytest.fixture
def good(path):
    model.save(
        path, make_network(), classes=["ash", "birch", "cedar"],
        feature_names=["height", "width", "age", "Größe"],
        settings=Settings(hidden_layer_sizes=(5,), max_seconds=3.5), fitness={"train": 0.75},
    )  # fmt: skip
    return path.read_bytes()


# ---------------------------------------------------------------------------------- there and back


def test_models_of_version_0_1_predict_as_they_did():
    expected = np.load(OLD / "predictions.npz")
    inputs = expected["inputs"]
    classifier = coevo.CoevoClassifier.load(OLD / "classifier.safetensors")
    np.testing.assert_array_equal(classifier.predict(inputs), expected["labels"])
    np.testing.assert_allclose(
        classifier.predict_proba(inputs), expected["probabilities"], rtol=1e-12
    )
    regressor = coevo.CoevoRegressor.load(OLD / "regressor.safetensors")
    np.testing.assert_allclose(regressor.predict(inputs[:, :3]), expected["numbers"], rtol=1e-12)
    content = model.load(OLD / "classifier.safetensors")
    assert content.coevo_version == "0.1.0"
    assert content.settings["memory_size"] == 4  # as it was called then


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(4, 5, 3), (2, 2), (3, 4, 5, 1)], ids=str)
def test_the_network_comes_back(path, sizes, dtype):
    network = make_network(sizes, dtype, "sign", "sigmoid")
    model.save(path, network)
    loaded = model.load(path)
    assert loaded.network.architecture == network.architecture
    assert loaded.network.genotype.dtype == dtype
    assert loaded.network.genotype.tobytes() == network.genotype.tobytes()
    assert (loaded.classes, loaded.feature_names, loaded.settings, loaded.fitness) == (None,) * 4
    assert loaded.coevo_version == coevo.__version__
    inputs = np.ones((7, sizes[0]))
    np.testing.assert_array_equal(loaded.predict(inputs), network.outputs(inputs))


def test_a_result_comes_back(path):
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-1, 1, (90, 3))
    labels = np.where(inputs[:, 0] > 0, "right", "left")
    result = evolve(
        inputs[:50], labels[:50], inputs[50:], labels[50:], hidden_layer_sizes=[3], batch_size=20,
        max_generations=5, seed=np.int64(3),
    )  # fmt: skip
    again = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(again.predict(inputs), result.predict(inputs))
    np.testing.assert_array_equal(again.history.rows, result.history.rows)
    result.save(path, feature_names=["x", "y", "z"])
    loaded = model.load(path)
    np.testing.assert_array_equal(loaded.predict(inputs), result.predict(inputs))
    assert loaded.feature_names == ("x", "y", "z")
    assert loaded.settings["seed"] == 3
    assert loaded.settings["hidden_layer_sizes"] == [3]
    assert loaded.fitness == {
        "train": result.train_fitness,
        "validation": result.validation_fitness,
    }


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([-1, 5, 127], dtype=np.int8),
        np.array([0, 1, 2**64 - 1], dtype=np.uint64),
        np.array([0.1, -2.5, 1e300]),
        np.array([0.1, -2.5, 3], dtype=np.float32),
        np.array([0.5, 1, 2], dtype=np.float16),
        np.array(["ash", "birch", "Ölbaum 🌳"]),
        np.array(["a", "b", "c"], dtype="<U12"),
        np.array(["ash", "birch", ""], dtype=object),
        np.array([1, "1", 1.5], dtype=object),
        np.array([np.int64(1), True, np.float64(0.5)], dtype=object),
    ],
    ids=repr,
)
def test_labels_come_back_with_their_dtype(path, labels):
    model.save(path, make_network(), classes=labels)
    loaded = model.load(path).classes
    assert loaded.dtype == labels.dtype
    assert loaded.tolist() == labels.tolist()
    if labels.dtype != object:
        assert [type(label) for label in loaded] == [type(label) for label in labels]


def test_boolean_labels_come_back(path):
    model.save(path, make_network((4, 2)), classes=[False, True])
    loaded = model.load(path)
    assert loaded.classes.dtype == bool
    assert loaded.predict(np.zeros((2, 4))).dtype == bool


def test_other_programs_can_read_it(path, good):
    arrays = safetensors.numpy.load_file(path)
    network = make_network()
    for layer in range(2):
        np.testing.assert_array_equal(arrays[f"layers.{layer}.weight"], network.weights[layer])
        np.testing.assert_array_equal(arrays[f"layers.{layer}.bias"], network.biases[layer])


def test_saving_replaces_and_leaves_nothing_behind(path, good):
    path.with_name(path.name + ".partial").write_bytes(b"of a process that was killed")
    model.save(path, make_network((2, 2)))
    assert model.load(path).network.architecture.n_inputs == 2
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("copy", ["pickle", "joblib"])
def test_ordinary_pickling_works(path, good, copy):
    loaded = model.load(path)
    if copy == "pickle":
        again = pickle.loads(pickle.dumps(loaded))
    else:
        buffer = io.BytesIO()
        joblib.dump(loaded, buffer)
        again = joblib.load(buffer)
    assert isinstance(again, Model)
    inputs = np.ones((3, 4))
    np.testing.assert_array_equal(again.predict(inputs), loaded.predict(inputs))
    np.testing.assert_array_equal(again.network.genotype, loaded.network.genotype)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"classes": [1, 2]}, ValueError, "2 classes for 3 outputs"),
        ({"classes": [1, 2, 2]}, ValueError, "not all different"),
        ({"classes": np.array(["2020", "2021", "2022"], "M8[Y]")}, TypeError, "classes must be"),
        ({"classes": np.array([None, 1, 2])}, TypeError, "classes must be"),
        ({"classes": np.array([[1], [2], [3]])}, TypeError, "classes must be"),
        ({"classes": ["a", "b", "\ud800"]}, ValueError, "a text that is not Unicode"),
        ({"feature_names": ["a"]}, ValueError, "one for each of the 4 inputs"),
        ({"feature_names": ["a", "b", "c", ""]}, ValueError, "texts that are not empty"),
        ({"feature_names": ["a", "b", "c", "\ud800"]}, ValueError, "feature_names must be texts"),
        ({"feature_names": ["a" * 2**21] * 4}, ValueError, "take more than 4194304 bytes"),
    ],
)
def test_what_cannot_come_back_is_not_saved(path, arguments, error, message):
    with pytest.raises(error, match=message):
        model.save(path, make_network(), **arguments)
    assert not path.exists()


def test_genotypes_that_do_not_fit_are_not_saved(path):
    network = make_network()
    with pytest.raises(TypeError, match=r"network must be a coevo\.Network, got dict"):
        model.save(path, {})
    with pytest.raises(TypeError, match="float32 or float64, not int64"):
        model.save(path, Network(network.architecture, np.zeros(38, dtype=np.int64)))
    with pytest.raises(ValueError, match="has 43 genes, the genotype has shape"):
        model.save(path, Network(network.architecture, np.zeros(37)))
    network.genotype[3] = np.nan
    with pytest.raises(ValueError, match="weight that is NaN or infinite"):
        model.save(path, network)


@pytest.mark.parametrize("weight", [np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused_even_with_the_right_digest(path, good, weight):
    header, data = split(good)
    changed = join(header, np.float32(weight).tobytes() + data[4:])
    refuse(path, forge(changed, lambda content: None), "weight that is NaN or infinite")


def test_wrong_inputs_are_named(path, good):
    with pytest.raises(ValueError, match=r"X must have shape \(n_instances, 4\), got \(2, 3\)"):
        model.load(path).predict(np.zeros((2, 3)))


# --------------------------------------------------------------------------------------- bad files


def refuse(path, content, message=None):
    """Make sure that content is refused with an error that names the file."""
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message) as caught:
        model.load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_every_truncation_is_refused(path, good):
    for length in range(len(good)):
        refuse(path, good[:length])
    refuse(path, good + b"\0")


def test_flipped_bits_never_change_the_model(path, good):
    path.write_bytes(good)
    before = pickle.dumps(model.load(path))
    n_refused = 0
    for place in range(0, 8 * len(good), 3):
        damaged = bytearray(good)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            # A few flips, such as the case of a hexadecimal digit of "\\u00fc", change nothing.
            assert pickle.dumps(model.load(path)) == before
        except ModelError:
            n_refused += 1
    assert n_refused >= 8 * len(good) / 3 - 10


def test_random_damage_is_refused(path, good):
    generator = random.Random(4)
    for _ in range(1500):
        damaged = bytearray(good)
        for _ in range(generator.randint(1, 8)):
            start = generator.randrange(len(damaged))
            stop = start + generator.randint(0, 12)
            damaged[start:stop] = generator.randbytes(generator.randint(0, 12))
        if damaged != good:
            refuse(path, bytes(damaged))


@given(content=st.binary(max_size=300))
def test_noise_is_refused(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "noise"
    refuse(path, content)
    refuse(path, struct.pack("<Q", len(content)) + content)


def split(good):
    length = int.from_bytes(good[:8], "little")
    return json.loads(good[8 : 8 + length]), good[8 + length :]


def join(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def forge(good, change, version="3"):
    """Change the content and put the right digest beside it."""
    header, data = split(good)
    metadata = header["__metadata__"]
    metadata["format_version"] = version
    content = json.loads(metadata["content"])
    changed = change(content)
    metadata["content"] = json.dumps(content if changed is None else changed)
    arrays = safetensors.numpy.load(good)
    sha = hashlib.sha256(f"{version} {metadata['content']}".encode())
    for name in sorted(arrays):
        sha.update(arrays[name].tobytes())
    metadata["sha256"] = sha.hexdigest()
    return join(header, data)


HUGE = 10**15


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [HUGE, HUGE], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [5, 4], "data_offsets": [0, HUGE]},
        {"dtype": "F32", "shape": [5, -4], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [5.0, 4], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [5, 4], "data_offsets": [4, 84]},
        {"dtype": "F32", "shape": [5, 4], "data_offsets": [80, 0]},
        {"dtype": "F32", "shape": [5, 4], "data_offsets": [0]},
        {"dtype": "F32", "shape": [5, 4, *[1] * 100], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [10, 2], "data_offsets": [0, 80]},
        {"dtype": "F64", "shape": [5, 2], "data_offsets": [0, 80]},
        {"dtype": "I32", "shape": [5, 4], "data_offsets": [0, 80]},
        {"dtype": "X", "shape": [5, 4], "data_offsets": [0, 80]},
        {"dtype": ["F32"], "shape": [5, 4], "data_offsets": [0, 80]},
        {"dtype": "F32", "shape": [5, 4], "data_offsets": [0, 80], "more": 1},
        [1, 2, 3],
        None,
    ],
    ids=str,
)
def test_absurd_entries_are_refused(path, good, entry):
    header, data = split(good)
    name = min(header, key=lambda name: header[name].get("data_offsets", [HUGE])[0])
    refuse(path, join(header | {name: entry}, data))


def test_absurd_headers_are_refused(path, good):
    header, data = split(good)
    refuse(path, struct.pack("<Q", 2**63) + good[8:], "its header would be 9223372036854775808")
    refuse(
        path, struct.pack("<Q", container.MAX_HEADER_BYTES + 1) + bytes(2**23), "header would be"
    )
    refuse(path, join(b"[" * 10**6, data), "not valid JSON")
    refuse(path, join(b'{"a": ' + b"9" * 10**5 + b"}", data), "not valid JSON")
    refuse(path, join(b'{"a": 1, "a": 2}', data), "a name occurs twice")
    refuse(path, join(b"\xff\xfe", data), "not text")
    refuse(path, join([], data), "not a JSON dict")
    refuse(path, join(header | {"__metadata__": {"format": 1}}, data), "not a table of texts")
    refuse(path, join(header | {"__metadata__": {}}, data), "not written by coevo")
    refuse(path, join(header, data + bytes(40)), "its arrays take 172 bytes, but 212 bytes follow")
    extra = {"layers.9.bias": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    refuse(path, join(header | extra, data), "not those of its architecture")
    metadata = header["__metadata__"]
    for version in ("4", "999999999"):
        newer = header | {"__metadata__": metadata | {"format_version": version}}
        refuse(path, join(newer, data), f"has format version {version}; this version of coevo")
    for version in ("", "0", "-1", "1e9", "9" * 5000, "①"):
        absurd = header | {"__metadata__": metadata | {"format_version": version}}
        refuse(path, join(absurd, data), "makes no sense")
    refuse(path, join(header | {"__metadata__": metadata | {"more": ""}}, data), "unknown")
    surrogate = header | {"__metadata__": metadata | {"sha256": "\ud800"}}
    refuse(path, join(surrogate, data))


def set_to(name, value):
    return lambda content: content | {name: value}


def set_in(outer, name, value):
    return lambda content: content | {outer: content[outer] | {name: value}}


@pytest.mark.parametrize(
    "change",
    [
        lambda content: [content],
        lambda content: content.pop("fitness") and None,
        set_to("more", 1),
        set_to("coevo_version", None),
        set_to("architecture", None),
        set_to("architecture", {}),
        set_to("settings", []),
        set_to("preprocessing", []),
        lambda content: {k: v for k, v in content.items() if k != "preprocessing"},
        set_to("fitness", {"train": "high"}),
        set_to("fitness", 0.5),
        set_to("feature_names", ["a"]),
        set_to("feature_names", [1, 2, 3, 4]),
        set_to("feature_names", "abcd"),
        set_to("feature_names", ["a", "b", "c", ""]),
        set_to("feature_names", ["a", "b", "c", "\ud800"]),
        set_in("classes", "values", ["a", "b", "\ud800"]),
        set_to("classes", ["a", "b", "c"]),
        set_in("architecture", "n_inputs", HUGE),
        set_in("architecture", "n_inputs", -4),
        set_in("architecture", "n_inputs", 4.0),
        set_in("architecture", "n_inputs", True),
        set_in("architecture", "n_outputs", 10**4000),
        set_in("architecture", "hidden_layer_sizes", [HUGE] * 1000),
        set_in("architecture", "hidden_layer_sizes", [1] * 10**5),
        set_in("architecture", "hidden_layer_sizes", 5),
        set_in("architecture", "hidden_layer_sizes", [[5]]),
        set_in("architecture", "activation", "__import__"),
        set_in("architecture", "activation", ["tanh"]),
        set_in("architecture", "output_activation", None),
        set_in("architecture", "more", 1),
        set_in("classes", "values", ["a", "b"]),
        set_in("classes", "values", ["a", "b", "b"]),
        set_in("classes", "values", ["a", "b", 1]),
        set_in("classes", "values", "abc"),
        set_in("classes", "dtype", "str99999"),
        set_in("classes", "dtype", "str2"),
        set_in("classes", "dtype", "float64"),
        set_in("classes", "dtype", "V9999999999"),
        set_in("classes", "dtype", "(1000000,1000000)int8"),
        set_in("classes", "dtype", 7),
        set_to("classes", {"dtype": "int8", "values": [1, 2, 300]}),
        set_to("classes", {"dtype": "int8", "values": [1, 2, 10**400]}),
        set_to("classes", {"dtype": "uint8", "values": [1, 2, -1]}),
        set_to("classes", {"dtype": "int64", "values": [1, 2, True]}),
        set_to("classes", {"dtype": "float16", "values": [1.0, 2.0, 1e300]}),
        set_to("classes", {"dtype": "object", "values": [1, 2, None]}),
        set_to("classes", {"dtype": "object", "values": [1, 2, [3]]}),
        set_to("labels", ["a", "b", "c"]),
        lambda content: content | {"classes": None, "labels": ["a", "b"]},
        lambda content: content | {"classes": None, "labels": ["a", "b", "b"]},
        lambda content: content | {"classes": None, "labels": ["a", "b", ""]},
        lambda content: content | {"classes": None, "labels": ["a", "b", 3]},
        lambda content: content | {"classes": None, "labels": "abc"},
    ],
)
def test_content_that_makes_no_sense_is_refused_even_with_the_right_digest(path, good, change):
    path.write_bytes(forge(good, lambda content: None))
    model.load(path)
    tracemalloc.start()
    try:
        refuse(path, forge(good, change))
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("version", "lacks"), [("1", {"preprocessing", "labels"}), ("2", {"labels"})]
)
def test_files_of_older_versions_are_read(path, good, version, lacks):
    def drop(content):
        return {name: value for name, value in content.items() if name not in lacks}

    path.write_bytes(forge(good, drop, version))
    old = model.load(path)
    path.write_bytes(good)
    assert pickle.dumps(old) == pickle.dumps(model.load(path))
    assert old.preprocessing is None
    refuse(path, forge(good, drop), "its content lacks something")


def test_labels_come_back_and_each_output_is_one(path):
    network = make_network()
    model.save(path, network, labels=["sport", "Köln", "x"])
    loaded = model.load(path)
    assert loaded.labels == ("sport", "Köln", "x")
    inputs = np.random.default_rng(1).normal(size=(20, network.architecture.n_inputs))
    np.testing.assert_array_equal(loaded.predict(inputs), network.outputs(inputs) > 0)
    with pytest.raises(ValueError, match="or it has classes as well"):
        model.save(path, network, labels=["sport", "Köln", "x"], classes=[0, 1, 2])


def test_settings_and_preprocessing_may_be_plain_values(path):
    plain = {"fitness": "f1_weighted", "hidden_layer_sizes": [5]}
    table = {"numbers": [["height", 1.5]], "texts": []}
    model.save(path, make_network(), settings=plain, preprocessing=table)
    loaded = model.load(path)
    assert (loaded.settings, loaded.preprocessing) == (plain, table)


def test_an_absurd_file_takes_no_memory(path, good):
    header, data = split(good)
    header["layers.9.bias"] = {
        "dtype": "U8", "shape": [2**40], "data_offsets": [len(data), len(data) + 2**40],
    }  # fmt: skip
    with open(path, "wb") as file:  # sparse, but of the size that its header claims
        content = join(header, data)
        file.write(content)
        file.truncate(len(content) + 2**40)
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match="not those of its architecture"):
            model.load(path)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_pickle_is_not_unpickled(path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a model file was unpickled",))

    refuse(path, pickle.dumps(Trap()))


def test_a_missing_file_is_missing(path):
    with pytest.raises(FileNotFoundError):
        model.load(path)
