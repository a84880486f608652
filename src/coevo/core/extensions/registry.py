"""The extensions that settings know by name."""

from __future__ import annotations

from coevo.core.extensions.base import Extension
from coevo.core.extensions.batch_growth import BatchGrowth
from coevo.core.extensions.in_place_fitness import InPlaceFitness
from coevo.core.extensions.population_reduction import PopulationReduction
from coevo.core.extensions.revival import Revival
from coevo.core.extensions.turnover import Turnover
from coevo.core.extensions.weight_decay import WeightDecay

EXTENSIONS: dict[str, type[Extension]] = {
    kind.name: kind
    for kind in (BatchGrowth, InPlaceFitness, PopulationReduction, Revival, Turnover, WeightDecay)
}
"""Extensions by name, for files and the command line; any `Extension` object will do in Python."""
