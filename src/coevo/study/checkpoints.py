"""Where the runs of a study keep their checkpoints: a folder beside the store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from coevo.diagnostics.environment import versions
from coevo.study.run import BACKPROP, Run


class CheckpointFolder:
    """Names the checkpoint of each run, and removes those of runs that have ended.

    Parameters
    ----------
    store
        Path of the store. A store in memory has no checkpoints.
    """

    def __init__(self, store: str) -> None:
        self._folder = None if store == ":memory:" else Path(f"{store}.checkpoints")

    def path_of(self, run: Run) -> Path | None:
        """Return the file for a run's checkpoint; None for backpropagation, which is short.

        The name contains a digest of the library versions, so that a run never goes on under other
        versions than it began with. A development version of coevo, such as 0.2.0.dev0, counts as
        one version, whatever its source.
        """
        if self._folder is None or run.variant == BACKPROP:
            return None
        digest = hashlib.sha256(json.dumps(versions()).encode()).hexdigest()[:8]
        return self._folder / f"{run.key}-{digest}.checkpoint"

    def remove(self, keys: Collection[str]) -> None:
        """Remove all files of the runs with these keys, whatever versions wrote them."""
        if self._folder is not None:
            for path in self._folder.glob("*-*"):
                if path.name.partition("-")[0] in keys:
                    with suppress(OSError):  # in use, on Windows; removed when the study runs next
                        path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder, if it is empty."""
        if self._folder is not None:
            with suppress(OSError):  # other processes' checkpoints are there, or it never was
                self._folder.rmdir()
