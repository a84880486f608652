"""Ctrl-C where the process ignores it, or where its handler is not Python's."""

import signal

import pytest

from coevo.core.stopping import on_interrupt


@pytest.fixture
def asked():
    return []


def test_a_process_that_ignores_ctrl_c_is_not_interrupted(asked):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with on_interrupt(lambda: asked.append(1)):
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked == []


def test_a_handler_that_is_not_pythons_is_left_alone(asked, monkeypatch):
    def refuse(number, handler):
        raise TypeError("signal handler must be signal.SIG_IGN, signal.SIG_DFL, or a callable")

    monkeypatch.setattr(signal, "getsignal", lambda number: None)  # as in a program in C
    monkeypatch.setattr(signal, "signal", refuse)
    with on_interrupt(lambda: asked.append(1)):
        pass


def test_a_first_ctrl_c_asks_and_the_handler_is_put_back(asked):
    before = signal.getsignal(signal.SIGINT)
    with on_interrupt(lambda: asked.append(1)):
        signal.raise_signal(signal.SIGINT)
        assert asked == [1]
        assert signal.getsignal(signal.SIGINT) is before
    assert signal.getsignal(signal.SIGINT) is before
