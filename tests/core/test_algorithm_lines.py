"""Every line of Algorithm 1 is named in `core/search.py`, to be read beside the paper."""

import re
from pathlib import Path

import coevo.core.search

LAST = 45
"""The last line that is more than the end of a loop; the first is 2."""


def find_lines(source):
    """Return the numbers in comments such as `# 4–10, 12` and in words such as `lines 4 to 14`."""
    named = re.findall(r"# ((?:\d+(?:–\d+)?(?:, | and )?)+)", source)
    named += re.findall(r"[Ll]ines? (\d+(?:(?: to | and )\d+)?)", source)
    found = set()
    for text in named:
        for first, last in re.findall(r"(\d+)(?:(?:–| to )(\d+))?", text):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_lines_are_found():
    source = "x = 1  # 4–6\ny = 2  # 8, 11–12: why\n# 20 and 22–23\n'Line 30, lines 32 and 34'"
    assert find_lines(source) == {4, 5, 6, 8, 11, 12, 20, 22, 23, 30, 32, 34}


def test_every_line_is_named():
    source = Path(coevo.core.search.__file__).read_text(encoding="utf-8")
    # "Lines 16 to 46", what a whole method does, says nothing of the lines within.
    margin = re.sub(r"Lines \d+ to \d+", "", source)
    assert find_lines(margin) >= set(range(2, LAST + 1)) - {9}  # 9 ends a loop
