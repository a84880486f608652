"""The engines by name, and which one serves a decomposition."""

from __future__ import annotations

import logging
from collections.abc import Callable

from coevo._validation import check_name
from coevo.core.decomposition import Decomposition
from coevo.core.evaluator import Evaluator
from coevo.core.network import Architecture
from coevo.engines.batched import BatchedEvaluator
from coevo.engines.delta import DeltaEvaluator
from coevo.engines.reference import ReferenceEvaluator
from coevo.engines.smoothed import SmoothedEvaluator
from coevo.engines.smoothed_reference import SmoothedReference

logger = logging.getLogger("coevo")

ENGINES: dict[str, Callable[..., Evaluator]] = {
    "delta": DeltaEvaluator,
    "batched": BatchedEvaluator,
    "reference": ReferenceEvaluator,
}
"""The Evaluators by name."""

SMOOTHING_ENGINES: dict[str, Callable[..., Evaluator]] = {
    "delta": SmoothedEvaluator,
    "reference": SmoothedReference,
}
"""The Evaluators for the strategy smoothing."""


def choose_engine(engine: str, architecture: Architecture, decomposition: Decomposition) -> str:
    """Return the engine's name, for "auto" that of the fastest that serves the decomposition."""
    check_name("engine", engine, ("auto", *ENGINES))
    if engine == "auto":
        engine = "delta" if DeltaEvaluator.serves(architecture, decomposition) else "batched"
        logger.debug("%s: served by the %s engine", decomposition.name, engine)
    return engine
