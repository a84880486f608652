"""Atomic writes."""

import os

import pytest

from coevo.persistence.atomic import write_atomically


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    write_atomically(path, [b"old"])

    def fail():
        yield b"new"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_atomically(path, fail())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("has_links", [True, False])
def test_the_previous_file_is_kept(tmp_path, monkeypatch, has_links):
    def fail(*_):
        raise OSError(1, "Operation not permitted")

    if not has_links:
        monkeypatch.setattr(os, "link", fail)
    for content in (b"1", b"2", b"3", b"3"):
        write_atomically(tmp_path / "file", [content], tmp_path / "file.previous")
    assert (tmp_path / "file").read_bytes() == b"3"
    assert (tmp_path / "file.previous").read_bytes() == b"3"
    write_atomically(tmp_path / "file", [b"4"], tmp_path / "file.previous")
    assert (tmp_path / "file.previous").read_bytes() == b"3"
    assert len(os.listdir(tmp_path)) == 2
