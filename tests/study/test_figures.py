"""Figures are the same each time, and show what they say."""

from coevo.study import read_plan
from coevo.study.figures import draw_figures
from coevo.study.statistics import summarise


def test_figures_are_the_same_each_time(make_curves):
    plan = read_plan("quick").only(["WBC"], seeds=2)
    tables = summarise(plan, make_curves(plan))
    first, second = draw_figures(tables), draw_figures(tables)
    assert [drawing.svg for drawing in first] == [drawing.svg for drawing in second]
    assert [drawing.name for drawing in first][:3] == [
        "figure-1-runtime",
        "figure-2-one-run",
        "figure-3-variants",
    ]


def test_a_fitness_that_is_not_accuracy_is_not_drawn_as_one(tmp_path, make_curves):
    path = tmp_path / "plan.toml"
    path.write_text(
        """
        seeds = 2
        [[experiment]]
        dataset = "WBC"
        variants = ["LECCDE", "CCDE", "backprop"]
        settings = { fitness = "cross_entropy", max_evaluations = 3000 }
        """,
        encoding="utf-8",
    )
    plan = read_plan(path)
    drawings = draw_figures(summarise(plan, make_curves(plan)))
    # The paper's third figure is of accuracies; ours by time says what it shows.
    assert [drawing.name for drawing in drawings] == [
        "figure-1-runtime",
        "boxes-WBC",
        "seconds-WBC",
    ]
    assert "validation cross entropy" in drawings[-1].caption
    text = drawings[-1].svg.decode()
    assert "accuracy" not in text
    assert "backprop" not in text


def test_many_rows_fit_into_a_box_plot(tmp_path, recwarn, make_curves):
    path = tmp_path / "plan.toml"
    rows = "".join(
        f'[experiment.rows."LECCDE with {k} individuals"]\n'
        f'variant = "LECCDE"\npopulation_size = {10 + k}\n'
        for k in range(24)
    )
    path.write_text(f'seeds = 2\n[[experiment]]\ndataset = "WBC"\n{rows}', encoding="utf-8")
    plan = read_plan(path)
    boxes = draw_figures(summarise(plan, make_curves(plan)))[0]
    assert boxes.is_wide
    assert [str(warning.message) for warning in recwarn] == []


def test_dollar_signs_are_no_mathematics(tmp_path, write_plan, make_curves, recwarn):
    text = r"""
seeds = 2
[[experiment]]
name = "$broken{$"
dataset = "WBC"
settings = { fitness = "accuracy", max_evaluations = 3000 }
[experiment.rows.LECCDE]
[experiment.rows.'$\frac$ and $5']
variant = "LECCDE"
[experiment.rows._CCDE]
variant = "CCDE"
"""
    plan = read_plan(write_plan(tmp_path, text))
    drawings = draw_figures(summarise(plan, make_curves(plan)))
    assert len(drawings) == 4
    assert [str(warning.message) for warning in recwarn] == []
