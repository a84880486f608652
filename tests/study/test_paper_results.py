"""The paper's figures, and where ours lie beside them."""

import pytest

from coevo import PAPER
from coevo.study.paper_results import Reported, reported


def test_reported_values_agree_with_the_papers_results():
    for name, experiment in PAPER.items():
        for variant, result in experiment.results.items():
            found = reported(name, variant, "test")
            assert (found.value, found.spread) == (result.test, result.spread)


@pytest.mark.parametrize(
    ("percent", "verdict"), [(91.0, "within"), (92.0, "within"), (92.1, "above"), (89.9, "below")]
)
def test_verdict(percent, verdict):
    assert Reported(91.0, 1.0).judge(percent) == verdict
    assert Reported(91.0, None).judge(percent) == "unknown"
