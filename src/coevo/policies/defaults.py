"""The defaults of black boxes, which are not those of `Settings`; docs/howto/policy.md has them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coevo.core.component import is_auto
from coevo.core.network import Architecture
from coevo.core.settings import Settings
from coevo.core.smoothing import Smoothing
from coevo.training.evolve import resolve_settings
from coevo.training.variants import VARIANTS

DEFAULTS: dict[str, Any] = {
    "hidden_layer_sizes": (8,),
    "decomposition": "layer",
    "strategy": "rand/1",
    "extensions": (),
    "batch_size": 1,
    "population_size": 10,
    "scale_factor": 0.5,
    "crossover_rate": 0.5,
    "initial_range": 1.0,
    "scale_initial_range": True,
    "representative": "best",
    "sampling_rounds": 5,
    "max_evaluations": 20_000,
}
"""What black boxes have instead of the defaults of `Settings`, and instead of "auto"."""


def complete(
    settings: Settings | None, variant: str | None, changes: dict[str, Any]
) -> dict[str, Any]:
    """Return changes to settings, with the defaults of black boxes for what is not given.

    Settings that are given as an object are complete but for "auto". A variant has switches of its
    own.

    Raises
    ------
    ValueError
        If the strategy is smoothing, which only data sets can serve.
    """
    strategy = changes.get("strategy", getattr(settings, "strategy", None))
    if str(strategy).partition("(")[0] == Smoothing.name:
        raise ValueError(
            'strategy="smoothing" needs a data set; what is measured elsewhere needs a strategy '
            'of differential evolution, such as "rand/1"'
        )
    if settings is None:
        switches = VARIANTS.get(variant or "", {})
        return {n: value for n, value in DEFAULTS.items() if n not in switches} | changes
    autos = {n: DEFAULTS[n] for n in DEFAULTS if is_auto(getattr(settings, n, None))}
    return autos | changes


def settle_settings(
    settings: Settings | None,
    variant: str | None,
    architecture: Architecture,
    n_instances: int,
    changes: dict[str, Any],
) -> Settings:
    """Return settings for networks of an architecture."""
    if not isinstance(architecture, Architecture):
        raise TypeError(f"architecture must be a coevo.Architecture, got {architecture!r}")
    for name in ("hidden_layer_sizes", "activation"):
        if name in changes:
            raise ValueError(f"{name} is part of architecture; give it there alone")
    if "fitness" in changes or (settings is not None and not is_auto(settings.fitness)):
        raise ValueError("fitness is what measure returns; give that alone")
    completed = complete(settings, variant, changes)
    if settings is None and "batch_size" not in changes:
        completed["batch_size"] = min(completed["batch_size"], n_instances)
    return replace(
        resolve_settings(settings, variant, completed),
        hidden_layer_sizes=architecture.hidden_layer_sizes,
        activation=architecture.activation,
    )
