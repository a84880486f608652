"""The container: what the safetensors library lets pass is refused here."""

import json
import random
import struct

import numpy as np
import pytest

from coevo.persistence.container import (
    MAX_HEADER_BYTES,
    FileFormatError,
    pack,
    parse_json,
    read_header,
    unpack,
)


@pytest.fixture
def join():
    """Put a header, as a table or as bytes, and data together."""

    def join_parts(header, data=bytes(8)):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    return join_parts


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
TEXT = json.dumps(ENTRY)


def test_arrays_and_texts_come_back():
    arrays = {"a": np.arange(6.0).reshape(2, 3).T, "b": np.array([True, False]), "c": np.empty(0)}
    metadata, found = unpack(pack(arrays, {"x": "ü"}))
    assert metadata == {"x": "ü"}
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
        assert found[name].flags.writeable


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (f'{{"a": {TEXT}, "a": {TEXT}}}', "a name occurs twice"),
        (f'{{"__metadata__": {{"x": "", "x": ""}}, "a": {TEXT}}}', "a name occurs twice"),
        (f'{{"__metadata__": null, "a": {TEXT}}}', "not a table of texts"),
        ({"a": ENTRY | {"more": 1}}, "entry for the array 'a' is malformed"),
        ({"a": ENTRY | {"dtype": "BF16", "shape": [4]}}, "unknown dtype 'BF16'"),
        ({"a": ENTRY | {"dtype": "F4", "shape": [16]}}, "unknown dtype 'F4'"),
        ({"a": ENTRY | {"shape": [1] * 100 + [2]}}, "cannot be read"),
        ({"a": ENTRY, "b": ENTRY}, "cannot be read"),
        ({"a": ENTRY | {"data_offsets": [0, 2**60], "shape": [2**58]}}, "cannot be read"),
        ({"a": ENTRY | {"shape": [2.0]}}, "cannot be read"),
        (b"{}", "cannot be read"),
    ],
    ids=["twice", "text twice", "no texts", "unknown field", "bfloat16", "4 bits", "dimensions",
         "overlap", "claim", "fraction", "gap"],
)  # fmt: skip
def test_what_is_not_exactly_right_is_refused(join, header, message):
    assert unpack(join({"a": ENTRY}))[1]["a"].shape == (2,)
    content = join(header.encode() if isinstance(header, str) else header)
    with pytest.raises(FileFormatError, match=message):
        unpack(content)


def test_a_long_header_is_neither_written_nor_read(join):
    with pytest.raises(ValueError, match="take more than 4194304 bytes"):
        pack({}, {"x": "y" * MAX_HEADER_BYTES})
    with pytest.raises(FileFormatError, match="at most 4194304"):
        unpack(join(json.dumps({"a": ENTRY}).encode() + b" " * MAX_HEADER_BYTES))


def test_damage_raises_one_kind_of_error():
    good = pack({"a": np.arange(5.0), "b": np.ones((2, 2), np.int8)}, {"x": "1", "y": "2"})
    generator = random.Random(3)
    n_refused = 0
    for _ in range(3000):
        damaged = bytearray(good)
        for _ in range(generator.randint(1, 4)):
            start = generator.randrange(min(len(damaged), 200))
            damaged[start : start + generator.randint(0, 3)] = generator.randbytes(
                generator.randint(0, 3)
            )
        try:
            unpack(bytes(damaged))
        except FileFormatError:
            n_refused += 1
    assert n_refused > 2000


def test_claims_are_returned_unchecked():
    metadata, claims = read_header(json.dumps({"a": ENTRY | {"shape": [10**15]}}).encode())
    assert (metadata, claims["a"]["shape"]) == ({}, [10**15])


def test_a_json_text_must_be_of_the_kind():
    assert parse_json('{"a": [1]}', "it", dict) == {"a": [1]}
    with pytest.raises(FileFormatError, match="it is not a JSON dict"):
        parse_json("[]", "it", dict)
    with pytest.raises(FileFormatError, match="it is not valid JSON"):
        parse_json("[" * 10**6, "it", list)
