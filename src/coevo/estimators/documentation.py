"""Fills in the docstrings of the estimators; settings are documented in `Settings` only."""

from __future__ import annotations

import textwrap
from dataclasses import fields
from typing import TypeVar

from coevo.core.settings import describe_settings

Estimator = TypeVar("Estimator", bound=type)

ATTRIBUTES = """\
    encoding_
        How the columns of X become the network's inputs.
    is_categorical_
        Which columns are categorical; None if none is.
    n_features_in_, feature_names_in_
        Number of features, and their names if X was a data frame.
    history_
        Columns by name, with a row for each generation; `pandas.DataFrame(history_)` is a table.
        The batch fitness is by `fitness`, the others by `validation_fitness`.
    train_fitness_, validation_fitness_
        Fitness of the network on the training and on the validation instances.
    chosen_on_
        The instances on which the network was chosen: "validation", or "training" if there were too
        few to split any off.
    n_evaluations_, n_iter_, stop_reason_
        Number of networks evaluated, number of generations, and why the search ended.
    settings_
        The settings of the search, with every "auto" resolved.
    engine_
        The engine that measured fitness: "delta", or "batched" for a decomposition that delta
        evaluation does not support.
"""
"""The fitted attributes of both estimators."""

OWN = {
    "fitness": """\
        The metric that the search maximises, also on the validation set: the name of one of
        coevo's or of scikit-learn's ("f1_weighted", "r2"), a metric from `coevo.metrics`, a
        scikit-learn scorer, or a function of (y_true, y_pred), both as in y, that is larger for
        better networks; `coevo.make_metric` makes a metric of a function of probabilities or
        outputs. Compiled, and therefore fast, are accuracy, balanced_accuracy, f1, f1_macro,
        matthews, cross_entropy, margin, squared_error and absolute_error. "auto" is cross_entropy
        for a classifier and squared_error for a regressor.""",
    "validation_fitness": """\
        The metric by which the best network is chosen on the validation set; None for
        `fitness`.""",
    "categorical_features": """\
        Which columns of X are categorical: "from_dtype" for those that a data frame has as category
        (pandas) or Categorical and Enum (polars), None for none, or a list of names, positions or
        flags. Categories are one-hot encoded, missing values as a category of their own; an unknown
        category sets all inputs of its column to 0. Categories are compared as text: 1, 1.0 and "1"
        are the same.""",
    "max_categories": """\
        The most frequent categories of a column, up to this many, get an input each; the others
        count as unknown.""",
    "scale_inputs": """\
        Map the range of each feature in the training instances to [−1, 1]. The scaling becomes part
        of the first layer's weights, so that `network_` and saved or exported models take unscaled
        inputs. On a stream, the range is that of the first batch.""",
    "check_range": """\
        Give a `coevo.OutOfRangeWarning`, one for each call, if instances to predict are far outside
        what was trained on: a number is beyond its column's range in training by more than three
        times the width of the range, a category is unknown, or values are missing in a column that
        had none missing.""",
    "batch_size": """\
        Instances in a batch under limited evaluation; at most all instances.""",
    "validation_fraction": """\
        Fraction of the instances that is split off for validation, stratified by class, unless
        `fit` is given a validation set. If that is fewer than 20 instances, too few to tell good
        networks apart, none are split off, and the best network on the training instances is
        kept.""",
    "generations_per_batch": """\
        Generations in each call of `partial_fit`.""",
    "warm_start": """\
        Let `fit` continue the search of the previous fit, with the same budget again. Under full
        evaluation all individuals are first measured again, because the instances may be
        different.""",
    "random_state": """\
        A whole number for the same result each time, a NumPy generator, or None for a different one
        each time. NumPy's global random state is never used.""",
    "callbacks": """\
        Functions called with the `coevo.Search` after each generation; a fit ends when one returns
        true.""",
    "checkpoint": """\
        A file to which `fit` saves its search every minute and at the end, also after Ctrl-C, or a
        `coevo.Checkpoint`, which sets how often. The previous checkpoint is kept as
        `<checkpoint>.previous`. None for no checkpoint.""",
    "resume": """\
        Let `fit` continue from the checkpoint, if the file exists. Network, history and counts are
        the same as if it had never stopped, also with `random_state=None`. Data and arguments must
        be the same except for the stopping criteria and `n_threads`: a fit that had ended continues
        with a larger budget. If False, the file must not exist yet.""",
    "verbose": """\
        Show progress.""",
    "class_weight": """\
        The weight of each class as a dictionary, "balanced" for weights inversely proportional to
        the frequencies of the classes, or None. Sample weights are multiplied by it, in training
        and validation.""",
}
"""The arguments that are not settings, or whose documentation differs from that in `Settings`."""


def documented(estimator: Estimator) -> Estimator:
    """Fill in the parameters and the common attributes in an estimator's docstring."""
    settings = describe_settings()
    entries = []
    for field in fields(estimator):
        text = OWN.get(field.name)
        if text is None:
            lines = textwrap.wrap(settings[field.name], 88, break_on_hyphens=False)
            text = textwrap.indent("\n".join(lines), " " * 8)
        entries.append(f"    {field.name}\n{text}\n")
    doc = estimator.__doc__ or ""
    doc = doc.replace("    [parameters]\n", "".join(entries))
    estimator.__doc__ = doc.replace("    [attributes]\n", ATTRIBUTES)
    return estimator
