"""Files that are damaged or crafted: each is refused in plain words, or is as it was."""

from __future__ import annotations

import copy
import json
import math
import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attack.kills import make_data
from attack.tally import Tally, rounds
from coevo import Checkpoint, evolve, load_model
from coevo.persistence import checkpoint, container, freezing, model
from coevo.study import Store, read_plan, run_study
from coevo.study.exchange import export_runs, open_results
from coevo.tabular.job import read_job
from coevo.tabular.reading import open_table

RUN: dict[str, Any] = {
    "hidden_layer_sizes": (4,), "batch_size": 20, "population_size": 6, "max_generations": 4,
    "control": "shade", "n_threads": 1, "seed": 5,
}  # fmt: skip

PLAN = """
name = "fuzzed"
seeds = 2
[[experiment]]
name = "tiny"
dataset = "WBC"
variants = ["LECCDE", "CCDE"]
[experiment.settings]
hidden_layer_sizes = [3]
batch_size = 100
max_evaluations = 500
"""

JOB = """
data = "table.csv"
target = "kind"
hidden_layer_sizes = [5]
max_evaluations = 500
"""

VALUES = [
    None, True, -1, 0, 1, 2**31, 2**63, -(10**30), 10**30, 1e308, 0.5, math.nan, math.inf, "", "x",
    "\ud800", "\x1b[31m", "a" * 10_000, [], {}, [[]], [1, "a"], {"a": 1}, "__import__('os')",
]  # fmt: skip

FORBIDDEN = {
    "pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen",
    "socket.connect", "ctypes.dlopen", "shutil.rmtree",
}  # fmt: skip


@dataclass
class Target:
    """A kind of file, a good one, and how coevo reads it.

    Parameters
    ----------
    name
        What it is called in the report.
    good
        The content of a good file.
    read
        Reads a file; returns something to compare if damage must not change what is read.
    is_sealed
        Whether the file has a digest, so that no damage may go unnoticed.
    errors
        How it may be refused.
    """

    name: str
    good: bytes
    read: Callable[[Path], Any]
    is_sealed: bool
    errors: tuple[type[Exception], ...] = (ValueError,)


@contextmanager
def no_code() -> Iterator[list[str]]:
    """Note every attempt to run code or programs that reading a file makes."""
    seen: list[str] = []
    _watched.append(seen)
    try:
        yield seen
    finally:
        _watched.remove(seen)


_watched: list[list[str]] = []


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    is_text = event == "exec" and getattr(arguments[0], "co_filename", "") == "<string>"
    if event in FORBIDDEN or is_text:
        _watched[-1].append(event)


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """Raise TimeoutError after some seconds, where the system has alarms."""

    def ring(*_: object) -> None:
        raise TimeoutError

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    previous = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)


def make_targets(folder: Path) -> list[Target]:
    """Write a good file of each kind."""
    data = make_data()
    result = evolve(*data, **RUN, checkpoint=folder / "run.checkpoint")
    result.save(folder / "good.model")
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    (folder / "job.toml").write_text(JOB, encoding="utf-8")
    rows = [f"{a:.3f},{b:.3f},{'red' if a > b else 'blue'}" for a, b in data[0][:, :2]]
    (folder / "table.csv").write_text("\n".join(["x,y,kind", *rows]) + "\n", encoding="utf-8")
    plan = read_plan(folder / "plan.toml")
    with Store(folder / "store.sqlite") as store:
        run_study(plan, store, workers=1, threads=1)
        export_runs(store.records().values(), folder / "export.json")

    def read_checkpoint(path: Path) -> Any:
        saved = checkpoint.load(path)
        values, arrays = freezing.freeze(saved.state)
        return repr(values), {name: array.tobytes() for name, array in arrays.items()}

    def read_model(path: Path) -> Any:
        loaded = load_model(path)
        return loaded.network.genotype.tobytes(), repr(loaded.classes)

    def read_results(path: Path) -> None:
        with open_results(path) as store:
            store.records()

    def read_table(path: Path) -> None:
        for _ in open_table(path).frames():
            pass

    def content(name: str) -> bytes:
        return (folder / name).read_bytes()

    return [
        Target("checkpoint", content("run.checkpoint"), read_checkpoint, True),
        Target("model", content("good.model"), read_model, True),
        Target("store.sqlite", content("store.sqlite"), read_results, False),
        Target("export.json", content("export.json"), read_results, False),
        Target("plan.toml", content("plan.toml"), read_plan, False, (ValueError, TypeError)),
        Target("job.toml", content("job.toml"), read_job, False, (ValueError, TypeError)),
        Target("table.csv", content("table.csv"), read_table, False),
    ]


