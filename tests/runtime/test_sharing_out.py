"""Work that is shared out among threads: all of it, once, with its errors."""

import threading
import time

import numpy as np
import pytest

from coevo.runtime import threads


@pytest.mark.parametrize("grain", [0, 1, 7])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_cuts_cover_every_item_once_and_come_to_an_end(n_items, grain):
    ranges = threads.cut(range(5, 5 + n_items), grain)
    assert [item for items in ranges for item in items] == list(range(5, 5 + n_items))
    assert len(ranges) == 1 or min(map(len, ranges)) >= grain


def share_by_ranges(work, n_items, grain):
    threads.share_ranges(work, threads.cut(range(n_items), grain))


@pytest.mark.parametrize("share", [threads.share_out, share_by_ranges])
@pytest.mark.parametrize("n_items", [0, 1, 15, 1001])
def test_shared_work_covers_every_item_once(share, n_items):
    seen = np.zeros(n_items, dtype=int)

    def count(start, stop):
        seen[start:stop] += 1

    with threads.limit(2) as n_threads:
        assert n_threads == 2
        share(count, len(seen), grain=10)
    assert (seen == 1).all()


@pytest.mark.parametrize("share", [threads.share_out, share_by_ranges])
def test_shared_work_passes_errors_on(share):
    def fail(start, stop):
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("in another thread")
        time.sleep(0.05)  # so that another thread has the time to take its part

    with threads.limit(2), pytest.raises(RuntimeError, match="in another thread"):
        share(fail, 100, grain=1)


@pytest.mark.parametrize("shape", [(900, 130, 300), (60, 130, 1100)])
def test_a_product_is_the_same_on_any_number_of_threads(rng, shape, monkeypatch):
    monkeypatch.setattr(threads, "LARGE_PRODUCT", 2**12)
    m, k, n = shape
    left, right = (rng.normal(size=s).astype(np.float32) for s in ((m, k), (k, n)))
    products = set()
    for n_threads in (1, 2, 3):
        with threads.limit(n_threads):
            products.add(threads.multiply(left, right).tobytes())
    assert len(products) == 1
    np.testing.assert_allclose(threads.multiply(left, right), left @ right, rtol=1e-3, atol=1e-4)


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
