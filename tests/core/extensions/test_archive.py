"""The archive: what goes into it, and that it shrinks along with the subpopulations."""

import numpy as np
import pytest

from coevo import SHADE, CurrentToPBest, PopulationReduction
from coevo.core.extensions.archive import Archive
from coevo.core.schedule import TrialLog, Turn

pytestmark = pytest.mark.without_jit


class FakeSearch:
    """What an archive sees of a search: two subpopulations of three individuals with one gene."""

    def __init__(self):
        self.state = self
        self.subpopulations = [np.array([[[1.0], [2], [3]], [[4], [5], [6]]])]
        self.fitness = np.zeros((2, 3))
        self.rng = self

    def memory(self, archive):
        return self.memories

    def random(self, shape):
        assert shape == (2, 3)
        return np.array([[0.9, 0.9, 0.9], [0.9, 0.0, 0.4]])


def test_only_targets_that_were_bettered_are_archived():
    archive, search = Archive(), FakeSearch()
    search.memories = archive.begin(search)
    search.memories["counts"][:] = [0, 2]
    turn = Turn(0, slice(0, 2), range(2), range(3), completes=True)
    log = TrialLog.blank((2, 3))
    log.gains[:] = [[0.5, 0.0, -1.0], [0.1, 0.2, 0.3]]
    archive.before_block(search, turn, None)
    search.subpopulations[0][:] = 0  # the targets are replaced, and archived as they were
    archive.after_block(search, turn, log)
    np.testing.assert_array_equal(search.memories["counts"], [1, 3])
    # The second archive has room for one; the next two go to places 0 and 1.
    archived = search.memories["individuals.0"][..., 0]
    np.testing.assert_array_equal(archived, [[1, 0, 0], [5, 6, 4]])


def test_counts_that_do_not_fit_are_refused():
    archive, search = Archive(), FakeSearch()
    memory = archive.begin(search)
    assert archive.fits(search, memory)
    for count in (-1, 4):
        assert not archive.fits(search, memory | {"counts": np.array([0, count])})
    assert not Archive(2.0).fits(search, memory)


def test_archives_shrink_along(make_search, small_settings):
    search = make_search(
        small_settings(
            control=SHADE(3), strategy="current-to-pbest/1", population_size=12,
            extensions=[PopulationReduction(4)], max_generations=8,
        )
    )  # fmt: skip
    search.run()
    archive = search.state.memories["archive"].copy()
    assert archive.pop("counts").max() == 5
    assert {individuals.shape[1] for individuals in archive.values()} == {5}
    assert search.state.evaluations == 30 * 2 + 2 * 6 * sum(range(5, 13))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Archive(-1), "rate must be at least 0"),
        (lambda: CurrentToPBest(archive_rate=-1), "archive_rate must be at least 0"),
    ],
)
def test_settings_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()
