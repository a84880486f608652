"""Fits in forked children and in many threads at once, and scores that tie exactly."""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn import metrics
from threadpoolctl import threadpool_info

from attack.tally import Tally, rounds
from coevo import CoevoClassifier, evolve
from coevo.runtime import threads

PATIENCE = 120
"""Seconds after which a child that has not ended is taken to hang."""


def _fit(X: Any, y: Any, changes: dict[str, Any]) -> bytes:
    settings = {"max_evaluations": 4000, "random_state": 1, **changes}
    fitted = CoevoClassifier(**settings).fit(X, y)
    return bytes(fitted.network_.genotype.tobytes())


def _fit_and_tell(pipe: Any, *arguments: Any) -> None:
    pipe.send(_fit(*arguments))


def attack_by_forks(seconds: float, seed: int, folder: Path) -> Tally:
    """Fit in the parent, then, or meanwhile, in forked children, which must end, and end alike."""
    tally, generator = Tally(), random.Random(seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5000, 200))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    warnings.simplefilter("ignore")  # Python's own about forks beside threads
    fork = multiprocessing.get_context("fork")
    for _ in rounds(seconds):
        changes = {"n_threads": generator.choice((None, 2, 3)), "hidden_layer_sizes": (20,)}
        expected = _fit(X, y, changes)
        meanwhile = threading.Thread(target=_fit, args=(X, y, changes), daemon=True)
        if is_meanwhile := generator.random() < 0.5:
            meanwhile.start()
        children = []
        for _ in range(2):
            here, there = fork.Pipe(duplex=False)
            children.append((fork.Process(target=_fit_and_tell, args=(there, X, y, changes)), here))
            children[-1][0].start()
        for child, pipe in children:
            tally.counts["forked children"] += 1
            has_answered = pipe.poll(PATIENCE)
            tally.expect(has_answered, f"{changes}, meanwhile={is_meanwhile}: the child hangs")
            if has_answered:
                tally.expect(pipe.recv() == expected, f"{changes}: the child's network differs")
            else:
                child.kill()
            child.join()
        if is_meanwhile:
            meanwhile.join()
    return tally


def count_blas_threads() -> list[int]:
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def attack_by_threads(seconds: float, seed: int, folder: Path) -> Tally:
    """Fit in eight threads at once; each result is that of a fit alone, and BLAS is as it was."""
    tally, generator = Tally(), random.Random(seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 30))
    y = (X[:, :3].sum(axis=1) > 0).astype(int)
    for _ in rounds(seconds):
        all_changes = [
            {
                "hidden_layer_sizes": (generator.randint(2, 30),),
                "n_threads": generator.choice((None, 1, 2)),
                "random_state": k,
            }
            for k in range(8)
        ]
        expected = [_fit(X, y, changes) for changes in all_changes]
        before = count_blas_threads()
        found: dict[int, bytes] = {}

        def fit(k: int, found: dict[int, bytes], changes: dict[str, Any], pause: float) -> None:
            time.sleep(pause)
            found[k] = _fit(X, y, changes)

        runs = [
            threading.Thread(target=fit, args=(k, found, changes, generator.uniform(0, 0.1)))
            for k, changes in enumerate(all_changes)
        ]
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        tally.counts["fits side by side"] += len(runs)
        after = count_blas_threads()
        tally.expect(before == after, f"BLAS had {before} threads and has {after}")
        for k, changes in enumerate(all_changes):
            tally.expect(found.get(k) == expected[k], f"{changes}: differs from a fit alone")
    return tally


# --------------------------------------------------------------------------------- tied scores


def _roc_auc(y: Any, outputs: Any) -> float:
    exact = outputs.astype(np.float64)
    if exact.shape[1] == 2:
        return float(metrics.roc_auc_score(y, exact[:, 1] - exact[:, 0]))
    shares = np.exp(exact - exact.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    return float(metrics.roc_auc_score(y, shares, multi_class="ovr"))


def _of_labels(metric: Callable[..., float], **options: Any) -> Callable[[Any, Any], float]:
    return lambda y, outputs: float(metric(y, outputs.argmax(axis=1), **options))


SCORES: dict[str, Callable[[Any, Any], float]] = {
    "accuracy": _of_labels(metrics.accuracy_score),
    "balanced_accuracy": _of_labels(metrics.balanced_accuracy_score),
    "f1_macro": _of_labels(metrics.f1_score, average="macro"),
    "matthews": _of_labels(metrics.matthews_corrcoef),
    "roc_auc": _roc_auc,
    # scikit-learn's log_loss is the same, but no worse than the logarithm of its smallest number.
    "cross_entropy": lambda y, outputs: float(
        log_softmax(outputs.astype(np.float64), axis=1)[np.arange(len(y)), y].mean()
    ),
}
"""What scikit-learn or SciPy says of outputs, by the name of our metric."""


def attack_by_ties(seconds: float, seed: int, folder: Path) -> Tally:
    """Compare what is reported of the kept network with scikit-learn's word, where scores tie."""
    tally, generator = Tally(), random.Random(seed)
    for number in rounds(seconds):
        rng = np.random.default_rng([seed, number])
        n_classes = int(rng.integers(2, 4))
        X = rng.integers(-2, 3, (260, 3)).astype(np.float64)
        y = (X[:, 0] + rng.normal(scale=1.5, size=260) > 0).astype(int)
        y[:6] = np.arange(6) % 2
        if n_classes == 3:
            y[rng.random(260) < 0.3] = 2
            y[:6] = y[160:166] = np.arange(6) % 3
        decomposition, engine = generator.choice([
            ("neuron", "delta"), ("synapse", "delta"), ("neuron_outgoing", "delta"),
            ("whole", "batched"), ("layer", "batched"), ("neuron", "reference"),
        ])  # fmt: skip
        activation, width = generator.choice(
            [("sign", "auto"), ("tanh", 300.0), ("sigmoid", 300.0), ("relu", "auto")]
        )
        fitness = generator.choice(list(SCORES))
        dtype = generator.choice(("float32", "float64"))
        result = evolve(
            X[:160], y[:160], X[160:], y[160:], fitness=fitness, engine=engine, dtype=dtype,
            activation=activation, initial_range=width, decomposition=decomposition,
            hidden_layer_sizes=generator.choice(((5,), (4, 3))), max_evaluations=None,
            max_generations=4, population_size=6, batch_size=80, sampling_rounds=1, n_threads=1,
            seed=number,
        )  # fmt: skip
        tally.counts["runs with tied scores"] += 1
        what = f"{fitness}, {engine}, {decomposition}, {activation}, {dtype}, seed {number}"
        tolerance = 1e-4 if fitness == "cross_entropy" else 1e-9
        for part, rows in (("train", slice(160)), ("validation", slice(160, None))):
            with threads.limit(1):
                outputs = result.network.outputs(X[rows].astype(dtype))
            expected = SCORES[fitness](y[rows], outputs)
            found = getattr(result, f"{part}_fitness")
            is_same = bool(np.isclose(found, expected, rtol=tolerance, atol=tolerance))
            tally.expect(is_same, f"{what}: {part} {found} and not {expected}")
    return tally
