"""From a job to examples."""

import dataclasses

import pytest

from coevo.tabular.examples import prepare
from coevo.tabular.job import Job


def test_a_class_of_which_nothing_is_tested_is_pointed_out(write):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40))
    path = write(("x,y\n" + rows + "7,rare\n").encode())
    job = Job(data=str(path), target="y", settings={"seed": 1})
    said = " ".join(prepare(job)[1].notes)
    assert "too few rows of 'rare' to keep one for the test" in said
    assert "for the test" not in " ".join(
        prepare(dataclasses.replace(job, test_fraction=0.0))[1].notes
    )


@pytest.mark.parametrize(("n_rows", "is_noted"), [(400, True), (800, False)])
def test_too_few_rows_for_a_validation_are_pointed_out(write, n_rows, is_noted):
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(n_rows))
    job = Job(data=str(write("x,y\n" + rows + "7,mistyped\n")), target="y", settings={"seed": 1})
    said = " ".join(prepare(job)[1].notes)
    assert (
        "fewer than 100 rows, so the network is chosen on the training part" in said
    ) == is_noted
