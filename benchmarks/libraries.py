"""How each of the other libraries is asked to evolve a network with one hidden layer.

A library gets a task, which says what to maximise and where to begin, and a watch, which is told of
all evaluations and ends the search. Where an algorithm has settings that depend on the task, they
are arguments; all others are the library's own defaults.
"""
# ruff: noqa: PLC0415  # a library is imported only in the process that runs it

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

POPULATION = 20
COCMA_GENES = 30  # in a part: PyPop7's default


class Shape(NamedTuple):
    """The layers of a network."""

    n_inputs: int
    n_hidden: int
    n_outputs: int

    @property
    def n_genes(self) -> int:
        """Weights and biases."""
        return sum((fan_in + 1) * size for fan_in, size in pairwise(self))

    def __str__(self) -> str:
        return "-".join(map(str, self))


HAR = Shape(561, 50, 6)
MNIST = Shape(784, 50, 10)


class Finished(Exception):  # noqa: N818  # not an error: it ends optimisers from their objective
    """The time of a measurement is over."""


class Watch(Protocol):
    """What a search reports to."""

    def begin(self) -> None:
        """Take note that all is compiled and the search begins."""

    def count(self, evaluations: int, best: Callable[[], ArrayLike]) -> None:
        """Count evaluations; raise Finished when time is up.

        `best` returns the genotype that the library would give if it ended now.
        """


def run(watch: Watch, step: Callable[[], int], best: Callable[[], ArrayLike]) -> None:
    """Call a generation, which returns its number of evaluations, until time is up."""
    with contextlib.suppress(Finished):
        while True:
            watch.count(step(), best)


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


# --------------------------------------------------------------------------------- what is evolved


def forward(population, inputs, shape, scale, xp):
    """Return the outputs (n, n_outputs, n_instances) of n networks, by the array library xp.

    A genotype holds the weights and biases of the hidden layer, then those of the outputs, each
    divided by its scale if there is one. All first layers are one matrix product.
    """
    if scale is not None:
        population = population * scale
    n, n_instances = population.shape[0], inputs.shape[1]
    n_inputs, n_hidden, n_outputs = shape
    ends = np.cumsum([n_hidden * n_inputs, n_hidden, n_outputs * n_hidden]).tolist()
    sums = population[:, : ends[0]].reshape(n * n_hidden, n_inputs) @ inputs
    sums = sums.reshape(n, n_hidden, n_instances)
    sums += population[:, ends[0] : ends[1]].reshape(n, n_hidden, 1)
    outputs = population[:, ends[1] : ends[2]].reshape(n, n_outputs, n_hidden) @ xp.tanh(sums)
    outputs += population[:, ends[2] :].reshape(n, n_outputs, 1)
    return outputs


def accuracies(outputs, targets, xp):
    """Return the part of the instances whose largest output is their class, for each network."""
    return (outputs.argmax(1) == targets).sum(1) / targets.shape[0]


def minus_losses(outputs, targets, xp):
    """Return minus the cross-entropy of each network; targets are one-hot, as the outputs are."""
    outputs = outputs - xp.amax(outputs, 1)[:, None]
    losses = xp.log(xp.exp(outputs).sum(1)) - (outputs * targets).sum(1)
    return -losses.mean(1)


@dataclass(frozen=True)
class Task:
    """What is maximised and where the search begins.

    Parameters
    ----------
    shape
        The network.
    inputs : float32 array of shape (n_inputs, n_instances)
    targets : array of shape (n_instances,) or (n_outputs, n_instances), as the measure wants it
    measure
        `accuracies` or `minus_losses`.
    tolerance
        By how much a fitness may differ from NumPy's through rounding.
    bound
        Genes begin uniformly within [−bound, bound].
    limit
        Genes stay within [−limit, limit] where a library cannot do without limits.
    scale : float32 array of shape (n_genes,), or None
        A weight is its gene times this, or its gene.
    seed
        Seed of all random numbers.
    """

    shape: Shape
    inputs: np.ndarray
    targets: np.ndarray
    measure: Callable
    tolerance: float
    bound: float
    limit: float
    scale: np.ndarray | None = None
    seed: int = 0

    def begin(self, seed: int | None = None) -> np.ndarray:
        """Return an initial population, (POPULATION, n_genes)."""
        rng = np.random.default_rng(self.seed if seed is None else seed)
        population = rng.uniform(-self.bound, self.bound, (POPULATION, self.shape.n_genes))
        return population.astype(np.float32)

    def evaluate(self, population: np.ndarray) -> np.ndarray:
        """Return the fitness of each individual, by NumPy."""
        # SciPy and PyPop7 keep float64; products in float32 are twice as fast.
        exact = np.asarray(population, dtype=np.float32)
        return self.measure(self.run(exact, self.inputs, self.scale, np), self.targets, np)

    def run(self, population, inputs, scale, xp):
        """Return the outputs of networks, by the array library xp."""
        return forward(population, inputs, self.shape, scale, xp)

    def arrays(self, convert: Callable) -> list:
        """Return inputs, targets and scale in another library's arrays."""
        parts = (self.inputs, self.targets, self.scale)
        return [None if part is None else convert(part) for part in parts]

    def check(self, evaluate: Callable[[np.ndarray], object]) -> None:
        """Stop if another library's fitness is not the same."""
        population = self.begin(seed=1)
        ours, theirs = self.evaluate(population), np.asarray(evaluate(population))
        if ours.shape != theirs.shape or np.abs(ours - theirs).max() > self.tolerance:
            raise AssertionError(f"fitness differs from NumPy's: {theirs} instead of {ours}")


