"""`assemble` builds the search that settings describe."""

import numpy as np

from coevo.core.assembly import assemble
from coevo.core.decomposition import RandomGroups, decompose
from coevo.core.defaults import resolve
from coevo.core.evaluator import Data
from coevo.core.extensions.population_reduction import PopulationReduction
from coevo.core.metrics import Accuracy
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.engines.reference import ReferenceEvaluator


def test_the_least_fit_are_removed_before_groups_are_redrawn(rng):
    architecture = Architecture(4, (3,), 2)
    data = Data(rng.uniform(-1, 1, (20, 4)), rng.integers(2, size=20))
    settings = Settings(
        decomposition=RandomGroups(size=5, redraw_every=1), population_size=8, batch_size=20,
        extensions=[PopulationReduction(4)], max_generations=4, seed=1,
        validate_every="replacement",
    )  # fmt: skip
    decomposition = decompose(settings.decomposition, architecture)
    evaluator = ReferenceEvaluator(architecture, decomposition, Accuracy(), data, data)
    search = assemble(evaluator, decomposition, resolve(settings))
    kept = []

    def keep(survivors, keep=search.keep):
        kept.append((survivors.copy(), search.state.fitness.copy(), search.state.champions.copy()))
        keep(survivors)

    search.keep = keep
    generations = iter(search)
    next(generations)
    competed = search.state.fitness.copy()
    next(generations)
    _, fitness, champions = kept[-1]
    np.testing.assert_array_equal(fitness, competed)
    assert (champions == competed.argmax(axis=1)).all()
