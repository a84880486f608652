"""The commands for tables as users meet them: in a process, on a terminal, in dirt."""

import csv
import fcntl
import io
import json
import os
import pickle
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tomllib

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score
from typer.testing import CliRunner

from coevo import CoevoClassifier, model
from coevo.cli import app
from coevo.tabular.using import Strangers

COMMAND = [sys.executable, "-c", "from coevo.cli import app; app()"]
SMALL = ["--hidden-layer-sizes", "3", "--population-size", "6", "--batch-size", "50", "--seed", "4"]
BRIEF = [*SMALL, "--max-generations", "3"]


def make_shop(n=400, seed=0):
    """Customers who buy by age and town, with the usual holes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"c{i}" for i in range(n)],
            "age": rng.integers(18, 90, n).astype(float),
            "town": rng.choice(["Rome", "Oslo, N", "Köln"], n),
            "same": 1,
            "nothing": np.nan,
        }
    )
    frame["spent"] = (frame["age"] * 2.5 + rng.normal(size=n)).round(2)
    frame["bought"] = np.where(frame["age"] > 50, "yes", "no")
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "town"] = None
    return frame


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """A folder with a table and a model trained on it."""
    folder = tmp_path_factory.mktemp("house")
    make_shop().to_csv(folder / "shop.csv", index=False)
    done = run_process("train", "shop.csv", "--target", "bought", "--drop", "spent", *BRIEF,
                       "--output", "run", "--json", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout), done


def run_process(*words, cwd, **further):
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=120,
        check=False, **further,
    )  # fmt: skip


def read_model(run):
    """Return all that a model file holds; the order of its texts is not always the same."""
    return pickle.dumps(model.load(run / "model.safetensors"))


@pytest.fixture
def coevo(tmp_path, monkeypatch):
    """Call the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def call(*words):
        return CliRunner().invoke(app, [str(word) for word in words])

    return call


# ------------------------------------------------------------------------------------ a run folder


def test_a_run_folder_holds_everything(house):
    folder, result, done = house
    run = folder / "run"
    assert done.stderr == ""  # no bar without a terminal
    assert {path.name for path in run.iterdir()} >= {
        "model.safetensors", "metrics.json", "history.csv", "settings.toml", "learning_curve.png",
        "search.checkpoint",
    }  # fmt: skip
    metrics = json.loads((run / "metrics.json").read_text())
    assert {"folder": "run", **metrics} == result
    assert result["task"] == "classification"
    assert result["rows"] == {"training": 320, "test": 80}
    assert result["stop_reason"] == "max_generations"
    rows = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert [int(row["generation"]) for row in rows] == [0, 1, 2, 3]
    assert float(rows[-1]["best_validation"]) == result["fitness"]["validation"]
    assert (run / "learning_curve.png").read_bytes()[:4] == b"\x89PNG"
    settings = tomllib.loads((run / "settings.toml").read_text())
    assert settings["hidden_layer_sizes"] == [3]
    assert settings["max_seconds"] == "none"
    notes = " ".join(result["notes"])
    assert "'id'" in notes
    assert "'same'" in notes
    assert "'nothing'" in notes