class Best:
    """The fittest genotype that an objective has seen, for libraries that tell only at the end."""

    def __init__(self, n_genes: int) -> None:
        self.genotype, self.fitness = np.zeros(n_genes), -np.inf

    def see(self, population: np.ndarray, fitness: np.ndarray) -> None:
        """Keep the fittest, if it is fitter than any before."""
        first = int(fitness.argmax())
        if fitness[first] > self.fitness:
            self.genotype, self.fitness = population[first].copy(), fitness[first]

    def __call__(self) -> np.ndarray:
        """Return it."""
        return self.genotype


# ------------------------------------------------- the libraries; each returns what else is to tell


def run_scipy(task: Task, watch: Watch) -> dict:
    from scipy.optimize import differential_evolution

    best = Best(task.shape.n_genes)

    def objective(genes_by_individuals):
        population = genes_by_individuals.T
        fitness = task.evaluate(population)
        best.see(population, fitness)
        watch.count(len(population), best)
        return -fitness

    watch.begin()
    with contextlib.suppress(Finished):
        differential_evolution(
            objective,
            [(-task.limit, task.limit)] * task.shape.n_genes,
            init=task.begin(),  # its own population sizes are multiples of the genes
            vectorized=True,
            updating="deferred",
            polish=False,
            maxiter=10**9,
            atol=-1,  # never converged
            tol=0,
            rng=task.seed,
        )
    return {}


def run_evosax(task: Task, watch: Watch, generations_a_call: int) -> dict:
    import jax
    import jax.numpy as jnp
    from evosax.algorithms import DifferentialEvolution

    inputs, targets, scale = task.arrays(jnp.asarray)

    def one_fitness(genes):
        return task.measure(task.run(genes[None], inputs, scale, jnp), targets, jnp)[0]

    evaluate = jax.vmap(one_fitness)
    task.check(jax.jit(evaluate))
    algorithm = DifferentialEvolution(
        population_size=POPULATION, solution=jnp.zeros(task.shape.n_genes)
    )
    params = algorithm.default_params

    def generation(state, key):
        ask_key, tell_key = jax.random.split(key)
        population, state = algorithm.ask(ask_key, state, params)
        state, _ = algorithm.tell(tell_key, population, -evaluate(population), state, params)
        return state, None

    @jax.jit
    def generations(state, key):
        keys = jax.random.split(key, generations_a_call)
        return jax.lax.scan(generation, state, keys)[0]

    population = jnp.asarray(task.begin())
    key = jax.random.key(task.seed)
    state = algorithm.init(key, population, -jax.jit(evaluate)(population), params)
    first = timed(lambda: jax.block_until_ready(generations(state, key)))  # only to compile

    def step():
        nonlocal state, key
        key, now = jax.random.split(key)
        state = jax.block_until_ready(generations(state, now))
        return generations_a_call * POPULATION

    watch.begin()
    run(watch, step, lambda: state.population[state.fitness.argmin()])
    return {"first_seconds": first, "compiled": True}


def torch_evaluate(task: Task, batch_size: int | None = None):
    """Return the fitness by PyTorch, with a batch size on a new random batch at each call."""
    import torch

    torch.manual_seed(task.seed)
    inputs, targets, scale = task.arrays(torch.from_numpy)

    def evaluate(population):
        return task.measure(task.run(population, inputs, scale, torch), targets, torch)

    instances = inputs.T.contiguous()  # one a row, so that a batch is gathered quickly

    def evaluate_batch(population):
        rows = torch.randint(len(instances), (batch_size,))
        outputs = task.run(population, instances[rows].T, scale, torch)
        return task.measure(outputs, targets[..., rows], torch)

    task.check(lambda population: evaluate(torch.from_numpy(population)))
    return evaluate if batch_size is None else evaluate_batch


