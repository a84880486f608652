"""What a training prints."""

import pytest

from coevo.tabular.summary import is_hardly_better, show_confusion, tabulate


def test_metrics_stand_in_columns():
    parts = {"training": {"r2": 0.5, "mae": 12.0, "more": {}}, "test": {"r2": None, "mae": 1.5}}
    lines = list(tabulate(parts))
    assert [line.split() for line in lines] == [
        ["training", "test"], ["r2", "0.5", "–"], ["mae", "12", "1.5"],
    ]  # fmt: skip
    assert len(set(map(len, lines))) == 1


def test_a_small_confusion_matrix_is_aligned_whatever_the_labels():
    lines = list(show_confusion([[5, 0], [1, 20]], ["\x1b[1m", "a label that is long"]))
    assert "\\x1b[1m" in lines[1]
    assert len(set(map(len, lines[1:]))) == 1


def test_of_a_large_confusion_matrix_the_worst_is_shown():
    matrix = [[0] * 20 for _ in range(20)]
    matrix[3][7], matrix[7][3], matrix[1][1] = 4, 9, 50
    lines = list(show_confusion(matrix, list(range(20))))
    assert lines[1:] == ["  7 → 3: 9", "  3 → 7: 4"]


def test_large_numbers_are_written_out():
    parts = {"training": {"mae": 262_912.3}, "test": {"mae": 9_999.7}, "simplest": {"mae": 3e11}}
    assert list(tabulate(parts))[1].split() == ["mae", "262,912", "10,000", "3e+11"]


@pytest.mark.parametrize(
    ("test", "simplest", "expected"),
    [
        ({"r2": -0.02, "rmse": 24.1}, {"r2": -0.01, "rmse": 23.9}, True),
        ({"r2": -0.0001, "rmse": 23.87}, {"r2": -0.002, "rmse": 23.9}, True),
        ({"r2": 0.3, "rmse": 20.0}, {"r2": -0.01, "rmse": 23.9}, False),
        ({"r2": None, "rmse": 1.0}, {"r2": None, "rmse": 2.0}, False),
        # Of rare classes accuracy says little.
        ({"accuracy": 0.8, "f1_macro": 0.7}, {"accuracy": 0.9, "f1_macro": 0.4}, False),
        ({"accuracy": 0.9, "f1_macro": 0.4}, {"accuracy": 0.9, "f1_macro": 0.4}, True),
    ],
)
def test_a_model_that_learned_nothing_is_told(test, simplest, expected):
    assert is_hardly_better({"test": test, "simplest": simplest}) is expected
