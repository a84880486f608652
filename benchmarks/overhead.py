"""What the scikit-learn estimator costs on top of the bare search, on HAR.

Run it with `make overhead`. `CoevoClassifier.fit` and the search alone do the same generations on
the same data, one after the other in turn; rewrites benchmarks/results/overhead.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from machine import describe_machine
from speed import find_data

from coevo import PAPER, CoevoClassifier

N_PAIRS = 12


def main() -> None:
    data, kind = find_data("HAR")
    settings = PAPER["HAR"].settings("LECCDE")
    classifier = CoevoClassifier(
        settings.hidden_layer_sizes,
        max_evaluations=settings.max_evaluations,
    )

    def fit() -> float:
        start = time.perf_counter()
        classifier.fit(data.X_train, data.y_train, X_val=data.X_valid, y_val=data.y_valid)
        return time.perf_counter() - start

    def search() -> float:
        return data.evolve(settings).seconds  # with a new seed each time, as the fit

    fit(), search()  # compile
    ratios, inner = [], []
    for pair in range(N_PAIRS):
        # Whoever comes second finds warmer caches and clocks, so they take turns.
        if pair % 2:
            bare, whole = search(), fit()
        else:
            whole, bare = fit(), search()
        ratios.append(whole / bare)
        inner.append(whole / classifier.history_["seconds"][-1])
    low, median, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    text = (
        "# What the estimator costs\n\n"
        f"`CoevoClassifier.fit` on HAR ({kind} data), checks, scaling and all, takes "
        f"{np.median(inner):.3f} × the time of the search within it, and {median:.3f} × the time "
        f"of a separate bare search of as many evaluations ({settings.max_evaluations:,}; "
        f"quartiles {low:.3f} and {high:.3f}; medians over {N_PAIRS} pairs of runs in "
        "alternating order).\n\n"
        f"Measured with `make overhead`. {describe_machine()}\n"
    )
    (Path(__file__).parent / "results" / "overhead.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
