"""Work that is shared out among threads: all of it, once, with its errors."""

import threading
import time

import numpy as np
import pytest

from coevo.runtime import threads


@pytest.mark.parametrize("grain", [0, 1, 7])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_cuts_cover_every_item_once_and_come_to_an_end(n_items, grain):
    with threads.limit(3):
        ranges = threads.cut_ahead(range(5, 5 + n_items), grain)
    assert [item for items in ranges for item in items] == list(range(5, 5 + n_items))


@pytest.mark.parametrize("evenly", [True, False])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_shared_work_covers_every_item_once(evenly, n_items):
    seen = np.zeros(n_items, dtype=int)

    def count(start, stop):
        seen[start:stop] += 1

    with threads.limit(2) as n_threads:
        assert n_threads == 2
        threads.share_out(count, len(seen), grain=10, evenly=evenly)
    assert (seen == 1).all()


@pytest.mark.parametrize("evenly", [True, False])
def test_shared_work_passes_errors_on(evenly):
    def fail(start, stop):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("in another thread")
        time.sleep(0.05)  # so that another thread has the time to take its part

    with threads.limit(2), pytest.raises(RuntimeError, match="in another thread"):
        threads.share_out(fail, 100, grain=1, evenly=evenly)


@pytest.mark.parametrize("size", [1, threads.LARGE_PRODUCT])
def test_work_begun_elsewhere_gives_its_result_or_its_error(size):
    with threads.limit(2):
        assert threads.begin(lambda: 3, size)() == 3
        with pytest.raises(ZeroDivisionError):
            threads.begin(lambda: 1 // 0, size)()
        began_by = threads.begin(threading.current_thread, size)()
        assert (began_by is threading.current_thread()) == (size == 1)


def test_limit_is_undone():
    before = threads.available_threads()
    with threads.limit(1):
        assert threads.available_threads() == 1
    assert threads.available_threads() == before
