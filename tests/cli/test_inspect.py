"""coevo inspect."""

import re


def test_inspect_shows_the_model(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("inspect", folder / "run", "--plot", "p.png")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.search(r"importance, the loss of accuracy on 80 test rows", done.stdout)
    assert re.search(r"  age +-?\d\.\d{4} ± \d\.\d{4}", done.stdout)
    for part in ("network 6-3-2", "classes: no, yes", "'age': numeric from 18 to 89",
                     "if missing, with an input that says so",
                 "'town': 4 categories: (missing), Köln",
                 "hidden 1: 6 inputs, 3 neurons", "0.0% of the weights are 0", "█"):  # fmt: skip
        assert part in done.stdout
    assert re.search(r"population_size +6\n", done.stdout)
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    # The weights are those of the search, within the initial range and a little beyond.
    assert max(abs(float(n)) for n in re.findall(r"weights +(-[\d.]+)", done.stdout)) < 10


def test_a_model_apart_from_its_folder_has_no_importance(house, coevo, tmp_path):
    folder, _, _ = house
    (tmp_path / "m.safetensors").write_bytes((folder / "run" / "model.safetensors").read_bytes())
    done = coevo("inspect", "m.safetensors", "--plot", "p.png")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "importance" not in done.stdout
    (tmp_path / "metrics.json").write_text("{")
    assert "metrics.json is not as coevo writes it" in coevo("inspect", "m.safetensors").stderr
