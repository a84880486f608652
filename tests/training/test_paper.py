"""The paper's settings and figures, against what is transcribed from its text and tables."""

import csv
from pathlib import Path

import pytest

from coevo import PAPER, Strategy
from coevo.core.defaults import resolve
from coevo.core.network import Architecture
from coevo.training.variants import VARIANTS

HERE = Path(__file__).parent


def read(name):
    with (HERE / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_reported_results_are_those_of_the_papers_tables():
    rows = {(row.pop("experiment"), row.pop("variant")): row for row in read("paper_results.csv")}
    ours = {(name, v): r for name, e in PAPER.items() for v, r in e.results.items()}
    assert ours.keys() == rows.keys()
    for key, row in rows.items():
        expected = {field: float(text) if text else None for field, text in row.items()}
        reported = ours[key]
        train_spread, validation_spread, test_spread = reported.spreads or (None, None, None)
        assert {
            "train": reported.train, "train_spread": train_spread,
            "validation": reported.validation, "validation_spread": validation_spread,
            "test": reported.test, "test_spread": test_spread,
            "runtime": reported.relative_runtime,
        } == expected, key  # fmt: skip


def test_setups_are_the_papers():
    rows = {row["experiment"]: row for row in read("paper_setups.csv")}
    assert PAPER.keys() - rows.keys() == {"MNIST-H50"}  # the other reading of MNIST
    for name, row in rows.items():
        experiment = PAPER[name]
        n_inputs, n_hidden, n_outputs = experiment.shape
        architecture = Architecture(n_inputs, (n_hidden,), n_outputs)
        ours = {
            "features": n_inputs, "classes": n_outputs, "instances": experiment.n_instances,
            "parameters": architecture.n_genes, "batch_size": experiment.batch_size,
            "population_size": experiment.population_size,
            "evaluations": experiment.max_evaluations,
        }  # fmt: skip
        assert ours == {key: int(row[key]) for key in ours}, name


@pytest.mark.parametrize("name", PAPER)
@pytest.mark.parametrize("variant", VARIANTS)
def test_paper_settings(name, variant):
    settings = PAPER[name].settings(variant, seed=3)
    assert (settings.scale_factor, settings.crossover_rate, settings.decay) == (0.1, 0.3, 0.2)
    assert settings.strategy == Strategy("rand/1", "binomial", synchronous=True, accept_ties=True)
    assert (settings.sampling_rounds, settings.seed) == (5, 3)
    assert settings.hidden_layer_sizes == (PAPER[name].shape[1],)
    assert settings.batch_size == PAPER[name].batch_size
    assert settings.population_size == PAPER[name].population_size
    assert settings.max_evaluations == PAPER[name].max_evaluations
    assert resolve(settings) == settings  # nothing is left to the library
