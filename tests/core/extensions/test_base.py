"""An extension of a user's own: its hooks are called, and its memory survives a checkpoint."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from coevo import Checkpoint, Extension, Settings, evolve
from coevo.core.extensions.base import Donors
from coevo.persistence.checkpoint import CheckpointError


@dataclass
class Restlessness(Extension):
    """Shakes the subpopulation that has gone longest without a win, and taxes large weights."""

    name: ClassVar[str] = "restlessness"
    width: float = 0.5
    tax: float = 0.01

    def begin(self, search):
        n_subpopulations = len(search.decomposition)
        return {"idle": np.zeros(n_subpopulations), "shaken": np.zeros(n_subpopulations)}

    def before_generation(self, search):
        memory, state = search.memory(self), search.state
        laziest = int(memory["idle"].argmax())
        if memory["idle"][laziest] >= 1:
            memory["idle"][laziest] = 0
            memory["shaken"][laziest] += 1
            for block, individuals in zip(
                search.decomposition.blocks, state.subpopulations, strict=True
            ):
                if laziest in block:
                    others = individuals[laziest - block.start]
                    noise = state.rng.normal(scale=self.width, size=others.shape)
                    noise[state.champions[laziest]] = 0
                    others += noise.astype(others.dtype)

    def after_block(self, search, turn, log):
        idle = search.memory(self)["idle"]
        has_won = log.wins[turn.here].mean(axis=1) > 0.4
        idle[turn.here] = np.where(has_won, 0, idle[turn.here] + 1)

    def penalty(self, vectors):
        return self.tax * np.abs(vectors).mean(axis=2)


SHORT = {
    "hidden_layer_sizes": (4,), "batch_size": 10, "population_size": 6, "seed": 3,
    "max_generations": 12, "fitness": "accuracy",
}  # fmt: skip


@pytest.fixture
def data(make_classification_data):
    inputs, targets = make_classification_data(np.random.default_rng(2), n_instances=80)
    return inputs[:50], targets[:50], inputs[50:], targets[50:]


def run(data, extension, searches=None, **further):
    callbacks = [] if searches is None else [searches.append]
    return evolve(*data, extensions=[extension], callbacks=callbacks, **SHORT | further)


def test_it_works_through_evolve(data):
    searches = []
    result = run(data, Restlessness(), searches)
    plain = evolve(*data, **SHORT)
    untaxed = run(data, Restlessness(tax=0.0))
    unshaken = run(data, Restlessness(width=1e-30))
    genotypes = [r.network.genotype.tobytes() for r in (result, plain, untaxed, unshaken)]
    assert len(set(genotypes)) == 4
    memory = searches[-1].state.memories["restlessness"]
    assert memory["shaken"].sum() > 0
    assert result.settings.extensions == (Restlessness(),)


@pytest.mark.parametrize("engine", ["delta", "batched", "reference"])
def test_a_resumed_run_goes_on_bit_for_bit(data, tmp_path, engine):
    whole, resumed = [], []
    expected = run(data, Restlessness(), whole, engine=engine)
    path = tmp_path / "run.checkpoint"
    run(data, Restlessness(), engine=engine, max_generations=5, checkpoint=path)
    found = run(data, Restlessness(), resumed, engine=engine, checkpoint=path, resume=True)
    np.testing.assert_array_equal(found.network.genotype, expected.network.genotype)
    columns = [0, 1, 3, 4, 5]  # all but the seconds
    np.testing.assert_array_equal(found.history.rows[:, columns], expected.history.rows[:, columns])
    states = [searches[-1].state for searches in (whole, resumed)]
    memories = [state.memories["restlessness"] for state in states]
    assert memories[0].keys() == memories[1].keys()
    for name in memories[0]:
        np.testing.assert_array_equal(memories[0][name], memories[1][name])
    np.testing.assert_array_equal(states[0].fitness, states[1].fitness)


def test_another_setting_of_it_is_another_run(data, tmp_path):
    path = tmp_path / "run.checkpoint"
    run(data, Restlessness(), max_generations=2, checkpoint=path)
    with pytest.raises(ValueError, match=r"extensions is \['restlessness'\] .*width=0.7"):
        run(data, Restlessness(width=0.7), checkpoint=path, resume=True)


def test_a_memory_that_does_not_fit_is_refused(data, tmp_path):
    path = tmp_path / "run.checkpoint"
    run(data, Restlessness(), max_generations=2, checkpoint=path)

    @dataclass
    class Longer(Restlessness):
        def begin(self, search):
            return super().begin(search) | {"more": np.zeros(2)}

    with pytest.raises(CheckpointError, match="what its extensions remember contradicts"):
        run(data, Longer(), checkpoint=Checkpoint(path, resume=True))


def test_hooks_are_called_in_order(make_search, small_settings):
    calls = []

    @dataclass
    class Watcher(Extension):
        name: ClassVar[str] = "watcher"

        def begin(self, search):
            calls.append("begin")
            return {}

        def resume(self, search):
            assert search.memory(self) == {}
            calls.append("resume")

        def before_generation(self, search):
            calls.append("before_generation")

        def before_block(self, search, turn, offspring):
            assert offspring.trials.shape[:2] == (len(turn.subpopulations), 6)
            calls.append(f"before_block {turn.block}")

        def after_block(self, search, turn, log):
            assert (log.scale_factors[turn.here] > 0).all()
            calls.append(f"after_block {turn.block}")

    make_search(small_settings(extensions=[Watcher()], max_generations=2)).run()
    generation = ["before_generation"]
    generation += [f"{when}_block {b}" for b in (0, 1) for when in ("before", "after")]
    assert calls == ["begin", "resume", *generation * 2]


def test_donors_are_parents(make_search, small_settings):
    @dataclass
    class Giants(Extension):
        """Offers individuals of huge weights, which then show up in trials."""

        name: ClassVar[str] = "giants"

        def donors(self, search, turn):
            individuals = search.state.subpopulations[turn.block][turn.rows]
            huge = np.full_like(individuals[:, :4], 1e6)
            return Donors(huge, np.full(len(huge), 4))

    largest = []
    for extensions in ([], [Giants()]):
        settings = small_settings(
            strategy="current-to-pbest/1(archive_rate=0.0)", extensions=extensions,
            max_generations=3,
        )  # fmt: skip
        search = make_search(settings)
        search.run()
        largest.append(max(np.abs(block).max() for block in search.state.subpopulations))
    assert largest[0] < 100
    assert largest[1] > 1e4


def test_an_extension_of_ones_own_has_no_name_in_files():
    assert Settings(extensions=[Restlessness()]).extensions == (Restlessness(),)
    with pytest.raises(ValueError, match="extensions='restlessness' is unknown"):
        Settings(extensions=["restlessness"])


@dataclass
class Halving(Extension):
    """Removes the second half of all individuals after two generations."""

    name: ClassVar[str] = "halving"

    def check(self, settings):
        if settings.population_size != "auto" and settings.population_size % 2:
            raise ValueError("halving needs an even population_size")

    def population_sizes(self, size):
        return size // 2, size

    def before_generation(self, search):
        if search.state.generation == 2:
            n_subpopulations, size = search.state.fitness.shape
            search.keep(np.tile(np.arange(size // 2), (n_subpopulations, 1)))


def test_an_extension_refuses_settings_that_it_cannot_be_used_with():
    Settings(extensions=[Halving()])
    with pytest.raises(ValueError, match="halving needs an even population_size"):
        Settings(extensions=[Halving()], population_size=7)


def test_a_checkpoint_with_the_sizes_of_ones_own_extension_is_accepted(data, tmp_path):
    settings = {**SHORT, "population_size": 12, "extensions": [Halving()]}
    whole = evolve(*data, **settings)
    checkpoint = Checkpoint(tmp_path / "halved", resume=True)
    for max_generations in (4, 12):  # halved by the first run
        resumed = evolve(
            *data, **settings | {"max_generations": max_generations}, checkpoint=checkpoint
        )
    np.testing.assert_array_equal(resumed.network.genotype, whole.network.genotype)
