"""Rows held out for the test."""

import numpy as np

from coevo.tabular.splitting import hold_out


def test_rows_are_held_out_by_class():
    target = np.array(["a"] * 70 + ["b"] * 30 + ["c"] * 2)
    training, test = hold_out(target, 0.2, 5, stratify=True)
    assert sorted([*training, *test]) == list(range(102))
    labels, counts = np.unique(target[test], return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == {"a": 14, "b": 6}
    again = hold_out(target, 0.2, 5, stratify=True)[1]
    other = hold_out(target, 0.2, 6, stratify=True)[1]
    assert test.tolist() == again.tolist() != other.tolist()
    for fraction in (0.0, 0.9):
        training, _ = hold_out(target, fraction, 1, stratify=True)
        assert set(target[training]) == {"a", "b", "c"}