def test_the_summary_says_what_was_done_and_how_good_it_is(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("train", folder / "shop.csv", "--target", "bought", *BRIEF, "--output", "o")
    assert (done.exit_code, done.stderr) == (0, "")
    for part in (
        "320 rows to train on, 80 to test on, 2 columns of numbers, 1 of texts",
        "classification, because 'bought' holds text",
        "note: left out, the same in every row: 'same'",
        "confusion matrix",
        "balanced_accuracy",
        "next: coevo predict o NEW.csv",
    ):
        assert part in done.stdout
    other = coevo("train", folder / "shop.csv", "--target", "spent", *BRIEF, "--output", "p")
    assert "regression, because 'spent' holds fractions" in other.stdout
    assert "residuals of the test part" in other.stdout
    spaced = tmp_path / "my shop (2).csv"
    spaced.write_bytes((folder / "shop.csv").read_bytes())
    forced = coevo("train", spaced, "--target", "age", "--task", "regression", *BRIEF,
                   "--fitness", "r2", "--variant", "CCDE", "--json")  # fmt: skip
    assert json.loads(forced.stdout)["fitness"]["measure"] == "r2"
    assert re.fullmatch(r"runs/my-shop-2-\d{8}-\d{6}", json.loads(forced.stdout)["folder"])
    assert "rows without a value of 'age'" in forced.stdout


def test_the_same_settings_give_the_same_model(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("train", "--config", folder / "run" / "settings.toml", "--output", "again")
    assert done.exit_code == 0, done.stderr
    assert read_model(tmp_path / "again") == read_model(folder / "run")
    settings = (tmp_path / "again" / "settings.toml").read_text()
    assert settings == (folder / "run" / "settings.toml").read_text()


def test_an_existing_run_is_not_overwritten(house, coevo):
    folder, _, _ = house
    words = ["train", folder / "shop.csv", "--target", "bought", "--output", folder / "run"]
    done = coevo(*words, *BRIEF)
    assert done.exit_code == 2
    assert "--resume" in done.stderr


def test_a_training_that_comes_to_nothing_leaves_nothing(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("train", folder / "shop.csv", "--target", "bought", "--fitness", "nonsense",
                 "--output", "x")  # fmt: skip
    assert done.exit_code == 2
    assert "fitness='nonsense' is unknown" in done.stderr
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------- predict, export, inspect


def test_predictions_are_those_of_the_test(house):
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


def test_all_formats_predict_the_same(house, coevo, tmp_path):
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
        "note: 1 row holds a text in column 'town' that the model has no input for, 'Atlantis' for "
        "one, and is predicted without it\n"
    )


def test_unknown_categories_are_counted_over_all_chunks():
    strangers = Strangers()
    for texts in (["Rome", "Ur", "Ys"], ["Rome", np.nan], ["Ur", "Ur"]):
        strangers.look_for("town", np.array(texts, dtype=object), ("", "Rome"))
    strangers.look_for("sex", np.array(["f"], dtype=object), ("f", "m"))
    (note,) = strangers
    assert note.startswith("4 rows hold a text in column 'town' that the model has no input for")
    assert "'Ur' for one, and are predicted" in note


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age\n3\n", "has no column 'town', which"),
        ("a,b\n3,4\n", "has no columns 'age', 'town'"),
        ("age,town\n3,Rome\nold,Rome\n", "new.csv must hold numbers and holds 'old' in row 2"),
        ("age,town\nTrue,Rome\n", "must hold numbers"),
        ("age,town\n", "no rows"),
        ("age,town\ninf,Rome\n", "infinite"),
    ],
)  # fmt: skip
def test_tables_that_do_not_fit_the_model(house, coevo, tmp_path, content, message):
    folder, _, _ = house
    (tmp_path / "new.csv").write_text(content)
    (tmp_path / "out.csv").write_text("precious")
    done = coevo("predict", folder / "run", "new.csv", "--output", "out.csv")
    assert_one_line(done, message)
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert not (tmp_path / "out.csv.partial").exists()


def test_a_million_rows_take_no_more_memory_than_a_few(house, tmp_path):
    folder, _, _ = house
    block = "\n".join(f"{18 + i % 70},{('Rome', 'Köln', '')[i % 3]}" for i in range(10_000)) + "\n"
    peaks = []
    for n_blocks in (6, 100):
        table = tmp_path / f"{n_blocks}.csv"
        table.write_text("age,town\n" + block * n_blocks, encoding="utf-8")
        answers = tmp_path / "answers.csv"
        words = ["predict", str(folder / "run"), str(table), "--output", str(answers)]
        process = subprocess.Popen([*COMMAND, *words])
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10))
        with open(answers, "rb") as file:
            assert sum(1 for _ in file) == n_blocks * 10_000 + 1
    assert peaks[1] < peaks[0] + 60  # megabytes; the rows alone would be hundreds


