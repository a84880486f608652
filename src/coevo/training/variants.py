"""The variants DE, LEDE, CCDE and LECCDE: one algorithm with two switches."""

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
    """Return the settings of a variant (DE, LEDE, CCDE or LECCDE), with other changes."""
    return Settings.from_names(with_switches(variant, changes))


def with_switches(variant: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return changes with the two switches of a variant added; raise if they contradict them.

    The variants are differential evolution: without a strategy among the changes, it is rand/1.
    """
    check_name("variant", variant, VARIANTS)
    for switch, value in VARIANTS[variant].items():
        if changes.get(switch, value) != value:
            raise ValueError(
                f"{switch}={changes[switch]!r} contradicts variant={variant!r}, which means "
                f"{switch}={value!r}; give one of the two"
            )
    return {"strategy": "rand/1"} | changes | VARIANTS[variant]
