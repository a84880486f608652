"""The first fitness in place of the one by sampling."""

import numpy as np


def test_everyone_is_measured_in_the_first_global_solution(make_search, small_settings):
    settings = small_settings("CCDE", extensions=["in_place_fitness"])
    search = make_search(settings)
    search._timed(search._initialise)
    evaluations = search.state.evaluations
    search.extensions[1].before_generation(search)
    state = search.state
    assert state.evaluations == evaluations + state.fitness.size
    networks = []
    for block, subpopulation in zip(search.decomposition.blocks, state.subpopulations, strict=True):
        for k, i in enumerate(block):
            for individual in subpopulation[k]:
                network = state.global_solution.copy()
                network[search.decomposition.groups[i]] = individual
                networks.append(network)
    everything = slice(0, search.evaluator.n_instances)
    measured = search.evaluator.evaluate_networks(np.stack(networks), everything)
    np.testing.assert_allclose(state.fitness.ravel(), measured)


def test_stored_fitness_that_nothing_can_beat_is_forgotten(make_search, small_settings):
    """As after a lucky sample: without the extension not one trial wins."""
    wins = {}
    for extensions in ((), ("in_place_fitness",)):
        settings = small_settings("CCDE", extensions=extensions, max_generations=5)
        search = make_search(settings)
        search._timed(search._initialise)
        search.state.fitness += 10
        before = search.state.global_solution.copy()
        search.run()
        wins[extensions] = (search.state.global_solution != before).any()
    assert wins == {(): False, ("in_place_fitness",): True}


def test_a_population_of_whole_networks_needs_none(make_search, small_settings):
    settings = small_settings("DE", extensions=["in_place_fitness"])
    search = make_search(settings)
    search._timed(search._initialise)
    evaluations = search.state.evaluations
    search.extensions[1].before_generation(search)
    assert search.state.evaluations == evaluations
