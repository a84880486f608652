"""Settings of results that version 0.1 wrote, in today's names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coevo.core.decomposition import RandomGroups
from coevo.core.extensions.adaptation import JDE, SHADE, Dither
from coevo.core.extensions.batch_growth import BatchGrowth
from coevo.core.extensions.population_reduction import PopulationReduction
from coevo.core.extensions.weight_decay import WeightDecay
from coevo.core.settings import MOVED
from coevo.core.strategy import CurrentToPBest, Strategy

_BEFORE = {"control": "fixed", "representative": "best", "scale_initial_range": False}
"""What the first results, which do not name these settings, were made with."""


def modernise(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in today's names; those of version 0.1 listed every setting flat."""
    if not MOVED.keys() & settings.keys():
        return dict(settings)
    settings = dict[str, Any](_BEFORE) | dict(settings)
    modern = {name: value for name, value in settings.items() if name not in MOVED}
    old: dict[str, Any] = {name: settings.get(name) for name in MOVED}
    modern["strategy"] = str(_strategy(settings.get("strategy", "rand/1"), settings))
    control = settings.get("control", "fixed")
    low, high = old["scale_factor_range"] or (0.04, 0.4)
    if control == "dither":
        modern["control"] = str(Dither(low, high))
    elif control == "jde":
        modern["control"] = str(JDE(low, high, settings.get("redraw_probability", 0.1)))
    elif control == "shade":
        modern["control"] = str(SHADE(settings.get("memory_size", 5)))
    if settings.get("decomposition") == "random":
        groups = (settings.get("group_size", 100), settings.get("redraw_groups_every", 10))
        modern["decomposition"] = str(RandomGroups(*groups))
    extensions = []
    if old["weight_decay"]:
        extensions.append(str(WeightDecay(old["weight_decay"])))
    if old["final_population_size"] is not None:
        extensions.append(str(PopulationReduction(old["final_population_size"])))
    if old["final_batch_size"] is not None:
        extensions.append(str(BatchGrowth(old["final_batch_size"])))
    return modern | {"extensions": extensions}


def _strategy(mutation: str, settings: Mapping[str, Any]) -> Strategy:
    shared = {
        "crossover": settings.get("crossover", "binomial"),
        "synchronous": settings.get("synchronous", True),
        "accept_ties": settings.get("accept_ties", True),
    }
    if mutation == "current-to-pbest/1":
        share, rate = settings.get("pbest_share", 0.1), settings.get("archive_rate", 1.0)
        return CurrentToPBest(share=share, archive_rate=rate, **shared)
    return Strategy(mutation, **shared)