def mutate(good: bytes, generator: random.Random) -> bytes:
    """Damage a file: bits, bytes or slices flipped, cut, doubled, moved or replaced."""
    content = bytearray(good)
    for _ in range(generator.choice((1, 1, 1, 2, 5, 20))):
        start = generator.randrange(len(content) + 1)
        stop = min(len(content), start + int(2 ** generator.uniform(0, 12)))
        kind = generator.randrange(7)
        if kind == 0 and start < len(content):
            content[start] ^= 1 << generator.randrange(8)
        elif kind == 1:
            del content[start:stop]
        elif kind == 2:
            content[start:start] = content[start:stop]
        elif kind == 3:
            content[start:stop] = generator.randbytes(stop - start)
        elif kind == 4:
            content[start:stop] = bytes([generator.choice((0, 255))]) * (stop - start)
        elif kind == 5:
            content[start:start] = str(generator.choice(VALUES)).encode("utf-8", "replace")
        else:
            del content[start if generator.random() < 0.2 else len(content) :]
        if not content:
            break
    return bytes(content)


def attack_by_damage(seconds: float, seed: int, folder: Path) -> Tally:
    """Read damaged files of all kinds."""
    tally, generator = Tally(), random.Random(seed)
    targets = make_targets(folder)
    expected = {}
    sys.addaudithook(_audit)
    for number in rounds(seconds):
        target = targets[number % len(targets)]
        path = folder / f"fuzzed-{target.name}"
        if target.name not in expected:  # reads a good one first, which also imports what it needs
            path.write_bytes(target.good)
            expected[target.name] = target.read(path)
        content = mutate(target.good, generator)
        path.write_bytes(content)
        tally.counts["files"] += 1
        tally.counts[f"of {target.name}"] += 1
        found = _read(target, path, tally)
        if target.is_sealed and found is not None and content != target.good:
            tally.expect(found == expected[target.name], f"{target.name}: damage was not noticed")
        if path.exists() and target.name != "store.sqlite":
            tally.expect(path.read_bytes() == content, f"{target.name}: the file was changed")
        for left in folder.glob(f"{path.name}?*"):
            left.unlink()
    return tally


def _read(target: Target, path: Path, tally: Tally) -> Any:
    try:
        with no_code() as seen, alarm(20):
            found = target.read(path)
    except target.errors as error:
        found = None
        tally.counts["refused"] += 1
        tally.expect(bool(str(error).strip()), f"{target.name}: an error without a word")
    except Exception as error:
        found = None
        tally.expect(False, f"{target.name}: {type(error).__name__}: {error}"[:300])
    tally.expect(not seen, f"{target.name}: ran {seen}")
    return found


# ------------------------------------------------------------------------- with the right digest

OURS = (container.FileFormatError, checkpoint.CheckpointMismatchError)


def attack_by_forgery(seconds: float, seed: int, folder: Path) -> Tally:
    """Change what is in checkpoints and models, and put the right digest beside it."""
    tally, generator = Tally(), random.Random(seed)
    data = make_data()
    result = evolve(*data, **RUN, checkpoint=folder / "run.checkpoint")
    result.save(folder / "good.model")
    saved = checkpoint.load(folder / "run.checkpoint")
    content = (folder / "good.model").read_bytes()
    sys.addaudithook(_audit)
    warnings.simplefilter("ignore")  # infinite weights, other versions
    for number in rounds(seconds):
        forged = folder / "forged"
        forge = _forge_checkpoint if number % 2 else _forge_model
        what, sealed = forge(saved if number % 2 else content, generator)
        forged.write_bytes(sealed)
        kind = "checkpoint" if number % 2 else "model"
        tally.counts["files"] += 1
        tally.counts[f"{kind}s"] += 1
        try:
            with no_code() as seen, alarm(20):
                if kind == "checkpoint":
                    hook = Checkpoint(forged, resume=True)
                    evolve(*data, **RUN | {"max_generations": 6}, checkpoint=hook)
                else:
                    labels = load_model(forged).predict(data[2])
                    tally.expect(len(labels) == len(data[2]), f"model: {what}: few labels")
        except (ValueError, TypeError) as error:
            tally.counts["refused"] += 1
            is_ours = isinstance(
                error, container.FileFormatError | checkpoint.CheckpointMismatchError
            )
            tally.expect(is_ours, f"{kind}: {what}: {type(error).__name__}: {error}"[:300])
        except BaseException as error:
            tally.expect(False, f"{kind}: {what}: {type(error).__name__}: {error}"[:300])
        tally.expect(not seen, f"{kind}: {what}: ran {seen}")
        for left in folder.glob("forged?*"):
            left.unlink()
    return tally


