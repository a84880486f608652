"""The paper's experiments: their settings and the results it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coevo.core.settings import Settings
from coevo.training.variants import variant_settings

INFERRED = frozenset({"initial_range", "reshuffle_batches", "dtype"})
"""Settings of the paper preset that the paper does not state; docs/fidelity.md says why these."""


@dataclass(frozen=True)
class PaperResult:
    """What the paper reports of one variant on one experiment.

    Parameters
    ----------
    train, validation, test
        Median accuracy in per cent over the runs, or their average.
    spreads
        The "±" of the three accuracies, None where there is none.
    relative_runtime
        Runtime as a multiple of LECCDE's.
    remark
        What else must be known to read the figures.
    is_average
        Whether the accuracies are averages.
    """

    train: float
    validation: float
    test: float
    spreads: tuple[float, float, float] | None
    relative_runtime: float
    remark: str = ""
    is_average: bool = False

    @property
    def spread(self) -> float | None:
        """The "±" of the test accuracy."""
        return None if self.spreads is None else self.spreads[2]


SHARED: dict[str, Any] = {
    "scale_factor": 0.1,
    "crossover_rate": 0.3,
    "decay": 0.2,
    "sampling_rounds": 5,
    "initial_range": 4.0,
    "fitness": "accuracy",
    "control": "fixed",
    "representative": "best",
    "strategy": "rand/1",
    "reshuffle_batches": False,
    "scale_initial_range": False,
    "extensions": (),
    "validate_every": "replacement",
    "activation": "tanh",
}
"""What all experiments of the paper have in common, stated or inferred; see docs/fidelity.md."""


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments: a data set, its settings and the reported results.

    Parameters
    ----------
    dataset
        WBC, ESR, HAR or MNIST.
    shape
        Inputs, hidden neurons and outputs.
    n_instances
        Rows before the 70/15/15 split.
    batch_size, population_size, max_evaluations
        As the paper states them.
    seconds
        Runtime of LECCDE on one core of a 3.5 GHz Xeon E5, None where not reported.
    results
        Reported results by variant.
    inferred
        Which of the fields above are our reading rather than the paper's word.
    """

    dataset: str
    shape: tuple[int, int, int]
    n_instances: int
    batch_size: int
    population_size: int
    max_evaluations: int
    seconds: float | None
    results: dict[str, PaperResult]
    inferred: frozenset[str] = frozenset()

    def settings(self, variant: str, **changes: Any) -> Settings:
        """Return the paper's settings for a variant, with the changes asked for."""
        return variant_settings(
            variant,
            **SHARED
            | {
                "hidden_layer_sizes": (self.shape[1],),
                "batch_size": self.batch_size,
                "population_size": self.population_size,
                "max_evaluations": self.max_evaluations,
            }
            | changes,
        )


_PARTIAL = "at 12 % of the time allotted"
_BESIDE_HAR = "runtime relative to HAR"

PAPER: dict[str, Experiment] = {
    "WBC": Experiment(
        "WBC", (30, 50, 2), 569, 100, 20, 50_000, 322,
        {
            "DE": PaperResult(94.74, 97.65, 95.29, (2.2, 0.8, 2.2), 2.12),
            "LEDE": PaperResult(95.99, 98.82, 95.29, (1.2, 0.6, 2.3), 1.43),
            "CCDE": PaperResult(96.49, 97.65, 96.47, (1.3, 0.8, 1.8), 1.10),
            "LECCDE": PaperResult(96.24, 97.65, 95.29, (1.9, 0.8, 2.8), 1.0),
        },
    ),
    "ESR": Experiment(
        "ESR", (178, 50, 2), 4600, 500, 20, 300_000, 2970,
        {
            "DE": PaperResult(90.50, 89.86, 89.57, (1.3, 1.2, 1.7), 2.66),
            "LEDE": PaperResult(92.86, 92.25, 91.30, (0.9, 0.8, 0.9), 1.26),
            "CCDE": PaperResult(93.94, 93.33, 92.17, (0.8, 0.3, 0.9), 2.05),
            "LECCDE": PaperResult(93.98, 92.61, 91.88, (0.6, 0.5, 1.0), 1.0),
        },
    ),
    "ESR-NP100": Experiment(
        "ESR", (178, 50, 2), 4600, 500, 100, 300_000, 2640,
        {
            "DE": PaperResult(81.99, 82.61, 80.65, (1.4, 1.2, 1.9), 2.62),
            "LEDE": PaperResult(80.25, 81.59, 80.14, (1.4, 0.8, 2.2), 1.30),
            "CCDE": PaperResult(91.65, 91.45, 90.29, (1.3, 0.7, 0.9), 2.01),
            "LECCDE": PaperResult(91.27, 90.58, 88.99, (0.8, 0.7, 1.1), 1.0),
        },
    ),
    "HAR": Experiment(
        "HAR", (561, 50, 6), 7144, 500, 20, 500_000, 6530,
        {
            "DE": PaperResult(70.06, 70.06, 68.38, (2.9, 2.7, 3.0), 4.75),
            "LEDE": PaperResult(77.5, 77.99, 76.96, (5.2, 4.8, 4.8), 1.28),
            "CCDE": PaperResult(94.01, 92.72, 92.4, (0.8, 0.7, 1.0), 4.0),
            "LECCDE": PaperResult(93.58, 93.19, 92.16, (0.6, 0.5, 0.7), 1.0),
        },
    ),
    "HAR-900k": Experiment(
        "HAR", (561, 50, 6), 7144, 500, 20, 900_000, None,
        {"LECCDE": PaperResult(95.78, 94.31, 93.28, None, 1.6, _BESIDE_HAR, is_average=True)},
    ),
    "HAR-batch1000": Experiment(
        "HAR", (561, 50, 6), 7144, 1000, 20, 500_000, None,
        {"LECCDE": PaperResult(96.60, 93.84, 93.38, None, 1.42, _BESIDE_HAR, is_average=True)},
    ),
    "MNIST": Experiment(
        "MNIST", (784, 60, 10), 60_000, 1000, 60, 2_160_000, 6.6e4,
        {
            "DE": PaperResult(61.60, 61.26, 62.52, None, 27.2, _PARTIAL),
            "LEDE": PaperResult(
                82.68, 82.01, 82.23, (0.36, 0.75, 0.25), 1.1, "3 runs", is_average=True
            ),
            "CCDE": PaperResult(62.40, 61.80, 63.20, None, 25.3, _PARTIAL),
            "LECCDE": PaperResult(
                91.79, 91.01, 90.80, (0.28, 0.63, 0.15), 1.0, "3 runs", is_average=True
            ),
        },
        inferred=frozenset({"shape", "seconds"}),
    ),
    "MNIST-H50": Experiment(
        "MNIST", (784, 50, 10), 60_000, 1000, 60, 2_160_000, None, {},
        inferred=frozenset({"shape"}),
    ),
}  # fmt: skip
"""The paper's experiments by name. MNIST-H50 is the other reading of MNIST's hidden layer."""
