"""Gradient-free training of neural networks by cooperative co-evolution.

Public names are imported on first use, so that `import coevo` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from coevo._version import __version__

if TYPE_CHECKING:
    from coevo import datasets, study
    from coevo.core import metrics
    from coevo.core.decomposition import RandomGroups
    from coevo.core.extensions.adaptation import JDE, SHADE, Dither
    from coevo.core.extensions.base import Extension
    from coevo.core.extensions.batch_growth import BatchGrowth
    from coevo.core.extensions.in_place_fitness import InPlaceFitness
    from coevo.core.extensions.population_reduction import PopulationReduction
    from coevo.core.extensions.revival import Revival
    from coevo.core.extensions.turnover import Turnover
    from coevo.core.extensions.weight_decay import WeightDecay
    from coevo.core.metrics import make_metric
    from coevo.core.network import Architecture, Network
    from coevo.core.search import Search
    from coevo.core.settings import Settings
    from coevo.core.smoothing import Smoothing
    from coevo.core.strategy import CurrentToPBest, Strategy
    from coevo.estimators import CoevoClassifier, CoevoRegressor
    from coevo.estimators.display import HistoryDisplay, plot_history
    from coevo.estimators.range_check import OutOfRangeWarning
    from coevo.persistence.checkpoint_hook import Checkpoint
    from coevo.persistence.model import load as load_model
    from coevo.persistence.model import save as save_model
    from coevo.persistence.onnx import export_onnx
    from coevo.policies.ask_tell import AskTell
    from coevo.policies.evolve import PolicyResult, evolve_policy
    from coevo.policies.function import evolve_function
    from coevo.policies.policy import Policy, load_policy
    from coevo.training.evolve import evolve
    from coevo.training.paper import PAPER
    from coevo.training.result import Result
    from coevo.training.variants import VARIANTS

__all__ = [
    "JDE",
    "PAPER",
    "SHADE",
    "VARIANTS",
    "Architecture",
    "AskTell",
    "BatchGrowth",
    "Checkpoint",
    "CoevoClassifier",
    "CoevoRegressor",
    "CurrentToPBest",
    "Dither",
    "Extension",
    "HistoryDisplay",
    "InPlaceFitness",
    "Network",
    "OutOfRangeWarning",
    "Policy",
    "PolicyResult",
    "PopulationReduction",
    "RandomGroups",
    "Result",
    "Revival",
    "Search",
    "Settings",
    "Smoothing",
    "Strategy",
    "Turnover",
    "WeightDecay",
    "__version__",
    "datasets",
    "evolve",
    "evolve_function",
    "evolve_policy",
    "export_onnx",
    "load_model",
    "load_policy",
    "make_metric",
    "metrics",
    "plot_history",
    "save_model",
    "study",
]

_MODULES = {
    "datasets": "coevo.datasets",
    "metrics": "coevo.core.metrics",
    "study": "coevo.study",
}
_HOMES = {
    "JDE": "coevo.core.extensions.adaptation.JDE",
    "PAPER": "coevo.training.paper.PAPER",
    "SHADE": "coevo.core.extensions.adaptation.SHADE",
    "VARIANTS": "coevo.training.variants.VARIANTS",
    "Architecture": "coevo.core.network.Architecture",
    "AskTell": "coevo.policies.ask_tell.AskTell",
    "BatchGrowth": "coevo.core.extensions.batch_growth.BatchGrowth",
    "Checkpoint": "coevo.persistence.checkpoint_hook.Checkpoint",
    "CoevoClassifier": "coevo.estimators.CoevoClassifier",
    "CoevoRegressor": "coevo.estimators.CoevoRegressor",
    "CurrentToPBest": "coevo.core.strategy.CurrentToPBest",
    "Dither": "coevo.core.extensions.adaptation.Dither",
    "Extension": "coevo.core.extensions.base.Extension",
    "HistoryDisplay": "coevo.estimators.display.HistoryDisplay",
    "Network": "coevo.core.network.Network",
    "OutOfRangeWarning": "coevo.estimators.range_check.OutOfRangeWarning",
    "InPlaceFitness": "coevo.core.extensions.in_place_fitness.InPlaceFitness",
    "Policy": "coevo.policies.policy.Policy",
    "PolicyResult": "coevo.policies.evolve.PolicyResult",
    "PopulationReduction": "coevo.core.extensions.population_reduction.PopulationReduction",
    "Revival": "coevo.core.extensions.revival.Revival",
    "RandomGroups": "coevo.core.decomposition.RandomGroups",
    "Result": "coevo.training.result.Result",
    "Search": "coevo.core.search.Search",
    "Settings": "coevo.core.settings.Settings",
    "Smoothing": "coevo.core.smoothing.Smoothing",
    "Strategy": "coevo.core.strategy.Strategy",
    "Turnover": "coevo.core.extensions.turnover.Turnover",
    "WeightDecay": "coevo.core.extensions.weight_decay.WeightDecay",
    "evolve": "coevo.training.evolve.evolve",
    "evolve_function": "coevo.policies.function.evolve_function",
    "evolve_policy": "coevo.policies.evolve.evolve_policy",
    "export_onnx": "coevo.persistence.onnx.export_onnx",
    "load_model": "coevo.persistence.model.load",
    "load_policy": "coevo.policies.policy.load_policy",
    "make_metric": "coevo.core.metrics.make_metric",
    "plot_history": "coevo.estimators.display.plot_history",
    "save_model": "coevo.persistence.model.save",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = import_module(_MODULES[name])
    elif name in _HOMES:
        module, _, attribute = _HOMES[name].rpartition(".")
        value = getattr(import_module(module), attribute)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value  # so that this function is called once for each name
    return value


def __dir__() -> list[str]:
    return __all__