def change_somewhere(content: Any, generator: random.Random) -> tuple[str, Any]:
    """Put an absurd value into a place of a nested JSON value, or take something out of it."""
    content = copy.deepcopy(content)
    place, where = content, []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return "nothing", content
        key = generator.choice(keys)
        where.append(str(key))
        inside = place[key]
        if isinstance(inside, dict | list) and inside and generator.random() < 0.7:
            place = inside
            continue
        if generator.random() < 0.1:
            del place[key]
            return f"{'.'.join(where)} taken out", content
        value = generator.choice(VALUES)
        place[key] = value
        return f"{'.'.join(where)} = {value!r}"[:80], content


def change_array(array: Any, generator: random.Random) -> tuple[str, Any]:
    """Change the numbers, the dtype or the shape of an array."""
    absurd = generator.choice((0, -1, 1e30, np.nan, np.inf, -np.inf, 2**40))
    with np.errstate(all="ignore"):
        kind, changed = generator.choice([
            ("filled", lambda a: np.full_like(a, absurd if a.dtype.kind == "f" else 7)),
            ("one number", lambda a: _set_one(a, absurd, generator)),
            ("cut", lambda a: a[: len(a) // 2] if a.ndim else a),
            ("emptied", lambda a: a[:0] if a.ndim else a),
            ("longer", lambda a: np.concatenate([a, a]) if a.ndim else a),
            ("flattened", lambda a: a.ravel()),
            ("float16", lambda a: a.astype(np.float16)),
            ("int64", lambda a: np.nan_to_num(a).astype(np.int64)),
            ("float64", lambda a: a.astype(np.float64)),
            ("negative", lambda a: -a if a.dtype != bool else ~a),
        ])  # fmt: skip
        return kind, changed(array)


def _set_one(array: Any, value: float, generator: random.Random) -> Any:
    array = array.copy()
    if array.size:
        number = value if array.dtype.kind == "f" else generator.choice((-1, 0, 99, 2**31 - 1))
        if array.dtype.kind == "b":
            number = True
        if array.dtype.kind == "u":
            number = abs(number)
        array.reshape(-1)[generator.randrange(array.size)] = number
    return array


def _forge_checkpoint(saved: Any, generator: random.Random) -> tuple[str, bytes]:
    values, arrays = freezing.freeze(saved.state)
    arrays |= {f"memory.{name}": array for name, array in saved.memory.items()}
    texts = {"state": values, "fingerprint": asdict(saved.fingerprint)}
    if generator.random() < 0.5:
        name = generator.choice(list(arrays))
        kind, arrays[name] = change_array(np.asarray(arrays[name]), generator)
        what = f"{name} {kind}"
    else:
        what, texts = change_somewhere(texts, generator)
    payload = container.pack(arrays, {name: json.dumps(text) for name, text in texts.items()})
    sha = checkpoint._digest(checkpoint.FORMAT_VERSION, payload)
    prefix = checkpoint._PREFIX.pack(
        checkpoint._MAGIC, checkpoint.FORMAT_VERSION, len(payload), sha
    )
    return what, prefix + payload


def _forge_model(good: bytes, generator: random.Random) -> tuple[str, bytes]:
    metadata, arrays = container.unpack(good)
    if generator.random() < 0.3:
        name = generator.choice(list(arrays))
        kind, arrays[name] = change_array(arrays[name], generator)
        what = f"{name} {kind}"
    else:
        what, content = change_somewhere(json.loads(metadata["content"]), generator)
        metadata["content"] = json.dumps(content)
    metadata["sha256"] = model._digest(metadata["content"], arrays)
    return what, container.pack(arrays, metadata)
