"""A plan is read into the runs that were meant, or refused with a line that says why."""

import pytest

from coevo import PAPER, VARIANTS
from coevo.core.defaults import resolve
from coevo.persistence.plain import plain_settings
from coevo.study import PlanError, read_plan


def test_paper_plan_has_every_experiment_with_the_papers_settings():
    plan = read_plan("paper")
    assert {experiment.name for experiment in plan.experiments} == set(PAPER)
    for experiment in plan.experiments:
        for row in experiment.rows:
            if row.variant not in VARIANTS:
                continue
            settings = plain_settings(resolve(PAPER[experiment.name].settings(row.variant)))
            for run in row.runs:
                for name, value in run.settings.items():
                    if name == "max_evaluations":
                        assert value == round(row.share * settings[name])
                    else:
                        assert value == settings[name]
        reported = set(PAPER[experiment.name].results)
        assert reported == {row.label for row in experiment.rows if row.paper}


def test_quick_plan_needs_no_download():
    assert {run.dataset for run in read_plan("quick").runs} <= {"WBC", "digits"}


def test_runs_of_a_small_plan(tmp_path, write_plan):
    plan = read_plan(write_plan(tmp_path))
    assert len(plan.runs) == 9
    # The first seed of every row comes before the second of any.
    assert [run.seed for run in plan.runs] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [run.traces for run in plan.runs if run.variant == "LECCDE"] == [True, False, False]
    backprop = next(run for run in plan.runs if run.variant == "backprop")
    assert tuple(backprop.settings["hidden_layer_sizes"]) == (6,)
    assert backprop.settings["max_epochs"] == 5


def test_rows_with_settings_of_their_own(tmp_path, write_plan):
    text = """
[[experiment]]
paper = "WBC"
variants = ["LECCDE"]
seeds = [7, 9]
[experiment.rows."no decay"]
variant = "LECCDE"
decay = 0
"""
    (experiment,) = read_plan(write_plan(tmp_path, text)).experiments
    plain, changed = experiment.rows
    assert plain.paper == "WBC"
    assert changed.paper is None  # not the paper's settings, so not beside its result
    assert changed.runs[0].settings["decay"] == 0
    assert [run.seed for run in changed.runs] == [7, 9]


def test_only_leaves_a_part():
    part = read_plan("paper").only(["HAR"], seeds=2)
    assert len(part.runs) == 10
    with pytest.raises(ValueError, match="experiment='IRIS' is unknown"):
        read_plan("paper").only(["IRIS"])


def test_only_leaves_some_rows():
    part = read_plan("paper").only(["HAR", "HAR-900k"], rows=["LECCDE"])
    assert [[row.label for row in each.rows] for each in part.experiments] == [["LECCDE"]] * 2
    with pytest.raises(ValueError, match="row='ADAM' is unknown"):
        read_plan("paper").only(rows=["ADAM"])


def test_only_leaves_out_experiments_without_the_rows_asked_for():
    part = read_plan("paper").only(rows=["CCDE"])
    assert "HAR-900k" not in [experiment.name for experiment in part.experiments]
    assert {run.variant for run in part.runs} == {"CCDE"}
    with pytest.raises(ValueError, match="none of HAR-900k has a row CCDE"):
        read_plan("paper").only(["HAR-900k"], rows=["CCDE"])


def test_runs_say_what_represents_a_subpopulation(tmp_path, write_plan):
    experiment = read_plan(write_plan(tmp_path)).experiments[0]
    said = {row.label: row.runs[0].settings.get("representative") for row in experiment.rows}
    assert said == {"LECCDE": "mean", "CCDE": "best", "backprop": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no .*experiment"),
        ("seeds = [", "small.toml"),
        ('[[experiment]]\ndataset = "IRIS"', "dataset='IRIS' is unknown"),
        ('[[experiment]]\npaper = "WBC"\nvariant = "DE"', "variant"),
        ('[[experiment]]\npaper = "WBC"\nvariants = ["GA"]', "variant='GA' is unknown"),
        ('[[experiment]]\npaper = "WBC"\nseeds = 0', "seeds must be at least 1"),
        ('[[experiment]]\npaper = "WBC"\nseeds = [1, 1]', "different"),
        ('[[experiment]]\npaper = "WBC"\nsettings = { speed = 1 }', "speed"),
        ('[[experiment]]\npaper = "WBC"\nsettings = { seed = 1 }', "seeds. is a key"),
        ('[[experiment]]\npaper = "WBC"\nsettings = { decay = 2 }', "decay must be"),
        ('[[experiment]]\npaper = "WBC"\nrelative_to = "HAR"', "relative_to='HAR'"),
        ('[[experiment]]\npaper = "WBC"\n[[experiment]]\npaper = "WBC"', "two experiments"),
        ('name = "../evil"\n[[experiment]]\npaper = "WBC"', "'../evil' names files"),
        ('name = ""\n[[experiment]]\npaper = "WBC"', "names files"),
        ('[[experiment]]\nname = "a/b"\npaper = "WBC"', "'a/b' names files"),
    ],
)
def test_mistakes_are_named(tmp_path, write_plan, text, message):
    with pytest.raises(PlanError, match=message):
        read_plan(write_plan(tmp_path, text))


def test_unknown_plan_is_refused():
    with pytest.raises(PlanError, match="there is no plan 'nope'"):
        read_plan("nope")
