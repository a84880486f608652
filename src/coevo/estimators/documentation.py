"""Puts the documentation of the arguments together: settings are documented in `Settings` only."""

from __future__ import annotations

import textwrap
from dataclasses import fields
from typing import TypeVar

from coevo.core.settings import describe_settings

Estimator = TypeVar("Estimator", bound=type)

_PLACE = "    [parameters]\n"

OWN = {
    "fitness": """\
        What the search maximises and validation uses: a name of a metric of coevo's or of
        scikit-learn's ("f1_weighted", "r2"), a metric from `coevo.metrics`, a scorer of
        scikit-learn's, or a function of (y_true, y_pred), both as in y, that is larger for better
        networks; `coevo.make_metric` makes one from a function of probabilities or outputs.
        Compiled, and so the quick ones: accuracy, balanced_accuracy, f1, f1_macro, matthews,
        cross_entropy, margin, squared_error, absolute_error. "auto" is cross_entropy for a
        classifier and squared_error for a regressor.""",
    "validation_fitness": """\
        Another metric by which the validation set chooses the network that is kept; None for the
        same.""",
    "categorical_features": """\
        Which columns of X are categorical: "from_dtype" for those that a data frame has as category
        (pandas) or Categorical and Enum (polars), None for none, or a list of names, positions or
        flags. Each category that occurs in training has an input of its own, which is 1 for its
        instances, and so has a missing value if some are missing; all inputs of the column are 0
        for an unknown category. A category is known by its text: 1, 1.0 and "1" are the same.""",
    "max_categories": """\
        How many categories of a column have an input of their own, the most frequent ones; the
        others are treated as unknown.""",
    "scale_inputs": """\
        Map the range of each feature in the training instances to [−1, 1]. The scaling becomes part
        of the first layer's weights, so that `network_`, a saved model and an exported one all take
        unscaled inputs. On a stream, the first batch decides.""",
    "check_range": """\
        Give one `coevo.OutOfRangeWarning` a call if instances to predict are far outside what was
        trained on: a number beyond its column's range in training by over three times its width,
        an unknown category, or missing values in a column that had none.""",
    "batch_size": """\
        Instances in a batch, if evaluation is limited, but no more than there are.""",
    "validation_fraction": """\
        Fraction of the instances that is split off for validation, stratified by class, unless
        `fit` is given a validation set. If that is fewer than 20 instances, too few to tell good
        networks apart, none are split off and the network that is kept is the best on the training
        instances.""",
    "generations_per_batch": """\
        Generations in each call of `partial_fit`.""",
    "warm_start": """\
        Let `fit` go on from the previous fit's search, with the budget granted anew. Under full
        evaluation all individuals are measured again first, as the instances may be others.""",
    "random_state": """\
        A whole number for the same result each time, a NumPy generator, or None. NumPy's global
        random state is never used.""",
    "callbacks": """\
        Called with the `coevo.Search` after each generation; a true answer ends the fit.""",
    "checkpoint": """\
        A file to which `fit` saves its search every minute and at the end, also after Ctrl-C, or a
        `coevo.Checkpoint`, which says how often. The checkpoint before is kept beside it as
        `<checkpoint>.previous`. None for no checkpoint.""",
    "resume": """\
        Let `fit` go on from the checkpoint, if there is one, and end with the network, history and
        counts it would have had if it had never stopped, with `random_state=None` too. Data and
        arguments must be the same, but for the stopping criteria and `n_threads`: with a larger
        budget a fit that had ended goes on. If False, there must be no checkpoint yet.""",
    "verbose": """\
        Show progress.""",
    "class_weight": """\
        The weight of each class as a dictionary, "balanced" for weights inverse to how often the
        classes occur, or None. It multiplies the sample weights in training and validation.""",
}
"""The arguments that are not settings of the search, or mean more than there."""


def documented(estimator: Estimator) -> Estimator:
    """Fill the place for parameters in an estimator's docstring."""
    settings = describe_settings()
    entries = []
    for field in fields(estimator):
        text = OWN.get(field.name)
        if text is None:
            lines = textwrap.wrap(settings[field.name], 88, break_on_hyphens=False)
            text = textwrap.indent("\n".join(lines), " " * 8)
        entries.append(f"    {field.name}\n{text}\n")
    doc = estimator.__doc__ or ""
    estimator.__doc__ = doc.replace(_PLACE, "".join(entries))
    return estimator