def test_a_reader_that_goes_away_is_no_error_to_speak_of(house):
    folder, _, _ = house
    line = f"{sys.executable} -c 'from coevo.cli import app; app()' predict run big.csv | head -2"
    pd.concat([make_shop()] * 200).to_csv(folder / "big.csv", index=False)
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "prediction"
    assert "Traceback" not in done.stderr


def test_export_takes_the_columns(house, coevo, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    folder, _, _ = house
    done = coevo("export", folder / "run", "--onnx", "--output", "m.onnx")
    assert "input 'age': float64, NaN if missing" in done.stdout
    session = onnxruntime.InferenceSession("m.onnx", providers=["CPUExecutionProvider"])
    frame = make_shop()
    label, probabilities = session.run(
        ["label", "probabilities"],
        {
            "age": frame[["age"]].to_numpy(),
            "town": frame[["town"]].fillna("").to_numpy(dtype=object),
        },
    )
    frame.to_csv("a.csv", index=False)
    ours = pd.read_csv(io.StringIO(coevo("predict", folder / "run", "a.csv", "--proba").stdout))
    assert label.tolist() == ours["prediction"].tolist()
    assert np.allclose(probabilities, ours.iloc[:, 1:], atol=1e-9)
    number = coevo("train", "a.csv", "--target", "spent", *BRIEF, "--output", "r")
    assert number.exit_code == 0
    assert coevo("export", "r", "--onnx").exit_code == 0
    session = onnxruntime.InferenceSession("r/model.onnx", providers=["CPUExecutionProvider"])
    (output,) = session.run(
        ["output"],
        {
            "age": frame[["age"]].to_numpy(),
            "town": frame[["town"]].fillna("").to_numpy(dtype=object),
            "bought": frame[["bought"]].to_numpy(dtype=object),
        },
    )
    ours = pd.read_csv(io.StringIO(coevo("predict", "r", "a.csv").stdout))
    assert np.allclose(output[:, 0], ours["prediction"])


def test_inspect_shows_the_model(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("inspect", folder / "run", "--plot", "p.png")
    assert (done.exit_code, done.stderr) == (0, "")
    for part in ("network 5-3-2", "classes: no, yes", "'age': numbers from 18 to 89",
                 "'town': 4 categories: (missing), Köln",
                 "hidden 1: 5 inputs, 3 neurons", "0.0% of the weights are 0", "█"):  # fmt: skip
        assert part in done.stdout
    assert re.search(r"population_size +6\n", done.stdout)
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    # The weights are those of the search, within the initial range and a little beyond.
    assert max(abs(float(n)) for n in re.findall(r"weights +(-[\d.]+)", done.stdout)) < 10


def test_models_of_estimators_are_welcome(coevo, tmp_path):
    frame = make_shop().dropna(subset="age")[["age", "spent"]]
    labels = (frame["age"] > 50).to_numpy()
    classifier = CoevoClassifier((2,), max_generations=2, random_state=1).fit(frame, labels)
    classifier.save("m.safetensors")
    frame.to_csv("d.csv", index=False)
    answers = coevo("predict", "m.safetensors", "d.csv").stdout.split()[1:]
    assert answers == [str(label) for label in classifier.predict(frame)]
    assert "network 2-2-2" in coevo("inspect", "m.safetensors").stdout
    (tmp_path / "hole.csv").write_text("age,spent\n1,\n")
    assert_one_line(coevo("predict", "m.safetensors", "hole.csv"), "has no value in row 1")
    model.save("nameless.safetensors", classifier.network_)
    assert_one_line(coevo("predict", "nameless.safetensors", "d.csv"), "does not know the names")


# ------------------------------------------------------------------------------------ wrong input


def assert_one_line(done, message):
    assert done.exit_code == 2, (done.stdout, done.stderr)
    assert message in done.stderr
    assert done.stderr.startswith("coevo: ")
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


ROWS = "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40))


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        (ROWS, [], "--target is missing"),
        (ROWS, ["--target", "z"], "has no column 'z', the target"),
        (ROWS, ["--target", "y", "--population-size", "2"], "population_size must be at least 4"),
        (ROWS, ["--target", "y", "--population-size", "many"], "must be a whole number"),
        (ROWS, ["--target", "y", "--decay", "2"], "decay must be"),
        (ROWS, ["--target", "y", "--variant", "XDE"], "variant='XDE' is unknown"),
        (ROWS, ["--target", "y", "--variant", "DE", "--decomposition", "neuron"], "contradicts"),
        (ROWS, ["--target", "y", "--bogus", "1"], "No such option: --bogus (see --help)"),
        (ROWS, ["--target", "y", "--hidden", "9"], "did you mean --hidden-layer-sizes? (see"),
        (ROWS, ["--target", "y", "--task", "magic"], "--task='magic' is unknown"),
        (ROWS, ["--target", "y", "--test-fraction", "1"], "--test-fraction must be"),
        (ROWS, ["--target", "y", "--drop", "q"], "has no column 'q', named by --drop"),
        (ROWS, ["--target", "y", "--drop", "x"], "no column but the target"),
        (ROWS, ["--target", "y", "--fitness", "squared_error"], "is a measure for regression"),
        (ROWS, ["--target", "x", "--class-weight", "balanced"], "--class-weight is for"),
        (ROWS, ["--target", "y", "--config", "none.toml"], "there is no file none.toml"),
        (ROWS, ["--resume", "nowhere"], "nowhere is not a run folder"),
        (ROWS, ["--target", "y", "--max-evaluations", "none"], "would never end"),
        ("x,y\n1,a\n", ["--target", "y"], "one class only (a)"),
        ("x,y\n1,2.5\n", ["--target", "y"], "has 1 row with a target: too few"),
        ("x,y\n1,a\n2,a\n3,a\n", ["--target", "y"], "one class only (a)"),
        ("x,y\n1,a\n2,b\n3,c\n", ["--target", "y"], "holds 3 classes in 3 rows"),
        ("x,y\n1,a\n2,b\n", ["--target", "y", "--task", "regression"], "holds text"),
        ("x,y\n1,\n2,\n", ["--target", "y"], "is missing in every row"),
        ("x,y\n" + "1,1\n1,0\n" * 20, ["--target", "y"], "no column is left"),
        ("", ["--target", "y"], "is empty"),
        ("x,y\n", ["--target", "y"], "no rows"),
        ("x,y,y\n1,2,3\n", ["--target", "y"], "several columns called 'y'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_trained_gets_one_line(coevo, tmp_path, content, words, message):
    (tmp_path / "t.csv").write_text(content)
    assert_one_line(coevo("train", "t.csv", *words), message)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "none.csv", "--target", "y"], "there is no file none.csv"),
        (["train", ".", "--target", "y"], "is a folder"),
        (["train"], "DATA is missing"),
        (["predict", "none", "t.csv"], "there is no model at none"),
        (["predict", ".", "t.csv"], "there is no model.safetensors in the folder"),
        (["predict", "t.csv", "t.csv"], "is not a good model file"),
        (["predict", "none"], "Missing argument 'DATA'"),
        (["inspect", "t.csv"], "is not a good model file"),
        (["export", "t.csv"], "say which format: --onnx"),
        (["bench", "--shape", "3"], "--shape must be sizes as in 30-50-2"),
        (["bench", "--variant", "X"], "variant='X' is unknown"),
        (["bench", "--seconds", "0"], "--seconds must be above 0"),
    ],
    ids=str,
)
def test_other_commands_give_one_line_too(coevo, tmp_path, words, message):
    (tmp_path / "t.csv").write_text(ROWS)
    assert_one_line(coevo(*words), message)


