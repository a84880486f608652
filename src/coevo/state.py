"""What changes during a search, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coevo.batches import Batches
from coevo.control import Control, Memory
from coevo.decomposition import Decomposition
from coevo.evaluation import Evaluator
from coevo.history import History
from coevo.network import Array
from coevo.settings import Settings


@dataclass
class SearchState:
    """All that changes during a search.

    Attributes
    ----------
    rng
        The one source of randomness.
    batches
        The training instances in batches, and which is next.
    subpopulations : list of arrays of shape (k, NP, genes), one for each block
        The individuals x_ij.
    fitness : float64 array of shape (SP, NP)
        Their fitness Ft.
    champions : integer array of shape (SP,)
        The fittest individual of each subpopulation, which is part of the global solution unless
        means are.
    archives : list of arrays of shape (k, n, genes), one for each block
        Room for individuals that were replaced; n is 0 unless the strategy uses them.
    n_archived : integer array of shape (SP,)
        How many are in each archive.
    control
        What the control of F and CR remembers.
    global_solution : array of shape (n_genes,)
        The paper's X.
    best_network : array of shape (n_genes,)
        The global solution that did best on the validation set, `best_validation`, first seen in
        generation `best_generation`.
    generation, evaluations, seconds
        Counters; `seconds` is the time spent in generations.
    history
        The generations so far.
    gene_order : integer array of shape (n_genes,), or None
        The genes in the order that random groups were cut from; None if the groups are not drawn.
    """

    rng: np.random.Generator
    batches: Batches
    subpopulations: list[Array]
    fitness: Array
    champions: Array
    archives: list[Array]
    n_archived: Array
    control: Memory
    global_solution: Array
    best_network: Array
    best_validation: float = -np.inf
    best_generation: int = 0
    generation: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    gene_order: Array | None = None

    def begin_memories(self, control: Control, archive_size: int) -> None:
        """Make room for what is learnt, unless the search has such a memory already.

        A memory of another shape belongs to another control or strategy, with which an estimator
        went on until now.

        Parameters
        ----------
        control
            What is going to learn.
        archive_size
            For how many replaced individuals of each subpopulation there is room.
        """
        fresh = control.begin(*self.fitness.shape)
        shapes, others = ({n: a.shape for n, a in m.items()} for m in (fresh, self.control))
        if shapes != others:
            self.control = fresh
        rooms = [
            np.zeros((len(part), archive_size, part.shape[2]), part.dtype)
            for part in self.subpopulations
        ]
        if [room.shape for room in rooms] != [archive.shape for archive in self.archives]:
            self.archives = rooms
            self.n_archived[:] = 0


def draw_state(
    settings: Settings,
    decomposition: Decomposition,
    evaluator: Evaluator,
    initial_network: Array | None = None,
) -> SearchState:
    """Draw batches, random groups if such are wanted, and individuals, in this order.

    Parameters
    ----------
    settings
        Say with which seed, how many and from which range.
    decomposition
        Which genes each subpopulation owns. Random groups are cut from another order of the genes,
        the state's `gene_order`.
    evaluator
        Knows how many training instances there are and how large their inputs.
    initial_network : array of shape (n_genes,), optional
        A network to begin around; see `Search`.
    """
    rng = np.random.Generator(np.random.SFC64(settings.seed))
    if settings.limited_evaluation:
        batches = Batches.partition(
            rng, evaluator.n_instances, settings.batch_size, settings.reshuffle_batches
        )
    else:
        batches = Batches.all_instances(evaluator.n_instances)
    n_genes = len(decomposition.layer_of_gene)
    gene_order = None
    if decomposition.is_redrawn:
        gene_order = rng.permutation(n_genes)
        decomposition = decomposition.redraw(gene_order)
    subpopulations = _draw_individuals(rng, settings, decomposition, evaluator, initial_network)
    n_subpopulations = len(decomposition)
    dtype = np.dtype(settings.dtype)
    return SearchState(
        rng=rng,
        batches=batches,
        subpopulations=subpopulations,
        fitness=np.zeros((n_subpopulations, settings.population_size)),
        champions=np.zeros(n_subpopulations, dtype=np.int64),
        archives=[],
        n_archived=np.zeros(n_subpopulations, dtype=np.int64),
        control={},
        global_solution=np.zeros(n_genes, dtype=dtype),
        best_network=np.zeros(n_genes, dtype=dtype),
        gene_order=gene_order,
    )


def _draw_individuals(
    rng: np.random.Generator,
    settings: Settings,
    decomposition: Decomposition,
    evaluator: Evaluator,
    initial_network: Array | None,
) -> list[Array]:
    """Return the subpopulations of each block: uniform around 0 or around a network."""
    layers = decomposition.layer_of_gene
    reaches = np.broadcast_to(settings.initial_range, layers.max() + 1)
    if settings.scale_initial_range:
        reaches = reaches / np.sqrt(decomposition.layer_inputs)
        reaches[0] /= evaluator.input_size  # activations above are about 1
    reach = reaches[layers]
    subpopulations = []
    for genes in decomposition.genes_of_blocks:
        individuals = rng.uniform(-1, 1, (len(genes), settings.population_size, genes.shape[1]))
        individuals *= reach[genes][:, np.newaxis]
        if initial_network is not None:
            individuals += initial_network[genes][:, np.newaxis]
            individuals[:, 0] = initial_network[genes]
        subpopulations.append(individuals.astype(settings.dtype))
    return subpopulations