def run_evox(task: Task, watch: Watch) -> dict:
    import torch
    from evox.algorithms import DE
    from evox.core import Problem, compile
    from evox.workflows import StdWorkflow

    evaluate = torch_evaluate(task)

    class Fitness(Problem):
        """The fitness as EvoX wants it."""

        def evaluate(self, population):
            """Return the fitness of each individual."""
            return evaluate(population)

    limits = torch.full((task.shape.n_genes,), task.limit)
    algorithm = DE(POPULATION, -limits, limits)
    algorithm.pop = torch.from_numpy(task.begin())
    workflow = StdWorkflow(algorithm, Fitness(), opt_direction="max")
    workflow.init_step()
    begun = algorithm.pop.clone(), algorithm.fit.clone()
    generation, compiled, note = compile(workflow.step), True, "torch.compile"
    try:
        first = timed(generation)
    except Exception as error:
        generation, compiled = workflow.step, False
        note = f"eager, as torch.compile failed ({type(error).__name__})"
        first = timed(generation)
    algorithm.pop, algorithm.fit = begun  # that was only to compile

    def step():
        generation()
        return POPULATION

    watch.begin()
    # EvoX minimises: it has turned the fitness round.
    run(watch, step, lambda: algorithm.pop[algorithm.fit.argmin()])
    return {"first_seconds": first, "compiled": compiled, "note": note}


def evotorch_problem(task: Task, batch_size: int | None = None):
    import torch
    from evotorch import Problem

    evaluate = torch_evaluate(task, batch_size)
    counter = {"evaluations": 0}

    def fitness(population):
        counter["evaluations"] += len(population)
        return evaluate(population.as_subclass(torch.Tensor))  # EvoTorch's are read-only

    problem = Problem(
        "max", fitness, solution_length=task.shape.n_genes, vectorized=True, seed=task.seed,
        initial_bounds=(-task.bound, task.bound),
    )  # fmt: skip
    return problem, counter


def run_evotorch(watch: Watch, algorithm, counter: dict[str, int], best) -> None:
    def step():
        before = counter["evaluations"]
        algorithm.step()
        return counter["evaluations"] - before

    watch.begin()
    run(watch, step, best)


def run_cosyne(task: Task, watch: Watch, mutation_stdev: float) -> dict:
    from evotorch.algorithms import Cosyne

    problem, counter = evotorch_problem(task)
    algorithm = Cosyne(
        problem, popsize=POPULATION, tournament_size=4, mutation_stdev=mutation_stdev,
        mutation_probability=0.5, permute_all=True, num_elites=1,
    )  # fmt: skip
    run_evotorch(
        watch, algorithm, counter,
        lambda: algorithm.population.take_best(1).values[0],
    )  # fmt: skip
    before = counter["evaluations"]
    algorithm.step()
    per_generation = counter["evaluations"] - before
    return {
        "evaluations_per_generation": per_generation,
        "note": f"{per_generation} evaluations a generation",
    }


def run_snes(
    task: Task, watch: Watch, stdev: float, population: int | None, batch_size: int | None = None
) -> dict:
    from evotorch.algorithms import SNES

    problem, counter = evotorch_problem(task, batch_size)
    algorithm = SNES(problem, popsize=population, stdev_init=stdev)
    run_evotorch(watch, algorithm, counter, lambda: algorithm.status["center"])
    return {"population": len(algorithm.population)}


def run_pypop7(task: Task, watch: Watch, optimiser: type, **options) -> None:
    best = Best(task.shape.n_genes)

    def objective(genes):
        fitness = task.evaluate(genes[None])
        best.see(genes[None], fitness)
        watch.count(1, best)
        return -float(fitness[0])

    problem = {
        "fitness_function": objective,
        "ndim_problem": task.shape.n_genes,
        # Where it begins; it goes beyond unless told not to.
        "lower_boundary": np.full(task.shape.n_genes, -task.bound),
        "upper_boundary": np.full(task.shape.n_genes, task.bound),
    }
    watch.begin()
    with contextlib.suppress(Finished):
        optimiser(problem, {"seed_rng": task.seed, "verbose": 0, **options}).optimize()


def run_cocma(task: Task, watch: Watch, sigma: float | None = None) -> dict:
    from pypop7.optimizers.cc.cocma import COCMA
    from pypop7.optimizers.es.cmaes import CMAES

    ends = {"lower_boundary": np.zeros(COCMA_GENES), "upper_boundary": np.ones(COCMA_GENES)}
    part = CMAES({"ndim_problem": COCMA_GENES, **ends}, {"sigma": 1.0})
    run_pypop7(task, watch, COCMA, ndim_subproblem=COCMA_GENES, sigma=sigma)
    return {"population": part.n_individuals}


def run_shade(task: Task, watch: Watch) -> dict:
    from pypop7.optimizers.de.shade import SHADE

    run_pypop7(task, watch, SHADE, n_individuals=POPULATION)
    return {}
