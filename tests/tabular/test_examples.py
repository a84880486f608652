"""From a job to examples."""

import dataclasses

import pytest

from coevo.tabular.examples import prepare
from coevo.tabular.job import Job
from coevo.tabular.table import TableError


def test_a_class_of_which_nothing_is_tested_is_pointed_out(write):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40))
    path = write(("x,y\n" + rows + "7,rare\n").encode())
    job = Job(data=str(path), target="y", settings={"seed": 1})
    said = " ".join(prepare(job)[1].notes)
    assert "too few rows of 'rare' to keep one for the test" in said
    assert "for the test" not in " ".join(
        prepare(dataclasses.replace(job, test_fraction=0.0))[1].notes
    )


@pytest.mark.parametrize(("n_rows", "is_noted"), [(80, True), (160, False)])
def test_too_few_rows_for_a_validation_are_pointed_out(write, n_rows, is_noted):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(n_rows))
    job = Job(data=str(write("x,y\n" + rows + "7,mistyped\n")), target="y", settings={"seed": 1})
    said = " ".join(prepare(job)[1].notes)
    assert ("fewer than 20 rows, so the network is chosen on the training part" in said) == is_noted


def test_dates_become_numbers_that_vary_in_training(write):
    rows = "".join(f"2020-01-{k % 28 + 1:02},{k % 5},{'ab'[k % 2]}\n" for k in range(60))
    job = Job(data=str(write("when,x,y\n" + rows)), target="y", settings={"seed": 1})
    examples = prepare(job)[1]
    assert list(examples.inputs) == ["when (day of week)", "when (elapsed days)", "x"]
    assert (examples.numeric, examples.columns) == (["x"], ["x", "when"])
    taken = write("when,when (elapsed days),y\n" + rows)
    with pytest.raises(TableError, match="has the name of a part of 'when'; rename it"):
        prepare(dataclasses.replace(job, data=str(taken)))


def test_labels_that_differ_in_case_are_pointed_out(write):
    rows = "".join(f"{k % 7},{('Yes', 'yes', 'no')[k % 3]}\n" for k in range(60))
    job = Job(data=str(write("x,y\n" + rows)), target="y", settings={"seed": 1})
    assert "'Yes' and 'yes'" in " ".join(prepare(job)[1].notes)
