"""coevo predict."""

import io
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score

from coevo import CoevoClassifier
from coevo.persistence import model


def test_predictions_are_those_of_the_test(house, run_process):
    folder, result, _ = house
    done = run_process("predict", "run", "shop.csv", "--proba", "--keep", "id", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = pd.read_csv(io.StringIO(done.stdout))
    assert list(found) == ["id", "prediction", "probability no", "probability yes"]
    table = pd.read_csv(folder / "shop.csv")
    assert found["id"].tolist() == table["id"].tolist()
    counts = [result["parts"][part] for part in ("training", "test")]
    right = sum(round(p["accuracy"] * n) for p, n in zip(counts, (320, 80), strict=True))
    assert accuracy_score(table["bought"], found["prediction"]) == right / 400
    assert np.allclose(found.iloc[:, 2:].sum(axis=1), 1)
    chosen = found.iloc[:, 2:].to_numpy().argmax(axis=1)
    assert found["prediction"].tolist() == np.array(["no", "yes"])[chosen].tolist()


def test_all_formats_predict_the_same(house, coevo, tmp_path, make_shop):
    folder, _, _ = house
    frame = make_shop()
    frame.to_csv("a.csv", index=False)
    frame.to_csv("a.csv.gz", index=False)
    frame.to_csv("b.csv", index=False, sep=";", decimal=",", encoding="cp1252")
    frame.to_parquet("a.parquet")
    frame[["town", "age"]].to_csv("c.csv", index=False)  # other order, no target
    answers = set()
    for name in ("a.csv", "a.csv.gz", "b.csv", "a.parquet", "c.csv"):
        done = coevo("predict", folder / "run", name, "--output", "out.csv")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "wrote out.csv\n", "")
        answers.add((tmp_path / "out.csv").read_text())
    assert len(answers) == 1
    assert len(answers.pop().splitlines()) == 401


def test_unknown_categories_and_missing_values_are_predicted_too(house, coevo, tmp_path):
    folder, _, _ = house
    (tmp_path / "new.csv").write_text("age,town\n,\n33,Atlantis\n70,\n")
    done = coevo("predict", folder / "run", "new.csv")
    assert len(done.stdout.splitlines()) == 4
    assert done.stderr == (
        "note: 1 row has an unknown category in column 'town', such as 'Atlantis', and is "
        "predicted without it\n"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age\n3\n", "has no column 'town', which"),
        ("a,b\n3,4\n", "has no columns 'age', 'town'"),
        ("age,town\n3,Rome\nold,Rome\n", "new.csv must hold numbers and holds 'old' in row 2"),
        ("age,town\nTrue,Rome\n", "must hold numbers"),
        ("age,town\n3,Rome\n-,Rome\n", "in row 2; --missing=- takes that as missing"),
        ("age,town\n", "no rows"),
        ("age,town\ninf,Rome\n", "infinite"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_the_model(
    house, coevo, tmp_path, content, message, assert_one_line
):
    folder, _, _ = house
    (tmp_path / "new.csv").write_text(content)
    (tmp_path / "out.csv").write_text("precious")
    done = coevo("predict", folder / "run", "new.csv", "--output", "out.csv")
    assert_one_line(done, message)
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert not (tmp_path / "out.csv.partial").exists()


def test_a_million_rows_take_no_more_memory_than_a_few(house, tmp_path, command):
    folder, _, _ = house
    block = "\n".join(f"{18 + i % 70},{('Rome', 'Köln', '')[i % 3]}" for i in range(10_000)) + "\n"
    peaks = []
    for n_blocks in (6, 100):
        table = tmp_path / f"{n_blocks}.csv"
        table.write_text("age,town\n" + block * n_blocks, encoding="utf-8")
        answers = tmp_path / "answers.csv"
        words = ["predict", str(folder / "run"), str(table), "--output", str(answers)]
        process = subprocess.Popen([*command, *words])
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10))
        with open(answers, "rb") as file:
            assert sum(1 for _ in file) == n_blocks * 10_000 + 1
    assert peaks[1] < peaks[0] + 60  # megabytes; the rows alone would be hundreds


def test_a_reader_that_goes_away_is_no_error_to_speak_of(house, make_shop):
    folder, _, _ = house
    line = (
        f"{sys.executable} -c 'from coevo.cli.app import app; app()' predict run big.csv | head -2"
    )
    pd.concat([make_shop()] * 200).to_csv(folder / "big.csv", index=False)
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "prediction"
    assert "Traceback" not in done.stderr


def test_models_of_estimators_are_welcome(coevo, tmp_path, make_shop, assert_one_line):
    frame = make_shop().dropna(subset="age")[["age", "spent"]]
    labels = (frame["age"] > 50).to_numpy()
    classifier = CoevoClassifier((2,), max_generations=2, random_state=1).fit(frame, labels)
    classifier.save("m.safetensors")
    frame.to_csv("d.csv", index=False)
    answers = coevo("predict", "m.safetensors", "d.csv").stdout.split()[1:]
    assert answers == [str(label) for label in classifier.predict(frame)]
    assert "network 2-2-2" in coevo("inspect", "m.safetensors").stdout
    (tmp_path / "hole.csv").write_text("age,spent\n20,\n")
    done = coevo("predict", "m.safetensors", "hole.csv")
    assert done.exit_code == 0
    assert done.stderr == "note: column 'spent' misses values, and missed none in training\n"
    # As estimators of version 0.1 saved it: without medians.
    model.save("bare.safetensors", classifier.network_, feature_names=["age", "spent"])
    assert_one_line(coevo("predict", "bare.safetensors", "hole.csv"), "has no value in row 1")
    model.save("nameless.safetensors", classifier.network_)
    assert_one_line(coevo("predict", "nameless.safetensors", "d.csv"), "does not know the names")


