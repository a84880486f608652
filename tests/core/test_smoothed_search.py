"""The search by smoothed fitness: what a generation does, what it learns, what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from coevo import Network, Smoothing, evolve
from coevo.core.assembly import assemble
from coevo.core.decomposition import decompose
from coevo.core.defaults import ProblemSize, resolve
from coevo.core.evaluator import Data
from coevo.core.metrics import FBeta, Matthews, Profit, find_metric
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.core.smoothed_search import SmoothedSearch
from coevo.core.stopping import StopReason
from coevo.engines.reference import ReferenceEvaluator
from coevo.engines.smoothed import SmoothedEvaluator
from coevo.engines.smoothed_reference import SmoothedReference


@pytest.fixture
def rings():
    """Return two classes, one around the other, with inputs far from unit size."""
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(600, 2))
    targets = (np.hypot(*inputs.T) > 1.2).astype(int)
    inputs = inputs * [100, 0.01] + [500, 3]
    return inputs[:400], targets[:400], inputs[400:], targets[400:]


@pytest.fixture
def begin(rings):
    """Return a function that assembles a search over the rings."""

    def make(engine=SmoothedEvaluator, initial_network=None, **settings):
        chosen = {
            "hidden_layer_sizes": (6,),
            "strategy": "smoothing",
            "dtype": "float64",
            "seed": 1,
        }
        settings = Settings.from_names({**chosen, "max_generations": 30, **settings})
        architecture = Architecture(2, settings.hidden_layer_sizes, 2, settings.activation)
        sizes = (architecture.n_inputs, architecture.n_neurons)
        size = ProblemSize(len(rings[0]), *sizes, n_validation=len(rings[2]))
        settings = resolve(settings, size=size)
        decomposition = decompose("neuron", architecture)
        metric = find_metric(settings.fitness)
        train, valid = Data(*rings[:2]), Data(*rings[2:])
        evaluator = engine(architecture, decomposition, metric, train, valid)
        return assemble(evaluator, decomposition, settings, initial_network=initial_network)

    return make


def test_a_generation_moves_the_means_by_adam_along_the_direction(begin):
    strategy = Smoothing(rate=(0.1, 0.2), weight_decay=0.5, standardise=False)
    search = begin(strategy=strategy, max_evaluations=None)
    generations = iter(search)
    search._timed(search._initialise)
    before, evaluator = search.state.global_solution.copy(), search.evaluator
    batch = search.state.batches[0]
    next(generations)
    evaluator.rebase(before.copy(), batch)
    direction = evaluator.find_direction(np.full(2, 0.5))
    layer = np.repeat([0, 1], [6 * 3, 2 * 7])
    is_bias = np.r_[np.tile([0, 0, 1], 6), np.tile([0] * 6 + [1], 2)] == 1
    decay = np.where(is_bias, 0, 0.5 * np.array([2, 6])[layer] / 400)
    slopes = direction - decay * before
    # The first step of Adam is the rate in the direction of each slope, whatever its size.
    step = np.array([0.1, 0.2])[layer] * slopes / (np.abs(slopes) + 1e-8)
    np.testing.assert_allclose(search.state.global_solution, before + step, rtol=1e-6)


def test_both_engines_take_the_same_course(begin):
    courses = []
    for engine in (SmoothedEvaluator, SmoothedReference):
        search = begin(engine, max_generations=5)
        search.run()
        courses.append(search.state.global_solution)
    np.testing.assert_allclose(*courses, rtol=1e-6)


def test_evaluations_are_two_for_each_neuron_and_one_for_the_first_network(begin):
    search = begin(max_generations=None, max_evaluations=100)
    assert search.run() == "max_evaluations"
    assert search.state.evaluations == 1 + 7 * 2 * 8


def test_means_over_standardised_inputs_are_the_global_solution_over_raw_ones(begin, rings):
    search = begin()
    search.run()
    state, memory = search.state, search.state.memories["smoothing"]
    np.testing.assert_allclose(memory["centre"], rings[0].mean(axis=0))
    np.testing.assert_allclose(memory["factor"][0], 1 / rings[0][:, 0].std())
    means = np.concatenate([block.reshape(-1) for block in state.subpopulations])
    architecture = Architecture(2, (6,), 2)
    standardised = (rings[2] - memory["centre"]) * memory["factor"]
    np.testing.assert_allclose(
        architecture.forward(means, standardised),
        architecture.forward(state.global_solution, rings[2]),
        atol=1e-9,
    )


def test_inputs_of_another_scale_change_nothing(rings):
    settings = {"hidden_layer_sizes": (5,), "strategy": "smoothing", "dtype": "float64",
                "max_generations": 40, "seed": 2}  # fmt: skip
    X, y, X_valid, y_valid = rings
    # Within the same factor for all, as small deviations are measured by that of all inputs.
    results = [evolve(f * X + c, y, f * X_valid + c, y_valid, **settings)
               for f, c in ((1, 0), (50, -7))]  # fmt: skip
    np.testing.assert_allclose(
        *(result.history.columns()["batch_fitness"] for result in results), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("settings", "accuracy"),
    [
        ({}, 0.93),
        ({"fitness": "accuracy"}, 0.92),
        ({"fitness": "margin"}, 0.93),
        ({"fitness": "balanced_accuracy"}, 0.9),
        ({"fitness": "matthews"}, 0.9),
        ({"activation": "sign", "max_evaluations": 400_000}, 0.9),
        ({"activation": "sign", "fitness": "accuracy"}, 0.88),
        ({"activation": "relu", "hidden_layer_sizes": (10, 10)}, 0.92),
        ({"limited_evaluation": False}, 0.93),
    ],
    ids=str,
)
def test_learns(rings, settings, accuracy):
    X, y, X_valid, y_valid = rings
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X_valid = (X_valid - X_valid.mean(axis=0)) / X_valid.std(axis=0)
    chosen = {"hidden_layer_sizes": (20,), "strategy": "smoothing", "max_evaluations": 40_000,
              "seed": 4, **settings}  # fmt: skip
    result = evolve(X, y, X_valid, y_valid, **chosen)
    assert (result.predict(X_valid) == y_valid).mean() >= accuracy


def test_learns_by_f1(rng):
    X = rng.normal(size=(900, 3))
    y = (X[:, 0] + X[:, 1] > 1).astype(int)
    result = evolve(X[:600], y[:600], X[600:], y[600:], fitness="f1", strategy="smoothing",
                    hidden_layer_sizes=(10,), max_evaluations=40_000, seed=1)  # fmt: skip
    assert result.validation_fitness > 0.93


@pytest.mark.parametrize("fitness", ["squared_error", "absolute_error"])
def test_learns_a_curve(fitness):
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (500, 1))
    y = np.sin(2 * X[:, 0])
    result = evolve(
        X[:400], y[:400], X[400:], y[400:], fitness=fitness, strategy="smoothing",
        hidden_layer_sizes=(20,), max_evaluations=400_000, strategy__weight_decay=0, seed=1,
    )  # fmt: skip
    assert np.abs(result.predict(X[400:])[:, 0] - y[400:]).mean() < 0.05


def test_the_same_seed_gives_the_same_run_with_any_number_of_threads(rings):
    networks = {
        evolve(*rings, hidden_layer_sizes=(40, 20), strategy="smoothing", max_generations=30,
               batch_size=100, n_threads=n_threads, seed=3).network.genotype.tobytes()
        for n_threads in (1, 2, 1)
    }  # fmt: skip
    assert len(networks) == 1


def test_the_best_network_is_kept_by_its_fitness_on_the_whole_validation_set(begin):
    search = begin(max_generations=200)
    search.run()
    state = search.state
    measured = search.evaluator.validate_networks(state.best_network[np.newaxis])
    assert state.best_validation == measured[0]
    assert state.best_validation == state.history.columns()["best_validation"].max()


def test_validation_has_its_share_and_the_last_word(begin):
    search = begin(max_generations=70)
    times = []
    validate = search.evaluator.validate_networks
    search.evaluator.validate_networks = lambda networks: (
        times.append(search.state.generation) or validate(networks)
    )
    search.run()
    # 200 instances to validate, 3 passes over 20 instances a generation: every 34th generation.
    assert times == [0, 34, 68, 70]


def test_patience_is_looked_at_when_a_try_ends(begin):
    search = begin(max_generations=None, patience=5, strategy__rate=1e-12)
    assert search.run() == "patience"
    assert search.state.generation % 500 == 0
    search = begin(patience=5, strategy__rate=1e-12, strategy__schedule="constant")
    assert search.run() == "patience"
    assert search.state.generation == 5


def test_patience_ends_the_last_round_too(begin):
    search = begin(max_generations=2000, patience=5)  # no room for a second round
    search.evaluator.validate_networks = lambda networks: np.zeros(1)
    assert search.run() == "patience"
    assert search.state.generation == 5


def test_patience_waits_while_a_last_round_may_fall_below_those_before(begin):
    search = begin(max_generations=3400, patience=1100)
    search.evaluator.validate_networks = lambda networks: np.zeros(1)
    assert search.run() == "patience"
    # Two tries of 500; the last round is given 500 more before patience counts.
    assert search.state.generation == 1000 + 500 + 1100


def test_patience_counts_from_the_best_network_of_the_last_round(begin):
    search = begin(max_generations=200, patience=20)
    search.evaluator.validate_networks = lambda networks: np.array(
        [min(search.state.generation, 60)]
    )
    assert search.run() == "patience"
    assert search.state.generation == 80


def test_the_last_network_is_validated_also_if_a_callback_ends_the_run(rings):
    result = evolve(
        *rings, hidden_layer_sizes=(6,), strategy="smoothing", seed=1, batch_size=20,
        callbacks=[lambda search: search.state.generation == 20],
    )  # fmt: skip
    history = result.history.columns()["validation_fitness"]
    assert (history[:-1] == history[0]).all()  # the 34th generation would have been the first look
    assert result.validation_fitness == history[-1] > history[0]


def test_a_larger_budget_begins_new_rounds(begin):
    search = begin(max_generations=40)
    search.run()
    assert search._rounds.is_last
    settings = replace(search.settings, max_generations=10_000)
    again = SmoothedSearch(search.evaluator, search.decomposition, settings, search.state)
    assert not again._rounds.is_last
    assert again._find_share_of_rate() == 1


def test_the_first_budget_ends_a_run_to_which_no_more_is_granted(begin):
    search = begin(max_generations=1000, strategy__first_budget=45, validate_every=20)
    assert search.run() == StopReason.STAGNATION
    assert search.state.generation == 45
    assert search._is_validated
    assert search.limits == (None, 45, None)
    assert search._find_share_of_rate() == 0


def test_a_search_that_goes_on_with_harder_instances_can_stagnate(begin):
    search = begin(strategy__weight_decay=0)
    search.evaluator.validate_networks = lambda networks: np.array([-0.1])
    search.run()
    settings = replace(search.settings, max_generations=20_000)
    again = SmoothedSearch(search.evaluator, search.decomposition, settings, search.state)
    again.evaluator.validate_networks = lambda networks: np.array([-0.5])
    again.turn_to_new_instances()
    assert again.run() == "stagnation"


@pytest.mark.parametrize("fitness", ["cross_entropy", "accuracy"])
def test_a_round_whose_tries_overflow_goes_back_to_its_start(begin, fitness):
    search = begin(max_generations=3000, fitness=fitness)
    search._timed(search._initialise)
    start = search._means.copy()
    for generation in search:
        if generation.generation in (490, 990):  # a network of NaN has an accuracy all the same
            search._means[:] = np.nan
        if generation.generation == 1000:
            break
    np.testing.assert_array_equal(search._means, start)
    assert search._rounds.length == 1000
    next(iter(search))
    assert np.isfinite(search.state.global_solution).all()


@pytest.mark.parametrize(
    ("budget", "share"),
    [
        ({"max_generations": 10}, 0.6),
        ({"max_generations": None, "max_evaluations": 1 + 16 * 8}, 1 - 65 / 129),
        ({"max_generations": 10_000}, 1 - 4 / 500),
        ({"strategy__schedule": "root"}, 1 / np.sqrt(1.004)),
        ({"strategy__schedule": "constant"}, 1),
    ],
)
def test_the_rate_falls_along_the_round_or_slowly(begin, budget, share):
    search = begin(**{"max_evaluations": None, **budget})
    generations = iter(search)
    for _ in range(4):
        next(generations)
    assert search._find_share_of_rate() == pytest.approx(share)


def test_the_rate_falls_along_the_seconds_that_are_left(begin, monkeypatch):
    search = begin(
        max_generations=None, max_evaluations=None, max_seconds=1000.0, strategy__rate=0.01
    )
    seconds = [0.0]
    monkeypatch.setattr(search, "_seconds", lambda: seconds[0])
    generations = iter(search)
    for _ in range(30):
        next(generations)
        seconds[0] += 10
    assert search._rounds.is_last  # 70 more generations are no room for rounds of 500
    seconds[0] = 250.0
    assert search._find_share_of_rate() == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("settings", "seconds_each", "pace"),
    [
        ({}, 10.0, 0.05 / 0.006),  # 100 generations: the fastest rate
        ({}, 1.0, 0.012 / 0.006),  # 1000: 12 / 1000 in place of 0.006
        ({}, 0.1, 1),
        ({"strategy__rate": 0.006}, 10.0, 1),
        ({"strategy__adapt_rate": False}, 10.0, 1),
        ({"max_generations": 100}, 10.0, 1),  # known beforehand: the rate was chosen for it
        ({"max_generations": 1000}, 10.0, 0.05 / 0.012),
        ({"max_seconds": None, "max_generations": 100}, 10.0, 1),
    ],
)
def test_the_first_generations_say_how_fast_to_go(begin, monkeypatch, settings, seconds_each, pace):
    search = begin(**{"max_generations": None, "max_seconds": 1000.0, **settings})
    monkeypatch.setattr(search, "_seconds", lambda: seconds_each * search.state.generation)
    generations = iter(search)
    for _ in range(31):
        next(generations)
    share = search._rounds.share_left(search._clock())
    assert search._find_share_of_rate() == pytest.approx(pace * share)


def test_begins_with_an_initial_network(begin, rng):
    architecture = Architecture(2, (6,), 2)
    genotype = rng.normal(size=architecture.n_genes) / 100
    search = begin(initial_network=genotype, max_generations=1)
    search.run()
    first = search.state.history.rows[0]
    validation = search.evaluator.validate_networks(genotype[np.newaxis])
    assert first[4] == pytest.approx(validation[0])


def test_evolve_begins_with_an_initial_network(rings):
    architecture = Architecture(2, (6,), 2)
    network = Network(architecture, np.zeros(architecture.n_genes))
    result = evolve(*rings, hidden_layer_sizes=(6,), strategy="smoothing", max_generations=1,
                    initial_network=network, seed=1)  # fmt: skip
    assert result.history.columns()["validation_fitness"][0] == pytest.approx(-np.log(2))


# ------------------------------------------------------------------------------------- settings


def test_smoothing_as_a_text():
    given = Smoothing(width=0.2, rate=0.1, weight_decay=0.0, adapt_decay=False, schedule="constant")
    text = (
        "smoothing(width=0.2, rate=0.1, weight_decay=0.0, adapt_decay=False, schedule='constant')"
    )
    assert str(given) == text
    assert Settings(strategy=text).strategy == given
    assert (
        Settings.from_names({"strategy": "smoothing", "strategy__rate": 0.1}).strategy.rate == 0.1
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": Smoothing(width=(1, 1, 1))}, "strategy__width must be one number or 2"),
        ({"decomposition": "layer"}, "decomposition must be \"neuron\", got 'layer'"),
    ],
)
def test_settings_that_do_not_go_together(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**{"strategy": "smoothing", **settings})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 0}, "width must be above 0"),
        ({"width": (0.5, -1)}, "width must be above 0"),
        ({"rate": -0.1}, "rate must be above 0"),
        ({"weight_decay": -1}, "weight_decay must be at least 0"),
        ({"schedule": "cosine"}, "schedule='cosine' is unknown"),
    ],
)
def test_bad_numbers_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Smoothing(**changes)


def test_an_engine_without_directions_is_refused(begin, rings):
    with pytest.raises(TypeError, match="find_direction"):
        begin(type("Engine", (), {"n_instances": 9, "__init__": lambda self, *_: None}))
    with pytest.raises(ValueError, match="engine='batched' is unknown; choose one of delta, ref"):
        evolve(*rings, strategy="smoothing", engine="batched")
    assert not hasattr(ReferenceEvaluator, "find_direction")


def test_a_function_as_fitness_is_refused(rings):
    with pytest.raises(ValueError, match=r"function is neither; it serves accuracy.*rand/1"):
        evolve(*rings, strategy="smoothing", fitness=lambda y, p: (y == p).mean())


# --------------------------------------------------------------------------------------- prices


@pytest.mark.parametrize(
    "metric",
    ["balanced_accuracy", FBeta(beta=2), "f1_macro", "matthews"],
    ids=lambda metric: getattr(metric, "name", metric),
)
def test_prices_are_the_slopes_of_the_metric(metric, rng):
    metric = find_metric(metric)
    counts = rng.integers(1, 30, (4, 4)).astype(float)
    by_differences = super(type(metric), metric).find_prices(counts)
    difference = metric.find_prices(counts) - by_differences
    # Up to what all predictions of a class have in common.
    np.testing.assert_allclose(difference - difference[:, :1], 0, atol=1e-5)


def test_prices_exist_where_the_correlation_does_not():
    prices = Matthews().find_prices(np.array([[5.0, 0.0], [3.0, 0.0]]))
    assert np.isfinite(prices).all()
    assert prices[1, 1] > prices[1, 0]
    assert prices[0, 1] < prices[0, 0]
    assert not Matthews().find_prices(np.array([[5.0, 1.0], [0.0, 0.0]])).any()


def test_the_currency_of_a_profit_changes_nothing(rings):
    networks = {
        evolve(*rings, hidden_layer_sizes=(5,), strategy="smoothing", max_generations=60, seed=1,
               fitness=Profit(currency * np.array([[1, -3], [-1, 2]]))).network.genotype.tobytes()
        for currency in (1, 1024, 1 / 1024)
    }  # fmt: skip
    assert len(networks) == 1