def test_wrong_input_in_a_process_of_its_own(tmp_path):
    done = run_process("train", "none.csv", "--target", "y", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "coevo: there is no file none.csv\n"
    debugged = run_process("--debug", "train", "none.csv", "--target", "y", cwd=tmp_path)
    assert "Traceback" in debugged.stderr


DIRT = {
    "bom and semicolons": ("\ufeff" + ROWS.replace(",", ";")).encode(),
    "empty column": ROWS.replace("\n", ",\n").encode(),
    "constant column": re.sub("\n", ",1\n", ROWS.replace("x,y", "x,y,c"), count=0).encode()
    .replace(b"x,y,c,1", b"x,y,c"),
    "duplicate names": re.sub(r"\n(\d+),", r"\n\1,\1,", ROWS.replace("x,y", "x,x,y")).encode(),
    "quoted commas": re.sub(r"\n(\d+),", r'\n"a, \1",\1,', ROWS.replace("x,y", "t,x,y")).encode(),
    "not utf-8": ROWS.replace("x,y", "größe,y").encode("latin-1"),
    "index without a name": re.sub(r"\n(\d+),", r"\n\1,\1,", ROWS.replace("x,y", ",x,y")).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", DIRT)
def test_the_usual_dirt_is_trained_on(coevo, tmp_path, name):
    (tmp_path / "t.csv").write_bytes(DIRT[name])
    done = coevo("train", "t.csv", "--target", "y", *BRIEF, "--output", "o", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == [0, 1]
    answers = coevo("predict", "o", "t.csv")
    assert len(answers.stdout.splitlines()) == 41


# ------------------------------------------------------------------------------------- a terminal


class Terminal:
    """A process on a pseudo-terminal of its own, as a person would see it."""

    def __init__(self, *words, cwd, columns=120, **environment):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, words)], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
            env=os.environ | {"TERM": "xterm-256color"} | environment, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)

    def read_until(self, pattern, seconds=90):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.seen):
            assert time.monotonic() < end, self.seen
            assert self._read(), self.seen

    def press(self, key):
        os.write(self._master, key)

    def wait(self, seconds=90):
        end = time.monotonic() + seconds
        while self._read():
            assert time.monotonic() < end, self.seen
        return self.process.wait(10)

    def _read(self):
        ready, _, _ = select.select([self._master], [], [], 1)
        if not ready:
            return self.process.poll() is None
        try:
            content = os.read(self._master, 2**16)
        except OSError:  # Linux's way to say that the other side has been closed
            return False
        self.seen += content.decode(errors="replace")
        return bool(content)


