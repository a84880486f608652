"""The paper's accuracies with their spreads."""

from __future__ import annotations

from dataclasses import dataclass

from coevo.training.paper import PAPER

PARTS = ("train", "validation", "test")
"""The parts of the data, in the order of the tables."""

_SPREADS: dict[str, dict[str, tuple[float, float, float]]] = {
    "WBC": {
        "DE": (2.2, 0.8, 2.2),
        "LEDE": (1.2, 0.6, 2.3),
        "CCDE": (1.3, 0.8, 1.8),
        "LECCDE": (1.9, 0.8, 2.8),
    },
    "ESR": {
        "DE": (1.3, 1.2, 1.7),
        "LEDE": (0.9, 0.8, 0.9),
        "CCDE": (0.8, 0.3, 0.9),
        "LECCDE": (0.6, 0.5, 1.0),
    },
    "ESR-NP100": {
        "DE": (1.4, 1.2, 1.9),
        "LEDE": (1.4, 0.8, 2.2),
        "CCDE": (1.3, 0.7, 0.9),
        "LECCDE": (0.8, 0.7, 1.1),
    },
    "HAR": {
        "DE": (2.9, 2.7, 3.0),
        "LEDE": (5.2, 4.8, 4.8),
        "CCDE": (0.8, 0.7, 1.0),
        "LECCDE": (0.6, 0.5, 0.7),
    },
    "MNIST": {
        "LEDE": (0.36, 0.75, 0.25),
        "LECCDE": (0.28, 0.63, 0.15),
    },
}


@dataclass(frozen=True)
class Reported:
    """One accuracy of the paper, in per cent; `spread` is None where the paper gives none."""

    value: float
    spread: float | None

    def judge(self, percent: float) -> str:
        """Return "within" if a median lies within value ± spread, else "above" or "below".

        "unknown" if there is no spread.
        """
        if self.spread is None:
            return "unknown"
        # Accuracies are printed with two decimals; half a unit of the last one is rounding.
        if abs(percent - self.value) <= self.spread + 0.005:
            return "within"
        return "above" if percent > self.value else "below"


def reported(experiment: str, variant: str, part: str) -> Reported:
    """Return an accuracy of the paper.

    Parameters
    ----------
    experiment
        A key of `coevo.PAPER`.
    variant
        DE, LEDE, CCDE or LECCDE.
    part
        train, validation or test.
    """
    result = PAPER[experiment].results[variant]
    spreads = _SPREADS.get(experiment, {}).get(variant)
    return Reported(getattr(result, part), spreads[PARTS.index(part)] if spreads else None)
