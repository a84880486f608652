"""The how-to page on resuming: its code blocks run, one after the other."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "resume.md"


def test_code_blocks_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    names = {"__name__": "resume"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "decay is 0.2 in the checkpoint and 0.5 here" in capsys.readouterr().out
