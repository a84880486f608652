"""Short runs whose every bit is pinned: new options must leave the paper's algorithm as it was.

The genes of a run depend on random numbers, on sums and products of single numbers and on who won,
so that in float64 they do not depend on the order in which a machine adds.
"""

import hashlib
from itertools import product

import numpy as np
import pytest

from coevo import Strategy, evolve
from coevo.core.operators import CROSSOVERS
from coevo.training.paper import SHARED
from coevo.training.variants import VARIANTS

STRATEGIES = ("rand/1", "best/1", "rand/2", "current-to-best/1")  # those there were first
CASES = {
    **{variant: {"variant": variant} for variant in VARIANTS},
    **{
        f"{v} one by one": {"variant": v, "strategy": "rand/1(synchronous=False)"} for v in VARIANTS
    },
    **{
        f"{strategy} {crossover}": {"strategy": Strategy(strategy, crossover)}
        for strategy, crossover in product(STRATEGIES, CROSSOVERS)
    },
    "reshuffled": {"reshuffle_batches": True},
    "by layer": {"decomposition": "layer", "initial_range": (1.0, 3.0)},
}
DIGESTS = {
    "DE": "2fa9ea076c017177",
    "LEDE": "303a13b9fc2da424",
    "CCDE": "0862f16086e1ea72",
    "LECCDE": "316eb650d08f0300",
    "DE one by one": "e262eb450636b32a",
    "LEDE one by one": "73013234b3abbe58",
    "CCDE one by one": "cfd5b01f74484111",
    "LECCDE one by one": "2c37b2bf237cfe1d",
    "rand/1 binomial": "316eb650d08f0300",
    "rand/1 exponential": "18be65ed8a47c0bf",
    "best/1 binomial": "b747b25998187bfc",
    "best/1 exponential": "2fdc8fa995a5ab86",
    "rand/2 binomial": "207fe15d3e967828",
    "rand/2 exponential": "2b1997e9d6f857ba",
    "current-to-best/1 binomial": "36dbee074b23eb60",
    "current-to-best/1 exponential": "a62a5e0389fa4a25",
    "reshuffled": "6effaf5d794eb77f",
    "by layer": "58f3f0521e990270",
}


def run(data, changes):
    inputs, targets = data
    return evolve(
        inputs[:100], targets[:100], inputs[100:], targets[100:],
        **SHARED
        | {"hidden_layer_sizes": (6,), "batch_size": 20, "population_size": 10, "seed": 3,
           "max_generations": 9, "n_threads": 1, "dtype": "float64"} | changes,
    )  # fmt: skip


def summarise(result):
    sha = hashlib.sha256(result.network.genotype.tobytes())
    sha.update(result.history.rows[:, [0, 1, 3, 4, 5]].round(9).tobytes())
    return sha.hexdigest()[:16]


@pytest.mark.parametrize("case", CASES)
def test_a_run_is_what_it_always_was(make_classification_data, case):
    data = make_classification_data(np.random.default_rng(4), 160, 6, 3)
    assert summarise(run(data, CASES[case])) == DIGESTS[case]
