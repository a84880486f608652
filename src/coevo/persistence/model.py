"""Model files: a network, its classes and the settings of its run, in the safetensors format.

The weights and biases of each layer are arrays; a JSON text describes them. Loading a file executes
no code. The header is compared with the architecture before any array is read, and a SHA-256 covers
text and arrays.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from coevo._typing import Array, StrPath
from coevo._version import __version__
from coevo.core.network import ACTIVATIONS, Architecture, Network
from coevo.core.settings import Settings
from coevo.persistence.atomic import write_atomically
from coevo.persistence.container import (
    FileFormatError,
    pack,
    parse_json,
    read_header,
    read_header_length,
    unpack,
)
from coevo.persistence.plain import as_plain, plain_settings

FORMAT_VERSION = 3
"""The version of the file format. Files of older versions are read, of newer ones refused."""

_FORMAT = "coevo model"
_MAX_TEXT_WIDTH = 2**16
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype(np.float32), "F64": np.dtype(np.float64)}
_LABEL_DTYPE = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|object|str[1-9][0-9]{0,4}")
_CONTENT = {
    "coevo_version": (str,),
    "architecture": (dict,),
    "classes": (dict, type(None)),
    "feature_names": (list, type(None)),
    "settings": (dict, type(None)),
    "fitness": (dict, type(None)),
    "preprocessing": (dict, type(None)),
    "labels": (list, type(None)),
    "policy": (dict, type(None)),
}
_SINCE_VERSION = {"preprocessing": 2, "labels": 3, "policy": 3}


class ModelError(FileFormatError):
    """A model file is damaged, is not a model file, or was written by a newer version of coevo."""


@dataclass(frozen=True)
class Model:
    """The content of a model file.

    Parameters
    ----------
    network
        The network.
    classes : array of shape (n_outputs,), or None
        The label of each output; None for regression, multilabel targets and policies.
    feature_names
        Names of the inputs, if they have any.
    settings
        The settings of the run, as JSON values.
    fitness
        The fitness of the network by the name of the data, such as "train".
    preprocessing
        How the columns of a table become the network's inputs, as JSON values, if the model was
        trained on a table or by an estimator; see `coevo.persistence.encoding`.
    policy
        The meaning of inputs and outputs in an environment, as JSON values, if the network is a
        policy; see `coevo.policies.policy`.
    coevo_version
        The version of coevo that saved the file.
    labels
        The name of each output's label for multilabel targets; None otherwise.
    """

    network: Network
    classes: Array | None = None
    feature_names: tuple[str, ...] | None = None
    settings: dict[str, Any] | None = None
    fitness: dict[str, float] | None = None
    preprocessing: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    coevo_version: str = field(default_factory=lambda: __version__)
    labels: tuple[str, ...] | None = None

    def predict(self, X: ArrayLike) -> Array:
        """Return the label or the labels of each instance, or the outputs.

        Parameters
        ----------
        X : array of shape (n_instances, n_inputs)
            The network's inputs; `preprocessing` is not applied.

        Returns
        -------
        array of shape (n_instances,) with classes, else of shape (n_instances, n_outputs): 0 and 1
        for multilabel targets, or the outputs
        """
        inputs = np.asarray(X)
        n_inputs = self.network.architecture.n_inputs
        if inputs.ndim != 2 or inputs.shape[1] != n_inputs:
            raise ValueError(f"X must have shape (n_instances, {n_inputs}), got {inputs.shape}")
        if self.labels is not None:
            return (self.network.outputs(inputs) > 0).astype(np.int64)
        if self.classes is None:
            return self.network.outputs(inputs)
        return np.asarray(self.classes[self.network.predict(inputs)])


def save(
    path: StrPath,
    network: Network,
    *,
    classes: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    fitness: Mapping[str, float] | None = None,
    preprocessing: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    policy: Mapping[str, Any] | None = None,
) -> None:
    """Write a network to a model file, atomically.

    Parameters
    ----------
    path
        The file, usually ending in .safetensors.
    network
        The network.
    classes : array of shape (n_outputs,)
        The label of each output: whole numbers, numbers, booleans or texts.
    settings
        The settings of the run, or JSON values by name.
    feature_names, fitness, preprocessing, labels, policy
        As in `Model`.
    """
    if not isinstance(network, Network):
        raise TypeError(f"network must be a coevo.Network, got {type(network).__name__}")
    architecture = network.architecture
    if network.genotype.dtype not in _DTYPES.values():
        raise TypeError(f"weights must be float32 or float64, not {network.genotype.dtype}")
    if network.genotype.shape != (architecture.n_genes,):
        raise ValueError(
            f"the architecture has {architecture.n_genes} genes, the genotype has shape "
            f"{network.genotype.shape}"
        )
    if not np.isfinite(network.genotype).all():
        raise ValueError("weights must be finite: the network has a weight that is NaN or infinite")
    content = {
        "coevo_version": __version__,
        "architecture": as_plain(asdict(architecture)),
        "classes": None if classes is None else _describe_labels(np.asarray(classes)),
        "feature_names": None if feature_names is None else [str(name) for name in feature_names],
        "settings": plain_settings(settings) if isinstance(settings, Settings) else settings,
        "fitness": None if fitness is None else {str(k): float(v) for k, v in fitness.items()},
        "preprocessing": preprocessing,
        "labels": None if labels is None else [str(label) for label in labels],
        "policy": policy,
    }
    text = json.dumps(content)
    try:
        _read_content(text)  # raises what `load` would raise
    except ModelError as error:
        raise ValueError(str(error)) from None
    arrays = _layers(network)
    metadata = {
        "format": _FORMAT,
        "format_version": str(FORMAT_VERSION),
        "content": text,
        "sha256": _digest(text, arrays),
    }
    write_atomically(path, [pack(arrays, metadata)])


def load(path: StrPath) -> Model:
    """Read a model file.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Raises
    ------
    ModelError
        If the file is damaged, is not a model file, or is of a newer version.
    """
    try:
        return _load(path)
    except FileFormatError as error:
        raise ModelError(f"{os.fspath(path)} is not a good model file: {error}") from None


def _load(path: StrPath) -> Model:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = read_header_length(start, size)
        header = file.read(length)
        metadata, claims = read_header(header)
        _check_metadata(metadata)
        version = int(metadata["format_version"])
        model = _read_content(metadata["content"], version)
        architecture = model.network.architecture
        dtype = _check_layout(claims, architecture, size - 8 - length)
        # The size of the rest of the file is now known to be that of the network.
        _, arrays = unpack(start + header + file.read(size - 8 - length))
    if _digest(metadata["content"], arrays, version) != metadata["sha256"]:
        raise ModelError("it is damaged: its SHA-256 does not match its content")
    network = Network(architecture, np.empty(architecture.n_genes, dtype))
    for layer, matrix in enumerate(architecture.matrices(network.genotype)):
        matrix[:, :-1] = arrays[f"layers.{layer}.weight"]
        matrix[:, -1] = arrays[f"layers.{layer}.bias"]
    if not np.isfinite(network.genotype).all():
        raise ModelError("it has a weight that is NaN or infinite")
    return replace(model, network=network)


def _layers(network: Network) -> dict[str, Array]:
    """Return the weights and biases of each layer under their names in the file."""
    arrays = {}
    for layer, (weights, biases) in enumerate(zip(network.weights, network.biases, strict=True)):
        arrays[f"layers.{layer}.weight"] = np.ascontiguousarray(weights)
        arrays[f"layers.{layer}.bias"] = np.ascontiguousarray(biases)
    return arrays


def _digest(text: str, arrays: Mapping[str, Array], version: int = FORMAT_VERSION) -> str:
    sha = hashlib.sha256(f"{version} {text}".encode(errors="surrogatepass"))
    for name in sorted(arrays):
        sha.update(arrays[name].tobytes())
    return sha.hexdigest()


# ----------------------------------------------------------------------------------------- checking


def _check_metadata(metadata: dict[str, str]) -> None:
    if metadata.get("format") != _FORMAT:
        raise ModelError("it was not written by coevo")
    version = metadata.get("format_version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise ModelError(f"its format version {version[:20]!r} makes no sense")
    if int(version) > FORMAT_VERSION:
        raise ModelError(
            f"it has format version {version}; this version of coevo reads versions up to "
            f"{FORMAT_VERSION}"
        )
    if set(metadata) != {"format", "format_version", "content", "sha256"}:
        raise ModelError("its metadata lacks something, or has something unknown")


def _check_layout(
    claims: dict[str, dict[str, Any]], architecture: Architecture, n_bytes: int
) -> np.dtype[Any]:
    """Raise unless the arrays in the header are those of the architecture; return their dtype."""
    # Nothing is allocated, as the architecture may be absurdly large.
    expected: dict[str, list[int]] = {}
    for number, layer in enumerate(architecture.layers):
        expected[f"layers.{number}.weight"] = [layer.n_neurons, layer.n_inputs]
        expected[f"layers.{number}.bias"] = [layer.n_neurons]
    if {name: claim["shape"] for name, claim in claims.items()} != expected:
        raise ModelError("its arrays are not those of its architecture")
    dtypes = {claim["dtype"] for claim in claims.values()}
    if len(dtypes) != 1 or not dtypes <= _DTYPES.keys():
        raise ModelError("its weights are neither all float32 nor all float64")
    dtype = _DTYPES[dtypes.pop()]
    needed = architecture.n_genes * dtype.itemsize
    if needed != n_bytes:
        raise ModelError(f"its arrays take {needed} bytes, but {n_bytes} bytes follow")
    return dtype


def _read_content(text: str, version: int = FORMAT_VERSION) -> Model:
    """Return the model that a JSON text describes, with an empty genotype."""
    content = parse_json(text, "its content", dict)
    content = {name: None for name, since in _SINCE_VERSION.items() if version < since} | content
    if set(content) != set(_CONTENT):
        raise ModelError("its content lacks something, or has something unknown")
    for name, kinds in _CONTENT.items():
        if not isinstance(content[name], kinds):
            raise ModelError(f"its {name} cannot be a {type(content[name]).__name__}")
    architecture = _read_architecture(content["architecture"])
    classes, names, fitness = (content[k] for k in ("classes", "feature_names", "fitness"))
    if classes is not None:
        classes = _read_labels(classes, architecture.n_outputs)
    if names is not None:
        if not all(map(is_name, names)) or len(names) != architecture.n_inputs:
            raise ModelError(
                "feature_names must be texts that are not empty, one for each of the "
                f"{architecture.n_inputs} inputs"
            )
        names = tuple(names)
    labels = content["labels"]
    if labels is not None:
        if classes is not None or len(labels) != architecture.n_outputs:
            raise ModelError("its labels are not one for each output, or it has classes as well")
        if not all(map(is_name, labels)) or len(set(labels)) < len(labels):
            raise ModelError("its labels must be different texts that are not empty")
        labels = tuple(labels)
    if fitness is not None and not all(isinstance(value, float) for value in fitness.values()):
        raise ModelError("its fitness is not made of numbers")
    return Model(
        Network(architecture, np.empty(0)),
        classes,
        names,
        content["settings"],
        fitness,
        content["preprocessing"],
        content["policy"],
        content["coevo_version"],
        labels,
    )


def is_name(value: Any) -> bool:
    """Whether a value can be the name of a column: a non-empty text that UTF-8 can encode."""
    return isinstance(value, str) and value != "" and _is_utf8(value)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def _read_architecture(given: dict[str, Any]) -> Architecture:
    def is_size(value: Any) -> bool:
        return type(value) is int and 0 < value < 2**48

    if set(given) != set(Architecture.__dataclass_fields__):
        raise ModelError("its architecture lacks something, or has something unknown")
    hidden = given["hidden_layer_sizes"]
    if not (
        isinstance(hidden, list)
        and len(hidden) < 2**12
        and all(is_size(size) for size in (given["n_inputs"], *hidden, given["n_outputs"]))
    ):
        raise ModelError("its architecture has impossible layer sizes")
    for name in ("activation", "output_activation"):
        if not (isinstance(given[name], str) and given[name] in ACTIVATIONS):
            raise ModelError(f"its {name} is unknown; known are {', '.join(ACTIVATIONS)}")
    return Architecture(**given | {"hidden_layer_sizes": tuple(hidden)})


# ------------------------------------------------------------------------------------------- labels


def _describe_labels(labels: Array) -> dict[str, Any]:
    """Return labels as JSON values, with their dtype."""
    if labels.dtype.kind == "T":
        labels = labels.astype(str)
    name = labels.dtype.name
    if labels.dtype.kind == "U":
        name = f"str{max(1, labels.dtype.itemsize // 4)}"
    values = labels.tolist()
    if labels.dtype.kind == "O":
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
    are_plain = all(isinstance(value, bool | int | float | str) for value in values)
    if labels.ndim != 1 or not _LABEL_DTYPE.fullmatch(name) or not are_plain:
        raise TypeError(
            "classes must be a list of whole numbers, numbers, booleans or texts to be saved, got "
            f"{labels!r:.200}"
        )
    return {"dtype": name, "values": values}


def _read_labels(given: dict[str, Any], n_outputs: int) -> Array:
    values, name = given.get("values"), given.get("dtype")
    if set(given) != {"values", "dtype"} or not isinstance(values, list):
        raise ModelError("its classes are malformed")
    if len(values) != n_outputs:
        raise ModelError(f"there are {len(values)} classes for {n_outputs} outputs")
    if not (isinstance(name, str) and _LABEL_DTYPE.fullmatch(name)):
        raise ModelError("its classes have an unknown dtype")
    kind = name.rstrip("0123456789")
    accepted: dict[str, tuple[type, ...]] = {
        "bool": (bool,), "int": (int,), "uint": (int,), "float": (float,), "str": (str,),
        "object": (bool, int, float, str),
    }  # fmt: skip
    if not all(type(value) in accepted[kind] for value in values):
        raise ModelError(f"its classes are not all of the dtype {name}")
    if not all(_is_utf8(value) for value in values if isinstance(value, str)):
        raise ModelError("its classes hold a text that is not Unicode")
    if kind == "str":
        width = int(name.removeprefix("str"))
        longest = max(len(value) for value in values)
        if not longest <= width <= max(longest, _MAX_TEXT_WIDTH // n_outputs):
            raise ModelError(f"its classes do not fit the dtype {name}")
        name = f"<U{width}"
    try:
        with np.errstate(over="raise"):
            labels = np.array(values, dtype=name)
    except (OverflowError, FloatingPointError):
        raise ModelError(f"its classes are not all of the dtype {name}") from None
    if len({(type(value), value) for value in values}) < n_outputs:
        raise ModelError("its classes are not all different")
    return labels