def test_ctrl_c_stops_saves_and_goes_on_exactly(tmp_path):
    make_shop().to_csv(tmp_path / "shop.csv", index=False)
    common = ["shop.csv", "--target", "bought", *SMALL, "--max-evaluations", "none"]
    words = ["train", *common, "--max-generations", 10**7, "--output", "stopped"]
    with Terminal(*words, cwd=tmp_path) as terminal:
        live = r"[\d,]+ evaluations +gen. [\d,]+ +best -?[\d.]+ +[\d,]+/s +[\d:]+ left"
        terminal.read_until(live)
        terminal.press(b"\x03")
        assert terminal.wait() == 130
        assert "coevo train --resume stopped" in terminal.seen
        assert "confusion matrix" in terminal.seen
        assert "Traceback" not in terminal.seen
    stopped = json.loads((tmp_path / "stopped" / "metrics.json").read_text())
    assert stopped["stop_reason"] == "interrupted"
    assert stopped["generations"] > 0
    end = ["--max-generations", stopped["generations"] + 30]
    runner = CliRunner()
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        refused = runner.invoke(app, ["train", "--resume", "stopped", "--seed", "5"])
        assert refused.exit_code == 2
        assert "--seed cannot change" in refused.stderr
        resumed = runner.invoke(app, [*map(str, ["train", "--resume", "stopped", *end])])
        assert resumed.exit_code == 0, resumed.stderr
        straight = runner.invoke(app, [*map(str, ["train", *common, *end, "--output", "straight"])])
        assert straight.exit_code == 0, straight.stderr
    finally:
        os.chdir(here)
    assert read_model(tmp_path / "stopped") == read_model(tmp_path / "straight")
    one, other = ((tmp_path / run / "settings.toml").read_text() for run in ("stopped", "straight"))
    assert one == other
    one, other = (pd.read_csv(tmp_path / r / "history.csv") for r in ("stopped", "straight"))
    assert one.drop(columns="seconds").equals(other.drop(columns="seconds"))


