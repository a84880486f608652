"""What a training prints."""

from coevo.tabular.summary import show_confusion, tabulate


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
