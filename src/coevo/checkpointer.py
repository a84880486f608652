"""When a run writes checkpoints and from which one it goes on.

While a run lasts it holds `<name>.lock`, so that no two runs write the same checkpoint.
"""

from __future__ import annotations

import os
import time
import warnings
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Self

from coevo.checkpoint import (
    BUDGETS,
    Checkpoint,
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    Purpose,
    load,
    previous_path,
    save,
)
from coevo.errors import check_integer, check_real
from coevo.evaluation import Evaluator
from coevo.files import StrPath
from coevo.locking import LockedError, hold
from coevo.search import Search
from coevo.state import SearchState


class Checkpointer:
    """Writes checkpoints as a callback of a search; reads the last one to resume.

    `evolve` does it all. By hand, with an evaluator and so on at hand::

        purpose = Purpose.of(settings, "delta", {"inputs": inputs, "targets": targets})
        with Checkpointer("run.checkpoint", purpose) as checkpointer:
            state = checkpointer.begin(evaluator, resume=True)
            search = Search(evaluator, decomposition, settings, [checkpointer], state)
            search.run()
            checkpointer.save(search)

    Within `with` it keeps other runs away from the file.

    Parameters
    ----------
    path
        The file; the checkpoint before is kept as `<path>.previous`.
    purpose
        What the run is for.
    every_seconds
        Write one after the first generation that ends this long after the last one; None for not
        by time.
    every_generations
        Write one after this many generations; None for not by generations.
    """

    def __init__(
        self,
        path: StrPath,
        purpose: Purpose,
        every_seconds: float | None = 60.0,
        every_generations: int | None = None,
    ) -> None:
        if every_seconds is not None:
            check_real("checkpoint_every_seconds", every_seconds, 0)
        if every_generations is not None:
            check_integer("checkpoint_every_generations", every_generations, 1)
        self.path = Path(path)
        self.purpose = purpose
        self.every_seconds = every_seconds
        self.every_generations = every_generations
        self._saved_generation = -1
        self._tried_generation = 0
        self._tried_at = time.monotonic()
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        """Make sure that the checkpoint can be written, and only by this run."""
        folder = self.path.parent
        if not folder.is_dir():
            raise FileNotFoundError(f"the folder of the checkpoint {self.path} does not exist")
        if not os.access(folder, os.W_OK):
            raise PermissionError(f"the folder of the checkpoint {self.path} cannot be written to")
        try:
            self._lock.enter_context(hold(lock_path(self.path)))
        except LockedError:
            raise CheckpointInUseError(
                f"another run is writing the checkpoint {self.path}; wait until it has ended, or "
                "choose another file"
            ) from None
        return self

    def __exit__(self, *error: object) -> None:
        """Let other runs have it."""
        self._lock.close()

    def __call__(self, search: Search) -> None:
        """Write a checkpoint if it is time."""
        n_seconds = time.monotonic() - self._tried_at
        n_generations = search.state.generation - self._tried_generation
        if (self.every_seconds is not None and n_seconds >= self.every_seconds) or (
            self.every_generations is not None and n_generations >= self.every_generations
        ):
            self.save(search)

    def save(self, search: Search) -> None:
        """Write a checkpoint now, unless the last one is of this generation.

        If it cannot be written, say for lack of space, a warning is given and the run goes on: the
        last checkpoint is still there, and a long run is worth more than the next one.
        """
        generation = search.state.generation
        if generation != self._saved_generation:
            try:
                save(self.path, search, self.purpose)
                self._saved_generation = generation
            except OSError as error:
                warnings.warn(
                    f"the checkpoint {self.path} of generation {generation} could not be written: "
                    f"{error}",
                    RuntimeWarning,
                    stacklevel=2,
                )
        self._tried_generation = generation
        self._tried_at = time.monotonic()

    def begin(self, evaluator: Evaluator, resume: bool) -> SearchState | None:
        """Return where to go on from, None for the beginning.

        Parameters
        ----------
        evaluator
            The engine of the run that begins, which is put back to where the old one was.
        resume
            Whether to go on from the checkpoint, if there is one. Otherwise there must be none, so
            that no run overwrites another's.
        """
        checkpoint = self.find(resume)
        return None if checkpoint is None else self.thaw(checkpoint, evaluator)

    def find(self, resume: bool) -> Checkpoint | None:
        """Return the checkpoint to go on from, None for the beginning; see `begin`."""
        previous = previous_path(self.path)
        if not self.path.exists():
            if previous.exists():
                raise CheckpointError(
                    f"the checkpoint {self.path} is missing, but {previous} is there; rename that "
                    "to resume from it, or remove it to begin anew"
                )
            return None
        if not resume:
            raise FileExistsError(
                f"the checkpoint {self.path} is there already; go on from it with resume=True, or "
                "remove it"
            )
        checkpoint = load(self.path)
        self._check(checkpoint.purpose)
        self.purpose = replace(self.purpose, seed=checkpoint.purpose.seed)
        return checkpoint

    def thaw(self, checkpoint: Checkpoint, evaluator: Evaluator) -> SearchState:
        """Put an engine back to where the checkpoint's was, and return the search's state."""
        try:
            evaluator.recall(checkpoint.memory, checkpoint.state.global_solution)
        except ValueError as error:
            raise CheckpointError(f"{self.path} does not fit the engine: {error}") from error
        self._saved_generation = self._tried_generation = checkpoint.state.generation
        return checkpoint.state

    def _check(self, there: Purpose) -> None:
        differences = there.differences(self.purpose)
        if differences:
            raise CheckpointMismatchError(
                f"the checkpoint {self.path} belongs to another run: {'; '.join(differences)}. "
                f"Only these may change: {', '.join(BUDGETS)}"
            )
        if there.versions != self.purpose.versions:
            warnings.warn(
                f"the checkpoint {self.path} was written with {_list(there.versions)}, and this is "
                f"{_list(self.purpose.versions)}: the run goes on, but perhaps not bit for bit",
                stacklevel=4,
            )


def _list(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def lock_path(path: StrPath) -> Path:
    """Return the file that is locked while a run uses a checkpoint."""
    path = Path(path)
    return path.with_name(path.name + ".lock")