def test_compiling_is_shown_as_such(tmp_path, no_jit):
    if no_jit:
        pytest.skip("nothing is compiled")
    make_shop().to_csv(tmp_path / "shop.csv", index=False)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with Terminal("train", "shop.csv", "--target", "bought", *BRIEF, cwd=tmp_path, **cache) as it:
        it.read_until("compiling kernels, once")


# ---------------------------------------------------------------------------------- help and shell


def test_help_fits_a_screen_and_has_examples(coevo):
    shown = coevo("--help").stdout
    assert len(shown.splitlines()) <= 40
    assert max(map(len, shown.splitlines())) <= 80
    for command in ("train", "predict", "export", "inspect", "bench", "doctor"):
        assert command in shown
        assert f"Example: coevo {command}" in coevo(command, "--help").stdout
    text = coevo("train", "--help").stdout
    assert "--population-size" in text
    assert "Default: 0.2; regression: 0.5" in " ".join(re.sub("[│\n]", " ", text).split())


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("coevo tr", ["train"]),
        ("coevo train --max-s", ["--max-seconds"]),
        ("coevo train --variant LE", ["LEDE", "LECCDE"]),
        ("coevo train --fitness ba", ["balanced_accuracy"]),
    ],
)
def test_the_shell_completes(coevo, typed, offered):
    environment = {
        "_COEVO_COMPLETE": "complete_bash", "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
    }  # fmt: skip
    done = CliRunner().invoke(app, [], env=environment, prog_name="coevo")
    assert done.stdout.split() == offered


def test_bench_and_doctor(coevo, no_jit):
    if no_jit:
        pytest.skip("there is nothing to measure without the compiler")
    found = json.loads(coevo("bench", "--seconds", "0.3", "--shape", "5-4-2", "--json").stdout)
    assert found["evaluations_per_second"] > 0
    assert found["ratio"] == pytest.approx(
        found["evaluations_per_second"] / found["numpy_evaluations_per_second"]
    )
    shown = coevo("doctor").stdout
    for part in ("python", "numba", "BLAS", "GFLOP/s", "kernels"):
        assert part in shown
    findings = json.loads(coevo("doctor", "--json").stdout)
    assert findings["kernels"]["compiled_now"] == []  # the first examination has seen to it
    assert findings["cores"] >= 1


def test_the_library_prints_nothing(house, tmp_path, capfd, caplog):
    from coevo.tabular.job import Job
    from coevo.tabular.training import train

    folder, _, _ = house
    job = Job(data=str(folder / "shop.csv"), target="bought").with_changes(
        {"hidden_layer_sizes": "2", "max_generations": 1}
    )
    with caplog.at_level("INFO", logger="coevo"):
        train(job, tmp_path / "run")
    assert capfd.readouterr() == ("", "")
    assert "classification because 'bought' holds text" in caplog.text


def test_ctrl_c_while_the_parts_are_imported():
    code = """
import sys

class Impatient:
    def find_spec(self, name, path=None, target=None):
        if name == "coevo.cli":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Impatient())
from coevo.__main__ import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "coevo: interrupted\n")
