"""Any black box: `evolve_function`, and the same search asking."""

import threading

import numpy as np
import pytest

from coevo import Architecture, AskTell, Network, Settings, evolve_function

NETWORKS = Architecture(1, (4,), 1)
INSTANCES = np.linspace(-2, 2, 25)
SMALL = {"max_generations": 6, "seed": 3, "population_size": 6, "batch_size": 5}


def measure(network, instances):
    inputs = np.asarray(instances, dtype=float)[:, np.newaxis]
    return -np.square(network.outputs(inputs) - np.sin(inputs)).mean()


def measure_many(networks, instances):
    return [measure(network, instances) for network in networks]


def test_a_function_is_followed():
    result = evolve_function(measure, NETWORKS, instances=INSTANCES, seed=1, max_evaluations=4000)
    assert measure(result.network, np.linspace(-2, 2, 101)) > -0.05
    assert result.engine == "function"
    assert result.train_fitness < 0


def test_one_by_one_or_many_at_a_time_in_one_process_or_more():
    arguments = {"instances": list(INSTANCES), **SMALL}
    first = evolve_function(measure, NETWORKS, **arguments)
    many = evolve_function(measure_many, NETWORKS, takes_many=True, **arguments)
    np.testing.assert_array_equal(many.network.genotype, first.network.genotype)

    def closure(network, instances):  # is sent to workers by value
        inputs = np.asarray(instances, dtype=float)[:, np.newaxis]
        return -np.square(network.outputs(inputs) - np.sin(inputs)).mean()

    others = evolve_function(closure, NETWORKS, backend="processes", n_workers=2, **arguments)
    np.testing.assert_array_equal(others.network.genotype, first.network.genotype)


def test_every_fifth_instance_is_for_validation():
    seen, validated = set(), set()

    def watch(network, instances):
        (validated if isinstance(instances, list) and len(instances) == 5 else seen).update(
            instances
        )
        return 0.0

    evolve_function(watch, NETWORKS, instances=list(range(25)), **SMALL | {"batch_size": 4})
    assert validated == {4, 9, 14, 19, 24}
    assert seen == set(range(25)) - validated


def test_a_single_instance_is_enough():
    result = evolve_function(lambda network, _: -abs(network.genotype).sum(), NETWORKS,
                             instances=1, max_evaluations=2000, seed=1)  # fmt: skip
    assert result.validation_fitness > result.history.rows[0, 4]


def test_asking_gives_what_calling_gives(tmp_path):
    expected = evolve_function(measure, NETWORKS, instances=INSTANCES, **SMALL)
    checkpoint = tmp_path / "asked.checkpoint"
    n_asked = 0
    for n_generations in (2, SMALL["max_generations"]):
        changes = SMALL | {"max_generations": n_generations}
        with AskTell(
            NETWORKS, instances=INSTANCES, checkpoint=checkpoint, resume=True, **changes
        ) as search:
            while (question := search.ask()) is not None:
                assert search.ask() is question
                assert question.is_validation == (
                    len(question.networks) == 1
                    and len(question.instances) == 5
                    and question.instances is search._validation
                )
                n_asked += len(question.networks)
                search.tell(measure_many(question.networks, question.instances))
    assert search.ask() is None
    np.testing.assert_array_equal(search.result.network.genotype, expected.network.genotype)
    assert n_asked > expected.evaluations


def test_a_search_that_is_closed_leaves_no_thread():
    before = threading.active_count()
    with AskTell(NETWORKS, instances=1, **SMALL | {"batch_size": 1}) as search:
        assert isinstance(search.ask().networks[0], Network)
        with pytest.raises(ValueError, match="the search has not ended"):
            _ = search.result
    assert threading.active_count() == before


def test_answers_are_checked():
    with AskTell(NETWORKS, instances=1, **SMALL | {"batch_size": 1}) as search:
        with pytest.raises(ValueError, match="nothing has been asked"):
            search.tell([1.0])
        n = len(search.ask().networks)
        with pytest.raises(ValueError, match=rf"fitness must give {n} numbers.*shape \(1,\)"):
            search.tell([1.0])
        with pytest.raises(ValueError, match="fitness must give finite numbers, got nan"):
            search.tell([np.nan] * n)
        search.tell(np.zeros(n))


def test_errors_of_the_search_come_through():
    def fail(search):
        raise ZeroDivisionError("no")

    search = AskTell(NETWORKS, instances=1, callbacks=[fail], **SMALL | {"batch_size": 1})

    def answer_all():
        while (question := search.ask()) is not None:
            search.tell(np.zeros(len(question.networks)))

    with search, pytest.raises(ZeroDivisionError, match="no"):
        answer_all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"measure": 3}, TypeError, "measure must be a function of network and instances"),
        ({"architecture": (1, 1)}, TypeError, r"architecture must be a coevo.Architecture"),
        ({"instances": 0}, ValueError, "instances must be a sequence that is not empty"),
        ({"instances": "abc"}, ValueError, "instances must be a sequence"),
        ({"validation_instances": []}, ValueError, "validation_instances must be a sequence"),
        ({"hidden_layer_sizes": (3,)}, ValueError, "hidden_layer_sizes is part of architecture"),
        ({"fitness": "accuracy"}, ValueError, "fitness is what measure returns"),
        ({"settings": Settings(fitness="f1")}, ValueError, "fitness is what measure returns"),
        ({"measure": lambda *_: "good"}, TypeError, "measure must give 12 numbers"),
        ({"measure": lambda *_: [1, 2]}, ValueError, r"measure must give 12 numbers.*\(12, 2\)"),
        ({"measure": lambda *_: np.inf}, ValueError, "measure must give finite numbers, got inf"),
        ({"takes_many": 1}, TypeError, "takes_many must be True or False"),
    ],
)
def test_refusals(changes, error, message):
    arguments = {"measure": measure, "architecture": NETWORKS, "instances": 4, "seed": 1,
                 "max_generations": 1, "population_size": 12}  # fmt: skip
    with pytest.raises(error, match=message):
        evolve_function(**arguments | changes)
