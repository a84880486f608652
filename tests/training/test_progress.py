"""What the progress of a search says."""

import re

import pytest

from coevo import evolve
from coevo.training.progress import SearchProgress


class Screen:
    """Keeps what is shown."""

    is_due = True

    def __init__(self):
        self.shown = []

    def update(self, done, text):
        self.shown.append(text)


@pytest.mark.parametrize(
    ("changes", "is_the_most"),
    [
        ({"strategy": "smoothing"}, True),
        ({"strategy": "rand/1"}, True),  # with revival
        ({"strategy": "rand/1", "extensions": ()}, False),
    ],
)
def test_the_time_left_is_the_most_where_a_run_may_end_early(rng, changes, is_the_most):
    inputs = rng.uniform(-1, 1, (130, 3))
    targets = (inputs.sum(axis=1) > 0).astype(int)
    screen = Screen()
    evolve(
        inputs[:100], targets[:100], inputs[100:], targets[100:], hidden_layer_sizes=(3,),
        batch_size=20, max_generations=9, seed=1, callbacks=[SearchProgress(screen)], **changes,
    )  # fmt: skip
    assert screen.shown[-1].endswith(" left")
    assert ("at most" in screen.shown[-1]) == is_the_most


def test_the_time_left_has_a_range_where_more_may_be_granted(rng):
    inputs = rng.uniform(-1, 1, (130, 3))
    targets = (inputs.sum(axis=1) > 0).astype(int)
    screen = Screen()
    evolve(
        inputs[:100], targets[:100], inputs[100:], targets[100:], hidden_layer_sizes=(3,), seed=1,
        strategy="smoothing", strategy__first_budget=20, max_generations=10**7,
        callbacks=[SearchProgress(screen)],
    )  # fmt: skip
    assert re.search(r"  0:00 to [\d:]+ left$", screen.shown[-1])
