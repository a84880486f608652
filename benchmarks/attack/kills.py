"""Runs that are killed, at random moments and at each step of writing, and go on bit for bit."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from attack.tally import Tally, rounds
from coevo.persistence import checkpoint, freezing
from coevo.persistence.checkpoint import load, previous_path

SMALL: dict[str, Any] = {
    "hidden_layer_sizes": (6,), "batch_size": 20, "population_size": 8, "max_generations": 12,
    "max_evaluations": None, "n_threads": 1, "seed": 5,
}  # fmt: skip

SETTINGS: list[dict[str, Any]] = [
    {},
    {"hidden_layer_sizes": (5, 4)},
    {"hidden_layer_sizes": ()},
    {"n_threads": 2},
    {"n_threads": None, "max_generations": 30},
    {"dtype": "float64"},
    {"variant": "DE"},
    {"variant": "LEDE"},
    {"variant": "CCDE"},
    {"fitness": "accuracy"},
    {"fitness": "accuracy", "variant": "CCDE"},
    {"fitness": "f1_macro"},
    {"fitness": "margin"},
    {"fitness": "squared_error"},
    {"activation": "sign"},
    {"activation": "identity", "dtype": "float64"},
    {"representative": "best"},
    {"reshuffle_batches": True},
    {"strategy": "rand/1(synchronous=False)"},
    {"strategy": "rand/1(accept_ties=False)"},
    {"strategy": "best/1/exp"},
    {"strategy": "current-to-pbest/1", "control": "shade"},
    {"control": "jde"},
    {"control": "dither"},
    {"decomposition": "synapse", "hidden_layer_sizes": (3,)},
    {"decomposition": "neuron_outgoing"},
    {"decomposition": "layer"},
    {"decomposition": "random(size=8, redraw_every=3)", "control": "jde"},
    {"extensions": ["weight_decay(rate=0.01)"]},
    {"extensions": ["population_reduction(final_size=5)"], "max_evaluations": 2000},
    {"extensions": ["batch_growth(final_size=60)"], "max_evaluations": 2000},
]

NURSERY = '''
"""Starts one process after the other, each ready to run at once, and tells how it ended."""
import builtins, json, os, signal, sys
import numpy as np
import coevo.persistence.atomic
from coevo import Checkpoint, evolve

data = [np.load(os.path.join(sys.argv[1], f"{part}.npy")) for part in range(4)]


def die_at(step):
    """Be killed at a certain step of writing files: before or after a call, or half-way."""
    count = 0

    def take_step():
        nonlocal count
        count += 1
        if count == step:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(function):
        def watched(*arguments):
            take_step()
            answer = function(*arguments)
            take_step()
            return answer
        return watched

    class SlowFile:
        def __init__(self, *arguments):
            self.file = builtins.open(*arguments)
        def __enter__(self):
            return self
        def __exit__(self, *_):
            self.file.close()
        def __getattr__(self, name):
            return getattr(self.file, name)
        def write(self, part):
            self.file.write(part[: len(part) // 2])
            self.file.flush()
            take_step()
            self.file.write(part[len(part) // 2 :])

    coevo.persistence.atomic.open = SlowFile
    for name in ("fsync", "link", "replace"):
        setattr(os, name, watch(getattr(os, name)))


def run(arguments):
    path = arguments.pop("checkpoint")
    evolve(*data, **arguments, checkpoint=Checkpoint(path, resume=True, every_generations=1))


process = None
for line in sys.stdin:
    if process is not None:
        os.waitpid(process, 0)
    arguments = json.loads(line)
    step = arguments.pop("die_at", None)
    if arguments.pop("here", False):  # loads what is compiled, for all children
        process = None
        run(arguments)
        print(0, 0, sep="\\n", flush=True)
        continue
    process = os.fork()
    if process == 0:
        if step is not None:
            die_at(step)
        run(arguments)
        os._exit(0)
    print(process, flush=True)
    # It is buried when the next is asked for: until then the number that may be killed is its own.
    ended = os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    print(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status, flush=True)
'''


def make_data(n_instances: int = 160, n_inputs: int = 5, n_classes: int = 3) -> list[Any]:
    """Return training and validation data of noisy linear classes."""
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-1, 1, (n_instances, n_inputs))
    noise = 0.3 * rng.normal(size=(n_instances, n_classes))
    targets = (inputs @ rng.normal(size=(n_inputs, n_classes)) + noise).argmax(axis=1)
    targets[:n_classes] = np.arange(n_classes)
    half = n_instances // 2
    return [inputs[:half], targets[:half], inputs[half:], targets[half:]]


class Nursery:
    """The other end of the process above.

    Parameters
    ----------
    folder
        For the data.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        for part, array in enumerate(make_data()):
            np.save(folder / f"{part}.npy", array)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", NURSERY, str(folder)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
        )  # fmt: skip

    def run(self, path: Path, kill_after: float | None = None, **arguments: Any) -> int:
        """Run `evolve` in a process of its own; return how it ended: 0, or minus the signal."""
        path.parent.mkdir(exist_ok=True)
        command = {**SMALL, **arguments, "checkpoint": str(path)}
        self.process.stdin.write(json.dumps(command).encode() + b"\n")
        number = int(self.process.stdout.readline())
        told = [self.process.stdout]
        if kill_after is not None and not select.select(told, [], [], kill_after)[0]:
            os.kill(number, signal.SIGKILL)
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """Wait for the last process."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=20)


@contextmanager
def nursery_in(folder: Path) -> Iterator[Nursery]:
    nursery = Nursery(folder)
    try:
        yield nursery
    finally:
        nursery.close()


def read_all(path: Path) -> tuple[Any, dict[str, bytes]]:
    """Return all of a checkpoint but its seconds: values, and arrays as bytes."""
    saved = checkpoint.load(path)
    values, arrays = freezing.freeze(saved.state)
    del values["seconds"]
    arrays["history.rows"][:, 2] = arrays["history.latest"][2] = 0
    arrays |= saved.memory
    return values, {name: array.tobytes() for name, array in arrays.items()}


def is_tidy(path: Path, endings: tuple[str, ...]) -> bool:
    """Return whether nothing lies about but the checkpoint and files of its name."""
    return set(os.listdir(path.parent)) <= {path.name + ending for ending in ("", *endings)}


WHILE_KILLED = (".previous", ".partial", ".previous.partial", ".lock")


def attack_at_random_moments(seconds: float, seed: int, folder: Path) -> Tally:
    """Kill runs with each of the settings at random moments, and resume until they are done."""
    tally, generator = Tally(), random.Random(seed)
    with nursery_in(folder / "nursery") as nursery:
        order = generator.sample(SETTINGS, len(SETTINGS))
        for number in rounds(seconds):
            changes = order[number % len(order)]
            whole, path = (folder / f"{number}" / name for name in ("whole", "run"))
            nursery.run(whole, here=True, **changes)
            timed = whole.with_name("timed")
            began = time.monotonic()
            nursery.run(timed, **changes)
            patience = (time.monotonic() - began) / 3
            expected = read_all(whole)
            _remove(whole, timed)
            tally.counts["settings"] = min(number + 1, len(order))
            tally.counts["kills"] += _kill_until_done(
                nursery, path, generator, patience, changes, tally
            )
            tally.expect(read_all(path) == expected, f"{changes}: ended otherwise")
            tally.expect(is_tidy(path, (".previous",)), f"{changes}: files left behind")
            tally.counts["resumed runs compared"] += 1
    return tally


def _remove(*paths: Path) -> None:
    for path in paths:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()


def _kill_until_done(
    nursery: Nursery,
    path: Path,
    generator: random.Random,
    patience: float,
    changes: dict[str, Any],
    tally: Tally,
) -> int:
    """Kill a run and resume it until it is done; return how often it was killed."""
    n_kills = done = 0
    while (ended := nursery.run(path, generator.uniform(0, patience), **changes)) != 0:
        n_kills += 1
        tally.expect(ended == -signal.SIGKILL, f"{changes}: ended with {ended}")
        tally.expect(is_tidy(path, WHILE_KILLED), f"{changes}: files left behind")
        for file in (path, previous_path(path)):
            if file.exists():
                load(file)
        reached = load(path).state.generation if path.exists() else 0
        tally.expect(reached >= done, f"{changes}: went back from {done} to {reached}")
        patience *= 1.1 if reached == done else 1  # the machine may be busy with something else
        done = reached
    return n_kills


def attack_each_step_of_writing(seconds: float, seed: int, folder: Path) -> Tally:
    """Kill runs before, after and half-way through each call that writes, and resume them."""
    tally, generator = Tally(), random.Random(seed)
    with nursery_in(folder / "nursery") as nursery:
        for number in rounds(seconds):
            changes = SMALL | generator.choice(SETTINGS) | {"max_generations": 3}
            whole = folder / f"{number}" / "whole"
            nursery.run(whole, here=True, **changes)
            expected = read_all(whole)
            for step in range(1, 1000):
                path = folder / f"{number}-{step}" / "run"
                if nursery.run(path, die_at=step, **changes) == 0:
                    break  # that was the last step
                tally.counts["kills"] += 1
                tally.expect(is_tidy(path, WHILE_KILLED), f"step {step}: files left behind")
                n_saved = load(path).state.generation if path.exists() else 0
                tally.expect(n_saved >= (step > 8), f"step {step}: nothing saved")
                ended = nursery.run(path, **changes)
                tally.expect(
                    ended == 0 and read_all(path) == expected, f"{changes}, step {step}: otherwise"
                )
                tally.expect(is_tidy(path, (".previous",)), f"step {step}: files left behind")
            tally.counts["steps of writing"] = max(tally.counts["steps of writing"], step - 1)
            tally.counts["runs"] += 1
    return tally
