"""The hook that writes checkpoints and resumes from them.

During a run it holds `<name>.lock`, so that no two runs write the same checkpoint.
"""

from __future__ import annotations

import os
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

from coevo._typing import StrPath
from coevo._validation import check_flag, check_integer, check_real
from coevo.core.hooks import Hook, Run
from coevo.core.loop import SearchLoop
from coevo.core.state import SearchState
from coevo.persistence.checkpoint import (
    BUDGETS,
    CheckpointError,
    CheckpointInUseError,
    CheckpointMismatchError,
    Fingerprint,
    load,
    previous_path,
    save,
)
from coevo.persistence.lock import LockedError, hold


class Checkpoint(Hook):
    """Saves a run at intervals and at its end, and resumes it.

    Parameters
    ----------
    path
        The file; the previous checkpoint is kept as `<path>.previous`.
    resume
        Continue from the checkpoint, if the file exists. If False, it must not exist, so that no
        run overwrites another's checkpoint.
    every_seconds
        Save after the first generation that ends this long after the last save; None to ignore
        the time.
    every_generations
        Save after this many generations; None to ignore their number.
    """

    def __init__(
        self,
        path: StrPath,
        *,
        resume: bool = False,
        every_seconds: float | None = 60.0,
        every_generations: int | None = None,
    ) -> None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint must be a path or None, got {path!r}")
        if not os.fspath(path):
            raise ValueError("checkpoint must not be empty: give the name of a file, or None")
        try:
            is_name = b"\0" not in os.fsencode(path)
        except UnicodeEncodeError:
            is_name = False
        if not is_name:
            raise ValueError(f"checkpoint={path!r} cannot be the name of a file")
        check_flag("resume", resume)
        if every_seconds is not None:
            check_real("every_seconds", every_seconds, 0)
        if every_generations is not None:
            check_integer("every_generations", every_generations, 1)
        self.path = Path(path)
        self.resume = resume
        self.every_seconds = every_seconds
        self.every_generations = every_generations
        self._fingerprint: Fingerprint | None = None
        self._is_resumed = False
        self._saved_generation = -1
        self._tried_generation = 0
        self._tried_at = time.monotonic()
        self._lock = ExitStack()

    def with_resume(self, resume: bool) -> Checkpoint:
        """Return a checkpoint of the same file for another run."""
        check_flag("resume", resume)
        return Checkpoint(
            self.path,
            resume=self.resume or resume,
            every_seconds=self.every_seconds,
            every_generations=self.every_generations,
        )

    def choose_seed(self, seed: int) -> int:
        """Return the seed of the run to be resumed, which may be random, or the given one."""
        if self.resume and self.path.exists():
            found = load(self.path).fingerprint.seed
            return seed if found is None else int(found)
        return seed

    def open(self, run: Run) -> None:
        """Check that the checkpoint can be written, and lock it."""
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
        self._fingerprint = Fingerprint.of(run)
        self._tried_at = time.monotonic()

    def restore(self, run: Run) -> SearchState | None:
        """Return the saved state, and restore the engine's memory."""
        previous = previous_path(self.path)
        if not self.path.exists():
            if previous.exists():
                raise CheckpointError(
                    f"the checkpoint {self.path} is missing, but {previous} is there; rename that "
                    "to resume from it, or remove it to begin anew"
                )
            return None
        if not self.resume:
            raise FileExistsError(
                f"the checkpoint {self.path} is there already; go on from it with resume=True, or "
                "remove it"
            )
        checkpoint = load(self.path)
        self._check(checkpoint.fingerprint)
        try:
            run.evaluator.recall(checkpoint.memory, checkpoint.state.global_solution)
        except ValueError as error:
            raise CheckpointError(f"{self.path} does not fit the engine: {error}") from error
        self._is_resumed = True
        self._saved_generation = self._tried_generation = checkpoint.state.generation
        return checkpoint.state

    def begin(self, search: SearchLoop) -> None:
        """Raise if the saved state does not fit the search."""
        if not self._is_resumed:
            return
        if not _fits(search):
            raise CheckpointError(f"{self.path}: its state does not fit the settings and the data")
        if search.has_forgotten:
            raise CheckpointError(
                f"{self.path}: what its extensions remember contradicts its subpopulations"
            )

    def after_generation(self, search: SearchLoop) -> None:
        """Save if it is time."""
        n_seconds = time.monotonic() - self._tried_at
        n_generations = search.state.generation - self._tried_generation
        if (self.every_seconds is not None and n_seconds >= self.every_seconds) or (
            self.every_generations is not None and n_generations >= self.every_generations
        ):
            self.end(search)

    def end(self, search: SearchLoop) -> None:
        """Save now, unless the last checkpoint is of this generation.

        If it cannot be written, for example because the disk is full, a warning is given and the
        run goes on; the last checkpoint is unchanged.
        """
        generation = search.state.generation
        if generation != self._saved_generation:
            assert self._fingerprint is not None
            try:
                save(self.path, search, self._fingerprint)
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

    def close(self) -> None:
        """Release the lock."""
        self._lock.close()

    def _check(self, there: Fingerprint) -> None:
        here = self._fingerprint
        assert here is not None
        differences = there.differences(here)
        if differences:
            raise CheckpointMismatchError(
                f"the checkpoint {self.path} belongs to another run: {'; '.join(differences)}. "
                f"Only these may change: {', '.join(BUDGETS)}"
            )
        if there.versions != here.versions:
            warnings.warn(
                f"the checkpoint {self.path} was written with {_list(there.versions)}, and this is "
                f"{_list(here.versions)}: the run goes on, but perhaps not bit for bit",
                stacklevel=4,
            )


def find_checkpoint(given: StrPath | Checkpoint | None, resume: bool) -> Checkpoint | None:
    """Return the checkpoint of a run; arguments as for `coevo.evolve`."""
    if given is not None:
        checkpoint = given if isinstance(given, Checkpoint) else Checkpoint(given)
        return checkpoint.with_resume(resume)
    if resume:
        raise ValueError("resume=True needs a checkpoint to go on from")
    return None


def _fits(search: SearchLoop) -> bool:
    """Whether the state's subpopulations, dtype and number of instances are those of the search."""
    state, settings, decomposition = search.state, search.settings, search.decomposition
    size = state.fitness.shape[1]
    smallest, largest = settings.population_sizes
    blocks = zip(decomposition.blocks, decomposition.genes_of_blocks, strict=True)
    return (
        [block.shape for block in state.subpopulations]
        == [(len(block), size, genes.shape[1]) for block, genes in blocks]
        and smallest <= size <= largest
        and state.global_solution.dtype == settings.dtype
        and len(state.batches.order) == search.evaluator.n_instances
    )


def _list(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


def lock_path(path: StrPath) -> Path:
    """Return the lock file of a checkpoint."""
    path = Path(path)
    return path.with_name(path.name + ".lock")
