"""The tables of README.md that are made from committed results.

Each stands between two comments, of which the first names the script that makes it.
"""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
END = "\n<!-- end -->\n"


def replace_table(readme: str, script: str, table: str) -> str:
    """Return the README with another table of a script in place of the one it has."""
    begin = f"<!-- made by benchmarks/{script}.py -->\n\n"
    before, found, rest = readme.partition(begin)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise ValueError(f"README.md has lost the comments around the table of {script}.py")
    return before + begin + table + END + after


def rewrite_table(script: str, table: str) -> None:
    """Write another table of a script into README.md."""
    text = replace_table(README.read_text(encoding="utf-8"), script, table)
    README.write_text(text, encoding="utf-8")
