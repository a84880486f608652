"""Subpopulations that have collapsed are drawn anew around their means."""

import tracemalloc

import numpy as np
import pytest

from coevo import Revival
from coevo.core.stopping import StopReason


@pytest.fixture
def collapse():
    """Return a callback that makes all individuals of a subpopulation alike."""

    def make(generation):
        def after(search):
            if search.state.generation == generation:
                for block in search.state.subpopulations:
                    block[:] = block.mean(axis=1, keepdims=True)

        return after

    return make


def test_a_collapsed_search_is_revived_with_twice_the_individuals(
    make_search, small_settings, collapse
):
    settings = small_settings(
        population_size=8, scale_factor=0.3, extensions=[Revival(largest_size=12)],
        representative="mean", max_generations=41,
    )  # fmt: skip
    search = make_search(settings, callbacks=[collapse(20), collapse(40)])
    sizes = []
    for generation in search:
        sizes.append(search.state.fitness.shape[1])
        if generation.generation == 20:
            means = [block.mean(axis=1) for block in search.state.subpopulations]
            solution = search.state.global_solution.copy()
            search.extensions[1].before_generation(search)
            for block, before in zip(search.state.subpopulations, means, strict=True):
                np.testing.assert_allclose(block.mean(axis=1), before, atol=1e-6)
                assert block.shape[1] == 12
                deviations = np.sqrt(block.var(axis=1).mean(axis=-1))
                np.testing.assert_allclose(
                    deviations, 0.4 * np.sqrt((before**2).mean(axis=-1)), rtol=0.6
                )
            np.testing.assert_array_equal(search.state.global_solution, solution)
    assert set(sizes[:20]) == {8}
    assert set(sizes[20:]) == {12}  # and not more
    assert search.settings.scale_factor == pytest.approx(0.3 * np.sqrt(8 / 12))


def test_a_search_that_is_alive_is_left_alone(make_search, small_settings):
    settings = small_settings(extensions=["revival(least=0, crowded=0)"], max_generations=45)
    plain = small_settings(extensions=[], max_generations=45)
    runs = [make_search(s) for s in (settings, plain)]
    for search in runs:
        search.run()
    np.testing.assert_array_equal(*(search.state.global_solution for search in runs))


def test_the_best_individual_stays_where_it_represents(make_search, small_settings, collapse):
    settings = small_settings(
        extensions=["revival"], representative="best", max_generations=20, population_size=6
    )
    search = make_search(settings, callbacks=[collapse(20)])
    search.run()
    search.extensions[1].before_generation(search)
    state = search.state
    for block, subpopulation in zip(search.decomposition.blocks, state.subpopulations, strict=True):
        for k, i in enumerate(block):
            genes = search.decomposition.groups[i]
            np.testing.assert_array_equal(subpopulation[k, 0], state.global_solution[genes])


def test_individuals_do_not_grow_in_number_beyond_memory(
    make_search, small_settings, collapse, monkeypatch
):
    settings = small_settings(population_size=8, extensions=["revival"], max_generations=41)
    search = make_search(settings, callbacks=[collapse(20), collapse(40)])
    n_bytes = sum(block.nbytes for block in search.state.subpopulations)
    monkeypatch.setattr("coevo.runtime.memory.find_size", lambda: 8 * n_bytes)  # four times NP 16
    drawn = []
    repopulate = search.repopulate
    monkeypatch.setattr(
        search, "repopulate", lambda found: drawn.append(found[0].shape[1]) or repopulate(found)
    )
    search.run()
    assert drawn == [16, 16]
    assert search.settings.scale_factor == pytest.approx(settings.scale_factor / np.sqrt(2))


def test_drawing_takes_little_more_memory_than_what_is_drawn(make_search, small_settings):
    settings = small_settings(hidden_layer_sizes=(40,), extensions=["revival"])
    search = make_search(settings)
    tracemalloc.start()
    drawn = search.extensions[1]._draw(search, 0, 500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1.3 * drawn.nbytes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"least": -1}, "least must be at least 0"),
        ({"spread": 0}, "spread must be above 0"),
        ({"crowded": -1}, "crowded must be at least 0"),
        ({"largest_size": 0}, "largest_size must be at least 1"),
    ],
)
def test_settings_are_checked(changes, message):
    with pytest.raises(ValueError, match=message):
        Revival(**changes)


