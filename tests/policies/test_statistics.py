import numpy as np

from coevo.policies.statistics import ObservationStatistics


def test_parts_add_up_to_the_mean_and_deviation_of_all(rng):
    observations = rng.normal([1e6, 0.0, -3.0], [1.0, 2.0, 0.01], size=(500, 3))
    statistics = ObservationStatistics(3)
    centre = np.zeros(3)
    for part in np.split(observations, [7, 7, 50, 300]):
        differences = part - centre
        statistics.add(len(part), centre, differences.sum(axis=0), (differences**2).sum(axis=0))
        centre = statistics.mean
    scaling = statistics.scaling()
    np.testing.assert_allclose(scaling.centre, observations.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scaling.factor, 1 / observations.std(axis=0), rtol=1e-3)


def test_an_input_that_does_not_vary_is_left_out():
    statistics = ObservationStatistics(2)
    assert statistics.scaling().factor.tolist() == [1, 1]  # nothing is known yet
    statistics.add(2, np.zeros(2), np.array([6.0, 2.0]), np.array([18.0, 10.0]))
    assert statistics.scaling().centre.tolist() == [3, 1]
    assert statistics.scaling().factor.tolist() == [0, 0.5]
