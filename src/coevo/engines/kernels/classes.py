"""Compiled predictions: which class has the largest logit, the first one if tied.

Shapes: B instances, C classes, m networks or candidates.
"""

from __future__ import annotations

import numpy as np

from coevo.engines.kernels.candidates import find_shift
from coevo.runtime.jit import compiled, fill


@compiled
def choose_first(logit, largest, chosen):
    """Begin with the first class: largest and chosen: (B,), written."""
    for k in range(len(logit)):
        largest[k] = logit[k]
        chosen[k] = 0


@compiled
def choose_larger(logit, c, largest, chosen):
    """Choose class c where its logit, (B,), is larger than the largest so far.

    Without a branch: a store under a condition would keep compilers from using SIMD.
    """
    for k in range(len(logit)):
        is_larger = np.int32(logit[k] > largest[k])
        chosen[k] += is_larger * (c - chosen[k])
        largest[k] = np.maximum(logit[k], largest[k])


@compiled
def predict_shifted(logits, slopes, shift, moved, largest, chosen):
    """Predict the classes once each logit has moved by slope times shift.

    logits: (C, B), slopes: (C,), shift: (B,), moved and largest: (B,) for scratch, chosen: (B,)
    int32, written.
    """
    for c in range(len(slopes)):
        logit, slope = logits[c], slopes[c]
        for k in range(len(shift)):
            moved[k] = logit[k] + slope * shift[k]
        if c == 0:
            choose_first(moved, largest, chosen)
        else:
            choose_larger(moved, np.int32(c), largest, chosen)


@compiled
def count_right(logits, targets, largest):
    """Return how many instances are classified right.

    logits: (C, B), targets: (B,) int32, largest: (B,) for scratch.
    """
    chosen = np.empty(len(targets), dtype=np.int32)
    choose_first(logits[0], largest, chosen)
    for c in range(1, len(logits)):
        choose_larger(logits[c], np.int32(c), largest, chosen)
    count = np.int32(0)
    for k in range(len(targets)):
        count = np.int32(count + np.int32(chosen[k] == targets[k]))
    return count


@compiled
def fill_confusion_matrices(targets, weights, candidates, matrices):
    """Add up weights by true and predicted class, for each candidate.

    targets: (B,) int32, weights: (B,), matrices: (m, C, C), written.
    """
    shift, largest = np.empty_like(candidates.now), np.empty_like(candidates.now)
    moved = np.empty_like(candidates.now)
    chosen = np.empty(len(targets), dtype=np.int32)
    for j in range(len(matrices)):
        find_shift(candidates, j, shift)
        predict_shifted(candidates.outputs, candidates.slopes, shift, moved, largest, chosen)
        for c in range(matrices.shape[1]):
            fill(matrices[j, c], 0.0)
        for k in range(len(targets)):
            matrices[j, targets[k], chosen[k]] += weights[k]