def test_a_scale_factor_is_the_same_whether_resumed_or_not(make_search, small_settings, collapse):
    settings = small_settings(
        population_size=5, scale_factor=0.2, extensions=["revival"], max_generations=41
    )
    search = make_search(settings, callbacks=[collapse(20), collapse(40)])
    search.run()
    assert search.state.fitness.shape[1] == 20
    again = make_search(settings, state=search.state)
    assert again.settings.scale_factor == search.settings.scale_factor


@pytest.mark.parametrize("control", ["dither", "jde(redraw_probability=1)"])
def test_ranges_of_f_fall_as_individuals_grow_in_number(make_search, small_settings, control):
    """With F above its critical value, which falls, weights would grow without end."""
    settings = small_settings(
        population_size=5, control=control, extensions=["revival(crowded=1e9)"], max_generations=41
    )
    search = make_search(settings)
    largest = {}
    draw = search.control.draw

    def watch(search, turn):
        drawn = draw(search, turn)
        size = search.state.fitness.shape[1]
        largest[size] = max(largest.get(size, 0), drawn[0].max())
        return drawn

    search.control.draw = watch
    search.run()
    assert {size: round(f, 1) for size, f in largest.items()} == {5: 0.4, 10: 0.3, 20: 0.2}


def test_growing_and_shrinking_do_not_go_together(small_settings):
    with pytest.raises(ValueError, match="population_reduction and revival"):
        small_settings(extensions=["revival", "population_reduction"])


def test_a_run_ends_when_two_lives_have_gained_nothing(make_search, small_settings):
    settings = small_settings(
        population_size=8, extensions=[Revival(least=1e9, largest_size=8)], max_generations=5000
    )
    search = make_search(settings)
    bests = {}
    for generation in search:
        if generation.generation % 20 == 0:  # the next one begins with a collapse
            bests[generation.generation] = generation.best_validation
    assert search.stop_reason is StopReason.STAGNATION
    last = search.state.generation - 1
    assert last % 20 == 0
    assert bests[last] - bests[last - 40] <= 0.01 * (1 - bests[last])
    assert all(
        bests[g] - bests[g - 40] > 0.01 * min(1 - bests[g], bests[g] - bests[20])
        for g in range(60, last, 20)
    )


def test_without_validation_nothing_stagnates(make_search, small_settings):
    settings = small_settings(
        population_size=8, extensions=[Revival(least=1e9, largest_size=8)], validate_every=200,
        max_generations=5000, representative="best",
    )  # fmt: skip
    search = make_search(settings)
    search.run()
    assert search.stop_reason is StopReason.STAGNATION
    assert search.state.generation > 600  # after three validations


def test_individuals_converge_once_np_is_at_its_largest(make_search, small_settings):
    settings = small_settings(
        population_size=8, max_generations=101,
        extensions=[Revival(least=0, largest_size=16, crowded=1e9)],
    )  # fmt: skip
    search = make_search(settings)
    sizes = [search.state.fitness.shape[1] for _ in search]
    assert sizes == [8] * 20 + [16] * 81
    plain = make_search(small_settings(population_size=16, extensions=[], max_generations=101))
    plain.run()
    spreads = [run.state.subpopulations[0].std(axis=1).mean() for run in (search, plain)]
    assert spreads[0] < 2 * spreads[1]  # drawn once, at generation 20, and not since


def test_other_instances_are_another_chance(make_search, small_settings):
    settings = small_settings(
        population_size=8, extensions=[Revival(least=1e9, largest_size=8)], max_generations=5000
    )
    search = make_search(settings)
    search.run()
    n_generations = search.state.generation
    search.run()
    assert search.state.generation == n_generations  # it is over
    search.turn_to_new_instances()
    search.run()
    assert search.state.generation > n_generations
