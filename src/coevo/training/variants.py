"""The 2×2 table that names DE, LEDE, CCDE and LECCDE: one algorithm, two switches."""

from __future__ import annotations

from typing import Any

from coevo._validation import check_name
from coevo.core.settings import Settings

VARIANTS: dict[str, dict[str, Any]] = {
    "DE": {"decomposition": "whole", "limited_evaluation": False},
    "LEDE": {"decomposition": "whole", "limited_evaluation": True},
    "CCDE": {"decomposition": "neuron", "limited_evaluation": False},
    "LECCDE": {"decomposition": "neuron", "limited_evaluation": True},
}
"""The two switches of each variant."""


def variant_settings(variant: str, **changes: Any) -> Settings:
    """Return settings with the switches of a variant.

    Parameters
    ----------
    variant
        DE, LEDE, CCDE or LECCDE.
    changes
        Any other settings.
    """
    return Settings.from_names(with_switches(variant, changes))


def with_switches(variant: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Add a variant's two switches to changes of settings, unless those contradict them.

    The variants are differential evolution: the strategy is one of its own if none is given.
    """
    check_name("variant", variant, VARIANTS)
    for switch, value in VARIANTS[variant].items():
        if changes.get(switch, value) != value:
            raise ValueError(
                f"{switch}={changes[switch]!r} contradicts variant={variant!r}, which means "
                f"{switch}={value!r}; give one of the two"
            )
    return {"strategy": "rand/1"} | changes | VARIANTS[variant]
