"""Every example runs, on a reduced budget, and prints what it says it measures."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(monkeypatch, capsys, name, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_demo_ends_with_a_page_to_look_at(monkeypatch, capsys, tmp_path):
    page = tmp_path / "new folder" / "demo.html"
    printed = run(monkeypatch, capsys, "demo.py", "--evaluations", "3_000", "--page", str(page))
    assert printed.split("is in ")[1].strip() == str(page)
    assert "Compiling the inner loops" in printed  # also where no terminal shows it turning
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == text.count("</svg>") == 1
    for variant in ("DE", "LEDE", "CCDE", "LECCDE"):
        assert re.search(rf"^ *{variant} +\d\d\.\d / \d\d\.\d", printed, re.MULTILINE)
        assert re.search(rf"<tr><td>{variant}</td>(<td>[^<]+</td>){{5}}</tr>", text)
    # Nothing is loaded from elsewhere; the names of SVG's own vocabularies are no addresses.
    assert not re.search(r"""(src|href)=["'](?!#)""", text)


def test_costs_beat_the_default_threshold(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "costs_imbalanced.py", "--evaluations", "40_000",
                  "--seeds", "1")  # fmt: skip
    evolved, trained, _ = (float(cost) for cost in re.findall(r": (\d\.\d+) in the", printed))
    assert evolved < trained
    assert "in 1 of 1" in printed


def test_profit(monkeypatch, capsys, tmp_path):
    picture = tmp_path / "p.svg"
    printed = run(monkeypatch, capsys, "profit.py", "--evaluations", "4_000", "--picture", picture)
    assert picture.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    profits = {k.strip(): float(v) for k, v in re.findall(r"([a-z ]+): +(-?\d+\.\d+)", printed)}
    assert profits["evolved for a matrix"] > profits["everyone"]
    assert "evolved for amounts" in profits


def test_sign_activations(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "sign_activations.py", "--evaluations", "40_000")
    assert re.search(r"sign: accuracy 0\.[4-9]", printed)
    assert "[-1.0, 1.0]" in printed


def test_a_pipeline_exported_to_onnx(monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    printed = run(monkeypatch, capsys, "pipeline_to_onnx.py", "--evaluations", "10_000")
    assert "100% of the labels" in printed


def test_the_gallery_shows_every_example():
    page = (EXAMPLES.parent / "docs" / "gallery.md").read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f"gallery/{path.stem}.svg" in page
        assert "--picture" in path.read_text(encoding="utf-8")
        assert (EXAMPLES.parent / "docs" / "gallery" / f"{path.stem}.svg").exists()


def test_double_pole(monkeypatch, capsys):
    pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
    printed = run(monkeypatch, capsys, "double_pole.py", "--episodes", "300")
    assert re.search(r"balanced for [\d,]+ steps after [\d,]+ episodes", printed)


def test_a_noisy_device(monkeypatch, capsys):
    printed = run(monkeypatch, capsys, "noisy_device.py", "--evaluations", "600")
    off = [float(degrees) for degrees in re.findall(r"(\d+\.\d) degrees off", printed)]
    assert off[1] < off[0] / 2


def test_a_stream_needs_no_more_memory_as_it_goes_on():
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "stream.py"), "--batches", "60"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    fitness = [float(value) for value in re.findall(r"fitness (-?\d+\.\d+)", done.stdout)]
    assert fitness[-1] > fitness[0]
    resident = [float(size) for size in re.findall(r"(\d+) MB resident", done.stdout)]
    if not resident:
        pytest.skip("this system does not tell how much memory is resident")
    assert len(resident) == 3
    # Fifty more batches of 500 images are 75 MB as float32; none of them may stay.
    assert max(resident) - resident[0] < 20
