"""The state that a search begins with."""

import numpy as np
import pytest

from coevo import RandomGroups
from coevo.core.decomposition import NAMES
from coevo.core.settings import Settings


@pytest.mark.parametrize("decomposition", NAMES)
def test_each_layer_may_have_its_initial_range(make_search, decomposition):
    settings = Settings(
        strategy="rand/1",
        hidden_layer_sizes=(3,),
        initial_range=[0.01, 2],
        scale_initial_range=False,
        decomposition=RandomGroups(5) if decomposition == "random" else decomposition,
        seed=1,
        batch_size=20,
    )
    search = make_search(settings)
    networks = np.stack([search._compose(np.full(len(search.decomposition), j)) for j in range(20)])
    assert 0.009 < np.abs(networks[:, :15]).max() <= 0.01
    assert 1.8 < np.abs(networks[:, 15:]).max() <= 2


@pytest.mark.parametrize("decomposition", NAMES)
@pytest.mark.parametrize("initial_range", [2.0, (2.0, 2.0)])
def test_initial_ranges_scaled_to_the_inputs(make_search, decomposition, initial_range):
    settings = Settings(
        strategy="rand/1", hidden_layer_sizes=(9,), seed=1, batch_size=20,
        decomposition=RandomGroups(9) if decomposition == "random" else decomposition,
        initial_range=initial_range, scale_initial_range=True,
    )  # fmt: skip
    search = make_search(settings)
    networks = np.stack([search._compose(np.full(len(search.decomposition), j)) for j in range(20)])
    reach = 2 / np.sqrt(4) / search.evaluator.input_size
    assert 0.98 < np.abs(networks[:, :45]).max() / reach <= 1.000001
    assert 0.65 < np.abs(networks[:, 45:]).max() <= 2 / 3  # 2 / √9
