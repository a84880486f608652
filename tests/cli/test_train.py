"""coevo train: in a process, on a terminal, in dirt."""

import csv
import json
import os
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from coevo.cli.app import app
from coevo.tabular.job import Job
from coevo.tabular.training import train

ROWS = "x,y\n" + "".join(f"{i},{i % 2}\n" for i in range(40))


def test_a_run_folder_holds_everything(house):
    folder, result, done = house
    run = folder / "run"
    assert done.stderr == ""  # a program that reads JSON gets nothing else
    assert {path.name for path in run.iterdir()} >= {
        "model.safetensors", "metrics.json", "history.csv", "settings.toml", "learning_curve.png",
        "search.checkpoint", "report.html",
    }  # fmt: skip
    metrics = json.loads((run / "metrics.json").read_text())
    assert {"folder": "run", **metrics} == result
    assert result["task"] == "classification"
    assert result["rows"] == {"training": 320, "test": 80}
    assert result["stop_reason"] == "max_generations"
    rows = list(csv.DictReader((run / "history.csv").read_text().splitlines()))
    assert [int(row["generation"]) for row in rows] == [0, 1, 2, 3]
    assert float(rows[-1]["best_validation"]) == result["fitness"]["best"]
    assert result["fitness"]["chosen_on"] == "validation"
    assert result["fitness"]["validation"] == result["fitness"]["best"]
    assert (run / "learning_curve.png").read_bytes()[:4] == b"\x89PNG"
    settings = tomllib.loads((run / "settings.toml").read_text())
    assert settings["hidden_layer_sizes"] == [3]
    assert settings["max_seconds"] == "none"
    notes = " ".join(result["notes"])
    assert "'id'" in notes
    assert "'same'" in notes
    assert "'nothing'" in notes


def test_the_summary_says_what_was_done_and_how_good_it_is(house, coevo, tmp_path, brief):
    folder, _, _ = house
    done = coevo("train", folder / "shop.csv", "--target", "bought", *brief, "--output", "o")
    assert done.exit_code == 0
    assert "coevo:" not in done.stderr  # progress, if it took long
    for part in (
        "320 rows to train on, 80 to test on, 2 numeric columns, 1 categorical ('town')",
        "classification, because 'bought' holds text",
        "note: left out, the same in every row: 'same'",
        "confusion matrix",
        "balanced_accuracy",
        "next: coevo predict o NEW.csv",
    ):
        assert part in done.stdout
    other = coevo("train", folder / "shop.csv", "--target", "spent", *brief, "--output", "p")
    assert "regression, because 'spent' holds fractions" in other.stdout
    assert "residuals of the test part" in other.stdout
    spaced = tmp_path / "my shop (2).csv"
    spaced.write_bytes((folder / "shop.csv").read_bytes())
    forced = coevo("train", spaced, "--target", "age", "--task", "regression", *brief,
                   "--fitness", "r2", "--variant", "CCDE", "--json")  # fmt: skip
    assert json.loads(forced.stdout)["fitness"]["metric"] == "r2"
    assert re.fullmatch(r"runs/my-shop-2-\d{8}-\d{6}", json.loads(forced.stdout)["folder"])
    assert "rows without a value of 'age'" in forced.stdout


def test_the_same_settings_give_the_same_model(house, coevo, tmp_path, read_model):
    folder, _, _ = house
    done = coevo("train", "--config", folder / "run" / "settings.toml", "--output", "again")
    assert done.exit_code == 0, done.stderr
    assert read_model(tmp_path / "again") == read_model(folder / "run")
    settings = (tmp_path / "again" / "settings.toml").read_text()
    assert settings == (folder / "run" / "settings.toml").read_text()


def test_an_existing_run_is_not_overwritten(house, coevo, brief):
    folder, _, _ = house
    words = ["train", folder / "shop.csv", "--target", "bought", "--output", folder / "run"]
    done = coevo(*words, *brief)
    assert done.exit_code == 2
    assert "--resume" in done.stderr