def test_models_of_estimators_may_have_categories_and_labels(coevo, make_shop):
    frame = make_shop()[["age", "town"]]
    frame["town"] = frame["town"].astype("category")
    labels = pd.DataFrame({"old": frame["age"] > 50, "here": frame["town"] == "Köln"}).astype(int)
    classifier = CoevoClassifier((2,), max_generations=2, random_state=1).fit(frame, labels)
    classifier.save("m.safetensors")
    frame.to_csv("d.csv", index=False)
    answers = coevo("predict", "m.safetensors", "d.csv", "--proba")
    assert (answers.exit_code, answers.stderr) == (0, "")
    found = pd.read_csv(io.StringIO(answers.stdout))
    names = ["prediction old", "prediction here", "probability old", "probability here"]
    assert list(found) == names
    np.testing.assert_array_equal(found[names[:2]], classifier.predict(frame))
    np.testing.assert_allclose(found[names[2:]], classifier.predict_proba(frame))
    assert (
        "labels, any number of them at once: old, here" in coevo("inspect", "m.safetensors").stdout
    )
    assert coevo("export", "m.safetensors", "--onnx").exit_code == 0


def test_estimators_load_models_of_tables(house, coevo, make_shop, tmp_path):
    folder, _, _ = house
    frame = make_shop()
    frame.to_csv("d.csv", index=False)
    answers = coevo("predict", folder / "run", "d.csv").stdout.split()[1:]
    loaded = CoevoClassifier.load(folder / "run" / "model.safetensors")
    columns = list(loaded.feature_names_in_)
    assert loaded.predict(frame[columns]).tolist() == answers
    dated = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=200), "x": range(200)})
    dated.assign(y=dated["x"] % 7 > 3).to_csv("dated.csv", index=False)
    done = coevo("train", "dated.csv", "--target", "y", "--max-generations", "1", "--output", "r")
    assert done.exit_code == 0, done.stderr
    with pytest.raises(model.ModelError, match="reads dates, or numbers with units or separators"):
        CoevoClassifier.load("r/model.safetensors")


def test_numbers_far_outside_are_noted_unless_asked_not_to(house, coevo, tmp_path):
    folder, _, _ = house
    (tmp_path / "far.csv").write_text("age,town\n30,Köln\n999,Köln\n")
    done = coevo("predict", folder / "run", "far.csv")
    assert done.exit_code == 0
    assert done.stderr == "note: column 'age' holds 999, and 18 to 89 in training\n"
    assert coevo("predict", folder / "run", "far.csv", "--no-check-range").stderr == ""


def test_formulas_are_escaped_if_asked(house, coevo, tmp_path):
    folder, _, _ = house
    (tmp_path / "new.csv").write_text("age,town,=who\n33,Rome,=1+1\n34,Rome,-2.5\n")
    plain = coevo("predict", folder / "run", "new.csv", "--keep", "=who").stdout.splitlines()
    assert [line.split(",")[0] for line in plain] == ["=who", "=1+1", "-2.5"]
    words = ["predict", folder / "run", "new.csv", "--keep", "=who", "--escape-formulas"]
    safe = coevo(*words).stdout.splitlines()
    assert [line.split(",")[0] for line in safe] == ["'=who", "'=1+1", "-2.5"]


def test_a_terminal_does_not_interpret_what_a_table_holds(house, tmp_path, terminal):
    folder, _, _ = house
    (tmp_path / "new.csv").write_text("age,town,who\n33,Rome,\x1b[31mred\n")
    with terminal("predict", folder / "run", "new.csv", "--keep", "who", cwd=tmp_path) as screen:
        assert screen.wait() == 0
    assert "\\x1b[31mred," in screen.seen
    assert "\x1b[31m" not in screen.seen


def test_what_stood_for_a_missing_value_in_training_does_so_in_predictions(coevo, brief, tmp_path):
    days = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2020" for i in range(60)]
    rows = [f"{'-9999' if i % 9 == 0 else i},{'-' if i % 7 == 0 else days[i]}" for i in range(60)]
    lines = [f"{row},{'yes' if i > 30 else 'no'}" for i, row in enumerate(rows)]
    (tmp_path / "t.csv").write_text("\n".join(["x,day,y", *lines]) + "\n")
    words = ["--missing=-9999", "--missing=-", "--output", "run"]
    done = coevo("train", "t.csv", "--target", "y", *words, *brief)
    assert done.exit_code == 0, done.stderr
    assert "missing, as said in training: '-9999', '-'" in coevo("inspect", "run").stdout
    (tmp_path / "marked.csv").write_text(f"x,day\n-9999,{days[0]}\n3,-\n")
    (tmp_path / "empty.csv").write_text(f"x,day\n,{days[0]}\n3,\n")
    pd.read_csv("marked.csv").to_parquet("marked.parquet")
    expected = coevo("predict", "run", "empty.csv", "--proba")
    for name in ("marked.csv", "marked.parquet"):
        found = coevo("predict", "run", name, "--proba")
        assert (found.exit_code, found.stdout, found.stderr) == (0, expected.stdout, "")
