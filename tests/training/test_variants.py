"""The four names: what each of them makes a run do."""

import numpy as np
import pytest

from coevo import evolve
from coevo.training.variants import VARIANTS, variant_settings


@pytest.mark.parametrize(
    ("variant", "cooperates", "is_limited"),
    [("DE", False, False), ("LEDE", False, True), ("CCDE", True, False), ("LECCDE", True, True)],
)
def test_a_run_cooperates_and_is_limited_as_its_name_says(
    make_classification_data, variant, cooperates, is_limited
):
    inputs, targets = make_classification_data(np.random.default_rng(1))
    searches, sizes = [], []

    def watch(search):
        searches.append(search)
        sizes.append(len(search.evaluator._batch))

    result = evolve(
        inputs[:40], targets[:40], inputs[40:], targets[40:], variant=variant, engine="reference",
        hidden_layer_sizes=(4,), population_size=6, batch_size=10, max_generations=3, seed=1,
        callbacks=[watch],
    )  # fmt: skip
    # One subpopulation for each neuron (CC), or one of complete networks.
    assert len(searches[0].decomposition) == (4 + 3 if cooperates else 1)
    # Batches and two measurements a target (LE), or all instances and one.
    assert sizes == [10 if is_limited else 40] * 3
    spent = np.diff(result.history.columns()["evaluations"])
    # Under full evaluation everyone is measured once more before the first generation.
    each = len(searches[0].decomposition) * 6
    first = each if cooperates and not is_limited else 0
    assert (spent - [first, 0, 0] == each * (2 if is_limited else 1)).all()


def test_every_variant_is_one_of_the_four():
    assert list(VARIANTS) == ["DE", "LEDE", "CCDE", "LECCDE"]
    for variant in VARIANTS:
        settings = variant_settings(variant, population_size=7)
        assert settings.population_size == 7
        assert {name: getattr(settings, name) for name in VARIANTS[variant]} == VARIANTS[variant]


def test_a_contradiction_is_refused():
    with pytest.raises(ValueError, match="decomposition='layer' contradicts variant='CCDE'"):
        variant_settings("CCDE", decomposition="layer")
    assert variant_settings("CCDE", decomposition="neuron") == variant_settings("CCDE")