def test_a_training_that_comes_to_nothing_leaves_nothing(house, coevo, tmp_path):
    folder, _, _ = house
    done = coevo("train", folder / "shop.csv", "--target", "bought", "--fitness", "nonsense",
                 "--output", "x")  # fmt: skip
    assert done.exit_code == 2
    assert "fitness='nonsense' is unknown" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_cannot_fit_in_memory_gets_one_line(house, coevo, assert_one_line):
    folder, _, _ = house
    done = coevo("train", folder / "shop.csv", "--target", "bought",
                 "--hidden-layer-sizes", "1000000000")  # fmt: skip
    assert_one_line(done, "the search needs at least")


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
        (
            ROWS,
            ["--target", "y", "--max-evaluation", "9"],
            "No such option: --max-evaluation; did you mean --max-evaluations? (see",
        ),
        (
            ROWS,
            ["--target", "y", "--fitness", "acuracy"],
            "fitness='acuracy' is unknown; did you mean accuracy? choose one of accuracy",
        ),
        (ROWS, ["--target", "y", "--task", "magic"], "--task='magic' is unknown"),
        (ROWS, ["--target", "y", "--test-fraction", "1"], "--test-fraction must be"),
        (ROWS, ["--target", "y", "--drop", "q"], "has no column 'q', named by --drop"),
        (ROWS, ["--target", "y", "--drop", "x"], "no column but the target"),
        (
            ROWS,
            ["--target", "y", "--fitness", "squared_error"],
            "fitness='squared_error' is a metric for regression; choose one of accuracy",
        ),
        (
            ROWS,
            ["--target", "x", "--fitness", "f1"],
            "fitness='f1' is a metric for classification; choose one of squared_error",
        ),
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
def test_what_cannot_be_trained_gets_one_line(
    coevo, tmp_path, content, words, message, assert_one_line
):
    (tmp_path / "t.csv").write_text(content)
    assert_one_line(coevo("train", "t.csv", *words), message)
    assert not (tmp_path / "runs").exists()


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
def test_the_usual_dirt_is_trained_on(coevo, tmp_path, name, brief):
    (tmp_path / "t.csv").write_bytes(DIRT[name])
    done = coevo("train", "t.csv", "--target", "y", *brief, "--output", "o", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["classes"] == [0, 1]
    answers = coevo("predict", "o", "t.csv")
    assert len(answers.stdout.splitlines()) == 41


def test_ctrl_c_stops_saves_and_goes_on_exactly(tmp_path, make_shop, read_model, terminal, small):
    make_shop().to_csv(tmp_path / "shop.csv", index=False)
    common = ["shop.csv", "--target", "bought", *small, "--max-evaluations", "none"]
    words = ["train", *common, "--max-generations", 10**7, "--output", "stopped"]
    with terminal(*words, cwd=tmp_path) as screen:
        live = r"[\d,]+ evaluations +gen. [\d,]+ +best -?[\d.]+ +[\d,]+/s +[\d:]+ left"
        screen.read_until(live)
        screen.press(b"\x03")
        assert screen.wait() == 130
        assert "coevo train --resume stopped" in screen.seen
        assert "confusion matrix" in screen.seen
        assert "Traceback" not in screen.seen
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


def test_compiling_is_shown_as_such(tmp_path, no_jit, make_shop, terminal, brief):
    if no_jit:
        pytest.skip("nothing is compiled")
    make_shop().to_csv(tmp_path / "shop.csv", index=False)
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with terminal("train", "shop.csv", "--target", "bought", *brief, cwd=tmp_path, **cache) as it:
        it.read_until("compiling kernels, once")


def test_the_library_prints_nothing(house, tmp_path, capfd, caplog):
    folder, _, _ = house
    job = Job(data=str(folder / "shop.csv"), target="bought").with_changes(
        {"hidden_layer_sizes": "2", "max_generations": 1}
    )
    with caplog.at_level("INFO", logger="coevo"):
        train(job, tmp_path / "run")
    assert capfd.readouterr() == ("", "")
    assert "classification because 'bought' holds text" in caplog.text


def test_what_the_network_was_chosen_on_is_said_everywhere(coevo, tmp_path, brief):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(800))
    for name, content in (("mistyped", rows + "7,Aa\n"), ("few", rows[: len(rows) // 10])):
        (tmp_path / "t.csv").write_text("x,y\n" + content)
        done = coevo("train", "t.csv", "--target", "y", *brief, "--output", name)
        assert done.exit_code == 0, done.stderr
        fitness = json.loads((tmp_path / name / "metrics.json").read_text())["fitness"]
        shown = coevo("inspect", name).stdout
        if name == "mistyped":  # one wrong label does not turn validation off
            assert fitness["chosen_on"] == "validation"
            assert fitness["validation"] == fitness["best"]
            assert "on the validation part" in done.stdout
            assert re.search("fitness: training .*, validation ", shown)
        else:
            assert fitness["chosen_on"] == "training"
            assert fitness["validation"] is None
            assert "on the validation part" not in done.stdout
            assert "no validation rows: chosen on these" in shown


def test_names_and_labels_are_never_interpreted(tmp_path, brief, terminal):
    label, target = "[red]a[/red]\x1b]0;one\x07", "$x_$ [b]y[/b]\x1b]0;two\x07"
    rows = "".join(f"{k},{label if k % 2 else 'b'}\n" for k in range(40))
    (tmp_path / "t.csv").write_text(f"x,{target}\n{rows}")
    seen = ""
    for code, *words in (
        (0, "train", "t.csv", "--target", target, *brief, "--output", "o"),
        (0, "inspect", "o", "--plot", "p.png"),
        (2, "train", "t.csv", "--target", "x", "--drop", "\x1b]0;three"),
    ):
        with terminal(*words, cwd=tmp_path) as screen:
            assert screen.wait() == code, screen.seen
        seen += screen.seen
    assert "\x1b]0;" not in seen
    assert "\x07" not in seen
    assert "[b]y[/b]" in seen
    assert "[red]a[/red]" in seen
    for figure in ("o/learning_curve.png", "p.png"):
        assert (tmp_path / figure).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("target", ["$\\frac{$", "cost $", "名前", "$a_", "a$b$c"])
def test_a_dollar_in_a_name_does_not_break_the_figure(coevo, tmp_path, brief, target):
    (tmp_path / "t.csv").write_text(ROWS.replace("y", target, 1))
    done = coevo("train", "t.csv", "--target", target, *brief, "--output", "o")
    assert done.exit_code == 0, done.stderr
    assert (tmp_path / "o" / "learning_curve.png").exists()


def test_a_pipe_gets_a_line_now_and_then(house, tmp_path, run_process, small):
    folder, _, _ = house
    done = run_process("train", folder / "shop.csv", "--target", "bought", *small,
                       "--max-evaluations", "none", "--max-seconds", "8", "--output", "o",
                       cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert 1 <= len(lines) <= 6
    assert re.fullmatch(r"evolving \d+%: [\d,]+ evaluations  gen\. .* left", lines[-1])


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def test_a_page_reports_the_run(house, coevo, brief):
    folder, result, _ = house
    page = Page((folder / "run" / "report.html").read_text(encoding="utf-8"))
    words = " ".join(page.text.split())
    for part in ("Confusion matrix", "Permutation importance", "left out, the same in every row",
                 "coevo predict run NEW.csv", "population_size 6", "18 to 89"):  # fmt: skip
        assert part in words
    assert set(result["importance"]["columns"]) == {"age", "town"}
    assert result["importance"]["part"] == "test"
    sources = [attributes["src"] for tag, attributes in page.tags if "src" in attributes]
    assert [source[:22] for source in sources] == ["data:image/png;base64,"]
    assert coevo("train", folder / "shop.csv", "--target", "spent", *brief, "--output", "o",
                 "--test-fraction", "0").exit_code == 0  # fmt: skip
    page = Page(Path("o/report.html").read_text(encoding="utf-8"))
    assert "training rows is lost" in " ".join(page.text.split())
    assert "test rows" not in page.text


def test_a_browser_shows_the_page(house, browse, tmp_path):
    folder, _, _ = house
    probe = """<script>addEventListener("load", () => {
      const drawn = [...document.images].filter(image => image.naturalWidth > 0).length;
      const fits = document.documentElement.scrollWidth <= innerWidth;
      document.title = `drawn ${drawn}, ${fits ? "fits" : "too wide"}`; });</script></body>"""
    text = (folder / "run" / "report.html").read_text(encoding="utf-8")
    (tmp_path / "probed.html").write_text(text.replace("</body>", probe), encoding="utf-8")
    for width in (500, 1200):
        dom, console = browse((tmp_path / "probed.html").as_uri(), width)
        assert "<title>drawn 1, fits</title>" in dom
        assert console == []


def test_a_page_escapes_what_the_table_holds(coevo, tmp_path, brief):
    bad = "<script>alert(1)</script>"
    rows = "".join(
        f"{k % 9},{bad if k % 3 else bad[1:]},{bad if k % 2 else 'b'}\n" for k in range(60)
    )
    (tmp_path / "t<script>.csv").write_text(f"x,c{bad},{bad}\n{rows}")
    done = coevo("train", "t<script>.csv", "--target", bad, *brief, "--output", "o<b>'\"")
    assert done.exit_code == 0, done.stderr
    page = Page(Path("o<b>'\"/report.html").read_text(encoding="utf-8"))
    assert "script" not in {tag for tag, _ in page.tags}
    assert page.text.count(bad) > 5


def test_many_classes_have_no_matrix(coevo, tmp_path, brief):
    rows = "".join(f"{k},c{k % 25}\n" for k in range(250))
    (tmp_path / "t.csv").write_text("x,y\n" + rows)
    assert coevo("train", "t.csv", "--target", "y", *brief, "--output", "o").exit_code == 0
    page = Page(Path("o/report.html").read_text(encoding="utf-8"))
    assert "Most frequent confusions" in page.text
    assert re.search(r"c\d+ taken for c\d+: \d", page.text)
