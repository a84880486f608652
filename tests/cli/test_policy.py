"""coevo policy train and watch."""

import json
import re

import pytest

pytest.importorskip("gymnasium", reason="needs the extra coevo[control]")
pytest.importorskip("pygame", reason="needs the extra coevo[control]")

BRIEF = ["--hidden-layer-sizes", "none", "--population-size", "4", "--max-generations", "2",
         "--seed", "3", "--max-steps", "30", "--validation-seeds", "3", "--backend",
         "serial"]  # fmt: skip


def test_a_policy_is_trained_and_watched(coevo, tmp_path):
    done = coevo("policy", "train", "CartPole-v1", *BRIEF)
    assert done.exit_code == 0, done.stderr
    assert "searching by rand/1: NP 4, F 0.5, CR 0.5, batches of 1, initial range" in done.stderr
    assert "2 generations" in done.stderr
    assert "on 100 fresh seeds" in done.stdout
    assert "coevo policy watch CartPole-v1.safetensors" in done.stdout
    done = coevo(
        "policy", "watch", "CartPole-v1.safetensors", "--output", "pole.gif", "--seed", "5"
    )
    assert done.exit_code == 0, done.stderr
    assert "the episode is in pole.gif" in done.stdout
    assert (tmp_path / "pole.gif").read_bytes().startswith(b"GIF")


def test_a_window(coevo, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    assert coevo("policy", "train", "CartPole-v1", *BRIEF).exit_code == 0
    done = coevo("policy", "watch", "CartPole-v1.safetensors", "--episodes", "2")
    assert done.exit_code == 0, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["seed 0", "seed 1"]


def test_json_and_resume(coevo, tmp_path):
    words = ["policy", "train", "Pendulum-v1", *BRIEF, "--json", "--output", "out.safetensors"]
    whole = json.loads(coevo(*words).stdout)
    assert whole["policy"] == "out.safetensors"
    assert whole["interval"][0] < whole["mean_return"] < whole["interval"][1]
    first = [*words, "--checkpoint", "run.checkpoint", "--max-generations", "1"]
    assert coevo(*first).exit_code == 0
    assert "run.checkpoint is there already; go on from it with --resume" in coevo(*first).stderr
    resumed = json.loads(coevo(*words, "--checkpoint", "run.checkpoint", "--resume").stdout)
    for name in ("mean_return", "validation_return", "generations", "seed"):
        assert resumed[name] == whole[name]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "NoSuch-v3"], "env='NoSuch-v3' cannot be made"),
        (["train", "CartPole-v1", "--bounds", "cut"], "bounds='cut' is unknown"),
        (["train", "CartPole-v1", "--output", "no/where.x"], "the folder no does not exist"),
        (["train", "CartPole-v1", "--backend", "dask"], "backend='dask' needs cluster"),
        (["watch", "nothing.safetensors"], "nothing.safetensors"),
        (["watch", "nothing.safetensors", "--seed", "-1"], "Invalid value for '--seed'"),
    ],
)
def test_refusals(coevo, assert_one_line, words, message):
    assert_one_line(coevo("policy", *words), message)


def test_the_help_has_the_defaults_of_policies(coevo):
    printed = " ".join(coevo("policy", "train", "--help").stdout.replace("│", " ").split())
    assert re.search(r"Individuals in each subpopulation \(NP\).{0,20} Default: 10\.", printed)
    assert "--fitness" not in printed
