"""A run folder: what a training leaves behind, and where each part lies."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo.checkpoint import previous_path
from coevo.files import write_atomically
from coevo.network import Array

MODEL = "model.safetensors"


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    Parameters
    ----------
    path
        The folder.
    """

    path: Path

    @property
    def settings(self) -> Path:
        """What was asked for, with every default filled in."""
        return self.path / "settings.toml"

    @property
    def checkpoint(self) -> Path:
        """Where the search can go on from."""
        return self.path / "search.checkpoint"

    @property
    def model(self) -> Path:
        """The network with the preprocessing of its inputs."""
        return self.path / MODEL

    @property
    def metrics(self) -> Path:
        """How good it is."""
        return self.path / "metrics.json"

    @property
    def history(self) -> Path:
        """A row for each generation."""
        return self.path / "history.csv"

    @property
    def learning_curve(self) -> Path:
        """The history as a picture."""
        return self.path / "learning_curve.png"

    @classmethod
    def begin(cls, path: Path) -> RunFolder:
        """Make the folder of a new run; one that is there already must be empty."""
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            advice = "; choose another --output"
            if (path / "settings.toml").exists():
                advice += f", or go on with --resume {path}"
            raise FileExistsError(f"{path} is there already and is not an empty folder{advice}")
        path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    @classmethod
    def resume(cls, path: Path) -> RunFolder:
        """Return the folder of a run that has begun."""
        folder = cls(path)
        if not folder.settings.is_file():
            raise FileNotFoundError(
                f"{path} is not a run folder: there is no {folder.settings.name} in it"
            )
        return folder

    def discard(self) -> None:
        """Remove what a run that came to nothing has written, and nothing else."""
        for file in (self.settings, self.checkpoint, previous_path(self.checkpoint)):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # somebody has put something there
            self.path.rmdir()

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Write metrics.json."""
        write_atomically(self.metrics, [json.dumps(metrics, indent=2, allow_nan=False).encode()])

    def write_history(self, columns: Mapping[str, Array]) -> None:
        """Write history.csv."""
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(repr, row)) for row in rows), ""]
        write_atomically(self.history, ["\n".join(lines).encode()])


def default_path(data: str) -> Path:
    """Return runs/NAME-DATE-TIME for a data file, with a number if that is taken."""
    name = re.sub(r"\W+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    path, number = Path("runs") / f"{name}-{now}", 2
    while path.exists():
        path, number = path.with_name(f"{name}-{now}-{number}"), number + 1
    return path


def find_model(given: Path) -> Path:
    """Return the model file that a path stands for: itself, or the one in a run folder."""
    if given.is_dir():
        model = given / MODEL
        if not model.is_file():
            raise FileNotFoundError(f"there is no {MODEL} in the folder {given}")
        return model
    if not given.is_file():
        raise FileNotFoundError(f"there is no model at {given}")
    return given
