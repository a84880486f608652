"""The state of a search, and how the first one is drawn."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coevo._typing import Array
from coevo.core.batches import Batches
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator
from coevo.core.extensions.base import Memory
from coevo.core.history import History
from coevo.core.settings import Settings


@dataclass
class SearchState:
    """All that changes during a search.

    Attributes
    ----------
    rng
        The only source of random numbers.
    batches
        The partition of the training instances, and which batch is next.
    subpopulations : list of arrays of shape (k, NP, genes), one for each block
        The individuals x_ij.
    fitness : float64 array of shape (SP, NP)
        Their fitness Ft.
    champions : integer array of shape (SP,)
        The fittest individual of each subpopulation, which represents it in the global solution
        unless means do.
    global_solution : array of shape (n_genes,)
        The paper's X.
    best_network : array of shape (n_genes,)
        The global solution with the best validation fitness so far, `best_validation`, reached in
        generation `best_generation`.
    generation, evaluations, seconds
        Counters; `seconds` is the time spent, without compiling and callbacks.
    history
        The generations so far.
    memories
        The memory of each extension, by its name.
    """

    rng: np.random.Generator
    batches: Batches
    subpopulations: list[Array]
    fitness: Array
    champions: Array
    global_solution: Array
    best_network: Array
    best_validation: float = -np.inf
    best_generation: int = 0
    generation: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    memories: dict[str, Memory] = field(default_factory=dict)

    @classmethod
    def begin(
        cls, rng: np.random.Generator, batches: Batches, subpopulations: list[Array], n_genes: int
    ) -> SearchState:
        """Return a state in which nothing has been measured; X is 0."""
        n_subpopulations = sum(map(len, subpopulations))
        dtype = subpopulations[0].dtype
        return cls(
            rng,
            batches,
            subpopulations,
            fitness=np.zeros((n_subpopulations, subpopulations[0].shape[1])),
            champions=np.zeros(n_subpopulations, dtype=np.int64),
            global_solution=np.zeros(n_genes, dtype=dtype),
            best_network=np.zeros(n_genes, dtype=dtype),
        )


def draw_state(
    settings: Settings,
    decomposition: Decomposition,
    evaluator: Evaluator,
    initial_network: Array | None = None,
) -> tuple[SearchState, Decomposition]:
    """Draw batches, random groups if these are wanted, and individuals (line 2), in this order.

    Returns
    -------
    the state, and the decomposition, with its random groups drawn
    """
    rng = np.random.Generator(np.random.SFC64(settings.seed))
    batches = draw_batches(rng, settings, evaluator.n_instances)
    n_genes = len(decomposition.layer_of_gene)
    if decomposition.is_random:
        decomposition = decomposition.redraw(rng.permutation(n_genes))
    subpopulations = _draw_individuals(rng, settings, decomposition, evaluator, initial_network)
    return SearchState.begin(rng, batches, subpopulations, n_genes), decomposition


def draw_batches(rng: np.random.Generator, settings: Settings, n_instances: int) -> Batches:
    """Return the batches of a run: under full evaluation one of all instances."""
    if not settings.limited_evaluation:
        return Batches.all_instances(n_instances)
    return Batches.partition(rng, n_instances, int(settings.batch_size), settings.reshuffle_batches)


def _draw_individuals(
    rng: np.random.Generator,
    settings: Settings,
    decomposition: Decomposition,
    evaluator: Evaluator,
    initial_network: Array | None,
) -> list[Array]:
    """Return the subpopulations of each block: uniform around 0 or around a network."""
    layers = decomposition.layer_of_gene
    widths = np.broadcast_to(settings.initial_range, layers.max() + 1)
    if settings.scale_initial_range:
        widths = widths / np.sqrt(decomposition.layer_inputs)
        widths[0] /= evaluator.input_size  # hidden activations are about 1
    width = widths[layers]
    subpopulations = []
    for genes in decomposition.genes_of_blocks:
        shape = (len(genes), int(settings.population_size), genes.shape[1])
        individuals = rng.uniform(-1, 1, shape)
        individuals *= width[genes][:, np.newaxis]
        if initial_network is not None:
            individuals += initial_network[genes][:, np.newaxis]
            individuals[:, 0] = initial_network[genes]
        subpopulations.append(individuals.astype(settings.dtype))
    return subpopulations
